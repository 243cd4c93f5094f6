"""JSON Lines: one problem per line, for other programs and other languages.

The format is published as a JSON schema inside the package, see `jsonl_schema`. Lines
stand alone, so that files can be cut, joined and read as a stream.
"""

import json
import os
import uuid
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice
from ..graphs import GraphBatch, ReasoningGraph

VERSION = 1
_END = object()
_BROKEN = (ValueError, TypeError, RecursionError, OverflowError)


def jsonl_schema():
    """The JSON schema (draft 2020-12) of one line.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skdcf.datasets import jsonl_schema
    >>> jsonl_schema()["required"]
    ['version', 'edges']
    """
    path = files("skdcf.datasets").joinpath(f"schema/problem-{VERSION}.json")
    return json.loads(path.read_text("utf-8"))


def write_jsonl(path, graphs, labels=None, masks=None):
    """Write problems to a file, one per line.

    The file appears when it is complete: an interruption leaves what was there before.

    Parameters
    ----------
    path : path-like
    graphs : iterable of ReasoningGraph
        May be a generator: nothing is held in memory. Texts and ids that are numpy
        scalars are written as the plain values they stand for.
    labels : iterable of 0/1 arrays, one per problem, optional
        An entry may be None. For a GraphBatch also one flat array.
    masks : iterable of boolean arrays, one per problem, optional
        What a filter kept, as ``predict`` returns it; likewise.

    Returns
    -------
    pathlib.Path
        Of the file.

    Raises
    ------
    ValueError
        If numbers of problems, claims, labels and masks differ, or a value has no
        place in the format. No file is written then.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl
    >>> graphs, labels = make_reasoning_graphs(3, random_state=0, return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = read_jsonl(write_jsonl(f"{folder}/a.jsonl", graphs, labels))
    >>> back.graphs == list(graphs)
    True
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(temporary, "x", encoding="ascii", newline="\n") as file:
            for row in _rows(graphs, labels, masks):
                file.write(_line(*row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def read_jsonl(path, *, on_invalid="raise"):
    """Read problems that `write_jsonl` or another program wrote.

    Parameters
    ----------
    path : path-like
    on_invalid : {"raise", "drop"}
        Stop at the first line that breaks the format, or leave such lines out.

    Returns
    -------
    Bunch
        ``graphs`` (list of ReasoningGraph), ``labels`` and ``masks`` (list of one array
        or None per problem; None where no line has any), ``dropped`` (list of (line
        number, reason)).

    Raises
    ------
    ValueError
        Naming the line, counted from 1.
    """
    dropped = []
    rows = list(_read(path, on_invalid, dropped))
    graphs, labels, masks = ([row[k] for row in rows] for k in range(3))
    return Bunch(
        graphs=graphs,
        labels=_none_if_absent(labels),
        masks=_none_if_absent(masks),
        dropped=dropped,
    )


def iter_jsonl(path, *, on_invalid="raise"):
    """Read problems one at a time, in constant memory.

    Parameters
    ----------
    path : path-like
    on_invalid : {"raise", "drop"}
        As for `read_jsonl`.

    Returns
    -------
    iterator of (graph, labels, mask)
        A ReasoningGraph, an ndarray of 0/1 or None, an ndarray of bool or None.
    """
    return _read(path, on_invalid, [])


def _read(path, on_invalid, dropped):
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                row = _parse(json.loads(line))
            except _BROKEN as error:
                if on_invalid == "raise":
                    raise ValueError(
                        f'{path}, line {number}: {error}; on_invalid="drop" leaves '
                        "such lines out"
                    ) from error
                dropped.append((number, str(error)))
                continue
            yield row


def _parse(record):
    """Graph, labels and mask of one line."""
    if not isinstance(record, dict):
        raise ValueError(f"a {type(record).__name__} instead of an object")
    version = record.pop("version", None)
    if version != VERSION or isinstance(version, bool):
        raise ValueError(f"version is {version!r}, this program reads {VERSION}")
    labels, mask = record.pop("labels", None), record.pop("mask", None)
    _check_types(record)
    graph = ReasoningGraph.from_dict(record)
    return (
        graph,
        _per_claim("labels", labels, graph, int, (0, 1)),
        _per_claim("mask", mask, graph, bool, (False, True)),
    )


def _check_types(record):
    """What the graph itself does not check."""
    for key in ("claims", "feature_names"):
        values = record.get(key, [])
        if type(values) is not list or not all(type(v) is str for v in values):
            raise ValueError(f"{key} must be a list of strings")
    if type(record.get("problem", "")) is not str:
        raise ValueError("problem must be a string")
    if type(record.get("id", "")) not in (str, int):  # and no bool
        raise ValueError("id must be a string or a whole number")
    _check_features(record.get("features"))
    if type(record.get("edges")) is not list:
        raise ValueError("edges must be a list of pairs")
    for pair in record["edges"]:
        whole = type(pair) is list and all(type(v) is int for v in pair)
        if not whole or len(pair) != 2:
            raise ValueError(f"edge {pair!r} is not a pair of whole numbers")


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


def _per_claim(name, values, graph, kind, allowed):
    """Labels or mask as an array; JSON's 1 and true are different things here."""
    if values is None:
        return None
    if type(values) is not list or len(values) != graph.n_claims:
        found = len(values) if type(values) is list else repr(values)
        raise ValueError(f"{found} {name} but {graph.n_claims} claims")
    for v, value in enumerate(values):
        if type(value) is not kind or value not in allowed:
            raise ValueError(
                f"{name} of claim {v} is {value!r}, expected one of {allowed}"
            )
    return np.array(values, dtype=kind)


def _rows(graphs, labels, masks):
    """(number, graph, labels, mask) of each problem; None for what was not given."""
    given = {"labels": labels, "masks": masks}
    given = {name: _column(v, graphs) for name, v in given.items() if v is not None}
    columns = {"graphs": graphs, **given}
    for number, row in enumerate(zip_longest(*columns.values(), fillvalue=_END)):
        if any(value is _END for value in row):
            short = [name for name, v in zip(columns, row, strict=True) if v is _END]
            raise ValueError(f"there are only {number} {' and '.join(short)}")
        row = dict(zip(columns, row, strict=True))
        yield number, row["graphs"], row.get("labels"), row.get("masks")


def _column(values, graphs):
    """One flat array over all claims of a batch as one array per problem."""
    flat = isinstance(values, np.ndarray) and values.dtype != object
    if not (flat and isinstance(graphs, GraphBatch)):
        return values
    if values.shape != (graphs.n_claims,):
        raise ValueError(f"{values.shape} values but {graphs.n_claims} claims")
    return graphs.split(values)


def _line(number, graph, labels, mask):
    """One problem as ASCII text; other characters are escaped, as JSON allows."""
    record = {"version": VERSION, **graph.to_dict()}
    for name in {"claims", "problem", "id"} & record.keys():
        record[name] = _plain(record[name])
    for name, values, kind in (("labels", labels, int), ("mask", mask, bool)):
        if values is not None:
            record[name] = _listed(name, np.asarray(values), kind, number, graph)
    try:
        _check_types(record)
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"problem {number}: {error}") from error


def _plain(value):
    """What numpy scalars stand for, also those in a list."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _listed(name, values, kind, number, graph):
    if values.shape != (graph.n_claims,):
        raise ValueError(
            f"problem {number}: {name} have shape {values.shape} but there are "
            f"{graph.n_claims} claims"
        )
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"problem {number}: {name} are {values}, expected 0 and 1")
    return values.astype(kind).tolist()


def _none_if_absent(rows):
    return None if all(row is None for row in rows) else rows
