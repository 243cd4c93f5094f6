"""From single graphs to the fields of a batch."""

import numpy as np

from ._checks import name_problem
from ._graph import ReasoningGraph
from ._ragged import offsets_of, read_only


def packed(graphs):
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
        "ids": _column(graphs, "id"),
        "feature_names": first.feature_names,
    }


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
