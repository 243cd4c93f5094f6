"""A large JSON Lines file in parts that are read one at a time, here or elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral

from sklearn.utils import Bunch

from ._jsonl import read_rows, rows_as_bunch


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
        rows = read_rows(self.path, self.start, self.stop, self.first_line)
        return rows_as_bunch(list(rows), f"{self.path}, from line {self.first_line}")


def jsonl_partitions(
    path: str | os.PathLike, n_problems: int = 10_000
) -> list[JsonlPartition]:
    """Cut a JSON Lines file into parts, without reading more than where lines end.

    Parameters
    ----------
    path : path-like
    n_problems : int, default=10_000
        Of each part but the last. Some thousand bytes of memory are used for each.

    Returns
    -------
    list of JsonlPartition

    Raises
    ------
    ValueError
        If there is no problem in the file.
    """
    if not isinstance(n_problems, Integral) or n_problems < 1:
        raise ValueError(f"n_problems is {n_problems!r}, but must be at least 1")
    path, cuts, filled = os.fspath(path), [], 0
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
    stops = [start for start, _ in cuts[1:]] + [place]
    return [
        JsonlPartition(path, start, stop, number)
        for (start, number), stop in zip(cuts, stops, strict=True)
    ]
