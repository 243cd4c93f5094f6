"""Scorers, which compute the confidence in each claim.

Every filter accepts any scorer that inherits from the base class `Scorer`. To use a
differentiable model such as `LinearModel` as a scorer, pass it to `ConfTrScorer`.

A differentiable model implements two methods. ``init(n_features, rng)`` returns the initial
parameters, either as arrays or as nested lists, tuples and dicts of arrays. ``model(params, X)``
computes confidences from the rows of standardised features in ``X``. A model must be stateless,
and must use only operators and functions from ``autograd.numpy``, so autograd can
differentiate the model. A model does not need an intercept, because `ConfTrScorer`, which turns a
model into a scorer, trains one.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from ._arrays import offsets_of, segment_ids
from ._checks import Floats, is_integer, warn
from ._jobs import run_jobs
from ._parameters import (
    HasMethods,
    Number,
    Options,
    Settings,
    StrOptions,
    settings,
)
from .exceptions import GuaranteeWarning
from .graphs import GraphBatch
from .ops.hard import targets_of
from .ops.price import exact_log_price
from .training import splitting

__all__ = [
    "ClassifierScorer",
    "ConfTrScorer",
    "FeatureScorer",
    "FitTask",
    "FrequencyScorer",
    "LinearModel",
    "MLPModel",
    "Scorer",
]


LinearTerms: TypeAlias = tuple[tuple[str, ...], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class FitTask:
    """Settings that a filter passes to its scorer for fitting.

    Parameters
    ----------
    alpha : float, default=0.1
        Level for which the filter is fitted.
    groups : ndarray of shape (n_problems,), optional
        Group of each problem, such as its question. Problems from the same group are kept
        together in every split.
    rng : RandomState, optional
        Random number generator, which is used unless the scorer has its own seed.
    relaxation : PathRelaxation or GridRelaxation, optional
        The relaxation of calibration and prediction used in training. If None, the default of the
        scorer is used.
    training : SoftTraining, optional
        Settings of the training. If None, the defaults of the scorer are used.
    n_jobs : int, optional
        Number of folds and levels to fit in parallel, as in scikit-learn.
    verbose : int, default=0
        Whether to show progress bars.
    """

    alpha: float = 0.1
    groups: np.ndarray | None = None
    rng: np.random.RandomState = field(default_factory=np.random.RandomState)
    relaxation: Any = None
    training: Any = None
    n_jobs: int | None = None
    verbose: int = 0


class Scorer(Settings, ABC):
    """Base class for scorers, which compute the confidence in each claim.

    Claims with higher confidence are safer. A subclass must implement `confidence`, and also
    `fit` if it requires training. Scorers are scikit-learn estimators, so ``__init__`` must only
    store parameters, and the names of fitted attributes must end with an underscore.

    Attributes
    ----------
    requires_fit : bool or None
        Whether `fit` uses the problems to train the scorer. If True, calibration problems are not
        passed to `fit`. If False and the columns need no fitting either, `fit` receives all
        problems, with all labels set to unknown. None is equivalent to True for classes that
        define `fit`, because a `fit` that ignores labels can still depend on the problems. A
        subclass that overrides `fit` must set ``requires_fit`` again.
    batch_invariant : bool
        Whether the confidence in a claim is bitwise equal in every batch, as for a feature
        column. If True, rounding errors are not measured.
    uses_alpha : bool
        Whether the fitted scorer depends on alpha.
    uses_relaxation : bool
        Whether `fit` uses ``task.relaxation`` and ``task.training``. Filters reject the settings
        ``relaxation`` and ``training`` if the scorer does not use them.
    resolution : float
        Largest difference between the confidences in a claim that is scored in two different
        batches, relative to ``1 + abs(confidence)``. Filters also measure this difference, and
        lower their threshold by slightly more than the larger of the two values.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import Scorer
    >>> class LateClaims(Scorer):
    ...     def confidence(self, batch):
    ...         return batch.depth
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(LateClaims(), alpha=0.2).fit(graphs, y).n_calibration_
    199
    """

    requires_fit: bool | None = None
    batch_invariant = False
    uses_alpha = False
    uses_relaxation = False
    resolution = 1e-10

    def columns_read(self) -> tuple[str, ...] | None:
        """Return the names of the feature columns that `confidence` reads.

        Returns
        -------
        names : tuple of str or None
            Column names. If None, all columns are read by position.
        """
        return None

    def fit(
        self, batch: GraphBatch, labels: np.ndarray, task: FitTask | None = None
    ) -> Self:
        """Fit the scorer, or check that the scorer can be used for the problems.

        Parameters
        ----------
        batch : GraphBatch
            Training problems.
        labels : ndarray of int of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown).
        task : FitTask, optional
            Settings for fitting, which a filter passes if the scorer requires fitting.

        Returns
        -------
        self : object
            The fitted scorer.
        """
        return self

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        """Return the terms of a linear confidence, or of the log odds behind a price.

        Parameters
        ----------
        batch : GraphBatch
            Problems with the columns that the scorer uses.

        Returns
        -------
        names : tuple of str
            The names of the columns.
        weights : ndarray of shape (n_columns,)
            The weights of the columns.
        values : ndarray of shape (n_claims, n_columns)
            The values of the columns. If the scorer is not linear, None is returned instead of
            the names, the weights and the values.
        """
        return None

    @abstractmethod
    def confidence(self, batch: GraphBatch) -> Floats:
        """Compute the confidence in each claim, which must depend only on the claim's problem.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        confidences : ndarray of shape (n_claims,)
            The confidence in each claim.
        """


def confidence_of(score, batch):
    """Return the confidences that a function computes, of shape (n_claims,).

    A ValueError is raised if its output is invalid.
    """
    if not batch.n_claims:
        return np.zeros(0)
    confidence = np.asarray(score(batch), float)
    if confidence.shape != (batch.n_claims,):
        raise ValueError(
            f"the scorer must return an array of shape ({batch.n_claims},) with one number per "
            f"claim, got shape {confidence.shape}"
        )
    for row in np.flatnonzero(~np.isfinite(confidence)):
        raise ValueError(
            f"the scorer must return finite confidences, got {confidence[row]} for "
            f"{batch.locate(row)}"
        )
    return confidence


def need_features(batch):
    """Return the features of the problems, or raise ValueError if there are none."""
    if batch.features is None:
        raise ValueError(
            "the scorer requires features, but the problems have none. Compute features "
            "with a transformer from skdcf.features"
        )
    return batch.features


@settings
class PricedScorer(Scorer):
    """Base class of scorers that compute the confidence in a claim from its price.

    A subclass implements ``hazard`` and ``_score``, the confidence if ``gain`` is None, and sets
    ``weight_below_errors_``.
    """

    # A gain of 0 is the logarithm.
    _parameter_constraints = {
        "gain": [None, Options(Real, {0}), Number(Real, 0.01, 1, closed="both")]
    }

    _: KW_ONLY
    gain: float | None = 0.5

    @property
    def resolution(self) -> float:  # type: ignore[override]
        """Resolution of the confidences. The hazards behind a price are rounded to 9 decimals."""
        return Scorer.resolution if self.gain is None else 1e-8

    def confidence(self, batch: GraphBatch) -> Floats:
        if self.gain is None:
            return self._score(batch)
        return -exact_log_price(
            self.hazard(batch), batch, self.weight_below_errors_, self.gain
        )


@settings
class FeatureScorer(Scorer):
    """Scorer that uses a single feature as the confidence.

    Parameters
    ----------
    feature : str or int
        Name or column index of the feature.

    Notes
    -----
    The confidences of a subclass may depend on other columns and on the batch. Filters therefore
    compare all columns of new problems and measure rounding errors, unless the subclass overrides
    ``columns_read`` and ``batch_invariant``.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FeatureScorer
    >>> batch = GraphBatch.from_arrays([[0.9, 3], [0.8, 5]], [0, 2])
    >>> FeatureScorer(1).confidence(batch)
    array([3., 5.])
    """

    feature: str | int

    @property
    def batch_invariant(self) -> bool:  # type: ignore[override]
        return type(self) in (FeatureScorer, FrequencyScorer)

    def columns_read(self) -> tuple[str, ...] | None:
        if isinstance(self.feature, str) and self.batch_invariant:
            return (self.feature,)
        return None

    def confidence(self, batch: GraphBatch) -> Floats:
        return batch.features[:, column_of(self.feature, batch)]  # type: ignore[index]

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        weights = np.zeros(batch.n_features or 0)
        weights[column_of(self.feature, batch)] = 1.0
        return tuple(batch.column_names), weights, batch.features  # type: ignore[return-value]


@settings
class FrequencyScorer(FeatureScorer):
    """Scorer that uses self-consistency frequencies, optionally mixed with descendant medians.

    The confidence in claim v is ``(1 - beta_mix) f_v + beta_mix m_v``, where f_v is the frequency
    of v and m_v is the median frequency of its descendants. If v has no descendants, the
    confidence is f_v.

    Parameters
    ----------
    beta_mix : float, default=0.0
        Weight of the median over descendants, between 0 and 1.
    over : {"descendants", "children"}, default="descendants"
        Claims over which the median frequency is computed. The value "descendants" corresponds to
        the published formula. The value "children" reproduces the authors' code, which uses the
        upper median of the *risks* of the direct children. The upper median of the risks is minus
        the lower median of the frequencies. The parameter ``over`` has no effect if
        ``beta_mix=0``.
    feature : str or int, default="frequency-score"
        Name or column index of the frequency feature.

    References
    ----------
    Rubin-Toles et al., Conformal Language Model Reasoning with Coherent Factuality,
    ICLR 2025.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FrequencyScorer
    >>> batch = GraphBatch.from_arrays([[1.0], [5.0], [3.0]], [0, 3], [(0, 1), (0, 2)])
    >>> FrequencyScorer(0.5, feature=0).confidence(batch)
    array([2.5, 5. , 3. ])
    """

    _parameter_constraints = {
        "beta_mix": [Number(Real, 0, 1, closed="both")],
        "over": [StrOptions({"descendants", "children"})],
    }

    feature: str | int = field(default="frequency-score", kw_only=True)
    beta_mix: float = 0.0
    over: Literal["descendants", "children"] = "descendants"

    def confidence(self, batch: GraphBatch) -> Floats:
        column = super().confidence(batch)
        if self.beta_mix == 0:
            return column
        if self.over == "children":
            parent, child = batch.edges.T
        else:
            indptr, parent = batch.closure
            child = segment_ids(indptr)
            parent, child = parent[parent != child], child[parent != child]
        below = column[child]
        # The medians of claims without descendants are not used, so they may have any value.
        ordered = np.append(below[np.lexsort((below, parent))], 0.0)
        count = np.bincount(parent, minlength=batch.n_claims)
        start = offsets_of(count)[:-1]
        median = ordered[start + (count - 1) // 2]
        if self.over == "descendants":
            median = (median + ordered[start + count // 2]) / 2
        mixed = (1 - self.beta_mix) * column + self.beta_mix * median
        return np.where(count > 0, mixed, column)

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        # If the scorer also depends on other claims, the confidence is not linear in the features
        # of a claim.
        return None if self.beta_mix else super().linear_terms(batch)


def column_of(feature, batch):
    """Return the column index of a feature, or raise ValueError if the feature does not exist.

    The feature is specified by its name or its column index.
    """
    if isinstance(feature, str):
        names = batch.feature_names or ()
        if feature not in names:
            need_features(batch)
            listed = list(names) or "unknown, because they are not named"
            raise ValueError(
                f"the feature {feature!r} does not exist. The named scorer is 'linear', and the "
                f"features are {listed}"
            )
        return names.index(feature)
    if not is_integer(feature):
        raise ValueError(
            f"feature must be a feature name or a column number, got {feature!r}"
        )
    width = need_features(batch).shape[1]
    if not -width <= feature < width:
        raise ValueError(
            f"feature must be a column number less than {width}, got {feature}"
        )
    return feature


@settings
class ClassifierScorer(PricedScorer):
    """Scorer that trains a scikit-learn classifier to distinguish true from false claims.

    Parameters
    ----------
    estimator : classifier or pipeline, optional
        The classifier, which must have a ``decision_function`` or ``predict_proba`` method. If
        None, a logistic regression on standardised features is used. The default regularization
        ``C=0.03`` is strong, because only a few answers contain an error.
    gain : float or None, default=0.5
        Exponent of the value of keeping claims, as in `ConfTrScorer`. The confidence is computed
        from the price of each claim. If None, the confidence is the log odds or the probability
        that the classifier returns.
    target : {"own", "coherent", "hazard"}, default="hazard"
        Training target. With "hazard", the classifier is trained on the claim labels, using only
        claims whose ancestors are all true. With "own", the classifier is trained on the labels
        of all claims. With "coherent", the training target is True if the claim and all its
        ancestors are true. Claims with unknown labels are never used for training.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted classifier. The attribute is None if all training claims had the same label.
        All claims then have the same log odds.
    weight_below_errors_ : float
        Weight of a true claim below a false one in the price, estimated from the training labels.

    Notes
    -----
    The price takes the result of ``decision_function`` for the log odds that a claim is true. If
    a classifier returns something else, as a support vector machine does, wrap it in
    `sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.graphs import as_batch
    >>> from skdcf.labels import pack_labels
    >>> from skdcf.scorers import ClassifierScorer
    >>> graphs, y = make_reasoning_graphs(30, random_state=0, return_X_y=True)
    >>> batch = as_batch(graphs)
    >>> scorer = ClassifierScorer(GaussianNB()).fit(batch, pack_labels(y, batch))
    >>> scorer.confidence(batch).shape == (batch.n_claims,)
    True
    """

    _parameter_constraints = PricedScorer._parameter_constraints | {
        "estimator": [
            None,
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "target": [StrOptions({"own", "coherent", "hazard"})],
    }

    estimator: Any = None
    _: KW_ONLY
    target: Literal["own", "coherent", "hazard"] = "hazard"

    @property
    def requires_fit(self) -> bool:  # type: ignore[override]
        """Whether `fit` trains the classifier (False for a ``FrozenEstimator``).

        If the estimator is frozen, all problems are used for calibration. The frozen estimator
        must have been trained on other problems.
        """
        return not isinstance(self.estimator, FrozenEstimator)

    def fit(
        self, batch: GraphBatch, labels: np.ndarray, task: FitTask | None = None
    ) -> Self:
        """Train the classifier on the claims of the problems.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Claims with an unknown label are ignored.
        task : FitTask, optional
            Settings for fitting, which a filter passes if the scorer requires fitting.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If the problems have no features, or if the classes of a pretrained classifier are
            neither 0 and 1 nor -1 and 1.
        """
        self.validate()
        self._noise = splitting.noise_columns(need_features(batch))
        target, judged = targets_of(self.target, labels, batch)
        X = self._informative(batch)[judged]
        target = target[judged]
        self.estimator_ = None if self.requires_fit else self.estimator
        classes = np.ravel(getattr(self.estimator_, "classes_", [0, 1])).tolist()
        if classes not in ([0, 1], [-1, 1]):
            raise ValueError(
                f"the classes of {self.estimator} must be 0 or -1 (false claims) and 1 (true "
                f"claims), got {classes}"
            )
        self._weights = None
        can_learn = X.shape[1] and 0 < target.sum() < len(target)
        if self.requires_fit and can_learn:
            if self.estimator is None:
                from sklearn.linear_model import LogisticRegression
                from sklearn.pipeline import make_pipeline
                from sklearn.preprocessing import StandardScaler

                pipeline = make_pipeline(
                    StandardScaler(),
                    LogisticRegression(C=splitting.STRENGTH, max_iter=1000),
                )
                # The settings are fixed, so scikit-learn's parameter validation is skipped in
                # each fold.
                with config_context(skip_parameter_validation=True):
                    self.estimator_ = pipeline.fit(X, target.astype(int))
                scaler, regression = self.estimator_.named_steps.values()
                self._weights = regression.coef_[0] / scaler.scale_
                self._offset = regression.intercept_[0] - self._weights @ scaler.mean_
            else:
                self.estimator_ = clone(self.estimator).fit(X, target.astype(int))
        # The log odds that a claim is true if no classifier could be fitted.
        self._constant = splitting.smoothed_log_odds(target)
        self.weight_below_errors_ = splitting.weight_below_errors(labels, batch)
        return self

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
        """
        X = self._informative(batch)
        model: Any = self.estimator_
        if hasattr(model, "get_booster") and len(X):
            # The probabilities of xgboost are too coarse near 1.
            return -model.predict(X, output_margin=True).astype(float)
        scores = self._decide(X)
        if model is None or hasattr(model, "decision_function"):
            return -scores
        return -logit(np.float64(scores))

    def _score(self, batch):
        return self._decide(self._informative(batch))

    def _decide(self, X):
        if self.estimator_ is None or not len(X):
            return np.full(len(X), self._constant)
        if self._weights is not None:
            # In contrast to a matrix product, a row-wise sum does not depend on the other rows.
            return (X * self._weights).sum(axis=1) + self._offset
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(X)
        return self.estimator_.predict_proba(X)[:, 1]

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        n: Any = batch.n_features
        probes = self._decide(np.eye(n + 1, n, k=-1))
        weights = probes[1:] - probes[0]
        weights[self._noise] = 0.0
        features: Any = batch.features
        linear = probes[0] + features @ weights
        if not np.allclose(linear, self._score(batch), rtol=1e-6, atol=1e-6):
            return None
        return tuple(batch.column_names), weights, features

    def _informative(self, batch):
        """Return the features, with columns that vary only by rounding errors set to 0."""
        if not len(self._noise):
            return batch.features
        X = batch.features.copy()
        X[:, self._noise] = 0.0
        return X


# Weights and biases of each layer.
Layers: TypeAlias = list[tuple[Floats, Floats]]


@settings
class LinearModel(Settings):
    """Linear model that computes a weighted sum of the standardised features.

    To use this model as a scorer, pass it to `ConfTrScorer`, as in
    ``ConfTrScorer(LinearModel())``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.scorers import LinearModel
    >>> LinearModel()(np.array([0.5, -1.0]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([ 0., -1.])
    """

    def init(
        self, n_features: int, rng: np.random.RandomState | np.random.Generator
    ) -> Floats:
        """Draw weights uniformly from -b to b, where b is 1 / sqrt(n_features).

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
        bound = max(n_features, 1) ** -0.5
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
        "model": [None, HasMethods(["init", "__call__"])]
    }
    requires_fit = uses_alpha = uses_relaxation = True

    model: Any = None

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
            Settings for fitting, which a filter passes if the scorer requires fitting.

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
        from .training.loop import train

        self.validate()
        need_features(batch)
        model = LinearModel() if self.model is None else clone(self.model, safe=False)
        result = train(model, batch, labels, task or FitTask(), self.gain)
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
        return confidence_of(
            lambda batch: self.model_(self.params_, self.columns_(batch)), batch
        )

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        if not self._is_linear:
            return None
        names = tuple(self.get_feature_names_out(batch.column_names))
        mean = self.columns_.mean
        # A constant column has infinite bounds, and its weight is 0.
        reach = self.columns_.bound * self.columns_.scale
        raw = self.columns_.raw(batch.features, batch.sizes)
        return names, self.coef_, np.clip(raw, mean - reach, mean + reach)


@settings
class FunctionScorer(Scorer):
    """Scorer that applies a function to each `GraphBatch`.

    Parameters
    ----------
    function : callable
        The function, which must return an array of shape (n_claims,) in which larger values mean
        safer claims. The values for a problem must not depend on other problems. Ranking or
        scaling the values over the batch invalidates the guarantee, and raises an error if it is
        detected.

    Attributes
    ----------
    function_ : callable
        The function, or a copy if the function is an object with state.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(lambda batch: batch.depth).fit(graphs, y).scorer_
    FunctionScorer(function=<function <lambda> at ...>)
    """

    requires_fit = False

    function: Callable[[GraphBatch], ArrayLike]

    def fit(self, batch, labels=None, task=None):
        """Store a copy of the function without fitting anything.

        Parameters
        ----------
        batch, labels, task : object, optional
            Ignored.

        Returns
        -------
        self : object
            The fitted scorer.

        Warns
        -----
        GuaranteeWarning
            If the function is a method of a scorer that is already fitted.
        """
        owner = getattr(self.function, "__self__", None)
        if isinstance(owner, Scorer) and scorer_requires_fit(owner):
            warn(
                f"the scorer is a method of a fitted {type(owner).__name__}. The guarantee "
                "holds only for problems that were not used to train this scorer. Pass the "
                f"{type(owner).__name__} itself, so the filter trains it on other problems",
                GuaranteeWarning,
            )
        self.function_ = deepcopy(self.function)
        return self

    def confidence(self, batch):
        return self.function_(batch)


def scorer_requires_fit(scorer):
    """Return whether a scorer needs fitting."""
    if scorer.requires_fit is not None:
        return scorer.requires_fit
    return type(scorer).fit is not Scorer.fit


def as_scorer(scorer, batch):
    """Return an unfitted scorer for the problems of ``batch``.

    Parameters
    ----------
    scorer : None, str, int, Scorer, differentiable model, classifier or callable
        The value to convert. The default is the feature "frequency-score" if it exists, and a
        logistic regression otherwise. The name "linear" refers to `ConfTrScorer`. Any other string
        or integer specifies a feature. A differentiable model is trained through soft calibration,
        while a classifier is trained on claims. A callable must accept a GraphBatch. Scorers and
        classifiers that are already fitted are fitted again, because their training data are
        unknown.
    batch : GraphBatch
        The problems.

    Returns
    -------
    unfitted_scorer : Scorer
        The unfitted scorer.

    Raises
    ------
    ValueError
        If the value cannot be converted.
    """
    names = batch.column_names
    if scorer is None:
        return FrequencyScorer() if "frequency-score" in names else ClassifierScorer()
    if isinstance(scorer, str) and scorer == "linear":
        if scorer in names:
            raise ValueError(
                "a scorer and a feature cannot both be named 'linear'. Pass "
                "FeatureScorer('linear') to use the feature, or rename the feature"
            )
        return ConfTrScorer()
    if isinstance(scorer, str) or is_integer(scorer):
        return FeatureScorer(scorer)
    if isinstance(scorer, Scorer):
        return clone(scorer)
    # A filter is not a scorer. scikit-learn's get_scorer and make_scorer return objects that
    # evaluate predictions and cannot score claims. A torch module is callable, but cannot score
    # problems.
    unsuitable = ("predict_alpha", "_score_func", "forward")
    if not isinstance(scorer, type) and not any(hasattr(scorer, n) for n in unsuitable):
        if callable(scorer) and hasattr(scorer, "init"):
            return ConfTrScorer(scorer)
        if hasattr(scorer, "fit"):
            return ClassifierScorer(scorer)
        if callable(scorer):
            return FunctionScorer(scorer)
    raise ValueError(
        "scorer must be None, 'linear', a feature's name or column number, a Scorer, a "
        "differentiable model (with init(n_features, rng) and model(params, X)), a classifier "
        "with decision_function or predict_proba, or a function of a GraphBatch, got "
        f"{scorer!r}. The page 'Training and your own scorer' shows how to write a Scorer"
    )


def out_of_fold_confidence(scorer, batch, labels, task):
    """Compute out-of-fold confidences, using a scorer that is fitted on all other folds.

    Parameters
    ----------
    scorer : Scorer
        The scorer. One clone of the scorer is fitted for each of up to three folds.
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    task : FitTask
        Settings for fitting. Its groups are numbered from 0.

    Returns
    -------
    confidences : ndarray of shape (n_claims,), or None
        Out-of-fold confidences, which do not depend on the labels in the same fold, or None if
        all problems belong to the same group.
    """
    n_groups = task.groups.max() + 1
    if n_groups == 1:
        return None
    n_folds = min(3, n_groups)
    fold_of = deepcopy(task.rng).permutation(n_groups)[task.groups] % n_folds
    jobs = [
        partial(_score_fold, clone(scorer), batch, labels, fold_of == fold, task)
        for fold in range(n_folds)
    ]
    unseen = np.empty(batch.n_claims)
    for fold, confidence in enumerate(run_jobs(jobs, task.n_jobs, task.verbose)):
        unseen[fold_of[batch.problem_of] == fold] = confidence
    return unseen


def _score_fold(scorer, batch, labels, in_fold, task):
    """Fit a scorer on all folds but one, and compute the confidences in the claims of that fold."""
    others = ~in_fold
    task = replace(
        task,
        groups=task.groups[others],
        rng=deepcopy(task.rng),
        n_jobs=None,
        verbose=0,
    )
    # Warnings about folds without usable training data are ignored, because the effect of such
    # folds is visible in the retention.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scorer.fit(batch[others], labels[others[batch.problem_of]], task)
    return scorer.confidence(batch[in_fold])
