"""What evaluation, inspection and the applications ask of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .columns import flat_labels, read_problems, transformer_for
from .features.columns import carry_columns
from .graphs import Problems
from .identity import Groups, hashes_of


def check(estimator, X: Problems, y=None):
    """Return the problems and labels as a filter's methods read them.

    The batch caches the columns of ``features``, also in its slices, unless they require labels.
    The labels are an int array of shape (n_claims,), which is returned only if y is passed.
    """
    reader = estimator
    is_fitted = hasattr(reader, "scorer_")
    if not is_fitted:
        reader = copy(reader)
    batch, is_table = read_problems(reader, X, reset=not is_fitted)
    transformer = reader.features_ if is_fitted else transformer_for(reader, batch)
    batch = carry_columns(transformer, batch)
    if y is None:
        return batch
    classes = reader._classes() if is_fitted else None
    return batch, flat_labels(y, batch, is_table, classes)[0]


def seen(
    filter, X: Problems, groups: Groups = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each problem, or one like it, was used for training and for calibration.

    Both masks have shape (n_problems,). Hashes of the question and the content are compared.
    """
    check_is_fitted(filter)
    hashes = hashes_of(check(filter, X), groups)
    trained, calibrated = (
        hashes.among(stored) | np.isin(hashes.content, stored["content"])
        for stored in (filter._record.trained, filter._record.calibrated)
    )
    return trained, calibrated


def at_level(estimator, alpha: float, copier: Callable[..., Any] = clone):
    """Copy a filter with the function ``copier``, and set the level of the copy to alpha."""
    copied = copier(estimator)
    copied.alpha = alpha
    return copied


def copy_at(fitted, alpha: float):
    """Return a copy of a fitted filter for a different level, to be calibrated again."""
    copied = at_level(fitted, alpha, copy)
    level = alpha if fitted.scorer_.uses_alpha else None
    copied._record = replace(fitted._record, level=level, settings=copied._settings())
    return copied


def flat_masks(
    filter, X: Problems, alphas: Iterable[float | None], y=None
) -> NDArray[np.bool_]:
    """Return whether each claim is kept at each level, of shape (n_alphas, n_claims).

    If labels are passed, their provenance is compared too.
    """
    risks, problems = filter._risks_of(X, y)
    margins = [filter._margin(risks, problems, filter._level(a)) for a in alphas]
    return np.array(margins) > 0


def calibration_scores(estimator, X: Problems, y) -> NDArray[np.float64]:
    """Return the nonconformity scores of shape (n_problems,) that ``calibrate`` would use.

    Each score is lowered by slightly more than the rounding error of the scorer.
    """
    problems = estimator._read_labelled(X, y, None)
    columns = estimator._with_columns(problems.batch)
    return estimator._part(replace(problems, columns=columns), {}).scores
