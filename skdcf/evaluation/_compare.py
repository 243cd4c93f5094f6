"""The comparison itself: one split after another, all filters on each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .. import __version__
from .._checks import check_alphas, check_choice, warn
from ..exceptions import CalibrationWarning
from ..guarantees import NoFalseClaim
from ..metrics import evaluate_filter, leave_one_out
from ._check import check_filters, check_input
from ._comparison_report import ComparisonReport
from ._fitting import fit_each
from ._resume import ResumeFile, fingerprint
from ._splits import LEAVE_ONE_OUT, SHARES, make_splits

if TYPE_CHECKING:
    from ..graphs import Labels, Problems

METRICS = (
    "coverage",
    "retention",
    "abstention",
    "nonempty_coverage",
    "false_kept",
    "clean_prefix",
)


def compare_filters(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    protocol: Literal["folds", "leave-one-out"] = "folds",
    cv: Any = None,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    resume: str | PathLike | None = None,
) -> ComparisonReport:
    """Coverage and retention of several filters on the same splits.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        By the name to print. A value may also be a search such as
        `~sklearn.model_selection.GridSearchCV` around a filter, which then chooses inside
        the training part of each split, or a dict with one filter per alpha.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
    y : sequence of 1-D 0/1 arrays, one per problem
    alphas : sequence of float in (0, 1)
    protocol : {"folds", "leave-one-out"}, default="folds"
        "folds": each split has 70 % of the problems to train on, 15 % to calibrate on
        and 15 % to test on. "leave-one-out": each split has one half to train on; each
        problem of the other half is filtered with the threshold from all others of that
        half.
    cv : int, splitter or iterable, optional
        An int is the number of random splits; None is 20 folds or 40 halves. Else a
        scikit-learn splitter, or tuples of problem numbers: (train, calibration, test),
        or (train, test), of which train gives up calibration problems for "folds".
    groups : array-like of shape (n_problems,), optional
        Problems of one group, say of one question, never stand on two sides.
    n_jobs : int, optional
        Splits at a time.
    random_state : int, RandomState or None, default=None
        Seeds the splits, and every ``random_state`` of a filter that is None.
    verbose : int, default=0
        Whether to show progress.
    resume : path-like, optional
        File to which each finished split is written, and from which an interrupted
        comparison of the same inputs goes on. Needs an integer ``random_state``.

    Returns
    -------
    ComparisonReport

    Raises
    ------
    ValueError
        On bad inputs, before anything is fitted; if a split divides a group; if the
        file of ``resume`` belongs to other inputs.

    Warns
    -----
    CalibrationWarning
        Once, if there are too few calibration problems for some alpha.

    Notes
    -----
    In either protocol the problems that calibrate are new to the filter, so the
    ``calibration_size`` of a filter is replaced by one problem: all others of the
    training part train. Levels that give the same scorer are trained once.

    The folds are those of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), who call the
    second part validation and do not say which problems calibrate. A filter that needs
    validation problems for training takes them from the training part here.

    Examples
    --------
    >>> from skdcf import HardCF, SingleFeatureCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import compare_filters
    >>> X, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> filters = {
    ...     "frequency": HardCF(ties="jitter"),
    ...     "reachability": SingleFeatureCF("nx_reachability", ties="jitter"),
    ... }
    >>> report = compare_filters(filters, X, y, [0.05, 0.1], cv=5, random_state=0)
    >>> report.retention.shape  # filters, splits, alphas
    (2, 5, 2)
    >>> report.differences("frequency").names
    ('reachability',)
    """
    check_choice("protocol", protocol, SHARES)
    levels = check_alphas(alphas).tolist()
    filters = check_filters(filters, levels, protocol)
    data = check_input(filters, X, y, groups)
    rng = check_random_state(random_state)
    splits = make_splits(cv, len(data[0]), data[2], protocol, rng)
    seeds = rng.randint(2**31 - 1, size=len(splits)).tolist()
    saved = None
    if resume is not None:
        key = _key(filters, data, levels, protocol, splits, seeds)
        saved = _open(resume, key, random_state)
        _check_results(saved, len(splits), filters, len(levels))
    results = {} if saved is None else saved.results
    _warn_of_abstention(filters, splits, levels, protocol)
    missing = [number for number in range(len(splits)) if number not in results]
    tasks = (
        delayed(run_split)(
            number, filters, *data, levels, splits[number], seeds[number]
        )
        for number in missing
    )
    finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    for number, result in _progress(finished, len(splits), len(results), verbose):
        results[number] = result
        if saved is not None:
            saved.add(number, result)
    return _summary(list(filters), levels, protocol, data[1], splits, results)


def run_split(number, filters, batch, labels, groups, alphas, parts, seed):
    """(number, {filter: {metric: one value per alpha, "seconds": fitting}})."""
    data = [(batch[part], labels[part]) for part in parts]
    groups = None if groups is None else groups[parts[0]]
    out = {}
    with warnings.catch_warnings():
        # Thresholds of filters that are about to be calibrated on other problems; of
        # what the splits themselves lack, the caller was told.
        warnings.simplefilter("ignore", CalibrationWarning)
        for name, filter in filters.items():
            try:
                out[name] = _run_filter(seeded(filter, seed), data, alphas, groups)
            except Exception as error:
                error.add_note(f"(filter {name!r}, split {number})")
                raise
    return number, out


def _run_filter(filter, data, alphas, groups):
    rows = {metric: [None] * len(alphas) for metric in METRICS}
    start, elapsed = time.perf_counter(), 0.0
    fits = fit_each(filter, *data[0], alphas, groups, calibration_size=1)
    for fitted, positions in fits:
        elapsed += time.perf_counter() - start
        report = _evaluate(fitted, data, [alphas[i] for i in positions])
        for metric, row in rows.items():
            for i, value in zip(positions, getattr(report, metric), strict=True):
                row[i] = float(value)
        start = time.perf_counter()
    return rows | {"seconds": elapsed}


def _evaluate(fitted, data, alphas):
    if len(data) == 2:
        return leave_one_out(fitted, *data[1], alphas)
    return evaluate_filter(fitted.calibrate(*data[1]), *data[2], alphas)


def seeded(filter, seed):
    """A clone in which every ``random_state`` that was None is ``seed``."""
    if isinstance(filter, dict):
        return {alpha: seeded(one, seed) for alpha, one in filter.items()}
    fresh = clone(filter)
    unset = [k for k, v in fresh.get_params().items() if v is None]
    return fresh.set_params(**{k: seed for k in unset if k.endswith("random_state")})


def calibration_sizes(splits, protocol):
    """Number of problems that calibrate, per split."""
    if protocol == LEAVE_ONE_OUT:
        return np.array([len(test) - 1 for _, test in splits])
    return np.array([len(calibration) for _, calibration, _ in splits])


def _warn_of_abstention(filters, splits, alphas, protocol):
    n, told = int(calibration_sizes(splits, protocol).min()), set()
    for name, filter in filters.items():
        promise = _promise_of(filter, alphas)
        low = [a for a in sorted(alphas) if n < promise.problems_needed(a)]
        if not low or repr(promise) in told:
            continue
        told.add(repr(promise))
        whose = "" if promise.combines_folds else f" by filter {name!r}"
        warn(
            f"{n} calibration problems per split are too few for alpha = "
            f"{', '.join(f'{a:g}' for a in low)}: there, nothing can be kept{whose}. "
            f"{low[0]:g} needs {promise.problems_needed(low[0])}.",
            CalibrationWarning,
        )


def _promise_of(filter, alphas):
    """The guarantee of a filter, of the first of several, or of that in a search."""
    while isinstance(filter, Mapping):
        filter = filter[alphas[0]]
    while hasattr(filter, "estimator"):
        filter = filter.estimator
    while hasattr(filter, "steps"):
        filter = filter.steps[-1][1]
    guarantee = getattr(filter, "guarantee", None)
    return NoFalseClaim() if guarantee is None else guarantee


def _key(filters, data, alphas, protocol, splits, seeds):
    batch, labels, groups = data
    names = ("features", "feature_names", "offsets", "edges", "claims", "problems")
    names += ("metadata", "alternatives", "context", "edges_known")
    inputs = {
        "X": [getattr(batch, name) for name in names],
        "y": np.concatenate(list(labels)),
        "groups": groups,
        "alphas": alphas,
        "protocol": protocol,
        "cv or random_state": (splits, seeds),
        "the version of skdcf": __version__,
        "the names of the filters": sorted(filters),
    }
    return fingerprint(**inputs, **{f"filter {k!r}": f for k, f in filters.items()})


def _open(path, key, random_state):
    if not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"random_state is {random_state!r}, but resume needs an integer: another "
            "run has to draw the same splits"
        )
    return ResumeFile(path, key)


def _check_results(saved, n_splits, names, n_alphas):
    """ValueError unless what a file holds are results of this comparison."""
    for number, result in saved.results.items():
        try:
            rows = [[result[name][metric] for metric in METRICS] for name in names]
            right = np.array(rows, dtype=float).shape[2] == n_alphas
            right &= all(float(result[name]["seconds"]) >= 0 for name in names)
        except (KeyError, TypeError, ValueError, IndexError):
            right = False
        if not right or not 0 <= number < n_splits:
            raise ValueError(
                f"{saved.path} is damaged: the result of split {number} is unusable"
            )


def _progress(finished, total, done, verbose):
    if not verbose:
        return finished
    from tqdm.auto import tqdm

    return tqdm(finished, total=total, initial=done, desc="splits", unit="split")


def _summary(names, alphas, protocol, labels, splits, results):
    def values(key):
        rows = [[results[s][name][key] for s in range(len(splits))] for name in names]
        return np.array(rows, dtype=np.float64)

    true_claims = [
        np.mean([np.sum(labels[i] == 1) for i in parts[-1]]) for parts in splits
    ]
    return ComparisonReport(
        names=tuple(names),
        alpha=np.array(alphas),
        **{metric: values(metric) for metric in METRICS},
        seconds=values("seconds"),
        true_claims=np.array(true_claims),
        sizes=np.array([[len(part) for part in parts] for parts in splits]),
        protocol=protocol,
    )
