"""Default scorer, which combines base scorers with a linear model trained through calibration."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._parameters import at_least, settings
from ..graphs import GraphBatch
from ..training import SoftTraining
from ..training.gain import Gain, check_gain
from ._classifier import ClassifierScorer
from ._hazards import NeymanPearsonScorer
from ._models import ConfTrScorer, LinearModel
from ._scorer import (
    FitTask,
    Folded,
    Scorer,
    confidence_of_each,
    fit_folds,
    folds,
    need_features,
    run_of,
)

# Initial weights for columns with unit standard deviation. The fitted weights are shrunk towards
# these initial weights. On ten published data sets, other values result in the same number of
# kept claims within one standard error.
START = {"neyman-pearson": np.e, "regression": 1.0}
SHRINKAGE = 100.0


@dataclass(frozen=True)
class Selection:
    """Weights of the base scorers in a stack.

    Parameters
    ----------
    alpha : float
        The level for which the stack was fitted.
    scorers : tuple of str
        Base scorer names.
    weights : ndarray of shape (n_scorers,)
        Weights of the standardised confidences, divided by the sum of the absolute weights. The
        weights are NaN unless the last step is a linear model.
    n_folds : int
        Number of folds used to compute out-of-fold confidences for the last step, or 0 if all
        problems are in the same group.
    """

    alpha: float
    scorers: tuple[str, ...]
    weights: np.ndarray
    n_folds: int


@settings
class StackingScorer(Scorer):
    """Scorer that combines base scorers with a last step that is trained through calibration.

    The columns of the last step are the out-of-fold confidences of the base scorers on the
    training problems, each divided by its standard deviation. The default last step is a linear
    model, trained at alpha through soft calibration with the filter's ``relaxation`` and
    ``training``. Problems from the same group are always in the same fold.

    Parameters
    ----------
    scorers : dict of str to Scorer, or None, default=None
        The base scorers, keyed by name. If None, `NeymanPearsonScorer` ("neyman-pearson") and a
        logistic regression that estimates hazards ("regression") are used. The initial weights of
        these scorers are e and 1, respectively. The initial weight of any other scorer is 1.
    final : Scorer or None, default=None
        Scorer used as the last step, with one column per base scorer. If None,
        ``ConfTrScorer(LinearModel())`` is used, with a shrinkage of 100 towards the initial
        weights unless ``training`` sets the shrinkage.
    n_folds : int, default=3
        Number of folds, which is limited to the number of groups.
    gain : float in [0, 1], {"claims", "answers"} or callable, default=0.5
        Value assigned to the kept claims of an answer, used by "neyman-pearson" and in the
        training of the last step. If ``gain`` is a number, the value is the number of kept claims
        raised to this power. A callable must use functions from ``autograd.numpy``.

    Attributes
    ----------
    scorers_ : dict of str to fitted Scorer
        The fitted base scorers, keyed by name.
    final_ : fitted Scorer
        The fitted last step.
    selection_ : Selection
        The trained weights.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ClassifierScorer, NeymanPearsonScorer, StackingScorer
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> scorers = {"trees": NeymanPearsonScorer(), "logistic": ClassifierScorer()}
    >>> cf = HardCF(StackingScorer(scorers), random_state=0).fit(graphs, y)
    >>> cf.scorer_.selection_.scorers
    ('trees', 'logistic')
    """

    _parameter_constraints = {
        "scorers": [None, dict],
        "final": [None, Scorer],
        "n_folds": [at_least(2, Integral)],
    }
    requires_fit = uses_alpha = True

    scorers: dict[str, Scorer] | None = None
    _: KW_ONLY
    final: Scorer | None = None
    n_folds: int = 3
    gain: Gain = 0.5

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or if the parameters are incompatible."""
        super().validate()
        check_gain(self.gain)
        if self.scorers is None:
            return
        if not self.scorers:
            raise ValueError("scorers must contain at least one scorer, got {}")
        for name, scorer in self.scorers.items():
            if not isinstance(scorer, Scorer):
                raise ValueError(f"scorers[{name!r}] must be a Scorer, got {scorer!r}")
            scorer.validate()

    @property
    def uses_relaxation(self) -> bool:  # type: ignore[override]
        """Whether the last step or a base scorer is trained through a relaxation."""
        if self.final is None or self.final.uses_relaxation:
            return True
        return any(scorer.uses_relaxation for scorer in self._base().values())

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        return self._fit_into([self], batch, labels, [task or FitTask()])[0]

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[FitTask]
    ) -> list:
        fresh = [clone(self) for _ in tasks]
        return self._fit_into(fresh, batch, labels, tasks)

    def _fit_into(self, stacks, batch, labels, tasks):
        """Fit the base scorers for all levels together, then fit the last step for each level."""
        self.validate()
        need_features(batch)
        first = tasks[0]  # The tasks differ only in alpha.
        training = self._training(first.training)
        fold_of = folds(len(batch), first.groups, self.n_folds, first.rng)
        n_folds = int(fold_of.max()) + 1 if fold_of.any() else 0
        folded = Folded(batch, fold_of)

        # The fitted scorer and the out-of-fold confidences of each base scorer at each level.
        fitted: dict[str, list] = {}
        columns = []
        for name, scorer in self._base().items():
            seed = first.rng.randint(2**31 - 1)
            seeded = [replace(t, rng=np.random.RandomState(seed)) for t in tasks]
            fitted[name], unseen = _fit_base(scorer, folded, labels, seeded)
            columns.append(unseen)

        jobs = []
        for i, (stack, task) in enumerate(zip(stacks, tasks, strict=True)):
            stack.scorers_ = {name: scorers[i] for name, scorers in fitted.items()}
            table = np.column_stack([column[i] for column in columns])
            deviation = table.std(axis=0)
            stack._scale = np.where(deviation > 0, deviation, 1.0)
            verbose = task.verbose if len(tasks) == 1 else 0
            task = replace(task, training=training, verbose=verbose)
            train = partial(stack._fresh_final().fit, stack._as_columns(batch, table))
            jobs.append(partial(train, labels, task))
        finals = run_of(first, jobs, self, unit="level")
        for stack, task, final in zip(stacks, tasks, finals, strict=True):
            stack.final_ = final
            stack.selection_ = Selection(
                task.alpha,
                scorers=tuple(fitted),
                weights=_weights(final, len(fitted)),
                n_folds=n_folds,
            )
        return stacks

    def _base(self):
        """Return the unfitted base scorers."""
        if self.scorers is not None:
            return {name: clone(scorer) for name, scorer in self.scorers.items()}
        hazards = NeymanPearsonScorer(gain=self.gain)
        return {"neyman-pearson": hazards, "regression": ClassifierScorer()}

    def _fresh_final(self):
        if self.final is not None:
            return clone(self.final)
        return ConfTrScorer(LinearModel(), clip=np.inf)

    def _training(self, training):
        """Return the training settings of the last step.

        A ValueError is raised for settings that the stack itself determines.
        """
        if training is None:
            training = SoftTraining()
        settled = {"gain": "StackingScorer(gain=)"}
        if self.final is None:
            settled["init"] = 'scorer="linear"'
        for name, instead in settled.items():
            if getattr(training, name) is not None:
                raise ValueError(
                    f"training.{name} must be None, got {getattr(training, name)!r}. The stack "
                    f"sets this parameter. Leave it at None, or use {instead}"
                )
        if self.final is not None:
            return replace(training, gain=self.gain)
        start = [1.0] * len(self.scorers) if self.scorers else list(START.values())
        return training.resolved(
            init=np.array(start), shrinkage=SHRINKAGE, gain=self.gain
        )

    def _as_columns(self, batch, table):
        return batch.replace_features(table / self._scale, list(self.scorers_))

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective of the last step in each iteration."""
        return self.final_.loss_curve_  # type: ignore[attr-defined]

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        each = [scorer.confidence(batch) for scorer in self.scorers_.values()]
        return self.final_.confidence(self._as_columns(batch, np.column_stack(each)))


def _fit_base(scorer, folded, labels, tasks):
    """Return one fitted scorer per level, and the out-of-fold confidences if there are folds."""
    if not folded.fold_of.any():
        scorers = scorer.fit_levels(folded.batch, labels, tasks)
        return scorers, confidence_of_each(scorers, folded.batch)
    # The fitted scorer uses the hazards from all folds.
    if isinstance(scorer, NeymanPearsonScorer):
        return scorer.fit_folds(folded, labels, tasks)
    return fit_folds(scorer, folded, labels, tasks)


def _weights(final, n_scorers):
    coefficients = getattr(final, "coef_", np.full(n_scorers, np.nan))
    total = np.abs(coefficients).sum()
    return coefficients / total if total > 0 else coefficients
