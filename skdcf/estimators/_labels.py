"""Labels of any kind as flat numbers: 1 true, 0 false, -1 unknown."""

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs import LABELS, pack_labels, read_column
from ..graphs.sources import iterate_sources


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
        return pack_labels(y, batch), LABELS
    if np.ma.is_masked(y):
        row = int(np.argmax(np.ma.getmaskarray(y)))
        raise ValueError(f"label {row} is masked: -1 stands for what nobody judged")
    y = column_or_1d(y, warn=True)
    if len(y) != len(batch):
        raise ValueError(f"{len(y)} labels but {len(batch)} problems")
    return read_column(y, values)


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


def _is_per_problem(y):
    """Whether y holds one array per problem instead of one value."""
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and len(y):
        first = y[0]
    return isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1
