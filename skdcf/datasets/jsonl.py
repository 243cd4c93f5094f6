"""Read and write JSON Lines files with one problem per line.

Lines are validated against a JSON schema, which ``records.jsonl_schema`` returns. Lines are
independent of each other, so files can be split, concatenated and read as a stream.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_count
from .._files import write_text
from .._messages import Message, message_of
from ..graphs import GraphBatch, ReasoningGraph
from . import records
from .lines import BLOCK_BYTES, MAX_LINE_BYTES, is_plain, iter_blocks, name_of
from .records import Problem

_END = object()
_LOOKED_AT = 10_000  # number of lines to read after the first invalid line
_SHOWN = 5  # maximum number of different errors in a message

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
    """Write problems to a JSON Lines file, one problem per line.

    An existing file is replaced only when the new file is complete, so an interruption cannot
    damage it.

    Parameters
    ----------
    path : path-like
        File path. If the name ends with ``.gz``, the file is compressed.
    graphs : iterable of ReasoningGraph
        The problems. A generator is also accepted, because the problems are written one at a
        time. Texts and ids that are NumPy scalars are written as plain Python values.
    labels : iterable of arrays, one per problem, optional
        Claim labels: 1 true, 0 false, -1 not judged. Use None for a problem without labels. If
        ``graphs`` is a GraphBatch, ``labels`` may also be a flat array.
    masks : iterable of boolean arrays, one per problem, optional
        Masks of kept claims, as returned by ``predict``. Use None for a problem without a
        mask.
    groups : iterable of str or int, one per problem, optional
        Groups of problems that must not be split between training and calibration. Use None for a
        problem that belongs to no group.
    metadata : iterable of dict, one per problem, optional
        Additional information about each problem, as JSON-compatible values. Use None for a
        problem without metadata.

    Returns
    -------
    path : pathlib.Path
        The file that was written.

    Raises
    ------
    ValueError
        If the numbers of problems, claims and other values do not match, or if a value cannot
        be represented in this format. If an error is raised, an existing file remains unchanged.

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
    """Yield problems as lines of text, for example for a stream or a database.

    Parameters
    ----------
    graphs, labels, masks, groups, metadata : iterable
        The problems and their values, as in `write_jsonl`.

    Returns
    -------
    lines : iterator of str
        One line of ASCII text per problem, without a trailing newline.

    Raises
    ------
    ValueError
        If an argument is not iterable. The iterator also raises ValueError when it reaches an
        invalid problem.
    """
    labels = _per_problem(labels, graphs)
    masks = _per_problem(masks, graphs)
    columns = zip(_COLUMNS, (graphs, labels, masks, groups, metadata), strict=True)
    columns_given = {k: v for k, v in columns if v is not None or k == "graphs"}
    for k, column in columns_given.items():
        if isinstance(column, (str, dict)) or not hasattr(column, "__iter__"):
            raise ValueError(
                f"{k} must be a list with one entry per problem, got {column!r}"
            )
    return _lines(columns_given)


def _per_problem(values, graphs):
    """Split a flat array with one entry per claim into one array per problem."""
    flat = isinstance(values, np.ndarray) and values.dtype != object
    if not (flat and values.ndim == 1 and isinstance(graphs, GraphBatch)):
        return values
    if values.shape != (graphs.n_claims,):
        raise ValueError(
            f"a flat array must have one value for each of the {graphs.n_claims} claims, "
            f"got {len(values)}"
        )
    return graphs.split(values)


def _lines(given):
    """Yield the JSON line of each problem."""
    for number, values in enumerate(zip_longest(*given.values(), fillvalue=_END)):
        row: dict[str, Any] = dict(zip(given, values, strict=True))
        if short := [name for name, value in row.items() if value is _END]:
            raise ValueError(
                f"all arguments must have one entry per problem, got only {number} entries in "
                f"{' and '.join(short)}"
            )
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
    """Read problems from a JSON Lines file.

    Parameters
    ----------
    path : path-like or binary file
        The file, which may be compressed with gzip. The encoding must be UTF-8, or UTF-16 with
        a byte order mark.
    rename : dict, optional
        Mapping from keys in the file to keys of the format, such as ``dict(steps="claims",
        verdicts="labels")``. Common key names of other tools are renamed automatically. The
        keys ``contexts``, ``passages``, ``documents`` and ``retrieved_contexts`` are renamed to
        ``context``, and ``user_input`` is renamed to ``problem``. If several keys are renamed to
        ``context``, their passages are joined. A line that already has the new key must have the
        same value under both keys.
    own : collection of str
        Additional keys in your file that contain lists of strings but not the context. If a line
        has no context, an error is raised for any other unknown key whose value is a list of
        strings.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if a line is invalid, or to drop invalid lines.
    max_line_bytes : int, default=67108864
        Maximum uncompressed line size in bytes. A line that exceeds the maximum size always
        raises an error.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1
        true, 0 false, -1 unknown), ``groups`` (array), ``masks`` and ``metadata`` (lists with one
        array or dictionary per problem), and ``dropped`` (list of (line number, reason)). An
        attribute is None if no line has the corresponding key. If only some lines have labels,
        the labels of the other lines are -1 (not judged). Except for labels, missing values are
        None. The group of a line is also stored in the metadata, under the key ``group``. Unknown
        keys are stored in the metadata, and `write_jsonl` writes them back to their original
        places.

    Raises
    ------
    ValueError
        If lines are invalid, if the file contains no problem, or if its problems have different
        features. The error message lists the line numbers, counted from 1, and the reasons. If
        all lines are dropped, the exception lists them in its attribute ``dropped``.

    Warns
    -----
    UnknownKeyWarning
        If an unknown key resembles a known key, and the line contains both. If the line contains
        only the unknown key, an error is raised instead.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    dropped: list[tuple[int, str]] = []
    read = records.LineReader(rename, own)
    check_count("max_line_bytes", max_line_bytes, 1)
    blocks = read_blocks(path, read, on_invalid, dropped, max_line_bytes=max_line_bytes)
    return bunch_of([rows for _, rows in blocks], name_of(path), dropped)


def iter_jsonl(
    path: Any,
    *,
    rename: Any = None,
    own: Collection[str] = (),
    on_invalid: Any = "raise",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Problem]:
    """Yield problems from a JSON Lines file one at a time, in constant memory.

    Parameters
    ----------
    path : path-like or binary file
        The file, as in `read_jsonl`.
    rename : dict, optional
        Mapping from keys in the file to keys of the format.
    own : collection of str
        Additional keys with lists of strings, as in `read_jsonl`.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if a line is invalid, or to drop invalid lines.
    max_line_bytes : int, default=67108864
        Maximum uncompressed line size in bytes. A line that exceeds the maximum size always
        raises an error.

    Returns
    -------
    problems : iterator of (graph, labels, mask, group, metadata)
        Each item is a named tuple that contains a ReasoningGraph, the labels (int array: 1 true,
        0 false, -1 unknown), the mask (boolean array), the group (str or int) and the metadata
        (dict). Missing values are None. Different problems may have different features.
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    check_count("max_line_bytes", max_line_bytes, 1)
    read = records.LineReader(rename, own)
    blocks = read_blocks(path, read, on_invalid, [], max_line_bytes=max_line_bytes)
    return chain.from_iterable(records.problems_of(rows) for _, rows in blocks)


def read_blocks(
    path: Any,
    read: Any,
    on_invalid: Any,
    dropped: Any,
    part: Any = (),
    *,
    note: Callable[[dict[str, Any]], None] | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[tuple[list[Any], records.Columns | list[Any]]]:
    """Yield the objects of lines in a file or part of a file, and the results of ``read``.

    If a file contains invalid lines, the error message describes several of them, so they can be
    corrected together. If a stream contains invalid lines, the error message describes only the
    first one.

    Parameters
    ----------
    path : path-like or binary file
        The file to read.
    read : callable
        Function ``read(record)`` that converts the object of a line. The lines of a file are
        checked in blocks if the function is a `records.LineReader`.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if a line is invalid, or to drop invalid lines.
    dropped : list of (line number, reason)
        List to which invalid lines are appended.
    part : tuple
        Start position, stop position and first line number of the part, as in `iter_blocks`.
    note : callable, optional
        Function ``note(record)`` that is called with the object of each line before the object is
        read.
    max_line_bytes : int
        Maximum line size in bytes.

    Yields
    ------
    objects : list of dict
        The parsed objects of one or more lines.
    rows : Columns or list
        The problems of these lines, or the results of ``read``.
    """
    first_error = None
    last_line = math.inf
    # The lines of a stream may arrive slowly, so each line is read as soon as it is complete.
    block_bytes = 0 if hasattr(path, "read") else BLOCK_BYTES
    blocks = iter_blocks(
        path, *part, block_bytes=block_bytes, max_line_bytes=max_line_bytes
    )
    results = chain.from_iterable(_results_of(b, read, note) for b in blocks)
    for number, objects, rows in results:
        if number > last_line:
            break
        if isinstance(rows, records.BROKEN):
            dropped.append((number, message_of(rows)))
            if on_invalid == "raise" and first_error is None:
                first_error = rows
                last_line = number if hasattr(path, "read") else number + _LOOKED_AT
        elif first_error is None:
            yield objects, rows
    if first_error is not None:
        faults = describe_faults(dropped)
        shown = [
            Message("\n", f"{name_of(path)}, ", fault) for fault in faults[:_SHOWN]
        ]
        if len(faults) > _SHOWN:
            shown.append(Message("\n", f"and {len(faults) - _SHOWN} other errors"))
        parts = [part for line in shown for part in line.parts]
        raise ValueError(Message(*parts[1:])) from first_error


def _results_of(block, read, note):
    """Yield line numbers, objects, and results or errors, for a whole block if possible."""
    objects = [record for _, record in block if isinstance(record, dict)]
    if note is not None:
        for record in objects:
            note(record)
    rows: Any = None
    if isinstance(read, records.LineReader) and len(objects) == len(block) > 1:
        rows = read.read_block(objects)
    if rows is not None:
        yield block[0][0], objects, rows
        return
    for number, record in block:
        try:
            if isinstance(record, ValueError):
                raise record
            rows = [read(record)]
        except records.BROKEN as error:
            rows = error
        yield number, [record], rows


def describe_faults(faults: Sequence[tuple[int, str]]) -> list[str]:
    """Return descriptions of invalid lines, combining reasons that differ only in numbers.

    Parameters
    ----------
    faults : list of (line number, reason)
        Number of each invalid line, and the reason why the line is invalid.

    Returns
    -------
    descriptions : list of str
        One description per kind of fault.
    """
    alike: dict[str, list[tuple[int, str]]] = {}
    for number, reason in faults:
        alike.setdefault(re.sub(r"[\d.,]+", "#", reason), []).append((number, reason))
    described: list[str] = []
    for group in alike.values():
        lines = [number for number, _ in group]
        reasons = {reason for _, reason in group}
        first = "" if len(reasons) == 1 else f" (in line {lines[0]})"
        described.append(Message(_name_lines(lines), ": ", group[0][1], first))
    return described


def _name_lines(lines):
    """Return the line numbers as text, with ranges for consecutive lines."""
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


def bunch_of(blocks: Any, where: Any, dropped: Any) -> Bunch:
    """Return the problems of a file as a Bunch. Error messages start with the file name."""
    try:
        return records.as_bunch(blocks, dropped)
    except ValueError as error:
        failure = ValueError(Message(f"{where}: ", message_of(error)))
        failure.dropped = dropped  # type: ignore[attr-defined]
        raise failure from error


# --- parts of a file --------------------------------------------------------------------


@dataclass(frozen=True)
class JsonlPartition:
    """A range of consecutive lines in a JSON Lines file.

    A partition stores only the positions of its lines, so it is cheap to send to another process,
    which then reads the lines.

    Parameters
    ----------
    path : str
        File path.
    start, stop : int
        Byte offsets of the beginning and the end of the range. The byte at ``stop`` is not
        included.
    first_line : int, default=1
        Number of the first line, for error messages.

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
        """Read the problems of the partition.

        Returns
        -------
        dataset : Bunch
            The problems, as returned by `read_jsonl`.

        Raises
        ------
        ValueError
            If a line is invalid. The error message contains the line number and the reason.
        """
        part = (self.start, self.stop, self.first_line)
        reader = records.LineReader()
        blocks = read_blocks(self.path, reader, "raise", dropped=[], part=part)
        problems = [rows for _, rows in blocks]
        return bunch_of(problems, f"{self.path}, from line {self.first_line}", [])


def jsonl_partitions(
    path: str | os.PathLike[str], n_problems: int = 10_000
) -> list[JsonlPartition]:
    """Split a JSON Lines file into partitions, without parsing its lines.

    Parameters
    ----------
    path : path-like
        An uncompressed JSON Lines file.
    n_problems : int, default=10_000
        Number of problems in each partition except the last. In memory, each partition occupies a
        few thousand bytes.

    Returns
    -------
    partitions : list of JsonlPartition
        The partitions, in file order. The method ``read`` of a partition reads its problems, like
        `read_jsonl`.

    Raises
    ------
    ValueError
        If the file contains no problem, or if it is compressed or in UTF-16.
    """
    check_count("n_problems", n_problems, 1)
    path = os.fspath(path)
    cuts = []
    filled = 0
    if not is_plain(path):
        raise ValueError(
            f"{path} must be an uncompressed UTF-8 file, because it is read in chunks. "
            "Decompress the file, or convert it to UTF-8"
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
        raise ValueError(f"{path} must contain at least one problem, but it is empty")
    pairs = pairwise([*cuts, (place, 0)])
    return [JsonlPartition(path, start, stop, n) for (start, n), (stop, _) in pairs]
