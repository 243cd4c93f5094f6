"""Fit and calibrate a filter for several levels, sharing intermediate results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._checks import check_alphas
from .._docs import documented
from ..graphs import Labels, Problems
from ..graphs.problems import Groups
from ..guards.levels import level_in_force, level_of
from ._calibrate import calibrate_with, labelled_part, score
from ._fit import count_held_out, divide, prepare, take_scorer, task_of
from ._share import count_passing, is_chosen
from ._validation import filter_in


def at_level(estimator: Any, alpha: float, copier: Any = clone) -> Any:
    """Copy a filter with the function ``copier``, and set the level of the copy to alpha."""
    copied = copier(estimator)
    copied.alpha = alpha
    if copied.guarantee is not None:
        copied.guarantee = copied.guarantee.for_level(alpha)
    return copied


@documented
def fit_levels(
    filter: Any, X: Problems, y: Labels, alphas: Iterable[float], groups: Groups = None
) -> dict[float, Any]:
    """Fit a filter at several levels.

    Levels with the same number of held-out questions share the split and all training steps that
    do not depend on alpha.

    Parameters
    ----------
    filter : unfitted filter, or dict of float to unfitted filter
        A filter such as `HardCF`, or a dict with one filter for each alpha. The filter is copied
        and not changed.
    {X}
    y : {labels}
        Claim labels, as in the filter's `fit`.
    alphas : sequence of float in (0, 1)
        The levels.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in the filter's `fit`.

    Returns
    -------
    filters : dict of float to fitted filter
        The fitted filters, keyed by alpha. If training does not depend on alpha, the scorer is
        trained once and shared by the filters.

    Raises
    ------
    ValueError
        If an alpha is not between 0 and 1 or is repeated, or if the filter cannot be fitted.
    """
    levels = check_alphas([*alphas]).tolist()
    if isinstance(filter, Mapping):
        return {a: at_level(filter[a], a).fit(X, y, groups) for a in levels}
    if not hasattr(type(filter), "calibrate"):
        raise ValueError(
            f"filter must be a filter such as HardCF(), got {type(filter).__name__}. For a "
            "search, set alpha in the filter, and fit one CalibratedSearch for each level"
        )
    filters = [at_level(filter, alpha) for alpha in levels]
    first = filters[0]
    selection, scorer = prepare(first, X, y, groups)
    share(first, filters)
    sharing: dict[int | None, list[Any]] = {}
    for each in filters:
        sharing.setdefault(count_held_out(each, selection, scorer), []).append(each)
    for n_held, members in sharing.items():
        # Only the first filter is checked, because its lowest level requires the strictest
        # checks.
        members.sort(key=level_in_force)
        _fit_together(members, selection, scorer, n_held)
    return dict(zip(levels, filters, strict=True))


def _fit_together(estimators, selection, scorer, n_held):
    """Fit all filters that use the same split."""
    first = estimators[0]
    split = divide(first, selection, scorer, n_held)
    share(first, estimators)
    # A scorer that does not use alpha is fitted once, with the first task. Other scorers draw the
    # same random numbers at each level as they would if only this level were fitted.
    tasks = [task_of(each, split) for each in estimators]
    if split.scorer.uses_alpha:
        tasks = [replace(task, rng=deepcopy(task.rng)) for task in tasks]
    training: Any = split.training
    fitted = [
        clone(split.scorer).fit(training.with_columns, training.labels, task)
        for task in (tasks if split.scorer.uses_alpha else tasks[:1])
    ]
    if not split.scorer.uses_alpha:
        fitted *= len(tasks)

    # Levels that share a scorer are scored once, because their guarantees only differ in the
    # level.
    parts: dict[int, Any] = {}
    for each, task, scorer_of_level in zip(estimators, tasks, fitted, strict=True):
        take_scorer(each, scorer_of_level, split)
        if is_chosen(each):
            count_passing(each, split, task)
        if id(scorer_of_level) not in parts:
            parts[id(scorer_of_level)] = score(each, split.calibration)
        calibrate_with(each, parts[id(scorer_of_level)], split.fewest)


def share(first, estimators):
    """Copy the fitted state of the first filter to the other filters."""
    settings = first.get_params(deep=False)
    learnt = {name: v for name, v in vars(first).items() if name not in settings}
    for each in estimators:
        vars(each).update(learnt)


@documented
def flat_masks(filter: Any, X: Problems, alphas: Iterable[float | None]) -> Any:
    """Return whether each claim is kept at each level, scoring the problems only once.

    Parameters
    ----------
    filter : fitted filter
    {X}
    alphas : sequence of float or None
        The levels. If None, the alpha of the filter is used.

    Returns
    -------
    masks : ndarray of bool of shape (n_alphas, n_claims)
        Results of ``predict(X, alpha)``, concatenated over the problems, with one row per level.
    """
    fitted = filter_in(filter)
    risks, view = fitted._claims(X)
    margins = [fitted._margin(risks, view, level_of(fitted, a)) for a in alphas]
    return np.array(margins) > 0


def copy_at(fitted, alpha):
    """Return an uncalibrated copy of a fitted filter for a different level."""
    copied = at_level(fitted, alpha, copy)
    copied._alpha_of_fit = alpha if fitted.scorer_.uses_alpha else None
    return copied


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
    # Use a copy of the filter, because the provenance is stored on it.
    first = copy_at(filter, min(alphas))
    part = labelled_part(first, *labelled)
    estimators = [copy_at(first, alpha) for alpha in alphas]
    for each in estimators:
        calibrate_with(each, part, fewest=True)
    risks, view = estimators[0]._claims(X)
    margins = [each._margin(risks, view, level_of(each, None)) for each in estimators]
    passing = [each.calibration_.passes(risks) for each in estimators]
    n_calibration = [each.n_calibration_ for each in estimators]
    return np.array(margins) > 0, np.array(passing), n_calibration
