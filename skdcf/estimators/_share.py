"""Choose the proportion of answers that may pass, based on training problems.

The chosen proportion depends only on training problems, and the number of held-out questions
depends only on counts that are known before training. The calibration problems therefore remain
exchangeable with new problems.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import numpy as np

from .._messages import Advice, Message
from ..exceptions import ShareError
from ..graphs.problems import read_groups
from ..guarantees import choose_share
from ..guards.levels import level_in_force
from ..ops.conformal import problems_needed
from ..ops.hard import path_risk
from ..scorers.resolve import (
    Folded,
    folds,
    out_of_fold_confidence,
    scorer_requires_fit,
)
from ._validation import with_names

# number of folds for the out-of-fold risks from which the share of passing answers is
# determined
N_FOLDS = 3
LARGEST = 0.9  # largest share that show="auto" may choose


def is_chosen(estimator) -> bool:
    """Return whether a filter chooses the proportion of answers that may pass."""
    return estimator.guarantee is not None and estimator.guarantee.show == "auto"


def count_for_share(n_questions: int) -> int:
    """Return the number of questions to hold out if nothing needs fitting.

    The number is four fifths of all questions, rounded down.
    """
    return n_questions - -(-n_questions // 5)


def refuse_too_few(estimator, n_training, n_calibration) -> None:
    """Raise ShareError if there are too few answers to choose any proportion up to 0.9.

    A proportion can be chosen only if at least ``1 / alpha - 1`` training problems pass. The
    number of calibration problems must also be large enough for rank 1. The check is skipped if
    ``calibration_size`` is 0 or 1, because the filter is then calibrated later. If the guarantee
    is group-conditional, ``n_calibration`` is the number of questions in the largest group.
    """
    level = level_in_force(estimator)
    if estimator.calibration_size in (0, 1):
        return
    delta = getattr(estimator.guarantee, "delta", None)
    group = "" if estimator.guarantee.by is None else " in the largest group"
    needed = (
        problems_needed(level, None, LARGEST),
        problems_needed(level, delta, LARGEST),
    )
    if n_training < needed[0] or n_calibration < needed[1]:
        raise ShareError(
            Message(
                Advice("choose_share", 'show="auto" requires'),
                f" at least {needed[0]} answers for training and {needed[1]} for calibration "
                f"at alpha = {level:g}, got {n_training} for training and {n_calibration} for "
                f"calibration{group}",
            ),
            Advice(
                "let_all_pass",
                "Label more answers, choose a larger alpha, or let all answers pass (show=1)",
            ),
        )


def largest_group(estimator, calibration) -> int:
    """Return the number of calibration questions in the largest group of the guarantee.

    Each group is calibrated separately, so a proportion is considered only if at least one group
    has enough problems for rank 1. Requiring enough problems in the smallest group would not be
    better, because the largest acceptable proportion is chosen, and smaller proportions require
    more problems.
    """
    guarantee = estimator.guarantee
    groups = read_groups(guarantee.by, with_names(calibration, guarantee))
    questions = calibration.hashes.question
    # Each answer without a question is treated as a separate question.
    own_numbers = -1 - np.arange(len(questions))
    questions = np.where(questions < 0, own_numbers, questions)
    members = set(zip(questions.tolist(), groups, strict=True))
    return max(Counter(group for _, group in members).values())


def set_share(estimator, split, task) -> None:
    """Choose the proportion of passing answers on training problems, and store the result.

    If no proportion is acceptable, ``share_`` is 0 and ``_no_share`` contains the reason.

    All considered proportions are stored in ``share_table_``. Each row of ``share_table_``
    contains a proportion, the number of training answers that pass, and the number of passing
    answers with an error.
    """
    train = split.training
    confidence = estimator.scorer_.confidence(train.with_columns)
    if scorer_requires_fit(split.scorer):
        fold_of = folds(
            len(train.with_columns), task.groups, N_FOLDS, deepcopy(task.rng)
        )
        # All fold indices are 0 if all training problems answer the same question.
        if fold_of.any():
            folded = Folded(train.with_columns, fold_of)
            [confidence] = out_of_fold_confidence(
                split.scorer, folded, train.labels, [task]
            )
    risk = estimator._risk(np.asarray(confidence, float), train.raw)
    level = level_in_force(estimator)
    choice = choose_share(
        estimator.guarantee,
        path_risk(risk, train.with_columns),
        train.labels,
        train.raw.offsets,
        level=level,
        n_calibration=None
        if estimator.calibration_size in (0, 1)
        else split.n_calibration,
    )
    estimator.share_ = choice.chosen
    delta = getattr(estimator.guarantee, "delta", None)
    estimator._no_share = "" if choice.chosen else choice.no_share(level, delta)
    estimator.share_table_ = np.column_stack(choice[:3])
