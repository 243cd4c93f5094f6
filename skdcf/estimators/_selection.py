"""Split the problems into training and calibration problems.

The calibration problems are a random sample of the questions. All problems whose question is not
used for calibration can be used for training.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..training.splitting import hold_out, number_groups
from ._validation import View


@dataclass(frozen=True)
class Selection:
    """Labelled problems and their questions.

    Attributes
    ----------
    view : View
        The problems, including their labels, hashes and rows.
    """

    view: View

    @cached_property
    def question(self) -> NDArray[np.int64]:
        """Question index of each problem."""
        assert self.view.hashes is not None
        question = self.view.hashes.question
        all_alone = (question < 0).all()
        return np.arange(len(question)) if all_alone else number_groups(question)

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return int(self.question.max()) + 1

    def split(self, n_held, rng):
        """Return the indices of the training problems and of the calibration problems.

        Parameters
        ----------
        n_held : int or None
            Number of questions used for calibration. If None, all problems are used.
            If 0, all problems are used for training.
        rng : RandomState
            Source of randomness.

        Returns
        -------
        training, calibration : ndarray of int, sorted
            The positions. Each training problem has at least one judged claim, or no claims at
            all.
        """
        every = np.arange(len(self.question))
        if n_held is None or n_held == self.n_questions:
            return every[:0], every
        if n_held == 0:
            return self.judged(every), every[:0]
        training, calibration = hold_out(len(every), n_held, self.question, rng)
        return self.judged(training), calibration

    def judged(self, rows):
        """Return rows with a judged claim or without claims, or all rows if no claim is judged."""
        train = self.view.take(rows)
        batch = train.raw
        judged = np.bincount(batch.problem_of[train.labels >= 0], minlength=len(batch))
        return rows[(judged > 0) | (batch.sizes == 0)] if judged.any() else rows
