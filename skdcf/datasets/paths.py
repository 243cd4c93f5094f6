"""Read and replace values in nested objects by paths such as ``retrieval.hits[].text``.

In a path, a dot selects a key of an object, ``[]`` selects every entry of a list, and ``[-1]`` or
``[0]`` selects one entry of a list. A string that contains a JSON list or object is read if the
path goes on.
"""

import json
import re
from typing import Any

#: Sentinel for a missing value, which cannot be None, because None is a valid value.
MISSING = object()
# A key, or the position of an entry in a list, and the rest of the path.
_match_step: Any = re.compile(r"(?s)(?:([^.\[]+)|\[(-?\d+)?\])\.?(.*)").fullmatch


def decoded(value):
    """Return the list or object in a JSON string, or the value if there is none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def value_at(record, path, target=None):
    """Return the value at a path in an object, or MISSING if the path does not exist.

    Parameters
    ----------
    record : dict
        The object parsed from a line.
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
    author = {"answer": "assistant", "problem": "user"}.get(target)
    if author and path.endswith("].content"):
        role = value_at(record, path.removesuffix("content") + "role")
        if isinstance(role, str) and role != author:
            raise ValueError(
                f"{target} must be the text of the {author}, but {path} belongs to the role "
                f"{role!r}. Select another message"
            )
    if path == "":
        return record
    record = decoded(record)
    if record is None:
        return None
    if isinstance(record, dict) and path in record:
        return record[path]
    step = _match_step(path)
    if not step or not isinstance(record, dict if step[1] else list):
        return MISSING
    key, position, rest = step.groups()
    if key:
        return value_at(record[key], rest) if key in record else MISSING
    if position is None:
        values = [value_at(entry, rest) for entry in record]
        values_found = [value for value in values if value is not MISSING]
        return values_found if values_found or not record else MISSING
    k = int(position)
    return value_at(record[k], rest) if -len(record) <= k < len(record) else MISSING


def put_at(record, path, value):
    """Replace the value at an existing path without ``[]``.

    Parameters
    ----------
    record : dict or list
        The object parsed from a line, which is changed in place.
    path : str
        A key or a path without ``[]``, which does not go on within a JSON string.
    value : object
        The new value.
    """
    key, rest = path, ""
    if isinstance(record, list) or path not in record:
        name, position, rest = _match_step(path).groups()
        key = name or int(position)
    if rest:
        put_at(record[key], rest, value)
    else:
        record[key] = value


def paths_of(record, depth=0):
    """Yield the path of each value in an object, except values that are objects themselves.

    Parameters
    ----------
    record : dict
        The object parsed from a line.
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
        if isinstance(inside, dict) and inside and depth < 6:
            yield from (f"{key}{mark}{path}" for path in paths_of(inside, depth + 1))
        else:
            yield str(key)
