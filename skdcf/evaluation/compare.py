"""Compare filters on the same splits.

Each split has the parts (train, calibration, test) or (train, test).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._checks import check_alphas, check_choice, warn
from .._docs import documented
from .._jobs import as_finished
from ..exceptions import CalibrationWarning
from ..graphs import Problems
from ..guarantees import NoFalseClaim
from ..identity import question_groups
from ..labels import Labels
from ..training.splitting import number_groups
from ..uses import calibrated_masks, check
from ._metrics import leave_one_out, report_of
from ._report import ComparisonReport
from ._search import as_groups, check_search, fit_each, search_in

# number of random selections of the calibration answer if questions have several answers
DRAWS = 10
REPEATS = {"folds": 20, "leave-one-out": 40}
SHARES = {"folds": (0.70, 0.15, 0.15), "leave-one-out": (0.5, 0.5)}
METRICS = (
    "coverage",
    "retention",
    "false_kept",
    "false_shown",
    "abstention",
    "passing",
    "n_calibration",
)
COLUMNS = (*METRICS, "chosen", "seconds")


@documented
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
) -> ComparisonReport:
    """Compare coverage and retention of several filters on the same splits.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        Filters, keyed by display name. A value may also be a dict with one filter per alpha, a
        `CalibratedSearch`, or a search such as `~sklearn.model_selection.GridSearchCV` over the
        settings of a filter. A search uses only the training part of each split.
    X : {problems}
        Problems, in the format of the filters' `fit`.
    y : sequence of 1-D 0/1 arrays, one per problem
        Labels, as in the filters' `fit`.
    alphas : sequence of float in (0, 1)
        Levels at which the filters are compared.
    protocol : {"folds", "leave-one-out"}, default="folds"
        With "folds", 70 % of the problems in each split are used for training, 15 % for
        calibration and 15 % for testing. With "leave-one-out", half of the problems in each split
        are used for training. Each problem in the other half is filtered with a threshold
        computed from all other problems in that half. If a question has several answers, one
        random answer is used for calibration, and the results are averaged over ten random
        choices.
    cv : int, splitter or iterable, optional
        Number of random splits, a scikit-learn splitter, or an iterable of splits. A split is a
        tuple (train, calibration, test) or (train, test) of index arrays. The default is 20
        random splits for "folds" and 40 for "leave-one-out". If ``protocol`` is "folds" and the
        splits are tuples (train, test), the calibration problems are drawn from the training
        problems.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to. If None, the questions are determined by
        `skdcf.identity.question_groups`. If False, each answer belongs to a different question. All
        answers to a question are assigned to the same part and together have the weight of one
        problem.
    n_jobs : int, optional
        Number of splits to run in parallel, as in scikit-learn. The report does not depend on
        ``n_jobs``.
    random_state : int, RandomState or None, default=None
        Seed of the splits. The seed is also used for each filter whose ``random_state`` is None.
    verbose : int, default=0
        Verbosity. If positive, progress is printed.

    Returns
    -------
    report : ComparisonReport
        The coverage and the numbers of true and false claims kept, for each filter, split and
        level.

    Raises
    ------
    ValueError
        If an input is invalid, or if a split separates answers to the same question. Inputs are
        checked before anything is fitted.

    Warns
    -----
    CalibrationWarning
        If there are too few calibration problems for one of the levels.

    Notes
    -----
    In both protocols, the calibration problems are separate from the training part. A
    filter's ``calibration_size`` is therefore replaced with 1, and all other problems in the
    training part are used for training. If several levels use the same scorer, it is trained once.

    The folds follow Hittesdorf, Salzetta and Cheng (arXiv:2604.20098), who call the second part
    the validation set and do not specify which problems are used for calibration. A filter that
    requires validation problems draws them from the training part.

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
    """
    check_choice("protocol", protocol, SHARES)
    levels = check_alphas(alphas).tolist()
    filters = check_filters(filters, levels, protocol)
    plain = list(_plain_filters(filters))
    batch, labels = check(plain[0], X, y)
    # Columns that do not need fitting are computed once for all splits.
    for filter_of in plain[1:]:
        batch = check(filter_of, batch)
    questions = number_groups(question_groups(batch, groups))
    split_labels = batch.split(labels)
    rng = check_random_state(random_state)
    splits = make_splits(cv, questions, protocol, rng)
    seeds = rng.randint(2**31 - 1, size=len(splits)).tolist()
    _warn_of_abstention(filters, questions, splits, levels)
    jobs = {
        number: partial(
            run_split,
            number,
            parts=splits[number],
            seed=seeds[number],
            filters=filters,
            data=(batch, split_labels, questions),
            alphas=levels,
        )
        for number in range(len(splits))
    }
    results = dict(as_finished(jobs, n_jobs, verbose=verbose, unit="split"))
    return _summary(
        list(filters),
        levels,
        protocol,
        labels=split_labels,
        questions=questions,
        splits=splits,
        results=results,
    )


def check_filters(filters: Any, alphas: Any, protocol: Any) -> Any:
    """Check the filters, and return clones keyed by name."""
    if not isinstance(filters, Mapping) or not filters:
        raise ValueError(
            "filters must be a dict that maps names to filters and contains at least one "
            f"filter, got {filters!r}"
        )
    return {str(k): _check_filter(k, f, alphas, protocol) for k, f in filters.items()}


def _check_filter(name, filter, alphas, protocol):
    if isinstance(filter, Mapping):
        missing = [alpha for alpha in alphas if alpha not in filter]
        if missing:
            raise ValueError(
                f"filters[{name!r}] must contain a filter for each alpha, but there is no "
                f"filter for {missing}"
            )
        return {a: _check_filter(name, filter[a], alphas, protocol) for a in alphas}
    inner = getattr(search := search_in(filter), "estimator", filter)
    if search is not None:
        check_search(search)
    if not hasattr(inner, "calibrate_parts"):
        raise ValueError(
            f"filter {name!r} must be a skdcf filter or a search over one, got a "
            f"{type(inner).__name__}. Pass a transformer to the filter as features="
        )
    if protocol == "leave-one-out" and getattr(inner, "ties", None) == "include":
        raise ValueError(
            f'filter {name!r} must not have ties="include", because leave-one-out '
            'evaluation does not support it. Set protocol="folds" or ties="jitter"'
        )
    return clone(filter)


def _plain_filters(filter):
    """Yield each filter, including the filters inside a dict or a search."""
    if isinstance(filter, Mapping):
        for inner in filter.values():
            yield from _plain_filters(inner)
    else:
        yield getattr(search_in(filter), "estimator", filter)


def run_split(
    number: int,
    parts: Any,
    seed: int,
    filters: Any,
    data: Any,
    alphas: Any,
) -> Any:
    """Return the metrics of each filter on one split, as a dict keyed by filter and metric."""
    batch, labels, questions = data
    of_parts = [(batch[p], labels[p], as_groups(questions[p])) for p in parts]
    results = {}
    with warnings.catch_warnings():
        # Warnings about small calibration sets are ignored, because the filters will be
        # calibrated on other problems. The caller has already been warned.
        warnings.simplefilter("ignore", CalibrationWarning)
        for name, filter in filters.items():
            try:
                results[name] = _run_filter(
                    seeded(filter, seed), of_parts, alphas, seed
                )
            except Exception as error:
                error.add_note(f"(filter {name!r}, split {number})")
                raise
    return results


def _run_filter(filter, data, alphas, seed):
    rows = {}
    start = time.perf_counter()
    seconds = 0.0
    (X, y, groups), *rest = data
    fits = fit_each(filter, X, y, alphas, groups=groups, calibration_size=1)
    for fitted, positions, chosen in fits:
        seconds += time.perf_counter() - start
        settings = {key: _plain(value) for key, value in chosen.items()}
        evaluated = _evaluate(fitted, rest, [alphas[i] for i in positions], seed)
        for i, row in zip(positions, evaluated, strict=True):
            rows[i] = row | {"chosen": settings}
        start = time.perf_counter()
    columns = {key: [rows[i][key] for i in range(len(alphas))] for key in COLUMNS[:-1]}
    return columns | {"seconds": seconds}


def _plain(value):
    """Return a setting as a plain number or text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, str)) else repr(value)


def _evaluate(cf, data, alphas, seed):
    """Return one dict of metrics per level."""
    X, y, groups = data[-1]
    if len(data) == 1:
        report = leave_one_out(
            cf, X, y, alphas, groups=groups, n_draws=DRAWS, random_state=seed
        )
        return _rows(report, [report.n_calibration] * len(alphas))
    kept, passing, n_calibration = calibrated_masks(cf, data[0], X, alphas)
    batch, labels = check(cf, X, y)
    questions = question_groups(batch, groups)
    report = report_of(
        cf.calibration_.guarantee,
        batch,
        (np.array(alphas), kept, labels, questions),
        passing=passing,
    )
    return _rows(report, n_calibration)


def _rows(report, n_calibration):
    columns = zip(report.rows(), n_calibration, report.false_shown, strict=True)
    return [row | {"n_calibration": n, "false_shown": f} for row, n, f in columns]


def _warn_of_abstention(filters, questions, splits, alphas):
    n = min(len(np.unique(questions[parts[1]])) for parts in splits)
    # In leave-one-out evaluation, a question is not used for its own calibration.
    n -= len(splits[0]) == 2
    warned = set()
    for name, filter in filters.items():
        guarantee = next(_plain_filters(filter)).guarantee or NoFalseClaim()
        low = [a for a in sorted(alphas) if n < guarantee.problems_needed(a)]
        if low and repr(guarantee) not in warned:
            warned.add(repr(guarantee))
            plain = repr(guarantee) == repr(NoFalseClaim())
            whose = "" if plain else f" by filter {name!r}"
            warn(
                f"{n} calibration problems per split are too few to keep any claims{whose} "
                f"for alpha = {', '.join(f'{a:g}' for a in low)}. At least "
                f"{guarantee.problems_needed(low[0])} are needed for alpha = {low[0]:g}.",
                CalibrationWarning,
            )


def _summary(names, alphas, protocol, labels, questions, splits, results):
    def values(key):
        return [[results[s][name][key] for s in range(len(splits))] for name in names]

    n_true = np.array([np.sum(row == 1) for row in labels], dtype=float)
    true = []
    for *_, test in splits:
        code = number_groups(questions[test])
        true.append(np.mean(np.bincount(code, n_true[test]) / np.bincount(code)))
    asked = [[len(np.unique(questions[part])) for part in parts] for parts in splits]
    return ComparisonReport(
        names=tuple(names),
        alpha=np.array(alphas),
        **{column: np.array(values(column)) for column in (*METRICS, "seconds")},
        chosen=dict(zip(names, values("chosen"), strict=True)),
        true_claims=np.array(true),
        sizes=np.array([[len(part) for part in parts] for parts in splits]),
        n_questions=np.array(asked),
        protocol=protocol,
    )


def make_splits(cv: Any, questions: Any, protocol: Any, rng: Any) -> Any:
    """Return the splits as tuples, which contain the sorted problem indices of each part.

    Parameters
    ----------
    cv : int, splitter, iterable of tuples of index arrays, or None
        Definition of the splits, as in `compare_filters`.
    questions : ndarray of int of shape (n,)
        Index of the question of each answer, starting at 0.
    protocol : {"folds", "leave-one-out"}
        Split protocol, as in `compare_filters`.
    rng : RandomState
        Random number generator for the splits.
    """
    shares = SHARES[protocol]
    n = len(questions)
    cv = REPEATS[protocol] if cv is None else cv
    if isinstance(cv, Integral):
        splits = [_cut(np.arange(n), questions, shares, rng) for _ in range(cv)]
    else:
        if hasattr(cv, "split"):
            options = {"groups": questions} if questions.max() + 1 < n else {}
            cv = cv.split(np.zeros(n), **options)
        splits = [_given(split, questions, shares, rng) for split in cv]
    if not splits:
        raise ValueError(f"cv must return at least one split, got cv={cv!r}")
    for number, parts in enumerate(splits):
        _check_split(parts, number, questions, protocol)
    return splits


def _cut(rows, codes, shares, rng):
    """Divide the rows at random in roughly the given proportions, without splitting questions."""
    distinct, inverse = np.unique(codes[rows], return_inverse=True)
    order = rng.permutation(len(distinct))
    sizes = np.bincount(inverse)[order]
    middle = np.cumsum(sizes) - sizes / 2
    bounds = len(rows) * np.cumsum(shares)[:-1] / np.sum(shares)
    part = np.empty(len(distinct), dtype=int)
    part[order] = np.searchsorted(bounds, middle)
    return tuple(rows[part[inverse] == p] for p in range(len(shares)))


def _given(split, codes, shares, rng):
    """Return the given parts, and draw missing calibration problems from the training part."""
    rows = np.arange(len(codes))
    try:
        parts = [np.sort(rows[np.asarray(part)].ravel()) for part in split]
    except IndexError as error:
        raise ValueError(
            f"each part of a split must contain row indices of the {len(rows)} problems: "
            f"{error}"
        ) from None
    if len(parts) == 2 and len(shares) == 3:
        parts = [*_cut(parts[0], codes, shares[:2], rng), parts[1]]
    if len(parts) != len(shares):
        raise ValueError(
            f"a split must have {len(shares)} parts, got {len(parts)}: "
            + ("train, calibration, test" if len(shares) == 3 else "train, test")
        )
    return tuple(parts)


def _check_split(parts, number, codes, protocol):
    """Raise ValueError if a part is too small, or if two parts share a problem or a question."""
    least = 2 if protocol == "leave-one-out" else 1
    if any(len(part) < least for part in parts):
        sizes = "/".join(str(len(part)) for part in parts)
        raise ValueError(
            f"each part of split {number} must contain at least {least} problems, got "
            f"parts of sizes {sizes}. Pass more problems, or more questions with fewer "
            "answers"
        )
    members = np.concatenate([np.unique(codes[part]) for part in parts])
    if len(np.unique(np.concatenate(parts))) < sum(map(len, parts)):
        raise ValueError(
            f"split {number} must contain each problem at most once, but it contains one "
            "problem twice"
        )
    if len(np.unique(members)) < len(members):
        raise ValueError(
            f"split {number} must keep all answers to a question in the same part, but "
            "the answers to one question are in two parts. Leave cv at its default, or "
            "use a splitter that keeps groups together, such as GroupShuffleSplit"
        )


def seeded(filter: Any, seed: int) -> Any:
    """Return a clone of a filter in which ``seed`` replaces every ``random_state`` that is None."""
    if isinstance(filter, dict):
        return {alpha: seeded(inner, seed) for alpha, inner in filter.items()}
    fresh = clone(filter)
    unset = [k for k, v in fresh.get_params().items() if v is None]
    return fresh.set_params(**{k: seed for k in unset if k.endswith("random_state")})
