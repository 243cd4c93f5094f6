"""Any scikit-learn classifier as a scorer."""

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..ops.hard import coherent_labels


class ClassifierScorer(BaseEstimator):
    """A scikit-learn classifier, trained to tell true claims from false ones.

    Parameters
    ----------
    estimator : classifier or pipeline, optional
        With ``decision_function`` or ``predict_proba``. None is logistic regression on
        standardised features.
    label : {"own", "coherent"}, default="own"
        "own" learns the label of the claim, "coherent" whether the claim and all its
        ancestors are true, which is what decides about keeping it.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted classifier; None where all training claims had the same label, and
        every claim gets the same confidence.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.graphs import as_batch, pack_labels
    >>> from skdcf.scorers import ClassifierScorer
    >>> graphs, y = make_reasoning_graphs(30, random_state=0, return_X_y=True)
    >>> batch = as_batch(graphs)
    >>> scorer = ClassifierScorer(GaussianNB()).fit(batch, pack_labels(y, batch))
    >>> scorer.confidence(batch).shape == (batch.n_claims,)
    True
    """

    needs_training = True

    def __init__(self, estimator=None, *, label="own"):
        self.estimator = estimator
        self.label = label

    def fit(self, batch, labels):
        """Train the classifier on claims.

        Parameters
        ----------
        batch : GraphBatch
        labels : ndarray of bool, shape (n_claims,)

        Returns
        -------
        self
        """
        if self.label not in ("own", "coherent"):
            raise ValueError(f'label is {self.label!r}: "own" or "coherent"')
        if batch.features is None:
            raise ValueError(
                "a classifier needs features, but the problems have none yet: "
                "add some with skdcf.features"
            )
        target = labels if self.label == "own" else coherent_labels(labels, batch)
        self.estimator_ = None
        if len(target) and target.min() != target.max():
            estimator = logistic() if self.estimator is None else clone(self.estimator)
            self.estimator_ = estimator.fit(batch.features, target.astype(int))
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
        if self.estimator_ is None or not batch.n_claims:
            return np.zeros(batch.n_claims)
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(batch.features)
        return self.estimator_.predict_proba(batch.features)[:, 1]


def logistic():
    """Logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
