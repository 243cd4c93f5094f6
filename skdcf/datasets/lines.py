"""Read the lines of a JSON Lines file or stream, and parse them strictly."""

import gzip
import itertools
import json
import re
import zlib
from contextlib import ExitStack

#: Maximum line size in bytes. Without a limit, a small compressed file could contain a huge line.
MAX_LINE_BYTES = 2**26
#: First bytes of a gzip file.
GZIP = b"\x1f\x8b"


def iter_lines(source):
    """Yield the number and the bytes of each line that is not empty, in constant memory.

    Parameters
    ----------
    source : path-like or binary file
        The file, which may be compressed with gzip.

    Yields
    ------
    number : int
        The line number.
    line : bytes
        The line.

    Raises
    ------
    ValueError
        If the file is not a complete gzip file, or if a line is longer than `MAX_LINE_BYTES`.
    """
    with ExitStack() as stack:
        file = source
        if not hasattr(source, "read"):
            file = stack.enter_context(open(source, "rb"))
        if hasattr(file, "peek") and file.peek(2)[:2] == GZIP:
            file = stack.enter_context(gzip.open(file))
        try:
            for number in itertools.count(1):
                line = file.readline(MAX_LINE_BYTES + 1)
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(
                        f"{name_of(source)}, line {number}: a line must have at most "
                        f"{MAX_LINE_BYTES:,} bytes. Write one problem per line"
                    )
                if not line:
                    return
                if not line.isspace():
                    yield number, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{name_of(source)} is not a complete gzip file: {error}"
            ) from error


def name_of(source):
    """Return the name of a file or stream for error messages."""
    return getattr(source, "name", "a stream") if hasattr(source, "read") else source


def parse_line(line):
    """Return the object in a line of bytes, or raise ValueError if the line is invalid."""
    try:
        record = _decode(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnicodeError(f"{error}. Save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"each line must contain a complete JSON object in UTF-8, not in UTF-16: "
            f"{error.msg} at character {error.pos + 1}"
        ) from None
    if not isinstance(record, dict):
        raise ValueError(
            f"each line must be an object, got a {type(record).__name__}. Convert a JSON array "
            "with jq -c '.[]'"
        )
    # A surrogate is half of a UTF-16 surrogate pair and is not a character by itself.
    if re.search(rb"\\u[dD][89a-fA-F]", line):
        refuse_surrogates(record)
    return record


def refuse_surrogates(record):
    """Raise UnicodeError, a ValueError, if a value contains an unpaired surrogate."""
    for key, value in record.items():
        try:
            json.dumps([key, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UnicodeError(
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


_decode = json.JSONDecoder(
    parse_constant=_no_constant, object_pairs_hook=without_copies
).decode
