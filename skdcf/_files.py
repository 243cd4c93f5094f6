"""Files that are there as a whole or not at all, and JSON Lines as objects.

This is the only place that reads JSON Lines.
"""

import codecs
import contextlib
import errno
import glob
import gzip
import io
import json
import math
import os
import re
import threading
import uuid
import zlib
from pathlib import Path

from ._checks import warn
from .exceptions import LabelWarning

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]


#: Where a line may hold half of a character, and such a half.
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_HALF_IN_BYTES = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@contextlib.contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that takes the place of ``path`` once all is written.

    Whatever interrupts the writing, be it a full disk or the end of the process, leaves
    what was there before. If the process is killed, a hidden file that ends in ``.part``
    stays behind until the next one writes to the same place, which removes it.

    Parameters
    ----------
    path : path-like
        A symbolic link is followed. Who may read and write the file stays as it was, and
        one that may not be written is refused. What is no file, such as ``/dev/null``, is
        written to as it is.
    mode : {"w", "wb"}
    **options
        As for ``open``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    if path.exists():
        path.open("ab").close()  # a file that nobody may write is not replaced, either
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
    """Write a file of lines, which takes its place once all of them are there.

    Parameters
    ----------
    path : path-like
        Where the name ends in ``.gz``, the file is compressed by gzip.
    lines : iterable of str

    Returns
    -------
    Path
        The same path.
    """
    with replaced(path, "wb") as file, contextlib.ExitStack() as stack:
        if str(path).endswith(".gz"):  # which holds no name and no time
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        file.writelines(f"{line}\n".encode() for line in lines)
    return Path(path)


def _new_draft(path):
    """An empty file next to ``path``, as private as that one, and what locks it."""
    while True:
        draft = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.part")
        old = path.exists()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        lock = os.open(draft, flags, 0o600 if old else 0o666)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.fstat(lock).st_nlink:  # another process took it for abandoned
                os.close(lock)
                continue
        if old:
            draft.chmod(path.stat().st_mode)
        if fcntl is None:
            os.close(lock)
        return draft, None if fcntl is None else lock


def _remove_drafts(path):
    """Remove what processes left behind that were killed while they wrote ``path``."""
    for draft in path.parent.glob(f".{glob.escape(path.name[:100])}.*.part"):
        with contextlib.suppress(OSError):  # its writer lives, or it is not ours
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


def read_journal(path, take):
    """Take in the entries of a file that only grows, which is made if there is none.

    A last line that was cut off, of a process that was killed, is removed from the file.

    Parameters
    ----------
    path : path-like
    take : callable
        ``take(entry)`` for each line, in their order. ValueError, LookupError, TypeError or
        AttributeError say that the entry is none.

    Returns
    -------
    int
        The byte after the last entry, from which `follow_journal` goes on.

    Raises
    ------
    ValueError
        On any other line that is no entry; it names the line.
    """
    lines = open_journal(path)
    size = 0
    for number, line in enumerate(lines, start=1):
        place = f"{path}, line {number}"
        try:
            if line:
                take(json.loads(line))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            is_whole = number < len(lines) or not line.startswith(b"{")
            if is_whole or not isinstance(error, json.JSONDecodeError):
                raise ValueError(
                    f"{place} does not belong there ({error.args[-1]}): take this line "
                    "out, or name another journal"
                ) from error
            os.truncate(path, size)
            warn(
                f"the last line ({place}) was incomplete and has been removed",
                LabelWarning,
            )
        else:
            size += len(line) + 1
    return size if lines[-1] else size - 1  # no line ends after the last line break


def follow_journal(path, take, start):
    """Take in what other programs have written since, as far as their lines are whole.

    Parameters
    ----------
    path : path-like
    take : callable
        As in `read_journal`.
    start : int
        The byte after the last entry that was taken in. Of a shorter file, which somebody
        has put in its place, all is read.

    Returns
    -------
    int
        The byte after the last entry now.
    """
    with open(path, "rb") as file:
        if start > os.fstat(file.fileno()).st_size:
            start = 0
        file.seek(start)
        text = file.read()
    whole_lines = text[: text.rfind(b"\n") + 1]
    for line in filter(None, whole_lines.split(b"\n")):
        take(json.loads(line))
    return start + len(whole_lines)


_APPENDING = threading.Lock()  # half a line is removed before another one follows


def append_journal(path, entry, *, sync=True):
    """Write a line of JSON; it is on disk, or with the system, before this returns.

    Where there is no room for all of the line, nothing of it stays, and OSError is raised.

    Parameters
    ----------
    path : path-like or None
        None keeps nothing.
    entry : dict
    sync : bool
        Whether it has to outlive the machine, and not this process alone.
    """
    if path is None:
        return
    line = json.dumps(entry).encode("ascii") + b"\n"
    with open(path, "ab", 0) as file:
        with _APPENDING:
            if (n := file.write(line)) < len(line):
                file.truncate(file.tell() - n)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if sync:
            os.fsync(file.fileno())


#: Bytes of a line, since a small compressed file may hold a line of any length.
MAX_LINE_BYTES = 2**26
_FORMS = {"[": ("an array", "'.[]'"), "{": ("objects over several lines", ".")}
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def iter_objects(
    path,
    start=0,
    stop=math.inf,
    first_line=1,
    *,
    nan=False,
    max_line_bytes=MAX_LINE_BYTES,
):
    """Read the objects of a file one at a time, in constant memory.

    Parameters
    ----------
    path : path-like or stream
        The text may be compressed by gzip, and UTF-8, or UTF-16 if its mark says so.
    start, stop : int
        First byte of a part, and the one after the last. Of a plain file only.
    first_line : int
        The number of the first line.
    nan : bool
        Whether NaN and infinity are read, which some programs write although JSON has
        neither.
    max_line_bytes : int
        Bytes of the longest line, or characters of a text that is not UTF-8.

    Yields
    ------
    number : int
        The number of the line. Empty lines are passed over.
    record : dict or ValueError
        The object, or what is wrong with the line.

    Raises
    ------
    ValueError
        If the file cannot be read as lines at all, or a line is too long.
    """
    name = name_of(path)
    empty = True
    repaired: list[int] = []
    with _opened(path, start) as file, _explained(name):
        lines = iter(lambda: file.readline(max_line_bytes + 1), file.read(0))
        for number, line in enumerate(lines, first_line):
            if len(line) > max_line_bytes:
                raise ValueError(
                    f"{name}, line {number} has more than {max_line_bytes:,} bytes. If the "
                    "line is meant to be so long, set max_line_bytes (--max-line-bytes)"
                )
            start += len(line)
            if line.strip():
                if empty and first_line == 1:
                    if isinstance(line, bytes):
                        line = line.lstrip(codecs.BOM_UTF8)
                    _check_form(line.strip(), name)
                empty = False
                record = _decoded(line, None if nan else _no_constant)
                half = _HALF if isinstance(line, str) else _HALF_IN_BYTES
                if half.search(line):
                    record = _whole(record, f"{name}, line {number}", number, repaired)
                yield number, record
            if start >= stop:
                break
    if len(repaired) > 1:
        shown = ", ".join(map(str, repaired[:20])) + ", ..." * (len(repaired) > 20)
        warn(
            f"{name}: {len(repaired)} lines hold halves of characters, which are read as "
            f"\ufffd: lines {shown}",
            UnicodeWarning,
        )


def name_of(path):
    """Name a file or stream as messages call it."""
    return getattr(path, "name", "a stream") if hasattr(path, "read") else path


def is_plain(path):
    """Whether parts of a file can be read by themselves."""
    with open(path, "rb") as file:
        return file.read(2) not in (*_MARKS, b"\x1f\x8b")


@contextlib.contextmanager
def _opened(path, start):
    """The lines of a file, or of a stream that somebody else opened and will close."""
    path = getattr(path, "buffer", path)  # standard input was opened as text
    with contextlib.ExitStack() as stack:
        file = path if hasattr(path, "read") else stack.enter_context(open(path, "rb"))
        if isinstance(file, io.TextIOBase):
            yield file
            return
        if not hasattr(file, "peek"):
            file = io.BufferedReader(file)
            stack.callback(file.detach)
        if start:
            file.seek(start)
        if file.peek(2)[:2] == b"\x1f\x8b":
            file = stack.enter_context(gzip.open(file))
        if file.peek(2)[:2] in _MARKS:
            file = io.TextIOWrapper(file, "utf-16", newline="\n")
            stack.callback(file.detach)
        yield file


@contextlib.contextmanager
def _explained(name):
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"{name} is not the UTF-16 that its mark says") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is no complete gzip file: {error}") from error


def _check_form(line, name):
    """ValueError where the first line is the beginning of another form of JSON."""
    text = line if isinstance(line, str) else line.decode("latin-1")
    if text[:1] == "[" or text == "{":
        form, path = _FORMS[text[0]]
        raise ValueError(
            f"{name} holds {form}, but one object per line is needed: jq -c {path} {name}"
        )


def _decoded(line, parse_constant):
    """The object in a line, or the ValueError that says why there is none."""
    try:
        record = json.loads(line.rstrip(), parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        told = f"{error.msg} at character {error.pos + 1}"
        return ValueError(f"not a JSON object on one line: {told}")
    except RecursionError:
        return ValueError("its brackets are nested too deeply")
    except ValueError as error:
        return error
    if not isinstance(record, dict):
        return ValueError(f"a {type(record).__name__} instead of an object")
    return record


def _whole(record, place, number, repaired):
    """The record without halves of characters; the first line with one is warned of."""
    text = json.dumps(record, ensure_ascii=False) if isinstance(record, dict) else ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        repaired.append(number)
        if len(repaired) == 1:
            warn(
                f"{place}: \\u{ord(text[error.start]):x} is half of a character, as if a text was "
                "cut in its middle; it is read as \ufffd",
                UnicodeWarning,
            )
        return json.loads(_SURROGATE.sub("\ufffd", text))
    return record


def _no_constant(name):
    raise ValueError(f"{name} is no JSON: numbers must be finite; null says unknown")
