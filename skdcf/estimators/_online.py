"""Decide which claims to keep, in complete answers and in answers that are still being written.

In an unfinished answer, the risk of a claim is computed only from this claim and earlier claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._docs import documented
from .._messages import Advice, Message
from ..edges import chain_edges
from ..features.columns import list_looking_ahead
from ..graphs import GraphBatch, ReasoningGraph
from ..graphs.hashes import Hashes
from ..graphs.problems import Groups, Problems, hashes_of
from ..graphs.ragged import offsets_of, optional_rows, ranges
from ..guards.levels import level_of, warn_of_level
from ..guards.settings import refuse_changed, settings_of
from ..ops.hard import path_risk, segment_max
from ..scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FeatureScorer,
    FrequencyScorer,
    LinearForm,
    LinearModel,
    MLPModel,
)
from ._jitter import jittered
from ._validation import confidence_of, filter_in, with_names

#: Number of claims in a block of prefixes. The prefixes of an answer with 10,000 claims
#: contain 50 million claims in total.
BLOCK = 2**19


def refuse_late_parents(batch: GraphBatch) -> None:
    """Raise ValueError if a claim precedes one of its parents."""
    late = np.flatnonzero(batch.edges[:, 0] > batch.edges[:, 1])
    if len(late):
        raise ValueError(
            "parents must come before their children if online=True, but "
            f"{batch.locate(int(batch.edges[late[0], 1]))} comes before one of its "
            "parents. Reorder the claims"
        )


def blocks_of_prefixes(batch: GraphBatch) -> Iterator[tuple[slice, GraphBatch]]:
    """Yield blocks of answer prefixes, with one prefix per claim.

    Parameters
    ----------
    batch : GraphBatch
        The problems.

    Yields
    ------
    claims : slice
        Range of the claims whose prefixes are in the block.
    prefixes : GraphBatch
        The prefixes, which contain about `BLOCK` claims in total.

    Raises
    ------
    ValueError
        If a claim precedes one of its parents.
    """
    refuse_late_parents(batch)
    sizes = np.arange(1, batch.n_claims + 1) - batch.offsets[batch.problem_of]
    ends = np.cumsum(sizes)
    start = 0
    while start < batch.n_claims:
        n_done = ends[start] - sizes[start]
        stop = int(np.searchsorted(ends, n_done + BLOCK, side="right"))
        claims = slice(start, max(stop, start + 1))
        yield claims, _prefixes(batch, claims)
        start = claims.stop


def _prefixes(batch, chosen):
    row = np.arange(chosen.start, chosen.stop)
    problem = batch.problem_of[chosen]
    sizes = row + 1 - batch.offsets[problem]
    claims = ranges(batch.offsets[problem], sizes)
    offsets = offsets_of(sizes)
    first = batch.edge_offsets[problem]
    n_edges = np.searchsorted(batch.edges[:, 1], row, side="right") - first
    shift = np.repeat(offsets[:-1] - batch.offsets[problem], n_edges)
    edges = batch.edges[ranges(first, n_edges)] + shift[:, None]
    names = ("problems", "alternatives", "context", "metadata")
    columns = {n: getattr(batch, n) for n in names}
    return GraphBatch.from_arrays(
        optional_rows(batch.features, claims),
        offsets,
        edges,
        edges_known=batch.edges_known[problem],
        claims=optional_rows(batch.claims, claims),
        feature_names=batch.feature_names,
        **{n: optional_rows(c, problem) for n, c in columns.items()},
    )


def scores_claims_alone(fitted: Any) -> bool:
    """Return whether the score of a claim is independent of all other claims.

    If the score is independent of other claims, prefixes do not have to be scored. Columns passed
    by the caller are assumed not to depend on later claims. Columns that the filter computes may
    depend on other claims. Scorers that are not listed in this function may also depend on other
    claims.
    """
    scorer = fitted.scorer_
    if fitted._transformer is not None:
        return False
    # A price depends on the other claims of the answer.
    if getattr(scorer, "gain", None) is not None:
        return False
    if type(scorer) is ConfTrScorer:
        return type(scorer.model_) in (LinearModel, MLPModel)
    if type(scorer) is FrequencyScorer:
        return scorer.beta_mix == 0
    return type(scorer) in (FeatureScorer, ClassifierScorer)


def confidence_so_far(
    fitted: Any, passed: GraphBatch, scored: GraphBatch
) -> NDArray[Any]:
    """Return the confidence in each claim, computed from this claim and earlier claims only.

    Parameters
    ----------
    fitted : fitted filter
        A filter with ``online=True``.
    passed : GraphBatch
        The problems passed by the caller.
    scored : GraphBatch
        The same problems with the columns that the scorer uses.

    Returns
    -------
    confidence : ndarray of shape (n_claims,)
        Confidence in each claim.

    Raises
    ------
    ValueError
        If a claim precedes one of its parents.
    """
    if scores_claims_alone(fitted):
        refuse_late_parents(passed)
        return confidence_of(fitted.scorer_, scored)
    confidence = np.empty(passed.n_claims)
    for claims, prefixes in blocks_of_prefixes(passed):
        of_prefixes = confidence_of(fitted.scorer_, fitted._with_columns(prefixes))
        confidence[claims] = of_prefixes[prefixes.offsets[1:] - 1]
    return confidence


def jittered_so_far(
    risk: NDArray[Any], batch: GraphBatch, seed: int, steady: bool
) -> NDArray[np.float64]:
    """Return the risks with jitter that depends only on the claim itself and earlier claims."""
    out = np.empty(batch.n_claims)
    for claims, prefixes in blocks_of_prefixes(batch):
        last = prefixes.offsets[1:] - 1
        risk_of_prefixes = np.zeros(prefixes.n_claims)
        risk_of_prefixes[last] = risk[claims]
        out[claims] = jittered(risk_of_prefixes, prefixes, seed, steady)[last]
    return out


def decide_online(fitted, claims, alpha, *, stop=False, **about):
    """Decide whether to keep each claim before the next claim is read.

    If ``stop`` is True, no claims are read after the first claim that is dropped. Errors about
    the filter's settings are raised before the first claim is read.
    """
    if not fitted.online:
        ahead = list_looking_ahead(fitted._transformer) or repr(fitted.scorer)
        raise ValueError(
            Message(
                "stream requires risks that depend only on earlier claims, but the "
                "risks of this filter may depend on later claims (because of "
                f"{ahead}): ",
                Advice(
                    "fit_online",
                    "fit it with online=True to decide while an answer is written",
                ),
            )
        )
    # Stopping early requires a chain, in which the dropped claim is an ancestor of each later
    # claim.
    if stop and fitted.edges not in ("given", chain_edges):
        raise ValueError(
            "stop=True requires edges that form a chain, but the filter was fitted with "
            f'edges={fitted.edges!r}. Fit the filter with edges="given" or '
            "skdcf.edges.chain_edges, or set stop=False"
        )
    return _decisions(fitted, claims, alpha, stop=stop, about=about)


def _decisions(fitted, claims, alpha, *, stop, about):
    answer = None
    for v, claim in enumerate(claims):
        parents = list(claim.get("parents") or ())
        wrong = [u for u in parents if not (isinstance(u, int) and 0 <= u < v)]
        if wrong:
            raise ValueError(
                f"the parents of claim {v} must be the positions of earlier claims, got "
                f"{wrong[0]!r}"
            )
        if stop and v > 0 and fitted.edges == "given" and v - 1 not in parents:
            raise ValueError(
                f"stop=True requires edges that form a chain, but claim {v} does not depend "
                f"on claim {v - 1}. Add {v - 1} to its parents, or set stop=False"
            )
        if answer is None:
            answer = _Answer(fitted, alpha, about)
        kept = answer.keeps(claim, parents)
        yield kept
        if stop and not kept:
            return


class _Answer:
    """An answer that is still being written, with the path risks of its claims so far.

    Each new claim is scored once. All earlier claims are scored together with the new claim,
    unless the scorer scores each claim separately. The largest risk among a claim's ancestors is
    computed from the path risks of its parents.

    Parameters
    ----------
    filter : fitted filter
        A filter with ``online=True``.
    alpha : float or None
        Level passed by the caller.
    about : dict
        Data known before the answer is written.
    """

    def __init__(self, fitted, alpha, about):
        self.about = about
        self.filter = fitted
        self.alpha = alpha
        # The newest claim is the last claim in its prefix, so no claims follow it.
        self.whole = copy(fitted)
        self.whole.online = False
        self.whole._calibrated_as = settings_of(self.whole)
        self.alone = (
            scores_claims_alone(fitted)
            and fitted.ties != "jitter"
            and not callable(fitted.edges)
        )
        self.rows = []
        self.edges = []
        self.path_risk = []

    def keeps(self, claim, parents):
        """Return whether a new claim is kept, and store the claim and its path risk."""
        v = len(self.rows)
        self.rows.append(claim)
        edges_known = "parents" in claim or v == 0
        if self.alone:
            rows = self.rows[-2:]
            edges = [(0, 1)] if parents else []
            risks_before = [max((self.path_risk[u] for u in parents), default=-np.inf)]
        else:
            self.edges += [(u, v) for u in parents]
            rows = self.rows
            edges = self.edges
            risks_before = self.path_risk
        graph = _graph_of(rows, edges if edges_known else None, self.about)
        if v == 0:
            refuse_changed(self.filter)
            self.level = level_of(self.filter, self.alpha)
            warn_of_level(self.filter.calibration_, self.level)
            risks_before = []

        view = self.whole._look([graph])
        confidence = self.whole._confidence(view)
        risk = self.whole._risk(confidence, view.raw)
        risk[:-1] = risks_before
        guarantee = self.filter.calibration_.guarantee
        risks = guarantee.path_risks(
            path_risk(risk, view.with_columns), with_names(view, guarantee)
        )
        self.path_risk.append(risks.path_risk[-1])
        return bool(self.whole._margin(risks, view, self.level)[-1] > 0)


def _graph_of(rows, edges, about):
    texts, features = ([row.get(key) for row in rows] for key in ("text", "features"))
    table = None if features[0] is None else np.array(features, dtype=float)
    claims = None if texts[0] is None else texts
    return ReasoningGraph(table, edges, claims=claims, **about)


@documented
def largest_risks(
    fitted: Any, X: Problems, groups: Groups = None
) -> tuple[NDArray[np.float64], Hashes]:
    """Return the largest risk of each answer, in the form used for calibration, and the hashes.

    In prediction, risks are raised slightly if the columns were computed in float32. In
    calibration, risks are never raised. Use this function to compare the risks of new answers
    with those of calibration answers.

    Parameters
    ----------
    fitted : fitted filter
        The filter that computes the risks.
    {X}
    groups : array-like of shape (n_problems,), or False, optional
        Question that each answer belongs to, as in the filter's `calibrate`.

    Returns
    -------
    risks : ndarray of shape (n_problems,)
        Largest risk of each answer, or -inf for an answer without claims.
    hashes : Hashes
        Question and content hashes.
    """
    view = fitted._look(X)
    confidence = fitted._confidence(view)
    risk = fitted._risk(confidence, view.raw, steady=True)
    return segment_max(risk, view.raw.offsets), hashes_of(view.raw, groups)


class Decision(NamedTuple):
    """The decision about each claim, together with the values on which it is based.

    Attributes
    ----------
    batch : GraphBatch
        The problems with the columns that the scorer uses.
    kept : ndarray of bool
        Whether each claim is kept.
    confidence : ndarray
        The scorer's confidence in each claim, without considering its ancestors.
    path_risk : ndarray
        Path risk of each claim, which is the largest risk among the claim and its ancestors.
    threshold : ndarray
        Threshold for each claim. A claim is kept if its path risk is below the threshold.
    smallest_alpha : ndarray
        Smallest alpha at which each claim is kept, or NaN if it is undefined.
    form : LinearForm or None
        The confidence as a weighted sum of columns, or None if the scorer is not linear.
    groups : list or None
        Calibration group of each problem, or None if the guarantee has no groups.
    """

    batch: GraphBatch
    kept: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    path_risk: NDArray[np.float64]
    threshold: NDArray[np.float64]
    smallest_alpha: NDArray[np.float64]
    form: LinearForm | None
    groups: list[Any] | None


@documented
def decide(
    filter: Any,
    X: Problems,
    alpha: float | None = None,
) -> Decision:
    """Score the problems once, and return the decision about each claim.

    Parameters
    ----------
    filter : fitted filter
        The filter to use.
    X : {problems}
        Problems to filter.
    {own_alpha}

    Returns
    -------
    decision : Decision
        The decision about each claim, with the values on which it is based.
    """
    fitted = filter_in(filter)
    risks, view, level = fitted._at_level(X, alpha)
    calibration = fitted.calibration_
    margin = fitted._margin(risks, view, level)
    threshold = calibration.thresholds(risks, level)[view.raw.problem_of]
    return Decision(
        batch=view.with_columns,
        kept=margin > 0,
        confidence=view.confidence,
        path_risk=risks.path_risk,
        threshold=threshold,
        smallest_alpha=calibration.levels(risks, fitted.ties == "include"),
        form=fitted.scorer_.linear_form(view.with_columns),
        groups=risks.groups,
    )
