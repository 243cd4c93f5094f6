"""Functions for atomic file writing, append-only journals, and reading JSON Lines."""

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
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]


#: Patterns of possible and actual unpaired surrogates, which are halves of characters.
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_HALF_IN_BYTES = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@contextlib.contextmanager
def replaced(path, mode="w", **options):
    """Open a new file that replaces ``path`` when it is complete.

    If writing is interrupted, for example by a full disk or the end of the process, the old
    file is unchanged. A killed process leaves a hidden file with the suffix ``.part``, which is
    removed the next time the same path is written.

    Parameters
    ----------
    path : path-like
        Path of the file. Symbolic links are followed. The permissions of an existing file are
        kept, and a read-only file raises an error. A path that is not a regular file, such as
        ``/dev/null``, is written to directly.
    mode : {"w", "wb"}
        Text or binary mode.
    **options
        Further arguments of ``open``.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, mode, **options) as file:
            yield file
        return
    if path.exists():
        path.open("ab").close()  # raise an error if the file is read-only
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
    """Write the lines of a file atomically.

    Parameters
    ----------
    path : path-like
        Path of the file, which is compressed with gzip if the name ends with ``.gz``.
    lines : iterable of str
        The lines, without line breaks.

    Returns
    -------
    Path
        Path of the file.
    """
    with replaced(path, "wb") as file, contextlib.ExitStack() as stack:
        if str(path).endswith(
            ".gz"
        ):  # without name and time, so equal content is equal
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        file.writelines(f"{line}\n".encode() for line in lines)
    return Path(path)


def _new_draft(path):
    """Create an empty file next to ``path``, with its permissions, and lock it."""
    while True:
        draft = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}.part")
        old = path.exists()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        lock = os.open(draft, flags, 0o600 if old else 0o666)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # some file systems do not support locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.fstat(lock).st_nlink:  # another process removed it as abandoned
                os.close(lock)
                continue
        if old:
            draft.chmod(path.stat().st_mode)
        if fcntl is None:
            os.close(lock)
        return draft, None if fcntl is None else lock


def _remove_drafts(path):
    """Remove the files of processes that were killed while writing ``path``."""
    for draft in path.parent.glob(f".{glob.escape(path.name[:100])}.*.part"):
        with contextlib.suppress(OSError):  # it is in use, or belongs to another user
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
    """Open a journal and return its lines; a new journal is readable only by its owner.

    Parameters
    ----------
    path : path-like
        Path of the journal.

    Returns
    -------
    list of bytes
        The lines. The last line may be incomplete if a process was killed.
    """
    with open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        lines = file.read().split(b"\n")
        if lines[-1]:
            file.write(b"\n")
    return lines


def read_journal(path, take):
    """Read the entries of a journal, and create the journal if it does not exist.

    An incomplete last line, left by a killed process, is removed from the file.

    Parameters
    ----------
    path : path-like
        Path of the journal.
    take : callable
        ``take(entry)`` is called for each line, in order. The callable must raise ValueError,
        LookupError, TypeError or AttributeError if the entry is invalid.

    Returns
    -------
    int
        Position after the last entry, from which `follow_journal` continues.

    Raises
    ------
    ValueError
        If any other line is not a valid entry. The message contains its line number.
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
                    f"{place} is not a valid entry ({error.args[-1]}). Remove this line, or "
                    "choose another journal"
                ) from error
            os.truncate(path, size)
            warn(
                f"the last line ({place}) was incomplete and was removed",
                LabelWarning,
            )
        else:
            size += len(line) + 1
    return size if lines[-1] else size - 1  # there is no line after the last line break


def follow_journal(path, take, start):
    """Read the complete lines that other programs have appended to a journal.

    Parameters
    ----------
    path : path-like
        Path of the journal.
    take : callable
        As in `read_journal`.
    start : int
        Position after the last entry that was read. If the file is shorter, it was replaced,
        and it is read from the beginning.

    Returns ------- int Position after the last entry that was read.
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


_APPENDING = (
    threading.Lock()
)  # an incomplete line is removed before the next one is written


def append_journal(path, entry, *, sync=True):
    """Append a line of JSON to a journal.

    If the disk is full, an incomplete line is removed, and OSError is raised.

    Parameters
    ----------
    path : path-like or None
        Path of the journal. If the path is None, nothing is written.
    entry : dict
        The entry.
    sync : bool
        Whether to wait until the line is on disk, so it survives a crash of the machine. The
        line always survives the end of this process.
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


#: Maximum size of a line in bytes, since even a small compressed file may have a huge line.
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
        The file, which may be compressed with gzip. The encoding must be UTF-8, or UTF-16 with a
        byte order mark.
    start, stop : int
        Range of bytes to read: the position of the first byte, and one past the last byte.
        Ranges require an uncompressed UTF-8 file.
    first_line : int
        Number of the first line.
    nan : bool
        Whether to accept NaN and infinity. Some programs write NaN and infinity, although these are
        not valid JSON.
    max_line_bytes : int
        Maximum size of a line in bytes, or in characters if the text is not UTF-8.

    Yields
    ------
    number : int
        The number of the line. Empty lines are skipped.
    record : dict or ValueError
        The object, or an error that describes what is wrong with the line.

    Raises
    ------
    ValueError
        If the file cannot be read as lines, or a line is too long.
    """
    name = name_of(path)
    empty = True
    repaired: list[int] = []
    with _opened(path, start) as file, _explained(name):
        lines = iter(lambda: file.readline(max_line_bytes + 1), file.read(0))
        for number, line in enumerate(lines, first_line):
            if len(line) > max_line_bytes:
                raise ValueError(
                    f"{name}, line {number} has more than {max_line_bytes:,} bytes. If such "
                    "a long line is intended, set max_line_bytes (--max-line-bytes)"
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
            f"{name}: {len(repaired)} lines contain halves of characters, which were replaced by "
            f"\ufffd: lines {shown}",
            UnicodeWarning,
        )


def name_of(path):
    """Return the name of a file or stream as it is used in messages."""
    return getattr(path, "name", "a stream") if hasattr(path, "read") else path


def is_plain(path):
    """Return whether parts of a file can be read independently."""
    with open(path, "rb") as file:
        return file.read(2) not in (*_MARKS, b"\x1f\x8b")


@contextlib.contextmanager
def _opened(path, start):
    """Return the open lines of a file or stream; the caller closes them."""
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
        raise ValueError(
            f"{name} has the byte order mark of UTF-16, but is not UTF-16"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is not a complete gzip file: {error}") from error


def _check_form(line, name):
    """Raise ValueError if the first line shows that the file has another form of JSON."""
    text = line if isinstance(line, str) else line.decode("latin-1")
    if text[:1] == "[" or text == "{":
        form, path = _FORMS[text[0]]
        raise ValueError(
            f"{name} must have one object per line, got {form}. Convert it with: "
            f"jq -c {path} {name}"
        )


def _decoded(line, parse_constant):
    """Return the object in a line, or a ValueError that describes why the line is invalid."""
    try:
        record = json.loads(line.rstrip(), parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos + 1}"
        return ValueError(f"not a JSON object on one line: {reason}")
    except RecursionError:
        return ValueError("its brackets are nested too deeply")
    except ValueError as error:
        return error
    if not isinstance(record, dict):
        return ValueError(f"the line must be an object, got a {type(record).__name__}")
    return record


def _whole(record, place, number, repaired):
    """Replace lone surrogates in a record, and warn about the first line that has any."""
    text = json.dumps(record, ensure_ascii=False) if isinstance(record, dict) else ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        repaired.append(number)
        if len(repaired) == 1:
            warn(
                f"{place}: \\u{ord(text[error.start]):x} is half of a character, probably because "
                "a text was cut. It was replaced by \ufffd",
                UnicodeWarning,
            )
        return json.loads(_SURROGATE.sub("\ufffd", text))
    return record


def _no_constant(name):
    raise ValueError(
        f"{name} is not valid JSON. Numbers must be finite; use null for unknown"
    )
