"""Scorer that trains a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._checks import Floats
from .._parameters import HasMethods, StrOptions, settings
from ..graphs import GraphBatch
from ..ops.hard import targets_of
from ..training.splitting import (
    STRENGTH,
    noise_columns,
    smoothed_log_odds,
    weight_below_errors,
)
from ._scorer import FitTask, LinearTerms, PricedScorer, need_features


@settings
class ClassifierScorer(PricedScorer):
    """Scorer that trains a scikit-learn classifier to distinguish true from false claims.

    Parameters
    ----------
    estimator : classifier or pipeline, optional
        The classifier, which must have a ``decision_function`` or ``predict_proba`` method. If
        None, a logistic regression on standardised features is used. The default regularization
        ``C=0.03`` is strong, because only a few answers contain an error.
    gain : float or None, default=0.5
        Exponent of the value of keeping claims, as in `ConfTrScorer`. The confidence is computed
        from the price of each claim. If None, the confidence is the log odds or the probability
        that the classifier returns.
    target : {"own", "coherent", "hazard"}, default="hazard"
        Training target. With "hazard", the classifier is trained on the claim labels, using only
        claims whose ancestors are all true. With "own", the classifier is trained on the labels
        of all claims. With "coherent", the training target is True if the claim and all its
        ancestors are true. Claims with unknown labels are never used for training.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted classifier. The attribute is None if all training claims had the same label.
        All claims then have the same log odds.
    weight_below_errors_ : float
        Weight of a true claim below a false one in the price, estimated from the training labels.

    Notes
    -----
    The price takes the result of ``decision_function`` for the log odds that a claim is true. If
    a classifier returns something else, as a support vector machine does, wrap it in
    `sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.graphs import as_batch
    >>> from skdcf.labels import pack_labels
    >>> from skdcf.scorers import ClassifierScorer
    >>> graphs, y = make_reasoning_graphs(30, random_state=0, return_X_y=True)
    >>> batch = as_batch(graphs)
    >>> scorer = ClassifierScorer(GaussianNB()).fit(batch, pack_labels(y, batch))
    >>> scorer.confidence(batch).shape == (batch.n_claims,)
    True
    """

    _parameter_constraints = PricedScorer._parameter_constraints | {
        "estimator": [
            None,
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "target": [StrOptions({"own", "coherent", "hazard"})],
    }

    estimator: Any = None
    _: KW_ONLY
    target: Literal["own", "coherent", "hazard"] = "hazard"

    @property
    def requires_fit(self) -> bool:  # type: ignore[override]
        """Whether `fit` trains the classifier (False for a ``FrozenEstimator``).

        If the estimator is frozen, all problems are used for calibration. The frozen estimator
        must have been trained on other problems.
        """
        return not isinstance(self.estimator, FrozenEstimator)

    def fit(
        self, batch: GraphBatch, labels: np.ndarray, task: FitTask | None = None
    ) -> Self:
        """Train the classifier on the claims of the problems.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Claims with an unknown label are ignored.
        task : FitTask, optional
            Settings for fitting, passed by the filter.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        ValueError
            If the problems have no features, or if the classes of a pretrained classifier are
            neither 0 and 1 nor -1 and 1.
        """
        self.validate()
        self._noise = noise_columns(need_features(batch))
        target, judged = targets_of(self.target, labels, batch)
        X = self._informative(batch)[judged]
        target = target[judged]
        self.estimator_ = None if self.requires_fit else self.estimator
        classes = np.ravel(getattr(self.estimator_, "classes_", [0, 1])).tolist()
        if classes not in ([0, 1], [-1, 1]):
            raise ValueError(
                f"the classes of {self.estimator} must be 0 or -1 (false claims) and 1 (true "
                f"claims), got {classes}"
            )
        self._weights = None
        can_learn = X.shape[1] and 0 < target.sum() < len(target)
        if self.requires_fit and can_learn:
            if self.estimator is None:
                self.estimator_ = _fit_logistic(X, target)
                scaler, regression = self.estimator_.named_steps.values()
                self._weights = regression.coef_[0] / scaler.scale_
                self._offset = regression.intercept_[0] - self._weights @ scaler.mean_
            else:
                self.estimator_ = clone(self.estimator).fit(X, target.astype(int))
        # The log odds that a claim is true if no classifier could be fitted.
        self._constant = smoothed_log_odds(target)
        self.weight_below_errors_ = weight_below_errors(labels, batch)
        return self

    def hazard(self, batch: GraphBatch) -> Floats:
        """Compute the log odds that each claim is false given that all its ancestors are true.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        log_odds : ndarray of shape (n_claims,)
            The log odds of each claim.
        """
        X = self._informative(batch)
        model: Any = self.estimator_
        if hasattr(model, "get_booster") and len(X):
            # The probabilities of xgboost are too coarse near 1.
            return -model.predict(X, output_margin=True).astype(np.float64)
        scores = self._decide(X)
        if model is None or hasattr(model, "decision_function"):
            return -scores
        return -logit(np.float64(scores))

    def _score(self, batch):
        return self._decide(self._informative(batch))

    def _decide(self, X):
        if self.estimator_ is None or not len(X):
            return np.full(len(X), self._constant)
        if self._weights is not None:
            # In contrast to a matrix product, a row-wise sum does not depend on the other rows.
            return (X * self._weights).sum(axis=1) + self._offset
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(X)
        return self.estimator_.predict_proba(X)[:, 1]

    def linear_terms(self, batch: GraphBatch) -> LinearTerms | None:
        n: Any = batch.n_features
        probes = self._decide(np.eye(n + 1, n, k=-1))
        weights = probes[1:] - probes[0]
        weights[self._noise] = 0.0
        features: Any = batch.features
        linear = probes[0] + features @ weights
        if not np.allclose(linear, self._score(batch), rtol=1e-6, atol=1e-6):
            return None
        return tuple(batch.column_names), weights, features

    def _informative(self, batch):
        """Return the features, with columns that vary only by rounding errors set to 0."""
        if not len(self._noise):
            return batch.features
        X = batch.features.copy()
        X[:, self._noise] = 0.0
        return X


def _fit_logistic(X, target):
    """Standardise the features and fit a logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(
        StandardScaler(), LogisticRegression(C=STRENGTH, max_iter=1000)
    )
    # The settings are fixed, so scikit-learn's parameter validation is skipped in each fold.
    with config_context(skip_parameter_validation=True):
        return pipeline.fit(X, target.astype(int))
