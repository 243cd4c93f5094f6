"""How a differentiable model is trained, as values, and the optimisers behind them.

L-BFGS and Adam take ``fun(x) -> (value, gradient)`` of flat parameters and call
``callback(iteration, x, value)`` after each one; it may end the run by returning True. Both
give back the last parameters at which all was finite, and whether it was so to the end.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .. import _parameters as allowed
from .._parameters import HasMethods, Settings, settings
from .gain import Gain, check_gain
from .splitting import holdout_count


@settings
class LBFGS(Settings):
    """Minimise by L-BFGS, with all training problems at once.

    Parameters
    ----------
    max_iter : int, default=30
        Iterations at most.

    Examples
    --------
    >>> from skdcf.training import LBFGS, SoftTraining
    >>> SoftTraining(LBFGS(max_iter=50))
    SoftTraining(optimizer=LBFGS(max_iter=50))
    """

    _parameter_constraints = {"max_iter": [allowed.COUNT]}
    halves = False  # All problems calibrate, and all are predicted.

    max_iter: int = 30

    def n_validation(self, n: int) -> int:
        """Say how many of n training problems choose the best iteration: none.

        Parameters
        ----------
        n : int
            Number of training problems.

        Returns
        -------
        int
            How many problems are held out.
        """
        return 0

    def minimize(
        self, fun: Callable[..., Any], x: NDArray[Any], callback: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Minimise a function of flat parameters.

        Parameters
        ----------
        fun : callable
            ``fun(x) -> (value, gradient)``.
        x : ndarray of shape (n_params,)
            Where to start.
        callback : callable
            ``callback(iteration, x, value)`` is called after each iteration, and ends the
            run by returning True.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters at which value and gradient were finite.
        finite : bool
            Whether they were so to the end.
        """
        return lbfgs(fun, x, self.max_iter, callback)


@settings
class Adam(Settings):
    """Minimise by Adam, as published: in each epoch other halves calibrate and predict.

    Parameters
    ----------
    learning_rate : float, default=0.015
        How far the first iterations move a parameter.
    max_iter : int, default=100
        Epochs at most.
    patience : int, default=10
        Epochs without a better retention on the validation problems before it stops.
    validation_size : float, int or None, default=0.2
        Share or number of the training questions on which the best epoch is chosen. None
        takes the last epoch, and then ``patience`` has to stay as it is.

    Examples
    --------
    >>> from skdcf.training import Adam, SoftTraining
    >>> SoftTraining(Adam(learning_rate=0.01, patience=20))
    SoftTraining(optimizer=Adam(learning_rate=0.01, patience=20))
    """

    _parameter_constraints = {
        "learning_rate": [allowed.positive()],
        "max_iter": [allowed.COUNT],
        "patience": [allowed.COUNT],
        "validation_size": [None, allowed.SHARE, allowed.COUNT],
    }
    halves = True

    learning_rate: float = 0.015
    max_iter: int = 100
    patience: int = 10
    validation_size: float | int | None = 0.2

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.validation_size is None and self.patience != 10:
            raise ValueError(
                f"patience is {self.patience!r}, but without validation problems there "
                "is nothing to wait for: set validation_size, or leave patience at 10"
            )

    def n_validation(self, n: int) -> int:
        """Say how many of n training problems choose the best epoch.

        Parameters
        ----------
        n : int
            Number of training problems.

        Returns
        -------
        int
            How many problems are held out.
        """
        if self.validation_size is None:
            return 0
        return holdout_count("validation_size", self.validation_size, n)

    def minimize(
        self, fun: Callable[..., Any], x: NDArray[Any], callback: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Minimise a function of flat parameters; see `LBFGS.minimize`.

        Parameters
        ----------
        fun : callable
            ``fun(x) -> (value, gradient)``.
        x : ndarray of shape (n_params,)
            Where to start.
        callback : callable
            ``callback(iteration, x, value)``; True ends the run.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters at which value and gradient were finite.
        finite : bool
            Whether they were so to the end.
        """
        mean = np.zeros_like(x)
        square = np.zeros_like(x)
        last = x
        for iteration in range(self.max_iter):
            value, gradient = fun(x)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return last, False
            last = x
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            unbiased = mean / (1 - 0.9 ** (iteration + 1))
            scale = np.sqrt(square / (1 - 0.999 ** (iteration + 1))) + 1e-8
            x = x - self.learning_rate * unbiased / scale
            if callback(iteration, x, float(value)):
                break
        return x, True


@settings
class SoftTraining(Settings):
    """Train a differentiable model through soft calibration and prediction.

    Parameters
    ----------
    optimizer : LBFGS, Adam or None, default=None
        None is ``LBFGS()``.
    loss : {"log-retention", "retention"}, default="log-retention"
        What is minimised: minus the logarithm of the soft retention, or minus it.
    init : {"hazard", "coherent", "random"}, array or None, default=None
        Where training starts. "hazard" is logistic regression of "this claim is true" on the
        claims whose ancestors are all true, "coherent" that of "this claim and all its
        ancestors are true", "random" the model's own start, and an array the weights of a
        linear model for features in unit deviation. None is "hazard".
    shrinkage : float or None, default=None
        Pull towards the start: the objective has the term ``shrinkage / (alpha n)^2 (1 -
        corr)``, where corr is the correlation of the scores with those at the start and n
        the number of training problems. None is 1,000, and 0 with a random start, which
        needs 0.
    gain : float in [0, 1], {"claims", "answers"}, callable or None, default=None
        What the true claims that are kept of an answer are worth: the loss has their mean
        worth in place of their mean number. A power x is (soft number + .001)^x, "answers"
        or 0 the logarithm of one more than the number; a function is written in
        ``autograd.numpy``. None is 1, their number.
    unit_variance : bool, default=True
        Whether scores are scaled to unit deviation before they are relaxed.

    Notes
    -----
    The default scorer has its own values in place of those of ``None``, and its own start
    and gain: see `~skdcf.scorers.StackingScorer`.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.training import Adam, SoftTraining
    >>> cf = CoherentConformalFilter("linear", training=SoftTraining(Adam()))
    >>> cf.set_params(training__optimizer__learning_rate=0.01).training
    SoftTraining(optimizer=Adam(learning_rate=0.01))
    """

    _values = {"optimizer": ("skdcf.training", "LBFGS", "Adam")}
    _parameter_constraints = {
        "optimizer": [None, HasMethods(["minimize", "validate", "n_validation"])],
        "loss": [allowed.StrOptions({"log-retention", "retention"})],
        "init": [
            None,
            allowed.StrOptions({"hazard", "coherent", "random"}),
            np.ndarray,
        ],
        "shrinkage": [None, allowed.at_least(0)],
        "gain": [None, Real, str, callable],
        "unit_variance": ["boolean"],
    }

    optimizer: LBFGS | Adam | None = None
    _: KW_ONLY
    loss: Literal["log-retention", "retention"] = "log-retention"
    init: Literal["hazard", "coherent", "random"] | NDArray[Any] | None = None
    shrinkage: float | None = None
    gain: Gain | None = None
    unit_variance: bool = True

    @classmethod
    def from_paper(cls) -> Self:
        """Make the training of arXiv:2604.20098: Adam from a random start, nothing else.

        Returns
        -------
        SoftTraining
        """
        plain: dict[str, Any] = {"loss": "retention", "init": "random"}
        return cls(Adam(), **plain, shrinkage=0.0, unit_variance=False)

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.optimizer is not None:
            self.optimizer.validate()
        if self.gain is not None:
            check_gain(self.gain)
        if self.starts_at_random and self.shrinkage:
            raise ValueError(
                f"shrinkage is {self.shrinkage!r}, but it pulls towards the start, and this "
                'one is random: set shrinkage=0, or init="hazard"'
            )

    @property
    def starts_at_random(self) -> bool:
        """Whether the model draws the parameters to start from."""
        return isinstance(self.init, str) and self.init == "random"

    def resolved(
        self,
        init: Any = "hazard",
        shrinkage: float = 1000.0,
        gain: Gain = 1.0,
    ) -> Self:
        """Return a copy with values in place of those that are None.

        Parameters
        ----------
        init, shrinkage, gain : object
            The values for this scorer.

        Returns
        -------
        SoftTraining
            With a value for each of these and an optimizer.
        """
        shrinkage = 0.0 if self.starts_at_random else shrinkage
        return replace(
            self,
            optimizer=self.optimizer or LBFGS(),
            init=init if self.init is None else self.init,
            shrinkage=shrinkage if self.shrinkage is None else self.shrinkage,
            gain=gain if self.gain is None else self.gain,
        )


class _NotFiniteError(Exception):
    pass


def lbfgs(fun, x, max_iter, callback, tolerance=1e-6):
    """Minimise by L-BFGS; ``tolerance`` bounds the largest entry of the gradient.

    Its line search asks for curvature (Wolfe), which a loss that is smooth in pieces does not
    have everywhere. One that asks for decrease alone (Armijo) was tried instead: it saved
    one evaluation in ten at best, and GridRelaxation kept fewer claims on small problems.

    Parameters
    ----------
    fun : callable
        From flat parameters to value and gradient.
    x : ndarray of shape (n,)
        Parameters to start from.
    max_iter : int
    callback : callable
        ``callback(iteration, x, value)``, called after each one; True ends the run.
    tolerance : float

    Returns
    -------
    x : ndarray of shape (n,)
    finite : bool
    """
    last = x
    iteration = 0

    def checked(point):
        value, gradient = fun(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise _NotFiniteError
        return value, gradient

    def report(intermediate_result):
        nonlocal last, iteration
        last = intermediate_result.x.copy()
        if callback(iteration, last, float(intermediate_result.fun)):
            raise StopIteration
        iteration += 1

    options = {"maxiter": max_iter, "gtol": tolerance, "ftol": 1e-10}
    how = {"method": "L-BFGS-B", "callback": report, "options": options}
    try:
        minimize(checked, x, jac=True, **how)
    except _NotFiniteError:
        return last, False
    return last, True
