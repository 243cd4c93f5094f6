"""The journal of the service: answers that were given, their labels, and open runs.

Tables of SQLite in a folder, or in memory, where the oldest answers are forgotten. Of
answers they hold no text. A run that is open is there with its texts, so that a restart
loses nothing; they are overwritten when it is closed.

Processes that serve one folder share these tables. Each change is one transaction, and
whatever a process keeps in memory is a copy that it compares with them before use.
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

from ..web.refusal import RefusedError

_MOST_IN_MEMORY = 10_000  # answers that are kept in memory
_TABLES = """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;
CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
mask TEXT NOT NULL, filter TEXT NOT NULL, alpha REAL NOT NULL, question TEXT, part INTEGER,
calibrated INTEGER NOT NULL, labels TEXT, drawn INTEGER, judged INTEGER);
CREATE INDEX IF NOT EXISTS judged ON answers (judged) WHERE judged IS NOT NULL;
CREATE TABLE IF NOT EXISTS claims (filter TEXT PRIMARY KEY, kept INTEGER NOT NULL,
dropped INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, filter TEXT NOT NULL,
touched REAL NOT NULL, size INTEGER NOT NULL, head TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sizes ON runs (touched, size);
CREATE TABLE IF NOT EXISTS steps (run TEXT, number INTEGER, record TEXT NOT NULL,
keep INTEGER NOT NULL, PRIMARY KEY (run, number))"""
_FIELDS = "id, mask, filter, alpha, question, part, calibrated, labels, drawn, judged"
_NO_RUN = "no run with this id is open: it was closed, or had no step for a week"


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
    part : int or None
        Position of its group among those of the calibration; None if it is in none, and
        -1 if the answer did not pass.
    calibrated : bool
        Whether the question calibrated the filter.
    labels : str or None
        The labels, as JSON, where the answer was judged.
    drawn : bool or None
        Whether it was chosen blindly to be judged.
    judged : int or None
        Its place among the judged answers, in the order of their labels.
    """

    id: str
    mask: str
    filter: str
    alpha: float
    question: str | None = None
    part: int | None = None
    calibrated: bool = False
    labels: str | None = None
    drawn: bool | None = None
    judged: int | None = None


class Run(NamedTuple):
    """An open run, as far as its texts are not needed.

    Parameters
    ----------
    filter : str
        Digest of the filter that decides.
    size : int
        Characters of its texts.
    n_steps : int
        Steps that were decided about.
    """

    filter: str
    size: int
    n_steps: int


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

        Parameters
        ----------
        entry : Entry
        """
        with self._change(is_lasting=False):
            number = self._insert(entry)
            if not self.in_folder:
                # The newest label stays, since the next one is counted from it.
                self._db.execute(
                    "DELETE FROM answers WHERE number <= ? AND (judged IS NULL "
                    "OR judged < (SELECT max(judged) FROM answers))",
                    (number - _MOST_IN_MEMORY,),
                )

    def label(self, name: str, labels: list[int], drawn: bool) -> bool:
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
        bool
            False if the same labels were there already.

        Raises
        ------
        RefusedError
            If there is no such answer, or if it has other labels.
        ValueError
            If there are not as many labels as claims.
        """
        with self._change():
            query = "SELECT mask, labels, drawn FROM answers WHERE id = ?"
            row = self._db.execute(query, (name,)).fetchone()
            if row is None:
                raise RefusedError(404, "no answer has this id")
            mask, known, was_drawn = row
            if len(labels) != len(mask):
                raise ValueError(
                    f"{len(labels)} labels but {len(mask)} claims: send one label for each "
                    "claim"
                )
            text = json.dumps(labels)
            if known is not None:
                if known == text and bool(was_drawn) == drawn:
                    return False
                raise RefusedError(409, "this answer has other labels")
            self._db.execute(
                "UPDATE answers SET labels = ?, drawn = ?, judged = "
                "(SELECT coalesce(max(judged), 0) + 1 FROM answers) WHERE id = ?",
                (text, drawn, name),
            )
        return True

    def judged(self, digest: str, after: int = 0) -> list[Entry]:
        """Read the answers that were judged, in the order in which they were.

        Parameters
        ----------
        digest : str
            Of the filter that decided about them.
        after : int, default=0
            The place after which to read.

        Returns
        -------
        list of Entry
        """
        query = f"SELECT {_FIELDS} FROM answers WHERE judged > ? AND filter = ?"
        rows = self._read(f"{query} ORDER BY judged", after, digest)
        return [Entry._make(row) for row in rows]

    def count_claims(self, digest: str) -> tuple[int, int]:
        """Count the claims of all answers of a filter.

        Parameters
        ----------
        digest : str
            Of the filter.

        Returns
        -------
        n_kept, n_dropped : int
        """
        rows = self._read("SELECT kept, dropped FROM claims WHERE filter = ?", digest)
        return rows[0] if rows else (0, 0)

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
        text = json.dumps(head)
        with self._change():
            row = name, digest, time.time(), len(text), text
            self._db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", row)

    def add_step(
        self, name: str, number: int, record: dict[str, Any], keep: bool
    ) -> bool:
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

        Returns
        -------
        bool
            False if another process took in a step of this number meanwhile.

        Raises
        ------
        RefusedError
            If the run is not open any more.
        """
        text = json.dumps(record)
        with self._change():
            if self._run(name).n_steps > number:
                return False
            row = name, number, text, keep
            self._db.execute("INSERT INTO steps VALUES (?, ?, ?, ?)", row)
            self._db.execute(
                "UPDATE runs SET touched = ?, size = size + ? WHERE id = ?",
                (time.time(), len(text), name),
            )
        return True

    def run(self, name: str) -> Run:
        """Look up an open run.

        Parameters
        ----------
        name : str
            Its id.

        Returns
        -------
        Run

        Raises
        ------
        RefusedError
            If no such run is open.
        """
        with self._lock:
            return self._run(name)

    def head(self, name: str) -> dict[str, Any]:
        """Read what was known before the first step of an open run.

        Parameters
        ----------
        name : str
            Its id.

        Returns
        -------
        dict
        """
        rows = self._read("SELECT head FROM runs WHERE id = ?", name)
        if not rows:
            raise RefusedError(404, _NO_RUN)
        return json.loads(rows[0][0])

    def steps(self, name: str, first: int) -> list[tuple[dict[str, Any], bool]]:
        """Read the steps of an open run.

        Parameters
        ----------
        name : str
            Its id.
        first : int
            The step from which on they are read.

        Returns
        -------
        list of (dict, bool)
            Each step as it was sent, and whether it was kept.
        """
        query = "SELECT record, keep FROM steps WHERE run = ? AND number >= ?"
        rows = self._read(f"{query} ORDER BY number", name, first)
        return [(json.loads(record), bool(keep)) for record, keep in rows]

    def close_run(self, entry: Entry) -> bool:
        """Put an answer in the place of an open run, whose texts are overwritten.

        Parameters
        ----------
        entry : Entry
            The answer, under the id of the run.

        Returns
        -------
        bool
            False if the run has other steps meanwhile; then it stays open.

        Raises
        ------
        RefusedError
            If the run is not open any more.
        """
        with self._change(is_lasting=False):
            if self._run(entry.id).n_steps != len(entry.mask):
                return False
            self._insert(entry)
            self._remove_run(entry.id)
        self._overwrite()
        return True

    def size_of_runs(self) -> tuple[int, int]:
        """Say how many runs are open, and how long their texts are.

        Returns
        -------
        n_runs, n_characters : int
        """
        [sizes] = self._read("SELECT count(*), coalesce(sum(size), 0) FROM runs")
        return sizes

    def end_runs(self, before: float) -> None:
        """Remove the runs without a step for long, with all their texts.

        Parameters
        ----------
        before : float
            Those without a step since then: seconds since 1970.
        """
        query = "SELECT id FROM runs WHERE touched < ?"
        if not self._read(query, before):
            return
        with self._change():
            for (name,) in self._db.execute(query, (before,)).fetchall():
                self._remove_run(name)
        self._overwrite()

    def _run(self, name: str) -> Run:
        query = """SELECT filter, size, (SELECT count(*) FROM steps WHERE run = runs.id)
            FROM runs WHERE id = ?"""
        row = self._db.execute(query, (name,)).fetchone()
        if row is None:
            raise RefusedError(404, _NO_RUN)
        return Run._make(row)

    def _insert(self, entry: Entry) -> int:
        """Insert an answer, and count its claims; its number."""
        places = ", ".join("?" * len(entry))
        row = self._db.execute(
            f"INSERT INTO answers ({_FIELDS}) VALUES ({places})", entry
        )
        n_kept = entry.mask.count("1")
        self._db.execute(
            "INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
            "kept = kept + excluded.kept, dropped = dropped + excluded.dropped",
            (entry.filter, n_kept, len(entry.mask) - n_kept),
        )
        return row.lastrowid or 0

    def _remove_run(self, name: str) -> None:
        """Remove a run with its steps."""
        self._db.execute("DELETE FROM runs WHERE id = ?", (name,))
        self._db.execute("DELETE FROM steps WHERE run = ?", (name,))

    def _overwrite(self) -> None:
        """Empty the log beside the file, in which texts stand that were removed."""
        with self._lock:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _change(self, is_lasting: bool = True) -> Iterator[None]:
        """Make changes of which all are in the file, or none.

        They outlive the process; if they are to last, they outlive a power cut, too.
        """
        with self._lock:
            if is_lasting:
                self._db.execute("PRAGMA synchronous=FULL")
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:  # a full disk has ended it already
                        self._db.execute("ROLLBACK")
                    raise
            finally:
                if is_lasting:
                    self._db.execute("PRAGMA synchronous=NORMAL")
