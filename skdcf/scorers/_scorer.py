"""Base class for scorers, the settings that filters pass to `fit`, and untrained scorers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._checks import Floats, is_integer
from .._parameters import Number, Options, Settings, StrOptions, settings
from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of, segment_ids
from ..ops.price import exact_log_price

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


class Scorer(Settings, metaclass=ABCMeta):
    """Base class for scorers, which compute the confidence in each claim.

    Claims with higher confidence are safer. A subclass must implement `confidence`, and also
    `fit` if it requires training. Scorers are scikit-learn estimators, so ``__init__`` must only
    store parameters, and the names of fitted attributes must end with an underscore.

    Attributes
    ----------
    requires_fit : bool or None
        Whether `fit` uses the problems to train the scorer. If True, calibration problems are not
        passed to `fit`. If False, `fit` receives all problems, with all labels set to unknown.
        None is equivalent to True for classes that define `fit`, because a `fit` that
        ignores labels can still depend on the problems. A subclass that overrides `fit` must
        set ``requires_fit`` again.
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
            Settings for fitting, passed by the filter.

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
        q = self.weight_below_errors_
        return -exact_log_price(self.hazard(batch), batch, q, self.gain)


@settings
class FeatureScorer(Scorer):
    """Scorer that uses a single feature as the confidence.

    Parameters
    ----------
    feature : str or int
        Name or column index of the feature.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FeatureScorer
    >>> batch = GraphBatch.from_arrays([[0.9, 3], [0.8, 5]], [0, 2])
    >>> FeatureScorer(1).confidence(batch)
    array([3., 5.])
    """

    requires_fit = False
    batch_invariant = True

    feature: str | int

    def columns_read(self) -> tuple[str, ...] | None:
        return (self.feature,) if isinstance(self.feature, str) else None

    def fit(self, batch: GraphBatch, labels: Any = None, task: Any = None) -> Self:
        column_of(self.feature, batch)
        return self

    def confidence(self, batch: GraphBatch) -> Floats:
        return batch.features[:, column_of(self.feature, batch)]  # type: ignore[index]

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        table = need_features(batch)
        weights = np.zeros(table.shape[1])
        weights[column_of(self.feature, batch)] = 1.0
        return tuple(batch.column_names), weights, table


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
    need_features(batch)
    if isinstance(feature, str):
        names = batch.feature_names or ()
        if feature not in names:
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
    if not -batch.n_features <= feature < batch.n_features:
        raise ValueError(
            f"feature must be a column number less than {batch.n_features}, got {feature}"
        )
    return feature
