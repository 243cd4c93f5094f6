"""Journal of the service, with answers, their labels, and open runs.

The journal is an SQLite database in a folder or in memory. A database in memory contains only the
latest 10,000 answers. Answer texts are not stored. Texts of open runs are stored, so open runs
survive a restart. The texts of a run are overwritten when the run is closed.

Processes that serve the same folder share the database. Each change is made in a single
transaction. A process compares its in-memory copies with the database before it uses the copies.
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

_MOST_IN_MEMORY = 10_000  # maximum number of answers in memory
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
_NO_RUN = "no run with this id is open. It was closed, or it had no step for a week"


class Entry(NamedTuple):
    """Journal entry for an answer, with its decision and labels.

    Parameters
    ----------
    id : str
        Identifier of the answer, which clients send together with its labels.
    mask : str
        One character per claim, "1" for a kept claim and "0" for a dropped claim.
    filter : str
        Digest of the filter that made the decision.
    alpha : float
        Decision level.
    question : str or None
        Keyed hash of the question, or None if the answer has no question.
    part : int or None
        Position of the answer's group among the calibration groups. The value is None for an
        answer without a group, and -1 for an answer that did not pass.
    calibrated : bool
        Whether the question is one of the calibration questions of the filter.
    labels : str or None
        The labels as JSON, or None if the answer was not judged.
    drawn : bool or None
        Whether the answer was randomly selected to be judged.
    judged : int or None
        Position of the answer in the sequence of judged answers.
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
    """Summary of an open run, without its texts.

    Parameters
    ----------
    filter : str
        Digest of the filter that makes the decisions.
    size : int
        Number of characters in the texts of the run.
    n_steps : int
        Number of decided steps.
    """

    filter: str
    size: int
    n_steps: int


class Journal:
    """Storage of answers, labels and open runs.

    Parameters
    ----------
    folder : path-like or None
        Folder of the database. If None, the latest answers are stored in memory.

    Raises
    ------
    ValueError
        If the file cannot be opened as an SQLite database.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.in_folder = folder is not None
        path = ":memory:"
        if folder is not None:
            path = os.path.join(folder, "journal.sqlite")
            # SQLite creates its auxiliary files with the same permissions as the database file.
            Path(path).touch(0o600)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            path, timeout=10, check_same_thread=False, isolation_level=None
        )
        weakref.finalize(self, self._db.close)
        try:
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{path} cannot be used as a journal ({error}). Use another folder"
            ) from error

    def add(self, entry: Entry) -> None:
        """Add an answer to the journal.

        After this method returns, the answer is not lost if the process ends.

        Parameters
        ----------
        entry : Entry
            The answer to add.
        """
        with self._change(is_lasting=False):
            number = self._insert(entry)
            if not self.in_folder:
                # The newest judged answer is kept, because it determines the next
                # position.
                self._db.execute(
                    "DELETE FROM answers WHERE number <= ? AND (judged IS NULL "
                    "OR judged < (SELECT max(judged) FROM answers))",
                    (number - _MOST_IN_MEMORY,),
                )

    def label(self, name: str, labels: list[int], drawn: bool) -> bool:
        """Add the labels of an answer, and save them to disk before returning.

        Parameters
        ----------
        name : str
            The id of the answer.
        labels : list of int
            Claim labels, which are 1 (true), 0 (false) or -1 (unknown).
        drawn : bool
            Whether the answer was randomly selected to be judged.

        Returns
        -------
        is_added : bool
            True if the labels were added, False if the answer already has the same labels.

        Raises
        ------
        RefusedError
            If there is no answer with this id, or if the answer has different labels.
        ValueError
            If the number of labels differs from the number of claims.
        """
        with self._change():
            query = "SELECT mask, labels, drawn FROM answers WHERE id = ?"
            row = self._db.execute(query, (name,)).fetchone()
            if row is None:
                raise RefusedError(404, "no answer with this id exists")
            mask, labels_before, was_drawn = row
            if len(labels) != len(mask):
                raise ValueError(
                    f"labels must have one entry for each of the {len(mask)} claims, "
                    f"got {len(labels)}"
                )
            text = json.dumps(labels)
            if labels_before is not None:
                if labels_before == text and bool(was_drawn) == drawn:
                    return False
                raise RefusedError(
                    409,
                    "this answer already has labels, which differ from the labels sent",
                )
            self._db.execute(
                "UPDATE answers SET labels = ?, drawn = ?, judged = "
                "(SELECT coalesce(max(judged), 0) + 1 FROM answers) WHERE id = ?",
                (text, drawn, name),
            )
        return True

    def judged(self, digest: str, after: int = 0) -> list[Entry]:
        """Return the judged answers in the order in which they were judged.

        Parameters
        ----------
        digest : str
            Digest of the filter that made the decision.
        after : int, default=0
            Only answers after this position are returned.

        Returns
        -------
        entries : list of Entry
            The judged answers.
        """
        query = f"SELECT {_FIELDS} FROM answers WHERE judged > ? AND filter = ?"
        rows = self._read(f"{query} ORDER BY judged", after, digest)
        return [Entry._make(row) for row in rows]

    def count_claims(self, digest: str) -> tuple[int, int]:
        """Return the total numbers of claims that a filter has kept and dropped.

        Parameters
        ----------
        digest : str
            Digest of the filter.

        Returns
        -------
        n_kept, n_dropped : int
            Numbers of kept and dropped claims.
        """
        rows = self._read("SELECT kept, dropped FROM claims WHERE filter = ?", digest)
        return rows[0] if rows else (0, 0)

    def open_run(self, name: str, digest: str, head: dict[str, Any]) -> None:
        """Add an open run.

        Parameters
        ----------
        name : str
            Id of the run.
        digest : str
            Digest of the filter that makes the decisions.
        head : dict
            Data known before the first step.
        """
        text = json.dumps(head)
        with self._change():
            row = name, digest, time.time(), len(text), text
            self._db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", row)

    def add_step(
        self, name: str, number: int, record: dict[str, Any], keep: bool
    ) -> bool:
        """Add a step and its decision, and save both to disk before returning.

        Parameters
        ----------
        name : str
            The id of the run.
        number : int
            Step index, starting at 0.
        record : dict
            The step, as sent by the client.
        keep : bool
            Whether the step is kept.

        Returns
        -------
        is_added : bool
            True if the step was added, False if another process has already added a step with
            this number.

        Raises
        ------
        RefusedError
            If the run is no longer open.
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
        """Return the summary of an open run.

        Parameters
        ----------
        name : str
            Id of the run.

        Returns
        -------
        run : Run
            The summary of the run.

        Raises
        ------
        RefusedError
            If no run with this id is open.
        """
        with self._lock:
            return self._run(name)

    def head(self, name: str) -> dict[str, Any]:
        """Return the data that were known before the first step of an open run.

        Parameters
        ----------
        name : str
            Id of the run.

        Returns
        -------
        head : dict
            The data, as sent by the client.
        """
        rows = self._read("SELECT head FROM runs WHERE id = ?", name)
        if not rows:
            raise RefusedError(404, _NO_RUN)
        return json.loads(rows[0][0])

    def steps(self, name: str, first: int) -> list[tuple[dict[str, Any], bool]]:
        """Return the steps of an open run.

        Parameters
        ----------
        name : str
            Id of the run.
        first : int
            Index of the first step to read.

        Returns
        -------
        steps : list of (dict, bool)
            Each step as sent by the client, and whether the step was kept.
        """
        query = "SELECT record, keep FROM steps WHERE run = ? AND number >= ?"
        rows = self._read(f"{query} ORDER BY number", name, first)
        return [(json.loads(record), bool(keep)) for record, keep in rows]

    def close_run(self, entry: Entry) -> bool:
        """Replace an open run with an answer, and overwrite the texts of the run.

        Parameters
        ----------
        entry : Entry
            The answer, which has the same id as the run.

        Returns
        -------
        is_closed : bool
            True if the run was closed. The value is False if other steps were added. In this
            case, the run remains open.

        Raises
        ------
        RefusedError
            If the run is no longer open.
        """
        with self._change(is_lasting=False):
            if self._run(entry.id).n_steps != len(entry.mask):
                return False
            self._insert(entry)
            self._remove_run(entry.id)
        self._overwrite()
        return True

    def size_of_runs(self) -> tuple[int, int]:
        """Return the number of open runs and the total length of their texts.

        Returns
        -------
        n_runs, n_characters : int
            Number of open runs, and number of characters in their texts.
        """
        [sizes] = self._read("SELECT count(*), coalesce(sum(size), 0) FROM runs")
        return sizes

    def end_runs(self, before: float) -> None:
        """Delete abandoned runs and their texts.

        Parameters
        ----------
        before : float
            Unix time. Runs without a step since this time are deleted.
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
        """Insert an answer, update the claim counts, and return its row number."""
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
        """Delete a run with its steps."""
        self._db.execute("DELETE FROM runs WHERE id = ?", (name,))
        self._db.execute("DELETE FROM steps WHERE run = ?", (name,))

    def _overwrite(self) -> None:
        """Truncate the write-ahead log, which still contains removed texts."""
        with self._lock:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _change(self, is_lasting: bool = True) -> Iterator[None]:
        """Execute the changes inside the ``with`` block in one transaction.

        The changes are not lost if the process ends. If ``is_lasting`` is True, the changes also
        survive a power failure.
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
                    # SQLite may have ended the transaction already, for example because the disk
                    # was full.
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            finally:
                if is_lasting:
                    self._db.execute("PRAGMA synchronous=NORMAL")
