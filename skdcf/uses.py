"""What evaluation, inspection and the applications ask of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from . import guards
from .columns import flat_labels, read_problems, transformer_for
from .features.columns import carry_columns
from .graphs import GraphBatch, Problems
from .identity import Groups, Hashes, hashes_of
from .ops.hard import segment_max
from .scorers import LinearForm


def filter_in(model):
    """Return the filter inside a search, or the model itself if it is not a search."""
    best = getattr(model, "best_estimator_", None)
    if best is not None:
        return best
    search = getattr(model, "search", None)
    return model if search is None else search.estimator


def check(estimator, X: Problems, y=None):
    """Return the problems and labels as a filter's methods read them.

    The batch caches the columns of ``features``, also in its slices, unless they require labels.
    The labels are an int array of shape (n_claims,), which is returned only if y is passed.
    """
    reader = filter_in(estimator)
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
    fitted = filter_in(filter)
    check_is_fitted(fitted)
    hashes = hashes_of(check(fitted, X), groups)
    trained, calibrated = (
        hashes.among(stored) | np.isin(hashes.content, stored["content"])
        for stored in (fitted._record.trained, fitted._record.calibrated)
    )
    return trained, calibrated


def at_level(estimator, alpha: float, copier: Callable[..., Any] = clone):
    """Copy a filter with the function ``copier``, and set the level of the copy to alpha."""
    copied = copier(estimator)
    copied.alpha = alpha
    if copied.guarantee is not None:
        copied.guarantee = copied.guarantee.for_level(alpha)
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
    fitted = filter_in(filter)
    risks, problems = fitted._risks_of(X, y)
    margins = [fitted._margin(risks, problems, fitted._level(a)) for a in alphas]
    return np.array(margins) > 0


def calibrated_masks(
    filter, labelled: tuple[Any, ...], X: Problems, alphas: list[float]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[int]]:
    """Calibrate copies of a filter for several levels on labelled problems, and filter others.

    Return whether each claim is kept, of shape (n_alphas, n_claims), whether each problem passes,
    of shape (n_alphas, n_problems), and the number of calibration problems at each level. The
    problems are scored only once.
    """
    first = copy_at(filter, min(alphas))
    part = first.calibration_part(*labelled)
    part = part[part.not_trained(first._record)]
    trained = first._record.trained["answer"]
    filters = [copy_at(first, alpha) for alpha in alphas]
    for each in filters:
        each._calibrate_on(part, True, trained)
    risks, problems = filters[0]._risks_of(X)
    margins = [each._margin(risks, problems, each._level()) for each in filters]
    passing = [each.calibration_.passes(risks) for each in filters]
    n_calibration = [each.n_calibration_ for each in filters]
    return np.array(margins) > 0, np.array(passing), n_calibration


def calibration_scores(estimator, X: Problems, y) -> NDArray[np.float64]:
    """Return the nonconformity scores of shape (n_problems,) that ``calibrate`` would use.

    Each score is lowered by slightly more than the rounding error of the scorer.
    """
    fitted = filter_in(estimator)
    problems = fitted._read_labelled(X, y, None)
    columns = fitted._with_columns(problems.batch)
    return fitted._part(replace(problems, columns=columns), {}).scores


def largest_risks(
    fitted, X: Problems, groups: Groups = None
) -> tuple[NDArray[np.float64], Hashes]:
    """Return the largest risk of each answer, as in calibration, and the hashes of the answers.

    An answer without claims has the risk -inf. In prediction, risks are raised slightly if the
    columns were computed in float32.
    """
    problems = fitted._look(X)
    batch = problems.batch
    risk = fitted._risk(fitted._confidence(problems), batch, steady=True)
    return segment_max(risk, batch.offsets), hashes_of(batch, groups)


class Decision(NamedTuple):
    """The decision about each claim, together with the values on which it is based.

    Attributes
    ----------
    batch : GraphBatch
        The problems with the columns that the scorer uses.
    kept : ndarray of bool of shape (n_claims,)
    confidence : ndarray of shape (n_claims,)
        The scorer's confidence in each claim, without considering its ancestors.
    path_risk : ndarray of shape (n_claims,)
    threshold : ndarray of shape (n_claims,)
        A claim is kept if its path risk is below the threshold.
    smallest_alpha : ndarray of shape (n_claims,)
        Smallest alpha at which each claim is kept.
    passes : ndarray of bool of shape (n_problems,)
        Whether each answer passes.
    form : LinearForm or None
        The confidence as a weighted sum of columns, or None if the scorer is not linear.
    groups : list or None
        Calibration group of each problem, or None if the guarantee has no groups.
    """

    batch: GraphBatch
    kept: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    path_risk: NDArray[np.float64]
    threshold: NDArray[np.float64]
    smallest_alpha: NDArray[np.float64]
    passes: NDArray[np.bool_]
    form: LinearForm | None
    groups: list[Any] | None


def decide(filter, X: Problems, alpha: float | None = None) -> Decision:
    """Score the problems once, and return the decision about each claim."""
    fitted = filter_in(filter)
    fitted.check_calibrated()
    problems = fitted._look(X)
    confidence = fitted._confidence(problems)
    risks = fitted._path_risks(problems, confidence)
    level = fitted._level(alpha)
    guards.warn_of_level(fitted.calibration_, level)
    calibration = fitted.calibration_
    thresholds = calibration.thresholds(risks, level)
    passes = np.ones(len(risks), bool)
    if calibration.guarantee.show != 1:
        passes = calibration.passes(risks)
    return Decision(
        batch=problems.columns,
        kept=fitted._margin(risks, problems, level) > 0,
        confidence=confidence,
        path_risk=risks.path_risk,
        threshold=thresholds[problems.batch.problem_of],
        smallest_alpha=calibration.levels(risks, fitted.ties == "include"),
        passes=passes,
        form=fitted.scorer_.linear_form(problems.columns),
        groups=risks.groups,
    )
