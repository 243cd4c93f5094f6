"""Read the objects of a JSON Lines file or stream, with their line numbers."""

import codecs
import contextlib
import gzip
import io
import json
import math
import re
import zlib

#: Maximum line size in bytes. Without a limit, a small compressed file could contain a huge line.
MAX_LINE_BYTES = 2**26
_GZIP = b"\x1f\x8b"
# A surrogate is one half of a UTF-16 surrogate pair and is not a character by itself.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def iter_lines(source, start=0, stop=math.inf, first_line=1):
    """Yield the number and the object of each line that is not empty, in constant memory.

    Parameters
    ----------
    source : path-like or binary file
        The file, which may be compressed with gzip.
    start, stop : int
        Byte offsets of the beginning and the end of the range to read. The byte at ``stop`` is
        not included. If a range is passed, the file must be uncompressed.
    first_line : int
        Number of the first line.

    Yields
    ------
    number : int
        The line number.
    record : dict or ValueError
        The object. If the line is invalid, an error that does not name the line.

    Raises
    ------
    ValueError
        If the file is not a complete gzip file, or if a line is longer than `MAX_LINE_BYTES`.
    """
    with _opened(source, start) as file:
        number = first_line
        while start < stop and (line := file.readline(MAX_LINE_BYTES + 1)):
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{name_of(source)}, line {number}: a line must have at most "
                    f"{MAX_LINE_BYTES:,} bytes. Write one problem per line"
                )
            if not line.isspace():
                yield number, _object_or_error(line)
            start += len(line)
            number += 1


def name_of(source):
    """Return the name of a file or stream for error messages."""
    return getattr(source, "name", "a stream") if hasattr(source, "read") else source


@contextlib.contextmanager
def _opened(source, start):
    """Open a file or stream for reading its lines, as a context manager."""
    with contextlib.ExitStack() as stack:
        file = source
        if not hasattr(source, "read"):
            file = stack.enter_context(open(source, "rb"))
        if not hasattr(file, "peek"):
            file = io.BufferedReader(file)
            stack.callback(file.detach)
        if start:
            file.seek(start)
        if file.peek(2)[:2] == _GZIP:
            file = stack.enter_context(gzip.open(file))
        try:
            yield file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{name_of(source)} is not a complete gzip file: {error}"
            ) from error


def is_compressed(path):
    """Return whether a file is compressed with gzip."""
    with open(path, "rb") as file:
        return file.read(2) == _GZIP


def _object_or_error(line):
    try:
        text = line.removeprefix(codecs.BOM_UTF8).decode().strip()
        record = _DECODER.decode(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            reason = f"the byte {line[error.start]:#x} is not valid UTF-8"
        elif b"\0" in line:
            reason = "the line is in UTF-16 or UTF-32, or is not text"
        else:
            return ValueError(
                f"each line must contain a complete JSON object: {error.msg} at character "
                f"{error.pos + 1}"
            )
        return ValueError(f"{reason}. Save the file as UTF-8")
    except RecursionError:
        return ValueError("the line has too many levels of nested brackets")
    except ValueError as error:
        return error
    if not isinstance(record, dict):
        return ValueError(
            f"each line must be an object, got a {type(record).__name__}. Convert a JSON array "
            "with jq -c '.[]'"
        )
    if _SURROGATE.search(line):
        try:
            refuse_surrogates(record)
        except ValueError as error:
            return error
    return record


def refuse_surrogates(record):
    """Raise ValueError if a value of an object contains half of a character."""
    for key, value in record.items():
        try:
            json.dumps([key, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{key!r} contains an unpaired surrogate, probably because the text was cut off. "
                "Remove this character"
            ) from None


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
        f"{name} is not valid JSON. All numbers must be finite. Use null for unknown values"
    )


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, object_pairs_hook=without_copies
)
