"""The comparison itself: one split after another, all filters on each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._checks import check_alphas, check_choice, warn
from .._files import append_journal
from ..exceptions import CalibrationWarning
from ..graphs import Labels, Problems, question_groups
from ..guarantees import NoFalseClaim
from ..metrics import evaluate_filter, leave_one_out
from ._comparison_report import ComparisonReport
from ._search import as_groups, check_search, fit_each, numbered, search_in
from .splits import LEAVE_ONE_OUT, SHARES, finished_splits, key_of, make_splits, seeded

METRICS = ("coverage", "retention", "false_kept", "abstention", "n_calibration")


def compare_filters(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    protocol: Literal["folds", "leave-one-out"] = "folds",
    cv: Any = None,
    groups: ArrayLike | Literal[False] | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    resume: str | PathLike | None = None,
) -> ComparisonReport:
    """Coverage and retention of several filters on the same splits.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        By the name to print. A value may also be a `CalibratedSearch` or a search such as
        `~sklearn.model_selection.GridSearchCV` around a filter, which then chooses inside
        the training part of each split, or a dict with one filter per alpha.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems, as in the filters' `fit`.
    y : sequence of 1-D 0/1 arrays, one per problem
        Labels, as in the filters' `fit`.
    alphas : sequence of float in (0, 1)
        The levels to compare at.
    protocol : {"folds", "leave-one-out"}, default="folds"
        "folds": each split has 70 % of the problems to train on, 15 % to calibrate on
        and 15 % to test on. "leave-one-out": each split has one half to train on; each
        problem of the other half is filtered with the threshold from all others of that
        half.
    cv : int, splitter or iterable, optional
        An int is the number of random splits; None is 20 folds or 40 halves. Else a
        scikit-learn splitter, or tuples of problem numbers: (train, calibration, test),
        or (train, test), of which train gives up calibration problems for "folds".
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers; None reads it off the problems
        (`skdcf.graphs.question_groups`), False says that each is a question of its own.
        Answers to one question never stand on two sides, and count as one.
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
        Coverage, true and false claims kept per filter, split and level.

    Raises
    ------
    ValueError
        On bad inputs, before anything is fitted; if a split divides a question; if the
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
    plain = list(_plain_filters(filters))
    batch, labels = plain[0].check(X, y)
    for one in plain[1:]:  # slices carry the columns of all filters that learn none
        batch = one.check(batch)
    questions = numbered(question_groups(batch, groups))
    data = batch, batch.split(labels), questions
    rng = check_random_state(random_state)
    splits = make_splits(cv, questions, protocol, rng)
    seeds = rng.randint(2**31 - 1, size=len(splits)).tolist()
    key, results = None, {}
    if resume is not None:
        if not isinstance(random_state, Integral):
            raise ValueError(
                f"random_state is {random_state!r}, but resume needs an integer"
            )
        key = key_of(filters, *data, levels, protocol, splits, seeds)
        results = finished_splits(resume, key)
    _warn_of_abstention(filters, questions, splits, levels)
    tasks = (
        delayed(run_split)(
            number, filters, *data, levels, splits[number], seeds[number]
        )
        for number in range(len(splits))
        if number not in results
    )
    done = len(results)
    finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    for number, result in _progress(finished, len(splits), done, verbose):
        results[number] = result
        if resume is not None:
            append_journal(resume, {"key": key, "split": number, "result": result})
    return _summary(list(filters), levels, protocol, *data[1:], splits, results)


def check_filters(filters, alphas, protocol):
    """Clones of the filters, by name."""
    if not isinstance(filters, Mapping) or not filters:
        raise ValueError(
            f"filters is {filters!r}: a dict of one or more unfitted filters by name"
        )
    return {str(k): _check_filter(k, f, alphas, protocol) for k, f in filters.items()}


def _check_filter(name, filter, alphas, protocol):
    if isinstance(filter, Mapping):
        missing = [alpha for alpha in alphas if alpha not in filter]
        if missing:
            raise ValueError(
                f"filter {name!r} has one filter per alpha, but none for {missing}"
            )
        return {a: _check_filter(name, filter[a], alphas, protocol) for a in alphas}
    search = search_in(filter)
    if search is not None:
        check_search(search)
    inner = filter if search is None else search.estimator
    if not hasattr(inner, "calibrate_parts"):
        raise ValueError(
            f"filter {name!r} is a {type(inner).__name__}: a filter of skdcf, or a search "
            "around one, is expected. Transformers go into the filter, as features="
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


def _plain_filters(filter):
    """Yield the filters as such: of several by name or alpha, or in a search."""
    if isinstance(filter, Mapping):
        for one in filter.values():
            yield from _plain_filters(one)
    else:
        search = search_in(filter)
        yield filter if search is None else search.estimator


def run_split(number, filters, batch, labels, questions, alphas, parts, seed):
    """(number, {filter: {metric: one value per alpha, "seconds": time of fitting}})."""
    data = [(batch[p], labels[p], as_groups(questions[p])) for p in parts]
    out = {}
    with warnings.catch_warnings():
        # The filters are about to be calibrated on other problems, and the caller was
        # told already where those are too few.
        warnings.simplefilter("ignore", CalibrationWarning)
        for name, filter in filters.items():
            try:
                out[name] = _run_filter(seeded(filter, seed), data, alphas)
            except Exception as error:
                error.add_note(f"(filter {name!r}, split {number})")
                raise
    return number, out


def _run_filter(filter, data, alphas):
    rows = {metric: [None] * len(alphas) for metric in METRICS}
    settings = [{} for _ in alphas]
    start, elapsed = time.perf_counter(), 0.0
    (X, y, groups), *rest = data
    fits = fit_each(filter, X, y, alphas, groups, calibration_size=1)
    for fitted, positions, chosen in fits:
        elapsed += time.perf_counter() - start
        reports = _evaluate(fitted, rest, [alphas[i] for i in positions])
        for i, (report, j) in zip(positions, reports, strict=True):
            settings[i] = {key: _plain(value) for key, value in chosen.items()}
            for metric, row in rows.items():
                values = np.broadcast_to(getattr(report, metric), report.alpha.shape)
                row[i] = float(values[j])
        start = time.perf_counter()
    return rows | {"seconds": elapsed, "chosen": settings}


def _plain(value):
    """A setting as a file of results can hold it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, str)) else repr(value)


def _evaluate(fitted, data, alphas):
    """Yield for each level a report, and the place of the level in it."""
    X, y, groups = data[-1]
    if len(data) == 1:
        report = leave_one_out(fitted, X, y, alphas, groups=groups)
        yield from ((report, j) for j in range(len(alphas)))
        return
    part = fitted.calibration_part(*data[0])
    for alpha in alphas:  # it says how many of the problems calibrate
        filter = fitted.with_alpha(alpha).calibrate_parts([part])
        yield evaluate_filter(filter, X, y, [alpha], groups=groups), 0


def _warn_of_abstention(filters, questions, splits, alphas):
    n = min(len(np.unique(questions[parts[1]])) for parts in splits)
    n -= len(splits[0]) == 2  # a question does not calibrate for itself
    told = set()
    for name, filter in filters.items():
        guarantee = next(_plain_filters(filter)).guarantee or NoFalseClaim()
        low = [a for a in sorted(alphas) if n < guarantee.problems_needed(a)]
        if not low or repr(guarantee) in told:
            continue
        told.add(repr(guarantee))
        whose = "" if guarantee.combines_folds else f" by filter {name!r}"
        warn(
            f"{n} calibration problems per split are too few for alpha = "
            f"{', '.join(f'{a:g}' for a in low)}: there, nothing can be kept{whose}. "
            f"{low[0]:g} needs {guarantee.problems_needed(low[0])}.",
            CalibrationWarning,
        )


def _progress(finished, total, done, verbose):
    from tqdm.auto import tqdm

    what = {"desc": "splits", "unit": "split", "disable": not verbose}
    return tqdm(finished, total=total, initial=done, **what)


def _summary(names, alphas, protocol, labels, questions, splits, results):
    def values(key):
        return [[results[s][name][key] for s in range(len(splits))] for name in names]

    n_true = np.array([np.sum(row == 1) for row in labels], dtype=float)
    true = []
    for *_, test in splits:
        code = np.unique(questions[test], return_inverse=True)[1]
        true.append(np.mean(np.bincount(code, n_true[test]) / np.bincount(code)))
    return ComparisonReport(
        names=tuple(names),
        alpha=np.array(alphas),
        **{metric: np.array(values(metric)) for metric in (*METRICS, "seconds")},
        chosen=dict(zip(names, values("chosen"), strict=True)),
        true_claims=np.array(true),
        sizes=np.array([[len(part) for part in parts] for parts in splits]),
        n_questions=np.array(
            [[len(np.unique(questions[p])) for p in s] for s in splits]
        ),
        protocol=protocol,
    )
