"""What evaluation, inspection and the applications ask of a filter."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from . import guards
from ._docs import documented
from .columns import flat_labels, read_problems, transformer_for
from .features.columns import carry_columns
from .graphs import GraphBatch, Problems
from .identity import Groups, Hashes, hashes_of
from .ops.hard import segment_max
from .scorers import LinearForm


def filter_in(model: Any) -> Any:
    """Return the filter inside a search, or the model itself if it is not a search."""
    best = getattr(model, "best_estimator_", None)
    if best is not None:
        return best
    search = getattr(model, "search", None)
    return model if search is None else search.estimator


@documented
def check(estimator: Any, X: Problems, y: Any = None) -> Any:
    """Check problems and labels in the same way as a filter's methods do.

    Parameters
    ----------
    estimator : filter
        The filter. If the filter is fitted, X is compared with the problems passed to ``fit``.
    {X}
    y : {labels}, optional
        Claim labels, as in ``fit``.

    Returns
    -------
    batch : GraphBatch
        The packed problems. Every filter method accepts this batch as X. The batch and its slices
        cache the columns of ``features``, unless fitting these columns requires labels.
    labels : ndarray of int of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown), returned only if y is passed. Every filter
        method accepts these labels as y.

    Raises
    ------
    ValueError
        If the problems or labels are invalid.
    """
    reader = filter_in(estimator)
    classes = None
    if hasattr(reader, "scorer_"):
        classes = reader._classes()
        batch, is_table = read_problems(reader, X, reset=False)
        batch = carry_columns(reader.features_, batch)
    else:
        reader = copy(reader)
        batch, is_table = read_problems(reader, X, reset=True)
        batch = carry_columns(transformer_for(reader, batch), batch)
    if y is None:
        return batch
    return batch, flat_labels(y, batch, is_table, classes)[0]


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
    for kept in (fitted._record.trained, fitted._record.calibrated):
        same_question, _ = hashes.among(kept)
        masks.append(same_question | np.isin(hashes.content, kept["content"]))
    trained, calibrated = masks
    return trained, calibrated


def at_level(estimator: Any, alpha: float, copier: Any = clone) -> Any:
    """Copy a filter with the function ``copier``, and set the level of the copy to alpha."""
    copied = copier(estimator)
    copied.alpha = alpha
    if copied.guarantee is not None:
        copied.guarantee = copied.guarantee.for_level(alpha)
    return copied


def copy_at(fitted: Any, alpha: float) -> Any:
    """Return a copy of a fitted filter for a different level, to be calibrated again."""
    copied = at_level(fitted, alpha, copy)
    level = alpha if fitted.scorer_.uses_alpha else None
    copied._record = replace(fitted._record, level=level, settings=copied._settings())
    return copied


@documented
def flat_masks(
    filter: Any, X: Problems, alphas: Iterable[float | None], y: Any = None
) -> Any:
    """Return whether each claim is kept at each level, scoring the problems only once.

    Parameters
    ----------
    filter : fitted filter
    {X}
    alphas : sequence of float or None
        The levels. If None, the alpha of the filter is used.
    y : {labels}, optional
        Claim labels. If they are passed, the provenance of the labels is compared too.

    Returns
    -------
    masks : ndarray of bool of shape (n_alphas, n_claims)
        Results of ``predict(X, alpha)``, concatenated over the problems, with one row per level.
    """
    fitted = filter_in(filter)
    risks, problems = fitted._risks_of(X, y)
    margins = [fitted._margin(risks, problems, fitted._level(a)) for a in alphas]
    return np.array(margins) > 0


@documented
def calibrated_masks(
    filter: Any, labelled: tuple[Any, ...], X: Problems, alphas: list[float]
) -> tuple[Any, Any, list[int]]:
    """Calibrate a filter for several levels, and return whether each claim is kept at each level.

    The problems are scored only once, and all results that do not depend on the level are shared.

    Parameters
    ----------
    filter : fitted filter
        The filter to copy. It is not changed.
    labelled : tuple
        Calibration problems, labels and groups, as in ``calibrate``.
    X : {problems}
        The problems to filter.
    alphas : list of float in (0, 1)
        The levels.

    Returns
    -------
    masks : ndarray of bool of shape (n_alphas, n_claims)
        Predictions after calibration, concatenated over the problems, with one row per level.
    passing : ndarray of bool of shape (n_alphas, n_problems)
        Whether each problem passes at each level. All problems pass if the guarantee has
        ``show=1``.
    n_calibration : list of int
        Number of calibration problems used at each level.
    """
    first = copy_at(filter, min(alphas))
    part = first.calibration_part(*labelled)
    filters = [copy_at(first, alpha) for alpha in alphas]
    for each in filters:
        each._calibrate_on(part, fewest=True)
    risks, problems = filters[0]._risks_of(X)
    margins = [each._margin(risks, problems, each._level(None)) for each in filters]
    passing = [each.calibration_.passes(risks) for each in filters]
    n_calibration = [each.n_calibration_ for each in filters]
    return np.array(margins) > 0, np.array(passing), n_calibration


@documented
def calibration_scores(estimator: Any, X: Problems, y: Any) -> NDArray[np.float64]:
    """Return the nonconformity scores that ``calibrate`` would use.

    Parameters
    ----------
    estimator : fitted filter
    {X}
    y : {labels}
        Claim labels, as in ``fit``.

    Returns
    -------
    scores : ndarray of shape (n_problems,)
        Nonconformity score of each problem, which is +inf if no threshold violates the guarantee.
        For the default guarantee, the score is the smallest path risk among the claims that are
        not known to be true. Each nonconformity score is lowered by slightly more than the
        rounding error of the scorer.
    """
    fitted = filter_in(estimator)
    problems = fitted._read_labelled(X, y, None)
    columns = fitted._with_columns(problems.batch)
    return fitted._part(replace(problems, columns=columns), {}).scores


@documented
def largest_risks(
    fitted: Any, X: Problems, groups: Groups = None
) -> tuple[NDArray[np.float64], Hashes]:
    """Return the largest risk of each answer, in the form used for calibration, and the hashes.

    In prediction, risks are raised slightly if the columns were computed in float32. In
    calibration, risks are never raised. Use this function to compare the risks of new answers
    with those of calibration answers.

    Parameters
    ----------
    fitted : fitted filter
        The filter that computes the risks.
    {X}
    groups : array-like of shape (n_problems,), or False, optional
        Question that each answer belongs to, as in the filter's `calibrate`.

    Returns
    -------
    risks : ndarray of shape (n_problems,)
        Largest risk of each answer, or -inf for an answer without claims.
    hashes : Hashes
        Question and content hashes.
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
    kept : ndarray of bool
        Whether each claim is kept.
    confidence : ndarray
        The scorer's confidence in each claim, without considering its ancestors.
    path_risk : ndarray
        Path risk of each claim, which is the largest risk among the claim and its ancestors.
    threshold : ndarray
        Threshold for each claim. A claim is kept if its path risk is below the threshold.
    smallest_alpha : ndarray
        Smallest alpha at which each claim is kept, or NaN if it is undefined.
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
    form: LinearForm | None
    groups: list[Any] | None


@documented
def decide(filter: Any, X: Problems, alpha: float | None = None) -> Decision:
    """Score the problems once, and return the decision about each claim.

    Parameters
    ----------
    filter : fitted filter
        The filter to use.
    X : {problems}
        Problems to filter.
    {own_alpha}

    Returns
    -------
    decision : Decision
        The decision about each claim, with the values on which it is based.
    """
    fitted = filter_in(filter)
    fitted.check_calibrated()
    problems = fitted._look(X)
    confidence = fitted._confidence(problems)
    risks = fitted._path_risks(problems, confidence)
    level = fitted._level(alpha)
    guards.warn_of_level(fitted.calibration_, level)
    thresholds = fitted.calibration_.thresholds(risks, level)
    return Decision(
        batch=problems.columns,
        kept=fitted._margin(risks, problems, level) > 0,
        confidence=confidence,
        path_risk=risks.path_risk,
        threshold=thresholds[problems.batch.problem_of],
        smallest_alpha=fitted.calibration_.levels(risks, fitted.ties == "include"),
        form=fitted.scorer_.linear_form(problems.columns),
        groups=risks.groups,
    )
