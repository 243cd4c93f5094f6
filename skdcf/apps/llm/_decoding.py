"""What models write where they were asked for JSON: backslashes, and literals of Python.

Mathematics is full of backslashes, and models forget to double them. Some of what they
write then is no JSON, and some of it is JSON that says something else: ``\\frac`` begins
with the escape of a form feed, and ``\\times`` with that of a tab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

_BACKSLASH = re.compile(r"(?s)\\(u[0-9a-fA-F]{4}|[a-zA-Z]+|.)")
_COMMAND = re.compile(r"\\([a-zA-Z]{2,})")
_ESCAPED_TWICE = re.compile(r"(?<!\\)\\\\u(?!00[01])[0-9a-fA-F]{4}")
_HALF_CHARACTER = re.compile(r"u[0-9a-fA-F]{4}")
_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\(?:u00[01].|[bfrt])|[\x7f-\x9f])")


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in what a model is shown."""
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence):
        for item in value:
            yield from texts_in(item)


def mend_json(text: str, shown: str) -> str:
    r"""A reply that is to be JSON, as its model meant it.

    A JSON string that holds JSON is what it holds. Letters that were escaped twice
    (``\\u00e9``) are escaped once, unless what was shown has them so. Backslashes that
    were meant for themselves are doubled: `mend_backslashes`.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts that the model was shown.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdcf.apps.llm._decoding import mend_json
    >>> mend_json(r'"{\"text\": \"caf\\u00e9\"}"', "")
    '{"text": "caf\\u00e9"}'
    """
    stripped = text.strip()
    if stripped.startswith('"') and stripped.endswith('"'):
        with suppress(ValueError):
            text = json.loads(stripped)

    def once(match):
        return match[0] if match[0][1:] in shown else match[0][1:]

    return mend_backslashes(_ESCAPED_TWICE.sub(once, text), shown)


def mend_backslashes(text: str, shown: str) -> str:
    r"""A reply in which backslashes are doubled that were meant for themselves.

    A backslash is doubled if no JSON escape begins with it, if it precedes b or f and another
    letter, and those before n, r or t where the same command stands in what was shown.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts that the model was shown.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdcf.apps.llm._decoding import mend_backslashes
    >>> print(mend_backslashes(r'{"text": "\frac12 \times x\nSo"}', r"\frac12 \times x"))
    {"text": "\\frac12 \\times x\nSo"}
    """
    commands = set(_COMMAND.findall(shown))

    def mend(match):
        if match[1] == "/":  # which means the same with a backslash and without one
            return "/"
        return match[0] if _is_escape(match[1], commands) else "\\" + match[0]

    return _BACKSLASH.sub(mend, text)


def _is_escape(word, commands):
    """Whether a backslash and what follows were meant as an escape, as far as one can tell."""
    first = word[0]
    if first == "u":
        return _HALF_CHARACTER.fullmatch(word) is not None
    if first in "bf":
        return len(word) == 1
    if first in "nrt":
        return word not in commands
    return first in "\\\"'"


def clean_json(text: str) -> str:
    """JSON with a space in the place of each escape that stands for a control character."""
    return _CONTROL.sub(r"\1 ", text)
