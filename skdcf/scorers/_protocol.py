"""What a scorer is, and what a filter tells it."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._parameters import Settings
from ._form import LinearForm

if TYPE_CHECKING:
    from ..graphs import GraphBatch


@dataclass(frozen=True)
class Task:
    """What a filter tells its scorer about the fit.

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
    verbose : int, default=0
        Whether to say what happens.
    questions : ndarray of int64, optional
        Hashes of the questions of all problems of the filter's fit, of those that will
        calibrate too. A prior that was learnt elsewhere must know none of them.
    """

    alpha: float = 0.1
    groups: np.ndarray | None = None
    rng: np.random.RandomState = field(default_factory=np.random.RandomState)
    relaxation: object = None
    training: object = None
    verbose: int = 0
    questions: np.ndarray | None = None

    def on(self, rows: NDArray[np.bool_]) -> Task:
        """The task for some of the problems, silent, with a copy of the randomness.

        Parameters
        ----------
        rows : ndarray of bool, shape (n_problems,)

        Returns
        -------
        Task
        """
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, groups=groups, rng=deepcopy(self.rng), verbose=0)


class Scorer(Settings, metaclass=ABCMeta):
    """Gives every claim a confidence, higher meaning more trustworthy.

    A scorer of your own needs `confidence`, and `fit` if it learns. It is a scikit-learn
    estimator: ``__init__`` stores its parameters and does nothing else, and what `fit`
    learns is stored in attributes whose names end in an underscore.

    Attributes
    ----------
    learns : bool or None
        Whether `fit` learns from the problems. None says yes if the class defines `fit`:
        also a `fit` that looks at no label follows the problems that it is given. A filter
        then holds the problems that it calibrates on out of `fit`. False declares that
        `fit` learns nothing from problems; it then sees all of them, and all labels as
        unknown.
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

    learns: bool | None = None
    exact = False
    uses_alpha = False
    uses_relaxation = False
    resolution = 1e-10

    def columns_read(self) -> tuple[str, ...] | None:
        """Names of the feature columns that `confidence` reads.

        Returns
        -------
        tuple of str, or None for all columns, by their position
        """
        return None

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems the scorer knew before `fit`, as a public prior may.

        They cannot calibrate a filter, and do not show what it is worth.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return np.zeros(len(batch), dtype=bool)

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Learn, or check that the scorer fits the problems.

        Parameters
        ----------
        batch : GraphBatch
            Training problems.
        labels : ndarray of int, shape (n_claims,)
            1 true, 0 false, -1 unknown.
        task : Task, optional

        Returns
        -------
        self
        """
        return self

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[Task]
    ) -> list[Self]:
        """One fitted scorer per task; the tasks differ in alpha alone.

        Parameters
        ----------
        batch, labels
            As in `fit`.
        tasks : list of Task

        Returns
        -------
        list of Scorer
            All of them the same object where alpha makes no difference.
        """
        if not self.uses_alpha:
            return [self.fit(batch, labels, tasks[0])] * len(tasks)
        return [clone(self).fit(batch, labels, task) for task in tasks]

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """The confidence as a weighted sum of the features, where it is one.

        Parameters
        ----------
        batch : GraphBatch
            Problems like those to come; their number and names of columns are read.

        Returns
        -------
        LinearForm, or None for a scorer that is not linear
        """
        return None

    def shap_values(
        self, batch: GraphBatch, background: GraphBatch
    ) -> NDArray[np.float64]:
        """What each feature adds to each confidence, against that of the background.

        Exact Shapley values of a linear score: weight times the distance of the value
        from the mean over the background.

        Parameters
        ----------
        batch, background : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims, n_features)

        Raises
        ------
        ValueError
            If the scorer is neither linear nor has an exact way of its own.
        """
        form = self.linear_form(batch)
        if form is None:
            raise ValueError(
                f"{self!r} is not linear, and no exact Shapley values are known for it: "
                "skdcf.inspection.permutation_importance works with every scorer"
            )
        mean = form.values(background.features).mean(axis=0)
        return form.weights * (form.values(batch.features) - mean)

    def fit_folds(
        self, batch: GraphBatch, labels: NDArray, tasks: list[Task], fold_of: NDArray
    ) -> tuple[list[Self], NDArray[np.float64]]:
        """Fitted scorers, and what claims get from fits that have not seen their fold.

        One fit per fold and one on all problems. A scorer that can make the last of the
        others, or share work between them, does so.

        Parameters
        ----------
        batch, labels, tasks
            As in `fit_levels`.
        fold_of : ndarray of int, shape (n_problems,)
            Numbers of the folds, from 0, of which there are at least two.

        Returns
        -------
        scorers : list of Scorer
            As from `fit_levels`.
        unseen : ndarray of shape (n_tasks, n_claims)
            Confidence of each claim. No label of its own fold enters.
        """
        unseen = np.empty((len(tasks), batch.n_claims))
        for fold in range(fold_of.max() + 1):
            held = fold_of == fold
            rows, rest = held[batch.problem_of], [task.on(~held) for task in tasks]
            levels = clone(self).fit_levels(batch[~held], labels[~rows], rest)
            unseen[:, rows] = confidence_of_each(levels, batch[held])
        return self.fit_levels(batch, labels, tasks), unseen

    @abstractmethod
    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Confidence of each claim, a function of its problem alone.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """


def does_learn(scorer: Scorer) -> bool:
    """Whether a scorer learns from the problems that it is fitted to.

    Parameters
    ----------
    scorer : Scorer

    Returns
    -------
    bool
    """
    own = type(scorer).fit is not Scorer.fit
    return own if scorer.learns is None else scorer.learns


def confidence_of_each(scorers, batch):
    """Confidences, shape (n_scorers, n_claims); the same scorer is asked only once."""
    known = {id(scorer): scorer for scorer in scorers}
    known = {key: scorer.confidence(batch) for key, scorer in known.items()}
    return np.array([known[id(scorer)] for scorer in scorers])


def folds(n, groups, n_folds, rng):
    """Number of each problem's fold; all 0 where there are too few groups."""
    groups = np.arange(n) if groups is None else groups
    code = np.unique(groups, return_inverse=True)[1]
    n_groups = code.max() + 1
    return rng.permutation(n_groups)[code] % min(n_folds, n_groups)


def need_features(batch):
    """ValueError where the problems have no features yet."""
    if batch.features is None:
        raise ValueError(
            "the scorer needs features, but the problems have none yet: add some with "
            "skdcf.features"
        )
