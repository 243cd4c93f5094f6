"""What evaluation, inspection and the applications ask of a filter."""

from copy import copy
from dataclasses import replace

import numpy as np

from .identity import hashes_of


def check(estimator, X, y=None):
    """Return the problems and labels as a filter's methods read them.

    The batch caches the columns of ``features``, also in its slices, unless they require labels.
    The labels are an int array of shape (n_claims,), which is returned only if y is passed.
    """
    reader = copy(estimator)
    problems = reader._read(X, y, reset=not hasattr(reader, "scorer_"))
    return problems.batch if y is None else (problems.batch, problems.labels)


def seen(filter, X, groups=None):
    """Return whether each problem, or one like it, was used for training and for calibration.

    Both masks have shape (n_problems,). Hashes of the question, content and answer are compared.
    """
    hashes = hashes_of(check(filter, X), groups, columns_are_fine=filter._are_fine)
    return seen_among(filter._record, hashes)


def seen_among(record, hashes):
    """Return what `seen` returns, given the hashes of the problems."""
    found = []
    for stored in (record.trained, record.calibrated):
        mask = hashes.among(stored) | np.isin(hashes.content, stored["content"])
        # If questions have names, copies of an answer may belong to different questions.
        if hashes.named_by == "text" and (stored["named_by"] == "text").all():
            mask |= np.isin(hashes.answer, stored["answer"])
        found.append(mask)
    return found


def copy_at(fitted, alpha):
    """Return a copy of a fitted filter for a different level, to be calibrated again."""
    copied = copy(fitted)
    copied.alpha = alpha
    level = alpha if fitted.scorer_.uses_alpha else None
    copied._record = replace(fitted._record, level=level, settings=copied._settings)
    return copied
