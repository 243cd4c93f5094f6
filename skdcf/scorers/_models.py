"""Differentiable models, and the scorer that trains such a model through soft calibration.

A differentiable model implements two methods. ``init(n_features, rng)`` returns the initial
parameters, either as arrays or as nested lists, tuples and dicts of arrays. ``model(params, X)``
computes confidences from the rows of standardised features in ``X``. A model must be stateless,
and must use only operators and functions from ``autograd.numpy``, so autograd can
differentiate the model. A model does not need an intercept, because `ConfTrScorer`, which turns a
model into a scorer, trains one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import Floats, is_integer, warn
from .._parameters import HasMethods, Number, Settings, at_least, settings
from ..graphs import GraphBatch
from ._scorer import FitTask, LinearTerms, PricedScorer, need_features

if TYPE_CHECKING:
    from ..training.loop import Model

# Weights and biases of each layer.
Layers: TypeAlias = list[tuple[Floats, Floats]]


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
    ) -> Floats:
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

    def __call__(self, params: Floats, X: Floats) -> Floats:
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
        hidden = np.atleast_1d(self.hidden_layer_sizes).tolist()
        if not all(is_integer(n_units) and n_units > 0 for n_units in hidden):
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

    def __call__(self, params: Layers, X: Floats) -> Floats:
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
class ConfTrScorer(PricedScorer):
    """Scorer that trains a differentiable model through soft calibration.

    The output of the model is the log odds that a claim is true if all its ancestors are. The
    confidence is minus the log of the price: the risk of keeping the claim, relative to the value
    of keeping it. All weights are trained through the price, the path risk, soft calibration and
    soft prediction. On published data sets, this training changes little compared with the
    logistic regression from which it starts. If there are more than about 1,000 training problems,
    or if the shrinkage is weak, it keeps more claims, sometimes in fewer answers.

    Parameters
    ----------
    model : differentiable model or None, default=None
        The differentiable model, such as `MLPModel`. If None, `LinearModel` is used.
    gain : float or None, default=0.5
        Exponent of the value of keeping k claims of an answer, ``k ** gain``, which is between
        0.01 and 1. If it is 0, the value is ``log(1 + k)``. With 1, the number of kept claims is
        maximised, but many answers are left empty, because the risk is spent on the safest
        answers. Smaller exponents leave fewer answers empty. If None, the output of the model is
        the confidence, as in the paper.
    clip : float, default=3.0
        Maximum absolute value of standardised columns, to which larger values are clipped.

    Attributes
    ----------
    model_ : differentiable model
        A copy of ``model``, so later changes to ``model`` do not affect the scorer.
    params_ : object
        The trained parameters, which apply to standardised columns.
    intercept_ : float
        The trained intercept of the log odds that a claim is false.
    columns_ : Columns
        Standardisation of the columns on the training problems. With a gain, the means of the
        features over the problem and its log number of claims are columns too, unless no problem
        has two claims.
    weight_below_errors_ : float
        Weight of a true claim below a false one in the price, estimated from the training labels.
    scale_ : float
        Standard deviation of the model output on the training claims, by which the confidences are
        divided. The scale is 1 with a gain, or if the output is not standardised during training.
    loss_curve_ : list of float
        Training objective per iteration. The list is empty if no step lowers the objective, in
        which case the scorer is the logistic regression at which training starts. This can happen
        because the objective jumps if the order of two prices changes.

    Notes
    -----
    Claims whose summed hazards agree to 9 decimals have the same price, so the price does not
    depend on the order in which claims are stored. Training uses unrounded numbers. If an answer
    contains exactly equal claims, the trained weights depend on their order.

    With a gain, the confidence never increases along the edges, so the path risk of a claim equals
    its risk.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    J. Neyman, E. S. Pearson. On the problem of the most efficient tests of statistical
    hypotheses. Philosophical Transactions of the Royal Society A 231, 1933.

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

    _parameter_constraints = PricedScorer._parameter_constraints | {
        "model": [None, HasMethods(["init", "__call__"])],
        "clip": [Number(Real, 0, None, closed="right")],
    }
    requires_fit = uses_alpha = uses_relaxation = True

    model: Model | None = None
    _: KW_ONLY
    clip: float = 3.0

    def fit(
        self, batch: GraphBatch, labels: np.ndarray, task: FitTask | None = None
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
        # autograd is imported here, because only training needs it.
        from ..relaxation import PathRelaxation
        from ..training import SoftTraining
        from ..training.loop import train

        self.validate()
        need_features(batch)
        task = task or FitTask()
        model = LinearModel() if self.model is None else clone(self.model, safe=False)
        result = train(
            model=model,
            relaxation=task.relaxation or PathRelaxation(),
            training=task.training or SoftTraining(),
            batch=batch,
            labels=labels,
            alpha=task.alpha,
            groups=task.groups,
            rng=task.rng,
            verbose=task.verbose,
            clip=self.clip,
            gain=self.gain,
        )
        self.model_ = model
        self.params_: Any = result.params
        self.intercept_ = result.intercept
        self.columns_ = result.columns
        self.weight_below_errors_ = result.q
        self.scale_ = result.scale
        self.loss_curve_ = result.loss_curve
        if result.message:
            warn(result.message, ConvergenceWarning)
        return self

    @property
    def _is_linear(self):
        # A subclass may interpret the parameters differently.
        return type(self.model_) is LinearModel

    @property
    def coef_(self) -> Floats:
        """Coefficients of a linear model for the original columns.

        The names of the columns are returned by `get_feature_names_out`.
        """
        if not self._is_linear:
            raise AttributeError("coef_ is only available for a LinearModel")
        return self.params_ / self.columns_.scale / self.scale_

    def get_feature_names_out(self, input_features: Any) -> NDArray[Any]:
        """Return the names of the columns that the model uses.

        Parameters
        ----------
        input_features : array-like of str
            The names of the columns of the problems.

        Returns
        -------
        feature_names_out : ndarray of str of shape (n_columns,)
            The names, and those of the columns of whole problems if the model uses them.
        """
        names = [*input_features]
        if len(self.columns_.mean) > len(names):
            names += [*(f"mean {name}" for name in names), "log n_claims"]
        return np.array(names, object)

    def hazard(self, batch: GraphBatch) -> Floats:
        """Compute the log odds that each claim is false given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            The log odds of each claim.

        Raises
        ------
        ValueError
            If the model returns a value that is not finite.
        """
        return self.intercept_ - self._logits(batch)

    def _score(self, batch):
        return self._logits(batch) / self.scale_

    def _logits(self, batch):
        """Compute the output of the model, which must be finite."""
        if self._is_linear:
            # In contrast to a matrix product, a row-wise sum does not depend on the other rows.
            blocks = self.columns_.blocks(batch)
            return np.concatenate([(X * self.params_).sum(axis=1) for X in blocks])
        scores = np.asarray(self.model_(self.params_, self.columns_(batch)))
        if not np.isfinite(scores).all():
            claim = np.argmin(np.isfinite(scores))
            raise ValueError(
                f"{self.model_!r} must return finite confidences, but it returned "
                f"{scores[claim]} for {batch.locate(claim)}"
            )
        return scores

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        if not self._is_linear:
            return None
        names = tuple(self.get_feature_names_out(batch.column_names))
        mean = self.columns_.mean
        # A constant column has infinite bounds, and its weight is 0.
        reach = self.columns_.bound * self.columns_.scale
        raw = self.columns_.raw(batch.features, batch.sizes)
        return names, self.coef_, np.clip(raw, mean - reach, mean + reach)
