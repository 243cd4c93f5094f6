"""Select the eligible problems, and split them into training and calibration problems.

The calibration problems must be a random sample. If people judged some answers and a model judged
others, only the answers judged by people are used for calibration. Answers from a review or an
audit are not used for calibration, because a filter selected which of their claims were judged.
All problems whose question is not used for calibration can be used for training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs.sources import read_sources
from ..guards.judges import kinds_of, labels_of_people, person_judged
from ..training.splitting import hold_out, number_groups
from ._validation import View

# Values of ``metadata["sampling"]``. In a review, a person checks claims that a filter
# chose. In an audit, a person judges texts that a filter kept.
CHOSEN_BY_FILTER = ("review", "audit")


@dataclass(frozen=True)
class Selection:
    """Eligible problems, including the candidates for calibration.

    Attributes
    ----------
    view : View
        The eligible problems.
    candidates : ndarray of int
        Indices of the problems that may be used for calibration.
    judges_are_mixed : bool
        True if people judged the candidates and a model judged the other problems. If the judges
        are mixed, all candidates are used for calibration, and all other problems are used for
        training.
    """

    view: View
    candidates: NDArray[np.int64]
    judges_are_mixed: bool = False

    @cached_property
    def question(self) -> NDArray[np.int64]:
        """Question index of each problem."""
        assert self.view.hashes is not None
        question = self.view.hashes.question
        all_alone = (question < 0).all()
        return np.arange(len(question)) if all_alone else number_groups(question)

    @cached_property
    def question_of_candidates(self) -> NDArray[np.int64]:
        """Question index of each candidate, numbered consecutively."""
        if len(self.candidates) == len(self.question):
            return self.question
        return number_groups(self.question[self.candidates])

    @property
    def n_questions(self) -> int:
        """Number of questions among the candidates."""
        return int(self.question_of_candidates.max()) + 1

    @cached_property
    def others_may_train(self) -> bool:
        """Whether training problems remain if all candidates are used for calibration."""
        return not np.isin(self.question, self.question[self.candidates]).all()

    @property
    def not_candidates(self) -> NDArray[np.bool_] | None:
        """Mask of the problems that are not candidates, or None if all problems are candidates.

        Problems that are not candidates were labelled by a model, in a review or in an audit, and
        some of their labels may come from a person.
        """
        apart = np.ones(len(self.question), dtype=bool)
        apart[self.candidates] = False
        return apart if apart.any() else None

    def split(self, n_held, rng):
        """Return the indices of the training problems and of the calibration problems.

        Parameters
        ----------
        n_held : int or None
            Number of questions used for calibration. If None, all candidates are used.
        rng : RandomState
            Source of randomness.

        Returns
        -------
        training, calibration : ndarray of int, sorted
            The positions. Each training problem has at least one judged claim, or no claims at
            all.
        """
        calibration = self.candidates
        if n_held is not None and n_held < self.n_questions:
            question = self.question_of_candidates
            _, held_out = hold_out(len(calibration), n_held, question, rng)
            calibration = calibration[held_out]
        calibrates = np.isin(self.question, self.question[calibration])
        training = np.flatnonzero(~calibrates)
        if len(training):
            training = self._judged(training)
        return training, calibration

    def _judged(self, rows):
        """Return rows with a judged claim or without claims, or all rows if no claim is judged."""
        train = self.view.take(rows)
        judged = judged_problems(train.raw, train.labels)
        empty = train.raw.sizes == 0
        return rows[judged | empty] if judged.any() else rows


def select(view, *, to_train=True):
    """Select the eligible problems for a fit, and the candidates for calibration.

    Parameters
    ----------
    view : View
        The problems, including their labels, hashes and rows.
    to_train : bool
        Whether answers from a review or an audit may be used for training.

    Returns
    -------
    selection : Selection
        The selection. In the selected view, answers judged by people contain no labels from
        models.
    """
    rows, reviewed = rows_that_count(view.raw, view.labels, to_train)
    view = view.take(rows)
    if len(kinds_of(view.judges)) == 2:
        view = replace(view, labels=labels_of_people(view.labels, view.raw))
        people = np.flatnonzero(person_judged(view.judges))
        return Selection(view, people, judges_are_mixed=True)
    return Selection(view, np.flatnonzero(~reviewed))


def select_to_calibrate(view):
    """Select the problems for a call to ``calibrate``, which does not train a scorer."""
    selection = select(view, to_train=False)
    warn_of_unused(selection)
    return selection


def warn_of_unused(selection):
    """Warn about answers that are used neither for calibration nor for training."""
    n = len(selection.question) - len(selection.candidates)
    if selection.judges_are_mixed:
        warn_of_models(len(selection.candidates), n)
    elif n:
        warn(
            f"{n} answers that were labelled in a review or an audit are ignored. Such "
            "answers cannot be used for calibration, and this scorer does not need "
            "training.",
            LabelWarning,
        )


def warn_of_models(n_people, n_left_out):
    """Warn that model labels are ignored because no training is required."""
    warn(
        f"Only the {n_people} answers judged by people are used for calibration. The "
        f"other {n_left_out} answers are ignored, because labels from a model are "
        "only used for training, and this filter does not need training.",
        LabelWarning,
    )


def rows_that_count(batch, labels, to_train):
    """Return the row indices of the eligible problems, and which of these problems were reviewed.

    All problems are eligible unless the judged problems were drawn at random. If the judged
    problems were drawn at random, only these problems are eligible, because unjudged claims would
    otherwise count as false. An empty answer is eligible only if it precedes the last judged
    answer in the random order in which the answers are judged. If all empty answers were
    eligible, the error rate would be underestimated. If ``to_train`` is True, reviewed answers
    are also eligible.
    """
    sizes = batch.sizes
    rows = np.arange(len(sizes))
    if batch.metadata is None:
        return rows, np.zeros(len(sizes), dtype=bool)
    drawn = np.empty(len(sizes), dtype=object)
    drawn[:] = [row.get("sampling") for row in batch.metadata_rows]
    reviewed = np.isin(drawn, CHOSEN_BY_FILTER)
    if reviewed.any() and (reviewed.all() or not to_train):
        raise ValueError(
            f"the calibration answers must be drawn at random, but {int(reviewed.sum())} "
            f"problems (the first is {batch.name_of(int(np.argmax(reviewed)))}) were "
            "labelled in a review or an audit, which only covers claims selected by a "
            "filter. Leave these problems out, or pass them to fit together with "
            "randomly drawn answers"
        )
    judged = judged_problems(batch, labels) & ~reviewed
    has_claims = (sizes > 0) & ~reviewed
    partly_judged = judged.any() and not judged[has_claims].all()
    if partly_judged and (drawn[judged] == "random").all():
        reached = (sizes == 0) & (drawn == "reached")
        rows = rows[judged | reached | reviewed]
    return rows, reviewed[rows]


def judged_problems(batch, labels):
    """Return whether each problem has at least one judged claim.

    A claim marked "unsure" counts as judged if the metadata show that a person examined it. If
    difficult claims were left out, the error rate would be underestimated.
    """
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    if batch.metadata is None:
        return judged
    for i in np.flatnonzero(~judged):
        sources = read_sources(batch.metadata[i], int(batch.sizes[i]))
        judged[i] = any(row and row["kind"] == "human" for row in sources)
    return judged
