"""File cache of model replies, keyed by a digest of the call."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

# maximum time in seconds to wait for another program that has locked the cache file
_BUSY_SECONDS = 60
_TABLE = """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL,
prompt TEXT NOT NULL, time REAL NOT NULL)"""


class ReplyCache:
    """File cache of model replies, keyed by a digest of the call.

    Several programs can use the same file at the same time. The file may contain private texts,
    so only its owner has access. The file never contains API keys.
    """

    def __init__(self, path):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite creates its auxiliary files with the same permissions as the database
        # file.
        path.touch(0o600)
        # Opening a folder raises an error, so the permissions of a folder are never changed.
        path.open("ab").close()
        path.chmod(0o600)
        # SQLite does not wait while another program changes the journal mode, so this loop
        # retries until the time limit is reached.
        end = time.monotonic() + _BUSY_SECONDS
        while True:
            self._db = sqlite3.connect(
                path,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
                isolation_level=None,
            )
            self.close = self._db.close
            try:
                self._db.executescript(_TABLE)
                return
            except sqlite3.DatabaseError as error:
                self.close()
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise ValueError(
                        f"the cache {os.fspath(path)!r} cannot be used ({error}). "
                        "Pass another path, or delete the file if no other program "
                        "uses it"
                    ) from error
            time.sleep(0.02)

    def get(self, key: str) -> tuple[str, str] | None:
        """Return the reply (as JSON) and the name of its prompt, or None if it is not cached."""
        query = "SELECT reply, prompt FROM replies WHERE key = ?"
        return self._db.execute(query, (key,)).fetchone()

    def __setitem__(self, key: str, reply: tuple[str, str]):
        row = key, *reply, time.time()
        self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)

    def purge(self, seconds: float) -> int:
        """Delete the replies that are at least ``seconds`` old, and return the number deleted."""
        query = "DELETE FROM replies WHERE time <= ?"
        count = self._db.execute(query, (time.time() - seconds,)).rowcount
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count
