"""Select the dropped claims that a person checks in a review of filtered answers."""

from __future__ import annotations

import heapq
import threading
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._checks import check_choice, counted
from ...graphs import GraphBatch, Problems, as_batch
from ...uses import decide
from ._judging import Asked, Order
from .sources import WORDS, LabelStore

#: Labels of the verdicts. An "unsure" claim is not known to be false, so it is not removed if the
#: filter kept it.
_CHECKED = {"true": 1, "no claim": 1, "false": 0, "unsure": -1}


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


class ReviewOrder(Order):
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

    done = "No more claims can be added."
    one_false_ends = False

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
        self._lock = threading.Lock()
        # Heap of the claims that can be checked, ordered by path risk. Claims that can no longer
        # be checked stay in the heap and are skipped.
        self._open: list[tuple[float, int]] = []
        self._add_open(range(len(self._kept)))

    def next(self) -> Check | None:
        """Return the claim to check next.

        Returns
        -------
        check : Check or None
            The claim, or None if every claim that could be added has been checked.
        """
        while self._open and not self._is_open(self._open[0][1]):
            heapq.heappop(self._open)
        return self._check(self._open[0][1]) if self._open else None

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Read the annotator's verdicts, and return the claim to check next.

        Parameters
        ----------
        store : LabelStore
            Store that contains the reviewed answers and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            One problem with one claim, or an empty list.
        """
        with self._lock:
            for i in range(len(self._batch)):
                for v, word in enumerate(store.said(i, by)):
                    verdict = word if word in _CHECKED else None
                    if verdict != self.verdicts_.get((i, v)):
                        self.told(i, v, verdict)
            check = self.next()
        return [(check.problem, (check.claim,))] if check else []

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

    def progress(self) -> str:
        """Return a sentence with the numbers of checked and kept claims."""
        return (
            f"{counted(self.n_checks, 'claim')} checked. {self._kept.sum()} claims are kept, "
            f"compared with {self._kept_by_filter.sum()} without checks"
        )

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

    def reviewed(self) -> tuple[GraphBatch, list[NDArray[np.int8]]]:
        """Return the answers, labelled with the verdicts and marked as reviewed.

        Returns
        -------
        graphs : GraphBatch
            The problems, whose provenance contains ``label_order`` and ``label_source``.
        labels : list of ndarray
            Claim labels, which are 1 for true or no claim, 0 for false or unsure, and -1 for
            unchecked claims.
        """
        labels = [np.full(size, -1, dtype=np.int8) for size in self._batch.sizes]
        for (problem, claim), verdict in self.verdicts_.items():
            labels[problem][claim] = WORDS[verdict]
        about = {"label_order": "review", "label_source": "person"}
        graphs = [
            graph.replace(provenance=(graph.provenance or {}) | about)
            for graph in self._problems
        ]
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
