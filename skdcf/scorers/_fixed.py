"""Scorers without training."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from ..graphs._ragged import offsets_of

FREQUENCY = "frequency-score"


class FeatureScorer(BaseEstimator):
    """One feature as the confidence.

    Parameters
    ----------
    feature : str or int
        Name or column number.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FeatureScorer
    >>> batch = GraphBatch.from_arrays([[0.9, 3], [0.8, 5]], [0, 2])
    >>> FeatureScorer(1).confidence(batch)
    array([3., 5.])
    """

    needs_training = False

    def __init__(self, feature):
        self.feature = feature

    def fit(self, batch, labels=None):
        """Check that the feature is there.

        Parameters
        ----------
        batch : GraphBatch
        labels : ignored

        Returns
        -------
        self
        """
        column_of(self.feature, batch)
        return self

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return batch.features[:, column_of(self.feature, batch)]


class FrequencyScorer(BaseEstimator):
    """Self-consistency frequency, mixed with that of the claims that build on it.

    The confidence of claim v is ``(1 - beta_mix) f_v + beta_mix m_v``, where m_v is the
    median frequency of the claims below v in the graph, each with its own, unmixed
    value. A claim on which nothing builds keeps f_v.

    Parameters
    ----------
    beta_mix : float, default=0.0
        Weight of the claims below, in [0, 1].
    over : {"descendants", "children"}, default="descendants"
        "descendants" is the published formula. "children" is what the code of its
        authors does: direct children only, and the upper median of their *risks*,
        hence the lower one of their frequencies.
    feature : str or int, default="frequency-score"
        Name or column number of the frequency.

    References
    ----------
    Rubin-Toles et al., Conformal Language Model Reasoning with Coherent Factuality,
    ICLR 2025.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FrequencyScorer
    >>> batch = GraphBatch.from_arrays([[1.0], [5.0], [3.0]], [0, 3], [(0, 1), (0, 2)])
    >>> FrequencyScorer(0.5, feature=0).confidence(batch)
    array([2.5, 5. , 3. ])
    """

    needs_training = False

    def __init__(self, beta_mix=0.0, over="descendants", *, feature=FREQUENCY):
        self.beta_mix = beta_mix
        self.over = over
        self.feature = feature

    def fit(self, batch, labels=None):
        """Check the parameters.

        Parameters
        ----------
        batch : GraphBatch
        labels : ignored

        Returns
        -------
        self
        """
        if not isinstance(self.beta_mix, Real) or not 0 <= self.beta_mix <= 1:
            raise ValueError(f"beta_mix is {self.beta_mix!r}: a number in [0, 1]")
        if self.over not in ("descendants", "children"):
            raise ValueError(f'over is {self.over!r}: "descendants" or "children"')
        column_of(self.feature, batch)
        return self

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        own = batch.features[:, column_of(self.feature, batch)]
        if self.beta_mix == 0:
            return own
        if self.over == "children":
            parent, child = batch.edges.T
        else:
            indptr, parent = batch.ancestors
            child = np.repeat(np.arange(batch.n_claims), np.diff(indptr))
            parent, child = parent[parent != child], child[parent != child]
        lower, upper = _medians(own[child], parent, batch.n_claims)
        below = lower if self.over == "children" else (lower + upper) / 2
        mixed = (1 - self.beta_mix) * own + self.beta_mix * below
        return np.where(np.isnan(below), own, mixed)


class FunctionScorer(BaseEstimator):
    """A function of a `GraphBatch` as the scorer.

    Parameters
    ----------
    function : callable
        From a GraphBatch to an array of shape (n_claims,), higher meaning more
        trustworthy. It must look at each problem by itself: ranks or scales taken over
        the batch void the guarantee, and are refused where they are noticed.
    """

    needs_training = False

    def __init__(self, function):
        self.function = function

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return self.function(batch)


def column_of(feature, batch):
    """Column number of a feature given by name or number, or ValueError."""
    if batch.features is None:
        raise ValueError(
            f"feature {feature!r} is wanted, but the problems have no features yet: "
            "add some with skdcf.features"
        )
    names = batch.feature_names
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"feature {feature!r} is wanted by name, but the features are not named"
            )
        if feature not in names:
            raise ValueError(f"no feature {feature!r}; there are {list(names)}")
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise ValueError(f"feature is {feature!r}: a name or a column number")
    if not -batch.n_features <= feature < batch.n_features:
        raise ValueError(f"feature {feature} but only {batch.n_features} features")
    return int(feature)


def _medians(values, owner, n):
    """Lower and upper median of the values of each owner, NaN for none."""
    ordered = values[np.lexsort((values, owner))]
    count = np.bincount(owner, minlength=n)
    start = offsets_of(count)[:-1]
    padded = np.append(ordered, np.nan)
    lower = padded[np.where(count, start + (count - 1) // 2, len(ordered))]
    upper = padded[np.where(count, start + count // 2, len(ordered))]
    return lower, upper
