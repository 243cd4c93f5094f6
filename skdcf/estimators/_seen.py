"""Find problems that were used to fit or calibrate a filter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._docs import documented
from ..graphs import Problems
from ..graphs.problems import Groups, hashes_of
from ._validation import check, filter_in


@documented
def seen(
    filter: Any, X: Problems, groups: Groups = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find problems that were used to fit or calibrate a filter.

    A problem counts as used if the hash of its question or content matches that of a problem used
    to fit or calibrate the filter.

    Parameters
    ----------
    filter : fitted filter
    {X}
    groups : array-like of shape (n_problems,), or False, optional
        As in ``fit``.

    Returns
    -------
    trained, calibrated : ndarray of bool of shape (n_problems,)
        Whether each problem was used for training, and whether it was used for calibration.
    """
    fitted = filter_in(filter)
    check_is_fitted(fitted)
    hashes = hashes_of(check(fitted, X), groups)
    masks = []
    for kept in (fitted._trained, fitted._calibrated):
        same_question, _ = hashes.among(kept)
        masks.append(same_question | np.isin(hashes.content, kept["content"]))
    trained, calibrated = masks
    return trained, calibrated
