"""Read and replace values in nested objects by paths such as ``retrieval.hits[].text``.

In a path, a dot selects a key of an object, ``[]`` selects every entry of a list, and ``[-1]`` or
``[0]`` selects one entry of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

#: Sentinel for a missing value, which cannot be None, because None is a valid value.
MISSING = object()
_DEEPEST = 6
_BRACKETS = re.compile(r"\[(-?\d+)?\]")


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path in an object, or MISSING if the path does not exist.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    path : str
        A key or a path.

    Returns
    -------
    value : object
        The value. If the path contains ``[]``, the value is the list of all values found, or
        MISSING if the list has entries but none of them has a value.

    Examples
    --------
    >>> from skdcf.datasets.paths import value_at
    >>> value_at({"hits": [{"text": "a"}, {"text": "b"}, {}]}, "hits[].text")
    ['a', 'b']
    >>> value_at({"hits": [{"text": "a"}, {"text": "b"}, {}]}, "hits[1].text")
    'b'
    """
    if not isinstance(record, dict):
        return MISSING
    if path in record:
        return record[path]
    if brackets := _BRACKETS.search(path):
        entries = value_at(record, path[: brackets.start()])
        after = path[brackets.end() :].removeprefix(".")
        if not isinstance(entries, list):
            return MISSING
        if brackets[1]:
            position = int(brackets[1])
            if not -len(entries) <= position < len(entries):
                return MISSING
            return value_at(entries[position], after) if after else entries[position]
        if not after:
            return entries
        values = [value_at(entry, after) for entry in entries]
        values_found = [value for value in values if value is not MISSING]
        return values_found if values_found or not entries else MISSING
    key, point, rest = path.partition(".")
    return value_at(record.get(key), rest) if point else MISSING


def put_at(record: dict[str, Any], path: str, value: Any) -> None:
    """Replace the value at an existing path without ``[]``.

    Parameters
    ----------
    record : dict
        The parsed object of a line, which is changed in place.
    path : str
        A key or a path without ``[]``.
    value : object
        The new value.
    """
    if path in record:
        record[path] = value
        return
    key, _, rest = path.partition(".")
    if rest:
        put_at(value_at(record, key), rest, value)
        return
    brackets = _BRACKETS.search(key)
    assert (
        brackets is not None
    )  # The path exists, so its last part is an entry of a list.
    record[key[: brackets.start()]][int(brackets[1])] = value


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
        inside, mark = value, "."
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inside, mark = value[0], "[]."
        if isinstance(inside, dict) and inside and depth < _DEEPEST:
            yield from (f"{key}{mark}{path}" for path in paths_of(inside, depth + 1))
        else:
            yield str(key)
