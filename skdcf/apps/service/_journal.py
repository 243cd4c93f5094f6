"""The journal of the service: answers that were given, their labels, and open runs.

A table of SQLite in a folder, or in memory, where the oldest answers are forgotten. Of
answers it holds no text. A run that is open is there with its texts, so that a restart
loses nothing; they are overwritten when it is closed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ._requests import RefusedError

_MOST_IN_MEMORY = 10_000  # answers that are kept in memory
_TABLES = """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;
CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
mask TEXT NOT NULL, filter TEXT NOT NULL, alpha REAL NOT NULL, question TEXT,
calibrated INTEGER NOT NULL, labels TEXT, drawn INTEGER, judged INTEGER);
CREATE INDEX IF NOT EXISTS judged ON answers (judged) WHERE judged IS NOT NULL;
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, filter TEXT NOT NULL,
head TEXT NOT NULL, touched REAL NOT NULL);
CREATE TABLE IF NOT EXISTS steps (run TEXT, number INTEGER, record TEXT NOT NULL,
keep INTEGER NOT NULL, PRIMARY KEY (run, number))"""
_FIELDS = "id, mask, filter, alpha, question, calibrated, labels, drawn"


class Entry(NamedTuple):
    """An answer that was given, and what people said of it.

    Parameters
    ----------
    id : str
        By which labels are sent.
    mask : str
        "1" for a claim that was kept, and "0" for one that was dropped.
    filter : str
        Digest of the filter that decided.
    alpha : float
        Its level.
    question : str or None
        A keyed hash of the question; None for an answer that stands alone.
    calibrated : bool
        Whether the question calibrated the filter.
    labels : str or None
        The labels, as JSON, where the answer was judged.
    drawn : bool or None
        Whether it was chosen blindly to be judged.
    """

    id: str
    mask: str
    filter: str
    alpha: float
    question: str | None = None
    calibrated: bool = False
    labels: str | None = None
    drawn: bool | None = None


class Journal:
    """Answers, labels and open runs.

    Parameters
    ----------
    folder : path-like or None
        Where the file stands; None keeps the newest answers in memory.

    Raises
    ------
    ValueError
        If the file cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.in_folder = folder is not None
        path = ":memory:"
        if folder is not None:
            path = os.path.join(folder, "journal.sqlite")
            Path(path).touch(0o600)  # SQLite gives its other files the same mode
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            path, timeout=10, check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._db.close)
        try:
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{path} cannot be used as a journal ({error}): name another folder"
            ) from error

    def add(self, entry: Entry) -> None:
        """Take in an answer; it outlives this process when this returns.

        A run that is open under its id is over then, and its texts are overwritten.

        Parameters
        ----------
        entry : Entry
        """
        places = ", ".join("?" * len(entry))
        with self._lock:
            with self._at_once():
                row = self._db.execute(
                    f"INSERT INTO answers ({_FIELDS}) VALUES ({places})", entry
                )
                is_run = self._remove_run(entry.id)
            if is_run:
                self._overwrite()
            if not self.in_folder:
                last = (row.lastrowid or 0) - _MOST_IN_MEMORY
                self._db.execute("DELETE FROM answers WHERE number <= ?", (last,))

    def label(self, name: str, labels: list[int], drawn: bool) -> Entry | None:
        """Take in the labels of an answer; they are on the disk when this returns.

        Parameters
        ----------
        name : str
            The id of the answer.
        labels : list of int
            One per claim: 1, 0 or -1.
        drawn : bool
            Whether the answer was chosen blindly.

        Returns
        -------
        Entry or None
            None where the same labels were there already.

        Raises
        ------
        RefusedError
            If there is no such answer, or if it has other labels.
        ValueError
            If there are not as many labels as claims.
        """
        with self._lock:
            query = f"SELECT {_FIELDS} FROM answers WHERE id = ?"
            row = self._db.execute(query, (name,)).fetchone()
            if row is None:
                raise RefusedError(404, "no answer has this id")
            entry = Entry(*row)
            if len(labels) != len(entry.mask):
                raise ValueError(
                    f"{len(labels)} labels but {len(entry.mask)} claims: send one label "
                    "for each claim"
                )
            text = json.dumps(labels)
            if entry.labels == text and bool(entry.drawn) == drawn:
                return None
            if entry.labels is not None:
                raise RefusedError(409, "this answer has other labels")
            self._save(
                "UPDATE answers SET labels = ?, drawn = ?, judged = "
                "(SELECT coalesce(max(judged), 0) + 1 FROM answers) WHERE id = ?",
                (text, drawn, name),
            )
            return entry._replace(labels=text, drawn=drawn)

    def judged(self, digest: str) -> Iterator[Entry]:
        """Read the answers that were judged, in the order in which they were.

        Parameters
        ----------
        digest : str
            Of the filter that decided about them.

        Yields
        ------
        Entry
        """
        query = f"SELECT {_FIELDS} FROM answers WHERE judged IS NOT NULL AND filter = ?"
        rows = self._db.execute(f"{query} ORDER BY judged", (digest,)).fetchall()
        yield from map(Entry._make, rows)

    def open_run(self, name: str, digest: str, head: dict[str, Any]) -> None:
        """Begin a run.

        Parameters
        ----------
        name : str
            Its id.
        digest : str
            Of the filter that decides.
        head : dict
            What is known beforehand.
        """
        row = name, digest, json.dumps(head), time.time()
        self._save("INSERT INTO runs VALUES (?, ?, ?, ?)", row)

    def add_step(
        self, name: str, number: int, record: dict[str, Any], keep: bool
    ) -> None:
        """Take in a step with its decision; it is on the disk when this returns.

        Parameters
        ----------
        name : str
            The id of the run.
        number : int
            Of the step, from 0 on.
        record : dict
            The step as it was sent.
        keep : bool
            What was decided.
        """
        row = name, number, json.dumps(record), keep
        with self._lock:
            times = time.time(), name
            self._db.execute("UPDATE runs SET touched = ? WHERE id = ?", times)
            self._save("INSERT INTO steps VALUES (?, ?, ?, ?)", row)

    def read_run(self, name: str) -> tuple[str, dict[str, Any], list[Any]]:
        """Read an open run.

        Parameters
        ----------
        name : str
            Its id.

        Returns
        -------
        digest : str
            Of the filter that decides.
        head : dict
            What was known beforehand.
        steps : list of (dict, bool)
            Each step as it was sent, and whether it was kept.
        """
        with self._lock:
            query = "SELECT filter, head FROM runs WHERE id = ?"
            digest, head = self._db.execute(query, (name,)).fetchone()
            query = "SELECT record, keep FROM steps WHERE run = ? ORDER BY number"
            rows = self._db.execute(query, (name,)).fetchall()
        steps = [(json.loads(record), bool(keep)) for record, keep in rows]
        return digest, json.loads(head), steps

    def sizes_of_runs(self) -> dict[str, int]:
        """How long the texts of each open run are.

        Returns
        -------
        dict
            Characters of JSON by id.
        """
        query = """SELECT id, length(head) + coalesce(sum(length(record)), 0)
            FROM runs LEFT JOIN steps ON run = id GROUP BY id"""
        with self._lock:
            return dict(self._db.execute(query).fetchall())

    def end_runs(self, before: float) -> list[str]:
        """Remove the runs without a step for long, with all their texts.

        Parameters
        ----------
        before : float
            Those without a step since then: seconds since 1970.

        Returns
        -------
        list of str
            Their ids.
        """
        with self._lock:
            query = "SELECT id FROM runs WHERE touched < ?"
            names = [name for (name,) in self._db.execute(query, (before,))]
            if names:
                with self._at_once():
                    for name in names:
                        self._remove_run(name)
                self._overwrite()
        return names

    def _remove_run(self, name: str) -> bool:
        """Remove a run with its steps, and say whether there was one."""
        removed = self._db.execute("DELETE FROM runs WHERE id = ?", (name,))
        self._db.execute("DELETE FROM steps WHERE run = ?", (name,))
        return removed.rowcount > 0

    def _overwrite(self) -> None:
        """Empty the log beside the file, in which texts stand that were removed."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Make changes of which all are on the disk, or none."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _save(self, statement: str, values: tuple[Any, ...]) -> None:
        """Change the file, and wait until the disk has it."""
        with self._lock:
            self._db.execute("PRAGMA synchronous=FULL")
            try:
                self._db.execute(statement, values)
            finally:
                self._db.execute("PRAGMA synchronous=NORMAL")
