"""A score that knows the structure: the most kept claims per unit of risk.

======  ========================================================================
h_v     hazard: chance that claim v is false, given that all its ancestors are true
l_v     -log(1 - h_v)
m_v     sum of l over v and its ancestors: they are all true with chance exp(-m_v)
q       share of true claims among those below a false one, at half its weight
g_v     exp(-m_v) + q (1 - exp(-(m_v - l_v))): chance that v is true
L_k     sum of l over the first k claims of a problem, in increasing order of m
======  ========================================================================

To keep the first k claims violates with chance 1 - exp(-L_k) and keeps an expected
number of sum of g true claims. The slope of the convex minorant of that curve is what
one more claim costs: its price. To keep whatever is below a common price
yields the most claims for the risk, over all problems together (the lemma of Neyman and
Pearson). m rises along the edges and the price with m, so such sets are closed under
ancestors.
"""

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator

from ..graphs import GraphBatch
from ..ops.hard import below_true_claims, path_risk
from ._standardize import Standardizer

CERTAIN = 30.0  # largest log odds of a hazard: 1e-13 from certainty
DOUBT = 0.05  # share of the overall chance in that of the forest
LARGEST = 5000  # sample of a tree of the forest, in claims
# True claims beside a false one count, but what is known of them hangs on m, which
# errs most where it is large: counted in full, they cost claims at low alpha.
AFTER_ERROR = 0.5


class NeymanPearsonScorer(BaseEstimator):
    """Minus the log price of a claim: what it costs in risk to keep one more.

    Four classifiers learn whether a claim is false where all its ancestors are true.
    Logistic regression and boosted trees see the features of the claim; logistic
    regression and a random forest see the problem's mean features and its size as well.
    The mean of their log odds is the hazard of the claim; hazards and graph give the
    price. No alpha enters.

    Parameters
    ----------
    coherent : bool, default=True
        Whether a claim needs all its ancestors. False takes each claim for its own
        only ancestor.
    random_state : int, RandomState or None, default=0
        Of the trees.

    Attributes
    ----------
    hazards_ : list of classifiers
        The four, fitted on standardised features; empty where nothing was to be
        learnt: no features, or training claims all true or all false.
    after_error_ : float
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
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(NeymanPearsonScorer(), alpha=0.1, random_state=0).fit(graphs, y)
    >>> frequency = HardCF("frequency-score", alpha=0.1).fit(graphs, y)
    >>> cf.score(graphs, y) > frequency.score(graphs, y)
    True
    """

    needs_training = True

    def __init__(self, *, coherent=True, random_state=0):
        self.coherent = coherent
        self.random_state = random_state

    def fit(self, batch, labels):
        """Learn the hazards.

        Parameters
        ----------
        batch : GraphBatch
        labels : ndarray of bool, shape (n_claims,)
            True where the claim is true.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the problems have no features.
        """
        if batch.features is None:
            raise ValueError(
                "the hazards are learnt from features, but the problems have none yet: "
                "add some with skdcf.features"
            )
        at_risk = below_true_claims(labels, self._structure(batch))
        false = ~labels[at_risk]
        self._chance = _share(false)
        self.after_error_ = _share(labels[~at_risk])
        self.hazards_ = []
        if batch.n_features and false.any() and not false.all():
            self._standardizer = Standardizer.fit(_design(batch))
            models = _models(len(false), self.random_state)
            for model, X in zip(models, self._views(batch), strict=True):
                self.hazards_.append(model.fit(X[at_risk], false))
        return self

    def hazard(self, batch):
        """Log odds that a claim is false, given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        if not self.hazards_ or not batch.n_claims:
            return np.full(batch.n_claims, logit(self._chance))
        *smooth, forest = self.hazards_
        *views, last = self._views(batch)
        total = sum(m.decision_function(X) for m, X in zip(smooth, views, strict=True))
        # A forest that saw no error nearby says 0, which is too much to say.
        chance = forest.predict_proba(last)[:, 1]
        chance = (1 - DOUBT) * chance + DOUBT * self._chance
        return (total + logit(chance)) / len(self.hazards_)

    def confidence(self, batch):
        """Confidence of each claim: minus its log price.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        q = AFTER_ERROR * self.after_error_
        return -log_price(self.hazard(batch), self._structure(batch), q)

    def _structure(self, batch):
        if self.coherent:
            return batch
        return GraphBatch.from_arrays(batch.features, batch.offsets)

    def _views(self, batch):
        """What each of the models sees."""
        X = self._standardizer(_design(batch))
        own = X[:, : batch.n_features]
        return own, X, own, X


def _models(n_claims, random_state):
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    return (
        LogisticRegression(C=0.1, max_iter=1000),
        LogisticRegression(C=0.03, max_iter=1000),
        HistGradientBoostingClassifier(
            max_iter=75,
            max_depth=2,
            l2_regularization=5.0,
            max_features=0.5,
            max_bins=63,
            early_stopping=False,
            random_state=random_state,
        ),
        RandomForestClassifier(
            40,
            min_samples_leaf=8,
            max_features=0.3,
            max_samples=min(n_claims // 2 + 1, LARGEST),
            random_state=random_state,
        ),
    )


def _share(flags):
    """With half a claim more of each kind: not certain, whatever was seen."""
    return (flags.sum() + 0.5) / (len(flags) + 1)


def _design(batch):
    """Features, their means over the problem, log of its number of claims."""
    sizes = np.maximum(batch.sizes, 1)
    total = np.add.reduceat(
        np.vstack([batch.features, np.zeros(batch.n_features)]), batch.offsets[:-1]
    )
    problem = np.column_stack([total / sizes[:, None], np.log(sizes)])
    return np.hstack([batch.features, problem[batch.problem_of]])


def log_price(hazard, batch, q=0.0):
    """Log of the risk that one more kept claim costs.

    Parameters
    ----------
    hazard : ndarray of shape (n_claims,)
        Log odds that a claim is false, given that all its ancestors are true.
    batch : GraphBatch
    q : float in [0, 1]
        Chance that a claim is true where an ancestor is not.

    Returns
    -------
    ndarray of shape (n_claims,); finite, not falling along the edges.
    """
    hazard = np.clip(hazard, -CERTAIN, CERTAIN)
    own = np.logaddexp(0, hazard)
    indptr, indices = batch.ancestors
    if not len(own):
        return own
    # The maximum mends rounding, without which m rises along the edges anyway.
    path = path_risk(np.add.reduceat(own[indices], indptr[:-1]), batch)
    order = np.lexsort((batch.depth, path, batch.problem_of))
    before = _sum_before(own[order], batch.offsets)
    log_risk = hazard[order] - own[order] - before
    with np.errstate(divide="ignore"):
        beside = np.log(q) + np.log(-np.expm1(-np.maximum(path - own, 0)))
    log_gain = np.logaddexp(-path, beside)
    price = np.empty(len(own))
    price[order] = minorant_slopes(log_risk, log_gain[order], batch.problem_of)
    return price


def _sum_before(values, offsets):
    """Sum of those before each value in its segment; other segments do not enter."""
    out = np.zeros(len(values))
    at, ends = offsets[:-1], offsets[1:]
    while len(at):
        more = at + 1 < ends
        at, ends = at[more] + 1, ends[more]
        out[at] = out[at - 1] + values[at - 1]
    return out


def minorant_slopes(log_rise, log_run, segment):
    """Log slopes of the convex minorants of piecewise linear curves.

    Pool adjacent violators, all segments at once: neighbours whose slopes fall are
    merged until there are none. Everything is a logarithm, as curves of many claims
    leave the range of a float.

    Parameters
    ----------
    log_rise, log_run : ndarray of shape (n,)
        Logs of the heights and widths of the pieces.
    segment : ndarray of shape (n,)
        Number of the curve that a piece belongs to, not decreasing.

    Returns
    -------
    ndarray of shape (n,), not decreasing within a segment

    References
    ----------
    R. E. Barlow et al. Statistical Inference under Order Restrictions. Wiley 1972.
    """
    head = np.ones(len(log_rise), dtype=bool)
    slope = np.empty(len(log_rise))
    at = np.arange(len(log_rise))
    while len(at):
        slope[at] = log_rise - log_run
        falls = np.append(False, slope[at[1:]] < slope[at[:-1]])
        falls &= np.append(False, segment[at[1:]] == segment[at[:-1]])
        head[at[falls]] = False
        open_ = np.isin(segment[at], segment[at[falls]])
        falls, at = falls[open_], at[open_]
        log_rise, log_run = log_rise[open_], log_run[open_]
        starts = np.flatnonzero(~falls)
        if not len(starts):
            break
        log_rise = np.logaddexp.reduceat(log_rise, starts)
        log_run = np.logaddexp.reduceat(log_run, starts)
        at = at[starts]
    first = np.maximum.accumulate(np.where(head, np.arange(len(head)), 0))
    return slope[first]
