"""scikit-learn's own transformers, on the claims of all problems."""

import re

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..graphs import as_batch
from ._base import KeepsGraphs, check_same_input, input_names

_COMPANY = 1000  # claims beside which one is looked at


class ClaimTransformer(KeepsGraphs):
    """Any scikit-learn transformer, applied to the claims of all problems stacked.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Such as StandardScaler or PCA, one that needs no labels. A copy is fitted to the
        table with one row per claim, an array, so that it must call columns by their
        number; its output replaces the feature columns.

    Attributes
    ----------
    transformer_ : the fitted copy

    Notes
    -----
    In a pipeline this step is fitted before the filter sets calibration problems apart.
    Labels are therefore not handed on: a transformer that learns from them, on
    calibration problems too, voids the guarantee. It belongs into the classifier,
    ``HardCF(make_pipeline(SelectKBest(), LogisticRegression()))``, which is trained on
    training problems only.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import ClaimTransformer
    >>> batch = GraphBatch.from_arrays([[1.0], [2.0], [3.0]], [0, 2, 3])
    >>> ClaimTransformer(StandardScaler()).fit_transform(batch).features.ravel()
    array([-1.22474487,  0.        ,  1.22474487])
    """

    def __init__(self, transformer):
        self.transformer = transformer

    def fit(self, X, y=None):
        """Fit a copy of the transformer to the claims.

        Parameters
        ----------
        X : GraphBatch, sequence of ReasoningGraph, or 2-D array
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the transformer needs labels, or its output for a claim depends on the other
        claims that it is given.
        """
        batch = as_batch(X)
        table = claim_table(batch)
        try:
            self.transformer_ = clone(self.transformer).fit(table)
        except (TypeError, ValueError) as error:
            if not re.search("'y'|requires y|got None", str(error)):
                raise
            raise ValueError(
                f"{self.transformer!r} learns from labels, and would learn from those of "
                "calibration problems, which voids the guarantee. Put it into the "
                "classifier instead: HardCF(make_pipeline(transformer, classifier))"
            ) from error
        self._n_out = self._width_alone(table)
        self.feature_names_in_ = np.array(input_names(batch), dtype=object)
        self.n_features_in_ = batch.n_features
        return self

    def transform(self, X):
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
        check_same_input(self, batch)
        table = self._output(claim_table(batch))
        return batch.replace_features(table, self.get_feature_names_out())

    def get_feature_names_out(self, input_features=None):
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
        given = np.array(given, dtype=object)
        try:
            return self.transformer_.get_feature_names_out(given)
        except AttributeError:  # it has none, or one of its steps has none
            if self._n_out == len(given):
                return given
            name = type(self.transformer_).__name__.lower()
            return np.array([f"{name}{i}" for i in range(self._n_out)], dtype=object)

    def _output(self, table):
        """The transformer's output, as an array."""
        table = self.transformer_.transform(table)
        return table.toarray() if hasattr(table, "toarray") else np.asarray(table)

    def _width_alone(self, table):
        """Number of output columns; ValueError where company changes a claim's row."""
        alone, together = self._output(table[:1]), self._output(table[:_COMPANY])
        if not np.allclose(alone, together[:1], rtol=1e-6, equal_nan=True):
            raise ValueError(
                f"{self.transformer!r} gives a claim other values alone than in company. "
                "Calibration and new problems would then be measured differently, which "
                "voids the guarantee: use a transformer that learns in fit"
            )
        return alone.shape[1]


def claim_table(batch):
    """The features, or a ValueError where there are none."""
    if batch.features is None:
        raise ValueError("the problems have no features yet: add some first")
    return batch.features
