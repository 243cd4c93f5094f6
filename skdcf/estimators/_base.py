"""What all filters share: calibration, thresholds, masks.

A subclass says how its scorer comes about (`_make_scorer`, `_fit_scorer`); everything
that the guarantee rests on stands here, once.
"""

import warnings
from abc import ABCMeta, abstractmethod
from types import SimpleNamespace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._checks import check_alpha, check_groups
from ..exceptions import CalibrationWarning
from ..ops.conformal import (
    claim_alpha,
    conformal_rank,
    conformal_threshold,
    problems_needed,
)
from ..ops.hard import nonconformity_scores, path_risk
from ..scorers import FeatureScorer, FrequencyScorer
from ._jitter import jittered
from ._validation import (
    check_alone,
    check_labels,
    check_problems,
    holdout,
    take,
    unchanged_on_error,
)

EXACT = FeatureScorer, FrequencyScorer  # the same to the last bit in any company
ROUNDING = 1e-10


class BaseFilter(BaseEstimator, metaclass=ABCMeta):
    """Calibrate a scorer on problems, then keep claims below the threshold."""

    ties = "exclude"
    trains_for_alpha = False  # whether another alpha would give another scorer

    @abstractmethod
    def _make_scorer(self, batch):
        """A fresh scorer, its parameters checked."""

    def _trains(self, scorer):
        """Whether the scorer learns, so that calibration needs other problems."""
        return getattr(scorer, "needs_training", hasattr(scorer, "fit"))

    def _fit_scorer(self, scorer, batch, labels, groups, rng):
        """The fitted scorer; ``batch`` holds training problems only."""
        return scorer.fit(batch, labels) if hasattr(scorer, "fit") else scorer

    def fit(self, X, y, groups=None):
        """Train the scorer if it learns, then calibrate on problems held out of that.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Rows of an array are problems with one claim each.
        y : sequence of 1-D 0/1 arrays, one per problem
            1 for a true claim. For a GraphBatch also one flat array; for an array X a
            1-D array of two label values, of which the larger means true.
        groups : array-like of shape (n_problems,), optional
            Problems of one group (say, of the same question) are held out together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On bad problems, labels or parameters, before anything is computed.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        """
        with unchanged_on_error(self):
            parts = self._prepare(X, y, groups)
            scorer = self._fit_scorer(
                parts.scorer, parts.batch, parts.labels, parts.groups, parts.rng
            )
            return self._finish(scorer, parts)

    def _prepare(self, X, y, groups):
        """Check everything, and set the calibration problems apart."""
        self._check_parameters()
        batch, is_table = check_problems(self, X, reset=True)
        labels, values = check_labels(y, batch, is_table)
        groups = check_groups(groups, len(batch))
        scorer = self._make_scorer(batch)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.RandomState(seed)
        held = batch, labels
        if self._trains(scorer) or self.calibration_size is not None:
            size = 0.3 if self.calibration_size is None else self.calibration_size
            rest, rows = holdout(len(batch), size, groups, rng)
            groups = None if groups is None else groups[rest]
            held = take(batch, labels, rows)
            batch, labels = take(batch, labels, rest)
        return SimpleNamespace(
            scorer=scorer,
            batch=batch,
            labels=labels,
            groups=groups,
            rng=rng,
            held=held,
            seed=seed,
            values=values,
        )

    def _finish(self, scorer, parts):
        """Calibrate; only then is anything stored."""
        check_alone(scorer, parts.held[0])
        scores = self._scores(scorer, parts.seed, *parts.held)
        self.scorer_, self._seed = scorer, parts.seed
        self._label_values = parts.values
        return self._store(scores)

    def calibrate(self, X, y):
        """Calibrate again, on problems of the caller's; the scorer stays as it is.

        Parameters
        ----------
        X, y
            As in `fit`; problems that the scorer has not seen.

        Returns
        -------
        self

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        """
        check_is_fitted(self)
        self._check_parameters()
        batch, is_table = check_problems(self, X, reset=False)
        labels, _ = check_labels(y, batch, is_table, self._label_values)
        return self._store(self._scores(self.scorer_, self._seed, batch, labels))

    def _scores(self, scorer, seed, batch, labels):
        risk = self._path_risk(scorer, seed, batch)
        scores = np.sort(nonconformity_scores(risk, labels, batch.offsets))
        if self.ties == "include" or isinstance(scorer, EXACT):
            return scores
        # Sums are rounded differently in batches of another size: the risk of an exact
        # copy of a false claim may come out a few bits below its score.
        finite = np.isfinite(scores)
        scores[finite] -= ROUNDING * (1 + np.abs(scores[finite]))
        return scores

    def _store(self, scores):
        threshold = self._threshold(scores, self.alpha)
        self.nonconformity_scores_ = scores
        self.n_calibration_ = len(scores)
        self.threshold_ = threshold
        self._calibrated_as = self.coherent, self.ties
        return self

    def threshold(self, alpha=None):
        """The conformal threshold: claims with a smaller path risk are kept.

        Parameters
        ----------
        alpha : float in (0, 1), optional
            None is the filter's own.

        Returns
        -------
        float
            The floor(alpha (n + 1))-th smallest nonconformity score; -inf (nothing is
            kept) if that rank is 0, +inf (everything is kept) if so many calibration
            problems are free of errors.

        Warns
        -----
        CalibrationWarning
            If the rank is 0.
        """
        check_is_fitted(self, "nonconformity_scores_")
        return self._threshold(self.nonconformity_scores_, alpha)

    def _threshold(self, scores, alpha):
        alpha = check_alpha(self.alpha if alpha is None else alpha)
        n = len(scores)
        if conformal_rank(n, alpha) == 0:
            warnings.warn(
                f"{n} calibration problems are too few for alpha = {alpha:g}: nothing "
                f"can be kept. At least {problems_needed(alpha)} are needed, of those "
                f"that calibration_size holds out, or alpha >= {1 / (n + 1):.4g}.",
                CalibrationWarning,
                stacklevel=4,
            )
        return conformal_threshold(scores, alpha)

    def predict(self, X, alpha=None):
        """Which claims are kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional
            None is the filter's own. Kept sets are nested in alpha.

        Returns
        -------
        object ndarray of shape (n_problems,) with one boolean mask per problem, or a
        boolean ndarray of shape (n_problems,) for an array X.
        """
        margin, batch, is_table = self._margin(X, alpha)
        return _shaped(margin > 0, batch, is_table)

    def predict_alpha(self, X):
        """The smallest alpha at which each claim is kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        object ndarray of shape (n_problems,) with one array per problem, or an ndarray
        for an array X. ``predict(X, alpha=a)`` is ``predict_alpha(X) <= a``; 1 says
        that the claim is never kept.
        """
        risk, batch, is_table = self._checked_risk(X)
        levels = claim_alpha(self.nonconformity_scores_, risk, self.ties)
        return _shaped(levels, batch, is_table)

    def path_risk(self, X):
        """The largest risk among each claim and its ancestors.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`. Without ``coherent``, the claim's own risk.
        """
        return _shaped(*self._checked_risk(X))

    def decision_function(self, X):
        """Threshold minus path risk: positive exactly where `predict` keeps.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`; -inf everywhere where nothing may be kept.
        """
        return _shaped(*self._margin(X, None))

    def filter(self, X, alpha=None):
        """The problems with their kept claims only.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional

        Returns
        -------
        list of ReasoningGraph
        """
        margin, batch, _ = self._margin(X, alpha)
        pairs = zip(batch, batch.split(margin > 0), strict=True)
        return [graph.subgraph(mask) for graph, mask in pairs]

    def score(self, X, y):
        """Retention: mean number of true claims kept per problem, at ``self.alpha``.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        float
        """
        margin, batch, is_table = self._margin(X, None)
        labels, _ = check_labels(y, batch, is_table, self._label_values)
        return float(np.sum(labels & (margin > 0)) / len(batch))

    def _margin(self, X, alpha):
        threshold, (risk, batch, is_table) = (
            self.threshold(alpha),
            self._checked_risk(X),
        )
        if self.ties == "include" and np.isfinite(threshold):
            threshold = np.nextafter(threshold, np.inf)
        return threshold - risk, batch, is_table

    def _checked_risk(self, X):
        check_is_fitted(self, "nonconformity_scores_")
        if (self.coherent, self.ties) != self._calibrated_as:
            raise ValueError(
                f"(coherent, ties) was {self._calibrated_as} at calibration and is "
                f"{(self.coherent, self.ties)} now: call calibrate or fit again"
            )
        batch, is_table = check_problems(self, X, reset=False)
        return self._path_risk(self.scorer_, self._seed, batch), batch, is_table

    def _path_risk(self, scorer, seed, batch):
        """R of each claim: all that calibration and prediction see."""
        confidence = np.asarray(scorer.confidence(batch), dtype=np.float64)
        if confidence.shape != (batch.n_claims,):
            raise ValueError(
                f"the scorer returned shape {confidence.shape} for {batch.n_claims} "
                "claims"
            )
        if not np.isfinite(confidence).all():
            row = int(np.argmin(np.isfinite(confidence)))
            raise ValueError(
                f"the scorer's confidence of {batch.locate(row)} is {confidence[row]}: "
                "confidences must be finite"
            )
        jitter = self.ties == "jitter"
        risk = jittered(-confidence, batch, seed) if jitter else -confidence
        return path_risk(risk, batch) if self.coherent else risk

    def _check_parameters(self):
        check_alpha(self.alpha)
        if self.ties not in ("exclude", "include", "jitter"):
            raise ValueError(
                f'ties is {self.ties!r}: "exclude", "include" or "jitter" expected'
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _shaped(values, batch, is_table):
    return values if is_table else batch.split(values)
