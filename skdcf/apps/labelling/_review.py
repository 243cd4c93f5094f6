"""Select the dropped claims that a person checks in a review of filtered answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._checks import counted
from ...graphs import GraphBatch, Problems, as_batch
from ...ops.hard import path_risk
from ._orders import Asked, RandomOrder
from ._store import LabelStore


class ReviewOrder(RandomOrder):
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
    risk. The labels are marked by `reviewed`. ``calibrate`` rejects them, and ``fit`` accepts them
    only with ``calibration_size=0``.

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
    ...     problem, claim = review.asked()[0]
    ...     truth = y[200 + problem][claim] == 1
    ...     review.verdicts_[problem, claim] = "true" if truth else "false"
    >>> sum(int(mask.sum()) for mask in review.masks()) > before + 30
    True
    """

    done = "No more claims can be added."

    def __init__(self, filter: Any, X: Problems, alpha: float | None = None) -> None:
        self._batch = as_batch(X)
        self._calibration = filter.calibration_
        self._level = self._calibration.guarantee.level(alpha, filter.alpha)
        self._path_risk = np.concatenate(list(filter.path_risk(self._batch)))
        self._kept_by_filter = np.concatenate(list(filter.predict(self._batch, alpha)))
        self.verdicts_: dict[tuple[int, int], str] = {}

    def _state(self):
        """Return the judged claims, the kept claims, and the claims that can be added.

        A claim is kept if all its parents are kept, and if it is judged true, or kept by the
        filter and not judged false.
        """
        verdict = np.full(len(self._path_risk), np.nan)
        # An "unsure" claim is not known to be false, so it is not removed if the filter kept it.
        values = {"true": 1, "no claim": 1, "false": 0, "unsure": -1}
        for (problem, claim), word in self.verdicts_.items():
            verdict[self._batch.offsets[problem] + claim] = values[word]
        wanted = (verdict == 1) | (self._kept_by_filter & (verdict != 0))
        kept = path_risk((~wanted).astype(float), self._batch) == 0
        parents, children = self._batch.edges.T
        can_be_added = ~kept & np.isnan(verdict)
        can_be_added[children[~kept[parents]]] = False
        return verdict, kept, can_be_added

    def asked(self) -> list[tuple[int, int]]:
        """Return the claims to check next.

        Returns
        -------
        places : list of (problem, claim)
            The positions of at most one claim per problem, in order of the path risk.
        """
        rows = np.flatnonzero(self._state()[2])
        rows = rows[np.argsort(self._path_risk[rows], kind="stable")]
        problems = self._batch.problem_of[rows]
        _, first = np.unique(problems, return_index=True)
        claims = rows - self._batch.offsets[problems]
        return [(int(problems[k]), int(claims[k])) for k in np.sort(first)]

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Read the annotator's verdicts, and return the claims to check next.

        Parameters
        ----------
        store : LabelStore
            Store that contains the reviewed answers and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            The problems, each with one claim, in order of the path risk.
        """
        self.verdicts_ = {
            (i, v): word
            for i in range(len(self._batch))
            for v, word in enumerate(store.said(i, by))
            if word not in (None, "unknown")
        }
        return [(problem, (claim,)) for problem, claim in self.asked()]

    def order(self, store: LabelStore) -> list[int]:
        """Return the positions of all problems.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.

        Returns
        -------
        order : list of int
            The positions, in the order of the file.
        """
        return list(range(len(store.graphs)))

    def masks(self) -> NDArray[Any]:
        """Return the masks of the claims that are kept after the checks.

        Returns
        -------
        masks : ndarray of shape (n_problems,)
            Object array with one boolean mask per problem.
        """
        return self._batch.split(self._state()[1])

    def progress(self) -> str:
        """Return a sentence with the numbers of checked and kept claims."""
        return (
            f"{counted(self.n_checks, 'claim')} checked. {self._state()[1].sum()} claims are "
            f"kept, compared with {self._kept_by_filter.sum()} without checks"
        )

    def describe(self) -> str:
        """Return a description of the guarantee and of the number of checks.

        Returns
        -------
        description : str
            Description of the guarantee and of the number of checks.
        """
        sentence = self._calibration.describe(self._level)
        if (self._kept_by_filter & ~self._state()[1]).any():
            guarantee = self._calibration.guarantee
            sentence = guarantee.describe_after_removal(self._level)
        return (
            f"{sentence}; {self.n_checks} claims were checked by a person, and the claims judged "
            "true are kept as well"
        )

    @property
    def n_checks(self) -> int:
        """Return the number of claims with a verdict, excluding claims that the filter keeps."""
        return int((~self._kept_by_filter & ~np.isnan(self._state()[0])).sum())

    def checked(self) -> list[list[int]]:
        """Return the claims that are kept because a person found them true.

        Returns
        -------
        claims : list of list of int
            Positions of the claims, one list per problem.
        """
        added = self._batch.split(self._state()[1] & ~self._kept_by_filter)
        return [np.flatnonzero(mask).tolist() for mask in added]

    def reviewed(self, **about: Any) -> tuple[GraphBatch, list[NDArray[np.int64]]]:
        """Return the answers, labelled with the verdicts and marked as reviewed.

        Parameters
        ----------
        **about : object
            Other values for the provenance.

        Returns
        -------
        graphs : GraphBatch
            The problems, whose provenance contains ``label_order`` and ``label_source``.
        labels : list of ndarray
            Claim labels, which are 1 for true or no claim, 0 for false or unsure, and -1 for
            unchecked claims.
        """
        verdict = self._state()[0]
        labels = np.where(np.isnan(verdict), -1, verdict == 1)
        about |= {"label_order": "review", "label_source": "person"}
        graphs = [
            graph.replace(provenance=(graph.provenance or {}) | about)
            for graph in self._batch
        ]
        return GraphBatch.from_graphs(graphs), list(self._batch.split(labels))
