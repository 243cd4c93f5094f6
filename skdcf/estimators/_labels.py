"""Labels of any kind as flat numbers: 1 true, 0 false, -1 unknown."""

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._checks import is_missing, warn
from ..exceptions import LabelWarning
from ..graphs import pack_labels
from ..graphs.sources import iterate_sources

GRAPHS = (0, 1)  # the values of labels that come as one array per problem
SPOKEN = {"false": "true", "no": "yes", "f": "t", "n": "y"}


def flat_labels(y, batch, is_table, values=None):
    """Labels as a flat array, and the pair (false, true) of values that they had.

    ``values`` are those of fit, where there was a fit.
    """
    if y is None:
        raise ValueError(
            "this filter requires y to be passed, but the target y is None: "
            "it is calibrated on problems whose claims are labelled"
        )
    if not is_table or _is_per_problem(y):
        return pack_labels(y, batch), GRAPHS
    y = _column(y, len(batch))
    found = _distinct(y)
    known = _meaning_of(found) if values is None else values
    allowed = {*known, -1} if known == GRAPHS else set(known)
    if not allowed.issuperset(found):
        raise ValueError(
            f"the labels are {found[:5]}; two values are expected, false and true, and "
            f"in fit they were {list(known)}"
        )
    unknown = (y == -1) if known == GRAPHS else np.zeros(len(y), dtype=bool)
    return np.where(unknown, -1, y == known[1]).astype(np.int8), known


def judged_problems(batch, labels):
    """Whether a claim of each problem was judged, or there is none to judge."""
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    return judged | (batch.sizes == 0)


def rows_that_count(batch, labels):
    """Problems that calibrate: all, but where people judged some that were drawn blindly.

    What was not judged then says nothing, and would count as false.
    """
    rows = np.arange(len(batch))
    if batch.metadata is None or (labels >= 0).all():
        return rows
    judged = judged_problems(batch, labels)
    drawn = np.array([(row or {}).get("drawn") == "random" for row in batch.metadata])
    return rows[judged] if judged.any() and drawn[judged].all() else rows


def warn_of_labels(batch, labels, level):
    """Warn of labels that calibrate and are a model's, or missing in whole problems."""
    _warn_of_model_labels(batch, labels)
    if len(labels) == 0 or labels.min() >= 0:
        return
    n_unjudged = int(np.sum(~judged_problems(batch, labels)))
    if n_unjudged > level * (len(batch) + 1):
        warn(
            f"in {n_unjudged} of {len(batch)} calibration problems no claim was judged. "
            f"All their claims count as false, and a level of {level:g} allows for fewer "
            "such problems, so that far less may be kept than the scores deserve. If the "
            "problems to label were drawn at random, leave the others out",
            LabelWarning,
        )


def _warn_of_model_labels(batch, labels):
    """Warn if every label that is known to come from somewhere comes from a model."""
    if batch.metadata is None:
        return
    judged = (labels >= 0).tolist()
    rows = zip(iterate_sources(batch), judged, strict=True)
    kinds = {row and row["kind"] for row, known in rows if known}
    if kinds == {"model"}:
        warn(
            "all labels that calibrate were given by a language model, so that the "
            "promise is about its verdicts: of errors that it overlooks, any number may "
            "be kept. Label some problems by hand; skdcf.labelling.agreement says how "
            "far the model's labels can be trusted",
            LabelWarning,
        )


def _column(y, n):
    if np.ma.is_masked(y):
        row = int(np.argmax(np.ma.getmaskarray(y)))
        raise ValueError(f"label {row} is masked: -1 stands for what nobody judged")
    y = column_or_1d(y, warn=True)
    if len(y) != n:
        raise ValueError(f"{len(y)} labels but {n} problems")
    missing = [i for i, value in enumerate(y.tolist()) if is_missing(value)]
    if missing:
        raise ValueError(
            f"label {missing[0]} is {y.tolist()[missing[0]]}: every problem needs one, and -1 "
            "stands for a claim that nobody judged"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"label {int(np.argmin(np.isfinite(y)))} is NaN or infinite")
    return y


def _distinct(y):
    """The distinct values in order, as plain Python values."""
    try:
        return np.unique(y).tolist()
    except TypeError:
        raise ValueError(
            f"the labels are of several kinds: {list(dict.fromkeys(y.tolist()))[:5]}"
        ) from None


def _is_per_problem(y):
    """Whether y holds one array per problem instead of one value."""
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and len(y):
        first = y[0]
    return isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1


def _meaning_of(found):
    """Which of the values means false, and which true."""
    if found in ([0], [False], [0, 1], [-1, 0], [-1, 0, 1]):
        return GRAPHS
    if found == [True] and isinstance(found[0], bool):
        return GRAPHS
    if len(found) == 1:
        raise ValueError(
            f"y holds one class only, {found[0]!r}, which does not say whether that means "
            "true or false. Pass booleans, or one array of 0/1 labels per problem"
        )
    if len(found) != 2:
        raise ValueError(
            f"y has {len(found)} distinct values {found[:5]}; two are expected, of which "
            "the larger means true (and beside 0 and 1, -1 for unknown)"
        )
    if all(isinstance(value, str) for value in found):
        return _spoken(found)
    return tuple(found)


def _spoken(found):
    """Words such as "no" and "Yes" by their meaning, others by their order, aloud."""
    by_word = {word.strip().casefold(): word for word in found}
    if len(by_word) < 2:
        raise ValueError(f"{found} are one label in two spellings: spell it one way")
    for false, true in SPOKEN.items():
        if by_word.keys() == {false, true}:
            return by_word[false], by_word[true]
    warn(f"the labels are text: {found[1]!r}, the last in order, is taken as true")
    return tuple(found)
