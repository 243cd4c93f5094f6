"""Files of the two studies that this package builds on, as they were published."""

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, check_list
from ..graphs import ReasoningGraph
from .collect import EdgeRule, build_all, pack

_Source = str | PathLike | dict[str, Any] | list[dict[str, Any]]
_SCORES = ("frequency-score", "gpt-score")
#: Values of ``annotation`` that the authors count as true and as false.
_VERDICTS = {"Y": 1, "S": 1, "N": 0, "U": 0}


def from_coherent_factuality_json(
    source: _Source,
    *,
    graph: str = "dep_graph",
    label: str | None = "manual_annotation",
    features: str | Sequence[str] | None = "default",
    on_invalid: str = "raise",
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
        ``graphs`` (GraphBatch), ``labels`` (list of 0/1 int arrays, or None),
        ``dropped`` (list of (id, reason)).

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
    check_choice("graph", graph, ("dep_graph", "gold_graph"))
    check_choice("label", label, ("manual_annotation", "annotation", None))

    def build(record, id):
        fields = _fields(record, features)
        matrix, table = record[graph], fields.pop("features")
        made = ReasoningGraph.from_adjacency(matrix, table, id=id, **fields)
        return made, _labels(record["claims"], label)

    return _read(source, build, on_invalid, name, label)


def from_conformal_factuality_json(
    source: _Source,
    *,
    edges: EdgeRule | None = None,
    features: str | Sequence[str] | None = "default",
    label: bool = True,
    on_invalid: str = "raise",
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
        ``graphs`` (GraphBatch), ``labels`` (list of 0/1 int arrays, or None),
        ``dropped`` (list of (id, reason)).

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
    key = "annotation" if label else None

    def build(record, id):
        fields = _fields(record, features)
        pairs = None if edges is None else edges(fields["claims"], fields["problem"])
        made = ReasoningGraph(fields.pop("features"), pairs, id=id, **fields)
        return made, _labels(record["claims"], key)

    return _read(source, build, on_invalid, name, key)


def _read(source, build, on_invalid, name, label):
    if isinstance(source, (str, PathLike)):
        source = json.loads(Path(source).read_text("utf-8"))
    if isinstance(source, dict):
        if "data" not in source:
            raise ValueError(f"there is no list of problems 'data', only {[*source]}")
        source = source["data"]
    check_list("the source", source)
    records = ((f"{name}/{i}", record) for i, record in enumerate(source))
    graphs, labels, dropped = build_all(records, build, on_invalid)
    return pack(graphs, None if label is None else labels, dropped)


def _fields(record, features):
    """Constructor arguments of the graph; the fields named in ``features`` only."""
    claims = record["claims"]
    fields = {"claims": [claim["subclaim"] for claim in claims]}
    fields |= {"problem": record["prompt"], "features": None}
    if features is not None:
        names = _SCORES if features == "default" else tuple(features)
        table = [[claim[name] for name in names] for claim in claims]
        fields["features"] = np.array(table, dtype=np.float64)
        fields["feature_names"] = names
    return fields


def _labels(claims, label):
    if label is None:
        return None
    read = _verdict if label == "annotation" else _binary
    return np.array([read(claim[label], v) for v, claim in enumerate(claims)])


def _verdict(text, v):
    """Y, S, N or U; one of the published files pads a Y with hundreds of blanks."""
    verdict = str(text).strip()
    check_choice(f"claim {v}: annotation", verdict, _VERDICTS)
    return _VERDICTS[verdict]


def _binary(text, v):
    """'1.0', '0.0', '1' or '0'; another number is a slip of the annotator."""
    try:
        value = float(text)
    except ValueError:
        value = None
    if value not in (0.0, 1.0):
        raise ValueError(
            f"claim {v}: manual_annotation is {text!r}, but must be 0 or 1"
        )
    return int(value)
