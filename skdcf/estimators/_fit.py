"""Fit a filter in six steps.

1. `prepare` reads the input, packs the problems and flattens the labels. A problem is one answer to
   a question, and a question may have several answers. A label is 1 (true), 0 (false) or -1
   (unjudged).
2. `prepare` creates the unfitted scorer and computes all columns that do not require labels. The
   split depends on whether the scorer needs training, so the scorer is created before the split.
3. `count_held_out` and `divide` split the problems by question and draw the calibration questions.
   Every judged answer to one of the remaining questions may be used for training.
4. `divide` runs the guards, which compare the provenance and reject input that would violate the
   guarantee. No training takes place before the guards run.
5. `divide` fits the columns and `fit` fits the scorer, both on training problems only.
   If the guarantee has ``show="auto"``, the proportion of answers that may pass is also chosen on
   training problems.
6. `fit` calibrates the filter on the calibration problems.

If nothing needs fitting, all problems are used for calibration.

`_levels` uses the same steps to fit several levels together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .. import guards
from ..features.columns import columns_require_fit, fit_columns
from ..guards.choices import fingerprint
from ..guards.levels import level_in_force
from ..guards.settings import refuse_unused
from ..scorers import FitTask, Scorer
from ..scorers.resolve import as_scorer, scorer_requires_fit
from ..training.splitting import holdout_count, refuse_one_group
from ._calibrate import calibrate_with, leave_uncalibrated, score
from ._selection import Selection
from ._share import (
    count_for_share,
    count_passing,
    is_chosen,
)
from ._validation import View, read_labelled


def fit(estimator, X, y, groups) -> None:
    """Fit a filter on training problems, and calibrate it on the remaining problems."""
    selection, scorer = prepare(estimator, X, y, groups)
    n_held = count_held_out(estimator, selection, scorer)
    split = divide(estimator, selection, scorer, n_held)
    task = task_of(estimator, split)
    train: Any = split.training
    fitted = split.scorer.fit(train.with_columns, train.labels, task)
    take_scorer(estimator, fitted, split)
    if is_chosen(estimator):
        count_passing(estimator, split, task)
    if n_held == 0:
        leave_uncalibrated(estimator, train.hashes)
    else:
        calibrate_with(estimator, score(estimator, split.calibration), split.fewest)


@dataclass
class Split:
    """Training and calibration problems used to fit a filter.

    Attributes
    ----------
    training : View
        The training problems. A scorer that does not require training is still fitted, but on
        problems whose labels are hidden.
    calibration : View
        The calibration problems.
    questions : ndarray of int of shape (n_training,), or None
        Question index of each training problem, or None if every question has only one answer.
    scorer : unfitted Scorer
    learns : bool
        Whether labels are used to fit the scorer, to fit the columns, or to choose the proportion
        of answers that may pass.
    fewest : bool
        Whether to calibrate on the smallest number of questions that results in the same rank,
        floor(alpha (n + 1)). For example, both 19 and 25 questions result in rank 2 at alpha =
        0.1, but the threshold is usually higher with 19 questions. All held-out questions are
        used unless `fit` chooses the proportion of answers that may pass.
    rng : RandomState
        Random number generator used after the split.
    """

    training: View
    calibration: View
    questions: np.ndarray | None
    scorer: Scorer
    learns: bool
    fewest: bool
    rng: np.random.RandomState


def prepare(estimator, X, y, groups) -> tuple[Selection, Scorer | None]:
    """Read the problems, compute their columns, and create the unfitted scorer.

    If fitting the columns requires labels, the columns and the scorer are created after the
    split, and None is returned instead of the scorer.
    """
    estimator.validate()
    view = read_labelled(estimator, X, y, groups, reset=True)
    estimator.share_ = None
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    estimator._seed = int(seed)
    selection = Selection(view)
    if columns_require_fit(estimator._transformer):
        return selection, None
    unlabelled = selection.view.unlabelled()
    return selection, make_columns(estimator, selection.view, unlabelled)


def make_columns(estimator, view, training) -> Scorer:
    """Fit the columns on training problems, compute all columns, and create the scorer."""
    estimator.features_ = fit_columns(
        estimator._transformer, training.raw, training.labels
    )
    batch = view.with_columns = estimator._with_columns(view.raw)
    numbered = tuple(f"x{i}" for i in range(batch.n_features or 0))
    estimator._columns_out = (
        numbered if batch.feature_names is None else batch.feature_names
    )
    scorer = as_scorer(estimator._wanted_scorer(batch), batch)
    refuse_unused(estimator, scorer)
    return scorer


def count_held_out(estimator, selection, scorer):
    """Return the number of questions to hold out for calibration, or None for all questions."""
    size = estimator.calibration_size
    learns = scorer is None or scorer_requires_fit(scorer)
    if size == 0:
        if learns:
            return 0
        raise ValueError(
            "calibration_size=0 requires a scorer or columns that learn from labels, but "
            f"neither the scorer {estimator.scorer!r} nor the columns learn. Calibrate on all "
            "problems instead (calibration_size=None)"
        )
    if size is None and not learns and not is_chosen(estimator):
        return None
    n = selection.n_questions
    if len(selection.question) > 1:
        refuse_one_group(len(selection.question), n)
    if size is None and not learns:
        size = count_for_share(n)
    elif size is None:
        guarantee = estimator._resolved_guarantee()
        level = level_in_force(estimator)
        size = guarantee.calibration_count(n, level)
    return holdout_count("calibration_size", size, n)


def divide(estimator, selection, scorer, n_held) -> Split:
    """Split the problems, run the guards, and fit the columns if required."""
    rng = np.random.RandomState(estimator._seed)
    training_rows, calibration_rows = selection.split(n_held, rng)
    view = selection.view
    chooses = is_chosen(estimator)
    learns = scorer is None or scorer_requires_fit(scorer) or chooses
    unlabelled = None
    if not learns:
        # A scorer that does not use labels may see the calibration problems in its `fit`, unless
        # the caller asked for held-out problems.
        everything = view if n_held is None else view.take(training_rows)
        unlabelled = everything.unlabelled()
        training_rows = training_rows[:0]
    elif not len(training_rows):
        raise ValueError(
            "at least 1 problem must remain for training, but all questions are used for "
            "calibration. Add answers to other questions, or choose a scorer that does "
            "not require training, such as a column"
        )
    guards.at_fit(estimator, view, training_rows, calibration_rows)
    if scorer is None:
        scorer = make_columns(estimator, view, view.take(training_rows))
    calibration = view.take(calibration_rows)
    return Split(
        training=view.take(training_rows) if unlabelled is None else unlabelled,
        calibration=calibration,
        questions=(
            selection.question[training_rows]
            if learns and selection.n_questions < len(selection.question)
            else None
        ),
        scorer=scorer,
        learns=learns,
        fewest=chooses or n_held is None,
        rng=rng,
    )


def task_of(estimator, split) -> FitTask:
    """Return the settings for fitting a scorer on the training problems."""
    level = level_in_force(estimator)
    # A guarantee on the expected number of false claims can have a level of 1 or more.
    # Training a scorer requires a level alpha in (0, 1).
    alpha = level if level < 1 else estimator.alpha
    return FitTask(
        # Smaller values of alpha would cause overflow during training.
        alpha=max(alpha, 1e-9),
        groups=split.questions,
        rng=split.rng,
        relaxation=estimator.relaxation,
        training=estimator.training,
        n_jobs=estimator.n_jobs,
        verbose=estimator.verbose,
    )


def take_scorer(estimator, scorer, split):
    """Store the fitted scorer, its level, and the hashes of its training problems."""
    estimator.scorer_ = scorer
    hashes = split.training.hashes
    trained = hashes if split.learns else hashes[:0]
    estimator._trained = trained.to_store()
    estimator._choice_fingerprint = fingerprint(estimator)
    estimator._alpha_of_fit = level_in_force(estimator) if scorer.uses_alpha else None
