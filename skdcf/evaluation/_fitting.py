"""Filters, and searches around filters, fitted for one level or for many."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.utils import _safe_indexing, check_random_state

from .._checks import check_alpha, check_groups
from ..exceptions import CalibrationWarning
from ..graphs import is_graphs
from ..guarantees import NoFalseClaim
from ..ops.holdout import hold_out, holdout_count

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


def fit_levels(
    filter: Any,
    X: Problems,
    y: Labels,
    alphas: Iterable[float],
    groups: ArrayLike | None = None,
) -> dict[float, Any]:
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
    for fitted, positions in fit_each(filter, X, y, alphas, groups):
        for alpha in (alphas[i] for i in positions):
            out[alpha] = at_level(fitted, alpha)
    return out


def fit_search(
    search: Any,
    X: Problems,
    y: Labels,
    groups: ArrayLike | None = None,
    *,
    calibration_size: float | int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Search, and calibrate what was chosen on problems that the search never saw.

    ``search.fit(X, y)`` by itself is not valid: it chooses among settings by how they do
    on problems that the chosen filter is then calibrated on. With few problems and many
    settings it kept a false claim in 18 % of the problems where 10 % were promised.

    Parameters
    ----------
    search : GridSearchCV or another search of scikit-learn
        Around a filter, or around a pipeline that ends in one. It stays unfitted.
    X, y
        As in the filter's `fit`.
    groups : array-like of shape (n_problems,), optional
        Problems of one group are on one side, in the search as well: an integer ``cv`` is
        taken for the number of folds of GroupKFold.
    calibration_size : float or int, optional
        Share or number of the problems that only calibrate. None is about two fifths, as
        in the filters.
    random_state : int, RandomState or None, default=None
        Draws these problems.

    Returns
    -------
    fitted filter, or pipeline that ends in one
        With the best settings, trained on all that the search saw, and the search itself
        as ``search_``.

    Raises
    ------
    ValueError
        On bad problems or labels, or too few problems.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdcf import SingleFeatureCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import fit_search
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> search = GridSearchCV(SingleFeatureCF(), {"beta_mix": [0.0, 0.5]}, cv=3)
    >>> cf = fit_search(search, graphs, y, random_state=0)
    >>> cf.n_calibration_, cf.search_.best_params_ == {"beta_mix": cf.beta_mix}
    (119, True)
    """
    data: Any = X, y
    batch, labels = _last_step(search.estimator).check(X, y)
    if is_graphs(X):
        data = batch, batch.split(labels)
    groups = check_groups(groups, len(batch))
    size = calibration_size
    if size is None:
        size = _count(_last_step(search.estimator), len(batch))
    count = holdout_count("calibration_size", size, len(batch))
    rng = check_random_state(random_state)
    rest, held = hold_out(len(batch), count, groups, rng)
    (X_rest, y_rest), (X_held, y_held) = (
        [_safe_indexing(part, rows) for part in data] for rows in (rest, held)
    )
    groups = None if groups is None else groups[rest]
    with warnings.catch_warnings():  # of thresholds that are about to be replaced
        warnings.simplefilter("ignore", CalibrationWarning)
        changes = {"calibration_size": 1}
        fitted, found = _fit_search(search, X_rest, y_rest, groups, changes)
    last = _last_step(fitted)
    if last is not fitted:
        X_held = fitted[:-1].transform(X_held)
    last.calibrate(X_held, y_held).set_params(calibration_size=calibration_size)
    fitted.search_ = found
    return fitted


def _count(filter, n):
    """Number of n problems that a filter would hold out."""
    guarantee = NoFalseClaim() if filter.guarantee is None else filter.guarantee
    return guarantee.calibration_count(n, filter.alpha)


def at_level(fitted, alpha):
    """The same fitted filter with another alpha of its own; nothing is trained."""
    return fitted if fitted.alpha == alpha else fitted.with_alpha(alpha)


def fit_each(filter, X, y, alphas, groups=None, **changes):
    """Yield (fitted filter, positions of the alphas that it is for).

    ``changes`` are parameters of the filter, left out where it has no such parameter.
    A search is resolved to the filter that it chose, for each alpha anew.
    """
    if isinstance(filter, Mapping):
        for i, alpha in enumerate(alphas):
            fresh = changed(filter[alpha], alpha=alpha, **changes)
            yield fresh.fit(X, y, **_grouped(groups)), [i]
    elif is_search(filter):
        for i, alpha in enumerate(alphas):
            yield _fit_search(filter, X, y, groups, {"alpha": alpha} | changes)[0], [i]
    else:
        fitted = changed(filter, **changes).fit_levels(X, y, alphas, groups)
        scorers = np.array([id(one.scorer_) for one in fitted])
        for scorer in dict.fromkeys(scorers.tolist()):
            positions = np.flatnonzero(scorers == scorer).tolist()
            yield fitted[positions[0]], positions


def is_search(filter):
    """Whether this is a hyperparameter search around a filter."""
    return hasattr(filter, "estimator") and hasattr(filter, "cv")


def changed(filter, **changes):
    """A clone with other parameters, those of them that the filter has."""
    fresh = clone(filter)
    last = _last_step(fresh)
    known = last.get_params(deep=False)
    last.set_params(**{k: v for k, v in changes.items() if k in known})
    return fresh


def _fit_search(search, X, y, groups, changes):
    """What the search chose, fitted with ``changes``, and the fitted search.

    The fits inside the search need a calibration part that scoring can rely on, so only
    the last fit gets all changes.
    """
    search, level = clone(search), {k: v for k, v in changes.items() if k == "alpha"}
    search.estimator = changed(search.estimator, **level)
    if search.refit is True:
        search.refit = False  # what was chosen is fitted below
    if groups is not None and (search.cv is None or isinstance(search.cv, Integral)):
        search.cv = GroupKFold(search.cv or 5)
    search.fit(X, y, **_grouped(groups))
    best = clone(search.estimator).set_params(**search.best_params_)
    best, more = changed(best, **changes), _grouped(groups)
    if _last_step(best) is not best:
        more = {f"{best.steps[-1][0]}__{key}": value for key, value in more.items()}
    return best.fit(X, y, **more), search


def _last_step(estimator):
    """The filter itself, or that at the end of a pipeline."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _grouped(groups):
    return {} if groups is None else {"groups": groups}
