"""Read the objects of a JSON Lines file or stream, with their line numbers."""

import codecs
import contextlib
import gzip
import io
import json
import math
import re
import zlib
from functools import partial
from itertools import chain
from typing import Any

from .._checks import warn

#: Patterns for unpaired surrogates, and for escape sequences that may be unpaired surrogates. A
#: surrogate is one half of a UTF-16 surrogate pair and is not a character by itself.
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_HALF_IN_BYTES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

#: Maximum line size in bytes. Without a limit, a small compressed file could contain a huge line.
MAX_LINE_BYTES = 2**26
#: Size in bytes of the blocks of lines that are checked together.
BLOCK_BYTES = 2**16
_FORMS = {"[": ("an array", "'.[]'"), "{": ("objects over several lines", ".")}
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def iter_objects(path, **options):
    """Yield the line number and the parsed object of each line in a file, using `iter_blocks`."""
    return chain.from_iterable(iter_blocks(path, block_bytes=0, **options))


def iter_blocks(
    path,
    start=0,
    stop=math.inf,
    first_line=1,
    *,
    block_bytes=BLOCK_BYTES,
    nan=False,
    max_line_bytes=MAX_LINE_BYTES,
):
    """Yield the objects of a file in blocks of lines, in constant memory.

    Parameters
    ----------
    path : path-like or stream
        The file, which may be compressed with gzip. The encoding must be UTF-8, or UTF-16 with a
        byte order mark.
    start, stop : int
        Byte offsets of the beginning and the end of the range to read. The byte at ``stop`` is
        not included. If a range is passed, the file must be uncompressed and encoded in UTF-8.
    first_line : int
        First line number.
    block_bytes : int
        Size of a block in bytes. A block ends with the line that reaches ``block_bytes``, so 0
        means one line per block.
    nan : bool
        Whether to accept NaN and infinity, which some programs write although they are not
        valid JSON.
    max_line_bytes : int
        Maximum size of a line in bytes, or in characters if the text is not UTF-8.

    Yields
    ------
    block : list of (int, dict or ValueError)
        The line number and the parsed object of each line in the block. If a line is invalid, its
        entry contains an error instead of an object. Empty lines are skipped.

    Raises
    ------
    ValueError
        If the file cannot be read as lines, or if a line is too long. All earlier lines are
        yielded before the error is raised.
    """
    lines = _iter_lines(path, start, stop, first_line, nan, max_line_bytes)
    block: list[tuple[int, Any]] = []
    size = 0
    try:
        for number, record, n_bytes in lines:
            block.append((number, record))
            size += n_bytes
            if size >= block_bytes:
                yield block
                block = []
                size = 0
    except Exception:
        yield block
        raise
    yield block


def _iter_lines(path, start, stop, first_line, nan, max_line_bytes):
    """Yield the line number, the parsed object and the size of each line."""
    name = name_of(path)
    empty = True
    repaired: list[int] = []
    decoder = json.JSONDecoder(
        parse_constant=None if nan else _no_constant,
        object_pairs_hook=without_copies,
    )
    with _opened(path, start) as file, _explained(name):
        lines = iter(partial(file.readline, max_line_bytes + 1), file.read(0))
        for number, line in enumerate(lines, first_line):
            if len(line) > max_line_bytes:
                raise ValueError(
                    f"{name}, line {number}: the line has more than {max_line_bytes:,} bytes. "
                    "Increase max_line_bytes (--max-line-bytes) to allow longer lines"
                )
            start += len(line)
            if not line.isspace():
                if empty and first_line == 1:
                    if isinstance(line, bytes):
                        line = line.lstrip(codecs.BOM_UTF8)
                    _check_form(line.strip(), name)
                empty = False
                record = _decoded(line, decoder)
                if _may_have_halves(line):
                    record = _whole(record, f"{name}, line {number}", number, repaired)
                yield number, record, len(line)
            if start >= stop:
                break
    if len(repaired) > 1:
        shown = ", ".join(map(str, repaired[:20])) + ", ..." * (len(repaired) > 20)
        warn(
            f"{name}: unpaired surrogates in {len(repaired)} lines were replaced with \ufffd. "
            f"The lines are {shown}",
            UnicodeWarning,
        )


def _may_have_halves(line):
    """Return whether a line may contain unpaired surrogates."""
    if isinstance(line, str):
        return _HALF.search(line)
    # Few lines contain these bytes, and testing for them is much faster than searching for the
    # pattern. Testing for a single byte is the fastest.
    is_escaped = b"\\" in line and b"\\u" in line
    return (is_escaped or b"\xed" in line) and _HALF_IN_BYTES.search(line)


def name_of(path):
    """Return the name of a file or stream for error messages."""
    return getattr(path, "name", "a stream") if hasattr(path, "read") else path


def is_plain(path):
    """Return whether ranges of a file can be read independently."""
    with open(path, "rb") as file:
        return file.read(2) not in (*_MARKS, b"\x1f\x8b")


@contextlib.contextmanager
def _opened(path, start):
    """Open a file or stream for reading its lines, as a context manager."""
    path = getattr(path, "buffer", path)  # Standard input was opened in text mode.
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
            f"{name} starts with a UTF-16 byte order mark but is not valid UTF-16"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is not a complete gzip file: {error}") from error


def _check_form(line, name):
    """Raise ValueError if the first line shows that the file is not JSON Lines."""
    text = line if isinstance(line, str) else line.decode("latin-1")
    if "\0" in text:
        raise ValueError(
            f"{name} is in UTF-32, is in UTF-16 without a byte order mark, or is not a "
            "text file. Save it as UTF-8"
        )
    if text[:1] == "[" or text == "{":
        form, path = _FORMS[text[0]]
        raise ValueError(
            f"{name} must contain one object per line, got {form}. Convert the file with "
            f"the command: jq -c {path} {name}"
        )


def _decoded(line, decoder):
    """Return the object in a line, or a ValueError that describes why the line is invalid."""
    try:
        text = line.rstrip()
        if isinstance(text, bytes):
            text = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass")
        record = decoder.decode(text)
    except UnicodeDecodeError as error:
        return ValueError(
            f"the byte {line[error.start]:#x} is not valid UTF-8. The file may be encoded "
            "as Windows-1252 (cp1252). Save it as UTF-8"
        )
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos + 1}"
        return ValueError(f"each line must contain a complete JSON object: {reason}")
    except RecursionError:
        return ValueError("the line has too many levels of nested brackets")
    except ValueError as error:
        return error
    if not isinstance(record, dict):
        return ValueError(f"each line must be an object, got {type(record).__name__}")
    return record


def _whole(record, place, number, repaired):
    """Replace unpaired surrogates in a record, and warn about the first line that contains one."""
    text = json.dumps(record, ensure_ascii=False) if isinstance(record, dict) else ""
    # Some programs write the two surrogates of a character separately.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        repaired.append(number)
        if len(repaired) == 1:
            warn(
                f"{place}: the unpaired surrogate \\u{ord(text[error.start]):x} was replaced "
                "with \ufffd. The text was probably cut off",
                UnicodeWarning,
            )
        text = _SURROGATE.sub("\ufffd", text)
    return json.loads(text) if text else record


def without_copies(pairs):
    """Convert (key, value) pairs to a dict, or raise ValueError if a key is repeated."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"each key must occur only once per object, but {twice!r} is repeated. Keep "
            "only one of the entries"
        )
    return record


def _no_constant(name):
    raise ValueError(
        f"{name} is not valid JSON. All numbers must be finite. Use null for unknown "
        "values"
    )
