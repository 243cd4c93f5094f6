"""Guard against feature columns that equal the labels, possibly in a different encoding.

A table of features may contain human or model verdicts by mistake. A score based on a column of
verdicts looks perfect in calibration, but not on new problems, in which the column is missing or
computed differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import printable, warn
from ..exceptions import LabelWarning

_FEWEST = 20  # With fewer judged claims, a good score may equal the labels by chance.


def warn_of_labels_among_columns(batch: Any, labels: Any) -> None:
    """Warn about columns with one value for all true claims and another for all false claims.

    Parameters
    ----------
    batch : GraphBatch
        The problems.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown).

    Warns
    -----
    LabelWarning
        If a column equals the labels and at least 20 claims are judged.
    """
    judged = labels >= 0
    if batch.features is None or judged.sum() < _FEWEST:
        return
    verdicts = labels[judged]
    if verdicts.min() == verdicts.max():
        return
    true, false = (batch.features[judged][verdicts == label] for label in (1, 0))
    constant = (true == true[0]).all(axis=0) & (false == false[0]).all(axis=0)
    for column in np.flatnonzero(constant & (true[0] != false[0])).tolist():
        names = batch.feature_names
        name = str(column) if names is None else repr(printable(names[column]))
        warn(
            f"the column {name} has one value for all true claims and another value for "
            f"all false claims ({int(judged.sum())} judged claims). Leave this column out "
            "if it was computed from the labels, because new problems have no labels",
            LabelWarning,
        )
