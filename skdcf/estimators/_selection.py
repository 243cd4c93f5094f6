"""Which problems count, and which of them train and calibrate.

Problems that calibrate have to be drawn blindly. If people judged some answers and a model
others, those of people calibrate; answers of a review or an audit never do, since a filter chose
what was asked about. One rule says what trains: all problems whose question is not used for
calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs.sources import read_sources
from ..guards.judges import judges_of, kinds_of, labels_of_people, person_judged
from ..training.splitting import hold_out, number_groups
from ._validation import View

# What ``metadata["sampling"]`` says if a filter chose what was judged.
NOT_BLIND = ("review", "audit")


@dataclass(frozen=True)
class Selection:
    """The problems that count, and who of them may calibrate.

    Attributes
    ----------
    view : View
        The problems that count.
    candidates : ndarray of int
        Positions of the problems that may calibrate.
    all_calibrate : bool
        Whether all of these do, since people judged them and a model others.
    """

    view: View
    candidates: NDArray[np.int64]
    all_calibrate: bool = False

    @cached_property
    def question(self) -> NDArray[np.int64]:
        """The number of the question of each problem."""
        assert self.view.hashes is not None
        question = self.view.hashes.question
        all_alone = (question < 0).all()
        return np.arange(len(question)) if all_alone else number_groups(question)

    @cached_property
    def question_of_candidates(self) -> NDArray[np.int64]:
        """The number of the question of each problem that may calibrate, without gaps."""
        if len(self.candidates) == len(self.question):
            return self.question
        return number_groups(self.question[self.candidates])

    @property
    def n_questions(self) -> int:
        """Number of questions that may calibrate."""
        return int(self.question_of_candidates.max()) + 1

    @cached_property
    def others_train(self) -> bool:
        """Whether answers of a review or an audit train if all candidates calibrate."""
        return not np.isin(self.question, self.question[self.candidates]).all()

    @property
    def judged_twice(self) -> NDArray[np.bool_] | None:
        """The problems that cannot calibrate, which may be copies of some that can."""
        apart = np.ones(len(self.question), dtype=bool)
        apart[self.candidates] = False
        return apart if apart.any() else None

    def split(self, n_held, rng):
        """Positions of the problems that train, and of those that calibrate.

        Parameters
        ----------
        n_held : int or None
            Number of questions that calibrate; None is all that may.
        rng : RandomState

        Returns
        -------
        training, calibration : ndarray of int, sorted
            Training problems have a judged claim, or no claims at all.
        """
        calibration = self.candidates
        if n_held is not None and n_held < self.n_questions:
            question = self.question_of_candidates
            _, held = hold_out(len(calibration), n_held, question, rng)
            calibration = calibration[held]
        calibrates = np.isin(self.question, self.question[calibration])
        training = np.flatnonzero(~calibrates)
        if len(training):
            training = self._judged(training)
        return training, calibration

    def _judged(self, rows):
        """The problems with a judged claim, and empty ones; all where nothing was judged."""
        train = self.view.take(rows)
        judged = judged_problems(train.passed, train.labels)
        empty = train.passed.sizes == 0
        return rows[judged | empty] if judged.any() else rows


def select(view):
    """Select the problems of a fit.

    Parameters
    ----------
    view : View
        With labels, hashes and rows.

    Returns
    -------
    Selection
        The verdicts of a model on answers that people judged are unknown in its view.
    """
    rows, reviewed = rows_that_count(view.passed, view.labels, to_train=True)
    view = view.take(rows)
    judges = judges_of(view.passed)
    if len(kinds_of(judges)) == 2:
        view = replace(view, labels=labels_of_people(view.labels, view.passed))
        people = np.flatnonzero(person_judged(judges))
        return Selection(view, people, all_calibrate=True)
    return Selection(view, np.flatnonzero(~reviewed))


def select_to_calibrate(view):
    """The problems of a call of ``calibrate``, where nothing trains."""
    rows, _ = rows_that_count(view.passed, view.labels)
    selection = select(view.take(rows))
    warn_of_unused(selection)
    return selection.view.take(selection.candidates)


def warn_of_unused(selection):
    """Warn of problems that cannot calibrate if nothing learns from them."""
    n = len(selection.question) - len(selection.candidates)
    if selection.all_calibrate:
        warn_of_models(len(selection.candidates), n)
    elif n:
        warn(
            f"{n} of these answers are those of a review or an audit, "
            "which do not calibrate, and nothing here learns from them: they are left out",
            LabelWarning,
        )


def warn_of_models(n_people, n_left_out):
    """Warn that a model's verdicts are left out if nothing learns from them."""
    warn(
        f"people judged {n_people} of these answers, which calibrate alone: nothing here "
        f"learns from a model's verdicts, and the other {n_left_out} answers are left out",
        LabelWarning,
    )


def rows_that_count(batch, labels, *, to_train=False):
    """Problems that count: all, or only the judged ones where these were drawn at random.

    The others say nothing then, and would count as false. Nor does an answer without claims
    count, unless judging in random order had come to it: beside few judged answers, all
    the empty ones would pass for answers without errors. With ``to_train`` those of a review
    count, too, and a mask says which they are.
    """
    sizes = batch.sizes
    rows = np.arange(len(sizes))
    if batch.metadata is None:
        return rows, np.zeros(len(sizes), dtype=bool)
    drawn = np.empty(len(sizes), dtype=object)
    drawn[:] = [(row or {}).get("sampling") for row in batch.metadata]
    reviewed = np.isin(drawn, NOT_BLIND)
    if reviewed.any() and (reviewed.all() or not to_train):
        raise ValueError(
            f"{int(reviewed.sum())} problems, {batch.name_of(int(np.argmax(reviewed)))} "
            "first, have the verdicts of a review or an audit, in which a filter chose what "
            "is asked about. What calibrates has to be drawn blindly: leave them out, or fit "
            "on them together with answers that were drawn so, so that they train"
        )
    judged = judged_problems(batch, labels) & ~reviewed
    has_claims = (sizes > 0) & ~reviewed
    partly_judged = judged.any() and not judged[has_claims].all()
    if partly_judged and (drawn[judged] == "random").all():
        reached = (sizes == 0) & (drawn == "reached")
        rows = rows[judged | reached | reviewed]
    return rows, reviewed[rows]


def judged_problems(batch, labels):
    """Whether any claim of each problem was judged.

    Unsure counts as judged where the metadata say that a person looked at the claim: leaving
    hard claims out would make the error rate look too low.
    """
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    if batch.metadata is None:
        return judged
    for i in np.flatnonzero(~judged):
        sources = read_sources(batch.metadata[i], int(batch.sizes[i]))
        judged[i] = any(row and row["kind"] == "human" for row in sources)
    return judged
