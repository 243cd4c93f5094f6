"""The form of a line of JSON Lines: its published schema, and the check that is made of it."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from .._checks import printable

VERSION = 1
_LONGEST = 10_000_000  # characters of all passages of a context
_TYPES = {"array": {list}, "object": {dict}, "string": {str}, "null": {type(None)}}
_TYPES |= {"boolean": {bool}, "integer": {int}, "number": {int, float}}


def jsonl_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of one line.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skdcf.datasets.jsonl import jsonl_schema
    >>> jsonl_schema()["properties"]["labels"]["description"]
    'Per claim 1 or true, 0 or false, and -1 where nobody judged it.'
    """
    path = files("skdcf.datasets").joinpath(f"schema/problem-{VERSION}.json")
    return json.loads(path.read_text("utf-8"))


def check_values(record):
    """ValueError where a value is not what the schema says."""
    for key in record.keys() & parts_of_schema().keys():
        schema = parts_of_schema()[key]
        if not _all_fit([record[key]], schema):
            path, value = _find_fault(record[key], schema, key)
            shown = repr(value)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise ValueError(
                f"{key} must be {schema['title']}, but {path} is {printable(shown)}"
            )


@cache
def parts_of_schema():
    """The schema of each key, with types of Python."""
    return {k: _with_types(part) for k, part in jsonl_schema()["properties"].items()}


def _with_types(schema):
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    values = [float, *map(type, schema["enum"])] if "enum" in schema else []
    known = set().union(*map(_TYPES.get, kinds), values)  # 1.0 is 1 in JSON
    out = schema | {"kinds": known}
    return out | ({"items": _with_types(schema["items"])} if "items" in schema else {})


def _all_fit(values, schema):
    """Whether each of several values is what a schema says."""
    if not set(map(type, values)) <= schema["kinds"]:
        return False
    if "enum" in schema and not set(values) <= set(schema["enum"]):
        return False
    if "minimum" in schema and any(
        v is not None and v < schema["minimum"] for v in values
    ):
        return False
    lists = [value for value in values if type(value) is list]
    lengths = set(map(len, lists))
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not all(least <= length <= most for length in lengths):
        return False
    return not lists or _all_fit(list(chain.from_iterable(lists)), schema["items"])


def _find_fault(value, schema, path):
    """The smallest part of a value that a schema refuses, as (path, part)."""
    if list in schema["kinds"] and type(value) is list:
        for k, item in enumerate(value):
            if not _all_fit([item], schema["items"]):
                return _find_fault(item, schema["items"], f"{path}[{k}]")
    return path, value


def check_context(passages):
    """The passages of a context as a list, or ValueError that names the one at fault."""
    passages = [passages] if isinstance(passages, str) else list(passages or ())
    for k, text in enumerate(passages):
        if fault := _context_fault(text):
            raise ValueError(f"passage {k} of the context {fault}")
    if (length := sum(map(len, passages))) > _LONGEST:
        raise ValueError(
            f"the context has {length:,} characters, but at most {_LONGEST:,} are read: "
            "pass the passages that the answer was given, not a whole collection"
        )
    return passages


def _context_fault(text):
    if not text.strip():
        return "is empty: leave it out; an empty list says that there are none"
    if "\0" in text:
        return f"holds a NUL at character {text.index(chr(0))}: is it a text at all?"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"holds half a character ({text[error.start]!r} at {error.start}), as where a "
            "text was cut in its middle: mend it, or replace such characters"
        )
    return None
