"""Replies on disk, so that an interrupted run goes on where it was.

One SQLite table from the digest of a call to the reply as JSON. A reply is committed as
soon as it is there: what a killed program had received is not asked for again.
"""

import os
import sqlite3
import time
from pathlib import Path

_PATIENCE = 60  # seconds for which another program may hold the file
_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, reply TEXT NOT NULL, prompt TEXT NOT NULL, time REAL NOT NULL
)
"""


class ReplyCache:
    """Replies by the digest of their call, in a file or (None) in memory.

    Several programs may use a file at once. Nobody but its owner may read it: texts of
    users stand in it, though never a key.
    """

    def __init__(self, path: str | os.PathLike | None):
        self.path = path
        if path is not None:
            _make_private(Path(path))
        try:
            self._db = _open(":memory:" if path is None else path)
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"cache {os.fspath(path)!r} cannot be used ({error}): name another file, "
                "or remove this one"
            ) from error

    def get(self, key: str) -> str | None:
        """The reply to a call, as JSON; None where there is none."""
        query = "SELECT reply FROM replies WHERE key = ?"
        row = self._db.execute(query, (key,)).fetchone()
        return row and row[0]

    def put(self, key: str, reply: str, prompt: str) -> None:
        """Store a reply; of two to the same call the first one stays."""
        row = key, reply, prompt, time.time()
        with self._db:
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _open(path):
    db = sqlite3.connect(path, timeout=_PATIENCE)
    try:
        _set_up(db)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _set_up(db):
    """Make the table, once no other program is doing the same.

    SQLite waits for locks by itself, but not while the kind of journal is changed.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(_TABLE)
            return db.commit()
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > end:
                raise
            db.rollback()
            time.sleep(0.02)


def _make_private(path):
    """Make the file, or make it readable by its owner only; SQLite's others follow it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.name == "posix":
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
