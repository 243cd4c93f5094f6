"""Optimizers and settings for training differentiable models.

The optimizers L-BFGS and Adam minimise ``fun(x) -> (value, gradient)``, where x contains the flat
parameters. After each iteration, the optimizers call ``callback(iteration, x, value)`` and stop
if it returns True. The optimizers return the last parameters with finite values, and whether all
values were finite.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize

from .._parameters import (
    HasMethods,
    Settings,
    StrOptions,
    at_least,
    fraction,
    positive,
    settings,
)
from ..ops.hard import Array
from .splitting import holdout_count


@settings
class LBFGS(Settings):
    """L-BFGS optimizer, which uses all training problems in each iteration.

    Parameters
    ----------
    max_iter : int, default=30
        Maximum number of iterations.

    Examples
    --------
    >>> from skdcf.training import LBFGS, SoftTraining
    >>> SoftTraining(LBFGS(max_iter=50))
    SoftTraining(optimizer=LBFGS(max_iter=50))
    """

    _parameter_constraints = {"max_iter": [positive(Integral)]}
    halves = False  # All problems are used for calibration and for prediction.
    tolerance = 1e-6  # largest gradient entry at which the optimization stops

    max_iter: int = 30

    def n_validation(self, n: int) -> int:
        """Return 0, because L-BFGS does not use validation problems to choose an iteration.

        Parameters
        ----------
        n : int
            Number of training problems.

        Returns
        -------
        n_validation : int
            The number of validation problems to hold out.
        """
        return 0

    def minimize(
        self, fun: Callable[..., Any], x: Array, callback: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Minimise a function of flat parameters.

        Parameters
        ----------
        fun : callable
            Function to minimise, ``fun(x) -> (value, gradient)``.
        x : ndarray of shape (n_params,)
            The initial parameters.
        callback : callable
            Function called as ``callback(iteration, x, value)`` after each iteration. The
            optimization stops if the callback returns True.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters for which the value and the gradient were finite.
        finite : bool
            Whether the value and the gradient were finite in all iterations.
        """
        # The line search uses the Wolfe conditions, which a piecewise smooth loss does not always
        # satisfy. A line search based only on the Armijo condition saved few evaluations.
        steps = [x]

        def checked(point):
            value, gradient = fun(point)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                raise FloatingPointError
            return value, gradient

        def report(intermediate_result):
            steps.append(intermediate_result.x.copy())
            if callback(len(steps) - 2, steps[-1], float(intermediate_result.fun)):
                raise StopIteration

        try:
            minimize(
                checked,
                x,
                jac=True,
                method="L-BFGS-B",
                callback=report,
                options={
                    "maxiter": self.max_iter,
                    "gtol": self.tolerance,
                    "ftol": 1e-10,
                },
            )
        except FloatingPointError:
            return steps[-1], False
        return steps[-1], True


@settings
class Adam(Settings):
    """Adam optimizer, which calibrates on a random half of the problems in each epoch.

    As in the published procedure, the calibrated threshold is applied to the claims of the other
    half of the problems.

    Parameters
    ----------
    learning_rate : float, default=0.015
        Approximate step size of each parameter in the first iterations.
    max_iter : int, default=100
        Maximum number of epochs.
    patience : int, default=10
        Training stops if the retention on the validation problems does not increase for this
        number of epochs.
    validation_size : float, int or None, default=0.2
        Proportion or number of training questions used to choose the best epoch. If None, the
        last epoch is used, and ``patience`` must have its default value.

    Examples
    --------
    >>> from skdcf.training import Adam, SoftTraining
    >>> SoftTraining(Adam(learning_rate=0.01, patience=20))
    SoftTraining(optimizer=Adam(learning_rate=0.01, patience=20))
    """

    _parameter_constraints = {
        "learning_rate": [positive()],
        "max_iter": [positive(Integral)],
        "patience": [positive(Integral)],
        "validation_size": [None, fraction(), positive(Integral)],
    }
    halves = True

    learning_rate: float = 0.015
    max_iter: int = 100
    patience: int = 10
    validation_size: float | int | None = 0.2

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or would have no effect."""
        super().validate()
        if self.validation_size is None and self.patience != 10:
            raise ValueError(
                "patience has no effect without validation problems, got "
                f"{self.patience!r}. Set validation_size, or leave patience at 10"
            )

    def n_validation(self, n: int) -> int:
        """Return the number of training problems used to choose the best epoch.

        Parameters
        ----------
        n : int
            Number of training problems.

        Returns
        -------
        n_validation : int
            The number of validation problems to hold out.
        """
        if self.validation_size is None:
            return 0
        return holdout_count("validation_size", self.validation_size, n)

    def minimize(
        self, fun: Callable[..., Any], x: Array, callback: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Minimise a function of flat parameters, as in `LBFGS.minimize`.

        Parameters
        ----------
        fun : callable
            Function to minimise, ``fun(x) -> (value, gradient)``.
        x : ndarray of shape (n_params,)
            The initial parameters.
        callback : callable
            Function called as ``callback(iteration, x, value)`` after each epoch. The
            optimization stops if the callback returns True.

        Returns
        -------
        x : ndarray of shape (n_params,)
            The last parameters for which the value and the gradient were finite.
        finite : bool
            Whether the value and the gradient were finite in all epochs.
        """
        mean = square = np.zeros_like(x)
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
    """Settings for training a differentiable model through soft calibration and prediction.

    Parameters
    ----------
    optimizer : LBFGS, Adam or None, default=None
        The optimizer. If None, ``LBFGS()`` is used.
    loss : {"log-retention", "retention"}, default="log-retention"
        Loss to minimise, which is the negative logarithm of the soft retention or the negative
        soft retention.
    init : {"hazard", "coherent", "random"}, default="hazard"
        The initial parameters. With "hazard", a logistic regression is fitted to predict whether
        a claim is true, using only claims whose ancestors are all true. With "coherent", a
        logistic regression is fitted to predict whether a claim and all its ancestors are true.
        With "random", the model draws its own initial parameters.
    shrinkage : float or None, default=None
        Strength of the shrinkage towards the initial scores. The term ``shrinkage / (alpha n)^2
        (1 - corr)`` is added to the objective. Here, corr is the correlation between the scores
        and the initial scores, and n is the number of training questions. If None, the
        shrinkage is 10,000 with a price, and 1,000 without. If ``init="random"``, the shrinkage
        must be 0, and None is equivalent to 0.
    unit_variance : bool, default=True
        Whether to scale the scores to unit standard deviation before the relaxation is applied.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.training import Adam, SoftTraining
    >>> cf = CoherentConformalFilter("linear", training=SoftTraining(Adam()))
    >>> cf.set_params(training__optimizer__learning_rate=0.01).training
    SoftTraining(optimizer=Adam(learning_rate=0.01))
    """

    _parameter_constraints = {
        "optimizer": [None, HasMethods(["minimize", "validate", "n_validation"])],
        "loss": [StrOptions({"log-retention", "retention"})],
        "init": [StrOptions({"hazard", "coherent", "random"})],
        "shrinkage": [None, at_least(0)],
        "unit_variance": ["boolean"],
    }

    optimizer: LBFGS | Adam | None = None
    _: KW_ONLY
    loss: Literal["log-retention", "retention"] = "log-retention"
    init: Literal["hazard", "coherent", "random"] = "hazard"
    shrinkage: float | None = None
    unit_variance: bool = True

    @classmethod
    def from_paper(cls) -> Self:
        """Return the training settings of arXiv:2604.20098, with Adam and random initialization.

        Returns
        -------
        settings : SoftTraining
            The published settings.

        Notes
        -----
        The paper does not specify the calibration problems. A filter holds them out before
        training, and takes the problems for early stopping from the training problems.
        """
        return cls(
            Adam(), loss="retention", init="random", shrinkage=0.0, unit_variance=False
        )

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or would have no effect."""
        super().validate()
        if self.optimizer is not None:
            self.optimizer.validate()
        if self.init == "random" and self.shrinkage:
            raise ValueError(
                "shrinkage must be 0 if the initial parameters are random, got "
                f'{self.shrinkage!r}. Set shrinkage=0, or init="hazard"'
            )

    def resolved(self, gain: float | None) -> Any:
        """Return a copy of the settings in which None is replaced with the default values.

        Parameters
        ----------
        gain : float or None
            The gain of the scorer, on which the default shrinkage depends.

        Returns
        -------
        copy : SoftTraining
            The copy. The optimizer of the copy is never None.
        """
        shrinkage = self.shrinkage
        if shrinkage is None:
            # On published data sets, a priced model with a weaker shrinkage shows fewer answers.
            # With many training problems, 1,000 keeps more claims.
            shrinkage = 1e3 if gain is None else 1e4
            if self.init == "random":
                shrinkage = 0.0
        return replace(self, optimizer=self.optimizer or LBFGS(), shrinkage=shrinkage)
