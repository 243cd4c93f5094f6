"""The boundary: what users pass, checked and turned into flat arrays."""

import warnings
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from ..graphs import GraphBatch, as_batch, as_graphs, is_graphs, pack_labels


def check_problems(estimator, X, *, reset):
    """X as a GraphBatch, and whether it was a table with one claim per row.

    Sets (``reset``) or compares the number and the names of the features.
    """
    X = as_graphs(X)
    if not is_graphs(X):
        table = validate_data(estimator, X, reset=reset, dtype=np.float64)
        names = getattr(estimator, "feature_names_in_", None)
        offsets = np.arange(len(table) + 1)
        return GraphBatch.from_arrays(table, offsets, feature_names=names), True
    batch = as_batch(X)
    _check_features(estimator, batch, reset)
    if reset and len(batch.edges) >= 10 and (np.diff(batch.edges) < 0).all():
        warnings.warn(
            "every edge leads from a later claim to an earlier one; an edge is (parent, "
            "child), and the child builds on the parent. If these are reversed, claims "
            "are kept or dropped by the wrong ones",
            UserWarning,
            stacklevel=4,
        )
    return batch, False


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


def check_alone(scorer, batch, n=3):
    """ValueError if the scorer looks at other problems of the batch too.

    The guarantee needs risks that are a fixed function of the problem.
    """
    whole = np.asarray(scorer.confidence(batch), dtype=np.float64)
    if whole.shape != (batch.n_claims,) or len(batch) < 2:
        return
    for i in range(min(n, len(batch))):
        part = whole[batch.offsets[i] : batch.offsets[i + 1]]
        alone = np.asarray(scorer.confidence(batch[[i]]), dtype=np.float64)
        if alone.shape != part.shape or not np.allclose(
            alone, part, rtol=1e-6, atol=1e-6, equal_nan=True
        ):
            raise ValueError(
                f"the scorer gives the claims of {batch.name_of(i)} other confidences "
                "alone than among other problems. The guarantee needs a score that "
                "looks at one problem at a time: do not rank or scale over the batch"
            )


SPOKEN = ["false", "true"], ["no", "yes"], ["f", "t"], ["n", "y"]


def _check_features(estimator, batch, reset):
    names = batch.feature_names
    if reset:
        estimator.n_features_in_ = batch.n_features or 0
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    found, expected = batch.n_features or 0, estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input"
        )
    fitted = getattr(estimator, "feature_names_in_", None)
    if (names is None) != (fitted is None):
        with_, without = ("X", "fit") if fitted is None else ("fit", "X")
        warnings.warn(
            f"the features are named in {with_} but not in {without}: their order "
            "cannot be checked",
            UserWarning,
            stacklevel=5,
        )
    if names is not None and fitted is not None and tuple(fitted) != names:
        new, gone = set(names) - set(fitted), set(fitted) - set(names)
        detail = f"unknown {sorted(new)}, missing {sorted(gone)}" if new else "order"
        raise ValueError(
            f"the feature names differ from those seen in fit ({detail}): "
            f"expected {list(fitted)}"
        )


def check_labels(y, batch, is_table, values=None):
    """Labels as a flat boolean array, and the two label values.

    ``values`` are those of fit, where there was a fit.
    """
    if y is None:
        raise ValueError(
            "this filter requires y to be passed, but the target y is None: "
            "it is calibrated on problems whose claims are labelled"
        )
    if not is_table or _per_problem(y):
        return pack_labels(y, batch), (0, 1)
    y = column_or_1d(y, warn=True)
    if len(y) != len(batch):
        raise ValueError(f"{len(y)} labels but {len(batch)} problems")
    if y.dtype == object and None in y.tolist():
        raise ValueError(f"label {y.tolist().index(None)} is None")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"label {int(np.argmin(np.isfinite(y)))} is NaN or infinite")
    found = np.unique(y)
    text = [str(value).lower() for value in found]
    if found.dtype.kind in "UO" and values is None and text not in SPOKEN:
        warnings.warn(
            f"the labels are text: {str(found[-1])!r}, the last in order, is taken as true",
            UserWarning,
            stacklevel=4,
        )
    known = _label_values(found) if values is None else values
    if not np.isin(found, known).all():
        raise ValueError(
            f"the labels are {found.tolist()[:5]}; two values are expected, false and "
            f"true, and in fit they were {list(known)}"
        )
    return y == known[1], known


def _per_problem(y):
    """Whether y holds one array per problem instead of one value."""
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and len(y):
        first = y[0]
    return isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1


def _label_values(found):
    if len(found) == 2:
        return tuple(found.tolist())
    if len(found) == 1 and found.dtype.kind in "biuf" and found[0] in (0, 1):
        return (0, 1)
    raise ValueError(
        f"y has {len(found)} distinct values {found.tolist()[:5]}; two are expected, of "
        "which the larger means true (a single one only if it is 0 or 1)"
    )


def check_size(size, n):
    """Number of problems held out of n, for a fraction or a count."""
    count = size
    if isinstance(size, Real) and not isinstance(size, Integral) and 0 < size < 1:
        count = max(1, round(size * n))
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(
            f"calibration_size is {size!r}: a fraction in (0, 1) or a number of "
            "problems, at least 1"
        )
    if count >= n:
        raise ValueError(
            f"cannot hold out {count} of n_samples = {n} problems for calibration and "
            "still train on at least 1 sample: pass more problems, or a smaller "
            "calibration_size"
        )
    return int(count)


def holdout(n, size, groups, rng):
    """Positions (rest, held out) of a random split that keeps groups together."""
    count = check_size(size, n)
    if groups is None:
        order = rng.permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])
    codes = np.unique(groups, return_inverse=True)[1]
    n_groups = codes.max() + 1
    if n_groups < 2:
        raise ValueError("all problems are in one group: nothing can be held out")
    order = rng.permutation(n_groups)
    members = np.cumsum(np.bincount(codes)[order])
    n_held = int(np.clip(np.searchsorted(members, count) + 1, 1, n_groups - 1))
    held = np.isin(codes, order[:n_held])
    return np.flatnonzero(~held), np.flatnonzero(held)


def take(batch, labels, rows):
    """Problems ``rows``, increasing, with their labels."""
    chosen = np.zeros(len(batch), dtype=bool)
    chosen[rows] = True
    return batch[rows], labels[chosen[batch.problem_of]]
