"""A score that knows the structure: the most kept claims per unit of risk.

Classifiers learn the hazard of a claim, which is the chance that it is false where all
its ancestors are true. `skdcf.ops.price` makes of hazards and graph what the claim costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._parameters import Number
from ..ops.hard import below_true_claims
from ..ops.price import log_price
from ..ops.standardize import Standardizer
from ._gain import Gain, worth_of
from ._hazards import OF_A_PART, Hazard, Seen, compact, default_hazards, design
from ._prior import PublicPrior, blend
from ._protocol import Scorer, Task, folds, need_features
from ._text_hazard import TextHazard, fresh_reader

if TYPE_CHECKING:
    from ..graphs import GraphBatch

N_FOLDS = 3  # of the own hazards that a public prior is weighed against


class NeymanPearsonScorer(Scorer):
    """Minus the log price of a claim: what it costs in risk to keep one more.

    The mean of the hazards' log odds, and the graph, give the price. No alpha enters.

    Parameters
    ----------
    hazards : list of Hazard or None, default=None
        None is four: logistic regression and boosted trees, which see the claim;
        logistic regression and a random forest, which see its problem as well.
    text : TextHazard or None, default=None
        A further hazard, from words, with the weight of one of the others. Half of what
        it learns is who wrote an answer: see `TextHazard` before you use it.
    after_error : float, default=0.5
        Weight, in [0, 1], of true claims beside a false one. They count among what is
        kept, but what is known of them hangs on the sum of all hazards above, which errs
        most where it is large: counted in full, they cost claims at low alpha.
    gain : {"claims", "answers"} or callable, default="claims"
        What kept claims are worth. "claims" keeps as many as possible, which empties many
        answers, as the risk is spent on those that are sure. With "answers" the claims
        kept of an answer are worth the root of their number, so that fewer answers are
        emptied. A function of one's own takes numbers of kept claims, an array; it must
        grow, and be concave.
    public_prior : PublicPrior or None, default=None
        Hazards learnt on public labels. They are blended with those learnt here as
        ``b + w1 own + w2 public``, in log odds; the weights are those that explain the
        training claims best, own hazards being out of fold, with a pull towards one
        half each.
    random_state : int, RandomState or None, default=0
        Of the trees. None takes the randomness of the filter.

    Attributes
    ----------
    prior_ : PublicPrior or None
    blend_ : ndarray of shape (3,)
        The weights b, w1 and w2; with ``public_prior`` only.
    hazards_ : list of HazardTable, Hazard and TextHazard
        Forests, boosted trees and logistic regressions are in one `HazardTable`, which
        stands in front; classifiers of other kinds follow it. The list is empty where
        nothing was to be learnt: no features, or training claims that are all true or
        all false. As a member of a mixture the scorer has the hazards of each fold.
    text_ : TextHazard or None
        What reads the words; None without ``text``, or with too few problems for it.
    true_after_error_ : float
        Share of true claims among those below a false one, in training.

    Notes
    -----
    The confidence never rises from a claim to one that builds on it, so that path risk
    and risk are the same.

    References
    ----------
    J. Neyman, E. S. Pearson. On the problem of the most efficient tests of statistical
    hypotheses. Philosophical Transactions of the Royal Society A 231, 1933.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.scorers import NeymanPearsonScorer
    >>> X, y = make_reasoning_graphs(600, random_state=0, return_X_y=True)
    >>> cf = HardCF(NeymanPearsonScorer(), random_state=0).fit(X[:300], y[:300])
    >>> frequency = HardCF("frequency-score").fit(X[:300], y[:300])
    >>> cf.score(X[300:], y[300:]) > frequency.score(X[300:], y[300:])
    True
    """

    _parameter_constraints = {
        "hazards": [None, list],
        "text": [None, TextHazard],
        "public_prior": [None, PublicPrior],
        "after_error": [Number(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }
    learns = True

    def __init__(
        self,
        hazards: list[Hazard] | None = None,
        *,
        text: TextHazard | None = None,
        after_error: float = 0.5,
        gain: Gain = "claims",
        public_prior: PublicPrior | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.hazards = hazards
        self.text = text
        self.after_error = after_error
        self.gain = gain
        self.public_prior = public_prior
        self.random_state = random_state

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared."""
        super().validate()
        worth_of(self.gain)
        if self.text is not None:
            self.text.validate()
        if self.hazards is None:
            return
        if self.random_state not in (0, None):
            raise ValueError(
                f"random_state is {self.random_state!r}, but is for the trees of the "
                "default hazards: seed the estimators of your hazards instead"
            )
        if not self.hazards:
            raise ValueError("hazards is empty: at least one Hazard is needed")
        for hazard in self.hazards:
            if not isinstance(hazard, Hazard):
                raise ValueError(
                    f"hazards holds {hazard!r}, but each must be a Hazard; what reads "
                    "words is passed as text=TextHazard()"
                )
            hazard.validate()

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Learn the hazards.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`. Claims with an unknown label, or with one above them, are
            left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the problems have no features, or the public prior does not suit them.
        """
        task = task or Task()
        if self.public_prior is not None:
            fold_of = folds(len(batch), task.groups, N_FOLDS, task.rng)
            return self.fit_folds(batch, labels, [task], fold_of)[0][0]
        evidence, rows = (
            self._read(batch, labels, task),
            np.ones(batch.n_claims, dtype=bool),
        )
        self._count(evidence, rows)
        self._learn(evidence, rows, self._seed(task))
        return self

    def fit_folds(
        self, batch: GraphBatch, labels: NDArray, tasks: list[Task], fold_of: NDArray
    ) -> tuple[list[Self], NDArray[np.float64]]:
        """Learn without each fold in turn; the hazards of all folds are the scorer's.

        Parameters
        ----------
        batch, labels, tasks, fold_of
            As in `Scorer.fit_folds`.

        Returns
        -------
        scorers : list of NeymanPearsonScorer
        unseen : ndarray of shape (n_tasks, n_claims)
        """
        evidence = self._read(batch, labels, tasks[0])
        self._count(evidence, np.ones(batch.n_claims, dtype=bool))
        own, unseen = np.empty(batch.n_claims), np.empty(batch.n_claims)
        parts = [clone(self) for _ in range(int(fold_of.max()) + 1)]
        rng = check_random_state(self._seed(tasks[0]))
        of_fold = [fold_of[batch.problem_of] == fold for fold in range(len(parts))]
        for part, rows in zip(parts, of_fold, strict=True):
            part._count(evidence, ~rows)
            part._learn(evidence, ~rows, rng.randint(2**31 - 1), **OF_A_PART)
            own[rows] = part._log_odds(evidence.seen.of(rows))
        mixed = self._fit_blend(own, evidence, batch)
        for fold, (part, rows) in enumerate(zip(parts, of_fold, strict=True)):
            unseen[rows] = part._price(mixed[rows], batch[fold_of == fold])
        learnt = [hazard for part in parts for hazard in part.hazards_]
        self.hazards_ = compact(learnt, evidence.seen.X.shape[1])
        return [self] * len(tasks), np.tile(unseen, (len(tasks), 1))

    def _read(self, batch, labels, task):
        self.validate()
        need_features(batch)
        self.prior_ = None
        if self.public_prior is not None:
            self.prior_ = clone(self.public_prior).fit(batch, labels, task)
        table, known = design(batch), labels >= 0
        self._standardizer = Standardizer.fit(table)
        self.text_ = None if self.text is None else fresh_reader(self.text, batch)
        return _Evidence(
            self._seen(table, batch),
            labels,
            known & below_true_claims(labels, batch),
            known & ~below_true_claims(labels != 0, batch),
        )

    def _fit_blend(self, own, evidence, batch):
        """Weigh own hazards, out of fold, and public ones; the log odds of both."""
        if self.prior_ is None:
            return own
        public, rows = self.prior_.hazard(batch), evidence.at_risk
        self.blend_ = blend(own[rows], public[rows], evidence.labels[rows] == 0)
        return self._mixed(own, batch)

    def _mixed(self, own, batch):
        if self.prior_ is None:
            return own
        b, w1, w2 = self.blend_
        return b + w1 * own + w2 * self.prior_.hazard(batch)

    def _count(self, evidence, rows):
        """Learn overall shares from the claims ``rows``."""
        labels = evidence.labels
        self._chance = _share(labels[evidence.at_risk & rows] == 0)
        self.true_after_error_ = _share(labels[evidence.after_error & rows] == 1)

    def _learn(self, evidence, rows, seed, **forest):
        """Learn the hazards from the claims ``rows``."""
        rows = evidence.at_risk & rows
        false = evidence.labels[rows] == 0
        self.hazards_ = []
        if evidence.seen.n_features and false.any() and not false.all():
            self.hazards_ = self._fresh_hazards(len(false), seed, **forest)
        seen = evidence.seen.of(rows)
        if seen.words is not None and self.hazards_:
            self.hazards_.append(clone(self.text))
        for hazard in self.hazards_:
            hazard.learn(seen, false)
        self.hazards_ = compact(self.hazards_, seen.X.shape[1])

    def _seen(self, table, batch):
        words = None if self.text_ is None else self.text_.words(batch)
        return Seen(self._standardizer(table), batch.n_features, words)

    def _seed(self, task):
        return task.rng if self.random_state is None else self.random_state

    def _fresh_hazards(self, n_claims, seed, **forest):
        if self.hazards is None:
            return default_hazards(n_claims, seed, **forest)
        return [clone(hazard) for hazard in self.hazards]

    def saw(self, batch: GraphBatch) -> NDArray[np.bool_]:
        """Which problems the public prior was learnt from, as in `Scorer.saw`.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of bool, shape (n_problems,)
        """
        return super().saw(batch) if self.prior_ is None else self.prior_.saw(batch)

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Log odds that a claim is false, given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return self._mixed(self._log_odds(self._seen(design(batch), batch)), batch)

    def _log_odds(self, seen):
        if not self.hazards_ or not len(seen.X):
            return np.full(len(seen.X), logit(self._chance))
        total = sum(hazard.log_odds(seen, self._chance) for hazard in self.hazards_)
        return total / sum(hazard.n_hazards for hazard in self.hazards_)

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Confidence of each claim: minus its log price.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return self._price(self.hazard(batch), batch)

    def _price(self, log_odds, batch):
        q = self.after_error * self.true_after_error_
        worth = None if self.gain == "claims" else worth_of(self.gain)
        return -log_price(log_odds, batch, q, worth)


@dataclass(frozen=True)
class _Evidence:
    """What the hazards learn from."""

    seen: Seen
    labels: np.ndarray
    at_risk: np.ndarray
    after_error: np.ndarray


def _share(flags):
    """With half a claim more of each kind: not certain, whatever was seen."""
    return (flags.sum() + 0.5) / (len(flags) + 1)
