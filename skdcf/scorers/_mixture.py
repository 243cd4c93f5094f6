"""The default: a mixture of scorers, weighed by how much each keeps out of fold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from .._parameters import at_least, settings
from ..graphs import GraphBatch
from ..ops.conformal import leave_one_out_alpha
from ..ops.hard import nonconformity_scores, path_risk, segment_sum
from ._classifier import ClassifierScorer
from ._hazards import Gain, NeymanPearsonScorer, check_gain, worth_of
from ._models import ConfTrScorer, LinearModel
from ._prior import PublicPrior
from ._scorer import (
    FitTask,
    Folded,
    Scorer,
    confidence_of_each,
    fit_folds,
    folds,
    need_features,
)

FEW_FOR_WEIGHTS = 120  # problems up to which folds tell little of what a member keeps
# Retention is a mean over levels around alpha, since at one level it jumps: a rank is a
# whole number of problems. Where there are few, the range is wider and lies higher.
N_LEVELS = 9
LOWEST, HIGHEST = 0.6, 1.6  # levels, as multiples of alpha
# And as numbers of problems, where alpha times their number is small.
LOWEST_RANK, HIGHEST_RANK = 1.5, 6.5
TEMPERATURE = 0.05  # of the softmax, as a share of the best retention
# Log weights of the default members where they keep the same. On eight published sets
# other leanings keep the same within their errors (benchmarks/retention/default_scorer.py).
LEANING = {"linear": 0.0, "neyman-pearson": 2.0, "regression": 1.0}


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
        What each member alone keeps per problem around ``alpha``, on training problems that
        it had not seen: true claims, or what they are worth where ``gain`` is not 1. NaN
        where all problems were of one group.
    n_folds : int
        Of the cross-validation behind ``retention``; 0 where there was none.
    prior : str, default=""
        How a public prior was blended in, or why nothing was learnt; else empty.
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

    The members' confidences on problems that they were not trained on say what each would
    keep alone; the weights are a softmax of these numbers. Up to 120 problems, which tell
    little about that, they stay closer together where ``alpha * n`` is below 20. Folds
    share no group.

    Parameters
    ----------
    members : dict of str to Scorer, or None, default=None
        None is a linear model trained through soft calibration ("linear"),
        `NeymanPearsonScorer` ("neyman-pearson") and a logistic regression of the hazards
        ("regression"). Where all keep the same, the second weighs e^2 times as much as the
        first, and e times as much as the third. Where a public prior is blended in, only
        the second one trains, unless ``relaxation`` or ``training`` of the filter is set,
        which are the first one's.
    public_prior : PublicPrior or None, default=None
        Hazards learnt on public labels, which the second of the default members blends
        with its own. ``selection_.prior`` has the weights of the blend.
    n_folds : int, default=3
        Of the cross-validation; no more are made than there are groups.
    gain : float in [0, 1], {"claims", "answers"} or callable, default=0.75
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
        "public_prior": [None, PublicPrior],
        "n_folds": [at_least(2, Integral)],
    }
    requires_fit = uses_alpha = True

    members: dict[str, Scorer] | None = None
    _: KW_ONLY
    public_prior: PublicPrior | None = None
    n_folds: int = 3
    gain: Gain = 0.75

    def validate(self) -> None:
        """Raise ValueError unless members, prior and numbers fit together."""
        super().validate()
        check_gain(self.gain)
        if self.public_prior is not None and self.members is not None:
            raise ValueError(
                "public_prior is set with members of your own: pass it to the "
                "NeymanPearsonScorer among them"
            )
        for name, member in (self.members or {}).items():
            if not isinstance(member, Scorer):
                raise ValueError(f"member {name!r} is {member!r}, but must be a Scorer")
            member.validate()
        if self.members == {}:
            raise ValueError("there are 0 members, but at least one is needed")

    @property
    def uses_relaxation(self) -> bool:  # type: ignore[override]
        """Whether some member trains through a relaxation."""
        return any(m.uses_relaxation for m in self._fresh_members().values())

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        return self._fit_into([self], batch, labels, [task or FitTask()])[0]

    def fit_levels(
        self, batch: GraphBatch, labels: NDArray, tasks: list[FitTask]
    ) -> list:
        fresh = [clone(self) for _ in tasks]
        return self._fit_into(fresh, batch, labels, tasks)

    def _fit_into(self, mixtures, batch, labels, tasks):
        """Fit the members for all levels together, and weigh them for each."""
        self.validate()
        need_features(batch)
        first_task = tasks[0]  # levels differ in alpha alone
        rng = first_task.rng

        # All are of one fold where there is only one group.
        fold_of = folds(len(batch), first_task.groups, self.n_folds, rng)
        n_folds = int(fold_of.max()) + 1 if fold_of.any() else 0
        folded = Folded(batch, fold_of)

        fresh = self._fresh_members(first_task.training)
        if self.public_prior is not None:
            # The others add nothing to a blend (benchmarks.retention.few_labels). The settings of
            # a filter are for the linear one, which stays where there are any.
            fresh.pop("regression")
            if not (first_task.relaxation or first_task.training):
                fresh.pop("linear")

        # Of each member a fitted scorer, and the confidences out of fold, for each level.
        fitted: dict[str, list] = {}
        confidences = np.empty((len(fresh), len(tasks), batch.n_claims))
        for row, (name, member) in enumerate(fresh.items()):
            seed = rng.randint(2**31 - 1)
            seeded = [replace(t, rng=np.random.RandomState(seed)) for t in tasks]
            fitted[name], confidences[row] = _fit_member(member, folded, labels, seeded)

        for i, (mixture, task) in enumerate(zip(mixtures, tasks, strict=True)):
            mixture.members_ = {name: fitted[name][i] for name in fresh}
            mixture._weigh(
                confidences[:, i],
                task,
                batch=batch,
                labels=labels,
                n_folds=n_folds,
            )
            if task.verbose:
                print(mixture.selection_)
        return mixtures

    def _weigh(self, confidences, task, *, batch, labels, n_folds):
        names = tuple(self.members_)
        retention = np.full(len(names), np.nan)
        if n_folds:
            worth = worth_of(self.gain)
            for member, confidence in enumerate(confidences):
                retention[member] = _retention(
                    confidence, batch, labels, alpha=task.alpha, worth=worth
                )
        deviation = confidences.std(axis=1)
        self._centre = confidences.mean(axis=1)
        self._scale = np.where(deviation > 0, deviation, 1.0)
        weights = self._weights(retention, task.alpha, len(batch))
        prior_note = ""
        if self.public_prior is not None:
            intercept, own_weight, *public = self.members_["neyman-pearson"].blend_
            prior_note = (
                f"log odds {intercept:.2f} + {own_weight:.2f} own + "
                f"{sum(public):.2f} public"
            )
        if one_kind := _one_kind(labels):
            prior_note = f"{one_kind}; {prior_note}" if prior_note else one_kind
        self.selection_ = Selection(
            task.alpha,
            members=names,
            weights=weights,
            retention=retention,
            n_folds=n_folds,
            prior=prior_note,
        )

    def _weights(self, retention, alpha, n):
        lean = LEANING if self.members is None else {}
        leanings = np.array([lean.get(name, 0.0) for name in self.members_])
        best = retention.max()
        if not best > 0:  # nothing kept, or no cross-validation
            return softmax(leanings)
        temperature = (
            max(TEMPERATURE, 1 / (alpha * n)) if n <= FEW_FOR_WEIGHTS else TEMPERATURE
        )
        return softmax(leanings + retention / (temperature * best))

    def _fresh_members(self, training=None):
        if self.members is None:
            # From zeros, so that nothing but the folds is left to chance; a random start
            # has to lie elsewhere, since zeros tell no direction to learn in.
            starts_at_random = training is not None and training.init == "random"
            linear = ConfTrScorer(LinearModel(1.0 if starts_at_random else 0.0))
            neyman_pearson = NeymanPearsonScorer(
                gain=self.gain, public_prior=self.public_prior
            )
            regression = ClassifierScorer()
            return {
                "linear": linear,
                "neyman-pearson": neyman_pearson,
                "regression": regression,
            }
        return {name: clone(member) for name, member in self.members.items()}

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective per iteration of the first member that has one."""
        for member in self.members_.values():
            if hasattr(member, "loss_curve_"):
                return member.loss_curve_
        raise AttributeError("loss_curve_: no member is trained by iterations")

    def _members(self):
        """The fitted members, or those that a fit may come to have."""
        fitted = vars(self).get("members_")
        return (self._fresh_members() if fitted is None else fitted).values()

    @property
    def priors(self) -> tuple[PublicPrior, ...]:  # type: ignore[override]
        """The priors of all members."""
        return tuple(prior for member in self._members() for prior in member.priors)

    @available_if(
        lambda self: any(hasattr(m, "error_probability") for m in self._members())
    )
    def error_probability(
        self, batch: GraphBatch, kept: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """What the first member that states chances says.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        kept : ndarray of bool, shape (n_claims,)
            What is kept, closed under ancestors.

        Returns
        -------
        ndarray of shape (n_problems,)
            The chance of each problem that something false is among what is kept.
        """
        member = next(m for m in self._members() if hasattr(m, "error_probability"))
        return member.error_probability(batch, kept)

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        each = np.array([m.confidence(batch) for m in self.members_.values()])
        each -= self._centre[:, None]
        return (self.selection_.weights / self._scale) @ each


def _one_kind(labels):
    """Say that nothing is learnt: no claim was judged, or all have one label."""
    judged = labels[labels >= 0]
    if not len(judged):
        return "nothing is learnt, as no claim that trains was judged"
    if judged.min() == judged.max():
        kind = "true" if judged[0] == 1 else "false"
        return f"nothing is learnt, as all {len(judged)} claims that train are {kind}"
    return ""


def _fit_member(member, folded, labels, tasks):
    """One fitted member per level, and its confidences out of fold where there are any."""
    if not folded.fold_of.any():
        scorers = member.fit_levels(folded.batch, labels, tasks)
        return scorers, confidence_of_each(scorers, folded.batch)
    if isinstance(member, NeymanPearsonScorer):  # its hazards are those of all folds
        return member.fit_folds(folded, labels, tasks)
    return fit_folds(member, folded, labels, tasks)


def _retention(confidence, batch, labels, alpha, worth):
    """Worth of the true claims kept per problem, by leave-one-out, averaged over levels."""
    n = len(batch)
    true = labels == 1
    risk = path_risk(-confidence, batch)
    scores = nonconformity_scores(risk, labels, batch.offsets)
    smallest_alpha_that_keeps = leave_one_out_alpha(scores, risk, batch.problem_of)
    lowest_level = max(LOWEST * alpha, LOWEST_RANK / n)
    highest_level = max(HIGHEST * alpha, HIGHEST_RANK / n)
    levels = np.geomspace(lowest_level, highest_level, N_LEVELS)
    levels = np.minimum(levels, 1 - 0.5 / n)  # as claims of level 1 are never kept
    counts = [
        segment_sum(true & (smallest_alpha_that_keeps <= level), batch.offsets)
        for level in levels
    ]
    return worth(np.array(counts, dtype=np.float64)).sum(axis=1).mean() / n
