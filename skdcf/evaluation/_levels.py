"""Filters, and searches around filters, fitted for one level or for many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._checks import check_alpha
from ._search import CalibratedSearch, choose, search_in

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


def fit_levels(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    groups: ArrayLike | Literal[False] | None = None,
) -> dict[float, Any]:
    """Fit a filter for several levels.

    Parameters
    ----------
    filter : unfitted filter, CalibratedSearch, or dict of float to unfitted filter
        For instance `HardCF`; a dict has one for each alpha.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems, as in the filter's `fit`.
    y : sequence of 1-D arrays, one per problem
        Labels, as in the filter's `fit`.
    alphas : sequence of float in (0, 1)
        The levels.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers, as in the filter's `fit`.

    Returns
    -------
    dict of float to fitted filter
        By alpha. Where training does not depend on alpha, it was done once and the
        filters share their scorer; a search is done for each level.

    Raises
    ------
    ValueError
        If an alpha is not between 0 and 1, or the filter cannot be fitted.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import fit_levels
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> fitted = fit_levels(HardCF(), graphs, y, [0.05, 0.1])
    >>> fitted[0.05].alpha, fitted[0.05].threshold_ <= fitted[0.1].threshold_
    (0.05, True)
    """
    alphas = [check_alpha(alpha) for alpha in alphas]
    if isinstance(filter, CalibratedSearch):
        fresh = (with_level(filter, alpha).fit(X, y, groups) for alpha in alphas)
        return dict(zip(alphas, fresh, strict=True))
    if search_in(filter) is not None:
        raise ValueError(
            "a search by itself calibrates on what it has looked at: wrap it, as "
            "CalibratedSearch(search)"
        )
    if isinstance(filter, Mapping):
        fresh = (clone(filter[a]).set_params(alpha=a).fit(X, y, groups) for a in alphas)
    else:
        fresh = clone(filter).fit_levels(X, y, alphas, groups)
    return dict(zip(alphas, fresh, strict=True))


def with_level(model, alpha):
    """A clone of a filter or a search for another alpha."""
    path = "alpha"
    if isinstance(model, CalibratedSearch):
        path = "search__estimator__alpha"
    elif search_in(model) is not None:
        path = "estimator__alpha"
    return clone(model).set_params(**{path: alpha})


def fit_each(filter, X, y, alphas, groups=None, **changes):
    """Yield (fitted filter, positions of the alphas that it is for, chosen settings).

    For a search ``groups`` are numbers or False. ``changes`` are parameters of the filter.
    A search is resolved to the filter that it chose, for each alpha anew.
    """
    if isinstance(filter, Mapping):
        for i, alpha in enumerate(alphas):
            fresh = clone(filter[alpha]).set_params(alpha=alpha, **changes)
            yield fresh.fit(X, y, groups), [i], {}
    elif (search := search_in(filter)) is not None:
        for i, alpha in enumerate(alphas):
            questions = -1 - np.arange(len(X)) if groups is False else groups
            best, found = choose(with_level(search, alpha), X, y, questions)
            fitted = best.set_params(**changes).fit(X, y, groups)
            yield fitted, [i], found.best_params_
    else:
        changed = clone(filter).set_params(**changes)
        fitted = changed.fit_levels(X, y, alphas, groups)
        scorers = np.array([id(one.scorer_) for one in fitted])
        for scorer in dict.fromkeys(scorers.tolist()):
            positions = np.flatnonzero(scorers == scorer).tolist()
            yield fitted[positions[0]], positions, {}
