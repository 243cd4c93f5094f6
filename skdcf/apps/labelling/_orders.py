"""Orders in which the claims are labelled: random, or most doubtful first."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...guarantees import NoFalseClaim
from ...labels import Labels
from ...ops.conformal import conformal_threshold
from ...ops.hard import nonconformity_scores
from ...uses import check
from ._store import LabelStore

Asked = list[tuple[int, tuple[int, ...]]]


def next_to_label(
    filter: Any, X: Any, y: Labels, alpha: float | None = None
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the calibration problems whose labels could raise the threshold.

    Calibration treats unknown labels as false, which is safe but can reduce retention
    considerably. If the score of a problem is above the threshold, its labels cannot raise the
    threshold. If the score is at or below the threshold because of unjudged claims, judging
    these claims may raise the threshold. With a higher threshold, the filter keeps more claims in
    new answers.

    Parameters
    ----------
    filter : fitted filter
        A filter, or a fitted pipeline that ends in a filter. The function uses the scorer of the
        filter, and ignores the calibration of the filter.
    X : sequence of ReasoningGraph, or GraphBatch
        Calibration problems.
    y : sequence of arrays, one per problem
        Claim labels: 1 true, 0 false, -1 unknown.
    alpha : float in (0, 1), optional
        The level. If None, the filter's level is used.

    Returns
    -------
    problems : list of (problem, claims)
        Positions of the problems, each with the positions of the claims to judge, in order of
        decreasing path risk. If one of these claims is false, the others need not be judged. The
        problems with the fewest claims to judge come first, and among these the problems that
        raise the threshold most.

    Raises
    ------
    ValueError
        If the problems, the labels or alpha are invalid, or if the filter has a ``guarantee``
        other than None.

    Notes
    -----
    The threshold is the k-th smallest score. If one of the k smallest scores rises above the
    threshold, the threshold rises to the next larger score or to the new score. Problems whose
    score is low because of known false claims are excluded, even if they have unknown labels.
    Problems that are not used for calibration, because another answer to the same question is
    used, are also excluded.

    Examples
    --------
    >>> from skdcf import HardCF, ReasoningGraph
    >>> from skdcf.apps.labelling._orders import next_to_label
    >>> graphs = [ReasoningGraph([[0.9], [0.1 * i]], []) for i in range(9)]
    >>> y = [[1, 0] if i < 6 else [-1, 0] for i in range(9)]
    >>> cf = HardCF(0, alpha=0.2).fit(graphs, y)
    >>> next_to_label(cf, graphs, y)
    [(6, (0,)), (7, (0,)), (8, (0,))]
    """
    if filter.guarantee is not None:
        raise ValueError(
            f"filter must have guarantee=None, got guarantee={filter.guarantee!r}. Fit "
            "the filter without this guarantee (skdcf fit --show 1)"
        )
    batch, labels = check(filter, X, y)
    alpha = filter.alpha if alpha is None else alpha
    # Calibration uses one answer per question, and only as many questions as required.
    part = filter.calibration_part(batch, np.zeros(batch.n_claims, dtype=int))
    rows, _ = part.choose(NoFalseClaim(), alpha, fewest=True)
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    scores = nonconformity_scores(risk, labels, batch.offsets)[rows]
    hoped = nonconformity_scores(risk, labels != 0, batch.offsets)[rows]
    threshold = conformal_threshold(np.sort(scores), alpha)
    asked = []
    for at in np.flatnonzero((scores <= threshold) & (hoped > threshold)).tolist():
        i = int(rows[at])
        claims = slice(batch.offsets[i], batch.offsets[i + 1])
        to_judge = _to_judge(labels[claims], risk[claims], threshold)
        raised = np.where(np.arange(len(scores)) == at, hoped, scores)
        new_threshold = conformal_threshold(np.sort(raised), alpha)
        asked.append((len(to_judge), -new_threshold, i, to_judge))
    return [(i, claims) for *_, i, claims in sorted(asked)]


def _to_judge(labels, risk, threshold):
    """Return the unjudged claims whose path risk keeps the score at or below the threshold."""
    rows = np.flatnonzero((labels == -1) & (risk <= threshold))
    return tuple(rows[np.argsort(-risk[rows], kind="stable")].tolist())


class RandomOrder:
    """Order the problems at random.

    Parameters
    ----------
    seed : int, default=0
        Seed of the order.
    """

    #: Text that the page shows when all claims are labelled.
    done = "Every claim is judged."
    #: Whether a problem is finished as soon as one of its claims is judged false.
    one_false_ends = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return all problems with at least one claim that the annotator has not judged.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            Positions of the problems, each paired with the positions of its claims to label.
        """
        asked = []
        for i in self.order(store):
            words = enumerate(store.said(i, by))
            if claims := tuple(v for v, word in words if word is None):
                asked.append((i, claims))
        return asked

    def order(self, store: LabelStore) -> list[int]:
        """Return the reproducible order of all problems, which does not depend on verdicts.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.

        Returns
        -------
        order : list of int
            Positions of the problems, in random order.
        """

        def key(i):
            return hashlib.sha256(f"{self.seed} {store.digests[i]}".encode()).digest()

        return sorted(range(len(store.graphs)), key=key)

    def masks(self) -> NDArray[Any] | None:
        """Return the masks of the kept claims, or None if the page should show all claims."""
        return None

    def progress(self) -> str | None:
        """Return a description of the progress, or None to let the page count the judged claims."""
        return None


class FilterOrder(RandomOrder):
    """Select the claims whose labels can raise a filter's threshold.

    Parameters
    ----------
    filter : fitted filter
        Filter whose scorer determines the order of the claims. The calibration of this filter is
        ignored.
    graphs : sequence of ReasoningGraph
        The problems to label, which will be used for calibration.
    alpha : float, optional
        The level. If None, the filter's level is used.
    """

    done = "No further label can change the threshold."
    one_false_ends = True

    def __init__(self, filter: Any, graphs: Any, alpha: float | None = None):
        self.alpha = alpha
        self.filter = filter
        self.batch = graphs

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return the result of `next_to_label`, treating "unknown" verdicts as false.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            Positions of the problems, each paired with the positions of its claims to label.
        """
        labels = [
            np.where([word == "unknown" for word in store.said(i, by)], 0, row)
            for i, row in enumerate(store.labels(by))
        ]
        return next_to_label(self.filter, self.batch, labels, self.alpha)

    def order(self, store: LabelStore) -> list[int]:
        """Return all problems, the most doubtful first.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.

        Returns
        -------
        order : list of int
            Positions of the problems.
        """
        asked = dict(self(store, ""))  # without the verdicts of any annotator
        return list(dict.fromkeys([*asked, *range(len(store.graphs))]))
