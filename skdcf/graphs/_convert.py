"""Reasoning graphs in the forms of other tools: adjacency matrices and networkx."""

from collections.abc import Mapping
from numbers import Integral

import numpy as np

from .._checks import check_choice, check_list

_OF_GRAPH = ("problem", "alternatives", "context", "feature_names", "id", "metadata")


def count_claims(features, claims):
    """How many claims features or, without them, texts are given for, or None."""
    given, name = (claims, "claims") if features is None else (features, "features")
    return None if given is None else len(check_list(name, given))


def parent_edges(parents, n_claims):
    """Pairs (parent, child) from the list of parents of each claim."""
    if n_claims not in (None, len(check_list("parents", parents))):
        raise ValueError(f"{len(parents)} lists of parents but {n_claims} claims")
    edges = []
    for v, row in enumerate(parents):
        row = list(check_list(f"parents[{v}]", row, sized=False))
        if wrong := [u for u in row if not isinstance(u, Integral)]:
            raise ValueError(
                f"parents[{v}] holds {wrong[0]!r}, but parents are the positions of claims, "
                "whole numbers counted from 0"
            )
        edges += [(u, v) for u in row]
    return edges


def matrix_edges(matrix, n_claims, orientation):
    """Pairs (parent, child) from a square 0/1 matrix, or ValueError.

    A row stands for a child or for a parent, as ``orientation`` says.
    """
    check_choice("orientation", orientation, ("child_row", "parent_row"))
    matrix = np.asarray(matrix)
    if matrix.size == 0:
        matrix = matrix.reshape(0, 0)
    if matrix.ndim != 2 or matrix.shape != (n_claims, n_claims):
        raise ValueError(
            f"the matrix has shape {matrix.shape}, but there are {n_claims} claims"
        )
    if not np.isin(matrix, (0, 1)).all():
        raise ValueError("the matrix holds values other than 0 and 1")
    pairs = np.argwhere(matrix)
    return pairs[:, ::-1] if orientation == "child_row" else pairs


def to_networkx(graph):
    """A ``networkx.DiGraph`` that holds all that is known of a graph."""
    import networkx as nx

    fields = {name: getattr(graph, name) for name in _OF_GRAPH}
    out = nx.DiGraph(**{k: v for k, v in fields.items() if v is not None})
    if not graph.edges_known:
        out.graph["edges_known"] = False
    out.add_nodes_from(range(graph.n_claims))
    out.add_edges_from(graph.edges.tolist())
    for v in range(graph.n_claims):
        if graph.claims is not None:
            out.nodes[v]["claim"] = graph.claims[v]
        if graph.features is not None:
            out.nodes[v]["features"] = graph.features[v].tolist()
    return out


def fields_of_networkx(graph):
    """What `to_networkx` put down, as arguments of ``ReasoningGraph``."""
    if not graph.is_directed():
        raise ValueError("the graph is undirected: which claim builds on which?")
    position = {node: i for i, node in enumerate(graph.nodes)}
    fields = {name: graph.graph.get(name) for name in _OF_GRAPH}
    for field, name in (("claims", "claim"), ("features", "features")):
        found = [data[name] for _, data in graph.nodes(data=True) if name in data]
        if len(found) == len(position) and (found or name == "claim"):
            fields[field] = found
    pairs = [(position[u], position[v]) for u, v in graph.edges()]
    known = pairs or graph.graph.get("edges_known", True)
    fields["edges"] = pairs if known else None
    return fields


def fields_of_dict(data, known):
    """What ``ReasoningGraph.to_dict`` wrote, as arguments of ``ReasoningGraph``."""
    if not isinstance(data, Mapping):
        raise ValueError(f"a dict is due, not one of type {type(data).__name__}")
    data = dict(data)
    width = data.pop("n_features", 0)
    if unknown := set(data) - set(known):
        raise ValueError(
            f"unknown keys {sorted(map(str, unknown))}; known are {list(known)}"
        )
    features, edges = data.pop("features", None), data.pop("edges", None)
    if features is None and data.get("claims") is None:
        data["claims"] = ()
    if features is not None and not len(check_list("features", features)):
        features = np.empty((0, width))
    return {"features": features, "edges": edges, **data}
