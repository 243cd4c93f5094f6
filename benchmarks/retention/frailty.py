"""A default scorer whose answers differ in how many errors they have: tried, not built in.

After hazards of sum L, an answer is still without an error with chance
``(1 + theta L) ** (-1 / theta)`` in place of ``exp(-L)``: gamma frailty. Theta, and an
intercept and a slope of the log hazards, are fitted by likelihood to hazards out of fold, of
judged claims whose ancestors are all true, up to the first error of each answer.
``benchmarks/retention/default_scorer.py keep`` measures it as "frailty 0.75" and "frailty 1".
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone

from skdcf.ops.ancestors import sum_ancestors
from skdcf.ops.hard import below_true_claims, path_risk
from skdcf.ops.neyman_pearson import minorant_slopes
from skdcf.scorers import MixtureScorer, NeymanPearsonScorer
from skdcf.scorers._hazards import worth_of

SMALLEST = 1e-13  # of a hazard
THETA = (1e-3, 20.0)  # bounds


class Frailty(NamedTuple):
    """How much answers differ, and what their hazards are worth."""

    theta: float
    intercept: float
    slope: float

    def hazards(self, log_odds):
        """Cumulative hazard of each claim, on the scale of the frailty."""
        log_hazard = np.log(np.maximum(np.logaddexp(0, log_odds), SMALLEST))
        return np.exp(np.clip(self.intercept + self.slope * log_hazard, -30, 5))

    def log_survival(self, total):
        """Log chance that there is no error yet."""
        return -np.log1p(self.theta * total) / self.theta


def first_errors(labels, batch):
    """Rows of judged claims at risk up to the first error of each answer."""
    at_risk = np.flatnonzero((labels >= 0) & below_true_claims(labels, batch))
    false = labels[at_risk] == 0
    problem = batch.problem_of[at_risk]
    errors_so_far = np.cumsum(false) - false
    starts = np.searchsorted(problem, np.arange(len(batch)))
    padded = np.append(errors_so_far, false.sum())
    before = errors_so_far - padded[starts][problem]
    return at_risk[before == 0]


def fit_frailty(log_odds, labels, batch):
    """Theta, intercept and slope by likelihood."""
    rows = first_errors(labels, batch)
    false = labels[rows] == 0
    problem = batch.problem_of[rows]

    def loss(values):
        frailty = Frailty(np.exp(values[0]), values[1], values[2])
        hazard = frailty.hazards(log_odds[rows])
        total = np.bincount(problem, hazard, len(batch))
        before = np.bincount(problem, hazard * ~false, len(batch))
        after = frailty.log_survival(total)
        until = frailty.log_survival(before)
        ends = np.bincount(problem, false, len(batch)) > 0
        with np.errstate(divide="ignore"):
            fails = until + np.log(-np.expm1(np.minimum(after - until, -1e-12)))
        return -np.where(ends, fails, after).sum()

    start = [np.log(0.3), 0.0, 1.0]
    options = {"maxiter": 300, "xatol": 1e-3, "fatol": 1e-3}
    theta, intercept, slope = minimize(
        loss, start, method="Nelder-Mead", options=options
    ).x
    return Frailty(float(np.clip(np.exp(theta), *THETA)), intercept, max(slope, 0.05))


def price(log_odds, batch, q, worth, frailty):
    """Minus the confidence, as `skdcf.ops.neyman_pearson.log_price` with another survival."""
    if not len(log_odds):
        return log_odds
    hazard = frailty.hazards(log_odds)
    path = path_risk(sum_ancestors(hazard, batch), batch)
    order = np.lexsort((batch.depth, path, batch.problem_of))
    ends = np.cumsum(hazard[order])
    starts = batch.offsets[:-1][batch.problem_of]
    before = ends - hazard[order]
    before -= before[starts]
    until = frailty.log_survival(np.maximum(before, 0))
    after = frailty.log_survival(np.maximum(before, 0) + hazard[order])
    log_risk = until + np.log(-np.expm1(np.minimum(after - until, -1e-300)))
    with np.errstate(divide="ignore"):
        above = frailty.log_survival(np.maximum(path - hazard, 0))
        beside = np.log(q) + np.log(-np.expm1(above))
    log_gain = np.logaddexp(frailty.log_survival(path), beside)
    position = np.arange(len(hazard)) - starts
    log_gain[order] += np.log(worth(position + 1.0) - worth(position + 0.0))
    out = np.empty(len(hazard))
    out[order] = minorant_slopes(log_risk, log_gain[order], batch.problem_of)
    return out


class FrailScorer(NeymanPearsonScorer):
    """The second member of the default mixture with frailty."""

    def fit_folds(self, folded, labels, tasks):
        batch = folded.batch
        fold_of_claim = folded.fold_of[batch.problem_of]
        log_odds = np.empty(batch.n_claims)
        for fold, (others, own) in enumerate(folded.parts):
            rows = fold_of_claim == fold
            part = NeymanPearsonScorer().fit(others, labels[~rows])
            log_odds[rows] = part.hazard(own)
        fitted, _ = super().fit_folds(folded, labels, tasks)
        unseen = np.empty(batch.n_claims)
        # No label of a fold is in what is said of it.
        for fold, (others, own) in enumerate(folded.parts):
            rows = fold_of_claim == fold
            self.frailty_ = fit_frailty(log_odds[~rows], labels[~rows], others)
            unseen[rows] = -self._cost(log_odds[rows], own)
        self.frailty_ = fit_frailty(log_odds, labels, batch)
        return fitted, np.tile(unseen, (len(tasks), 1))

    def _cost(self, log_odds, batch):
        q = self.weight_after_error * self.true_after_error_
        return price(log_odds, batch, q, worth_of(self.gain), self.frailty_)

    def confidence(self, batch):
        return -self._cost(self.hazard(batch), batch)


class FrailMixture(MixtureScorer):
    """The default mixture with that member, where no public prior is blended in."""

    def _fresh_members(self, training=None):
        members = super()._fresh_members(training)
        if self.public_prior is not None:
            return members
        frail = FrailScorer(gain=self.gain)
        return members | {"neyman-pearson": clone(frail)}
