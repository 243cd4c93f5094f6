"""Layer 0: files that are there as a whole or not at all."""

import contextlib
import glob
import json
import os
import stat
import uuid
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that takes the place of ``path`` once all is written.

    Whatever interrupts the writing, be it a full disk or the end of the process, leaves
    what was there before. If the process is killed, a hidden file that ends in ``.part``
    stays behind until the next one writes to the same place, which removes it.

    Parameters
    ----------
    path : path-like
        A symbolic link is followed. Who may read and write the file stays as it was.
        What is no file, such as ``/dev/null``, is written to as it is.
    mode : {"w", "wb"}
    **options
        As for ``open``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    _remove_parts(path)
    part, lock = _new_part(path)
    try:
        with open(part, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _new_part(path):
    """An empty file beside ``path``, as private as that one, and what locks it."""
    while True:
        part = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.part")
        old = path.exists()
        lock = os.open(
            part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600 if old else 0o666
        )
        if old:
            os.chmod(part, stat.S_IMODE(path.stat().st_mode))
        if fcntl is None:
            os.close(lock)
            return part, None
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:  # else another process took it for abandoned
            return part, lock
        os.close(lock)


def _remove_parts(path):
    """Remove what processes left behind that were killed while they wrote ``path``."""
    for part in path.parent.glob(f".{glob.escape(path.name[:100])}.*.part"):
        with contextlib.suppress(OSError):  # its writer lives, or it is not ours
            if fcntl is None:
                part.unlink()
                continue
            lock = os.open(part, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(lock)


def open_journal(path):
    """The lines of a file that only grows, which is made, for its owner, if there is none.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    list of bytes
        The last one may be half of a line, of a process that was killed.
    """
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        lines = file.read().split(b"\n")
        if lines[-1]:
            file.write(b"\n")
    return lines


def append_journal(path, entry, *, sync=True):
    """Write a line of JSON; it is on disk, or with the system, before this returns.

    Parameters
    ----------
    path : path-like
    entry : dict
    sync : bool
        Whether it has to outlive the machine, and not this process alone.
    """
    with open(path, "ab") as file:
        file.write(json.dumps(entry).encode("ascii") + b"\n")
        file.flush()
        if sync:
            os.fsync(file.fileno())
