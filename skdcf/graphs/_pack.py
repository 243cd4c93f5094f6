"""Into a batch, and out of it: its fields from graphs, some of them, one graph."""

import numpy as np

from ._graph import ReasoningGraph
from ._names import name_problem
from .ragged import offsets_of, ranges, read_only


def pack_fields(graphs):
    """Fields of a `GraphBatch`, from a list of graphs."""
    _check(graphs)
    first = graphs[0]
    offsets = offsets_of(np.array([g.n_claims for g in graphs]))
    edge_offsets = offsets_of(np.array([len(g.edges) for g in graphs]))
    edges = np.concatenate([g.edges for g in graphs])
    edges += np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None]
    features = claims = None
    if first.features is not None:
        features = read_only(np.concatenate([g.features for g in graphs]))
    if features is None or any(g.claims for g in graphs):
        texts = (t for g in graphs for t in g.claims or (None,) * g.n_claims)
        claims = np.fromiter(texts, dtype=object, count=offsets[-1])
    return {
        "features": features,
        "offsets": read_only(offsets),
        "edges": read_only(edges),
        "edge_offsets": read_only(edge_offsets),
        "claims": claims,
        "problems": _column(graphs, "problem"),
        "alternatives": _column(graphs, "alternatives"),
        "context": _column(graphs, "context"),
        "edges_known": read_only(np.array([g.edges_known for g in graphs])),
        "ids": _column(graphs, "id"),
        "metadata": _column(graphs, "metadata"),
        "feature_names": first.feature_names,
    }


def take_fields(batch, rows):
    """Fields of the `GraphBatch` of some problems of another, in the order of rows.

    Edges are row numbers, so those of each problem move as far as its claims do.
    """
    offsets = offsets_of(batch.sizes[rows])
    claims = ranges(batch.offsets[:-1][rows], batch.sizes[rows])
    n_edges = np.diff(batch.edge_offsets)[rows]
    shift = np.repeat(offsets[:-1] - batch.offsets[:-1][rows], n_edges)
    edges = batch.edges[ranges(batch.edge_offsets[:-1][rows], n_edges)]
    fields = {
        "features": None
        if batch.features is None
        else read_only(batch.features[claims]),
        "claims": None if batch.claims is None else batch.claims[claims],
        "feature_names": batch.feature_names,
        "offsets": read_only(offsets),
        "edges": read_only(edges + shift[:, None]),
        "edge_offsets": read_only(offsets_of(n_edges)),
    }
    fields["edges_known"] = read_only(batch.edges_known[rows])
    for name in ("problems", "alternatives", "context", "ids", "metadata"):
        column = getattr(batch, name)
        fields[name] = None if column is None else column[rows]
    if "depth" in batch.__dict__:  # worked out already, and the same in any company
        fields["depth"] = batch.depth[claims]
    return fields


def positions(batch, key):
    """Which problems a slice, a mask or an array of whole numbers means."""
    if not isinstance(key, slice):
        key = np.asarray(key)
        if key.size == 0 and key.dtype != bool:
            key = key.astype(np.int64)  # numpy makes floats of an empty list
        if key.dtype.kind not in "iub" or key.ndim != 1:
            raise IndexError(
                "index a GraphBatch by a number, a slice, a 1-D array of whole "
                f"numbers or a mask, not by {key.dtype} of shape {key.shape}"
            )
    return np.arange(len(batch))[key]


def unpack(batch, i):
    """Problem ``i`` as a graph of its own; features are a view of the batch's."""
    a, b = batch.offsets[i : i + 2].tolist()
    c, d = batch.edge_offsets[i : i + 2].tolist()
    texts = None if batch.claims is None else tuple(batch.claims[a:b])
    if texts and texts[0] is None:  # so are the others of this problem
        texts = None
    return ReasoningGraph._trusted(
        None if batch.features is None else batch.features[a:b],
        read_only(batch.edges[c:d] - a),
        texts,
        None if batch.alternatives is None else batch.alternatives[i],
        None if batch.context is None else batch.context[i],
        batch.feature_names,
        None if batch.problems is None else batch.problems[i],
        None if batch.ids is None else batch.ids[i],
        None if batch.metadata is None else batch.metadata[i],
        bool(batch.edges_known[i]),
        b - a,
    )


def _column(graphs, name):
    values = [getattr(g, name) for g in graphs]
    if all(v is None for v in values):
        return None
    return np.fromiter(values, dtype=object, count=len(values))


def _check(graphs):
    if not graphs:
        raise ValueError("no problems: X is empty, at least one is needed")
    first = graphs[0]
    for i, g in enumerate(graphs):
        if not isinstance(g, ReasoningGraph):
            raise ValueError(
                f"problem {i} is a {type(g).__name__}, not a ReasoningGraph"
            )
        if (g.features is None) != (first.features is None):
            raise ValueError(
                f"{_name(i, g)}: some problems have features and some have none"
            )
        if g.features is not None and g.features.shape[1] != first.features.shape[1]:
            raise ValueError(
                f"{_name(i, g)}: {g.features.shape[1]} features but "
                f"{first.features.shape[1]} in problem 0"
            )
        if g.feature_names is not first.feature_names and (
            g.feature_names != first.feature_names
        ):
            raise ValueError(
                f"{_name(i, g)}: feature names {g.feature_names} differ from those of "
                f"problem 0, {first.feature_names}"
            )


def _name(i, graph):
    return name_problem(i, {i: graph.id})
