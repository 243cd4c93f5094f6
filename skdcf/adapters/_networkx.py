"""Graphs of networkx, and files of the two studies that this package builds on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, check_list
from ..datasets.records import (
    ANNOTATIONS,
    MATRICES,
    SCORES,
    Problem,
    as_bunch,
    build_dataset,
    parse_scored,
)
from ..graphs import GraphBatch, ReasoningGraph, pack_labels
from ._shared import EdgeRule


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


_Source = str | PathLike | dict[str, Any] | list[dict[str, Any]]


def from_coherent_factuality_json(
    source: _Source,
    *,
    graph: str = "dep_graph",
    label: str | None = "manual_annotation",
    features: str | Sequence[str] | None = "default",
    on_invalid: Literal["raise", "drop"] = "raise",
    name: str = "problem",
) -> Bunch:
    """Read problems as the authors of coherent factuality store them.

    Parameters
    ----------
    source : path-like, dict or list
        A JSON file, its content ``{"data": [problem, ...]}``, or the list in it.
    graph : {"dep_graph", "gold_graph"}
        Which 0/1 matrix; row = child, column = parent.
    label : {"manual_annotation", "annotation"} or None
        ``manual_annotation`` says whether a claim is right given what it builds on;
        ``annotation`` whether it is true on its own.
    features : "default", list of str or None
        Numeric fields of the claims to use; "default" takes ``frequency-score`` and
        ``gpt-score``, of both of which **higher means more confident**. Fields such as
        ``optimal-score`` are made from labels and have no place here.
    on_invalid : {"raise", "drop"}
        Stop at the first broken problem, or leave such problems out.
    name : str
        Problems are called ``name/0``, ``name/1``, ...

    Returns
    -------
    Bunch
        As from `skdcf.datasets.build_dataset`: ``graphs`` (GraphBatch), ``labels`` (list
        of 0/1 int arrays, or None), ``groups``, ``dropped`` (list of (id, reason)).

    Raises
    ------
    ValueError
        On a broken problem, with ``on_invalid="raise"``.

    Examples
    --------
    >>> from skdcf.adapters import from_coherent_factuality_json
    >>> claims = [{"subclaim": "x = 2", "frequency-score": 5.0, "gpt-score": 0.9,
    ...            "manual_annotation": "1.0"},
    ...           {"subclaim": "2 x = 5", "frequency-score": 1.0, "gpt-score": 0.7,
    ...            "manual_annotation": "0.0"}]
    >>> problem = {"prompt": "?", "claims": claims, "dep_graph": [[0, 0], [1, 0]]}
    >>> data = from_coherent_factuality_json([problem])
    >>> data.graphs[0].edges.tolist(), data.labels[0].tolist()
    ([[0, 1]], [1, 0])
    """
    check_choice("graph", graph, MATRICES)
    check_choice("label", label, (*ANNOTATIONS, None))
    scores = SCORES if features == "default" else features
    records = _records(source, name)
    parse = lambda record: parse_scored(record, scores, label, graph)  # noqa: E731
    return build_dataset(records, parse, on_invalid=on_invalid)


def from_conformal_factuality_json(
    source: _Source,
    *,
    edges: EdgeRule | None = None,
    features: str | Sequence[str] | None = "default",
    label: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    name: str = "problem",
) -> Bunch:
    """Read problems as the authors of conformal factuality store them: no graphs.

    Parameters
    ----------
    source : path-like, dict or list
        A file (one JSON object, although it may be called ``.jsonl``), its content
        ``{"data": [problem, ...]}``, or the list in it.
    edges : callable, optional
        ``edges(claims, problem)`` gives the pairs (parent, child) of one problem, as
        the functions of `skdcf.edges` do; None says that the edges are not known.
    features : "default", list of str or None
        As for `from_coherent_factuality_json`; **higher means more confident**.
    label : bool
        Read ``annotation``: Y (yes) and S (subjective) are true, N (no) and U
        (unknown) are false, as the authors count them; blanks around them are ignored.
    on_invalid : {"raise", "drop"}
        Stop at the first broken problem, or leave such problems out.
    name : str
        Problems are called ``name/0``, ``name/1``, ...

    Returns
    -------
    Bunch
        As from `skdcf.datasets.build_dataset`: ``graphs`` (GraphBatch), ``labels`` (list
        of 0/1 int arrays, or None), ``groups``, ``dropped`` (list of (id, reason)).

    Raises
    ------
    ValueError
        On a broken problem, with ``on_invalid="raise"``.

    Examples
    --------
    >>> from skdcf.adapters import from_conformal_factuality_json
    >>> claim = {"subclaim": "He is an actor.", "frequency-score": 5.0,
    ...          "gpt-score": 1.0, "annotation": "Y "}
    >>> data = from_conformal_factuality_json([{"prompt": "?", "claims": [claim]}])
    >>> data.graphs[0].features.tolist(), data.labels[0].tolist()
    ([[5.0, 1.0]], [1])
    """
    scores = SCORES if features == "default" else features

    def parse(record):
        out = parse_scored(record, scores, "annotation" if label else None)
        if edges is not None:
            out["edges"] = edges(out["claims"], out["problem"])
        return out

    return build_dataset(_records(source, name), parse, on_invalid=on_invalid)


def _records(source, name):
    if isinstance(source, (str, PathLike)):
        source = json.loads(Path(source).read_text("utf-8"))
    if isinstance(source, dict):
        if "data" not in source:
            raise ValueError(f"there is no list of problems 'data', only {[*source]}")
        source = source["data"]
    check_list("the source", source)
    return {f"{name}/{i}": record for i, record in enumerate(source)}
