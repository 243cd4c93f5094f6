"""Reword error messages and warnings for readers who do not write Python.

The module `skdcf._messages` marks which parts of a message are advice. ``messages.toml`` contains
the wording of each piece of advice for the command line and for clients of the service.
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
    """Return a message whose advice is reworded for the command line or for the service.

    Parameters
    ----------
    message : str or Exception
        The message.
    entry_point : {"program", "client"}
        Intended reader, either a user of the command line ("program") or a client of the service
        ("client").

    Returns
    -------
    reworded_message : str
        The message, with its advice reworded.
    """
    text = "".join(
        _words(part, entry_point) if isinstance(part, Advice) else part
        for part in _parts(message)
    )
    # On the command line, problems are numbered from 1, like the lines of a file.
    return renumbered(text, 1) if entry_point == "program" else text


def renumbered(message: object, n_before: int) -> str:
    """Return a message about part of a file, with problem numbers that refer to the whole file.

    Parameters
    ----------
    message : str or Exception
        The message.
    n_before : int
        Number of problems in the file before the part that the message refers to.

    Returns
    -------
    renumbered_message : str
        The message, with problem numbers that refer to the whole file.
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
    """Return all advice texts as a dict of the form {name: {entry point: text}}."""
    path = Path(__file__).with_name("messages.toml")
    return tomllib.loads(path.read_text("utf-8"))
