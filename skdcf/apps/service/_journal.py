"""Journal of the service, with answers and their labels.

The journal is an SQLite database in a folder or in memory. A database in memory contains only the
latest 10,000 answers. Answer texts are not stored.

Processes that serve the same folder share the database. Each change is made in a single
transaction. A process compares its in-memory copies with the database before it uses the copies.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
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
dropped INTEGER NOT NULL)"""
_FIELDS = "id, mask, filter, alpha, question, part, calibrated, labels, drawn, judged"


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


class Journal:
    """Storage of answers and labels.

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
