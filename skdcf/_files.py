"""Write files atomically, and append lines to journals."""

import contextlib
import errno
import glob
import gzip
import json
import os
import threading
import uuid
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows lacks fcntl, and an open file cannot be removed there.
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that replaces ``path`` once it is completely written.

    If writing is interrupted, for example because the disk is full or the process is killed, the
    old file is unchanged. A killed process leaves behind a hidden file with the suffix ``.part``,
    which is removed the next time the same path is written to.

    Parameters
    ----------
    path : path-like
        File path. Symbolic links are followed. The permissions of an existing file are kept. If
        the file is read-only, an error is raised. A path that is not a regular file, such as
        ``/dev/null``, is written to directly.
    mode : {"w", "wb"}
        Text or binary mode.
    **options
        Additional keyword arguments for ``open``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    if path.exists():
        path.open("ab").close()  # Opening the file raises an error if it is read-only.
    _remove_drafts(path)
    draft, lock = _new_draft(path)
    try:
        with open(draft, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    finally:
        if lock is not None:
            os.close(lock)


def write_text(path, lines):
    """Write lines to a file atomically.

    Parameters
    ----------
    path : path-like
        Path of the file, which is compressed with gzip if the name ends with ``.gz``.
    lines : iterable of str
        The lines to write, without trailing newlines.

    Returns
    -------
    path : pathlib.Path
        The file that was written.
    """
    with replaced(path, "wb") as file, contextlib.ExitStack() as stack:
        if str(path).endswith(".gz"):
            # The name and time are omitted, so the same content is always compressed to the same
            # bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        file.writelines(f"{line}\n".encode() for line in lines)
    return Path(path)


def _new_draft(path):
    """Create and lock an empty file next to ``path``, with the same permissions."""
    while True:
        draft = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.part")
        old = path.exists()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        lock = os.open(draft, flags, 0o600 if old else 0o666)
        if fcntl is not None:
            # Some file systems do not support locks.
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process removed this lock file because it seemed abandoned.
            if not os.fstat(lock).st_nlink:
                os.close(lock)
                continue
        if old:
            draft.chmod(path.stat().st_mode)
        if fcntl is None:
            os.close(lock)
        return draft, None if fcntl is None else lock


def _remove_drafts(path):
    """Remove temporary files left by processes that were killed while writing ``path``."""
    for draft in path.parent.glob(f".{glob.escape(path.name[:100])}.*.part"):
        # The file may be in use or belong to another user.
        with contextlib.suppress(OSError):
            if fcntl is None:
                draft.unlink()
                continue
            lock = os.open(draft, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()
            finally:
                os.close(lock)


def open_journal(path):
    """Return the lines of a journal, which is created if it does not exist.

    A new journal is readable only by its owner. If the last line is incomplete, a newline is
    appended.

    Parameters
    ----------
    path : path-like
        Journal path.

    Returns
    -------
    lines : list of bytes
        The lines of the journal. The last line may be incomplete if a process was killed.
    """
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        lines = file.read().split(b"\n")
        if lines[-1]:
            file.write(b"\n")
    return lines


# An incomplete line is removed before the next line is written.
_APPENDING = threading.Lock()


def append_journal(path, entry):
    """Append an entry to a journal as one line of JSON.

    The line is flushed to disk, so it survives a system crash. If the disk is full, the
    incomplete line is removed, and OSError is raised.

    Parameters
    ----------
    path : path-like or None
        Journal path. If the path is None, nothing is written.
    entry : dict
        The entry.
    """
    if path is None:
        return
    line = json.dumps(entry).encode("ascii") + b"\n"
    with open(path, "ab", 0) as file:
        with _APPENDING:
            if (n := file.write(line)) < len(line):
                file.truncate(file.tell() - n)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        os.fsync(file.fileno())
