"""Select the claims that people check in reviews and audits of filtered answers."""

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

#: Labels of the verdicts. An "unsure" claim is not known to be false, so it is not removed if the
#: filter kept it.
_CHECKED = {"true": 1, "no claim": 1, "false": 0, "unsure": -1}
#: Verdicts sorted from the strictest to the most lenient.
_FROM_STRICTEST = ("false", "unsure", "true", "no claim")

#: Metadata key for the method by which an answer was selected for labelling, and the value for
#: reviews.
DRAWN, REVIEW = "sampling", "review"


class Check(NamedTuple):
    """A claim that a person should check.

    Parameters
    ----------
    problem : int
        Problem index.
    claim : int
        Position of the claim in its problem.
    path_risk : float
        Path risk of the claim. Claims are checked in increasing order of path risk.
    """

    problem: int
    claim: int
    path_risk: float


class ReviewOrder:
    """Select dropped claims for a person to check, and keep the claims that are found to be true.

    A person can check any number of dropped claims. A claim that is judged true is kept if all
    its ancestors are kept. The filter's guarantee holds for every number of checks, because only
    true claims are added. Among the dropped claims whose parents are all kept, the claim with the
    smallest path risk is checked next.

    Parameters
    ----------
    filter : fitted filter
        The filter whose kept claims are the starting point of the review.
    X : sequence of ReasoningGraph, or GraphBatch
        The answers to review.
    alpha : float in (0, 1), optional
        The level. If None, the filter's level is used.

    Attributes
    ----------
    verdicts_ : dict of (int, int) to str
        The latest verdict ("true", "false", "unsure" or "no claim"), keyed by problem and
        claim.

    Notes
    -----
    A verdict "true" must have the same meaning as in the calibration labels. A person may also
    report an error in a claim that the filter kept. This claim and all its descendants are then
    removed. After a removal, the guarantee `ExpectedFalse()` no longer holds, and
    `describe` states the guarantee that holds instead. All other guarantees still hold. Texts
    that are shown only because of checks are true.

    Verdicts from a review must not be used for calibration, because the claims were selected by
    risk. The labels are marked by `reviewed`, rejected by ``calibrate``, and used by ``fit`` only
    for training.

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
    >>> for _ in range(50):  # simulate a person who knows the labels
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
        # The verdicts are values of _CHECKED, or NaN.
        self._verdict = np.full(len(decision.kept), np.nan)
        self._kept = decision.kept.copy()
        self.verdicts_: dict[tuple[int, int], str] = {}
        self._parents: dict[int, list[int]] = defaultdict(list)
        for parent, child in self._batch.edges.tolist():
            self._parents[child].append(parent)
        # Heap of the claims that can be checked, ordered by path risk. Claims that can no longer
        # be checked stay in the heap and are skipped.
        self._open: list[tuple[float, int]] = []
        self._add_open(range(len(self._kept)))

    def next(self, among: NDArray[np.bool_] | None = None) -> Check | None:
        """Return the claim to check next.

        Parameters
        ----------
        among : ndarray of bool of shape (n_problems,), optional
            Mask of the problems to select from. By default, any problem can be selected.

        Returns
        -------
        check : Check or None
            The claim, or None if every claim that could be added has been checked.
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
        """Record a person's verdict on a claim.

        Parameters
        ----------
        problem, claim : int
            Positions of the problem and of the claim. The claim need not be the result of `next`.
        verdict : {"true", "false", "unsure", "no claim"} or None
            The verdict. Only the verdicts "true" and "no claim" add the claim to the kept claims.
            The value None withdraws the previous verdict.

        Raises
        ------
        ValueError
            If the claim does not exist, or if the verdict is invalid.
        """
        check_choice("verdict", verdict, [*_CHECKED, None])
        if not 0 <= problem < len(self._batch):
            raise ValueError(
                f"problem must be a nonnegative integer less than {len(self._batch)}, got "
                f"{problem}"
            )
        n_claims = int(self._batch.sizes[problem])
        if not 0 <= claim < n_claims:
            raise ValueError(
                f"claim must be a nonnegative integer less than {n_claims} for problem "
                f"{problem}, got {claim}"
            )
        row = int(self._batch.offsets[problem]) + claim
        if verdict is None:
            self._verdict[row] = np.nan
            self.verdicts_.pop((problem, claim), None)
        else:
            self._verdict[row] = _CHECKED[verdict]
            self.verdicts_[problem, claim] = verdict
        self._keep_anew(problem)

    def masks(self) -> NDArray[Any]:
        """Return the masks of the claims that are kept after the checks.

        Returns
        -------
        masks : ndarray of shape (n_problems,)
            Object array with one boolean mask per problem.
        """
        return self._batch.split(self._kept.copy())

    def describe(self, error_rate: float = 0.0) -> str:
        """Return a description of the guarantee and of the number of checks.

        Parameters
        ----------
        error_rate : float in [0, 1)
            Upper bound on the probability that a person judges a false claim to be true.

        Returns
        -------
        description : str
            Description of the guarantee and of the number of checks.

        Raises
        ------
        ValueError
            If the error rate is not in [0, 1).
        """
        if not 0 <= error_rate < 1:
            raise ValueError(
                f"the error rate must be at least 0 and less than 1, got {error_rate!r}"
            )
        guarantee = self._calibration.guarantee
        sentence = self._calibration.describe(self._level)
        if (self._kept_by_filter & ~self._kept).any():
            sentence = guarantee.describe_after_removal(self._level)
        checks = f"{sentence}; {self.n_checks} claims were checked by a person"
        if not error_rate:
            return f"{checks}, and the claims judged true are kept as well"
        # A check detects a false claim with probability 1 - error_rate. Unsure claims may be
        # false, so all of them are counted as false.
        outside = ~self._kept_by_filter & ~np.isnan(self._verdict)
        n_false = (self._verdict[outside] != 1).sum() / (1 - error_rate)
        loss = error_rate * n_false / max(len(self._batch), 1)
        error = "the mean loss"
        if guarantee.is_probability:
            error = "the probability that the guarantee fails"
        return (
            f"{checks}. The person calls a false claim true with probability at most "
            f"{error_rate:g}. Such mistakes add about {loss:.3g} to {error}, estimated from "
            "the number of checked claims per answer that are false or unsure"
        )

    @property
    def n_checks(self) -> int:
        """Return the number of claims with a verdict, excluding claims that the filter keeps."""
        return int((~self._kept_by_filter & ~np.isnan(self._verdict)).sum())

    def checked(self) -> list[list[int]]:
        """Return the claims that are kept because a person found them true.

        Returns
        -------
        claims : list of list of int
            Positions of the claims, one list per problem.
        """
        added = self._batch.split(self._kept & ~self._kept_by_filter)
        return [np.flatnonzero(mask).tolist() for mask in added]

    def reviewed(self, by: str) -> tuple[GraphBatch, list[NDArray[np.int8]]]:
        """Return the answers, labelled with the verdicts and marked as reviewed.

        Parameters
        ----------
        by : str
            Name of the person who checked the claims.

        Returns
        -------
        graphs : GraphBatch
            The problems, whose metadata contain the source of each label.
        labels : list of ndarray
            Claim labels, which are 1 for true or no claim, 0 for false or unsure, and -1 for
            unchecked claims.
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
        """Return whether a claim is dropped and unjudged, and all its parents are kept."""
        if self._kept[row] or not np.isnan(self._verdict[row]):
            return False
        return all(self._kept[parent] for parent in self._parents.get(row, ()))

    def _add_open(self, rows):
        for row in filter(self._is_open, rows):
            heapq.heappush(self._open, (float(self._path_risk[row]), row))

    def _keep_anew(self, problem):
        """Update the kept claims of a problem, in topological order of the claims.

        A claim is kept only if all its parents are kept. The claim must also be judged true, or
        be kept by the filter without being judged false.
        """
        rows = range(*self._batch.offsets[problem : problem + 2].tolist())
        for row in sorted(rows, key=self._batch.depth.__getitem__):
            verdict = self._verdict[row]
            kept = verdict == 1 or (self._kept_by_filter[row] and verdict != 0)
            parents = self._parents.get(row, ())
            self._kept[row] = kept and all(self._kept[parent] for parent in parents)
        self._add_open(rows)


def strictest(words: Iterable[str | None]) -> str | None:
    """Return the strictest of several people's verdicts on a claim.

    Parameters
    ----------
    words : iterable of {"true", "false", "unsure", "no claim"} or None
        One verdict per person, or None for a person without a verdict.

    Returns
    -------
    verdict : {"true", "false", "unsure", "no claim"} or None
        The strictest verdict, or None if there is no verdict.
    """
    verdicts = set(words)
    return next((word for word in _FROM_STRICTEST if word in verdicts), None)


class BudgetOrder(Order):
    """Select claims for review one by one, up to a total number of checks.

    Several people can review in parallel. Each person runs a separate program, and all programs
    use the same journal. Each person starts with different answers. If two people disagree
    about a claim, the stricter verdict is used.

    Parameters
    ----------
    review : ReviewOrder
        Review to which the verdicts in the journal are passed.
    budget : int
        Total number of checks by all people.
    """

    done = "All checks are used up, or no more claims can be added."
    one_false_ends = False

    def __init__(self, review: ReviewOrder, budget: int) -> None:
        self.review = review
        self.budget = budget
        self._n_kept_by_filter = sum(int(mask.sum()) for mask in review.masks())
        self._n_taken = 0  # number of judgements read from the journal
        self._words: dict[Any, dict[str, str | None]] = defaultdict(dict)
        self._lock = threading.Lock()

    def take_in(self, store: LabelStore) -> None:
        """Pass new verdicts in the journal to the review.

        Parameters
        ----------
        store : LabelStore
            Store of the reviewed answers. All calls must pass the same store.
        """
        with self._lock:
            new = store.events[self._n_taken :]
            self._n_taken += len(new)
            positions = defaultdict(list)
            for i in range(len(store.graphs)) if new else ():
                positions[store.digest(i)].append(i)
            for event in new:
                if "label" not in event:  # Skip notes, which do not have labels.
                    continue
                claim = event["claim"]
                words = self._words[event["problem"], claim]
                words[event["by"]] = event["label"]
                for i in positions[event["problem"]]:
                    self.review.told(i, claim, strictest(words.values()))

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return the claim to check next.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            One problem with one claim, or an empty list.
        """
        self.take_in(store)
        if self.review.n_checks >= self.budget:
            return []
        mine = share_of_work(store, by)
        check = self.review.next(mine) or self.review.next()
        return [(check.problem, (check.claim,))] if check else []

    def masks(self, store: LabelStore) -> list[list[bool]]:
        """Return the masks of the currently kept claims.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.

        Returns
        -------
        masks : list of list of bool
            Masks of the kept claims, one per answer.
        """
        self.take_in(store)
        return [mask.tolist() for mask in self.review.masks()]

    def progress(self, store: LabelStore) -> str:
        """Return a description of the numbers of checked and kept claims.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.

        Returns
        -------
        progress : str
            A sentence about the progress.
        """
        n_kept = sum(map(sum, self.masks(store)))
        return (
            f"{self.review.n_checks} of {self.budget} checks were used. {n_kept} "
            f"claims are kept, compared with {self._n_kept_by_filter} without checks"
        )


class AuditOrder(Order):
    """Select the kept claims in a random sample of filtered texts, for an audit.

    Parameters
    ----------
    masks : sequence of ndarray of bool
        Masks of the claims that a filter keeps, one mask per answer, in sampling order.
    looks : sequence of int, optional
        Sample sizes (numbers of texts) at which the bound is computed, in increasing order. By
        default, the bound is computed once, for the whole sample.
    """

    done = "All sampled texts are judged."
    one_false_ends = True

    def __init__(
        self,
        masks: Sequence[NDArray[np.bool_]],
        looks: Sequence[int] | None = None,
    ) -> None:
        self._masks = [mask.tolist() for mask in masks]
        self._looks = list(looks or [len(masks)])

    def look(self, store: LabelStore) -> tuple[int, int, int]:
        """Return counts of the texts in the last complete interim analysis.

        If no interim analysis is complete, the first interim analysis is used.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.

        Returns
        -------
        n_texts, n_wrong, n_open : int
            Number of texts in the interim analysis, number of wrong texts, and number of texts
            that are not fully judged.
        """
        verdicts = self.verdicts(store)
        complete = [n for n in self._looks if "open" not in verdicts[:n]]
        n_texts = complete[-1] if complete else self._looks[0]
        counted = verdicts[:n_texts]
        return n_texts, counted.count("wrong"), counted.count("open")

    def verdicts(self, store: LabelStore) -> list[str]:
        """Return the state of each text, which is "right", "wrong" or "open".

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts of all annotators.

        Returns
        -------
        verdicts : list of {"right", "wrong", "open"}
            The state ("right", "wrong" or "open") of each text. A text is wrong if one of its
            kept claims is false or unsure. Any other text is open until all its kept claims are
            judged.
        """
        verdicts = []
        for words in self._words(store):
            wrong = any(word in ("false", "unsure") for word in words.values())
            is_open = None in words.values()
            verdicts.append("wrong" if wrong else "open" if is_open else "right")
        return verdicts

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return the open texts for the next interim analysis, with their unjudged claims.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            Positions of texts and claims. If several annotators are active, the texts assigned to
            this annotator are listed first.
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
        """Return the masks of the claims that the filter keeps, regardless of the verdicts.

        Parameters
        ----------
        store : LabelStore
            Ignored.

        Returns
        -------
        masks : list of list of bool
            Masks of the kept claims, one per text.
        """
        return self._masks

    def progress(self, store: LabelStore) -> str:
        """Return a description of the number of judged texts.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts so far.

        Returns
        -------
        progress : str
            A sentence about the progress.
        """
        verdicts = self.verdicts(store)
        n_judged = len(verdicts) - verdicts.count("open")
        return f"{n_judged} of {len(verdicts)} texts judged"

    def _words(self, store):
        """Return one dict per text with the strictest verdict on each kept claim."""
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
    """Compute the mean number of true claims kept per answer for several numbers of checks.

    The labels are used to simulate the checks, so the benefit of a review can be estimated in
    advance.

    Parameters
    ----------
    filter : fitted filter
        The filter whose kept claims are the starting point of the review.
    X : sequence of ReasoningGraph, or GraphBatch
        Labelled answers, such as the calibration answers.
    y : sequence of 1-D arrays, one per problem
        Claim labels, which are used as the verdicts of a simulated person.
    alpha : float in (0, 1), optional
        The level. If None, the filter's level is used.
    checks : sequence of float
        Average numbers of checks per answer, in increasing order.

    Returns
    -------
    curve : list of float
        Mean number of true claims kept per answer, for each entry of ``checks``.
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
