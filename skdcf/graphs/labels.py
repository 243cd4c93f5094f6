"""Labels of any kind as flat numbers: 1 true, 0 false, -1 unknown."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import is_missing, refuse_iterator
from ._batch import GraphBatch
from ._graph import ReasoningGraph
from ._inputs import NO_LISTS, has_masked, show
from .wordings import close_labels

_NUMBERS = "biuf"  # numpy's letters for booleans, integers and floats
LABELS = (0, 1)  # the labels of false and true
#: Words that people and programs use for labels. Of no other word is the meaning guessed.
WORDS = {
    1: "1 1.0 true t yes y correct right ok valid accurate supported support supports "
    "entailed entails entailment factual grounded",
    0: "0 0.0 false f no n incorrect wrong invalid inaccurate unsupported refuted refute "
    "refutes contradicted contradicts contradiction hallucinated hallucination non-factual "
    "nonfactual ungrounded "
    # Somebody looked, and could not call it true.
    "unsure uncertain unclear neutral borderline idk unverifiable mixed inconclusive "
    "conflicting contradictory",
    -1: "none unknown irrelevant",
}
LABEL_WORDS = {word: label for label, words in WORDS.items() for word in words.split()}
LABEL_WORDS |= {"": -1, "not enough evidence": 0, "not enough info": 0}
LABEL_WORDS |= {"partially supported": 0, "partially true": 0, "not verifiable": 0}
LABEL_WORDS |= {"not supported": 0, "not factual": 0, "not grounded": 0}
LABEL_WORDS["no claim"] = 1  # nothing of it can be false
#: Words for false and true that are used together. A column that holds only one of them is
#: predicted with the other one; any other word goes with those of the first line.
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
non-factual / factual
nonfactual / factual
not factual / factual
not grounded / grounded
ungrounded / grounded""".splitlines()
]


#: Labels: one array per problem, or one flat array.
Labels: TypeAlias = Sequence[ArrayLike] | ArrayLike


def pack_labels(
    y: Any, batch: GraphBatch | Sequence[ReasoningGraph]
) -> NDArray[np.int8]:
    """Labels of a batch as a flat array.

    Parameters
    ----------
    y : sequence of 1-D arrays, one per problem, or one flat array
        Of 1 (true), 0 (false) and -1 (unknown: nobody judged the claim), or of words such
        as "true" and "false".
    batch : GraphBatch, or sequence of ReasoningGraph
        The problems that are labelled.

    Returns
    -------
    ndarray of int8, shape (n_claims,)
        1 true, 0 false, -1 unknown. A wording counts as false if a vaguer one of the same
        claim is false.

    Raises
    ------
    ValueError
        If numbers of labels and claims differ, or a label is something else; the
        message names the first.

    Warns
    -----
    LabelWarning
        If a wording is labelled true, and a vaguer one of the same claim false.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.graphs import pack_labels
    >>> batch = GraphBatch.from_arrays([[0.9], [0.8], [0.1]], [0, 2, 3])
    >>> pack_labels([[1, 0], [-1]], batch)
    array([ 1,  0, -1], dtype=int8)
    """
    if not isinstance(batch, GraphBatch):
        batch = GraphBatch.from_graphs(batch)
    flat = _flat_labels(y, batch)
    if flat.dtype == object and len(flat) and all(map(_is_word, flat)):
        labels = read_words(map(_as_text, flat), batch.locate)
    else:
        labels = read_labels(flat, batch.locate)
    return close_labels(labels, batch)


def read_labels(values: Any, place: Callable[[int], str]) -> NDArray[np.int8]:
    """A flat list of labels as an array; every module reads labels by this function.

    Parameters
    ----------
    values : sequence
        Of 1 or True (true), 0 or False (false) and -1 (unknown).
    place : callable
        ``place(row)`` names the claim of a label, for messages.

    Returns
    -------
    ndarray of int8
        1 true, 0 false, -1 unknown.

    Raises
    ------
    ValueError
        If a label is something else; the message names the first.
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
            f"{place(row)}: the label is {show(value)}; labels are 1 (true), 0 (false) "
            "or -1 (unknown)"
            + ("; -1 stands for a claim that nobody judged" if missing else "")
        )
    return flat.astype(np.int8)


def labels_from_first_error(n_claims: int, first_error: int | None) -> NDArray[Any]:
    """Labels of an answer of which only the first false claim is known.

    In a chain this is all that calibration needs: every later claim descends from the
    first error, so that the nonconformity score does not depend on later labels.

    Parameters
    ----------
    n_claims : int
        Number of claims of the answer.
    first_error : int or None
        Position of the first false claim, counted from 0; -1 or None where no claim is
        false.

    Returns
    -------
    ndarray of int64, shape (n_claims,)
        1 before the first error, 0 there, and -1 (unknown) after it.

    Raises
    ------
    ValueError
        If there is no claim at that position.

    Examples
    --------
    >>> from skdcf.graphs import labels_from_first_error
    >>> labels_from_first_error(4, 1), labels_from_first_error(2, None)
    (array([ 1,  0, -1, -1]), array([1, 1]))
    """
    if first_error is None:
        return np.ones(n_claims, dtype=np.int64)
    is_number = isinstance(first_error, Integral)
    is_number = is_number and not isinstance(first_error, bool)
    if not (is_number and -1 <= first_error < n_claims):
        raise ValueError(
            f"first_error is {first_error!r}, but must be the position of one of "
            f"{n_claims} claims, counted from 0, or -1 for none"
        )
    first = n_claims if first_error == -1 else int(first_error)
    return np.sign(first - np.arange(n_claims, dtype=np.int64))


def word_key(word: Any) -> str:
    """A word for a label as `LABEL_WORDS` has it: lower case, with single spaces.

    Parameters
    ----------
    word : str
        Underscores count as spaces.

    Returns
    -------
    str
    """
    return " ".join(str(word).replace("_", " ").split()).casefold()


def read_words(
    words: Iterable[str], place: Callable[[int], str] | None = None
) -> NDArray[np.int8]:
    """Labels that are words, such as "supported" and "hallucinated", by their meaning.

    Parameters
    ----------
    words : iterable of str
        In upper or lower case.
    place : callable, optional
        ``place(row)`` names the claim of a label, for messages.

    Returns
    -------
    ndarray of int8
        1 true, 0 false, -1 unknown.

    Raises
    ------
    ValueError
        If the meaning of a word is not known: no word is guessed by its place in the
        alphabet.

    Examples
    --------
    >>> from skdcf.graphs.labels import read_words
    >>> read_words(["Supported", "hallucinated", "unknown"])
    array([ 1,  0, -1], dtype=int8)
    """
    keys = [word_key(word) for word in words]
    if unknown := [key for key in dict.fromkeys(keys) if key not in LABEL_WORDS]:
        where = "" if place is None else f"{place(keys.index(unknown[0]))}: "
        raise ValueError(
            f"{where}the labels hold {show(unknown[0])}, and whether that means true or false is "
            "not known. Pass 1 (true), 0 (false) and -1 (unknown), for example "
            f"np.where(y == {unknown[0]!r}, 0, 1) if it means false"
        )
    return np.array([LABEL_WORDS[key] for key in keys], dtype=np.int8)


def read_column(
    y: NDArray[Any], classes: NDArray[Any] | None = None
) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """Return the labels of a column of two values, and the values for false and true.

    Parameters
    ----------
    y : ndarray of shape (n_problems,)
        0 and 1 (and -1 for unknown), booleans, two other numbers of which the larger
        means true, or words as in `read_words`.
    classes : ndarray of shape (2,), optional
        The values for false and true in another column, such as that of ``fit``.

    Returns
    -------
    labels : ndarray of int8, shape (n_problems,)
        1 true, 0 false, -1 unknown.
    classes : ndarray of shape (2,)
        The values for false and true, with the dtype of y. If only one of two known values
        occurs, the other one is added. If several words have the same meaning, this is the
        most frequent one.

    Raises
    ------
    ValueError
        If a label is missing, or what the values mean is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.graphs.labels import read_column
    >>> labels, classes = read_column(np.array(["right", "wrong", "right"]))
    >>> labels.tolist(), classes.tolist()
    ([1, 0, 1], ['wrong', 'right'])
    """
    listed = y.tolist()
    for row, value in enumerate(listed):
        if is_missing(value) or value in (np.inf, -np.inf):
            raise ValueError(
                f"label {row} is {value}: every problem needs one, and -1 stands for a "
                "claim that nobody judged"
            )
    if listed and all(map(_is_word, listed)):
        labels = read_words(map(_as_text, listed))
        return labels, _word_classes(y, labels) if classes is None else classes
    if not all(isinstance(value, (Real, np.bool_)) for value in listed):
        raise ValueError(
            f"the labels are of several kinds: {list(dict.fromkeys(map(show, listed)))[:5]}, "
            "and neither all numbers nor all words"
        )
    values = np.unique(y).tolist()
    if classes is None:
        classes = np.array(_meaning_of(values), dtype=y.dtype)
    words = isinstance(classes[0], (str, bytes))
    meaning = LABELS if words else tuple(classes.tolist())
    if not {*meaning, *([-1] if meaning == LABELS else ())}.issuperset(values):
        raise ValueError(
            f"the labels are {values[:5]}; two values are expected, false and true, and "
            f"in fit they were {list(meaning)}"
        )
    unknown = (y == -1) if meaning == LABELS else np.zeros(len(y), dtype=bool)
    return np.where(unknown, -1, y == meaning[1]).astype(np.int8), classes


def _meaning_of(found):
    """Tell which of the distinct values means false, and which true."""
    if isinstance(found[0], bool):
        return (False, True)
    if found in ([0], [1], [0, 1], [-1, 0], [-1, 0, 1]):
        return LABELS
    if found == [-1, 1]:
        raise ValueError(
            "the labels are -1 and 1. In a table -1 may mean false, as in classifiers, or "
            "unknown, as in semi-supervised learning and in graphs here. If -1 means false, "
            "pass y == 1. If it means that nobody judged the row, pass graphs with one "
            "claim each and one array of labels per graph"
        )
    if len(found) == 1:
        raise ValueError(
            f"y holds one class only, {found[0]!r}, which does not say whether that means "
            "true or false. Pass booleans, or 0 for false and 1 for true"
        )
    if len(found) != 2:
        raise ValueError(
            f"y has {len(found)} distinct values {found[:5]}; two are expected, of which "
            "the larger means true (and next to 0 and 1, -1 for unknown)"
        )
    return tuple(found)


def _word_classes(y, labels):
    """Return the words for false and true in a column of words, with its dtype."""
    words = [_usual_word(y[labels == label].tolist()) for label in LABELS]
    if None in words:
        word_given = words[0] or words[1] or "true"
        words = [word or _opposite(word_given) for word in words]
    if y.dtype == object:
        return np.array(words, dtype=object)
    return np.array(words).astype(np.promote_types(y.dtype, np.array(words).dtype))


def _usual_word(words):
    """Return the most frequent word, or None if there are none."""
    counts = Counter(words)
    return max(counts, key=lambda word: (counts[word], str(word)), default=None)


def _opposite(word):
    """Return the word that is used together with a word for true or false."""
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
    """Labels of all claims, unchecked, in one array of numbers or objects."""
    _check_sequence(y)
    if _is_plain(y):
        if len(y) != batch.n_claims:
            raise ValueError(f"{len(y)} labels but {batch.n_claims} claims")
        return y
    if len(y) == batch.n_claims and all(np.ndim(value) == 0 for value in y):
        return _column(y)
    if len(y) != len(batch):
        raise ValueError(
            f"y must hold one array of labels per problem: {len(batch)} problems, "
            f"but y has {len(y)} entries"
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
                f"{batch.name_of(i)} has no labels (they are {y[i]}): to fit and calibrate, "
                "pass the problems that were judged"
            )
        raise ValueError(f"{batch.name_of(i)}: {n} labels but {batch.sizes[i]} claims")
    return np.concatenate(rows) if flat is None else flat


def _join_arrays(rows):
    """All rows as one plain array, or None where some row is something else.

    One call for a million rows: one for each would take most of the time of a fit.
    """
    if set(map(type, rows)) != {np.ndarray}:
        return None
    try:
        flat = np.concatenate(rows)
    except ValueError:  # the arrays have different numbers of axes
        return None
    return flat if _is_plain(flat) else None


def _check_sequence(y):
    refuse_iterator("y", y)
    is_sequence = isinstance(y, Sized) and isinstance(y, Iterable)
    is_sequence &= getattr(y, "ndim", 1) > 0 and not hasattr(y, "columns")
    if not is_sequence or isinstance(y, NO_LISTS):
        kind = "None" if y is None else f"a {type(y).__name__}"
        raise ValueError(
            f"y is {kind}: one array of labels per problem, in their order, expected"
        )


def _is_plain(y):
    """Whether ``y`` is a flat array of numbers, of which none can be masked."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in _NUMBERS


def _column(values):
    """Labels as a flat array of numbers, or of the objects that they are."""
    if not has_masked(values):
        try:
            column = np.ravel(np.asarray(values))
            if column.dtype.kind in _NUMBERS:
                return column
            return np.ravel(np.array(values, dtype=object))
        except ValueError:  # where a list stands in the place of a label
            pass
    entries = list(np.ravel(values) if isinstance(values, np.ndarray) else values)
    return np.fromiter(entries, dtype=object, count=len(entries))
