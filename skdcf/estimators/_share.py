"""Choose the proportion of answers that may pass, based on training problems.

`fit` counts, for each proportion, how many training answers pass and how many of these are wrong.
`calibrate_with` chooses a proportion from these counts and from the number of calibration
questions. Neither sees a label of a calibration problem, so the calibration problems remain
exchangeable with new problems.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from ..graphs.problems import read_groups
from ..guarantees import choose_share, share_table
from ..guards.levels import level_in_force
from ..ops.hard import path_risk
from ..scorers.resolve import (
    folds,
    out_of_fold_confidence,
    scorer_requires_fit,
)
from ._validation import with_names

# number of folds for the out-of-fold risks from which the share of passing answers is
# determined
N_FOLDS = 3


def is_chosen(estimator) -> bool:
    """Return whether a filter chooses the proportion of answers that may pass."""
    return estimator.guarantee is not None and estimator.guarantee.show == "auto"


def count_for_share(n_questions: int) -> int:
    """Return the number of questions to hold out if nothing needs fitting.

    The number is four fifths of all questions, rounded down.
    """
    return n_questions - -(-n_questions // 5)


def count_passing(estimator, split, task) -> None:
    """Store ``share_table_``: how many training answers pass for each proportion, and are wrong.

    The risks are out-of-fold risks if the scorer learns.
    """
    train = split.training
    confidence = estimator.scorer_.confidence(train.with_columns)
    if scorer_requires_fit(split.scorer):
        fold_of = folds(
            len(train.with_columns), task.groups, N_FOLDS, deepcopy(task.rng)
        )
        # All fold indices are 0 if all training problems answer the same question.
        if fold_of.any():
            confidence = out_of_fold_confidence(
                split.scorer, train.with_columns, train.labels, fold_of, task
            )
    risk = estimator._risk(np.asarray(confidence, float), train.raw)
    guarantee = estimator.guarantee
    groups = np.zeros(len(train.raw), dtype=np.int64)
    if guarantee.by is not None:
        named = read_groups(guarantee.by, with_names(train, guarantee))
        groups = number(named)
    estimator.share_table_ = share_table(
        guarantee,
        path_risk(risk, train.with_columns),
        train.labels,
        train.raw.offsets,
        groups,
    )


def set_share(estimator, part) -> None:
    """Choose the proportion of passing answers for the questions of a calibration part."""
    question = part.hashes.question
    # Each answer without a question is treated as a separate question.
    question = np.where(question < 0, -1 - np.arange(len(question)), question)
    groups = number(part.groups or [None] * len(question))
    _, first = np.unique(np.stack([question, groups]), axis=1, return_index=True)
    estimator.share_ = choose_share(
        estimator.share_table_,
        level_in_force(estimator),
        getattr(estimator.guarantee, "delta", None),
        np.bincount(groups[first]).tolist(),
    )


def number(groups):
    """Return the number of each group, in the order of appearance."""
    numbers: dict = {}
    return np.array(
        [numbers.setdefault(g, len(numbers)) for g in groups], dtype=np.int64
    )
