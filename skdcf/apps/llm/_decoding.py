"""Repair incorrect backslashes and double escapes in JSON written by models.

Mathematical text contains many backslashes, which models often fail to escape. The resulting JSON
is either invalid or has a different meaning. For example, ``\\frac`` begins with the escape
sequence of a form feed, and ``\\times`` begins with the escape sequence of a tab.
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
_MOST_QUOTED = 3  # maximum number of JSON strings nested in each other
_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\(?:u00[01].|[bfrt])|[\x7f-\x9f])")


def texts_in(value: Any) -> Iterator[str]:
    """Yield all strings in the input of a model."""
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence):
        for item in value:
            yield from texts_in(item)


def repair_json(text: str, shown: str) -> str:
    r"""Repair and return a reply that is expected to be JSON.

    If the reply is a JSON string that contains JSON, the content of the string is used. If
    characters were escaped twice (``\\u00e9``), one level of escaping is removed, unless the
    input of the model contains the same sequence. Literal backslashes are doubled by
    `repair_backslashes`.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts in the input of the model.

    Returns
    -------
    reply : str
        The repaired reply.

    Examples
    --------
    >>> from skdcf.apps.llm._decoding import repair_json
    >>> repair_json(r'"{\"text\": \"caf\\u00e9\"}"', "")
    '{"text": "caf\\u00e9"}'
    """
    for _ in range(_MOST_QUOTED):
        stripped = text.strip()
        if stripped.startswith('"') and stripped.endswith('"'):
            with suppress(ValueError):
                text = json.loads(stripped)

    def once(match):
        return match[0] if match[0][1:] in shown else match[0][1:]

    return repair_backslashes(_ESCAPED_TWICE.sub(once, text), shown)


def repair_backslashes(text: str, shown: str) -> str:
    r"""Return a reply with its literal backslashes doubled.

    A backslash is doubled if it does not begin a JSON escape sequence, or if it is followed by b
    or f and another letter. A backslash before n, r or t is doubled if the same LaTeX command
    occurs in the input of the model.

    Parameters
    ----------
    text : str
        The reply.
    shown : str
        The texts in the input of the model.

    Returns
    -------
    reply : str
        The reply, with its literal backslashes doubled.

    Examples
    --------
    >>> from skdcf.apps.llm._decoding import repair_backslashes
    >>> print(repair_backslashes(r'{"text": "\frac12 \times x\nSo"}', r"\frac12 \times x"))
    {"text": "\\frac12 \\times x\nSo"}
    """
    commands = set(_COMMAND.findall(shown))

    def repaired(match):
        if match[1] == "/":  # "\/" and "/" have the same meaning.
            return "/"
        return match[0] if _is_escape(match[1], commands) else "\\" + match[0]

    return _BACKSLASH.sub(repaired, text)


def _is_escape(word, commands):
    """Return whether a backslash and the following letters are probably an escape sequence."""
    first = word[0]
    if first == "u":
        return _HALF_CHARACTER.fullmatch(word) is not None
    if first in "bf":
        return len(word) == 1
    if first in "nrt":
        return word not in commands
    return first in "\\\"'"


def clean_json(text: str) -> str:
    """In JSON, replace each escape sequence of a control character with a space."""
    return _CONTROL.sub(r"\1 ", text)
