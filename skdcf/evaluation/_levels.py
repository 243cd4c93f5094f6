"""Filters trained for one level or for many, with what levels share done once.

Whether training depends on alpha is the filter's to say: ``trains_for_alpha``, a class
attribute or property. A filter that does not say is trained for every level, which
is right in any case. A filter whose training depends on alpha in part may have a method
``_fit_levels(X, y, alphas, groups)`` that returns one fitted filter per alpha.
"""

from collections.abc import Mapping
from copy import copy

from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from .._checks import check_alpha


def fit_levels(filter, X, y, alphas, groups=None):
    """Fit a filter for several levels.

    Parameters
    ----------
    filter : unfitted filter, or search over one
        For instance `HardCF`, or a `~sklearn.model_selection.GridSearchCV` around it.
    X, y
        As in the filter's `fit`.
    alphas : sequence of float in (0, 1)
    groups : array-like of shape (n_problems,), optional
        As in the filter's `fit`.

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
    out = {}
    for fitted, positions in train(filter, X, y, alphas, groups):
        for alpha in (alphas[i] for i in positions):
            out[alpha] = at_level(fitted, alpha)
    return out


def at_level(fitted, alpha):
    """The same fitted filter with another alpha of its own; nothing is trained."""
    if fitted.alpha == alpha:
        return fitted
    other = copy(fitted).set_params(alpha=alpha)
    other.threshold_ = other.threshold()
    return other


def train(filter, X, y, alphas, groups=None, **changes):
    """Yield (fitted filter, positions of the alphas that it is for).

    ``changes`` are parameters of the filter, left out where it has no such parameter.
    A search is resolved to the filter that it chose.
    """
    if isinstance(filter, Mapping):
        for i, alpha in enumerate(alphas):
            yield _fit(filter[alpha], X, y, groups, {"alpha": alpha} | changes), [i]
    elif not trains_for_alpha(filter):
        yield _fit(filter, X, y, groups, changes), range(len(alphas))
    elif hasattr(filter, "_fit_levels"):
        fresh = changed(filter, **changes)
        for i, fitted in enumerate(fresh._fit_levels(X, y, alphas, groups)):
            yield fitted, [i]
    else:
        for i, alpha in enumerate(alphas):
            yield _fit(filter, X, y, groups, {"alpha": alpha} | changes), [i]


def trains_for_alpha(filter):
    """Whether another alpha needs another fit; a search chooses for its alpha."""
    return is_search(filter) or getattr(filter, "trains_for_alpha", True)


def is_search(filter):
    """Whether this is a hyperparameter search around a filter."""
    return hasattr(filter, "estimator") and hasattr(filter, "cv")


def changed(filter, **changes):
    """A clone with other parameters, those of them that it has."""
    fresh = clone(filter)
    known = fresh.get_params(deep=False)
    return fresh.set_params(**{k: v for k, v in changes.items() if k in known})


def _fit(filter, X, y, groups, changes):
    if not is_search(filter):
        return changed(filter, **changes).fit(X, y, **_grouped(groups))
    # The inner fits need a calibration part that scoring can rely on, so only the
    # final fit gets all changes.
    search, level = clone(filter), {k: v for k, v in changes.items() if k == "alpha"}
    search.estimator = changed(filter.estimator, **level)
    if search.refit is True:
        search.refit = False  # what was chosen is fitted below
    if groups is not None and (search.cv is None or isinstance(search.cv, int)):
        search.cv = GroupKFold(search.cv or 5)
    search.fit(X, y, **_grouped(groups))
    best = clone(search.estimator).set_params(**search.best_params_)
    return changed(best, **changes).fit(X, y, **_grouped(groups))


def _grouped(groups):
    return {} if groups is None else {"groups": groups}
