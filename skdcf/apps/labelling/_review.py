"""A person's checks of filtered answers, spent where they let most through."""

from __future__ import annotations

import heapq
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice
from ...estimators import check, decide
from ...graphs import GraphBatch, Labels, Problems, as_batch
from ...graphs.sources import makes_claim
from ._judging import Asked, Order, share_of_work
from .sources import WORDS, LabelSource, LabelStore, set_label_sources

#: What a check says; of "unsure" nobody knows that it is false, so that it stays.
_CHECKED = {"true": 1, "no claim": 1, "false": 0, "unsure": -1}
#: The verdicts of several people from the strictest on.
_FROM_STRICTEST = ("false", "unsure", "true", "no claim")

#: The metadata key that says how an answer came to be judged, and its value for reviews.
DRAWN, REVIEW = "sampling", "review"


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
    """An order that says which claim a person checks next, and what is kept then.

    A filter keeps some claims. A person checks others, in any number: what is found true is
    kept as well, if all that it builds on is kept. The guarantee of the filter does not change,
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
    it. Only `ExpectedFalse("share")` does not keep its guarantee then, and `describe` says
    what holds instead. Texts that are shown only because of checks are true.

    Verdicts of a review must not calibrate a filter, since their claims were chosen by risk:
    `reviewed` marks them, ``calibrate`` refuses them, and in ``fit`` they train.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_word_problems
    >>> from skdcf.features import reasoning_features
    >>> from skdcf.apps.labelling import ReviewOrder
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
        self._calibration = filter.calibration_
        self._level = self._calibration.guarantee.level(alpha, filter.alpha)
        self._batch = decision.batch
        self._path_risk = decision.path_risk
        self._kept_by_filter = decision.kept.copy()
        self._verdict = np.full(len(decision.kept), np.nan)  # as _CHECKED has them
        self._kept = decision.kept.copy()
        self.verdicts_: dict[tuple[int, int], str] = {}
        self._parents: dict[int, list[int]] = defaultdict(list)
        for parent, child in self._batch.edges.tolist():
            self._parents[child].append(parent)
        # What may be asked about, the smallest path risk first. A claim that is closed
        # meanwhile stays in it, and is passed over.
        self._open: list[tuple[float, int]] = []
        self._add_open(range(len(self._kept)))

    def next(self, among: NDArray[np.bool_] | None = None) -> Check | None:
        """The claim to check next.

        Parameters
        ----------
        among : ndarray of bool, shape (n_problems,), optional
            The problems that are asked about; None is all of them.

        Returns
        -------
        Check or None
            None where every claim that could be added was checked.
        """
        while self._open and not self._is_open(self._open[0][1]):
            heapq.heappop(self._open)
        if among is None:
            return self._check(self._open[0][1]) if self._open else None
        for _, row in sorted(self._open):
            if among[self._batch.problem_of[row]] and self._is_open(row):
                return self._check(row)
        return None

    def told(self, problem: int, claim: int, verdict: str | None) -> None:
        """Take in what a person says of a claim.

        Parameters
        ----------
        problem, claim : int
            As in `next`, or any other claim.
        verdict : {"true", "false", "unsure", "no claim"} or None
            "unsure" keeps nothing more, as "false" does, and "no claim" keeps what "true"
            keeps. None takes a verdict back.

        Raises
        ------
        ValueError
            If there is no such claim, or no such verdict.
        """
        check_choice("verdict", verdict, [*_CHECKED, None])
        if not 0 <= problem < len(self._batch):
            raise ValueError(f"problem is {problem}, but there are {len(self._batch)}")
        n_claims = int(self._batch.sizes[problem])
        if not 0 <= claim < n_claims:
            raise ValueError(f"claim is {claim}, but problem {problem} has {n_claims}")
        row = int(self._batch.offsets[problem]) + claim
        if verdict is None:
            self._verdict[row] = np.nan
            self.verdicts_.pop((problem, claim), None)
        else:
            self._verdict[row] = _CHECKED[verdict]
            self.verdicts_[problem, claim] = verdict
        self._keep_anew(problem)

    def masks(self) -> NDArray[Any]:
        """What is kept: by the filter, and by the person.

        Returns
        -------
        ndarray of shape (n_problems,)
            Objects: a boolean mask per problem.
        """
        return self._batch.split(self._kept.copy())

    def describe(self, error_rate: float = 0.0) -> str:
        """Describe the guarantee of what is kept, with the number of checks.

        Parameters
        ----------
        error_rate : float in [0, 1)
            Chance, at most, that a check calls a false claim true.

        Returns
        -------
        str
            The sentence.

        Raises
        ------
        ValueError
            If the error rate is not in [0, 1).
        """
        if not 0 <= error_rate < 1:
            raise ValueError(
                f"the error rate is {error_rate!r}, but must be at least 0 and below 1"
            )
        guarantee = self._calibration.guarantee
        sentence = self._calibration.describe(self._level)
        if (self._kept_by_filter & ~self._kept).any():
            sentence = guarantee.describe_after_removal(self._level)
        checks = f"{sentence}; {self.n_checks} claims were checked by a person"
        if not error_rate:
            return f"{checks}, and what was found true is kept as well"
        # Of the false claims that are asked about, a share 1 - error_rate is found. Nobody
        # knows which of the unsure ones are false, so all of them count.
        outside = ~self._kept_by_filter & ~np.isnan(self._verdict)
        n_false = (self._verdict[outside] != 1).sum() / (1 - error_rate)
        loss = error_rate * n_false / max(len(self._batch), 1)
        error = "the mean loss"
        if guarantee.is_probability:
            error = "the probability that the guarantee fails"
        return (
            f"{checks}, who calls a false claim true with a chance of at most "
            f"{error_rate:g}. That adds about {loss:.3g} to {error}: {error_rate:g} times "
            "the checked claims that are false, counting the unsure ones, per answer"
        )

    @property
    def n_checks(self) -> int:
        """Number of claims with a verdict that the filter does not keep."""
        return int((~self._kept_by_filter & ~np.isnan(self._verdict)).sum())

    def checked(self) -> list[list[int]]:
        """The claims that are kept because a person found them true.

        Returns
        -------
        list of list of int
            Their positions, one list for each problem.
        """
        added = self._batch.split(self._kept & ~self._kept_by_filter)
        return [np.flatnonzero(mask).tolist() for mask in added]

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
            1 true, 0 false or unsure, -1 for claims that nobody checked.
        """
        labels = [np.full(size, -1, dtype=np.int8) for size in self._batch.sizes]
        sources: list[list[LabelSource | None]] = [[None] * len(row) for row in labels]
        for (problem, claim), verdict in self.verdicts_.items():
            labels[problem][claim] = WORDS[verdict]
            sources[problem][claim] = LabelSource.now("human", by)
        graphs = []
        for graph, of_graph in zip(self._problems, sources, strict=True):
            marked = set_label_sources(graph, of_graph)
            metadata = {**(marked.metadata or {}), DRAWN: REVIEW}
            graphs.append(marked.replace(metadata=metadata))
        return GraphBatch.from_graphs(graphs), labels

    def _check(self, row):
        problem = int(self._batch.problem_of[row])
        claim = row - int(self._batch.offsets[problem])
        return Check(
            problem=problem, claim=claim, path_risk=float(self._path_risk[row])
        )

    def _is_open(self, row):
        """Whether a claim is neither kept nor judged, and all of its parents are kept."""
        if self._kept[row] or not np.isnan(self._verdict[row]):
            return False
        return all(self._kept[parent] for parent in self._parents.get(row, ()))

    def _add_open(self, rows):
        for row in filter(self._is_open, rows):
            heapq.heappush(self._open, (float(self._path_risk[row]), row))

    def _keep_anew(self, problem):
        """Parents first: what the filter keeps and nobody called false, and what is true."""
        rows = range(*self._batch.offsets[problem : problem + 2].tolist())
        for row in sorted(rows, key=self._batch.depth.__getitem__):
            verdict = self._verdict[row]
            kept = verdict == 1 or (self._kept_by_filter[row] and verdict != 0)
            parents = self._parents.get(row, ())
            self._kept[row] = kept and all(self._kept[parent] for parent in parents)
        self._add_open(rows)


def strictest(words: Iterable[str | None]) -> str | None:
    """What stands of a claim that several people judged: what lets the least through.

    Parameters
    ----------
    words : iterable of {"true", "false", "unsure", "no claim"} or None
        None where somebody has said nothing, or took it back.

    Returns
    -------
    {"true", "false", "unsure", "no claim"} or None
        None where nothing is said.
    """
    said = set(words)
    return next((word for word in _FROM_STRICTEST if word in said), None)


class BudgetOrder(Order):
    """The claims of a review, one after the other, until a number of checks is spent.

    Several people may review at once, each with a program of their own and one journal.
    Each begins with other answers. Where they differ about a claim, what lets less through
    stands.

    Parameters
    ----------
    review : ReviewOrder
        It takes in what the journal holds.
    budget : int
        Number of checks, those of everybody together.
    """

    done = "The checks are spent, or no claim is left that could be added."
    one_false_ends = False

    def __init__(self, review: ReviewOrder, budget: int) -> None:
        self.review = review
        self.budget = budget
        self._n_kept_by_filter = sum(int(mask.sum()) for mask in review.masks())
        self._n_taken = 0  # judgements of the journal
        self._words: dict[Any, dict[str, str | None]] = defaultdict(dict)
        self._lock = threading.Lock()

    def take_in(self, store: LabelStore) -> None:
        """Tell the review what was judged meanwhile.

        Parameters
        ----------
        store : LabelStore
            Always the same one, of the answers of the review.
        """
        with self._lock:
            new = store.events[self._n_taken :]
            self._n_taken += len(new)
            positions = defaultdict(list)
            for i in range(len(store.graphs)) if new else ():
                positions[store.digest(i)].append(i)
            for event in new:
                if "label" not in event:  # a note
                    continue
                claim = event["claim"]
                words = self._words[event["problem"], claim]
                words[event["by"]] = event["label"]
                for i in positions[event["problem"]]:
                    self.review.told(i, claim, strictest(words.values()))

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the claim to check next.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            One problem with one claim, or none.
        """
        self.take_in(store)
        if self.review.n_checks >= self.budget:
            return []
        mine = share_of_work(store, by)
        check = self.review.next(mine) or self.review.next()
        return [(check.problem, (check.claim,))] if check else []

    def masks(self, store: LabelStore) -> list[list[bool]]:
        """Give what is kept of each answer by now.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        list of list of bool
            One mask for each answer.
        """
        self.take_in(store)
        return [mask.tolist() for mask in self.review.masks()]

    def progress(self, store: LabelStore) -> str:
        """Say how many checks are spent, and what is kept by them.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        str
            A sentence.
        """
        n_kept = sum(map(sum, self.masks(store)))
        return (
            f"{self.review.n_checks} of {self.budget} checks; {n_kept} claims are kept, "
            f"{self._n_kept_by_filter} without checks"
        )


class AuditOrder(Order):
    """The kept claims of texts that were drawn blindly.

    Parameters
    ----------
    masks : sequence of ndarray of bool
        What a filter keeps of each answer, in the order of the draw.
    looks : sequence of int, optional
        Numbers of texts after which the bound is read, in increasing order; None is one
        look at all texts.
    """

    done = "Every text that was drawn is judged."
    one_false_ends = True

    def __init__(
        self,
        masks: Sequence[NDArray[np.bool_]],
        looks: Sequence[int] | None = None,
    ) -> None:
        self._masks = [mask.tolist() for mask in masks]
        self._looks = list(looks or [len(masks)])

    def look(self, store: LabelStore) -> tuple[int, int, int]:
        """Return the numbers of the last look whose texts are all judged, or of the first.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        n_texts, n_wrong, n_open : int
            Texts of the look, those that are wrong, and those that are not judged yet.
        """
        verdicts = self.verdicts(store)
        complete = [n for n in self._looks if "open" not in verdicts[:n]]
        n_texts = complete[-1] if complete else self._looks[0]
        counted = verdicts[:n_texts]
        return n_texts, counted.count("wrong"), counted.count("open")

    def verdicts(self, store: LabelStore) -> list[str]:
        """Say of each text whether it is right.

        Parameters
        ----------
        store : LabelStore
            What was said so far, by everybody.

        Returns
        -------
        list of {"right", "wrong", "open"}
            A text is wrong if a kept claim is not true, and open while that is not known.
        """
        verdicts = []
        for words in self._words(store):
            wrong = any(word in ("false", "unsure") for word in words.values())
            is_open = None in words.values()
            verdicts.append("wrong" if wrong else "open" if is_open else "right")
        return verdicts

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the texts that are open, each with the kept claims that nobody has judged.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            Those of the next look, first those that nobody else begins with.
        """
        asked = []
        verdicts = self.verdicts(store)
        n = next((n for n in self._looks if "open" in verdicts[:n]), len(verdicts))
        of_texts = zip(verdicts[:n], self._words(store)[:n], strict=True)
        for i, (verdict, words) in enumerate(of_texts):
            if verdict == "open":
                asked.append((i, tuple(v for v, word in words.items() if word is None)))
        mine = share_of_work(store, by)
        return asked if mine is None else sorted(asked, key=lambda a: not mine[a[0]])

    def masks(self, store: LabelStore) -> list[list[bool]]:
        """Give what the filter keeps, whatever is said of it.

        Parameters
        ----------
        store : LabelStore
            Not looked at.

        Returns
        -------
        list of list of bool
            One mask for each text.
        """
        return self._masks

    def progress(self, store: LabelStore) -> str:
        """Say how many texts are judged.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        str
            A sentence.
        """
        verdicts = self.verdicts(store)
        n_judged = len(verdicts) - verdicts.count("open")
        return f"{n_judged} of {len(verdicts)} texts judged"

    def _words(self, store):
        """What stands of each kept claim, one dictionary for each text."""
        names = store.annotators()
        words = []
        for i, mask in enumerate(self._masks):
            words_of_judges = [store.said(i, by) for by in names]
            kept = np.flatnonzero(mask).tolist()
            words.append(
                {v: strictest(row[v] for row in words_of_judges) for v in kept}
            )
        return words


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
    batch, labels = check(filter, X, y)
    truth = batch.split(labels)
    facts = batch.split((labels == 1) & makes_claim(batch))
    review = ReviewOrder(filter, batch, alpha)
    n_checked = 0
    curve = []
    for per_answer in checks:
        while n_checked < round(per_answer * len(batch)) and (asked := review.next()):
            is_true = truth[asked.problem][asked.claim] == 1
            review.told(asked.problem, asked.claim, "true" if is_true else "false")
            n_checked += 1
        n_true = sum(
            int((mask & row).sum())
            for mask, row in zip(review.masks(), facts, strict=True)
        )
        curve.append(n_true / len(batch))
    return curve
