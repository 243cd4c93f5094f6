"""Read and write JSON Lines files with one problem per line.

Lines are independent of each other, so files can be split, concatenated and read as a stream.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._arrays import optional_rows
from .._checks import check_count, check_list
from .._files import write_text
from ..graphs import ReasoningGraph
from . import records
from .lines import GZIP, iter_lines, name_of, parse_line


def write_jsonl(
    path: str | os.PathLike[str],
    graphs: Iterable[ReasoningGraph],
    labels: Sequence[ArrayLike | None] | None = None,
    masks: Sequence[ArrayLike | None] | None = None,
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
        Claim labels: 1 true, 0 false, -1 not judged. Use None for a problem without labels.
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


def format_jsonl(graphs, labels=None, masks=None, *, groups=None, metadata=None):
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
        if column is not None and len(check_list(name, column)) != len(graphs):
            raise ValueError(
                f"{name} must have one entry for each of the {len(graphs)} problems, got "
                f"{len(column)}"
            )

    def formatted(number):
        try:
            return records.format_problem(
                graphs[number], *(optional_rows(c, number) for c in columns.values())
            )
        except records.BROKEN as error:
            raise ValueError(f"problem {number}: {error}") from error

    return map(formatted, range(len(graphs)))


def read_jsonl(
    path: str | os.PathLike[str] | BinaryIO, *, rename: Mapping[str, str] | None = None
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
        number of the first invalid line, counted from 1, and the reason.
    """
    rows = list(iter_read(path, lambda record: records.read_row(record, rename)))
    try:
        return records.as_bunch(rows)
    except ValueError as error:
        raise ValueError(f"{name_of(path)}: {error}") from error


def iter_read(source, read):
    """Yield the result of ``read`` for the object of each line, in constant memory.

    Parameters
    ----------
    source : path-like or binary file
        The file to read.
    read : callable
        Function ``read(record)`` that converts the object of a line.

    Raises
    ------
    ValueError
        If a line is invalid. The message contains its number, counted from 1.
    """
    for number, line in iter_lines(source):
        try:
            result = read(parse_line(line))
        except records.BROKEN as error:
            raise ValueError(f"{name_of(source)}, line {number}: {error}") from error
        yield result


class JsonlPartition(NamedTuple):
    """A range of lines in a JSON Lines file, which another process can read.

    ``start`` and ``stop`` are byte offsets, and ``first_line`` is the number of the first line.
    """

    path: str
    start: int
    stop: int
    first_line: int

    def read(self) -> Bunch:
        """Return the problems of the partition, as `read_jsonl` does."""
        with open(self.path, "rb") as file:
            file.seek(self.start)
            lines = file.read(self.stop - self.start)
        # With the empty lines, the line numbers in messages match the file.
        stream: Any = io.BytesIO(b"\n" * (self.first_line - 1) + lines)
        stream.name = self.path
        return read_jsonl(stream)


def jsonl_partitions(
    path: str | os.PathLike[str], n_problems: int = 10_000
) -> list[JsonlPartition]:
    """Divide a JSON Lines file into partitions, which are read later, for example in parallel.

    Parameters
    ----------
    path : path-like
        A JSON Lines file that is not compressed.
    n_problems : int
        Number of problems in each partition except the last.

    Returns
    -------
    partitions : list of JsonlPartition
        The partitions, in file order. The method ``read()`` of a partition returns its problems,
        as `read_jsonl` does.

    Raises
    ------
    ValueError
        If the file is compressed or contains no problem.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf.datasets import jsonl_partitions, make_reasoning_graphs, write_jsonl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graphs = make_reasoning_graphs(10, random_state=0).graphs
    ...     parts = jsonl_partitions(write_jsonl(f"{folder}/a.jsonl", graphs), 4)
    ...     [len(part.read().graphs) for part in parts]
    [4, 4, 2]
    """
    check_count("n_problems", n_problems, 1)
    starts = []
    position = n_lines = 0
    with open(path, "rb") as file:
        is_packed = file.peek(2)[:2] == GZIP
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                if n_lines % n_problems == 0:
                    starts.append((position, number))
                n_lines += 1
            position += len(line)
    if is_packed or not starts:
        raise ValueError(
            f"{path} must be an uncompressed file with at least one problem"
        )
    return [
        JsonlPartition(os.fspath(path), start, stop, number)
        for (start, number), (stop, _) in pairwise([*starts, (position, 0)])
    ]
