"""A scikit-learn classifier as the scorer."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._parameters import HasMethods, StrOptions, settings
from ..graphs import GraphBatch
from ..ops.hard import below_true_claims, coherent_labels
from ..training.splitting import noise_columns
from . import _scorer
from ._scorer import FitTask, LinearForm, Scorer
from ._tree_tables import as_table

# The methods that say how sure a classifier is.
SURE = (
    "predict_proba",
    "decision_function",
)
STRENGTH = 0.03  # C of the logistic regression


@settings
class ClassifierScorer(Scorer):
    """A scikit-learn classifier, trained to tell true claims from false ones.

    Parameters
    ----------
    estimator : classifier or pipeline, optional
        With ``decision_function`` or ``predict_proba``. None is logistic regression on
        standardised features with ``C=0.03``: few answers have an error to learn from.
    target : {"own", "coherent", "hazard"}, default="hazard"
        "hazard" learns the label of the claim from claims whose ancestors are all true:
        what stands below an error is left out. "own" learns the labels of all claims.
        "coherent" learns whether the claim and all its ancestors are true, which is what
        decides about keeping it. Unknown labels are left out in each.

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
        "estimator": [None, *(HasMethods(["fit", name]) for name in SURE)],
        "target": [StrOptions({"own", "coherent", "hazard"})],
    }

    estimator: Any = None
    _: KW_ONLY
    target: Literal["own", "coherent", "hazard"] = "hazard"

    @property
    def requires_fit(self) -> bool:  # type: ignore[override]
        """Whether `fit` learns; not with a ``FrozenEstimator``, which the caller trained.

        All problems calibrate then, and must be new to that estimator.
        """
        return not isinstance(self.estimator, FrozenEstimator)

    def fit(
        self, batch: GraphBatch, labels: NDArray, task: FitTask | None = None
    ) -> Self:
        """Train the classifier on claims.

        Parameters
        ----------
        batch : GraphBatch
            The problems.
        labels : ndarray of shape (n_claims,)
            1 true, 0 false, -1 unknown. Claims whose label is unknown are left out.
        task : FitTask, optional
            What the filter says about the fit.

        Returns
        -------
        self
            The scorer itself, fitted.

        Raises
        ------
        ValueError
            If the problems have no features, or the classes of a classifier that was
            trained before do not say which one is true.
        """
        self._noise = noise_columns(_scorer.need_features(batch))
        target, judged = _targets(self.target, labels, batch)
        X = self._informative(batch)
        if not judged.all():
            X = X[judged]
            target = target[judged]
        self.estimator_ = None if self.requires_fit else self.estimator
        classes = np.ravel(getattr(self.estimator_, "classes_", [0, 1])).tolist()
        if classes not in ([0, 1], [-1, 1]):
            raise ValueError(
                f"the classes of {self.estimator} are {classes}: it has to be trained with "
                "1 for claims that are true and 0 for false ones"
            )
        if self.requires_fit and len(target) and target.min() != target.max():
            if self.estimator is None:
                self.estimator_ = _fit_logistic(X, target)
            else:
                self.estimator_ = clone(self.estimator).fit(X, target.astype(int))
        self._says_odds = hasattr(self.estimator_, "decision_function")
        self.table_ = as_table(self.estimator_)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state without a classifier whose plain arrays say the same."""
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
        table = self.table_
        if not (_is_linear(self.estimator_) if table is None else not len(table.root)):
            return None
        form = _scorer.probed_form(self._decide, batch.n_features)
        form.weights[self._noise] = 0.0
        # Steps before the last may leave the score not linear in the features.
        linear = form(batch.features)
        is_linear = np.allclose(linear, self.confidence(batch), rtol=1e-6, atol=1e-6)
        return form if is_linear else None

    def tree_contributions(self, batch: GraphBatch) -> NDArray[np.float64] | None:
        """What each feature adds to the log odds, of xgboost's trees.

        These are its own values, against the problems that it was trained on; a filter that
        was loaded from a file has the trees but not xgboost's values.

        Parameters
        ----------
        batch : GraphBatch
            The problems.

        Returns
        -------
        ndarray of shape (n_claims, n_features), or None
            What each feature adds; None with another classifier.
        """
        classifier: Any = getattr(self, "estimator_", None)
        if not hasattr(classifier, "get_booster"):
            return None
        from xgboost import DMatrix

        rows = DMatrix(self._informative(batch))
        contributions = classifier.get_booster().predict(rows, pred_contribs=True)
        return contributions[:, :-1].astype(np.float64)

    def _informative(self, batch):
        """The features, with 0 in columns of mere rounding errors, which scaling would blow up."""
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


def _targets(target, labels, batch):
    """Return what a classifier learns for each claim, and whether that is known."""
    positive = labels == 1
    known = labels >= 0
    if target == "coherent":  # one false ancestor is enough to know
        positive = coherent_labels(labels, batch)
        known = positive | ~coherent_labels(labels != 0, batch)
    if target == "hazard":
        known &= below_true_claims(labels, batch)
    return positive, known


def _fit_logistic(X, target):
    """Fit a logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(
        StandardScaler(), LogisticRegression(C=STRENGTH, max_iter=1000)
    )
    # The settings are ours, and need no check of their types in each fit of a fold.
    with config_context(skip_parameter_validation=True):
        return pipeline.fit(X, target.astype(int))
