"""JSON in the replies of models, which may wrap it in all kinds of text.

What a reply says is data: of an object only the expected fields are looked at, and every
value has to be of the expected kind.
"""

import json
import re
from collections.abc import Callable
from typing import Any

_FENCE = re.compile(r"```[a-zA-Z]*\n?")
_TRAILING_COMMA = re.compile(r",\s*(?=[}\]])")
_LONGEST = 400_000  # characters of a reply that are read
_MOST_STARTS = 50  # places where an object may begin


def parse_object(text: str, key: str) -> dict[str, Any]:
    """The object with that key in a text; ValueError where there is none."""
    text = text[:_LONGEST]
    if "</think>" in text:  # reasoning that some servers leave in the reply
        text = text.rpartition("</think>")[2]
    for candidate in (text, _TRAILING_COMMA.sub("", _FENCE.sub("", text))):
        found = _find(candidate, key)
        if found is not None:
            return found
    raise ValueError(f'it holds no JSON object with "{key}"')


def _find(text, key):
    decoder = json.JSONDecoder(parse_constant=_refuse)
    place = -1
    for _ in range(_MOST_STARTS):
        place = text.find("{", place + 1)
        if place < 0:
            return None
        try:
            value, _ = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and key in value:
            return value
    return None


def _refuse(name):
    raise ValueError(f"{name} is no number")


def read_texts(values: Any, what: str, most: int) -> list[str]:
    """A list of texts that are not blank, of which one at least says something."""
    if not isinstance(values, list):
        raise ValueError(f'"{what}" is no list')
    if len(values) > most:
        raise ValueError(f'"{what}" has {len(values)} entries, more than {most}')
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f'"{what}" holds something else than a text')
    if values and not any(c.isalnum() for value in values for c in value):
        raise ValueError(f'"{what}" says nothing')  # such as the "..." of an example
    return [_printed(value.strip()) for value in values]


def _printed(text):
    """Without what JSON escapes can hold and no file can: half characters, zeros."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def read_rows(
    values: Any, what: str, n: int, read: Callable[[dict[str, Any]], Any]
) -> list[Any]:
    """What the rows of a list say about each of ``n`` claims, numbered from 1."""
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise ValueError(f'"{what}" is no list of objects')
    out: dict[int, Any] = {}
    for row in values:
        v = row.get("claim")
        if isinstance(v, bool) or not isinstance(v, int) or not 1 <= v <= n:
            raise ValueError(f'"claim" is {v!r}, but claims are numbered from 1 to {n}')
        if v in out:
            raise ValueError(f'"{what}" speaks of claim {v} twice')
        out[v] = read(row)
    missing = [v for v in range(1, n + 1) if v not in out]
    if missing:
        raise ValueError(f'"{what}" says nothing of claim {missing[0]}')
    return [out[v] for v in range(1, n + 1)]


def read_choice(row: dict[str, Any], key: str, choices: dict[str, Any]) -> Any:
    """The value that one of several words stands for."""
    word = row.get(key)
    if not isinstance(word, str) or word.strip().lower() not in choices:
        raise ValueError(
            f'"{key}" is {str(word)[:50]!r}, but must be one of {[*choices]}'
        )
    return choices[word.strip().lower()]


def read_number(row: dict[str, Any], key: str, low: float, high: float) -> float:
    """A number between two bounds; true and false count as 1 and 0."""
    value = row.get(key)
    if not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(
            f'"{key}" is {str(value)[:50]!r}, but must be a number from {low} to {high}'
        )
    return float(value)


def object_schema(**properties: Any) -> dict[str, Any]:
    """JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def rows_schema(name: str, **properties: Any) -> str:
    """JSON schema of an object whose one property lists a row per claim."""
    row = object_schema(claim={"type": "integer"}, **properties)
    return json.dumps(object_schema(**{name: {"type": "array", "items": row}}))
