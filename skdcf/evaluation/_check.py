"""What the caller passes, checked before anything is fitted."""

from collections.abc import Mapping

from sklearn.base import clone

from .._checks import check_groups
from ._fitting import is_search
from ._splits import LEAVE_ONE_OUT

WANTED = ("fit", "fit_levels", "check", "calibrate", "predict_alpha", "path_risk")


def check_filters(filters, alphas, protocol):
    """Clones of the filters, by name."""
    if not isinstance(filters, Mapping) or not filters:
        raise ValueError(
            f"filters is {filters!r}: a dict of one or more unfitted filters by name"
        )
    return {str(k): _check_filter(k, f, alphas, protocol) for k, f in filters.items()}


def _check_filter(name, filter, alphas, protocol):
    if isinstance(filter, Mapping):
        lacking = [alpha for alpha in alphas if alpha not in filter]
        if lacking:
            raise ValueError(
                f"filter {name!r} has one filter per alpha, but none for {lacking}"
            )
        return {a: _check_filter(name, filter[a], alphas, protocol) for a in alphas}
    inner = filter.estimator if is_search(filter) else filter
    missing = [m for m in WANTED if not hasattr(inner, m)]
    if missing or not hasattr(inner, "alpha"):
        raise ValueError(
            f"filter {name!r} is a {type(inner).__name__} without "
            f"{', '.join(missing or ['alpha'])}: a filter of skdcf, or a search around "
            "one, expected. Feature steps belong before the comparison"
        )
    if protocol == LEAVE_ONE_OUT and getattr(inner, "ties", None) == "include":
        raise ValueError(
            f'filter {name!r} has ties="include", which leave-one-out evaluation does '
            'not cover: use protocol="folds", or ties="jitter"'
        )
    if getattr(inner, "calibration_size", None) == "cross":
        raise ValueError(
            f'filter {name!r} has calibration_size="cross", which calibrates on what it '
            "trains on, but a comparison calibrates on a part of its own: evaluate it on "
            "splits of yours, by evaluate_filter"
        )
    return clone(filter)


def check_input(filters, X, y, groups):
    """(batch, object array of label arrays, groups as an array of numbers or None)."""
    first = next(iter(filters.values()))
    while isinstance(first, Mapping):
        first = next(iter(first.values()))
    batch, labels = (first.estimator if is_search(first) else first).check(X, y)
    return batch, batch.split(labels), check_groups(groups, len(batch))
