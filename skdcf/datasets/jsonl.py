"""Read and write JSON Lines files with one problem per line.

Lines are independent of each other, so files can be split, concatenated and read as a stream.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_count, check_list
from .._files import write_text
from ..graphs import GraphBatch, ReasoningGraph
from . import records
from .lines import GZIP, iter_lines, name_of, parse_line

_SHOWN = 5  # maximum number of invalid lines in a message


def write_jsonl(
    path: str | os.PathLike[str],
    graphs: Iterable[ReasoningGraph],
    labels: Sequence[ArrayLike | None] | ArrayLike | None = None,
    masks: Sequence[ArrayLike | None] | ArrayLike | None = None,
    *,
    groups: Sequence[str | int | None] | None = None,
    metadata: Sequence[dict[str, Any] | None] | None = None,
) -> Path:
    """Write problems to a JSON Lines file, one problem per line.

    An existing file is replaced only when the new file is complete, so an interruption cannot
    damage it.

    Parameters
    ----------
    path : path-like
        File path. If the name ends with ``.gz``, the file is compressed.
    graphs : iterable of ReasoningGraph
        The problems. Texts and ids that are NumPy scalars are written as plain Python values.
    labels : sequence of arrays, one per problem, optional
        Claim labels: 1 true, 0 false, -1 not judged. Use None for a problem without labels. If
        ``graphs`` is a GraphBatch, ``labels`` may also be a flat array.
    masks : sequence of boolean arrays, one per problem, optional
        Masks of kept claims, as returned by ``predict``. Use None for a problem without a
        mask.
    groups : sequence of str or int, one per problem, optional
        Groups of problems that must not be split between training and calibration. Use None for a
        problem that belongs to no group.
    metadata : sequence of dict, one per problem, optional
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
    graphs, labels, masks, groups, metadata : sequence
        The problems and their values, as in `write_jsonl`.

    Returns
    -------
    lines : iterator of str
        One line of ASCII text per problem, without a trailing newline.

    Raises
    ------
    ValueError
        If an argument is not a list. The iterator also raises ValueError when it reaches an
        invalid problem.
    """
    columns = {"labels": labels, "masks": masks, "groups": groups, "metadata": metadata}
    graphs = check_list("graphs", graphs)
    for name, column in columns.items():
        if column is None:
            columns[name] = [None] * len(graphs)
            continue
        if name in ("labels", "masks"):
            column = columns[name] = _per_problem(column, graphs)
        if len(check_list(name, column)) != len(graphs):
            raise ValueError(
                f"{name} must have one entry for each of the {len(graphs)} problems, got "
                f"{len(column)}"
            )
    return map(_format_row, enumerate(zip(graphs, *columns.values(), strict=True)))


def _per_problem(values, graphs):
    """Split a flat array with one entry per claim into one array per problem."""
    is_flat = isinstance(values, np.ndarray) and values.dtype != object
    if is_flat and isinstance(graphs, GraphBatch) and len(values) == graphs.n_claims:
        return graphs.split(values)
    return values


def _format_row(numbered):
    number, row = numbered
    try:
        return records.format_problem(*row)
    except records.BROKEN as error:
        raise ValueError(f"problem {number}: {error}") from error


def read_jsonl(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    rename: Mapping[str, str] | None = None,
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

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1
        true, 0 false, -1 unknown), ``groups`` (array), ``masks`` and ``metadata`` (lists with one
        array or dictionary per problem). An attribute is None if no line has the corresponding
        key. If only some lines have labels,
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
    return read_bunch(path, partial(records.read_row, rename=rename))


def iter_read(
    source: Any, read: Callable[[dict[str, Any]], Any], first_line: int = 1
) -> Iterator[Any]:
    """Yield the result of ``read`` for the object of each line, in constant memory.

    Parameters
    ----------
    source : path-like or binary file
        The file to read.
    read : callable
        Function ``read(record)`` that converts the object of a line.
    first_line : int
        Number of the first line.

    Raises
    ------
    ValueError
        If lines are invalid. The message describes several of them, so they can be corrected
        together. If the source is a stream, it describes the first one.
    """
    faults: list[str] = []
    n_shown = 1 if hasattr(source, "read") else _SHOWN
    for number, line in iter_lines(source, first_line):
        try:
            result = read(parse_line(line))
        except records.BROKEN as error:
            faults.append(f"{name_of(source)}, line {number}: {error}")
            if len(faults) == n_shown:
                break
        else:
            if not faults:
                yield result
    if faults:
        raise ValueError("\n".join(faults))


def read_bunch(
    source: Any,
    read: Callable[[dict[str, Any]], dict[str, Any]] = records.read_row,
    first_line: int = 1,
) -> Bunch:
    """Return the problems of a file as a Bunch, given the arguments of `iter_read`."""
    rows = list(iter_read(source, read, first_line))
    try:
        return records.as_bunch(rows)
    except ValueError as error:
        raise ValueError(f"{name_of(source)}: {error}") from error


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
        with open(self.path, "rb") as file:
            file.seek(self.start)
            lines = io.BytesIO(file.read(self.stop - self.start))
        lines.name = self.path  # type: ignore[attr-defined]
        return read_bunch(lines, first_line=self.first_line)


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
    starts = []
    n_before = 0
    place = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if place == 0 and line.startswith(GZIP):
                raise ValueError(f"{path} must be uncompressed. Decompress the file")
            if not line.isspace():
                if n_before % n_problems == 0:
                    starts.append((place, number))
                n_before += 1
            place += len(line)
    if not starts:
        raise ValueError(f"{path} must contain at least one problem, but it is empty")
    stops = [start for start, _ in starts[1:]] + [place]
    return [
        JsonlPartition(path, start, stop, number)
        for (start, number), stop in zip(starts, stops, strict=True)
    ]
