"""Settings for the training of differentiable models, and the optimizers.

L-BFGS and Adam take ``fun(x) -> (value, gradient)`` of flat parameters, and call
``callback(iteration, x, value)`` after each iteration, which can stop the run by returning
True. Both return the last parameters with finite values, and whether all values were finite.
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
    """Minimise by L-BFGS, with all training problems together.

    Parameters
    ----------
    max_iter : int, default=30
        Largest number of iterations.

    Examples
    --------
    >>> from skdcf.training import LBFGS, SoftTraining
    >>> SoftTraining(LBFGS(max_iter=50))
    SoftTraining(optimizer=LBFGS(max_iter=50))
    """

    _parameter_constraints = {"max_iter": [allowed.COUNT]}
    halves = False  # All problems are used for calibration and for prediction.

    max_iter: int = 30

    def n_validation(self, n: int) -> int:
        """Return the number of validation problems that choose the best iteration: 0.

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
            The initial parameters.
        callback : callable
            ``callback(iteration, x, value)`` is called after each iteration, and ends the
            run by returning True.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters at which value and gradient were finite.
        finite : bool
            Whether they were finite in all iterations.
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
        """Raise ValueError if a parameter is not valid or would have no effect."""
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
            The initial parameters.
        callback : callable
            ``callback(iteration, x, value)``; True ends the run.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters at which value and gradient were finite.
        finite : bool
            Whether they were finite in all iterations.
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
        The optimizer. None means ``LBFGS()``.
    loss : {"log-retention", "retention"}, default="log-retention"
        The loss: minus the logarithm of the soft retention, or minus the soft retention.
    init : {"hazard", "coherent", "random"}, array or None, default=None
        The initial parameters. "hazard" is a logistic regression of "this claim is true" on
        the claims whose ancestors are all true. "coherent" is one of "this claim and all its
        ancestors are true". "random" uses the initial parameters of the model. An array holds
        the weights of a linear model for standardised features. None means "hazard".
    shrinkage : float or None, default=None
        Shrinkage towards the initial scores: the objective has the term ``shrinkage / (alpha
        n)^2 (1 - corr)``, where corr is the correlation of the scores with the initial ones,
        and n the number of training problems. None means 1,000, or 0 with ``init="random"``,
        which needs 0.
    gain : float in [0, 1], {"claims", "answers"}, callable or None, default=None
        The value of the kept true claims of an answer, whose mean enters the loss. A power x
        means (soft number + .001)^x, and 0 or "answers" means log(1 + soft number). Write a
        function in ``autograd.numpy``. None means 1, the number.
    unit_variance : bool, default=True
        Whether scores are scaled to unit standard deviation before the relaxation.

    Notes
    -----
    The default scorer replaces None by its own values, and sets the initial weights and the
    gain itself: see `~skdcf.scorers.StackingScorer`.

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
        """Return the training of arXiv:2604.20098: Adam from random parameters.

        Returns
        -------
        SoftTraining
        """
        plain: dict[str, Any] = {"loss": "retention", "init": "random"}
        return cls(Adam(), **plain, shrinkage=0.0, unit_variance=False)

    def validate(self) -> None:
        """Raise ValueError if a parameter is not valid or would have no effect."""
        super().validate()
        if self.optimizer is not None:
            self.optimizer.validate()
        if self.gain is not None:
            check_gain(self.gain)
        if self.starts_at_random and self.shrinkage:
            raise ValueError(
                f"shrinkage is {self.shrinkage!r}, but the initial parameters are random: set "
                'shrinkage=0, or init="hazard"'
            )

    @property
    def starts_at_random(self) -> bool:
        """Whether the model draws the initial parameters."""
        return isinstance(self.init, str) and self.init == "random"

    def resolved(
        self,
        init: Any = "hazard",
        shrinkage: float = 1000.0,
        gain: Gain = 1.0,
    ) -> Self:
        """Return a copy in which values replace None.

        Parameters
        ----------
        init, shrinkage, gain : object
            The values for this scorer.

        Returns
        -------
        SoftTraining
            The copy, with an optimizer.
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

    Its line search uses the Wolfe conditions, which a piecewise smooth loss does not always
    satisfy. A line search with the Armijo condition alone was tried. It saved at most one
    evaluation in ten, and GridRelaxation kept fewer claims on small problems.

    Parameters
    ----------
    fun : callable
        It returns value and gradient for flat parameters.
    x : ndarray of shape (n,)
        The initial parameters.
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
