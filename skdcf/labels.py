"""Conversion of labels to the numbers 1 (true), 0 (false) and -1 (unknown)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import is_missing, refuse_iterator
from .graphs import GraphBatch, ReasoningGraph
from .graphs.checks import NO_LISTS, has_masked, show
from .graphs.ragged import offsets_of

__all__ = ["pack_labels"]

_NUMBERS = "biuf"  # numpy dtype kinds of bool, int, uint and float
LABELS = (0, 1)  # the labels for false and true claims
_JOINT = re.compile(r"_|(?<=[^\W\d])-(?=[^\W\d])")  # joints between words
#: Labels used by people who examined a claim but could not confirm it. The numeric label of an
#: unsure claim is 0.
UNSURE_WORDS = ["unsure", "uncertain", "unclear", "borderline", "idk", "inconclusive"]
#: Words that people and programs use as labels. The meaning of words that are not listed is never
#: guessed.
WORDS = {
    1: "1 1.0 true t yes y correct right ok valid accurate supported support supports "
    "entailed entails entailment factual grounded faithful attributable",
    0: "0 0.0 false f no n incorrect wrong invalid inaccurate unsupported refuted refute "
    "refutes contradicted contradicts contradiction hallucinated hallucination nonfactual "
    "ungrounded unfaithful unattributable "
    "neutral unverifiable mixed conflicting contradictory nei",
    -1: "none null nan na n/a <na> unknown irrelevant",
}
LABEL_WORDS = {word: label for label, words in WORDS.items() for word in words.split()}
LABEL_WORDS |= dict.fromkeys(UNSURE_WORDS, 0)
LABEL_WORDS |= {"": -1, "not enough evidence": 0, "not enough info": 0}
LABEL_WORDS |= {"partially supported": 0, "partially true": 0, "not verifiable": 0}
LABEL_WORDS |= {"not supported": 0, "not factual": 0, "not grounded": 0}
LABEL_WORDS |= {"non factual": 0, "not faithful": 0, "not attributable": 0}
LABEL_WORDS["no claim"] = 1  # A sentence that claims nothing cannot be false.
#: Pairs of words that mean "false" and "true". If a column contains only one word of a pair, the
#: other word is the second class. For words that do not belong to any pair, the first pair is
#: used.
PAIRS = [
    pair.split(" / ")
    for pair in """false / true
0 / 1
0.0 / 1.0
f / t
no / yes
n / y
incorrect / correct
wrong / right
invalid / valid
inaccurate / accurate
unsupported / supported
not supported / supported
refuted / supported
refute / support
refutes / supports
contradicted / entailed
contradicts / entails
contradiction / entailment
non factual / factual
nonfactual / factual
not factual / factual
not grounded / grounded
ungrounded / grounded
unfaithful / faithful
not faithful / faithful
unattributable / attributable
not attributable / attributable""".splitlines()
]


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
    if not isinstance(batch, GraphBatch):
        batch = GraphBatch.from_graphs(batch)
    flat = _flat_labels(y, batch)
    if flat.dtype == object and len(flat) and all(map(_is_word, flat)):
        return read_words(map(_as_text, flat), batch.locate)
    return read_labels(flat, batch.locate)


def read_labels(values: Any, place: Callable[[int], str]) -> NDArray[np.int8]:
    """Convert a flat list of labels to an array.

    Parameters
    ----------
    values : sequence
        The labels, which are 1 or True (true), 0 or False (false), and -1 (unknown).
    place : callable
        Function that returns the name of the claim in a given row, for use in messages.

    Returns
    -------
    labels : ndarray of int8
        Claim labels (1 for true, 0 for false, -1 for unknown).

    Raises
    ------
    ValueError
        If a label is invalid. The error message contains the first invalid label.
    """
    flat = values if _is_plain(values) else _column(values)
    if flat.dtype == object:
        is_label = (isinstance(v, (Real, np.bool_)) and v in (-1, 0, 1) for v in flat)
        right = np.fromiter(is_label, dtype=bool, count=len(flat))
    else:
        right = (flat == 1) | (flat == 0) | (flat == -1)
    if not right.all():
        row = int(np.argmin(right))
        value = flat[row].item() if isinstance(flat[row], np.generic) else flat[row]
        missing = is_missing(value) or value is np.ma.masked
        raise ValueError(
            f"{place(row)}: the label must be 1 (true), 0 (false) or -1 (unknown), got "
            f"{show(value)}"
            + (". Use -1 for claims that nobody judged" if missing else "")
        )
    return flat.astype(np.int8)


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
    spaced = _JOINT.sub(" ", str(word))
    return " ".join(spaced.split()).removesuffix(".").casefold()


def read_words(
    words: Iterable[str], place: Callable[[int], str] | None = None
) -> NDArray[np.int8]:
    """Convert words such as "supported" and "hallucinated" to labels by their meaning.

    Parameters
    ----------
    words : iterable of str
        Label words, in upper or lower case.
    place : callable, optional
        Function that returns the name of the claim in a given row, for use in messages.

    Returns
    -------
    labels : ndarray of int8
        Claim labels (1 for true, 0 for false, -1 for unknown).

    Raises
    ------
    ValueError
        If the meaning of a word is unknown. The meanings are never inferred from the alphabetical
        order of the words.

    Examples
    --------
    >>> from skdcf.labels import read_words
    >>> read_words(["Supported", "hallucinated", "unknown"])
    array([ 1,  0, -1], dtype=int8)
    """
    keys = [word_key(word) for word in words]
    if unknown := [key for key in dict.fromkeys(keys) if key not in LABEL_WORDS]:
        where = "" if place is None else f"{place(keys.index(unknown[0]))}: "
        raise ValueError(
            f"{where}the label {show(unknown[0])} has no known meaning. Pass 1 for true, "
            "0 for false or -1 for unknown, for example "
            f"np.where(y == {unknown[0]!r}, 0, 1) if this label means false"
        )
    return np.array([LABEL_WORDS[key] for key in keys], dtype=np.int8)


def read_column(
    y: NDArray[Any], classes: NDArray[Any] | None = None
) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """Convert a column of two classes to labels, and return the classes that mean false and true.

    Parameters
    ----------
    y : ndarray of shape (n_problems,)
        The column. The column may contain 0 and 1 (and -1 for unknown), booleans, words that
        `read_words` accepts, or any two numbers. If the numbers are not 0 and 1, the larger
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
    listed = y.tolist()
    for row, value in enumerate(listed):
        if is_missing(value) or value in (np.inf, -np.inf):
            raise ValueError(
                f"label {row} must not be missing or infinite, got {value}. Use -1 for "
                "unjudged problems"
            )
    if listed and all(map(_is_word, listed)):
        labels = read_words(map(_as_text, listed))
        return labels, _word_classes(y, labels) if classes is None else classes
    if not all(isinstance(value, (Real, np.bool_)) for value in listed):
        raise ValueError(
            "the labels must be either all numbers or all words, got a mixture: "
            f"{list(dict.fromkeys(map(show, listed)))[:5]}"
        )
    values = np.unique(y).tolist()
    if classes is None:
        classes = np.array(_meaning_of(values), dtype=y.dtype)
    words = isinstance(classes[0], (str, bytes))
    meaning = LABELS if words else tuple(classes.tolist())
    if not {*meaning, *([-1] if meaning == LABELS else ())}.issuperset(values):
        raise ValueError(
            f"each label must be one of the two values seen during fit, {list(meaning)}, "
            f"got {values[:5]}"
        )
    unknown = (y == -1) if meaning == LABELS else np.zeros(len(y), dtype=bool)
    return np.where(unknown, -1, y == meaning[1]).astype(np.int8), classes


def _meaning_of(found):
    """Return the values that mean false and true, given the sorted distinct values."""
    if isinstance(found[0], bool):
        return (False, True)
    if found in ([0], [1], [0, 1], [-1, 0], [-1, 0, 1]):
        return LABELS
    if found == [-1, 1]:
        raise ValueError(
            "the labels must not be -1 and 1, because -1 means false for classifiers but "
            "unknown for reasoning graphs. If -1 means false, pass y == 1. If -1 means "
            "unknown, pass one graph and one array of labels per row"
        )
    if len(found) == 1:
        raise ValueError(
            f"y must contain two classes, got only {found[0]!r}, which may mean true or "
            "false. Pass booleans, or 1 for true and 0 for false"
        )
    if len(found) != 2:
        raise ValueError(
            f"y must have two distinct values, got {len(found)} values {found[:5]}. The "
            "larger value means true. Alternatively, pass 1 (true), 0 (false) and -1 "
            "(unknown)"
        )
    return tuple(found)


def _word_classes(y, labels):
    """Return the words that mean false and true, with the dtype of the column."""
    words = [_usual_word(y[labels == label].tolist()) for label in LABELS]
    if None in words:
        word_given = words[0] or words[1] or "true"
        words = [word or _opposite(word_given) for word in words]
    if y.dtype == object:
        return np.array(words, dtype=object)
    return np.array(words).astype(np.promote_types(y.dtype, np.array(words).dtype))


def _usual_word(words):
    """Return the most frequent word, or None if there are no words."""
    counts = Counter(words)
    return max(counts, key=lambda word: (counts[word], str(word)), default=None)


def _opposite(word):
    """Return the opposite of a word that means true or false."""
    text = _as_text(word)
    key = word_key(text)
    meaning = LABEL_WORDS[key]
    pair = next((pair for pair in PAIRS if pair[meaning] == key), PAIRS[0])
    opposite = pair[1 - meaning]
    if text[:1].isupper():
        opposite = (
            opposite.upper()
            if text.isupper() and len(text) > 1
            else opposite.capitalize()
        )
    return opposite.encode() if isinstance(word, bytes) else opposite


def _is_word(value):
    return isinstance(value, (str, bytes))


def _as_text(word):
    return word.decode(errors="replace") if isinstance(word, bytes) else word


def _flat_labels(y, batch):
    """Return the labels of all claims as a flat array, without checking the values."""
    _check_sequence(y)
    if _is_plain(y):
        if len(y) != batch.n_claims:
            raise ValueError(
                f"y must have one label for each of the {batch.n_claims} claims, got {len(y)}"
            )
        return y
    if len(y) == batch.n_claims and all(np.ndim(value) == 0 for value in y):
        return _column(y)
    if len(y) != len(batch):
        raise ValueError(
            f"y must contain one array of labels for each of the {len(batch)} problems, "
            f"got {len(y)}"
        )
    rows = list(y)
    flat = _join_arrays(rows)
    if flat is None:
        rows = [_column(row) for row in rows]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    wrong = np.flatnonzero(lengths != batch.sizes)
    if wrong.size:
        i = wrong[0]
        n = lengths[wrong[0]]
        if is_missing(y[i]):
            raise ValueError(
                f"{batch.name_of(i)} must have labels, got {y[i]}. Pass only labelled "
                "problems to fit and calibrate"
            )
        raise ValueError(
            f"{batch.name_of(i)} must have one label for each of its {batch.sizes[i]} "
            f"claims, got {n}"
        )
    return np.concatenate(rows) if flat is None else flat


def _join_arrays(rows):
    """Concatenate all rows into one array of numbers, or return None if this is impossible.

    All rows are joined in a single call, because separate calls for a million rows would dominate
    the fit time.
    """
    if set(map(type, rows)) != {np.ndarray}:
        return None
    try:
        flat = np.concatenate(rows)
    # The arrays have different numbers of dimensions, so they cannot be concatenated.
    except ValueError:
        return None
    return flat if _is_plain(flat) else None


def _check_sequence(y):
    refuse_iterator("y", y)
    is_sequence = isinstance(y, Sized) and isinstance(y, Iterable)
    is_sequence &= getattr(y, "ndim", 1) > 0 and not hasattr(y, "columns")
    if not is_sequence or isinstance(y, NO_LISTS):
        kind = "None" if y is None else f"a {type(y).__name__}"
        raise ValueError(
            "y must contain one array of labels per problem, in the same order, got "
            f"{kind}"
        )


def _is_plain(y):
    """Return whether ``y`` is an unmasked 1-D array of numbers."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in _NUMBERS


def _column(values):
    """Return labels as a flat array of numbers or, if that is impossible, of objects."""
    if not has_masked(values):
        try:
            column = np.ravel(np.asarray(values))
            if column.dtype.kind in _NUMBERS:
                return column
            return np.ravel(np.array(values, dtype=object))
        except ValueError:  # One of the labels is a list.
            pass
    entries = list(np.ravel(values) if isinstance(values, np.ndarray) else values)
    return np.fromiter(entries, dtype=object, count=len(entries))


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
    if len(y) != len(kept):
        raise ValueError(
            f"y and kept must contain the same number of problems, got {len(y)} and "
            f"{len(kept)}"
        )
    if not len(y):
        raise ValueError("y must contain at least one problem, but it is empty")
    (labels, sizes), (masks, n) = _joined(y), _joined(kept)
    wrong = np.flatnonzero(sizes != n)
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"y[{i}] and kept[{i}] must have the same length, got {sizes[i]} labels and "
            f"{n[i]} entries"
        )
    for name, values, allowed in (("y", labels, (0, 1, -1)), ("kept", masks, (0, 1))):
        numbers = values.dtype.kind in "biuf"
        if not numbers or not np.isin(values, allowed).all():
            raise ValueError(
                f"{name} must contain only {allowed}, but it contains other values"
            )
    return labels, masks.astype(bool), offsets_of(sizes)


def _joined(rows):
    """Return the concatenated values of all rows, and the length of each row."""
    flat = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype != object
    if any(np.ma.is_masked(row) for row in ([rows] if flat else rows)):
        raise ValueError(
            "y and kept must not contain masked values. Fill in these values, and use -1 "
            "for unknown labels"
        )
    if flat:
        return rows, np.ones(len(rows), dtype=np.int64)
    rows = [np.ravel(row) for row in rows]
    return np.concatenate(rows), np.array([len(row) for row in rows])
