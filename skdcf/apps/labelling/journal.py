"""Read the journal of labels, including entries that other programs append."""

import json
import os

from ..._checks import warn
from ..._files import open_journal
from ...exceptions import LabelWarning


def read_journal(path, take):
    """Read the entries of a journal, and create the journal if it does not exist.

    An incomplete last line, left by a killed process, is removed from the file.

    Parameters
    ----------
    path : path-like
        Journal path.
    take : callable
        Function that is called with each entry, in the order of the lines. The function must
        raise ValueError, LookupError, TypeError or AttributeError if the entry is invalid.

    Returns
    -------
    position : int
        Byte position after the last entry, from which `follow_journal` continues.

    Raises
    ------
    ValueError
        If a complete line is not a valid entry. The message contains the line number.
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
                    f"{place} is not a valid journal entry ({error.args[-1]}). Remove this line, "
                    "or use another journal"
                ) from error
            os.truncate(path, size)
            warn(
                f"the last line ({place}) was removed, because it was incomplete",
                LabelWarning,
            )
        else:
            size += len(line) + 1
    # A trailing line break does not begin another line.
    return size if lines[-1] else size - 1


def follow_journal(path, take, start):
    """Read the complete lines that other programs have appended to a journal.

    Parameters
    ----------
    path : path-like
        Journal path.
    take : callable
        Function that is called with each entry, as in `read_journal`.
    start : int
        Byte position after the last entry that was read. If the file is shorter than this
        position, it is assumed to have been replaced and is read from the beginning.

    Returns
    -------
    position : int
        Byte position after the last entry that was read.
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
