"""Messages of the package in words for readers who do not write Python.

A message knows which of its parts are advice (`skdcf._messages`). ``messages.toml`` has the words
of each advice for the command line, and for who sends requests to the service.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from .._messages import Advice, Message, message_of

_PROBLEM = re.compile(r"\bproblem (\d+)\b")


def reworded(message: object, entry_point: Literal["program", "client"]) -> str:
    """Return a message in the words of the entry point at which it arrives.

    Parameters
    ----------
    message : str or Exception
    entry_point : {"program", "client"}
        The command line, or the service, whose reader sends requests.

    Returns
    -------
    str
    """
    text = "".join(
        _words(part, entry_point) if isinstance(part, Advice) else part
        for part in _parts(message)
    )
    # As in files, problems count from 1 on the command line.
    return renumbered(text, 1) if entry_point == "program" else text


def renumbered(message: object, n_before: int) -> str:
    """Return a message about some problems of a file, with their numbers in the whole file.

    Parameters
    ----------
    message : str or Exception
    n_before : int
        Number of problems that come before these in the file.

    Returns
    -------
    str
    """

    def renumber(text):
        return _PROBLEM.sub(lambda match: f"problem {int(match[1]) + n_before}", text)

    return Message(
        *(p if isinstance(p, Advice) else renumber(p) for p in _parts(message))
    )


def _parts(message):
    text = message_of(message) if isinstance(message, Exception) else message
    return getattr(text, "parts", (text,))


def _words(advice, entry_point):
    words = advice_words()[advice.name]
    return words.get(entry_point, words["program"]).format(**advice.fields)


@cache
def advice_words() -> dict[str, dict[str, str]]:
    """Return the words of each advice: {name: {entry point: words}}."""
    path = Path(__file__).with_name("messages.toml")
    return tomllib.loads(path.read_text("utf-8"))
