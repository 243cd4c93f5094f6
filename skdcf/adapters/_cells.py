"""What stands in the cells of a table, read with an eye on cells that hold nothing."""

import json

import numpy as np

from .._checks import is_missing, printable
from ..graphs.ragged import offsets_of, segment_ids


def values_of(series):
    """A column as an object array of Python values, None where nothing stands."""
    values = (None if is_missing(value) else value for value in series.to_list())
    return np.fromiter(values, dtype=object, count=len(series))


def row_order(frame, problem, claim):
    """Order of the rows by problem and position, offsets, and names of the problems."""
    names = values_of(frame[problem])
    nameless = [row for row, name in enumerate(names) if name is None]
    if nameless:
        shown = f"{nameless[:10]}" + (" and more" if len(nameless) > 10 else "")
        raise ValueError(
            f"rows {shown} have no {problem!r}: name them or drop them, for problems "
            "are what the guarantee counts, so it must be known which rows are one"
        )
    try:
        number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    except TypeError as error:
        raise ValueError(f"{problem!r} holds what cannot be a name: {error}") from error
    of_row = np.array([number[name] for name in names], dtype=np.int64)
    offsets = offsets_of(np.bincount(of_row, minlength=len(number)))
    if claim not in frame.columns:
        return np.argsort(of_row, kind="stable"), offsets, list(number)
    cells = enumerate(values_of(frame[claim]))
    position = np.array([_whole(value, claim, row) for row, value in cells])
    order = np.lexsort((position, of_row))
    expected = np.arange(len(order)) - offsets[segment_ids(offsets)]
    wrong = np.flatnonzero(position[order] != expected)
    if wrong.size:
        row = order[wrong[0]]
        raise ValueError(
            f"problem {names[row]!r}: positions in {claim!r} must be 0, 1, ..., but "
            f"{position[row]} stands where {expected[wrong[0]]} should"
        )
    return order, offsets, list(number)


def parent_edges(parents, offsets, order):
    """Edges from a column of parents; ``order`` names rows as the caller knows them."""
    problem_of = segment_ids(offsets)
    first, sizes = offsets[problem_of], np.diff(offsets)[problem_of]
    edges = []
    for v, entry in enumerate(parents):
        for value in _listed(entry):
            parent = _whole(value, "a parent", order[v])
            if not 0 <= parent < sizes[v]:
                raise ValueError(
                    f"row {order[v]}: parent {parent}, but the problem has {sizes[v]} "
                    "claims"
                )
            edges.append((first[v] + parent, v))
    return edges


def known_texts(texts, offsets, order, required):
    """Texts of claims, of all in a problem or of none, or None where there are none."""
    known = np.array([text is not None for text in texts], dtype=bool)
    if not known.any():
        return None
    needed = np.logical_or.reduceat(known, offsets[:-1]) | required
    wrong = np.flatnonzero(needed[segment_ids(offsets)] & ~known)
    if wrong.size:
        raise ValueError(
            f"row {order[wrong[0]]}: the claim has no text, but others have one; put "
            '"" for an empty text'
        )
    return texts


def read_texts(entry, row):
    """A list of texts, which may have become JSON on its way through files."""
    if not isinstance(entry, str):
        return entry
    try:
        texts = json.loads(entry)
    except ValueError:
        texts = None
    if not isinstance(texts, list):
        raise ValueError(
            f"row {row}: alternatives are {printable(entry[:60])!r}, but must be a list "
            'of texts, or JSON such as ["one answer", "another"]'
        )
    return texts


def _listed(entry):
    if entry is None:
        return []
    if isinstance(entry, str):
        return entry.strip(" []()").replace(",", " ").split()
    return [entry] if np.ndim(entry) == 0 else entry


def _whole(value, what, row):
    """A position, which may have become a float or a text on its way through files."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = 0.5
    if not number.is_integer():
        raise ValueError(
            f"row {row}: {what} is {value!r}, a position (0, 1, ...) is due"
        )
    return int(number)
