"""Files of the two studies that this package builds on, as they were published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from sklearn.utils import Bunch

from .._checks import check_choice, check_list
from ..datasets.records import build_dataset
from ..datasets.scored import ANNOTATIONS, MATRICES, SCORES, parse_scored
from ._shared import EdgeRule

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
