"""JSON Lines: one problem per line, for other programs and other languages.

The format is published as a JSON schema inside the package, see `jsonl_schema`. Lines
stand alone, so that files can be cut, joined and read as a stream.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice
from .._files import replaced
from ..adapters.collect import pack, per_problem
from ..graphs import ReasoningGraph
from ._jsonl_line import VERSION, Problem, format_line, parse

#: What there is one of per problem, in the order of the fields of `Problem`.
_COLUMNS = ("graphs", "labels", "masks", "groups", "metadata")
_END = object()
_BROKEN = (ValueError, TypeError, RecursionError, OverflowError)


def jsonl_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of one line.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skdcf.datasets import jsonl_schema
    >>> jsonl_schema()["properties"]["labels"]["description"]
    'Per claim 1 or true, 0 or false, and -1 where nobody judged it.'
    """
    path = files("skdcf.datasets").joinpath(f"schema/problem-{VERSION}.json")
    return json.loads(path.read_text("utf-8"))


def write_jsonl(
    path: str | os.PathLike,
    graphs: Iterable[ReasoningGraph],
    labels: Iterable[ArrayLike | None] | None = None,
    masks: Iterable[ArrayLike | None] | None = None,
    *,
    groups: Iterable[str | int | None] | None = None,
    metadata: Iterable[dict[str, Any] | None] | None = None,
) -> Path:
    """Write problems to a file, one per line.

    The file appears when it is complete: an interruption leaves what was there before.

    Parameters
    ----------
    path : path-like
    graphs : iterable of ReasoningGraph
        May be a generator: nothing is held in memory. Texts and ids that are numpy
        scalars are written as the plain values they stand for.
    labels : iterable of arrays, one per problem, optional
        1 true, 0 false, -1 where nobody judged the claim. An entry may be None. For a
        GraphBatch also one flat array.
    masks : iterable of boolean arrays, one per problem, optional
        What a filter kept, as ``predict`` returns it; likewise.
    groups : iterable of str or int, one per problem, optional
        Problems of one group belong on one side of a split. An entry may be None.
    metadata : iterable of dict, one per problem, optional
        Whatever else belongs to a problem, in values that JSON has. An entry may be
        None.

    Returns
    -------
    pathlib.Path
        Of the file.

    Raises
    ------
    ValueError
        If the numbers of problems, claims and what is given with them differ, or a
        value has no place in the format. No file is written then.

    See Also
    --------
    format_jsonl : The same lines as texts.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl
    >>> graphs, labels = make_reasoning_graphs(3, random_state=0, return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = read_jsonl(write_jsonl(f"{folder}/a.jsonl", graphs, labels))
    >>> list(back.graphs) == list(graphs)
    True
    """
    lines = format_jsonl(graphs, labels, masks, groups=groups, metadata=metadata)
    path = Path(path)
    with replaced(path, encoding="ascii", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")
    return path


def format_jsonl(
    graphs: Iterable[ReasoningGraph],
    labels: Iterable[ArrayLike | None] | None = None,
    masks: Iterable[ArrayLike | None] | None = None,
    *,
    groups: Iterable[str | int | None] | None = None,
    metadata: Iterable[dict[str, Any] | None] | None = None,
) -> Iterator[str]:
    """Problems as lines of text, for a stream or a database.

    Parameters
    ----------
    graphs, labels, masks, groups, metadata
        As for `write_jsonl`.

    Returns
    -------
    iterator of str
        One line per problem, in ASCII, without line breaks.

    Raises
    ------
    ValueError
        At once where a column is no iterable; at its line where a problem is bad.
    """
    labels, masks = per_problem(labels, graphs), per_problem(masks, graphs)
    columns = zip(_COLUMNS, (graphs, labels, masks, groups, metadata), strict=True)
    given = {k: v for k, v in columns if v is not None or k == "graphs"}
    for name, values in given.items():
        if isinstance(values, (str, dict)) or not hasattr(values, "__iter__"):
            raise ValueError(
                f"{name} is {values!r}: pass a list, one entry per problem"
            )
    return _lines(given)


def read_jsonl(
    path: str | os.PathLike | BinaryIO, *, on_invalid: str = "raise"
) -> Bunch:
    """Read problems that `write_jsonl` or another program wrote.

    Parameters
    ----------
    path : path-like or binary file
    on_invalid : {"raise", "drop"}
        Stop at the first line that breaks the format, or leave such lines out.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1 true, 0 false, -1
        unknown), ``groups`` (array), ``masks`` and ``metadata`` (lists with one array
        or dictionary per problem), ``dropped`` (list of (line number, reason)). What
        no line has is None. If only some lines have it, the others have labels of -1
        throughout, which says that nobody judged them, and None for the rest.

    Raises
    ------
    ValueError
        Naming the line, counted from 1, and what is wrong with it. Also if there is no
        problem in the file, or if its problems differ in their features; `iter_jsonl`
        reads those.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    dropped = []
    rows = list(read_rows(path, on_invalid=on_invalid, dropped=dropped))
    return rows_as_bunch(rows, _name_of(path), dropped)


def rows_as_bunch(rows, where, dropped=()):
    """What `read_jsonl` returns, of rows that were read."""
    graphs, labels, masks, groups, metadata = (
        _column([row[k] for row in rows]) for k in range(len(_COLUMNS))
    )
    if labels is not None:
        labels = [
            np.full(row.graph.n_claims, -1) if row.labels is None else row.labels
            for row in rows
        ]
    try:
        data = pack(graphs, labels, list(dropped))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    groups = None if groups is None else _group_array(groups)
    return Bunch(**data, masks=masks, groups=groups, metadata=metadata)


def iter_jsonl(
    path: str | os.PathLike | BinaryIO, *, on_invalid: str = "raise"
) -> Iterator[Problem]:
    """Read problems one at a time, in constant memory.

    Parameters
    ----------
    path : path-like or binary file
    on_invalid : {"raise", "drop"}
        As for `read_jsonl`.

    Returns
    -------
    iterator of (graph, labels, mask, group, metadata)
        Named tuples with a ReasoningGraph, an ndarray of 1 (true), 0 (false) and -1
        (unknown), an ndarray of bool, a str or int, and a dict; what a line does not
        hold is None. Problems may differ in their features.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    return read_rows(path, on_invalid=on_invalid, dropped=[])


def read_rows(
    path, start=0, stop=math.inf, first_line=1, *, on_invalid="raise", dropped=None
):
    """The problems between two bytes of a file, one at a time."""
    with _opened(path, start) as file:
        for number, line in enumerate(file, start=first_line):
            start += len(line)
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                try:
                    yield parse(line)
                except _BROKEN as error:
                    if on_invalid == "raise":
                        where = f"{_name_of(path)}, line {number}"
                        raise ValueError(f"{where}: {error}") from error
                    dropped.append((number, str(error)))
            if start >= stop:
                return


def _opened(path, start):
    """A file, or a stream that somebody else opened and will close."""
    stream = getattr(path, "buffer", path)  # of standard input, which is text
    if hasattr(stream, "read"):
        return nullcontext(stream)
    file = open(path, "rb")  # noqa: SIM115  (closed by the caller)
    file.seek(start)
    return file


def _name_of(path):
    return getattr(path, "name", "a stream") if hasattr(path, "read") else path


def _lines(given):
    """The text of each problem, from columns of what is known about all."""
    for number, row in enumerate(zip_longest(*given.values(), fillvalue=_END)):
        row = dict(zip(given, row, strict=True))
        if short := [name for name, value in row.items() if value is _END]:
            raise ValueError(f"there are only {number} {' and '.join(short)}")
        try:
            yield format_line(Problem(*map(row.get, _COLUMNS)))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"problem {number}: {error}") from error


def _column(values):
    """The values, or None where there are none at all."""
    return None if all(value is None for value in values) else values


def _group_array(groups):
    """Whole numbers as int64, as those of the data sets; anything else as it is."""
    small = all(type(group) is int and abs(group) < 2**63 for group in groups)
    return np.fromiter(groups, np.int64 if small else object, count=len(groups))
