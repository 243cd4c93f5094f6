"""Conversion of labels to the numbers 1 (true), 0 (false) and -1 (unknown)."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import offsets_of
from ._checks import is_integer, is_missing, is_number, listed, show
from .graphs import GraphBatch

#: Labels as one array per problem, or as one flat array.
Labels: TypeAlias = Sequence[ArrayLike] | ArrayLike


def pack_labels(y, batch):
    """Return the labels of a batch as a flat array.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem, or one flat array
        The labels, which are 1 or True (true), 0 or False (false), and -1 (unknown).
    batch : GraphBatch
        The labelled problems.

    Returns
    -------
    labels : ndarray of int8 of shape (n_claims,)
        Claim labels (1 for true, 0 for false, -1 for unknown).

    Raises
    ------
    ValueError
        If the numbers of labels and claims differ, or if a label is invalid. The error message
        contains the first invalid label.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.labels import pack_labels
    >>> batch = GraphBatch.from_arrays([[0.9], [0.8], [0.1]], [0, 2, 3])
    >>> pack_labels([[1, 0], [-1]], batch)
    array([ 1,  0, -1], dtype=int8)
    """
    if isinstance(y, Iterator) or hasattr(y, "columns"):
        raise ValueError(
            f"y must be a list of arrays, got a {type(y).__name__} (list(y) converts an iterator)"
        )
    labels = y if _is_plain(y) else _join_rows(listed(y, "y"), batch)
    if len(labels) != batch.n_claims:
        raise ValueError(
            f"y must have one label for each of the {batch.n_claims} claims, got {len(labels)}"
        )
    numbers = labels if _is_plain(labels) else _as_numbers(labels)
    for row in np.flatnonzero((numbers != 0) & (abs(numbers) != 1)):
        raise ValueError(
            f"{batch.locate(row)}: the label must be 1 (true), 0 (false) or -1 (unknown), got "
            f"{show(labels[row])}. Use -1 for claims that nobody judged"
        )
    return numbers.astype(np.int8)


def _as_numbers(labels):
    return np.array([v if is_number(v) else np.nan for v in labels])


def _join_rows(rows, batch):
    """Return the labels of all problems in one flat array or list."""
    joined = None
    if {*map(type, rows)} == {np.ndarray}:
        # A single call joins a million rows quickly, but not if their dimensions or types differ.
        with suppress(ValueError, TypeError):
            joined = np.concatenate([*rows])
    elif not any(hasattr(v, "__len__") and not isinstance(v, str) for v in rows):
        return rows  # The labels are already flat.
    if len(rows) != len(batch):
        raise ValueError(
            f"y must contain one array of labels for each of the {len(batch)} problems, "
            f"got {len(rows)}"
        )
    sizes = [*map(_count if joined is None else len, rows)]
    for i in np.flatnonzero(sizes != batch.sizes):
        raise ValueError(
            f"{batch.name_of(i)} must have one label for each of its {batch.sizes[i]} claims, got "
            f"the labels {show(rows[i])}. Pass only labelled problems to fit and calibrate"
        )
    if _is_plain(joined):
        return joined
    return [value for row in rows for value in listed(row, "the labels of a problem")]


def _count(row):
    """Return the number of labels in a row, or -1 if it is not a sequence."""
    return len(row) if hasattr(row, "__len__") and getattr(row, "shape", True) else -1


def _is_plain(y):
    """Return whether labels are an unmasked 1-D array of numbers."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf"


def read_column(y, classes=None):
    """Convert a column of two classes to labels, and return the classes that mean false and true.

    Parameters
    ----------
    y : ndarray of shape (n_problems,)
        The column. The column may contain 0 and 1 (and -1 for unknown), booleans, two words with
        a known meaning, such as "no" and "yes", or any two numbers. If the numbers are not 0 and
        1, the larger number means true.
    classes : ndarray of shape (2,), optional
        Values for false and true if they are known, for example after ``fit``.

    Returns
    -------
    labels : ndarray of int8 of shape (n_problems,)
        Claim labels (1 for true, 0 for false, -1 for unknown).
    classes : ndarray of shape (2,)
        The values for false and true, with the dtype of y. If y contains only one of the values
        0 and 1, the other value is added.

    Raises
    ------
    ValueError
        If a label is missing, or if the meaning of the values is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.labels import read_column
    >>> labels, classes = read_column(np.array(["right", "wrong", "right"]))
    >>> labels.tolist(), classes.tolist()
    ([1, 0, 1], ['wrong', 'right'])
    """
    for row, value in enumerate(y.tolist()):
        if is_missing(value) or value in (np.inf, -np.inf):
            raise ValueError(
                f"label {row} must not be missing or infinite, got {value}. Use -1 for "
                "unjudged problems"
            )
    found = {*y.tolist()}
    if classes is None:
        classes = np.array(_false_and_true(found), y.dtype)
    meaning = classes.tolist()
    known = [-1, 0, 1] if meaning == [0, 1] else meaning
    if not found.issubset(known):
        raise ValueError(
            f"each label must be one of the two values seen during fit, {meaning}, got "
            f"{show(sorted(found, key=str))}"
        )
    labels = y if meaning == [0, 1] else y == meaning[1]
    return labels.astype(np.int8), classes


def _false_and_true(found):
    """Return the values that mean false and true, given the distinct values."""
    if found == {-1, 1}:
        raise ValueError(
            "the labels must not be -1 and 1, because -1 means false for classifiers but "
            "unknown for reasoning graphs. If -1 means false, pass y == 1. If -1 means "
            "unknown, pass one graph and one array of labels per row"
        )
    if found <= {-1, 0, 1} and found != {-1}:
        return 0, 1
    opposites = {"no": "yes", "false": "true", "wrong": "right", "incorrect": "correct"}
    for false, true in permutations(found, 2):
        are_words = opposites.get(str(false).casefold()) == str(true).casefold()
        are_numbers = is_number(false) and is_number(true) and false < true
        if len(found) == 2 and (are_words or are_numbers):
            return false, true
    raise ValueError(
        f"y must contain two classes, of which the larger means true, got "
        f"{show(sorted(found, key=str))}. Pass booleans, or 1 (true), 0 (false) and -1 (unknown)"
    )


class LabelList(list[Any]):
    """List of labels that accepts the same indices as an array."""

    def __getitem__(self, key: Any) -> Any:
        if is_integer(key):
            return super().__getitem__(key)
        return LabelList(map(super().__getitem__, np.arange(len(self))[key]))


def flatten(y, kept):
    """Validate labels and masks, and return them as flat arrays with the problem offsets."""
    offsets = offsets_of([np.size(mask) for mask in kept])
    batch = GraphBatch.from_arrays(np.empty((offsets[-1], 0)), offsets)
    masks = pack_labels(kept, batch)
    if (masks < 0).any():
        raise ValueError("kept must contain only booleans, but it contains -1")
    return pack_labels(y, batch), masks == 1, offsets
