"""Open CSV tables in the encodings that spreadsheets write."""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

csv.field_size_limit(2**31 - 1)


def open_table(path: str | os.PathLike[str]) -> tuple[io.StringIO, dict[str, Any]]:
    """Return the decoded lines of a CSV file, and the options for `csv.reader`.

    Parameters
    ----------
    path : path-like
        A CSV file in UTF-8, or in UTF-16 with a byte order mark. Its cells are separated by
        commas, tabs or semicolons.

    Returns
    -------
    lines : io.StringIO
        The open text.
    form : dict
        The delimiter, and the option that rejects unmatched quotation marks.

    Raises
    ------
    ValueError
        If the file has another encoding. The error message names the file and the line.
    """
    text = _decoded(path)
    head = text.partition("\n")[0]
    delimiter = max(",\t;", key=head.count)
    return io.StringIO(text, newline=""), {"delimiter": delimiter, "strict": True}


@contextmanager
def explain_rows(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise ValueError with the name of the file if a row of a table cannot be read.

    Parameters
    ----------
    path : path-like
        The file.
    """
    try:
        yield
    except csv.Error as error:
        raise ValueError(
            f"{path}: the quotation marks of a row do not match ({error}). Close the "
            'quotation, and write a quotation mark within a cell as ""'
        ) from None


def _decoded(path):
    """Decode a table according to its byte order mark, or as UTF-8 without a mark."""
    content = Path(path).read_bytes()
    is_utf32 = content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if is_utf32 or (b"\0" in content and not is_utf16):
        raise ValueError(
            f"{path} must be a UTF-8 table, but it is in UTF-32, is in UTF-16 without a "
            'byte order mark, or is a workbook. Save it as "CSV UTF-8"'
        )
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: the byte {content[error.start]:#x} is not valid "
            f"{'UTF-16' if is_utf16 else 'UTF-8'}. The table may be encoded as "
            'Windows-1252 (cp1252). Save it as "CSV UTF-8"'
        ) from None
