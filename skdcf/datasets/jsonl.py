"""JSON Lines: one problem per line, for other programs and other languages.

The format is published as a JSON schema inside the package, see
``records.jsonl_schema``, and lines are checked by that schema. Lines stand alone, so that
files can be cut, joined and read as a stream.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_count
from .._files import MAX_LINE_BYTES, is_plain, iter_objects, name_of, write_text
from .._messages import Message, message_of
from ..graphs import GraphBatch, ReasoningGraph
from . import records
from .records import Problem

_END = object()
_LOOKED_AT = 10_000  # lines that are read after the first broken one
_SHOWN = 5  # faults of a file that one message names

#: Lists with one entry per problem, in the order of the fields of `Problem`.
_COLUMNS = ("graphs", "labels", "masks", "groups", "metadata")


def write_jsonl(
    path: str | os.PathLike[str],
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
        What is there is replaced. A name that ends in ``.gz`` compresses the file.
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
    return write_text(path, lines)


def format_jsonl(
    graphs: Any,
    labels: Any = None,
    masks: Any = None,
    *,
    groups: Any = None,
    metadata: Any = None,
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
    labels = _per_problem(labels, graphs)
    masks = _per_problem(masks, graphs)
    columns = zip(_COLUMNS, (graphs, labels, masks, groups, metadata), strict=True)
    columns_given = {k: v for k, v in columns if v is not None or k == "graphs"}
    for k, column in columns_given.items():
        if isinstance(column, (str, dict)) or not hasattr(column, "__iter__"):
            raise ValueError(f"{k} is {column!r}: pass a list, one entry per problem")
    return _lines(columns_given)


def _per_problem(values, graphs):
    """One flat array over all claims of a batch as one array per problem."""
    flat = isinstance(values, np.ndarray) and values.dtype != object
    if not (flat and values.ndim == 1 and isinstance(graphs, GraphBatch)):
        return values
    if values.shape != (graphs.n_claims,):
        raise ValueError(f"{len(values)} values but {graphs.n_claims} claims")
    return graphs.split(values)


def _lines(given):
    """The text of each problem, from columns of what is known about all."""
    for number, values in enumerate(zip_longest(*given.values(), fillvalue=_END)):
        row: dict[str, Any] = dict(zip(given, values, strict=True))
        if short := [name for name, value in row.items() if value is _END]:
            raise ValueError(f"there are only {number} {' and '.join(short)}")
        try:
            problem = Problem(
                graph=row["graphs"],
                labels=row.get("labels"),
                mask=row.get("masks"),
                group=row.get("groups"),
                metadata=row.get("metadata"),
            )
            yield records.format_problem(problem)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                Message(f"problem {number}: ", message_of(error))
            ) from error


def read_jsonl(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    rename: Mapping[str, str] | None = None,
    own: Collection[str] = (),
    on_invalid: Literal["raise", "drop"] = "raise",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Bunch:
    """Read problems that `write_jsonl` or another program wrote.

    Parameters
    ----------
    path : path-like or binary file
        The text may be compressed by gzip. It is UTF-8, or UTF-16 if its mark says so.
    rename : dict, optional
        From the keys of the file to those of the format, as in
        ``{"steps": "claims", "verdicts": "labels"}``. The usual names of other tools are
        read as they stand: ``contexts``, ``passages``, ``documents`` and
        ``retrieved_contexts`` as ``context``, ``user_input`` as ``problem``.
    own : collection of str
        Keys of your own that hold lists of texts and are no context. Without it such a key
        is an error in a line without context.
    on_invalid : {"raise", "drop"}
        Stop at the first line that breaks the format, or leave such lines out.
    max_line_bytes : int, default=67108864
        Bytes of the longest line, uncompressed. A longer line is always an error.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1 true, 0 false, -1
        unknown), ``groups`` (array), ``masks`` and ``metadata`` (lists with one array
        or dictionary per problem), ``dropped`` (list of (line number, reason)). What
        no line has is None. If only some lines have it, the others have labels of -1
        throughout, which says that nobody judged them, and None for the rest. The group
        of a line is also the key ``group`` of its metadata. Keys that the format does
        not know are kept there too, and written where they stood.

    Raises
    ------
    ValueError
        Naming the lines, counted from 1, and what is wrong with them. Also if there is no
        problem in the file, or if its problems differ in their features. Where every line
        was dropped, the attribute ``dropped`` of the error lists them.

    Warns
    -----
    UnknownKeyWarning
        If an unknown key looks like a known one that the line has as well. Where the
        line lacks that one, it is an error.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    dropped: list[tuple[int, str]] = []
    read = records.line_reader(rename, own)
    check_count("max_line_bytes", max_line_bytes, 1)
    lines = read_lines(path, read, on_invalid, dropped, max_line_bytes=max_line_bytes)
    rows = list(lines)
    return bunch_of(rows, name_of(path), dropped)


def iter_jsonl(
    path: Any,
    *,
    rename: Any = None,
    own: Collection[str] = (),
    on_invalid: Any = "raise",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Problem]:
    """Read problems one at a time, in constant memory.

    Parameters
    ----------
    path : path-like or binary file
        As for `read_jsonl`.
    rename : dict, optional
        From the keys of the file to those of the format.
    own : collection of str
        Keys of your own that hold lists of texts, as for `read_jsonl`.
    on_invalid : {"raise", "drop"}
        Stop at the first line that breaks the format, or leave such lines out.
    max_line_bytes : int, default=67108864
        Bytes of the longest line, uncompressed. A longer line is always an error.

    Returns
    -------
    iterator of (graph, labels, mask, group, metadata)
        Named tuples with a ReasoningGraph, an ndarray of 1 (true), 0 (false) and -1
        (unknown), an ndarray of bool, a str or int, and a dict; what a line does not
        hold is None. Problems may differ in their features.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    check_count("max_line_bytes", max_line_bytes, 1)
    read = records.line_reader(rename, own)
    return read_lines(path, read, on_invalid, [], max_line_bytes=max_line_bytes)


def read_lines(
    path: Any,
    read: Any,
    on_invalid: Any,
    dropped: Any,
    part: Any = (),
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Any:
    """What ``read`` makes of each line of a file, or of a part of it, one at a time.

    Of a file with broken lines all are named at once, so that nobody mends them one by one;
    a stream stops at the first.

    Parameters
    ----------
    path : path-like or binary file
    read : callable
        ``read(record)`` takes the object of a line.
    on_invalid : {"raise", "drop"}
    dropped : list of (line number, reason)
        Broken lines are added to it.
    part : tuple
        Start, stop and first line, as `iter_objects` takes them.
    max_line_bytes : int
        Bytes of the longest line.

    Yields
    ------
    object
        What ``read`` returned.
    """
    first_error = None
    last_line = math.inf
    for number, record in iter_objects(path, *part, max_line_bytes=max_line_bytes):
        if number > last_line:
            break
        try:
            if isinstance(record, ValueError):
                raise record
            row = read(record)
        except records.BROKEN as error:
            dropped.append((number, message_of(error)))
            if on_invalid == "raise" and first_error is None:
                first_error = error
                last_line = number if hasattr(path, "read") else number + _LOOKED_AT
        else:
            if first_error is None:
                yield row
    if first_error is not None:
        faults = describe_faults(dropped)
        shown = [
            Message("\n", f"{name_of(path)}, ", fault) for fault in faults[:_SHOWN]
        ]
        if len(faults) > _SHOWN:
            shown.append(Message("\n", f"and {len(faults) - _SHOWN} other faults"))
        parts = [part for line in shown for part in line.parts]
        raise ValueError(Message(*parts[1:])) from first_error


def describe_faults(faults: Sequence[tuple[int, str]]) -> list[str]:
    """Say what is wrong with lines, once where it is the same but for numbers.

    Parameters
    ----------
    faults : list of (line number, reason)

    Returns
    -------
    list of str
    """
    alike: dict[str, list[tuple[int, str]]] = {}
    for number, reason in faults:
        alike.setdefault(re.sub(r"[\d.,]+", "#", reason), []).append((number, reason))
    described: list[str] = []
    for group in alike.values():
        lines = [number for number, _ in group]
        reasons = {reason for _, reason in group}
        first = "" if len(reasons) == 1 else f" (so in line {lines[0]})"
        described.append(Message(_name_lines(lines), ": ", group[0][1], first))
    return described


def _name_lines(lines):
    """Name lines by their numbers, runs of them by the first and the last."""
    runs: list[list[int]] = []
    for number in lines:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    names = [str(a) if a == b else f"{a} to {b}" for a, b in runs]
    if len(names) > _SHOWN:
        n_others = sum(b - a + 1 for a, b in runs[_SHOWN:])
        names = [*names[:_SHOWN], f"{n_others} others"]
    if len(lines) == 1:
        return f"line {names[0]}"
    return "lines " + " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def bunch_of(rows: Any, where: Any, dropped: Any) -> Bunch:
    """The problems of a file as a Bunch; ValueError names the file."""
    try:
        return records.as_bunch(rows, dropped)
    except ValueError as error:
        failure = ValueError(Message(f"{where}: ", message_of(error)))
        failure.dropped = dropped  # type: ignore[attr-defined]
        raise failure from error


# --- parts of a file --------------------------------------------------------------------


@dataclass(frozen=True)
class JsonlPartition:
    """Some consecutive lines of a JSON Lines file.

    It holds no problems, only where they are, so that it costs nothing to send it to
    another process, which then reads the lines itself.

    Parameters
    ----------
    path : str
    start, stop : int
        First byte, and the one after the last.
    first_line : int, default=1
        Number of the first line, for messages.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf.datasets import jsonl_partitions, make_reasoning_graphs, write_jsonl
    >>> graphs, labels = make_reasoning_graphs(10, random_state=0, return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_jsonl(f"{folder}/a.jsonl", graphs, labels)
    ...     parts = jsonl_partitions(path, 4)
    ...     [len(part.read().graphs) for part in parts]
    [4, 4, 2]
    """

    path: str
    start: int
    stop: int
    first_line: int = 1

    def read(self) -> Bunch:
        """Read the lines.

        Returns
        -------
        Bunch
            As `read_jsonl` returns it.

        Raises
        ------
        ValueError
            Naming the line and what is wrong with it.
        """
        rows = list(
            read_lines(
                self.path,
                records.line_reader(),
                on_invalid="raise",
                dropped=[],
                part=(self.start, self.stop, self.first_line),
            )
        )
        return bunch_of(rows, f"{self.path}, from line {self.first_line}", [])


def jsonl_partitions(
    path: str | os.PathLike[str], n_problems: int = 10_000
) -> list[JsonlPartition]:
    """Cut a JSON Lines file into parts, without reading more than where lines end.

    Parameters
    ----------
    path : path-like
        A plain file of JSON Lines.
    n_problems : int, default=10_000
        Of each part but the last. Some thousand bytes of memory are used for each.

    Returns
    -------
    list of JsonlPartition
        In the order of the file. Each has a method ``read``, which returns what `read_jsonl`
        would return for its lines.

    Raises
    ------
    ValueError
        If there is no problem in the file, or it is compressed or UTF-16.
    """
    check_count("n_problems", n_problems, 1)
    path = os.fspath(path)
    cuts = []
    filled = 0
    if not is_plain(path):
        raise ValueError(
            f"{path} is compressed or UTF-16: unpack it, or make it UTF-8, to read parts"
        )
    with open(path, "rb") as file:
        place = 0
        for number, line in enumerate(file, start=1):
            if line.strip(b"\xef\xbb\xbf \t\r\n"):
                if filled % n_problems == 0:
                    cuts.append((place, number))
                filled += 1
            place += len(line)
    if not cuts:
        raise ValueError(f"{path}: there is no problem in the file")
    pairs = pairwise([*cuts, (place, 0)])
    return [JsonlPartition(path, start, stop, n) for (start, n), (stop, _) in pairs]
