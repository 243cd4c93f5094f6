"""Which claims are worth the next hour of labelling, and in what order."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..graphs import Labels
from ..guarantees import NoFalseClaim
from ..ops.conformal import conformal_threshold

if TYPE_CHECKING:
    from .sources import LabelStore

Asked = list[tuple[int, tuple[int, ...]]]


class NextProblem(NamedTuple):
    """A problem that labels can move the threshold with.

    Parameters
    ----------
    problem : int
        Its position.
    claims : tuple of int
        Positions of the claims to judge, the riskiest of the kept ones first. If all of
        them are true, the threshold moves; where one is false, the others need not be
        judged.
    gain : float
        How far the threshold rises if they are true and nothing else changes.
    """

    problem: int
    claims: tuple[int, ...]
    gain: float


def next_to_label(
    filter: Any, X: Any, y: Labels, alpha: float | None = None
) -> list[NextProblem]:
    """The calibration problems whose labels would move the threshold.

    An unknown label counts as false in calibration, which is safe and may cost a great
    deal. It costs nothing in a problem whose score lies above the threshold: no label
    there can move it. Where the score lies at or below the threshold because of claims
    that nobody judged, judging these may raise it, and more is kept of every new answer.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one. Its scorer is used, not its calibration.
    X : sequence of ReasoningGraph, or GraphBatch
        Calibration problems.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    list of NextProblem
        First those that need the fewest judgements, then those with the larger gain.

    Raises
    ------
    ValueError
        On bad problems, labels or alpha, or if the filter has a guarantee of its own.

    Notes
    -----
    The threshold is the k-th smallest score. It rises if one of the k smallest scores
    rises above it, to the next larger score or to the new one. A problem whose known
    false claims hold its score down is left out, whatever else is unknown in it, and so is
    one that would not calibrate, as another answer to its question does.

    Examples
    --------
    >>> from skdcf import HardCF, ReasoningGraph
    >>> from skdcf.labelling import next_to_label
    >>> graphs = [ReasoningGraph([[0.9], [0.1 * i]], []) for i in range(9)]
    >>> y = [[1, 0] if i < 6 else [-1, 0] for i in range(9)]
    >>> cf = HardCF(0, alpha=0.2).fit(graphs, y)
    >>> [(n.problem, n.claims) for n in next_to_label(cf, graphs, y)]
    [(6, (0,)), (7, (0,)), (8, (0,))]
    """
    if filter.guarantee is not None:
        raise ValueError(
            f"guarantee={filter.guarantee!r} has thresholds of its own; what moves them is "
            "only known for the standard promise, guarantee=None"
        )
    batch, labels = filter.check(X, y)
    alpha = filter.alpha if alpha is None else alpha
    # One answer per question calibrates, and of the questions no more than are needed.
    part = filter.calibration_part(batch, np.zeros(batch.n_claims, dtype=int))
    rows, _ = part.choose(NoFalseClaim(), alpha, fewest=True)
    now = filter.calibration_scores(batch, labels)[rows]
    hoped = filter.calibration_scores(batch, np.where(labels == -1, 1, labels))[rows]
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    ordered = np.sort(now)
    threshold = conformal_threshold(ordered, alpha)
    found = []
    for at in np.flatnonzero((now <= threshold) & (hoped > threshold)).tolist():
        i = int(rows[at])
        claims = slice(batch.offsets[i], batch.offsets[i + 1])
        wanted = _to_judge(labels[claims], risk[claims], now[at], threshold)
        others = np.delete(ordered, np.searchsorted(ordered, now[at]))
        moved = conformal_threshold(np.sort(np.append(others, hoped[at])), alpha)
        found.append(NextProblem(i, wanted, _rise(moved, threshold)))
    return sorted(found, key=lambda n: (len(n.claims), -n.gain, n.problem))


def _rise(moved, threshold):
    return 0.0 if moved == threshold else float(moved - threshold)


def _to_judge(labels, risk, score, threshold):
    """Unknown claims whose path risk holds the score at or below the threshold."""
    lowered = risk - (risk[labels != 1].min() - score)  # as the score was, by rounding
    rows = np.flatnonzero((labels == -1) & (lowered <= threshold))
    return tuple(rows[np.argsort(-risk[rows], kind="stable")].tolist())


class Order(Protocol):
    """What a labelling page asks for, and in what order."""

    #: What the page says when nothing is left to ask for.
    done: str
    #: Whether nothing else is asked of a problem once one of its claims is false.
    one_false_ends: bool

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """The problems to show next, each with the claims that are asked for."""


@dataclass(frozen=True)
class RandomOrder:
    """Problems in an order that nothing about them decides.

    Parameters
    ----------
    seed : int, default=0
        Another seed, another order.
    """

    seed: int = 0
    done = "Every claim is judged."
    one_false_ends = False

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give all problems that hold a claim without a label.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        words = ((i, store.said(i, by)) for i in self.order(store))
        return [
            (i, tuple(v for v, word in enumerate(row) if word is None))
            for i, row in words
            if None in row
        ]

    def order(self, store: LabelStore) -> list[int]:
        """Give the order of all problems, which is the same at the next start.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        list of int
            Positions of the problems.
        """

        def key(i):
            return hashlib.sha256(f"{self.seed} {store.digest(i)}".encode()).digest()

        return sorted(range(len(store.graphs)), key=key)

    def passed_over(self, store: LabelStore, by: str) -> list[int]:
        """Give the problems that nobody judged although a later one was judged.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of int
            Where there are any, those that were judged are not a random draw.
        """
        order = self.order(store)
        seen = [any(word is not None for word in store.said(i, by)) for i in order]
        last = max(np.flatnonzero(seen), default=-1)
        return [i for i, was in zip(order[:last], seen[:last], strict=True) if not was]


class FilterOrder:
    """First the claims whose labels can move the threshold of a filter.

    Parameters
    ----------
    filter : fitted filter
        Its scorer orders the claims; its calibration is not used.
    graphs : sequence of ReasoningGraph
        The problems that are judged, which will calibrate.
    alpha : float, optional
        None is the filter's own.
    """

    done = "No label can move the threshold any more."
    one_false_ends = True

    def __init__(self, filter: Any, graphs: Any, alpha: float | None = None):
        self.alpha = alpha
        self.filter, self.batch = filter, graphs

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the problems of `next_to_label`; a claim that is unsure counts as false.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        labels = [
            np.where([word == "unsure" for word in store.said(i, by)], 0, row)
            for i, row in enumerate(store.labels(by))
        ]
        found = next_to_label(self.filter, self.batch, labels, self.alpha)
        return [(n.problem, n.claims) for n in found]


@dataclass(frozen=True)
class Disagreements:
    """The claims that two people judged differently.

    Parameters
    ----------
    first, second : str
        Their names, as in the journal.
    """

    first: str
    second: str
    done = "Nothing is left on which the two disagree."
    one_false_ends = False

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the problems with claims that are not settled yet.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who settles.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        found = defaultdict(tuple)
        for i, v, a, b in store.compare(self.first, self.second, by):
            found[i] += (v,) * (a != b)
        return [(i, claims) for i, claims in found.items() if claims]
