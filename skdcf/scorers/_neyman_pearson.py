"""A score that knows the structure: the most kept claims per unit of risk.

======  ========================================================================
h_v     hazard: chance that claim v is false, given that all its ancestors are true
l_v     -log(1 - h_v)
m_v     sum of l over v and its ancestors: they are all true with chance exp(-m_v)
L_k     sum of l over the first k claims of a problem, in increasing order of m
======  ========================================================================

To keep the first k claims violates with chance 1 - exp(-L_k) and keeps an expected
number of sum of exp(-m) true claims. The slope of the convex minorant of that curve is
what one more claim costs: its price. To keep whatever is below a common price
yields the most claims for the risk, over all problems together (the lemma of Neyman and
Pearson). m rises along the edges and the price with m, so such sets are closed under
ancestors.
"""

import numpy as np
from sklearn.base import BaseEstimator

from ..graphs import GraphBatch
from ..ops.hard import coherent_labels, path_risk
from ._standardize import Standardizer

CERTAIN = 30.0  # largest log odds of a hazard: 1e-13 from certainty


class NeymanPearsonScorer(BaseEstimator):
    """Minus the log price of a claim: the risk of one more kept claim.

    Three classifiers learn whether a claim is false where all its ancestors are true:
    logistic regression on the features, logistic regression that sees the problem's
    mean features and its size too, and boosted trees. The mean of their log odds is the
    hazard of the claim; hazards and graph give the price. No alpha enters.

    Parameters
    ----------
    coherent : bool, default=True
        Whether a claim needs all its ancestors. False takes each claim for its own
        only ancestor.
    n_rounds : int, default=150
        Rounds of boosting.
    random_state : int, RandomState or None, default=None
        Of the boosted trees, which draw at random on large data only.

    Attributes
    ----------
    hazards_ : list of classifiers
        Fitted on the standardised features, the second one with the problem's; empty
        where the training claims were all true or all false.

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
    >>> cf.score(graphs, y) > HardCF("frequency-score", alpha=0.1).fit(
    ...     graphs, y
    ... ).score(graphs, y)
    True
    """

    needs_training = True

    def __init__(self, *, coherent=True, n_rounds=150, random_state=None):
        self.coherent = coherent
        self.n_rounds = n_rounds
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
        self.hazards_ = []
        # With half an error more, and half a true claim: finite for whatever was seen.
        self._base = np.log((false.sum() + 0.5) / ((~false).sum() + 0.5))
        if batch.n_features and false.any() and not false.all():
            self._standardizer = Standardizer.fit(_design(batch))
            views = self._views(batch)
            for model, X in zip(self._models(), views, strict=True):
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
            return np.full(batch.n_claims, self._base)
        pairs = zip(self.hazards_, self._views(batch), strict=True)
        return np.mean([model.decision_function(X) for model, X in pairs], axis=0)

    def confidence(self, batch):
        """Confidence of each claim: minus its log price.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return -log_price(self.hazard(batch), self._structure(batch))

    def _structure(self, batch):
        if self.coherent:
            return batch
        return GraphBatch.from_arrays(batch.features, batch.offsets)

    def _models(self):
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression

        trees = HistGradientBoostingClassifier(
            max_iter=self.n_rounds,
            learning_rate=0.05,
            max_depth=2,
            l2_regularization=5.0,
            max_bins=63,
            early_stopping=False,
            random_state=self.random_state,
        )
        return (
            LogisticRegression(C=0.3, max_iter=1000),
            LogisticRegression(C=0.1, max_iter=1000),
            trees,
        )

    def _views(self, batch):
        """What each of the models sees."""
        X = self._standardizer(_design(batch))
        return X[:, : batch.n_features], X, X[:, : batch.n_features]


def _design(batch):
    """Features, their means over the problem, log of its number of claims."""
    sizes = np.maximum(batch.sizes, 1)
    total = np.add.reduceat(
        np.vstack([batch.features, np.zeros(batch.n_features)]), batch.offsets[:-1]
    )
    problem = np.column_stack([total / sizes[:, None], np.log(sizes)])
    return np.hstack([batch.features, problem[batch.problem_of]])


def below_true_claims(labels, batch):
    """True where all proper ancestors of a claim are true, shape (n_claims,)."""
    above = ~coherent_labels(labels, batch)
    parent, child = batch.edges.T
    return np.bincount(child, above[parent], batch.n_claims) == 0


def log_price(hazard, batch):
    """Log of the risk that one more kept claim costs.

    Parameters
    ----------
    hazard : ndarray of shape (n_claims,)
        Log odds that a claim is false, given that all its ancestors are true.
    batch : GraphBatch

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
    before = np.cumsum(own[order]) - own[order]
    first = np.minimum(batch.offsets[:-1], len(own) - 1)
    before -= before[first][batch.problem_of]
    log_risk = hazard[order] - own[order] - before
    price = np.empty(len(own))
    price[order] = minorant_slopes(log_risk, -path[order], batch.problem_of)
    return price


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
