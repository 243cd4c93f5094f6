"""Base class for scorers, the settings that filters pass to `fit`, and untrained scorers."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._checks import is_integer
from .._jobs import run_jobs
from .._parameters import Number, Options, Settings, StrOptions, settings
from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of, optional_rows


@dataclass(frozen=True)
class LinearForm:
    """Confidence that is a linear function of clipped features.

    ``confidence = offset + clip(features, low, high) @ weights``

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        Weights of the original features.
    offset : float
        Confidence in a claim whose features are all 0, if 0 is within all bounds.
    low, high : ndarray of shape (n_features,)
        Bounds to which the features are clipped. Infinite bounds have no effect.
    """

    weights: np.ndarray
    offset: float
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def unbounded(cls, weights, offset=0.0):
        """Return a linear form without bounds.

        Parameters
        ----------
        weights : array-like of shape (n_features,)
            Weight of each feature.
        offset : float, default=0.0
            Confidence in a claim whose features are all 0.

        Returns
        -------
        form : LinearForm
            A linear form without bounds.
        """
        weights = np.asarray(weights, dtype=np.float64)
        bound = np.full(len(weights), np.inf)
        return cls(weights, float(offset), -bound, bound)

    def values(self, features: NDArray) -> NDArray[np.float64]:
        """Clip features to their bounds.

        Parameters
        ----------
        features : ndarray of shape (..., n_features)
            Rows of features.

        Returns
        -------
        clipped_features : ndarray of shape (..., n_features)
            The clipped features.
        """
        return np.clip(features, self.low, self.high)

    def __call__(self, features: NDArray) -> NDArray[np.float64]:
        """Compute the confidence in each claim from the rows of a feature table."""
        return self.offset + self.values(features) @ self.weights


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

    def on(self, rows: NDArray[np.bool_]) -> FitTask:
        """Return the task for a subset of the problems, with a copy of the random state.

        Parameters
        ----------
        rows : ndarray of bool of shape (n_problems,)
            Mask of the selected problems.

        Returns
        -------
        task : FitTask
            The task for the selected problems.
        """
        groups = optional_rows(self.groups, rows)
        return replace(
            self, groups=groups, rng=deepcopy(self.rng), n_jobs=None, verbose=0
        )


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
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
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

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """Return the linear form of the confidence, or of the log odds behind a price.

        Parameters
        ----------
        batch : GraphBatch
            Problems with the columns that the scorer uses. Only the number and names of the
            columns are used.

        Returns
        -------
        form : LinearForm or None
            The linear form of the columns that `linear_columns` returns, or None if the scorer is
            not linear.
        """
        return None

    def linear_columns(
        self, batch: GraphBatch
    ) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return the names and the values of the columns to which the linear form applies.

        Parameters
        ----------
        batch : GraphBatch
            The problems, with the columns that the scorer uses.

        Returns
        -------
        names : tuple of str
            The names of the columns.
        values : ndarray of shape (n_claims, n_columns)
            The values of the columns.
        """
        table = need_features(batch)
        names = batch.feature_names or [f"x{j}" for j in range(table.shape[1])]
        return tuple(names), table

    @abstractmethod
    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
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


def scorer_requires_fit(scorer):
    """Return whether a scorer needs fitting."""
    if scorer.requires_fit is not None:
        return scorer.requires_fit
    cls = type(scorer)
    return cls.fit is not Scorer.fit


def out_of_fold_confidence(
    scorer,
    batch,
    labels,
    fold_of,
    task,
):
    """Compute out-of-fold confidences, using a scorer that is fitted on all other folds.

    Parameters
    ----------
    scorer : Scorer
        The scorer. One clone of the scorer is fitted for each fold.
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).
    fold_of : ndarray of int of shape (n_problems,)
        Fold of each problem, of which there are at least two.
    task : FitTask
        Settings for fitting.

    Returns
    -------
    confidences : ndarray of shape (n_claims,)
        Out-of-fold confidences, which do not depend on the labels in the same fold.
    """
    unseen = np.empty(batch.n_claims)
    in_folds = [fold_of == fold for fold in range(int(fold_of.max()) + 1)]
    jobs = [
        partial(
            _confidence_unseen,
            clone(scorer),
            (batch[~in_fold], batch[in_fold]),
            labels[~in_fold[batch.problem_of]],
            task.on(~in_fold),
        )
        for in_fold in in_folds
    ]
    results = run_jobs(jobs, task.n_jobs, task.verbose)
    for in_fold, confidence in zip(in_folds, results, strict=True):
        unseen[in_fold[batch.problem_of]] = confidence
    return unseen


def _confidence_unseen(scorer, parts, labels, task):
    """Fit a scorer on all folds but one, and compute the confidences in the claims of that fold."""
    training, held_out = parts
    # Warnings about folds without usable training data are ignored, because the effect of such
    # folds is visible in the retention.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return scorer.fit(training, labels, task).confidence(held_out)


def folds(n, groups, n_folds, rng):
    """Return the fold index of each problem, or zeros if there are too few groups."""
    groups = np.arange(n) if groups is None else groups
    code = np.unique(groups, return_inverse=True)[1]
    n_groups = code.max() + 1
    return rng.permutation(n_groups)[code] % min(n_folds, n_groups)


def resolution_of_gain(gain):
    """Return the resolution of the confidences of a scorer with the given gain.

    The hazards behind a price are rounded to 9 decimals.
    """
    return Scorer.resolution if gain is None else 1e-8


def need_features(batch):
    """Return the features of the problems, or raise ValueError if there are none."""
    if batch.features is None:
        raise ValueError(
            "the scorer requires features, but the problems have none. Compute features "
            "with a transformer from skdcf.features"
        )
    return batch.features


# Exponents of the value of keeping claims, where 0 is the logarithm and None counts no value.
GAIN = [None, Options(Real, {0}), Number(Real, 0.01, 1, closed="both")]


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

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return need_features(batch)[:, column_of(self.feature, batch)]

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        weights = np.zeros(need_features(batch).shape[1])
        weights[column_of(self.feature, batch)] = 1.0
        return LinearForm.unbounded(weights)


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
        upper median of the *risks* of the direct children. The upper median of the risks equals
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

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        column = super().confidence(batch)
        if self.beta_mix == 0:
            return column
        if self.over == "children":
            parent, child = batch.edges.T
        else:
            indptr, parent = batch.closure
            child = np.repeat(np.arange(batch.n_claims), np.diff(indptr))
            parent, child = parent[parent != child], child[parent != child]
        lower, upper = _medians(column[child], parent, batch.n_claims)
        below = lower if self.over == "children" else (lower + upper) / 2
        mixed = (1 - self.beta_mix) * column + self.beta_mix * below
        return np.where(np.isnan(below), column, mixed)

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        # If the scorer also depends on other claims, the confidence is not linear in the features
        # of a claim.
        return super().linear_form(batch) if self.beta_mix == 0 else None


def column_of(feature, batch):
    """Return the column index of a feature, or raise ValueError if the feature does not exist.

    The feature is specified by its name or its column index.
    """
    need_features(batch)
    if isinstance(feature, str):
        names = batch.feature_names or ()
        if feature not in names:
            listed = list(names) or "unknown, because they are not named"
            hint = ". Pass ClassifierScorer() instead" if feature == "logistic" else ""
            raise ValueError(
                f"the feature {feature!r} does not exist. The named scorer is 'linear', and the "
                f"features are {listed}{hint}"
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
    return int(feature)


def _medians(values, owner, n):
    """Return the lower and upper medians of each group of values, or NaN for empty groups."""
    ordered = values[np.lexsort((values, owner))]
    count = np.bincount(owner, minlength=n)
    start = offsets_of(count)[:-1]
    padded = np.append(ordered, np.nan)
    lower = padded[np.where(count, start + (count - 1) // 2, len(ordered))]
    upper = padded[np.where(count, start + count // 2, len(ordered))]
    return lower, upper
