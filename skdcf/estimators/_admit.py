"""The door of the filters: what users pass, checked and turned into flat arrays."""

from contextlib import contextmanager

import numpy as np
from sklearn.utils.validation import validate_data

from .._checks import warn
from ..graphs import GraphBatch, as_batch, as_graphs, is_graphs
from ._ties import TIES


@contextmanager
def unchanged_on_error(estimator):
    """Put everything back as it was if what is inside fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def admit_problems(estimator, X, *, reset):
    """X as a GraphBatch, and whether it was a table with one claim per row.

    Sets (``reset``) or compares the number and the names of the features.
    """
    X = as_graphs(X)
    if not is_graphs(X):
        try:
            table = validate_data(estimator, X, reset=reset, dtype=np.float64)
        except OverflowError as error:
            raise ValueError(f"X holds a number that is too large: {error}") from error
        names = getattr(estimator, "feature_names_in_", None)
        offsets = np.arange(len(table) + 1)
        return GraphBatch.from_arrays(table, offsets, (), feature_names=names), True
    batch = as_batch(X)
    if reset:
        _remember_features(estimator, batch)
        _doubt_direction(batch)
    else:
        _compare_features(estimator, batch)
    return batch, False


def _remember_features(estimator, batch):
    estimator.n_features_in_ = batch.n_features or 0
    vars(estimator).pop("feature_names_in_", None)
    if batch.feature_names is not None:
        estimator.feature_names_in_ = np.array(batch.feature_names, dtype=object)


def _doubt_direction(batch):
    if len(batch.edges) >= 10 and (np.diff(batch.edges) < 0).all():
        warn(
            "every edge leads from a later claim to an earlier one; an edge is (parent, "
            "child), and the child builds on the parent. If these are reversed, claims "
            "are kept or dropped by the wrong ones"
        )


def _reads_all(estimator):
    """Whether something besides the scorer looks at columns by their position.

    Jitter is a hash of all columns: with others, a copy would get other noise. A function
    that says the group or the weight may look at any.
    """
    promise = estimator._promise()
    several = promise.by if isinstance(promise.by, (list, tuple)) else [promise.by]
    return TIES[estimator.ties].jitter or any(map(callable, [*several, promise.weight]))


def _compare_features(estimator, batch):
    names, fitted = batch.feature_names, getattr(estimator, "feature_names_in_", None)
    wanted = estimator.scorer_.columns_read()
    if wanted is not None and names is not None and not _reads_all(estimator):
        lacking = [name for name in wanted if name not in names]
        if lacking:
            raise ValueError(f"X has no feature {lacking[0]!r}; it has {list(names)}")
        return
    found, expected = batch.n_features or 0, estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input"
        )
    if (names is None) != (fitted is None):
        with_, without = ("X", "fit") if fitted is None else ("fit", "X")
        warn(
            f"the features are named in {with_} but not in {without}: their order "
            "cannot be checked"
        )
    if names is not None and fitted is not None and tuple(fitted) != names:
        new, gone = set(names) - set(fitted), set(fitted) - set(names)
        detail = f"unknown {sorted(new)}, missing {sorted(gone)}" if new else "order"
        raise ValueError(
            f"the feature names differ from those seen in fit ({detail}): "
            f"expected {list(fitted)}"
        )
