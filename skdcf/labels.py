"""Conversion of labels to the numbers 1 (true), 0 (false) and -1 (unknown)."""

import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import is_missing, refuse_iterator
from .graphs import GraphBatch, ReasoningGraph
from .graphs.checks import NO_LISTS, show
from .graphs.ragged import offsets_of

#: Labels used by people who examined a claim but could not confirm it. The numeric label of an
#: unsure claim is 0.
UNSURE_WORDS = ["unsure", "uncertain", "unclear", "borderline", "idk", "inconclusive"]
#: Words that people and programs use as labels. The meaning of words that are not listed is never
#: guessed. A sentence that claims nothing cannot be false.
LABEL_WORDS = {
    word: label
    for label, words in {
        1: "1, 1.0, true, t, yes, y, correct, right, ok, valid, accurate, supported, support, "
        "supports, entailed, entails, entailment, factual, grounded, faithful, attributable, "
        "no claim",
        0: "0, 0.0, false, f, no, n, incorrect, wrong, invalid, inaccurate, unsupported, refuted, "
        "refute, refutes, contradicted, contradicts, contradiction, hallucinated, hallucination, "
        "nonfactual, ungrounded, unfaithful, unattributable, neutral, unverifiable, mixed, "
        "conflicting, contradictory, nei, not enough evidence, not enough info, "
        "partially supported, partially true, not verifiable, not supported, not factual, "
        "not grounded, non factual, not faithful, not attributable, "
        + ", ".join(UNSURE_WORDS),
        -1: "none, null, nan, na, n/a, <na>, unknown, irrelevant, ",
    }.items()
    for word in words.split(", ")
}

#: Labels as one array per problem, or as one flat array.
Labels: TypeAlias = Sequence[ArrayLike] | ArrayLike


def pack_labels(
    y: Any, batch: GraphBatch | Sequence[ReasoningGraph]
) -> NDArray[np.int8]:
    """Return the labels of a batch as a flat array.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem, or one flat array
        The labels. Labels are either numbers, namely 1 (true), 0 (false) and -1 (unknown), or
        words such as "true" and "false".
    batch : GraphBatch, or sequence of ReasoningGraph
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
    batch = GraphBatch.from_graphs(batch)
    return read_labels(_flat_labels(y, batch), batch.locate)


def word_key(word: Any) -> str:
    """Return a label word in the normalised format of the keys in `LABEL_WORDS`.

    Parameters
    ----------
    word : str
        The word. Underscores and hyphens between letters are treated as spaces, and a full
        stop at the end is ignored.

    Returns
    -------
    key : str
        The normalised word.
    """
    # An underscore joins words, as does a hyphen between letters.
    spaced = re.sub(r"_|(?<=[^\W\d])-(?=[^\W\d])", " ", str(word))
    return " ".join(spaced.split()).removesuffix(".").casefold()


def read_labels(
    values: Any, place: Callable[[int], str] = "label {}".format
) -> NDArray[np.int8]:
    """Convert numbers and words such as "supported" and "hallucinated" to labels.

    Parameters
    ----------
    values : sequence
        The labels, which are 1 or True (true), 0 or False (false), -1 (unknown), or words in
        upper or lower case.
    place : callable, optional
        Function that returns the name of the claim in a given row, for use in messages.

    Returns
    -------
    labels : ndarray of int8
        Claim labels (1 for true, 0 for false, -1 for unknown).

    Raises
    ------
    ValueError
        If a label is invalid, or if the meaning of a word is unknown. The error message contains
        the first invalid label. The meanings are never inferred from the alphabetical order of
        the words.

    Examples
    --------
    >>> from skdcf.labels import read_labels
    >>> read_labels(["Supported", "hallucinated", "unknown"])
    array([ 1,  0, -1], dtype=int8)
    """
    if _is_plain(values) and ((values == 1) | (values == 0) | (values == -1)).all():
        return values.astype(np.int8)
    values = _listed(values)
    labels = list(map(_label_of, values))
    if None in labels:
        row = labels.index(None)
        raise ValueError(
            f"{place(row)}: the label must be 1 (true), 0 (false) or -1 (unknown), or a word with "
            f"a known meaning, got {show(values[row])}. Use -1 for claims that nobody judged, "
            "whose labels are missing or masked"
        )
    return np.array(labels, dtype=np.int8)


def _label_of(value):
    """Return the label that a number or a word means, or None if it is not a label."""
    if isinstance(value, str):
        return LABEL_WORDS.get(word_key(value))
    is_label = isinstance(value, (Real, np.bool_)) and value in (-1, 0, 1)
    return int(value) if is_label else None


def read_column(
    y: NDArray[Any], classes: NDArray[Any] | None = None
) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """Convert a column of two classes to labels, and return the classes that mean false and true.

    Parameters
    ----------
    y : ndarray of shape (n_problems,)
        The column. The column may contain 0 and 1 (and -1 for unknown), booleans, words that
        `read_labels` accepts, or any two numbers. If the numbers are not 0 and 1, the larger
        number means true.
    classes : ndarray of shape (2,), optional
        Values for false and true if they are known, for example after ``fit``.

    Returns
    -------
    labels : ndarray of int8 of shape (n_problems,)
        Claim labels (1 for true, 0 for false, -1 for unknown).
    classes : ndarray of shape (2,)
        The values for false and true, with the dtype of y. If y contains only one value of a
        known pair, the other value of the pair is added. If several words have the same meaning,
        the most frequent of these words is used.

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
    values = y.tolist()
    for row, value in enumerate(values):
        if is_missing(value) or value in (np.inf, -np.inf):
            raise ValueError(
                f"label {row} must not be missing or infinite, got {value}. Use -1 for "
                "unjudged problems"
            )
    if any(isinstance(value, str) for value in values):
        labels = read_labels(values)
        words = [{*y[labels == label].tolist()} for label in (0, 1)]
        if classes is None and [*map(len, words)] != [1, 1]:
            raise ValueError(
                "y must contain one word for false and one word for true, got "
                f"{[*map(sorted, words)]}. Pass booleans, or 1 for true and 0 for false"
            )
        if classes is None:
            classes = np.array([word.pop() for word in words], dtype=y.dtype)
        return labels, classes
    values = np.unique(y).tolist()
    if classes is None:
        classes = np.array(_numbers_of(values), dtype=y.dtype)
    meaning = tuple(classes.tolist())
    unknown = {-1} if meaning == (0, 1) else set()
    if not {*meaning, *unknown}.issuperset(values):
        raise ValueError(
            f"each label must be one of the two values seen during fit, {list(meaning)}, "
            f"got {values[:5]}"
        )
    labels = np.where(np.isin(y, [*unknown]), -1, y == meaning[1])
    return labels.astype(np.int8), classes


def _numbers_of(found):
    """Return the values that mean false and true, given the sorted distinct values."""
    if isinstance(found[0], bool):
        return (False, True)
    if found in ([0], [1], [0, 1], [-1, 0], [-1, 0, 1]):
        return (0, 1)
    if found == [-1, 1]:
        raise ValueError(
            "the labels must not be -1 and 1, because -1 means false for classifiers but "
            "unknown for reasoning graphs. If -1 means false, pass y == 1. If -1 means "
            "unknown, pass one graph and one array of labels per row"
        )
    if len(found) != 2:
        raise ValueError(
            f"y must contain two classes, of which the larger means true, got {found[:5]}. Pass "
            "booleans, or 1 (true), 0 (false) and -1 (unknown)"
        )
    return tuple(found)


def _flat_labels(y, batch):
    """Return the labels of all claims in a flat array or list, without checking the values."""
    refuse_iterator("y", y)
    is_sequence = hasattr(y, "__len__") and getattr(y, "ndim", 1) > 0
    if isinstance(y, NO_LISTS) or not is_sequence or hasattr(y, "columns"):
        raise ValueError(
            "y must contain one array of labels per problem, in the same order, got a "
            f"{type(y).__name__}"
        )
    if _is_plain(y) or (len(y) == batch.n_claims and all(np.ndim(v) == 0 for v in y)):
        if len(y) != batch.n_claims:
            raise ValueError(
                f"y must have one label for each of the {batch.n_claims} claims, got {len(y)}"
            )
        return y
    rows = list(y)
    if len(rows) != len(batch):
        raise ValueError(
            f"y must contain one array of labels for each of the {len(batch)} problems, "
            f"got {len(rows)}"
        )
    for i, size in enumerate(batch.sizes.tolist()):
        if not hasattr(rows[i], "__len__") or len(rows[i]) != size:
            raise ValueError(
                f"{batch.name_of(i)} must have one label for each of its {size} claims, got "
                f"the labels {show(rows[i])}. Pass only labelled problems to fit and calibrate"
            )
    # A single call is faster than one call for each of a million rows.
    if all(map(_is_plain, rows)):
        return np.concatenate(rows)
    return [value for row in rows for value in _listed(row)]


def _is_plain(values):
    """Return whether labels are an unmasked 1-D array of numbers."""
    is_array = type(values) is np.ndarray and values.ndim == 1
    return is_array and values.dtype.kind in "biuf"


def _listed(values):
    """Return labels as a list, in which masked labels are None."""
    return np.ravel(values).tolist() if isinstance(values, np.ndarray) else list(values)


class LabelList(list[Any]):
    """List of labels that scikit-learn can index with index arrays."""

    @property
    def shape(self) -> tuple[int]:
        """Shape (n_problems,), which tells scikit-learn that index arrays are supported."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return super().__getitem__(key)
        positions = np.arange(len(self))[key]
        return LabelList(map(super().__getitem__, positions.tolist()))


def flatten(y: Any, kept: Any) -> Any:
    """Validate labels and masks, and return them as flat arrays with the problem offsets."""
    if len(y) != len(kept) or not len(y):
        raise ValueError(
            "y and kept must contain the same number of problems, and at least one, got "
            f"{len(y)} and {len(kept)}"
        )
    offsets = offsets_of([np.size(mask) for mask in kept])
    batch = GraphBatch.from_arrays(np.empty((offsets[-1], 0)), offsets)
    masks = pack_labels(kept, batch)
    if (masks < 0).any():
        raise ValueError("kept must contain only booleans, but it contains -1")
    return pack_labels(y, batch), masks == 1, offsets
