"""Decisions about claims: of whole answers, and of answers that are being written.

While an answer is written, the risk of a claim is computed from the claims up to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..features.columns import list_looking_ahead
from ..graphs import GraphBatch, ReasoningGraph
from ..graphs.problems import Problems
from ..graphs.ragged import offsets_of, ranges
from ..scorers import LinearForm


def prefixes(batch: GraphBatch) -> GraphBatch:
    """One problem per claim: the claims of its problem up to it, which is the last.

    Raises
    ------
    ValueError
        If a claim comes before one that it builds on.
    """
    late = np.flatnonzero(batch.edges[:, 0] > batch.edges[:, 1])
    if len(late):
        raise ValueError(
            f"{batch.locate(int(batch.edges[late[0], 1]))} comes before a claim that it "
            "builds on: with online=True parents have to stand first"
        )
    problem = batch.problem_of
    row = np.arange(batch.n_claims)
    sizes = row + 1 - batch.offsets[problem]
    claims = ranges(batch.offsets[problem], sizes)
    offsets = offsets_of(sizes)
    first = batch.edge_offsets[problem]
    n_edges = np.searchsorted(batch.edges[:, 1], row, side="right") - first
    shift = np.repeat(offsets[:-1] - batch.offsets[problem], n_edges)
    edges = batch.edges[ranges(first, n_edges)] + shift[:, None]
    metadata = None
    if batch.metadata is not None:  # missing verdicts are looked at in whole problems
        rows = batch.metadata
        cleaned = [m and {k: m[k] for k in m if k != "no_verdict"} for m in rows]
        metadata = [cleaned[i] for i in problem]
    columns = {n: getattr(batch, n) for n in ("problems", "alternatives", "context")}
    return GraphBatch.from_arrays(
        None if batch.features is None else batch.features[claims],
        offsets,
        edges,
        edges_known=batch.edges_known[problem],
        claims=None if batch.claims is None else batch.claims[claims],
        feature_names=batch.feature_names,
        metadata=metadata,
        **{n: None if c is None else c[problem] for n, c in columns.items()},
    )


def refuse_whole_answers(guarantee):
    """ValueError for groups and weights that are functions of whole answers."""
    entries = (("by", entry) for entry in guarantee.entries)
    for name, value in (("weight", guarantee.weight), *entries):
        if callable(value):
            raise ValueError(
                f"{name} is {value!r}, a function of whole answers, which are not known "
                "while they are written: with online=True name a key of the metadata"
            )


def decide_online(filter, claims, alpha, **about):
    """Yield for each claim whether it is kept, before the next one is read."""
    if not filter.online:
        ahead = list_looking_ahead(filter.features) or repr(filter.scorer)
        raise ValueError(
            "the risks of this filter may look at later claims (such as "
            f"{ahead}): fit it with online=True to decide while an answer is written"
        )
    rows = []
    edges = []
    for v, claim in enumerate(claims):
        parents = list(claim.get("parents") or ())
        wrong = [u for u in parents if not (isinstance(u, int) and 0 <= u < v)]
        if wrong:
            raise ValueError(
                f"claim {v} builds on claim {wrong[0]!r}, which does not come before it"
            )
        rows.append(claim)
        edges += [(u, v) for u in parents]
        edges_known = edges if "parents" in claim or v == 0 else None
        yield bool(filter.predict([_graph_of(rows, edges_known, about)], alpha)[0][-1])


def _graph_of(rows, edges, about):
    texts, features = ([row.get(key) for row in rows] for key in ("text", "features"))
    table = None if features[0] is None else np.array(features, dtype=float)
    claims = None if texts[0] is None else texts
    return ReasoningGraph(table, edges, claims=claims, **about)


class Decision(NamedTuple):
    """All that decides which claims are kept; every array has one entry per claim.

    Attributes
    ----------
    batch : GraphBatch
        The problems as the scorer sees them.
    kept : ndarray of bool
        Whether the claim is kept.
    confidence : ndarray
        The scorer's confidence in the claim by itself.
    path_risk : ndarray
        The largest risk among the claim and its ancestors.
    threshold : ndarray
        The claim is kept where its path risk is below.
    smallest_alpha : ndarray
        The smallest alpha at which the claim is kept; NaN where it has none of its own.
    form : LinearForm or None
        The confidence as a weighted sum of columns, where it is one.
    """

    batch: GraphBatch
    kept: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    path_risk: NDArray[np.float64]
    threshold: NDArray[np.float64]
    smallest_alpha: NDArray[np.float64]
    form: LinearForm | None


def decide(
    filter: Any,
    X: Problems,
    alpha: float | None = None,
) -> Decision:
    """Score problems once, and say all that decides which of their claims are kept.

    Parameters
    ----------
    filter : fitted filter
        The filter that decides.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems to filter.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    Decision
    """
    filter = getattr(filter, "best_estimator_", filter)  # a CalibratedSearch has one
    risks, view, level = filter._at_level(X, alpha)
    calibration = filter.calibration_
    margin = filter._margin(risks, view, level)
    threshold = calibration.thresholds(risks, level)
    if np.ndim(threshold):
        threshold = threshold[view.passed.problem_of]
    threshold = np.broadcast_to(threshold, margin.shape)
    try:
        levels = calibration.levels(risks, filter.ties == "include")
    except ValueError:  # groups that overlap give a claim no level of its own
        levels = np.full(len(margin), np.nan)
    return Decision(
        batch=view.seen,
        kept=margin > 0,
        confidence=view.confidence,
        path_risk=risks.path_risk,
        threshold=threshold,
        smallest_alpha=levels,
        form=filter.scorer_.linear_form(view.seen),
    )
