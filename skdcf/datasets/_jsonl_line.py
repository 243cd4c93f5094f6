"""One line of a JSON Lines file: a problem as text, and back."""

import json
from typing import Any, NamedTuple

import numpy as np

from ..adapters.collect import label_array
from ..graphs import ReasoningGraph

VERSION = 1
_OF_GRAPH = (
    "id",
    "problem",
    "claims",
    "alternatives",
    "context",
    "features",
    "n_features",
    "feature_names",
    "edges",
)


class Problem(NamedTuple):
    """What a line holds; None stands for what it does not."""

    graph: ReasoningGraph
    labels: np.ndarray | None = None
    mask: np.ndarray | None = None
    group: str | int | None = None
    metadata: dict[str, Any] | None = None


_BESIDE = Problem._fields[1:]
#: All that a line may hold, as the schema has it.
KEYS = ["version", *_OF_GRAPH, *_BESIDE]


def parse(line):
    """The `Problem` in one line, given as bytes; ValueError where it is broken."""
    record = _decoded(line)
    if unknown := sorted(record.keys() - set(KEYS)):
        raise ValueError(
            f"unknown keys {unknown}: a line may hold {KEYS}. The question is the "
            '"problem", the steps are "claims", and whatever else belongs to a problem goes '
            'into an object called "metadata"'
        )
    version = record.pop("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise ValueError(f"version is {version!r}, this program reads {VERSION}")
    labels, mask, group, metadata = (record.pop(name, None) for name in _BESIDE)
    _check_types(record, group, metadata)
    graph = ReasoningGraph.from_dict(record | {"metadata": metadata})
    labels, mask = _labels(labels, graph), _mask(mask, graph)
    return Problem(graph, labels, mask, group, metadata)


def format_line(problem):
    """A `Problem` as ASCII text; other characters are escaped, as JSON allows."""
    graph, labels, mask, group, metadata = problem
    if not isinstance(graph, ReasoningGraph):
        raise ValueError(f"a {type(graph).__name__} instead of a ReasoningGraph")
    record = {"version": VERSION, **graph.to_dict()}
    own = record.pop("metadata", None)
    metadata = own if metadata is None else metadata
    for name in {"claims", "alternatives", "context", "problem", "id"} & record.keys():
        record[name] = _plain(record[name])
    labels, mask = _labels(labels, graph), _mask(mask, graph)
    group, metadata = _plain(group), _plain(metadata)
    _check_types(record, group, metadata)
    for name, value in zip(_BESIDE, (labels, mask, group, metadata), strict=True):
        if value is not None:
            record[name] = value.tolist() if isinstance(value, np.ndarray) else value
    text = json.dumps(record, allow_nan=False)
    if metadata is not None and json.loads(text)["metadata"] != metadata:
        raise ValueError(
            "metadata would not be read as it is: JSON has neither tuples nor keys that "
            "are no strings"
        )
    return text


def _decoded(line):
    try:
        record = json.loads(line.rstrip(), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not a JSON object on one line: {error.msg} at character {error.pos + 1}"
        ) from error
    except RecursionError as error:
        raise ValueError("its brackets are nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError(f"a {type(record).__name__} instead of an object")
    return record


def _no_constant(name):
    raise ValueError(
        f"{name} is no JSON: features must be finite, metadata may be null"
    )


def _check_types(record, group, metadata):
    """What the graph itself does not check."""
    if record.get("claims") is None and record.get("features") is None:
        raise ValueError("there are neither claims nor features: give one or both")
    for key in ("claims", "alternatives", "context", "feature_names"):
        values = record.get(key, [])
        if type(values) is not list or not all(type(v) is str for v in values):
            raise ValueError(f"{key} must be a list of strings")
    if type(record.get("problem", "")) is not str:
        raise ValueError("problem must be a string")
    for key, value in (("id", record.get("id")), ("group", group)):
        if value is not None and type(value) not in (str, int):  # and no bool
            raise ValueError(f"{key} must be a string or a whole number")
    if not isinstance(metadata, dict | None):
        raise ValueError("metadata must be an object")
    _check_features(record.get("features"))
    _check_edges(record.get("edges"))


def _check_features(features):
    """Numpy would read numbers out of texts, too."""
    if features is None:
        return
    if type(features) is not list or not all(type(row) is list for row in features):
        raise ValueError("features must be a list of rows, or null")
    for v, row in enumerate(features):
        for value in row:
            if type(value) not in (int, float):  # and no bool
                raise ValueError(f"features of claim {v} hold {value!r}, no number")


def _check_edges(edges):
    if edges is None:  # not known
        return
    if type(edges) is not list:
        raise ValueError(
            "edges must be a list of pairs, or null where nobody knows them"
        )
    for pair in edges:
        whole = type(pair) is list and all(type(v) is int for v in pair)
        if not whole or len(pair) != 2:
            raise ValueError(f"edge {pair!r} is not a pair of whole numbers")


def _labels(values, graph):
    if values is None:
        return None
    _check_shape("labels", values, graph)
    return label_array(values, "claim {}".format)


def _mask(values, graph):
    """The mask as an array; 1 and true are different things in JSON."""
    if values is None:
        return None
    _check_shape("mask", values, graph)
    for v, value in enumerate(values):
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"mask of claim {v} is {value}, but must be true or false")
    return np.array(values, dtype=bool)


def _check_shape(name, values, graph):
    if np.shape(values) != (graph.n_claims,):
        raise ValueError(
            f"{name} of shape {np.shape(values)}, but there are {graph.n_claims} claims"
        )


def _plain(value):
    """What numpy scalars stand for, also those in lists and dictionaries."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
