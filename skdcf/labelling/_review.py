"""A person's checks of filtered answers, spent where they let most through."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice
from ..estimators import decide
from ..graphs import GraphBatch, Labels, Problems, as_batch
from .sources import WORDS, LabelSource, set_label_sources

#: The metadata key that says how an answer came to be judged, and its value for reviews.
DRAWN, REVIEW = "drawn", "review"


class Check(NamedTuple):
    """A claim that a person is asked about.

    Parameters
    ----------
    problem : int
        Position of the problem.
    claim : int
        Position of the claim in its problem.
    path_risk : float
        What decides the order: the smallest is asked first.
    """

    problem: int
    claim: int
    path_risk: float


class ReviewOrder:
    """Which claim a person checks next, and what is kept then.

    A filter keeps some claims. A person checks others, in any number: what is found true is
    kept as well, if all that it builds on is kept. The promise of the filter stays as it is,
    for every number of checks, since what is added is true. Asked is always about the claim
    with the smallest path risk among those whose parents are all kept, over the whole batch.

    Parameters
    ----------
    filter : fitted filter
        Its masks are where the review begins.
    X : sequence of ReasoningGraph, or GraphBatch
        The answers to review.
    alpha : float in (0, 1), optional
        The level; None is the filter's own.

    Attributes
    ----------
    verdicts_ : dict of (int, int) to str
        "true", "false" or "unsure" by problem and claim; a later verdict is the one that
        counts.

    Notes
    -----
    "True" has to mean what it meant for the labels that calibrated. An error that is
    noticed in what the filter kept may be told as well: it goes out with all that builds on
    it. Verdicts of a review must not calibrate a filter, since their claims were chosen by
    risk: `reviewed` marks them, and ``fit`` and ``calibrate`` refuse them.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_word_problems
    >>> from skdcf.features import reasoning_features
    >>> from skdcf.labelling import ReviewOrder
    >>> graphs, y = make_word_problems(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(features=reasoning_features(), alpha=0.05, random_state=0)
    >>> cf = cf.fit(graphs[:200], y[:200])
    >>> review = ReviewOrder(cf, graphs[200:])
    >>> before = sum(int(mask.sum()) for mask in review.masks())
    >>> for _ in range(50):  # a person, who here knows the labels
    ...     check = review.next()
    ...     truth = y[200 + check.problem][check.claim] == 1
    ...     review.told(check.problem, check.claim, "true" if truth else "false")
    >>> sum(int(mask.sum()) for mask in review.masks()) > before + 30
    True
    """

    def __init__(self, filter: Any, X: Problems, alpha: float | None = None) -> None:
        decision = decide(filter, as_batch(X), alpha)
        self._problems = as_batch(X)
        self._promise = filter.calibration_.describe(
            filter.calibration_.guarantee.level(alpha, filter.alpha)
        )
        self._batch = decision.batch
        self._path_risk = decision.path_risk
        self._kept_by_filter = decision.kept.copy()
        self._verdict = np.full(len(decision.kept), np.nan)  # 1, 0, -1 as in WORDS
        self._kept = decision.kept.copy()
        self.verdicts_: dict[tuple[int, int], str] = {}
        levels = np.argsort(self._batch.depth, kind="stable")
        bounds = np.flatnonzero(np.diff(self._batch.depth[levels])) + 1
        self._by_depth = np.split(levels, bounds)

    def next(self) -> Check | None:
        """The claim to check next.

        Returns
        -------
        Check or None
            None where every claim that could be added was checked.
        """
        is_open = (
            ~self._kept & np.isnan(self._verdict) & ~self._lacks_a_parent(self._kept)
        )
        rows = np.flatnonzero(is_open)
        if not len(rows):
            return None
        row = int(rows[np.argmin(self._path_risk[rows])])
        problem = int(self._batch.problem_of[row])
        claim = row - int(self._batch.offsets[problem])
        return Check(
            problem=problem, claim=claim, path_risk=float(self._path_risk[row])
        )

    def told(self, problem: int, claim: int, verdict: str) -> None:
        """Take in what a person says of a claim.

        Parameters
        ----------
        problem, claim : int
            As in `next`, or any other claim.
        verdict : {"true", "false", "unsure"}
            "unsure" keeps nothing more, as "false" does.

        Raises
        ------
        ValueError
            If there is no such claim, or no such verdict.
        """
        check_choice("verdict", verdict, [word for word in WORDS if word is not None])
        if not 0 <= problem < len(self._batch):
            raise ValueError(f"problem is {problem}, but there are {len(self._batch)}")
        n_claims = int(self._batch.sizes[problem])
        if not 0 <= claim < n_claims:
            raise ValueError(f"claim is {claim}, but problem {problem} has {n_claims}")
        row = int(self._batch.offsets[problem]) + claim
        self._verdict[row] = WORDS[verdict]
        self.verdicts_[problem, claim] = verdict
        self._kept = self._keep()

    def masks(self) -> NDArray[Any]:
        """What is kept: by the filter, and by the person.

        Returns
        -------
        ndarray of shape (n_problems,)
            Objects: a boolean mask per problem.
        """
        return self._batch.split(self._kept.copy())

    def describe(self, error_rate: float = 0.0) -> str:
        """The promise of what is kept, with the checks.

        Parameters
        ----------
        error_rate : float in [0, 1)
            Chance, at most, that a check calls a false claim true.

        Returns
        -------
        str
            The promise.

        Raises
        ------
        ValueError
            If the error rate is not in [0, 1).
        """
        if not 0 <= error_rate < 1:
            raise ValueError(f"error_rate is {error_rate!r}, but must be in [0, 1)")
        outside = ~self._kept_by_filter & ~np.isnan(self._verdict)
        checks = (
            f"{self._promise}; {int(outside.sum())} claims were checked by a person"
        )
        if not error_rate:
            return f"{checks}, and what was found true is kept as well"
        # Of the false claims that are asked about, a share 1 - error_rate is found.
        n_false = (self._verdict[outside] == 0).sum() / (1 - error_rate)
        loss = error_rate * n_false / max(len(self._batch), 1)
        return (
            f"{checks}, who calls a false claim true with a chance of at most "
            f"{error_rate:g}. That adds at most {loss:.3g} to the probability that something "
            f"false is kept: {error_rate:g} times the false claims that were asked about, per "
            "answer"
        )

    def reviewed(self, by: str) -> tuple[GraphBatch, list[NDArray[np.int8]]]:
        """The answers with the verdicts as labels, marked as those of a review.

        Parameters
        ----------
        by : str
            Who judged.

        Returns
        -------
        graphs : GraphBatch
            The problems, with the source of each label.
        labels : list of ndarray
            1 true, 0 false, -1 for claims that nobody checked or was sure of.
        """
        labels = [np.full(size, -1, dtype=np.int8) for size in self._batch.sizes]
        sources: list[list[LabelSource | None]] = [[None] * len(row) for row in labels]
        for (problem, claim), verdict in self.verdicts_.items():
            labels[problem][claim] = int(WORDS[verdict] or 0)
            sources[problem][claim] = LabelSource.now("human", by)
        graphs = []
        for graph, of_graph in zip(self._problems, sources, strict=True):
            marked = set_label_sources(graph, of_graph)
            metadata = {**(marked.metadata or {}), DRAWN: REVIEW}
            graphs.append(marked.replace(metadata=metadata))
        return GraphBatch.from_graphs(graphs), labels

    def _lacks_a_parent(self, kept):
        """Whether a parent of each claim is not kept."""
        parent, child = self._batch.edges.T
        missing = np.bincount(child, ~kept[parent], minlength=len(kept))
        return missing > 0

    def _keep(self):
        """Parents first: what the filter keeps and nobody called false, and what is true."""
        kept = (self._kept_by_filter & (self._verdict != 0)) | (self._verdict == 1)
        for rows in self._by_depth[1:]:
            kept[rows] &= ~self._lacks_a_parent(kept)[rows]
        return kept


def review_curve(
    filter: Any,
    X: Problems,
    y: Labels,
    alpha: float | None = None,
    checks: tuple[float, ...] = (0, 1, 2, 3),
) -> list[float]:
    """True claims kept per answer, by the number of checks per answer.

    Parameters
    ----------
    filter : fitted filter
        Its masks are where the review begins.
    X : sequence of ReasoningGraph, or GraphBatch
        Labelled answers, such as those that calibrated: before anybody checks anything.
    y : sequence of 1-D arrays, one per problem
        Their labels, which stand for what a person would say.
    alpha : float in (0, 1), optional
        The level; None is the filter's own.
    checks : sequence of float
        Checks per answer, on average, in increasing order.

    Returns
    -------
    list of float
        True claims kept per answer, one number for each entry of ``checks``.
    """
    batch, labels = filter.check(X, y)
    truth = batch.split(labels)
    review = ReviewOrder(filter, batch, alpha)
    n_checked = 0
    curve = []
    for per_answer in checks:
        while n_checked < round(per_answer * len(batch)) and (check := review.next()):
            is_true = truth[check.problem][check.claim] == 1
            review.told(check.problem, check.claim, "true" if is_true else "false")
            n_checked += 1
        n_true = sum(
            int((mask & (row == 1)).sum())
            for mask, row in zip(review.masks(), truth, strict=True)
        )
        curve.append(n_true / len(batch))
    return curve
