"""Differentiable models, and the scorer that trains such a model through soft calibration.

A differentiable model implements two methods. ``init(n_features, rng)`` returns the initial
parameters, either as arrays or as nested lists, tuples and dicts of arrays. ``model(params, X)``
computes confidences from the rows of standardised features in ``X``. A model must be stateless,
and must use only operators and functions from ``autograd.numpy``, so autograd can
differentiate the model. A model does not need an intercept, because adding a constant to all
confidences has no effect. `ConfTrScorer` turns a model into a scorer.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import warn
from .._parameters import HasMethods, Number, Settings, at_least, settings
from ..graphs import GraphBatch
from ._scorer import FitTask, LinearForm, Scorer, need_features

if TYPE_CHECKING:
    from ..training.loop import Model

# Weights and biases of each layer.
Layers: TypeAlias = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


@settings
class LinearModel(Settings):
    """Linear model that computes a weighted sum of the standardised features.

    To use this model as a scorer, pass it to `ConfTrScorer`, as in
    ``ConfTrScorer(LinearModel())``.

    Parameters
    ----------
    spread : float, default=1.0
        Range of the initial weights. The weights are drawn uniformly between minus and plus
        ``spread`` divided by the square root of the number of weights. If ``spread`` is 0, all
        weights start at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import LinearModel
    >>> LinearModel()(np.array([0.5, -1.0]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([ 0., -1.])
    """

    _parameter_constraints = {"spread": [at_least(0)]}

    spread: float = 1.0

    def init(
        self, n_features: int, rng: np.random.RandomState | np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw random weights.

        Parameters
        ----------
        n_features : int
            Number of features.
        rng : RandomState or Generator
            Random number generator.

        Returns
        -------
        params : ndarray of shape (n_features,)
            The initial parameters.
        """
        self.validate()
        bound = self.spread * max(n_features, 1) ** -0.5
        return rng.uniform(-bound, bound, n_features)

    def __call__(
        self, params: NDArray[np.float64], X: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute confidences of shape (n_claims,) for X of shape (n_claims, n_features)."""
        return X @ params


@settings
class MLPModel(Settings):
    """Multi-layer perceptron with tanh units.

    To use this model as a scorer, pass it to `ConfTrScorer`, as in ``ConfTrScorer(MLPModel())``.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(8,)
        Number of units in each hidden layer. The default is small because training sets are
        typically small.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import MLPModel
    >>> model = MLPModel((4, 2))
    >>> params = model.init(3, np.random.RandomState(0))
    >>> [(w.shape, b.shape) for w, b in params]
    [((3, 4), (4,)), ((4, 2), (2,)), ((2, 1), (1,))]
    >>> model(params, np.zeros((5, 3))).shape
    (5,)
    """

    hidden_layer_sizes: int | tuple[int, ...] = (8,)

    def init(
        self, n_features: int, rng: np.random.RandomState | np.random.Generator
    ) -> Layers:
        """Draw random weights and biases.

        Parameters
        ----------
        n_features : int
            Number of features.
        rng : RandomState or Generator
            Random number generator.

        Returns
        -------
        params : list of (weights, biases)
            The initial parameters, with one pair per layer.

        Raises
        ------
        ValueError
            If the number of units in any layer is not a positive integer.
        """
        sizes = self.hidden_layer_sizes
        # An int is an Integral, but type checkers do not recognise this relation.
        hidden = (sizes,) if isinstance(sizes, (int, Integral)) else sizes
        is_sequence = isinstance(hidden, (tuple, list, np.ndarray))
        if not is_sequence or not all(
            isinstance(n, Integral) and n > 0 for n in hidden
        ):
            raise ValueError(
                "hidden_layer_sizes must contain one or more positive integers, got "
                f"{self.hidden_layer_sizes!r}"
            )
        params = []
        n_in = n_features
        for n_out in (*hidden, 1):
            bound = max(n_in, 1) ** -0.5
            weights = rng.uniform(-bound, bound, (n_in, n_out))
            params.append((weights, rng.uniform(-bound, bound, n_out)))
            n_in = n_out
        return params

    def __call__(self, params: Layers, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute confidences of shape (n_claims,) for X of shape (n_claims, n_features)."""
        *hidden, (last_weights, last_bias) = params
        for weights, bias in hidden:
            X = _tanh(X @ weights + bias)
        return (X @ last_weights + last_bias)[:, 0]


def _tanh(x):
    """Compute the hyperbolic tangent, importing autograd only during training."""
    if isinstance(x, np.ndarray):
        return np.tanh(x)
    import autograd.numpy as anp

    return anp.tanh(x)


@settings
class ConfTrScorer(Scorer):
    """Scorer that trains a differentiable model through soft calibration.

    Parameters
    ----------
    model : differentiable model or None, default=None
        The differentiable model, such as `MLPModel`. If None, `LinearModel` is used.
    clip : float, default=3.0
        Maximum absolute value of standardised features, to which larger values are clipped.

    Attributes
    ----------
    model_ : differentiable model
        A copy of ``model``, so later changes to ``model`` do not affect the scorer.
    params_ : object
        The trained parameters, which apply to standardised features.
    standardizer_ : Standardizer
        Mean and scale of the features in the training problems.
    scale_ : float
        Standard deviation of the model output on the training claims, excluding the validation
        problems. Confidences are divided by the standard deviation. The scale is 1 if the output
        is not standardised during training.
    loss_curve_ : list of float
        Training objective per iteration.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ConfTrScorer, MLPModel
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(ConfTrScorer(MLPModel((4,))), random_state=0).fit(graphs, y)
    >>> cf.scorer_.loss_curve_[-1] < cf.scorer_.loss_curve_[0]
    True
    """

    _parameter_constraints = {
        "model": [None, HasMethods(["init", "__call__"])],
        "clip": [Number(Real, 0, None, closed="right")],
    }
    requires_fit = uses_alpha = uses_relaxation = True

    model: Model | None = None
    _: KW_ONLY
    clip: float = 3.0

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        """Train the model for the level ``task.alpha``.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown).
        task : FitTask, optional
            Settings for fitting, passed by the filter.

        Returns
        -------
        self : object
            The fitted scorer.

        Warns
        -----
        ConvergenceWarning
            If no parameters could be fitted, or if training stopped early.
        """
        results = self._train(batch, labels, tasks=[task or FitTask()])
        return self._adopt(results[0])

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[FitTask]
    ) -> list:
        # All settings except alpha, including the random state, are taken from the first
        # task.
        results = self._train(batch, labels, tasks)
        return [clone(self)._adopt(training_result) for training_result in results]

    def _train(self, batch, labels, tasks):
        # autograd is imported here, because only training needs it.
        from ..relaxation import PathRelaxation
        from ..training import SoftTraining
        from ..training.loop import train

        need_features(batch)
        first = tasks[0]
        return train(
            model=self._fresh_model(),
            relaxation=first.relaxation or PathRelaxation(),
            training=first.training or SoftTraining(),
            batch=batch,
            labels=labels,
            alphas=[task.alpha for task in tasks],
            groups=first.groups,
            rng=first.rng,
            n_jobs=first.n_jobs,
            verbose=first.verbose,
            clip=self.clip,
        )

    def _fresh_model(self):
        return LinearModel() if self.model is None else clone(self.model, safe=False)

    def _adopt(self, result):
        # `train` updates the same copy of the model for all levels, so each scorer needs a
        # separate copy.
        self.model_ = self._fresh_model()
        self.params_ = result.params
        self.scale_ = result.scale
        self.standardizer_ = result.standardizer
        self.loss_curve_ = list(result.loss_curve)
        if result.message:
            warn(result.message, ConvergenceWarning)
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients of a linear model for the original features."""
        # A subclass may interpret the parameters differently.
        if type(self.model_) is not LinearModel:
            raise AttributeError("coef_ is only available for a LinearModel")
        return self.params_ / self.standardizer_.scale / self.scale_

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        if type(self.model_) is not LinearModel:
            return None
        weights = self.coef_
        # A constant column has infinite scale and bounds, and its weight is 0.
        mean = self.standardizer_.mean
        reach = self.standardizer_.clip * self.standardizer_.scale
        return LinearForm(
            weights=weights,
            offset=-float(weights @ mean),
            low=mean - reach,
            high=mean + reach,
        )

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        X = self.standardizer_(batch.features)
        return np.asarray(self.model_(self.params_, X)) / self.scale_
