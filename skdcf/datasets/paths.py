"""Read and replace values in nested objects by paths such as ``retrieval.hits[].text``.

In a path, a dot selects a key of an object, ``[]`` selects every entry of a list, and ``[-1]`` or
``[0]`` selects one entry of a list. A string that contains a JSON list or object is read if the
path goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

#: Sentinel for a missing value, which cannot be None, because None is a valid value.
MISSING = object()
_DEEPEST = 6
_KEY = re.compile(r"([^.\[]+)\.?(.*)", re.DOTALL)
_ENTRY = re.compile(r"\[(-?\d+)?\]\.?(.*)", re.DOTALL)
#: Keys that must be read from the messages of a certain role.
_ROLES = {"answer": "assistant", "problem": "user"}


def decoded(value: Any) -> Any:
    """Return the list or object in a JSON string, or the value if there is none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def value_at(record: Any, path: str, target: str | None = None) -> Any:
    """Return the value at a path in an object, or MISSING if the path does not exist.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    path : str
        A key or a path.
    target : str, optional
        The key as which the value is read. If the path selects the content of a message, a
        problem must be written by the user, and an answer by the assistant.

    Returns
    -------
    value : object
        The value, which is None if a value on the path is None. If the path contains ``[]``, the
        value is the list of all values found, or MISSING if the list has entries but none of them
        has a value.

    Raises
    ------
    ValueError
        If the selected message has another role.

    Examples
    --------
    >>> from skdcf.datasets.paths import value_at
    >>> value_at({"hits": [{"text": "a"}, {"text": "b"}, {}]}, "hits[].text")
    ['a', 'b']
    >>> value_at({"hits": [{"text": "a"}, {"text": "b"}, {}]}, "hits[1].text")
    'b'
    """
    if target in _ROLES and path.endswith("].content"):
        role = value_at(record, path.removesuffix("content") + "role")
        if isinstance(role, str) and role != _ROLES[target]:
            raise ValueError(
                f"{target} must be the text of the {_ROLES[target]}, but {path} belongs to the "
                f"role {role!r}. Select another message"
            )
    if path == "":
        return record
    record = decoded(record)
    if record is None:
        return None
    if isinstance(record, dict):
        return _value_in_object(record, path)
    step = _ENTRY.fullmatch(path)
    if not step or not isinstance(record, list):
        return MISSING
    position, rest = step.groups()
    if position is None:
        values = [value_at(entry, rest) for entry in record]
        values_found = [value for value in values if value is not MISSING]
        return values_found if values_found or not record else MISSING
    k = int(position)
    is_inside = -len(record) <= k < len(record)
    return value_at(record[k], rest) if is_inside else MISSING


def _value_in_object(record, path):
    if path in record:
        return record[path]
    step = _KEY.fullmatch(path)
    if not step or not step[2]:
        return MISSING
    return value_at(record.get(step[1], MISSING), step[2])


def put_at(record: Any, path: str, value: Any) -> None:
    """Replace the value at an existing path without ``[]``.

    Parameters
    ----------
    record : dict or list
        The parsed object of a line, which is changed in place.
    path : str
        A key or a path without ``[]``, which does not go on within a JSON string.
    value : object
        The new value.
    """
    step = (_ENTRY if isinstance(record, list) else _KEY).fullmatch(path)
    key: Any = path
    rest = ""
    if step and path not in record:
        key = int(step[1]) if isinstance(record, list) else step[1]
        rest = step[2]
    if rest:
        put_at(record[key], rest, value)
    else:
        record[key] = value


def paths_of(record: Any, depth: int = 0) -> Iterator[str]:
    """Yield the path of each value in an object, except values that are objects themselves.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    depth : int
        Nesting depth of the object within the line.

    Yields
    ------
    path : str
        A path. Paths are yielded in the order of the keys, and only the first entry of a list is
        searched.
    """
    for key, value in record.items():
        inside = decoded(value)
        mark = "."
        if isinstance(inside, list) and inside:
            inside = inside[0]
            mark = "[]."
        if isinstance(inside, dict) and inside and depth < _DEEPEST:
            yield from (f"{key}{mark}{path}" for path in paths_of(inside, depth + 1))
        else:
            yield str(key)
