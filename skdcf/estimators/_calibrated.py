"""From a calibration to kept claims: levels, thresholds, masks.

What a guarantee rests on stands here and in ``_calibrating``, once, and is the same for all
filters and all guarantees.
"""

from collections.abc import Iterable
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice
from ..graphs import Labels, Problems, ReasoningGraph, answer_text
from ..graphs.ragged import segment_ids
from ..ops.hard import path_risk, segment_sum
from ._calibrating import CalibratingFilter
from ._labels import flat_labels
from ._repeat import confidence_of
from ._ties import TIES

OUTPUTS = {"graphs": lambda graph: graph, "text": answer_text}


class CalibratedFilter(CalibratingFilter):
    """What a filter does once it is calibrated: filter problems."""

    def thresholds(self, X: Problems, alpha: float | None = None) -> NDArray:
        """The threshold of each problem: claims with a smaller path risk are kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional
            None is the filter's own.

        Returns
        -------
        ndarray of shape (n_problems,)
            All the same, unless ``guarantee`` looks at groups, weights or counts.
        """
        claims, batch, _ = self._claims(X)
        level = self._level(alpha)
        self._warn(self.calibration_, level)
        return np.broadcast_to(
            self.calibration_.thresholds(claims, level), len(batch)
        ).copy()

    def predict(self, X: Problems, alpha: float | None = None) -> NDArray:
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
        margin, batch, is_table = self._decision(X, alpha)
        return _shaped(margin > 0, batch, is_table)

    def predict_alpha(self, X: Problems) -> NDArray:
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
        claims, batch, is_table = self._claims(X)
        keep_equal = TIES[self.ties].keep_equal
        return _shaped(self.calibration_.levels(claims, keep_equal), batch, is_table)

    def masks(self, X: Problems, alphas: Iterable[float]) -> NDArray[np.bool_]:
        """Which claims are kept at several levels, from one look at the problems.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alphas : sequence of float

        Returns
        -------
        ndarray of bool, shape (n_alphas, n_claims)
            A row is what ``predict(X, alpha)`` returns, in one piece.
        """
        claims, _, _ = self._claims(X)
        margins = (self._margin(claims, self._level(alpha)) for alpha in alphas)
        return np.array([margin > 0 for margin in margins])

    def path_risk(self, X: Problems) -> NDArray:
        """The largest risk among each claim and its ancestors.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`. Without ``coherent``, the claim's own risk.
        """
        claims, batch, is_table = self._claims(X)
        return _shaped(claims.path_risk, batch, is_table)

    def decision_function(self, X: Problems) -> NDArray:
        """Threshold minus path risk: positive exactly where `predict` keeps.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)

        Returns
        -------
        Shaped as in `predict_alpha`; -inf everywhere where nothing may be kept.
        """
        return _shaped(*self._decision(X, None))

    @overload
    def filter(
        self,
        X: Problems,
        alpha: float | None = None,
        *,
        output: Literal["graphs"] = "graphs",
    ) -> list[ReasoningGraph]: ...

    @overload
    def filter(
        self, X: Problems, alpha: float | None = None, *, output: Literal["text"]
    ) -> list[str]: ...

    def filter(self, X, alpha=None, *, output="graphs"):
        """The problems with their kept claims only.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        alpha : float in (0, 1), optional
        output : {"graphs", "text"}, default="graphs"
            "text" is the kept claims of each problem, one a line.

        Returns
        -------
        list of ReasoningGraph, or list of str

        Raises
        ------
        ValueError
            If text is wanted of claims that have none.
        """
        check_choice("output", output, OUTPUTS)
        batch = self.check(X)
        masks = self.predict(batch, alpha)
        kept = (g.subgraph(mask) for g, mask in zip(batch, masks, strict=True))
        return [OUTPUTS[output](graph) for graph in kept]

    def score(
        self, X: Problems, y: Labels, sample_weight: ArrayLike | None = None
    ) -> float:
        """Retention: mean number of true claims kept per problem, at ``self.alpha``.

        Parameters
        ----------
        X, y
            As in `fit`. Claims whose label is unknown do not count.
        sample_weight : array-like of shape (n_problems,), optional
            Weights of the problems in the mean.

        Returns
        -------
        float
        """
        margin, batch, is_table = self._decision(X, None)
        labels, _ = flat_labels(y, batch, is_table, self._label_values)
        kept = segment_sum((labels == 1) & (margin > 0), batch.offsets)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(kept, weights=weights))

    def _decision(self, X, alpha):
        """Threshold minus path risk, the problems, and whether they were a table."""
        claims, batch, is_table = self._claims(X)
        level = self._level(alpha)
        self._warn(self.calibration_, level)
        return self._margin(claims, level), batch, is_table

    def _margin(self, claims, level):
        threshold = self.calibration_.thresholds(claims, level)
        if TIES[self.ties].keep_equal and np.isfinite(threshold):
            threshold = np.nextafter(threshold, np.inf)
        if np.ndim(threshold):
            threshold = threshold[segment_ids(claims.offsets)]
        return threshold - claims.path_risk

    def _claims(self, X):
        """What the calibration looks at, the problems, and whether they were a table."""
        check_is_fitted(self, "nonconformity_scores_")
        if self._settings() != self._calibrated_as:
            raise ValueError(
                "(coherent, ties, guarantee) was "
                f"{self._calibrated_as} at calibration and is {self._settings()} now: "
                "call calibrate or fit again"
            )
        promise = self.calibration_.promise  # the caller's may have changed
        if self._promise().functions != promise.functions:
            raise ValueError(
                "guarantee has other functions for by or weight than at calibration: call "
                "calibrate or fit again"
            )
        batch, is_table = self._admit(X)
        risk = self._risk(confidence_of(self.scorer_, batch), batch)
        return promise.claims(path_risk(risk, batch), batch), batch, is_table

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _shaped(values, batch, is_table):
    return values if is_table else batch.split(values)
