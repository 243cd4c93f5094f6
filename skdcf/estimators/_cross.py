"""Fitting with ``calibration_size="cross"``: every problem trains, and every one calibrates.

Each fold is scored by a scorer that was trained on the others. The p-value of a claim counts
the problems of each fold with that fold's own scorer, which is the bound of CV+ (Barber et
al. 2021): coverage is at least 1 - 2 alpha, less a term that vanishes with n.
"""

from copy import deepcopy

import numpy as np
from sklearn.base import clone

from ..ops.holdout import pick
from ..ops.risk_control import Steps
from ..scorers import CrossScorer
from ._parts import CalibrationPart
from ._threads import few_threads

CROSS = "cross"
FOLDS = 10


def fit_cross(filters, scorer, batch, labels, groups, rng, judged):
    """Pairs (CrossScorer, CalibrationPart), one per filter.

    ``judged(batch, labels, groups)`` leaves out the problems that cannot train.
    """
    folds = _folds(len(batch), groups, rng)
    found = [([], []) for _ in filters]  # scorers and scores
    for fold in range(folds.max() + 1):
        rest, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        own = None if groups is None else groups[rest]
        train = judged(*pick(batch, labels, rest), own)
        tasks = [f._task(train[2], deepcopy(rng)) for f in filters]
        with few_threads(train[0]):
            scorers = clone(scorer).fit_levels(*train[:2], tasks)
        for filter, fitted, (all_scorers, scores) in zip(
            filters, scorers, found, strict=True
        ):
            filter.scorer_ = fitted
            all_scorers.append(fitted)
            scores.append(np.sort(filter._part(*pick(batch, labels, held)).scores))
    return [(CrossScorer(*some), _part_of(some[1])) for some in found]


def _folds(n, groups, rng):
    """The fold of each problem; problems of one group are in one fold."""
    codes = (
        np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    n_groups = codes.max() + 1
    if n_groups < 2:
        raise ValueError(
            'calibration_size="cross" needs at least two problems, of two groups'
        )
    return (rng.permutation(n_groups) % min(FOLDS, n_groups))[codes]


def _part_of(scores):
    """What calibrates the counts: the k-th smallest count that is not allowed is k."""
    scores = np.concatenate(scores)
    counts = np.arange(1.0, len(scores) + 1)
    counts[np.isfinite(scores).sum() :] = np.inf
    # What makes an answer risky is not known over folds: as risky as can be.
    return CalibrationPart(Steps.of_scores(counts), np.full(len(scores), -np.inf))
