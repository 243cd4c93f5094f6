"""Several levels, fitted together for speed: they share what does not depend on the level."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._checks import check_alpha
from ..graphs import Labels, Problems
from ..graphs.problems import Groups
from ..guards.levels import level_in_force, level_of
from ._calibrate import calibrate_with, labelled_part, score
from ._fit import count_held_out, divide, prepare, take_scorer, task_of
from ._share import is_chosen, set_share
from ._validation import filter_in


def at_level(estimator: Any, alpha: float, copier: Any = clone) -> Any:
    """A clone, or what ``copier`` makes, for another alpha."""
    copied = copier(estimator)
    copied.alpha = alpha
    if copied.guarantee is not None:
        copied.guarantee = copied.guarantee.for_level(alpha)
    return copied


def fit_levels(
    estimator: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    groups: Groups = None,
) -> list[Any]:
    """Fit copies of a filter for several levels.

    Levels that hold out the same number of questions share the split, and as much of the
    training as does not depend on alpha.

    Parameters
    ----------
    estimator : filter
        It stays as it is.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The problems.
    y : sequence of 1-D arrays, one per problem
        Their labels, as in ``fit``.
    alphas : sequence of float in (0, 1)
        The levels.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in ``fit``.

    Returns
    -------
    list of filters
        One fitted filter per alpha.
    """
    estimators = [at_level(estimator, check_alpha(alpha)) for alpha in alphas]
    if not estimators:
        raise ValueError("alphas is empty, but at least one level is needed")
    first = estimators[0]
    selection, scorer = prepare(first, X, y, groups)
    share(first, estimators)
    sharing: dict[int | None, list[Any]] = {}
    for each in estimators:
        sharing.setdefault(count_held_out(each, selection, scorer), []).append(each)
    for n_held, members in sharing.items():
        # The first one is checked for all, and the lowest level is the strictest.
        members.sort(key=level_in_force)
        _fit_together(members, selection, scorer, n_held)
    return estimators


def _fit_together(estimators, selection, scorer, n_held):
    """Fit filters that share the split."""
    first = estimators[0]
    split = divide(first, selection, scorer, n_held)
    share(first, estimators)
    # A scorer that uses no alpha is fitted once, by the first task. With one that does, each
    # level draws the random numbers that it would draw alone.
    tasks = [task_of(each, split) for each in estimators]
    if split.scorer.uses_alpha:
        tasks = [replace(task, rng=deepcopy(task.rng)) for task in tasks]
    training: Any = split.training
    fitted = split.scorer.fit_levels(training.scored, training.labels, tasks)

    # Levels that share a scorer are scored once: their guarantees differ in the level alone.
    parts: dict[int, Any] = {}
    for each, task, scorer_of_level in zip(estimators, tasks, fitted, strict=True):
        take_scorer(each, scorer_of_level, split)
        if is_chosen(each):
            set_share(each, split, task)
        if id(scorer_of_level) not in parts:
            parts[id(scorer_of_level)] = score(each, split.calibration)
        calibrate_with(each, parts[id(scorer_of_level)], split.fewest)


def share(first, estimators):
    """Give what the first filter has learnt so far to the others."""
    settings = first.get_params(deep=False)
    learnt = {name: v for name, v in vars(first).items() if name not in settings}
    for each in estimators:
        vars(each).update(learnt)


def flat_masks(filter: Any, X: Problems, alphas: Iterable[float | None]) -> Any:
    """Decide which claims are kept at several levels, from one look at the problems.

    Parameters
    ----------
    filter : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The problems.
    alphas : sequence of float or None
        The levels; None is the filter's own.

    Returns
    -------
    ndarray of bool, shape (n_alphas, n_claims)
        A row is what ``predict(X, alpha)`` returns, in one piece.
    """
    fitted = filter_in(filter)
    risks, view = fitted._claims(X)
    margins = [fitted._margin(risks, view, level_of(fitted, a)) for a in alphas]
    return np.array(margins) > 0


def copy_at(fitted, alpha):
    """A copy for another level, which waits for its calibration."""
    copied = at_level(fitted, alpha, copy)
    copied._alpha_of_fit = alpha if fitted.scorer_.uses_alpha else None
    return copied


def calibrated_masks(
    filter: Any, labelled: tuple[Any, ...], X: Problems, alphas: list[float]
) -> tuple[Any, Any, list[int]]:
    """Calibrate a filter for several levels, and decide at each which claims are kept.

    Both from one look at the problems: what a level does not change is computed once.

    Parameters
    ----------
    filter : fitted filter
        It stays as it is.
    labelled : tuple
        Problems, labels and groups to calibrate with, as in ``calibrate``.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems to decide about.
    alphas : list of float in (0, 1)
        The levels.

    Returns
    -------
    masks : ndarray of bool, shape (n_alphas, n_claims)
        A row is what the filter of that level predicts after ``calibrate``, in one piece.
    passing : ndarray of bool, shape (n_alphas, n_problems)
        Which problems pass at each level; all of them unless the guarantee has ``show``.
    n_calibration : list of int
        How many problems calibrate at each level.
    """
    first = copy_at(filter, min(alphas))  # it takes note of the provenance
    part = labelled_part(first, *labelled)
    estimators = [copy_at(first, alpha) for alpha in alphas]
    for each in estimators:
        calibrate_with(each, part, fewest=True)
    risks, view = estimators[0]._claims(X)
    margins = [each._margin(risks, view, level_of(each, None)) for each in estimators]
    passing = [each.calibration_.passes(risks) for each in estimators]
    n_calibration = [each.n_calibration_ for each in estimators]
    return np.array(margins) > 0, np.array(passing), n_calibration
