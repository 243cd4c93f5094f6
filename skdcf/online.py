"""Decide which claims of an answer to keep while the answer is being written.

The risk of a claim is computed only from this claim and earlier claims, in calibration and in
`predict` alike, so `stream` decides as `predict` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import guards
from .columns import confidence_of, with_names
from .edges import chain_edges
from .features.columns import list_looking_ahead
from .graphs import GraphBatch, ReasoningGraph
from .graphs.ragged import offsets_of, optional_rows, ranges
from .jitter import jittered
from .ops.hard import path_risk

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
    return GraphBatch.from_arrays(
        optional_rows(batch.features, claims),
        offsets,
        edges,
        edges_known=batch.edges_known[problem],
        claims=optional_rows(batch.claims, claims),
        feature_names=batch.feature_names,
        **{name: optional_rows(getattr(batch, name), problem) for name in names},
    )


def confidence_so_far(fitted: Any, batch: GraphBatch) -> NDArray[Any]:
    """Return the confidence in each claim, computed from this claim and earlier claims only."""
    confidence = np.empty(batch.n_claims)
    for claims, prefixes in blocks_of_prefixes(batch):
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


def decide_online(fitted, claims, alpha, *, stop, **about):
    """Decide whether to keep each claim before the next claim is read.

    If ``stop`` is True, no claims are read after the first claim that is dropped. Errors about
    the filter's settings are raised before the first claim is read.
    """
    if not fitted.online:
        ahead = list_looking_ahead(fitted._transformer) or repr(fitted.scorer)
        raise ValueError(
            "stream requires risks that depend only on earlier claims, but the risks of this "
            f"filter may depend on later claims (because of {ahead}): fit it with online=True "
            "(skdcf fit --online) to decide while an answer is written"
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
    # The newest claim is the last claim in its prefix, so no claims follow it.
    whole = copy(fitted)
    whole.online = False
    whole._record = replace(fitted._record, settings=whole._settings())
    guarantee = fitted.calibration_.guarantee
    rows: list[Any] = []
    edges: list[Any] = []
    risks_before: list[float] = []
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
        if v == 0:
            guards.refuse_changed(fitted._record, fitted._settings())
            level = fitted._level(alpha)
            guards.warn_of_level(fitted.calibration_, level)
        rows.append(claim)
        edges += [(u, v) for u in parents]
        edges_known = "parents" in claim or v == 0
        prefix = whole._look([_graph_of(rows, edges if edges_known else None, about)])
        risk = whole._risk(whole._confidence(prefix), prefix.batch)
        risk[:-1] = risks_before
        path = path_risk(risk, prefix.scored)
        risks_before.append(path[-1])
        risks = guarantee.path_risks(path, with_names(prefix, guarantee))
        kept = bool(whole._margin(risks, prefix, level)[-1] > 0)
        yield kept
        if stop and not kept:
            return


def _graph_of(rows, edges, about):
    texts, features = ([row.get(key) for row in rows] for key in ("text", "features"))
    table = None if features[0] is None else np.array(features, dtype=float)
    claims = None if texts[0] is None else texts
    return ReasoningGraph(table, edges, claims=claims, **about)
