"""scikit-learn's own transformers, on the claims of all problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._parameters import HasMethods
from ..graphs import GraphBatch, as_batch, pack_labels
from ._base import Graphs, KeepsGraphs, check_same_columns, list_columns
from .columns import fit_columns, learns, names_of, transformed


class ClaimTransformer(KeepsGraphs):
    """Any scikit-learn transformer, applied to the claims of all problems stacked.

    Filters take transformers as they are, by ``features=``. This one is for a transformer
    that learns nothing, in a Pipeline around a filter.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Such as ``FunctionTransformer(numpy.log1p)``. A copy is fitted to the table with one
        row per claim, an array, so that it must call columns by their number; its output
        replaces the feature columns.

    Attributes
    ----------
    transformer_ : the fitted copy

    Notes
    -----
    In a Pipeline a step is fitted before the filter sets calibration problems apart, so that
    a transformer that learns is refused there. ``HardCF(features=PCA(3))`` fits it to the
    training problems only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import ClaimTransformer
    >>> batch = GraphBatch.from_arrays([[1.0], [2.0], [4.0]], [0, 2, 3])
    >>> ClaimTransformer(FunctionTransformer(np.log2)).fit_transform(batch).features.ravel()
    array([0., 1., 2.])
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "transformer": [HasMethods(["fit", "transform"])]
    }
    reads_edges = False

    def __init__(self, transformer: BaseEstimator):
        self.transformer = transformer

    def does_learn(self) -> bool:
        """Whether the transformer learns, which scikit-learn's tags say.

        Returns
        -------
        bool
        """
        return learns(self.transformer)

    def fit(self, X: Graphs, y: Any = None) -> Self:
        """Fit a copy of the transformer to the claims.

        Parameters
        ----------
        X : GraphBatch, sequence of ReasoningGraph, or 2-D array
        y : labels of the claims, optional
            A transformer that learns sees the claims that were judged, with 0 and 1; all
            claims, without labels, where y is None.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the transformer cannot be fitted, or does not make one row per claim.
        """
        self.validate()
        batch = as_batch(X)
        labels = None if y is None else pack_labels(y, batch)
        self.transformer_ = fit_columns(self.transformer, batch, labels)
        self.n_columns_ = transformed(self.transformer_, batch)[0].shape[1]
        self.feature_names_in_ = np.array(list_columns(batch), dtype=object)
        self.n_features_in_ = batch.n_features
        return self

    def transform(self, X: Graphs) -> GraphBatch:
        """Replace the feature columns by the transformer's output.

        Parameters
        ----------
        X : GraphBatch, sequence of ReasoningGraph, or 2-D array

        Returns
        -------
        GraphBatch
        """
        check_is_fitted(self)
        batch = as_batch(X)
        check_same_columns(self, batch)
        return batch.replace_features(*transformed(self.transformer_, batch))

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> np.ndarray:
        """Names of the columns of the transformed problems.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the input columns; those seen in `fit` by default.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        given = self.feature_names_in_ if input_features is None else input_features
        return np.array(
            names_of(self.transformer_, list(given), self.n_columns_), dtype=object
        )
