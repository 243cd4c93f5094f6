"""Decide which claims of an answer to keep while the answer is being written.

The risk of a claim is computed only from this claim and earlier claims, in calibration and in
`predict` alike, so the decision about the last claim of an incomplete answer is final.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .edges import chain_edges
from .features.columns import list_looking_ahead
from .graphs import GraphBatch, ReasoningGraph
from .graphs.ragged import offsets_of, optional_rows, ranges

#: Number of claims in a block of prefixes. The prefixes of an answer with 10,000 claims
#: contain 50 million claims in total.
BLOCK = 2**19


def on_prefixes(
    values_of: Callable[[GraphBatch], NDArray[Any]], batch: GraphBatch
) -> NDArray[np.float64]:
    """Return the value or row of values of each claim, computed without the later claims.

    Raise ValueError if a claim precedes one of its parents.
    """
    late = np.flatnonzero(batch.edges[:, 0] > batch.edges[:, 1])
    if len(late):
        raise ValueError(
            "parents must come before their children if online=True, but "
            f"{batch.locate(int(batch.edges[late[0], 1]))} comes before one of its "
            "parents. Reorder the claims"
        )
    values = []
    position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
    n_before = np.cumsum(position + 1)
    start = 0
    while start < batch.n_claims:
        most = n_before[start] + BLOCK
        stop = max(int(np.searchsorted(n_before, most)), start + 1)
        prefixes = _prefixes(batch, np.arange(start, stop))
        values.append(values_of(prefixes)[prefixes.offsets[1:] - 1])
        start = stop
    return np.concatenate(values) if values else values_of(batch)


def _prefixes(batch, last):
    """Return the prefixes of problems that end with the given claims."""
    problem = batch.problem_of[last]
    start = batch.offsets[problem]
    sizes = last + 1 - start
    offsets = offsets_of(sizes)
    claims = ranges(start, sizes)
    first = batch.edge_offsets[problem]
    n_edges = np.searchsorted(batch.edges[:, 1], last, side="right") - first
    shift = np.repeat(offsets[:-1] - start, n_edges)
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


def refuse_to_stream(fitted, stop: bool) -> None:
    """Raise ValueError if a filter cannot decide while an answer is written."""
    if not fitted.online:
        ahead = list_looking_ahead(fitted.features_) or repr(fitted.scorer)
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


def decisions(
    fitted,
    claims: Iterable[dict[Any, Any]],
    alpha: float | None,
    stop: bool,
    about: dict[str, Any],
) -> Iterator[bool]:
    """Decide on each claim before the next claim is read."""
    texts: list[Any] = []
    features: list[Any] = []
    edges: list[Any] = []
    for v, claim in enumerate(claims):
        parents = list(claim.get("parents") or ())
        for parent in parents:
            if not (isinstance(parent, int) and 0 <= parent < v):
                raise ValueError(
                    f"the parents of claim {v} must be the positions of earlier claims, got "
                    f"{parent!r}"
                )
        if stop and v > 0 and fitted.edges == "given" and v - 1 not in parents:
            raise ValueError(
                f"stop=True requires edges that form a chain, but claim {v} does not depend "
                f"on claim {v - 1}. Add {v - 1} to its parents, or set stop=False"
            )
        texts.append(claim.get("text"))
        features.append(claim.get("features"))
        edges += [(parent, v) for parent in parents]
        prefix = ReasoningGraph(
            None if features[0] is None else np.array(features, dtype=float),
            edges if "parents" in claim or v == 0 else None,
            claims=None if texts[0] is None else texts,
            **about,
        )
        is_kept = bool(fitted.predict([prefix], alpha)[0][-1])
        yield is_kept
        if stop and not is_kept:
            return
