"""Messages of the package in words for readers who do not write Python.

Messages say what to do in Python. ``messages.toml`` has the same words for the program, and
for who sends requests to the service.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

_PROBLEM = re.compile(r"\bproblem (\d+)\b")


def reworded(message: object, door: Literal["program", "client"]) -> str:
    """A message in the words of the door at which it arrives.

    Parameters
    ----------
    message : str or Exception
    door : {"program", "client"}
        The command line, or the service, whose reader sends requests.

    Returns
    -------
    str
    """
    text = str(message)
    for pattern, words in _patterns(door):
        text = pattern.sub(words, text)
    if door == "program":
        # As lines and `--id` do, problems count from 1 there.
        text = _PROBLEM.sub(lambda match: f"problem {int(match[1]) + 1}", text)
    return text


def renumbered(message: object, n_before: int) -> str:
    """A message about some problems of a file, with their numbers in the whole file.

    Parameters
    ----------
    message : str or Exception
    n_before : int
        Number of problems that come before these in the file.

    Returns
    -------
    str
    """
    return _PROBLEM.sub(
        lambda match: f"problem {int(match[1]) + n_before}", str(message)
    )


@cache
def _patterns(door):
    """Each wording of Python as a pattern, with the words that take its place."""
    path = Path(__file__).with_name("messages.toml")
    table = tomllib.loads(path.read_text("utf-8"))["messages"]
    patterns = []
    for row in table:
        # <name> stands for a value, the same one wherever it is named again.
        pattern = ""
        for k, piece in enumerate(re.split(r"<(\w+)>", row["python"])):
            if k % 2 == 0:
                pattern += re.escape(piece)
            elif f"(?P<{piece}>" in pattern:
                pattern += f"(?P={piece})"
            else:
                pattern += f"(?P<{piece}>.+?)"
        words = row.get(door, row["program"])
        words = re.sub(r"<(\w+)>", r"\\g<\1>", words)
        patterns.append((re.compile(pattern, re.DOTALL), words))
    return patterns
