"""Confidence moved by a number per group, so that one threshold suits all groups better."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..graphs import GraphBatch
from ..graphs.grouping import read_groups
from ..ops.hard import nonconformity_scores, path_risk
from ..ops.holdout import pick
from ..ops.overlap import fit_quantiles
from ._protocol import Scorer, Task
from ._resolve import as_scorer

FOLDS = 3


class GroupShiftScorer(Scorer):
    """Another scorer's confidence, moved by a number per group of problems.

    The path risk becomes R - q(x), where q(x) is the alpha-quantile of the nonconformity
    scores given the groups of the problem, fitted to training problems. One threshold then
    covers groups about alike. That is no guarantee within groups, and the usual one stays
    whatever q is; ``NoFalseClaim(by=...)`` promises more and needs more problems to
    calibrate.

    Parameters
    ----------
    scorer : default=None
        What filters take for ``scorer``.
    by : str, callable or list
        As in `skdcf.guarantees.NoFalseClaim`. Groups may overlap.

    Attributes
    ----------
    scorer_ : Scorer
        The fitted scorer.
    names_ : list
        The groups.
    shift_ : ndarray of shape (1 + n_groups,)
        What all problems get, and what those of each group get besides.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import GroupShiftScorer
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> scorer = GroupShiftScorer("frequency-score", by=lambda batch: batch.sizes > 7)
    >>> cf = HardCF(scorer, random_state=0).fit(graphs, y)
    >>> cf.n_calibration_, len(cf.scorer_.names_)
    (119, 2)
    """

    learns = True
    uses_alpha = True
    _parameter_constraints = {"by": [str, callable, list, tuple]}

    def __init__(
        self, scorer: Any = None, by: str | Callable | Sequence[Any] | None = None
    ) -> None:
        self.scorer = scorer
        self.by = by

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Fit the scorer, and the numbers to scores that it gives to other problems.

        Parameters
        ----------
        batch : GraphBatch
        labels : ndarray of shape (n_claims,)
        task : Task, optional

        Returns
        -------
        self
        """
        task = Task() if task is None else task
        inner = as_scorer(self.scorer, batch)
        scores = self._scores(inner, batch, labels, task)
        groups = self._groups(batch)
        self.names_ = sorted(frozenset().union(*groups), key=str)
        self.shift_ = fit_quantiles(scores, self._indicate(groups), task.alpha)
        self.scorer_ = inner.fit(batch, labels, task)
        return self

    def _scores(self, inner, batch, labels, task):
        """Nonconformity score of each problem, by a scorer that has not seen it."""
        n, out = len(batch), np.empty(len(batch))
        codes = np.arange(n) if task.groups is None else task.groups
        codes = np.unique(codes, return_inverse=True)[1]
        folds = (task.rng.permutation(codes.max() + 1) % FOLDS)[codes]
        for fold in np.unique(folds):
            rest, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            groups = None if task.groups is None else task.groups[rest]
            own = Task(task.alpha, groups, task.rng)
            fitted = clone(inner).fit(*pick(batch, labels, rest), own)
            part, known = pick(batch, labels, held)
            risk = path_risk(-np.asarray(fitted.confidence(part), float), part)
            out[held] = nonconformity_scores(risk, known, part.offsets)
        return out

    def _groups(self, batch):
        values, overlap = read_groups(self.by, batch)
        return values if overlap else [frozenset([value]) for value in values]

    def _indicate(self, groups):
        rows = [[name in some for name in self.names_] for some in groups]
        return np.array(rows, dtype=bool).reshape(len(groups), len(self.names_))

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        indicators = self._indicate(self._groups(batch))
        shift = self.shift_[0] + indicators @ self.shift_[1:]
        own = np.asarray(self.scorer_.confidence(batch), float)
        return own + shift[batch.problem_of]
