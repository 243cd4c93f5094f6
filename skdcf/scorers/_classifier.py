"""Any scikit-learn classifier as a scorer."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._parameters import HasMethods, StrOptions, settings
from ..ops.hard import below_true_claims, coherent_labels
from ..training.standardize import noise_columns
from ._scorer import LinearForm, Scorer, Task, need_features, probed_form
from ._tables import as_table

if TYPE_CHECKING:
    from ..graphs import GraphBatch


@settings
class ClassifierScorer(Scorer):
    """A scikit-learn classifier, trained to tell true claims from false ones.

    Parameters
    ----------
    estimator : classifier or pipeline, optional
        With ``decision_function`` or ``predict_proba``. None is logistic regression on
        standardised features.
    label : {"own", "coherent", "hazard"}, default="own"
        "own" learns the label of the claim. "coherent" learns whether the claim and all
        its ancestors are true, which is what decides about keeping it. "hazard" learns
        the label of the claim from claims whose ancestors are all true: what stands
        below an error is left out. Unknown labels are left out in each.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted classifier; None where all training claims had the same label, and
        every claim gets the same confidence. It is not in files where ``table_`` stands
        for it.
    table_ : HazardTable or None
        Forests, boosted trees and logistic regressions as plain arrays, which then
        give the confidence; None for other classifiers.

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
        "label": [StrOptions({"own", "coherent", "hazard"})],
    }

    estimator: Any = None
    _: KW_ONLY
    label: Literal["own", "coherent", "hazard"] = "own"

    @property
    def learns(self) -> bool:  # type: ignore[override]
        """Whether `fit` learns; not with a ``FrozenEstimator``, which the caller trained.

        All problems calibrate then, and must be new to that estimator.
        """
        return not isinstance(self.estimator, FrozenEstimator)

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
        self._says_odds = hasattr(self.estimator_, "decision_function")
        self.table_ = as_table(self.estimator_)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """All but a classifier that is there as plain arrays."""
        state = super().__getstate__()
        if state.get("table_") is not None:
            state = {k: v for k, v in state.items() if k != "estimator_"}
        return state

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return self._decide(self._informative(batch))

    def _decide(self, X):
        if self.table_ is not None:
            odds, chances = self.table_.read(X)
            if len(chances):
                return chances[0]
            return odds if self._says_odds else expit(odds)
        if self.estimator_ is None or not len(X):
            return np.zeros(len(X))
        if self._says_odds:
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
        table = self.table_
        if not (_is_linear(self.estimator_) if table is None else not len(table.root)):
            return None
        form = probed_form(self._decide, batch.n_features)
        form.weights[self._noise] = 0.0
        # Steps before the last may leave the score not linear in the features.
        found = form(batch.features), self.confidence(batch)
        return form if np.allclose(*found, rtol=1e-6, atol=1e-6) else None

    def shap_values(
        self, batch: GraphBatch, background: GraphBatch
    ) -> NDArray[np.float64]:
        """What each feature adds to the confidence.

        Those of a linear classifier as in `Scorer.shap_values`. Those of xgboost's trees
        are its own, of the log odds and against the problems that it was trained on; a
        filter that was loaded from a file has the trees but not xgboost's values.

        Parameters
        ----------
        batch, background : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims, n_features)
        """
        if not hasattr(getattr(self, "estimator_", None), "get_booster"):
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
    linear = hasattr(last, "coef_") and hasattr(estimator, "decision_function")
    return estimator is None or linear


def _own(labels, batch):
    """Targets, and where they are known: the claim's own label."""
    return labels == 1, labels >= 0


def _coherent(labels, batch):
    """Targets, and where they are known: whether it and all its ancestors are true."""
    target = coherent_labels(labels, batch)
    return target, target | ~coherent_labels(labels != 0, batch)


def _hazard(labels, batch):
    """Targets, and where they are known: its own label, below true claims alone."""
    return labels == 1, (labels >= 0) & below_true_claims(labels, batch)


_TARGETS = {"own": _own, "coherent": _coherent, "hazard": _hazard}


def logistic():
    """Logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
