"""Graphs of networkx."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..datasets.records import Problem, as_bunch
from ..graphs import GraphBatch, ReasoningGraph, pack_labels


def from_networkx(
    graphs: Iterable[Any],
    *,
    features: Sequence[str] | None = None,
    label: str = "label",
) -> Bunch:
    """Take over directed networkx graphs, one per problem.

    Edges run parent -> child. Whatever node attributes are used as features, **higher
    should mean more confident** where a method takes one feature alone.

    Parameters
    ----------
    graphs : iterable of networkx.DiGraph
        The order of the nodes is the order of the claims. Node attribute ``claim`` is
        the text; graph attributes ``problem`` and ``id`` name question and problem, and
        ``alternatives``, ``context`` and ``metadata`` are read, too. A graph without nodes
        is a problem without claims, and one without edges has none, unless its attribute
        ``edges_known`` is false.
    features : list of str, optional
        Node attributes to use as features. None reads the node attribute ``features``
        and the graph attribute ``feature_names``, as ``ReasoningGraph.to_networkx``
        writes them.
    label : str
        Node attribute with the label: 1 true, 0 false, -1 unknown. Labels are None
        where no node has it.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of int arrays or None), ``groups`` (array
        or None), ``metadata`` (list of dict, or None), ``dropped`` (empty).

    Raises
    ------
    ValueError
        If a node lacks a feature, or has no label while others have.

    Examples
    --------
    >>> import networkx as nx
    >>> from skdcf.adapters import from_networkx
    >>> graph = nx.DiGraph([("a", "b")])
    >>> nx.set_node_attributes(graph, {"a": 0.9, "b": 0.4}, "score")
    >>> nx.set_node_attributes(graph, {"a": 1, "b": 0}, "label")
    >>> data = from_networkx([graph], features=["score"])
    >>> data.graphs[0].edges.tolist(), data.labels[0].tolist()
    ([[0, 1]], [1, 0])
    """
    if hasattr(graphs, "nodes"):
        raise ValueError("graphs is a single graph: pass a list of them, [graph]")
    graphs = list(graphs)
    for i, graph in enumerate(graphs):
        if not hasattr(graph, "nodes"):
            raise ValueError(
                f"problem {i} is a {type(graph).__name__}, not a networkx.DiGraph"
            )
    made = [_graph(graph, i, features) for i, graph in enumerate(graphs) if len(graph)]
    like = made[0] if made else None
    for i, graph in enumerate(graphs):
        if not len(graph):
            made.insert(i, _empty(graph, features, like))
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    rows = [Problem.of(graph) for graph in made]
    if any(label in data for data in nodes):
        columns = (_attribute(graph, i, label) for i, graph in enumerate(graphs))
        labels = pack_labels(list(columns), GraphBatch.pack(made)).astype(np.int64)
        parts = GraphBatch.pack(made).split(labels)
        rows = [row._replace(labels=y) for row, y in zip(rows, parts, strict=True)]
    return as_bunch(rows)


def _graph(graph, i, features):
    if features is None:
        return ReasoningGraph.from_networkx(graph)
    columns = [_attribute(graph, i, name) for name in features]
    table = np.array(columns, dtype=float).reshape(len(features), len(graph)).T
    return ReasoningGraph.from_networkx(graph, features=table, feature_names=features)


def _empty(graph, features, like):
    """A problem without claims: which features it has is for the other ones to say."""
    names = features or graph.graph.get("feature_names")
    table = None
    if like is not None and like.features is not None:
        names, table = names or like.feature_names, like.features[:0]
    elif like is None and names is not None:
        table = np.empty((0, len(names)))
    fields = {"claims": (), "features": table, "feature_names": names}
    return ReasoningGraph.from_networkx(graph, **fields)


def _attribute(graph, i, name):
    for node, data in graph.nodes(data=True):
        if name not in data:
            raise ValueError(
                f"problem {i}: node {node!r} has no {name!r}, only {sorted(data)}"
            )
    return [data[name] for _, data in graph.nodes(data=True)]
