"""The protocol of scorers, the task that a filter gives them, and scorers that learn nothing."""

from __future__ import annotations

import inspect
import warnings
from abc import ABCMeta, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._jobs import all_finished
from .._parameters import FITTING, UNIT, Settings, StrOptions, settings
from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of


@dataclass(frozen=True)
class LinearForm:
    """A confidence that is linear in the features, within their bounds.

    ``confidence = offset + clip(features, low, high) @ weights``

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        Per unit of the features as passed.
    offset : float
        Confidence where all features are 0, if the bounds let them be 0.
    low, high : ndarray of shape (n_features,)
        Values outside are clipped to these; infinite where there is no bound.
    """

    weights: np.ndarray
    offset: float
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def unbounded(cls, weights, offset=0.0):
        """A form that takes every value as it is.

        Parameters
        ----------
        weights : array-like of shape (n_features,)
            Weight of each feature.
        offset : float, default=0.0
            Confidence where all features are 0.

        Returns
        -------
        LinearForm
            The form without bounds.
        """
        weights = np.asarray(weights, dtype=np.float64)
        bound = np.full(len(weights), np.inf)
        return cls(weights, float(offset), -bound, bound)

    def values(self, features: NDArray) -> NDArray[np.float64]:
        """The features, clipped to their bounds.

        Parameters
        ----------
        features : ndarray of shape (..., n_features)
            Rows of features.

        Returns
        -------
        ndarray of the same shape, clipped
            The features within their bounds.
        """
        return np.clip(features, self.low, self.high)

    def __call__(self, features: NDArray) -> NDArray[np.float64]:
        """Confidences of rows of features, shape (n_claims,)."""
        return self.offset + self.values(features) @ self.weights


@dataclass(frozen=True)
class FitTask:
    """The task that a filter gives its scorer in a fit.

    Parameters
    ----------
    alpha : float, default=0.1
        Level that the filter will be used at.
    groups : ndarray of shape (n_problems,), optional
        Problems of one group, say of one question, belong together in every split.
    rng : RandomState, optional
        Source of all randomness that the scorer itself does not seed.
    relaxation : PathRelaxation or GridRelaxation, optional
        What to train through; None is the scorer's own choice.
    training : SoftTraining, optional
        How to train; None is the scorer's own choice.
    n_jobs : int, optional
        Folds and levels at a time, as in scikit-learn.
    verbose : int, default=0
        Whether to show progress bars.
    """

    alpha: float = 0.1
    groups: np.ndarray | None = None
    rng: np.random.RandomState = field(default_factory=np.random.RandomState)
    relaxation: object = None
    training: object = None
    n_jobs: int | None = None
    verbose: int = 0

    def on(self, rows: NDArray[np.bool_]) -> FitTask:
        """The task for some of the problems, for one job, with a copy of the randomness.

        Parameters
        ----------
        rows : ndarray of bool, shape (n_problems,)
            Whether each problem is one of them.

        Returns
        -------
        FitTask
            The task of these problems.
        """
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self, groups=groups, rng=deepcopy(self.rng), n_jobs=None, verbose=0
        )


class Scorer(Settings, metaclass=ABCMeta):
    """A scorer gives every claim a confidence; higher means more trustworthy.

    A scorer of your own needs `confidence`, and `fit` if it learns. One that says how likely
    an error is has a method ``chance(batch, kept)``, which returns for each problem the
    chance that something false is among the claims that are kept. It is a scikit-learn
    estimator: ``__init__`` stores its parameters and does nothing else, and what `fit`
    learns is stored in attributes whose names end in an underscore.

    Attributes
    ----------
    requires_fit : bool or None
        Whether `fit` learns from the problems. None says yes if the class defines `fit`
        or `fit_levels`: also a `fit` that looks at no label follows the problems that it is
        given. A filter then holds the problems that it calibrates on out of `fit`. False
        declares that `fit` learns nothing from problems; it then sees all of them, and all
        labels as unknown. A subclass with a `fit` of its own has to declare it again.
    exact : bool
        Whether the confidence of a claim is the same to the bit in every batch, as a
        column is. It is not measured then.
    uses_alpha : bool
        Whether another alpha would give another scorer.
    uses_relaxation : bool
        Whether `fit` trains through ``task.relaxation``, as ``task.training`` says.
        Filters refuse these settings where nothing would use them.
    resolution : float
        How closely the confidence of a claim repeats itself in another batch, relative
        to ``1 + abs(confidence)``. Filters measure it as well, and lower their threshold
        by more than the larger of the two.
    priors : tuple of PublicPrior
        What the scorer knows of other people's labels; empty for most. A filter refuses
        problems with their questions. It asks before `fit`, too.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import Scorer
    >>> class EarlyClaims(Scorer):
    ...     def confidence(self, batch):
    ...         return -batch.depth
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(EarlyClaims(), alpha=0.2).fit(graphs, y).n_calibration_
    199
    """

    requires_fit: bool | None = None
    batch_invariant = False
    uses_alpha = False
    uses_relaxation = False
    resolution = 1e-10
    priors: tuple[Any, ...] = ()

    def columns_read(self) -> tuple[str, ...] | None:
        """Names of the feature columns that `confidence` reads.

        Returns
        -------
        tuple of str, or None for all columns, by their position
            The names; None where all columns are read.
        """
        return None

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        """Learn, or check that the scorer fits the problems.

        Parameters
        ----------
        batch : GraphBatch
            Training problems.
        labels : ndarray of int, shape (n_claims,)
            1 true, 0 false, -1 unknown.
        task : FitTask, optional
            What the filter says about the fit.

        Returns
        -------
        self
            The scorer itself, fitted.
        """
        return self

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[FitTask]
    ) -> list:
        """One fitted scorer per task; the tasks differ in alpha alone.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            1 true, 0 false, -1 unknown.
        tasks : list of FitTask
            One for each level.

        Returns
        -------
        list of Scorer
            All of them the same object where alpha makes no difference.
        """
        try:
            inspect.signature(self.fit).bind(batch, labels, tasks[0])
        except TypeError:
            raise TypeError(
                f"{type(self).__name__}.fit{inspect.signature(self.fit)} cannot be called as "
                "a filter does it, fit(batch, labels, task): labels is one flat array over "
                "all claims (1 true, 0 false, -1 unknown)"
            ) from None
        if not self.uses_alpha:
            [fitted] = run_of(
                tasks[0], [partial(self.fit, batch, labels, tasks[0])], self
            )
            return [fitted] * len(tasks)
        jobs = [partial(clone(self).fit, batch, labels, task) for task in tasks]
        return run_of(tasks[0], jobs, self, unit="level")

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """The confidence as a weighted sum of the features, where it is one.

        Parameters
        ----------
        batch : GraphBatch
            Problems like those to come; their number and names of columns are read.

        Returns
        -------
        LinearForm, or None for a scorer that is not linear
            The form; None where the scorer is not linear.
        """
        return None

    @abstractmethod
    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Confidence of each claim, a function of its problem alone.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        ndarray of shape (n_claims,)
            The confidence of each claim.
        """


def probed_form(decide, n_features):
    """The form of an affine function, from its values at 0 and at each unit vector.

    Parameters
    ----------
    decide : callable
        From rows of features to one number each.
    n_features : int
        Number of features.

    Returns
    -------
    LinearForm
        Right if the function is affine, which is for the caller to know.
    """
    confidences = decide(np.vstack([np.zeros(n_features), np.eye(n_features)]))
    return LinearForm.unbounded(confidences[1:] - confidences[0], confidences[0])


def scorer_requires_fit(scorer: Scorer) -> bool:
    """Whether `fit` of a scorer learns from the problems that it is given."""
    if scorer.requires_fit is not None:
        return scorer.requires_fit
    cls = type(scorer)
    return any(getattr(cls, name) is not getattr(Scorer, name) for name in FITTING)


@dataclass(frozen=True)
class Folded:
    """Problems, each of which is of one fold.

    Parameters
    ----------
    batch : GraphBatch
    fold_of : ndarray of int, shape (n_problems,)
        Number of the fold of each problem.
    """

    batch: GraphBatch
    fold_of: NDArray[np.int64]

    @cached_property
    def parts(self) -> list[tuple[GraphBatch, GraphBatch]]:
        """For each fold the problems of the others, and its own.

        All base scorers of a stack share these batches: that each of them looks for the
        ancestors of the same claims anew would take 2 % of a fit.
        """
        n_folds = int(self.fold_of.max()) + 1
        of_fold = [self.fold_of == fold for fold in range(n_folds)]
        return [(self.batch[~in_fold], self.batch[in_fold]) for in_fold in of_fold]


def fit_folds(scorer, folded, labels, tasks):
    """Fit a scorer on all problems, and compute out-of-fold confidences.

    Returns
    -------
    scorers : list of Scorer
        As from `Scorer.fit_levels`.
    unseen : ndarray of shape (n_tasks, n_claims)
        As from `out_of_fold_confidence`.
    """
    unseen = out_of_fold_confidence(scorer, folded, labels, tasks)
    return scorer.fit_levels(folded.batch, labels, tasks), unseen


def out_of_fold_confidence(scorer, folded, labels, tasks):
    """Compute the confidence of each claim by a fit on the other folds.

    Parameters
    ----------
    scorer : Scorer
        Clones of it are fitted, one for each fold.
    folded : Folded
        The problems, in at least two folds.
    labels : ndarray of shape (n_claims,)
        1 true, 0 false, -1 unknown.
    tasks : list of FitTask
        One for each level.

    Returns
    -------
    ndarray of shape (n_tasks, n_claims)
        The confidences. No label of the claim's own fold enters.
    """
    batch = folded.batch
    unseen = np.empty((len(tasks), batch.n_claims))
    of_fold = [folded.fold_of == fold for fold in range(len(folded.parts))]
    jobs = [
        partial(
            _confidence_unseen,
            clone(scorer),
            parts,
            labels[~in_fold[batch.problem_of]],
            [task.on(~in_fold) for task in tasks],
        )
        for in_fold, parts in zip(of_fold, folded.parts, strict=True)
    ]
    results = run_of(tasks[0], jobs, scorer, unit="fold")
    for in_fold, confidence in zip(of_fold, results, strict=True):
        unseen[:, in_fold[batch.problem_of]] = confidence
    return unseen


def _confidence_unseen(scorer, parts, labels, tasks):
    """Fit on the other folds, and compute the confidences in the claims of the fold."""
    others, own = parts
    # The other folds may teach nothing. What is kept shows it, so no warning is needed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        levels = scorer.fit_levels(others, labels, tasks)
    return confidence_of_each(levels, own)


def run_of(task, jobs, scorer, unit="fit"):
    """Run independent jobs of a scorer as its task says, and return their results in order."""
    name = type(scorer).__name__
    return all_finished(jobs, task.n_jobs, verbose=task.verbose, name=name, unit=unit)


def confidence_of_each(scorers, batch):
    """Confidences, shape (n_scorers, n_claims); the same scorer is asked only once."""
    distinct = {id(scorer): scorer for scorer in scorers}
    confidence = {key: scorer.confidence(batch) for key, scorer in distinct.items()}
    return np.array([confidence[id(scorer)] for scorer in scorers])


def folds(n, groups, n_folds, rng):
    """Number of each problem's fold; all 0 where there are too few groups."""
    groups = np.arange(n) if groups is None else groups
    code = np.unique(groups, return_inverse=True)[1]
    n_groups = code.max() + 1
    return rng.permutation(n_groups)[code] % min(n_folds, n_groups)


def need_features(batch):
    """The features of the problems, or ValueError where they have none yet."""
    if batch.features is None:
        raise ValueError(
            "the scorer needs features, but the problems have no features yet: add some "
            "with skdcf.features"
        )
    return batch.features


FREQUENCY = "frequency-score"


@settings
class FeatureScorer(Scorer):
    """One feature as the confidence.

    Parameters
    ----------
    feature : str or int
        Name or column number.

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
    """Self-consistency frequency, mixed with that of the claims that build on it.

    The confidence of claim v is ``(1 - beta_mix) f_v + beta_mix m_v``, where m_v is the
    median frequency of the claims below v in the graph, each with its own, unmixed
    value. A claim on which nothing builds keeps f_v.

    Parameters
    ----------
    beta_mix : float, default=0.0
        Weight of the claims below, in [0, 1].
    over : {"descendants", "children"}, default="descendants"
        "descendants" is the published formula. "children" is what the code of its
        authors does: direct children only, and the upper median of their *risks*,
        hence the lower one of their frequencies. At ``beta_mix=0`` the claims below
        weigh nothing, and both are the same.
    feature : str or int, default="frequency-score"
        Name or column number of the frequency.

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
        "beta_mix": [UNIT],
        "over": [StrOptions({"descendants", "children"})],
    }

    feature: str | int = field(default=FREQUENCY, kw_only=True)
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
        # Where other claims enter, it is not linear in the features of its own.
        return super().linear_form(batch) if self.beta_mix == 0 else None


def column_of(feature, batch):
    """Column number of a feature given by name or number, or ValueError."""
    need_features(batch)
    if isinstance(feature, str):
        names = batch.feature_names or ()
        if feature not in names:
            names_there = list(names) or "none, as the features are not named"
            raise ValueError(
                f"there is no feature {feature!r}; there are {names_there}"
            )
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise ValueError(
            f"feature is {feature!r}, but must be a name or a column number"
        )
    if not -batch.n_features <= feature < batch.n_features:
        raise ValueError(
            f"there is no feature {feature}, as there are only {batch.n_features}"
        )
    return int(feature)


def _medians(values, owner, n):
    """Lower and upper median of the values of each owner, NaN where it has none."""
    ordered = values[np.lexsort((values, owner))]
    count = np.bincount(owner, minlength=n)
    start = offsets_of(count)[:-1]
    padded = np.append(ordered, np.nan)
    lower = padded[np.where(count, start + (count - 1) // 2, len(ordered))]
    upper = padded[np.where(count, start + count // 2, len(ordered))]
    return lower, upper
