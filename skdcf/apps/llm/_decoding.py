"""What models write where they were asked for JSON: backslashes, and literals of Python.

Mathematics is full of backslashes, and models forget to double them. Some of what they
write then is no JSON, and some of it is JSON that says something else: ``\\frac`` begins
with the escape of a form feed, and ``\\times`` with that of a tab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

_BACKSLASH = re.compile(r"(?s)\\(u[0-9a-fA-F]{4}|[a-zA-Z]+|.)")
_COMMAND = re.compile(r"\\([a-zA-Z]{2,})")
_HALF_CHARACTER = re.compile(r"u[0-9a-fA-F]{4}")
_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\(?:u00[01].|[bfrt])|[\x7f-\x9f])")
_PIECE = re.compile(
    r"""(?s)'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[{}\[\]()]|,(?=\s*[}\])])|\b[A-Z]\w+"""
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
# A tuple becomes a list, and a comma before its end goes.
_BRACKETS = {"(": "[", ")": "]", ",": ""}
_MOST_PIECES = 20_000  # strings and brackets of one literal that are read


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


def mend_backslashes(text: str, shown: str) -> str:
    r"""A reply in which backslashes are doubled that were meant for themselves.

    These are those with which no escape of JSON begins, those before b or f and another
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


def join_stream(body: bytes) -> dict[str, Any]:
    """The chat completion of a body of server-sent events; ValueError for half of one."""
    text = ""
    logprobs = []
    joined: dict[str, Any] = {}
    for line in re.split(r"[\r\n]+", body.decode("utf-8", "replace")):
        name, _, content = line.partition(":")
        if name != "data" or content.strip() in ("", "[DONE]"):
            continue
        chunk = json.loads(content)
        if chunk.get("error"):
            return chunk
        joined["usage"] = chunk.get("usage") or joined.get("usage")
        for choice in (chunk.get("choices") or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            text += delta.get("content") or ""
            logprobs += (choice.get("logprobs") or {}).get("content") or []
            reason = choice.get("finish_reason") or joined.get("finish_reason")
            joined["finish_reason"] = reason
    if joined.get("finish_reason") is None:
        raise ValueError("the stream of the reply has no end")
    choice = {"message": {"content": text}, "logprobs": {"content": logprobs}}
    choice["finish_reason"] = joined["finish_reason"]
    return {"choices": [choice], "usage": joined["usage"]}


def read_literal(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Read the dictionary of Python that begins at a place, as JSON would, and find its end.

    ValueError where there is none.
    """
    depth = 0
    end = start
    written = []
    for piece in islice(_PIECE.finditer(text, start), _MOST_PIECES):
        written += [text[end : piece.start()], _as_json(piece[0])]
        end = piece.end()
        depth += (piece[0] in "{[(") - (piece[0] in "}])")
        if depth <= 0:
            break
    try:
        return json.loads("".join(written)), end
    except RecursionError as error:
        raise ValueError(
            "what begins like a dictionary is no literal of Python"
        ) from error


def _as_json(piece):
    """A string, a bracket or a constant of Python as JSON writes it."""
    if piece[0] == "'":
        inside = re.sub(r'(?s)\\(.)|"', _requoted, piece[1:-1])
        return f'"{inside}"'
    if piece[0] == '"':
        return piece.replace("\\'", "'")
    return _CONSTANTS.get(piece, _BRACKETS.get(piece, piece))


def _requoted(match):
    """A quotation mark or an escape of a string between single quotes."""
    if match[0] == '"':
        return r"\""
    return "'" if match[1] == "'" else match[0]
