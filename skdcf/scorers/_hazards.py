"""Prices of claims from the hazards of errors, learnt here and blended with public ones."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._parameters import UNIT, settings
from ..graphs import GraphBatch
from ..ops.chance import chance_of_error, fit_frailty
from ..ops.hard import below_true_claims
from ..ops.neyman_pearson import log_price
from ..training.gain import Gain, check_gain, worth_of
from ..training.splitting import Standardizer
from ._prior import PublicPrior, blend
from ._scorer import FitTask, Folded, Scorer, folds, need_features, run_of
from ._tree_tables import as_table, design, join

N_FOLDS = 3  # folds for the own hazards that a public prior is weighed against
# A tree sees half of the claims. Where it leaves out one fold of three, it sees about as
# many of the others, and the trees of all folds together are the forest.
OF_A_FOLD: dict[str, Any] = {"trees": 15, "share": 0.75}
# Claims below an error that are added as false ones to those that were judged.
DOUBTED = 5
# The least hazard: a forest that saw no error nearby says 0, which is too sure.
DOUBT = 0.05
MOST_CLAIMS = 15_000  # claims of one tree; more would only take longer


def learn_hazards(X, false, n_features, random_state, trees=40, share=0.5):
    """Fit four classifiers to claims all of whose ancestors are true, and put them in one table.

    Two of them see the claim alone, the others also the means of its problem and its size.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression

    boosted = HistGradientBoostingClassifier(
        max_iter=50,
        learning_rate=0.15,
        max_depth=2,
        l2_regularization=5.0,
        max_features=0.5,
        max_bins=63,
        early_stopping=False,
        random_state=random_state,
    )
    # On 0 and 1 it splits as a classifier does, which looks for the classes once more in
    # each tree: a fit of the default takes 5 % less time.
    forest = RandomForestRegressor(
        trees,
        min_samples_leaf=8,
        max_features=0.3,
        max_samples=min(int(share * len(false)) + 1, MOST_CLAIMS),
        random_state=random_state,
    )
    linear, wide = (
        LogisticRegression(C=c, solver="newton-cholesky") for c in (0.1, 0.03)
    )
    features = X[:, :n_features]
    inputs = (linear, features), (wide, X), (boosted, features), (forest, X)
    # The settings are ours, and need no check of their types in each fit of a fold.
    with config_context(skip_parameter_validation=True):
        tables = [as_table(model.fit(rows, false), DOUBT) for model, rows in inputs]
    return join([table for table in tables if table is not None], X.shape[1])


@settings
class NeymanPearsonScorer(Scorer):
    """Minus the log price of a claim: what it costs in risk to keep one more.

    The mean of the hazards' log odds, and the graph, give the price. No alpha enters.

    Parameters
    ----------
    weight_after_error : float, default=0.5
        Weight, in [0, 1], of true claims beside a false one. They count among what is
        kept, but what is known of them hangs on the sum of all hazards above, which errs
        most where it is large: counted in full, they cost claims at low alpha.
    gain : float in [0, 1], {"claims", "answers"} or callable, default=0.5
        What the claims that are kept of an answer are worth: their number to this power.
        1, or "claims", keeps as many claims as possible, which empties many answers, as
        the risk is spent on those that are sure. The smaller the power, the more answers
        are shown; 0, or "answers", is the logarithm of one more than their number. A
        function of one's own takes numbers of kept claims, an array; it must grow, and be
        concave.
    public_prior : PublicPrior or None, default=None
        Hazards learnt on public labels. They are blended with those learnt here as
        ``b + w1 own + w2 first + w3 second + ...``, in log odds, with a weight for each
        source; the weights are those that explain the training claims best, own hazards
        being out of fold, with a pull towards 0.6 and, for all sources together, 1, and
        of sum 1.6.
    random_state : int, RandomState or None, default=0
        Of the trees. None takes the randomness of the filter.

    Attributes
    ----------
    prior_ : PublicPrior or None
    blend_ : ndarray of shape (2 + n_sources,)
        The weights b, w1, w2, ...; with ``public_prior`` only.
    table_ : HazardTable or None
        The four hazards: logistic regression and boosted trees, which see the claim, and
        logistic regression and a random forest, which see its problem as well. None where
        nothing was to be learnt: no features, or training claims that are all true or
        all false. As a base scorer of a stack the scorer has the hazards of each fold.
    true_after_error_ : float
        Share of true claims among those below a false one, in training.
    frailty_ : ndarray of shape (3,) or None
        (theta, a, b) of `error_probability`: how much answers differ in ways that no feature tells,
        and an intercept and a slope of the log odds. None where nothing was learnt out of
        fold, that is without ``public_prior`` and outside a stack; the hazards then
        count as they stand.

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
        "public_prior": [None, PublicPrior],
        "weight_after_error": [UNIT],
        "random_state": ["random_state"],
    }
    requires_fit = True

    _: KW_ONLY
    weight_after_error: float = 0.5
    gain: Gain = 0.5
    public_prior: PublicPrior | None = None
    random_state: int | np.random.RandomState | None = 0

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared."""
        super().validate()
        check_gain(self.gain)

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        """Learn the hazards.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            1 true, 0 false, -1 unknown. Claims with an unknown label, or with one above
            them, are left out.
        task : FitTask, optional
            What the filter says about the fit.

        Returns
        -------
        self
            The scorer itself, fitted.

        Raises
        ------
        ValueError
            If the problems have no features, or the public prior does not suit them.
        """
        task = task or FitTask()
        if self.public_prior is not None:
            fold_of = folds(len(batch), task.groups, N_FOLDS, task.rng)
            return self.fit_folds(Folded(batch, fold_of), labels, [task])[0][0]
        self.frailty_: NDArray[np.float64] | None = None
        evidence = self._read(batch, labels, task)
        self._learn(evidence, batch.n_features, self._seed(task))
        return self

    def fit_folds(
        self, folded: Folded, labels: NDArray, tasks: list[FitTask]
    ) -> tuple[list[Self], NDArray[np.float64]]:
        """Learn without each fold in turn; the hazards of all folds are the scorer's.

        Parameters
        ----------
        folded : Folded
            The problems, ``folded.batch``, and the number of the fold of each,
            ``folded.fold_of``.
        labels : ndarray of shape (n_claims,)
            1 true, 0 false, -1 unknown.
        tasks : list of FitTask
            One for each level.

        Returns
        -------
        scorers : list of NeymanPearsonScorer
            The same one for all levels.
        unseen : ndarray of shape (n_tasks, n_claims)
            Confidences from hazards that were learnt without the claim's fold.
        """
        batch = folded.batch
        fold_of = folded.fold_of
        evidence = self._read(batch, labels, tasks[0])
        self._count(evidence)
        log_odds = np.empty(batch.n_claims)
        unseen = np.empty(batch.n_claims)
        members = [clone(self) for _ in folded.parts]
        rng = check_random_state(self._seed(tasks[0]))
        of_fold = [fold_of[batch.problem_of] == fold for fold in range(len(members))]
        jobs = []
        for member, rows in zip(members, of_fold, strict=True):
            seed = rng.randint(2**31 - 1)
            learn = partial(member._learn_without, rows, evidence)
            jobs.append(partial(learn, batch.n_features, seed))
        members = run_of(tasks[0], jobs, self, unit="fold")
        for member, rows in zip(members, of_fold, strict=True):
            log_odds[rows] = member._log_odds(evidence.X[rows])
        if self.prior_ is not None:  # own hazards, out of fold, against public ones
            public = self.prior_.hazards(batch)
            at_risk = evidence.at_risk
            false = evidence.labels[at_risk] == 0
            self.blend_ = blend(
                log_odds[at_risk], public[:, at_risk], false, self.prior_.weights_
            )
        mixed = self._mixed(log_odds, batch)
        for member, rows, (_, own) in zip(members, of_fold, folded.parts, strict=True):
            unseen[rows] = member._price(mixed[rows], own)
        self.frailty_ = fit_frailty(mixed, labels, batch, unseen)
        tables = [member.table_ for member in members if member.table_ is not None]
        self.table_ = join(tables, evidence.X.shape[1]) if tables else None
        return [self] * len(tasks), np.tile(unseen, (len(tasks), 1))

    def _read(self, batch, labels, task):
        self.validate()
        need_features(batch)
        self.prior_ = None
        if self.public_prior is not None:
            self.prior_ = clone(self.public_prior).fit(batch, labels, task)
        table = design(batch)
        judged = labels >= 0
        self._standardizer = Standardizer.fit(table)
        at_risk = judged & below_true_claims(labels, batch)
        after_error = judged & ~below_true_claims(labels != 0, batch)
        return _Evidence(self._standardizer(table), labels, at_risk, after_error)

    def _count(self, evidence):
        """Learn how often claims are false overall."""
        labels = evidence.labels
        self._chance = _share(labels[evidence.at_risk] == 0)
        # Where few claims below an error were judged, they are taken for false: to count
        # what nobody saw as true costs claims at low alpha.
        below = labels[evidence.after_error]
        self.true_after_error_ = np.sum(below == 1) / (len(below) + DOUBTED)

    def _learn(self, evidence, n_features, seed, **forest):
        self._count(evidence)
        at_risk = evidence.take(evidence.at_risk)
        false = at_risk.labels == 0
        self.table_ = None
        if n_features and false.any() and not false.all():
            self.table_ = learn_hazards(at_risk.X, false, n_features, seed, **forest)

    def _learn_without(self, rows, evidence, n_features, seed):
        self._learn(evidence.take(~rows), n_features, seed, **OF_A_FOLD)
        return self

    def _mixed(self, own, batch):
        if self.prior_ is None:
            return own
        each = np.vstack([own, self.prior_.hazards(batch)])
        return self.blend_[0] + self.blend_[1:] @ each

    def _seed(self, task):
        return task.rng if self.random_state is None else self.random_state

    @property
    def priors(self) -> tuple[PublicPrior, ...]:  # type: ignore[override]
        """The public prior that is blended in, where there is one."""
        prior = vars(self).get("prior_", self.public_prior)
        return () if prior is None else (prior,)

    def hazard(self, batch: GraphBatch) -> NDArray[np.float64]:
        """Log odds that a claim is false, given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        ndarray of shape (n_claims,)
            The log odds of each claim.
        """
        return self._mixed(self._log_odds(self._standardizer(design(batch))), batch)

    def _log_odds(self, X):
        if self.table_ is None:
            return np.full(len(X), logit(self._chance))
        return self.table_.log_odds(X, self._chance) / self.table_.n_hazards

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return self._price(self.hazard(batch), batch)

    def error_probability(
        self, batch: GraphBatch, kept: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Chance that something false is kept, for each answer.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        kept : ndarray of bool, shape (n_claims,)
            What is kept, closed under ancestors.

        Returns
        -------
        ndarray of float, shape (n_problems,)
            Between 0 and 1, and 0 where nothing is kept.
        """
        return chance_of_error(self.hazard(batch), kept, batch, self.frailty_)

    def _price(self, log_odds, batch):
        q = self.weight_after_error * self.true_after_error_
        return -log_price(log_odds, batch, q, worth_of(self.gain))


class _Evidence(NamedTuple):
    """Standardised claims that the hazards learn from."""

    X: NDArray
    labels: NDArray
    at_risk: NDArray  # whether all ancestors are known to be true
    after_error: NDArray  # whether an ancestor is known to be false

    def take(self, rows):
        return _Evidence(*[column[rows] for column in self])


def _share(flags):
    """Share with half a claim more of each kind, so that it is never 0 or 1."""
    return (flags.sum() + 0.5) / (len(flags) + 1)
