"""Any scikit-learn classifier as a scorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._parameters import HasMethods, StrOptions
from ..ops.hard import coherent_labels
from ..ops.standardize import noise_columns
from ._form import LinearForm, probed_form
from ._protocol import Scorer, Task, need_features

if TYPE_CHECKING:
    from ..graphs import GraphBatch


class ClassifierScorer(Scorer):
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

    _parameter_constraints = {
        "estimator": [
            None,
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "label": [StrOptions({"own", "coherent"})],
    }

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether `fit` learns; not with a ``FrozenEstimator``, which the caller trained.

        All problems calibrate then, and must be new to that estimator.
        """
        return not isinstance(self.estimator, FrozenEstimator)

    def __init__(
        self, estimator: Any = None, *, label: Literal["own", "coherent"] = "own"
    ) -> None:
        self.estimator = estimator
        self.label = label

    def fit(self, batch: GraphBatch, labels: NDArray, task: Task | None = None) -> Self:
        """Train the classifier on claims.

        Parameters
        ----------
        batch, labels, task
            As in `Scorer.fit`. Claims whose label is unknown are left out.

        Returns
        -------
        self
        """
        need_features(batch)
        target, known = _TARGETS[self.label](labels, batch)
        self._noise = noise_columns(batch.features)
        X = self._informative(batch)
        if not known.all():
            X, target = X[known], target[known]
        self.estimator_ = None if self.learns else self.estimator
        if self.learns and len(target) and target.min() != target.max():
            estimator = logistic() if self.estimator is None else clone(self.estimator)
            self.estimator_ = estimator.fit(X, target.astype(int))
        return self

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        if self.estimator_ is None or not batch.n_claims:
            return np.zeros(batch.n_claims)
        X = self._informative(batch)
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(X)
        return self.estimator_.predict_proba(X)[:, 1]

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """The log odds as a weighted sum, where the classifier is linear.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        LinearForm or None
        """
        if self.estimator_ is None:
            return LinearForm.unbounded(np.zeros(batch.n_features))
        if not (_is_linear(self.estimator_) and _is_linear_form_of(self, batch)):
            return None
        return self._form(batch.n_features)

    def _form(self, n_features):
        form = probed_form(self.estimator_.decision_function, n_features)
        form.weights[self._noise] = 0.0
        return form

    def shap_values(
        self, batch: GraphBatch, background: GraphBatch
    ) -> NDArray[np.float64]:
        """What each feature adds to the confidence.

        Those of a linear classifier as in `Scorer.shap_values`. Those of xgboost's trees
        are its own, of the log odds and against the problems that it was trained on.

        Parameters
        ----------
        batch, background : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims, n_features)
        """
        if not hasattr(self.estimator_, "get_booster"):
            return super().shap_values(batch, background)
        from xgboost import DMatrix

        rows = DMatrix(self._informative(batch))
        found = self.estimator_.get_booster().predict(rows, pred_contribs=True)
        return found[:, :-1].astype(np.float64)

    def _informative(self, batch):
        """The features, with 0 in columns of rounding errors, lest these be scaled up."""
        if not len(self._noise):
            return batch.features
        X = batch.features.copy()
        X[:, self._noise] = 0.0
        return X


def _is_linear(estimator):
    """Whether a classifier, or the last step of a pipeline, has weights."""
    last = getattr(estimator, "steps", [(None, estimator)])[-1][1]
    return hasattr(last, "coef_") and hasattr(estimator, "decision_function")


def _is_linear_form_of(scorer, batch):
    """Whether the steps before the last leave the score linear in the features."""
    form, found = scorer._form(batch.n_features), scorer.confidence(batch)
    return np.allclose(form(batch.features), found, rtol=1e-6, atol=1e-6)


def _own(labels, batch):
    """Targets, and where they are known: the claim's own label."""
    return labels == 1, labels >= 0


def _coherent(labels, batch):
    """Targets, and where they are known: whether it and all its ancestors are true."""
    target = coherent_labels(labels, batch)
    return target, target | ~coherent_labels(labels != 0, batch)


_TARGETS = {"own": _own, "coherent": _coherent}


def logistic():
    """Logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
