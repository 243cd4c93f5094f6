"""Problems larger than memory, or spread over machines: calibrate and filter in parts.

Each part is scored where it is read; what calibrates is some 50 bytes per problem. Parts
are mapped by joblib, so that ``joblib.parallel_config`` says where: in this process (the
default), in several (``backend="loky"``) or on a cluster of dask (``backend="dask"``, extra
``dask``). The result is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .estimators import CalibrationPart

__all__ = ["CalibrationPart", "calibrate_partitions", "filter_partitions"]


def calibrate_partitions(
    filter: Any, partitions: Iterable[Any], *, n_jobs: int | None = None
) -> Any:
    """Calibrate a filter again, on problems that come in parts.

    Parameters
    ----------
    filter : fitted filter
        Its scorer and columns stay as they are.
    partitions : iterable of (X, y) or (X, y, groups), or of objects with a method ``read``
        As of `skdcf.datasets.jsonl_partitions`: ``read`` returns a Bunch with ``graphs``
        and ``labels``. It runs where the part is scored.
    n_jobs : int, optional
        Parts at a time. None takes it from ``joblib.parallel_config``, and is 1 without.

    Returns
    -------
    filter
        The same, calibrated on the problems of all parts.

    Raises
    ------
    ValueError
        If there is no part, or a part has no labels or bad problems; its number is named.

    Warns
    -----
    CalibrationWarning
        If there are too few problems for the filter's alpha.

    Notes
    -----
    The threshold is that of ``calibrate`` on all problems at once, but for rounding: how
    closely the scorer repeats itself is measured on each part. A question of which answers
    are in several parts counts once.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.partitions import calibrate_partitions
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:100], y[:100])
    >>> parts = [(graphs[i : i + 100], y[i : i + 100]) for i in (0, 100, 200)]
    >>> calibrate_partitions(cf, parts).n_calibration_
    299
    """
    found = _mapped(_calibration_part, filter, partitions, n_jobs)
    return filter.calibrate_parts(found)


def filter_partitions(
    filter: Any,
    partitions: Iterable[Any],
    alpha: float | None = None,
    *,
    n_jobs: int | None = None,
) -> Iterator[NDArray]:
    """Filter problems that come in parts.

    Parameters
    ----------
    filter : fitted filter
    partitions : iterable of X, of pairs (X, y), or of objects with a method ``read``
        As in `calibrate_partitions`; labels are not looked at.
    alpha : float in (0, 1), optional
        None is the filter's own.
    n_jobs : int, optional
        As in `calibrate_partitions`.

    Returns
    -------
    iterator of object ndarrays
        The masks of each part, as ``predict`` returns them, in the order of the parts.
        They come one after the other, so that no more than a few parts are in memory.

    Raises
    ------
    ValueError
        If a part has bad problems; its number is named.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.partitions import filter_partitions
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:100], y[:100])
    >>> masks = filter_partitions(cf, [graphs[100:200], graphs[200:]])
    >>> [len(part) for part in masks]
    [100, 100]
    """
    check_is_fitted(filter)
    filter.calibration_.guarantee.level(
        alpha, filter.alpha
    )  # refused before any is read
    return _mapped(_masks, filter, partitions, n_jobs, alpha)


def _mapped(function, filter, partitions, n_jobs, *more):
    """Results in the order of the parts; few parts are under way at a time."""
    tasks = (
        delayed(_named)(function, number, filter, part, *more)
        for number, part in enumerate(partitions)
    )
    return Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="2*n_jobs")(
        tasks
    )


def _named(function, number, *args):
    try:
        return function(*args)
    except Exception as error:
        error.add_note(f"(partition {number})")
        raise


def _calibration_part(filter, part):
    X, y, groups = _read(part)
    if y is None:
        raise ValueError("the problems have no labels to calibrate on")
    return filter.calibration_part(X, y, groups)


def _masks(filter, part, alpha):
    return filter.predict(_read(part)[0], alpha)


def _read(part):
    """(X, y, groups) of a part; None where there are no labels or groups."""
    if hasattr(part, "read"):
        data = part.read()
        return data.graphs, data.labels, None
    if isinstance(part, tuple) and len(part) in (2, 3):
        return (*part, None)[:3]
    return part, None, None
