"""Several scorers in one, weighed by what they keep on problems they have not seen."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._parameters import at_least, settings
from ..ops.conformal import leave_one_out_alpha
from ..ops.hard import nonconformity_scores, path_risk, segment_sum
from ._differentiable import ConformalScorer, LinearScorer
from ._hazards import Gain, NeymanPearsonScorer, PublicPrior, worth_of
from ._scorer import Scorer, Task, confidence_of_each, folds, need_features

if TYPE_CHECKING:
    from ..graphs import GraphBatch

MANY = 1000  # training problems up to which a public prior is worth its time
FEW = 60  # problems; up to here the weights stay closer together
N_LEVELS = 9
TEMPERATURE = 0.05  # of the softmax, as a share of the best retention
LEANING = 0.0, 2.0  # log weights of the default members that keep the same


@dataclass(frozen=True)
class Selection:
    """How the weights of a mixture came about.

    Parameters
    ----------
    alpha : float
        The level that it was made for.
    members : tuple of str
    weights : ndarray of shape (n_members,)
        Positive, of sum 1.
    retention : ndarray of shape (n_members,)
        True claims kept per problem around ``alpha`` by each member alone, on training
        problems that it had not seen; NaN where there were too few problems to tell.
    n_folds : int
        Of that cross-validation; 0 where there was none.
    prior : str, default=""
        What the public prior did, or why it was left out; empty with members of your own.
    """

    alpha: float
    members: tuple
    weights: np.ndarray
    retention: np.ndarray
    n_folds: int
    prior: str = ""


@settings
class MixtureScorer(Scorer):
    """Weighted sum of scorers, each in units of its own deviation.

    The members' confidences on problems that they were not trained on say how many true
    claims each would keep alone; the weights are a softmax of these numbers. Folds share
    no group.

    Parameters
    ----------
    members : dict of str to Scorer, or None, default=None
        None is a linear model trained through soft calibration ("linear") and
        `NeymanPearsonScorer` ("neyman-pearson"), of which the second is the better one
        unless the folds say otherwise: where both keep the same, it weighs e^2 times as
        much.
    public_prior : bool or PublicPrior, default=True
        Whether the second of the default members blends in hazards learnt on public
        labels. True does so where it may help: the columns of
        `skdcf.features.reasoning_features` are there, at most 1,000 problems train, none
        of their questions is among those that it was learnt from, and they are not
        farther from these than the sources are from each other. ``selection_.prior``
        says what came of it. A `PublicPrior` is used or refused.
    n_folds : int, default=3
        Of the cross-validation; no more are made than there are groups.
    gain : {"claims", "answers"} or callable, default="claims"
        What kept claims are worth, for the weights and for the second of the default
        members; see `NeymanPearsonScorer`.

    Attributes
    ----------
    members_ : dict of str to fitted Scorer
    selection_ : Selection

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import ClassifierScorer, MixtureScorer, NeymanPearsonScorer
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> members = {"trees": NeymanPearsonScorer(), "logistic": ClassifierScorer()}
    >>> cf = HardCF(MixtureScorer(members), random_state=0).fit(graphs, y)
    >>> cf.scorer_.selection_.members
    ('trees', 'logistic')
    """

    _parameter_constraints = {
        "members": [None, dict],
        "public_prior": ["boolean", PublicPrior],
        "n_folds": [at_least(2, Integral)],
    }
    learns = uses_alpha = True

    members: dict[str, Scorer] | None = None
    _: KW_ONLY
    public_prior: bool | PublicPrior = True
    n_folds: int = 3
    gain: Gain = "claims"

    def validate(self) -> None:
        """Raise ValueError unless members, weights and numbers fit together."""
        super().validate()
        worth_of(self.gain)
        if self.public_prior not in (True, False) and self.members is not None:
            raise ValueError(
                "public_prior is set, but only the default members would use it: pass it "
                "to the NeymanPearsonScorer among your members"
            )
        for name, member in (self.members or {}).items():
            if not isinstance(member, Scorer):
                raise ValueError(f"member {name!r} is {member!r}, but must be a Scorer")
            member.validate()
        if not self._fresh_members():
            raise ValueError("there are 0 members, but at least one is needed")

    @property
    def uses_relaxation(self) -> bool:  # type: ignore[override]
        """Whether some member trains through a relaxation."""
        return any(m.uses_relaxation for m in self._fresh_members().values())

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Fit the members and weigh them.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`.

        Returns
        -------
        self
        """
        return self._fit_into([self], batch, labels, [task or Task()])[0]

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[Task]
    ) -> list[Self]:
        """One mixture per task; members that know no alpha are fitted once.

        Parameters
        ----------
        batch, labels, tasks
            As in `Scorer.fit_levels`.

        Returns
        -------
        list of MixtureScorer
        """
        fresh = [clone(self) for _ in tasks]
        return self._fit_into(fresh, batch, labels, tasks)

    def _fit_into(self, mixtures, batch, labels, tasks):
        self.validate()
        need_features(batch)
        rng, (prior, said) = tasks[0].rng, self._admit_prior(batch, tasks[0])
        fold_of = folds(len(batch), tasks[0].groups, self.n_folds, rng)
        levels, unseen = [], []
        for member in self._fresh_members(prior).values():
            seed = rng.randint(2**31 - 1)
            own = [replace(task, rng=np.random.RandomState(seed)) for task in tasks]
            fitted, confidences = _fit_member(member, batch, labels, own, fold_of)
            levels.append(fitted)
            unseen.append(confidences)
        of_level = zip(*levels, strict=True), np.stack(unseen, axis=1)
        n_folds = int(fold_of.max()) + 1 if fold_of.any() else 0
        for mixture, task, *members in zip(mixtures, tasks, *of_level, strict=True):
            mixture._weigh(*members, task, batch, labels, n_folds)
            mixture.selection_ = replace(mixture.selection_, prior=said(mixture))
            if task.verbose:
                print(mixture.selection_)
        return mixtures

    def _admit_prior(self, batch, task):
        """The public prior to use or None, and what to say of it afterwards."""
        prior = self.public_prior
        if self.members is not None:
            return None, lambda mixture: ""
        if prior not in (True, False):
            return prior, _say_blend
        reason = "turned off"
        if prior:
            reason = _reason_against(PublicPrior(), batch, task)
        if reason:
            return None, lambda mixture: f"left out: {reason}"
        return PublicPrior(), _say_blend

    def _weigh(self, members, confidences, task, batch, labels, n_folds):
        names = tuple(self._fresh_members())
        retention = np.full(len(names), np.nan)
        if n_folds:
            worth = worth_of(self.gain)
            retention = np.array(
                [_retention(c, batch, labels, task.alpha, worth) for c in confidences]
            )
        deviation = confidences.std(axis=1)
        self.members_ = dict(zip(names, members, strict=True))
        self._centre = confidences.mean(axis=1)
        self._scale = np.where(deviation > 0, deviation, 1.0)
        weights = self._weights(retention, task.alpha, len(batch))
        self.selection_ = Selection(task.alpha, names, weights, retention, n_folds)

    def _weights(self, retention, alpha, n):
        before = np.array(LEANING if self.members is None else [0.0] * len(retention))
        best = retention.max()
        if not best > 0:  # nothing kept, or no cross-validation
            return softmax(before)
        temperature = max(TEMPERATURE, 1 / (alpha * n)) if n <= FEW else TEMPERATURE
        return softmax(before + retention / (temperature * best))

    def _fresh_members(self, public_prior=None):
        if self.members is None:
            # From zeros, so that nothing but the folds is left to chance.
            linear = ConformalScorer(LinearScorer(spread=0.0))
            prices = NeymanPearsonScorer(gain=self.gain, public_prior=public_prior)
            return {"linear": linear, "neyman-pearson": prices}
        return {name: clone(member) for name, member in self.members.items()}

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective per step of the first member that has one."""
        for member in self.members_.values():
            if hasattr(member, "loss_curve_"):
                return member.loss_curve_
        raise AttributeError("loss_curve_: no member is trained step by step")

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems some member knew before, as in `Scorer.saw`.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return np.any([m.saw(batch) for m in self.members_.values()], axis=0)

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        each = np.array([m.confidence(batch) for m in self.members_.values()])
        each -= self._centre[:, None]
        return (self.selection_.weights / self._scale) @ each


def _reason_against(prior, batch, task):
    """Why the public prior is left out of a default mixture; None if it is not."""
    if len(batch) > MANY:
        return f"{len(batch)} problems train, and from {MANY + 1} on it adds little"
    try:
        distance = prior.fit(batch, None, task).distance(batch)
    except ValueError as error:
        return str(error)
    if distance > prior.farthest_:
        return (
            f"the problems are {distance:.2f} deviations from its sources, which are at "
            f"most {prior.farthest_:.2f} from each other"
        )
    return None


def _say_blend(mixture):
    b, own, public = mixture.members_["neyman-pearson"].blend_
    return f"log odds {b:.2f} + {own:.2f} own + {public:.2f} public"


def _fit_member(member, batch, labels, tasks, fold_of):
    """One fitted member per level, and its confidences out of fold where there are any."""
    with warnings.catch_warnings():  # of a fold without errors, say: it weighs less
        warnings.simplefilter("ignore", ConvergenceWarning)
        if fold_of.any():
            return member.fit_folds(batch, labels, tasks, fold_of)
        levels = member.fit_levels(batch, labels, tasks)
    return levels, confidence_of_each(levels, batch)


def _retention(confidence, batch, labels, alpha, worth=np.positive):
    """What is kept per problem is worth, by leave-one-out, averaged over levels."""
    n, true = len(batch), labels == 1
    risk = path_risk(-confidence, batch)
    scores = nonconformity_scores(risk, labels, batch.offsets)
    kept_from = leave_one_out_alpha(scores, risk, batch.problem_of)
    bounds = max(0.6 * alpha, 1.5 / n), max(1.6 * alpha, 6.5 / n)
    levels = np.minimum(np.geomspace(*bounds, N_LEVELS), 1 - 0.5 / n)
    counts = [segment_sum(true & (kept_from <= a), batch.offsets) for a in levels]
    return worth(np.array(counts, dtype=np.float64)).sum(axis=1).mean() / n
