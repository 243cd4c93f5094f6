"""Compare filters on the same splits.

Each split of the problems is used for every filter, and scorers that serve several levels are
trained once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import full
from .._arrays import number_groups
from .._checks import Seed, check_alphas, check_choice, warn
from .._html import Table
from .._jobs import run_jobs
from ..exceptions import CalibrationWarning
from ..graphs import Problems
from ..identity import Groups, question_groups
from ..labels import Labels
from ..uses import check, copy_at
from ._report import (
    counts_of_filters,
    leave_one_out,
    mean_error,
    means_of,
    per_question,
    ratio,
    report_table,
    rows_of_levels,
)
from ._search import as_groups


def compare_filters(
    filters: Mapping[str, Any],
    X: Problems,
    y: Labels,
    alphas: Iterable[float] = (0.02, 0.05, 0.1, 0.2),
    *,
    protocol: Literal["folds", "leave-one-out"] = "folds",
    cv: Any = None,
    groups: Groups = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> Table:
    """Compare coverage and retention of several filters on the same splits.

    Parameters
    ----------
    filters : dict of str to unfitted filter
        Filters, keyed by display name.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
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
    cv : int or list of splits, optional
        Number of random splits, or the splits themselves. A split is a tuple of index arrays,
        (train, calibration, test) for "folds" and (train, evaluation) for "leave-one-out". The
        default is 20 random splits for "folds" and 40 for "leave-one-out".
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

    Returns
    -------
    report : Table
        One row for each level and filter, with means over the splits: ``coverage``,
        ``retention`` (true claims kept per problem), ``false_kept``, ``shown`` (proportion of
        problems with a kept claim), ``false_among_shown``, ``false_shown``, ``accuracy`` (of the
        kept claims) and ``passing``, and the corrected standard errors of most of them.
        ``delta_pct`` is the change in retention relative to the first filter, in percent.
        ``report.splits`` is a
        table of the same numbers with one row for each split, filter and level, with the sizes of
        the parts.

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
    >>> report.filter.tolist()
    ['frequency', 'reachability', 'frequency', 'reachability']
    >>> report.splits.retention.shape
    (20,)
    """
    check_choice("protocol", protocol, ("folds", "leave-one-out"))
    levels = check_alphas(alphas)
    if not isinstance(filters, Mapping) or not filters:
        raise ValueError(
            f"filters must map at least one name to a filter, got {filters!r}"
        )
    for name, filter in filters.items():
        if not hasattr(filter, "calibrate_parts"):
            raise ValueError(
                f"filter {name!r} must be a skdcf filter, got a {type(filter).__name__}. Pass "
                "a transformer to the filter as features="
            )
        filter.validate()
        full.refuse(filter, "a comparison of filters")
    first, *others = filters.values()
    batch, labels = check(first, X, y)
    # Columns that do not need fitting are computed once for all splits.
    for filter in others:
        batch = check(filter, batch)
    questions = number_groups(question_groups(batch, groups))
    rng = check_random_state(random_state)
    splits = make_splits(cv, questions, protocol, rng)
    seeds = rng.randint(2**31 - 1, size=len(splits)).tolist()
    n = min(len(np.unique(questions[parts[1]])) for parts in splits)
    # In leave-one-out evaluation, a question is not used for its own calibration.
    n -= protocol == "leave-one-out"
    alpha = levels.min()
    needed = max(
        filter._resolved_guarantee.problems_needed(alpha) for filter in filters.values()
    )
    if n < needed:
        warn(
            f"{n} calibration problems per split are too few to keep any claims at alpha = "
            f"{alpha:g}, for which {needed} are needed",
            CalibrationWarning,
        )
    problems = batch, batch.split(labels), questions
    jobs = [
        partial(run_split, filters, problems, split, levels, seed)
        for split, seed in zip(splits, seeds, strict=True)
    ]
    rows = [
        row | {"split": number}
        for number, of_split in enumerate(run_jobs(jobs, n_jobs))
        for row in of_split
    ]
    return summarise(rows, filters, levels, protocol)


def run_split(filters, problems, split, alphas, seed):
    """Fit the filters on one split, and return a row of numbers for each filter and level."""
    batch, labels, questions = problems
    parts = [(batch[rows], labels[rows], as_groups(questions[rows])) for rows in split]
    n_true = [[np.sum(own == 1) for own in labels[split[-1]]]]
    shared = {
        "true_claims": float(per_question(n_true, questions[split[-1]]).mean()),
        "sizes": [len(rows) for rows in split],
    }
    rows = []
    with warnings.catch_warnings():
        # The caller has already been warned about small calibration sets.
        warnings.simplefilter("ignore", CalibrationWarning)
        for name, filter in filters.items():
            try:
                of_filter = _rows_of_filter(filter, parts, alphas, seed)
            except Exception as error:
                error.add_note(f"(filter {name!r})")
                raise
            rows += [{"filter": name} | row | shared for row in of_filter]
    return rows


def _rows_of_filter(filter, parts, alphas, seed):
    """Return a row of numbers for each level of a filter, fitted on the first part only."""
    train, *rest = parts
    X, y, groups = rest[-1]
    filter = clone(filter).set_params(calibration_size=1)
    for key, value in filter.get_params().items():
        if value is None and key.endswith("random_state"):
            filter.set_params(**{key: seed})
    rows = []
    while len(rows) < len(alphas):
        later = alphas[len(rows) :]
        fitted = clone(filter).set_params(alpha=later[0]).fit(*train)
        # The levels share a fit, unless training or the share of passing answers depends on them.
        if fitted.scorer_.uses_alpha or fitted.share_ is not None:
            later = later[:1]
        if len(rest) == 1:
            report = leave_one_out(
                fitted, X, y, later, groups=groups, n_draws=10, random_state=seed
            )
            own = report.rows
            sizes = [report.n_calibration] * len(own)
        else:
            part = fitted.calibration_part(*rest[0])
            fits = [copy_at(fitted, alpha).calibrate_parts([part]) for alpha in later]
            counts = counts_of_filters(fits, X, y, later)
            own = rows_of_levels(later, counts, question_groups(X, groups))
            sizes = [each.n_calibration_ for each in fits]
        rows += [
            row | {"n_calibration": size} for row, size in zip(own, sizes, strict=True)
        ]
    return rows


def summarise(rows, names, alphas, protocol):
    """Return the means over splits of each filter at each level, given the rows of `run_split`."""
    splits = report_table(rows)
    sizes = splits.sizes.mean(axis=0)
    overlap = sizes[-1] / sizes[0]
    counts = "loss", "retention", "false_kept", "shown", "false_shown", "passing"
    means = []
    for alpha in alphas:
        tables = [
            Table(
                [row for row in rows if (row["filter"], row["alpha"]) == (name, alpha)],
                {},
            )
            for name in names
        ]
        # Retention of the first filter, with which the others are compared.
        reference = tables[0].retention
        for name, own in zip(names, tables, strict=True):
            row = means_of([getattr(own, count) for count in counts], overlap)
            change = mean_error(own.retention - reference, overlap)
            row |= {
                "alpha": alpha,
                "target": 1 - alpha,
                "delta_pct": 100 * (ratio(row["retention"], reference.mean()) - 1),
                "delta_error": 100 * ratio(change, reference.mean()),
            }
            row = {key: float(value) for key, value in row.items()}
            means.append({"filter": name} | row)
    parts = "/".join(f"{size:.0f}" for size in sizes)
    heading = (
        f"{len(reference)} splits of {parts} problems, {protocol}; delta is relative "
        f"to {next(iter(names))!r}"
    )
    if (splits.passing < 1).any():
        heading += "; coverage is computed for the problems that pass"
    return report_table(means, heading, splits=splits)


def make_splits(cv, questions, protocol, rng):
    """Return the splits as tuples, which contain the sorted problem indices of each part.

    Raise ValueError if a part is empty, or if two parts share a question.

    Parameters
    ----------
    cv : int, iterable of tuples of index arrays, or None
        Definition of the splits, as in `compare_filters`.
    questions : ndarray of int of shape (n,)
        Index of the question of each answer, starting at 0.
    protocol : {"folds", "leave-one-out"}
        Split protocol, as in `compare_filters`.
    rng : RandomState
        Random number generator for the splits.
    """
    shares = (0.7, 0.15, 0.15) if protocol == "folds" else (0.5, 0.5)
    if cv is None:
        cv = 20 if protocol == "folds" else 40
    if isinstance(cv, Integral):
        splits = [_cut(questions, shares, rng) for _ in range(cv)]
    else:
        splits = [tuple(np.sort(part) for part in split) for split in cv]
    if not splits:
        raise ValueError(f"cv must contain at least one split, got cv={cv!r}")
    for number, parts in enumerate(splits):
        sizes = [len(part) for part in parts]
        if len(parts) != len(shares) or 0 in sizes:
            raise ValueError(
                f"split {number} must have {len(shares)} parts with at least one problem each, "
                f"got parts of sizes {sizes}. Pass more problems, or more questions with fewer "
                "answers"
            )
        rows = np.concatenate(parts).tolist()
        members = np.concatenate([np.unique(questions[part]) for part in parts])
        if len({*rows}) < len(rows) or len({*members}) < len(members):
            raise ValueError(
                f"split {number} must contain each problem once and keep all answers to a "
                "question in the same part. Leave cv at its default, or use a splitter that "
                "keeps groups together, such as GroupShuffleSplit"
            )
    return splits


def _cut(codes, shares, rng):
    """Divide the rows at random in roughly the given proportions, without splitting questions."""
    sizes = np.bincount(codes)
    order = rng.permutation(len(sizes))
    middle = np.cumsum(sizes[order]) - sizes[order] / 2
    bounds = len(codes) * np.cumsum(shares)[:-1]
    part = np.empty(len(sizes), int)
    part[order] = np.searchsorted(bounds, middle)
    return tuple(np.flatnonzero(part[codes] == p) for p in range(len(shares)))
