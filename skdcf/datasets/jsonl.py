"""Read and write JSON Lines files with one problem per line.

Lines are independent of each other, so files can be split, concatenated and read as a stream.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, zip_longest
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
from .lines import is_compressed, iter_lines, name_of
from .records import Problem

_END = object()
_SHOWN = 5  # maximum number of invalid lines in a message

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
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Bunch:
    """Read problems from a JSON Lines file.

    Parameters
    ----------
    path : path-like or binary file
        The file in UTF-8, which may be compressed with gzip.
    rename : dict, optional
        Mapping from keys and paths in the file to keys of the format, such as
        ``{"steps": "claims", "retrieval.hits[].text": "context"}``. Each line must have a value
        (or null) under each of these keys, unless it has a value under the new key already. If it
        has both, they must be equal.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if a line is invalid, or to drop invalid lines.

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
        features, or if an unknown key is nearly a known one. The error message contains the
        numbers of several invalid lines, counted from 1, and the reasons.
    """
    return read_bunch(path, partial(records.read_row, rename=rename), on_invalid)


def iter_read(
    source: Any,
    read: Callable[[dict[str, Any]], Any],
    on_invalid: str = "raise",
    dropped: list[tuple[int, str]] | None = None,
    part: tuple[int, ...] = (),
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the object of each line and the result of ``read``, in constant memory.

    Parameters
    ----------
    source : path-like or binary file
        The file to read.
    read : callable
        Function ``read(record)`` that converts the object of a line.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if a line is invalid, or to drop invalid lines.
    dropped : list of (line number, reason), optional
        List to which invalid lines are appended.
    part : tuple
        Start position, stop position and first line number of the part, as in `iter_lines`.

    Raises
    ------
    ValueError
        If lines are invalid. The message describes several of them, so they can be corrected
        together. If the source is a stream, it describes the first one.
    """
    dropped = [] if dropped is None else dropped
    faults: list[str] = []
    n_shown = 1 if hasattr(source, "read") else _SHOWN
    for number, record in iter_lines(source, *part):
        try:
            if isinstance(record, ValueError):
                raise record
            result = read(record)
        except records.BROKEN as error:
            dropped.append((number, message_of(error)))
            if on_invalid == "raise":
                place = f"{name_of(source)}, line {number}: "
                faults += ["\n", Message(place, message_of(error))]
                if len(dropped) == n_shown:
                    break
        else:
            if not faults:
                yield record, result
    if faults:
        raise ValueError(Message(*faults[1:]))


def read_bunch(
    source: Any,
    read: Callable[[dict[str, Any]], dict[str, Any]] = records.read_row,
    on_invalid: str = "raise",
    part: tuple[int, ...] = (),
) -> Bunch:
    """Return the problems of a file as a Bunch, given the arguments of `iter_read`."""
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    dropped: list[tuple[int, str]] = []
    rows = [row for _, row in iter_read(source, read, on_invalid, dropped, part)]
    try:
        return records.as_bunch(rows, dropped)
    except ValueError as error:
        raise ValueError(Message(f"{name_of(source)}: ", message_of(error))) from error


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
        return read_bunch(self.path, part=(self.start, self.stop, self.first_line))


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
        If the file contains no problem, or if it is compressed.
    """
    check_count("n_problems", n_problems, 1)
    path = os.fspath(path)
    cuts = []
    filled = 0
    if is_compressed(path):
        raise ValueError(
            f"{path} must be uncompressed, because it is read in parts. Decompress the file"
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
