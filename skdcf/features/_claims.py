"""scikit-learn's own transformers, on the claims of all problems."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._checks import warn
from .._parameters import HasMethods
from ..graphs import GraphBatch, as_batch
from ._base import Graphs, KeepsGraphs, check_same_columns, list_columns

# A claim's row may depend on the claims beside it by this share of the largest value in
# the column. Matrix products round differently for tables of other heights: by some
# 1e-16 in float64 and 1e-7 in float32, which filters measure and allow for. A mean or a
# scale that is taken from the table itself shows by far more.
_ROUNDING = 1e-6
_MOST_ROWS = 1000  # that are looked at, from the first claim to the last
_HEIGHTS = (1, 7, 64)  # of the small tables whose rows are compared
_N_TABLES = 8  # of each height
_FEWEST = 25  # problems whose halves are compared
_CHANCE = 1e-5  # that problems like those of the fit look unlike them, where this warns


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

    Warns
    -----
    UserWarning
        Where the output follows the problems of the fit, as the notes say.

    Notes
    -----
    In a pipeline this step is fitted before the filter sets calibration problems apart.
    Labels are therefore not handed on: a transformer that learns from them, on
    calibration problems too, voids the guarantee. It belongs into the classifier,
    ``HardCF(make_pipeline(SelectKBest(), LogisticRegression()))``, which is trained on
    training problems only.

    Without labels a transformer can follow the problems that it is fitted to as well, so
    that these, of which some calibrate, are measured otherwise than new ones. With a
    density in front of the filter, 0.19 of the problems kept a false claim where 0.1 was
    promised, and with a whitened PCA of about as many components as claims 0.13; scaling
    made no difference. `fit` looks at this: a copy is fitted to one half of the problems,
    and the halves are compared.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdcf import GraphBatch
    >>> from skdcf.features import ClaimTransformer
    >>> batch = GraphBatch.from_arrays([[1.0], [2.0], [3.0]], [0, 2, 3])
    >>> ClaimTransformer(StandardScaler()).fit_transform(batch).features.ravel()
    array([-1.22474487,  0.        ,  1.22474487])
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "transformer": [HasMethods(["fit", "transform"])]
    }

    def __init__(self, transformer: BaseEstimator):
        self.transformer = transformer

    def fit(self, X: Graphs | ArrayLike, y: Any = None) -> Self:
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
        self.validate()
        batch = as_batch(X)
        table = _get_table(batch)
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
        self._n_out = self._check_rows(table)
        self._compare_halves(table, batch.problem_of)
        self.feature_names_in_ = np.array(list_columns(batch), dtype=object)
        self.n_features_in_ = batch.n_features
        return self

    def transform(self, X: Graphs | ArrayLike) -> GraphBatch:
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
        table = self._output(_get_table(batch))
        return batch.replace_features(table, self.get_feature_names_out())

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
        given = np.array(given, dtype=object)
        try:
            return self.transformer_.get_feature_names_out(given)
        except AttributeError:  # it has none, or one of its steps has none
            if self._n_out == len(given):
                return given
            name = type(self.transformer_).__name__.lower()
            return np.array([f"{name}{i}" for i in range(self._n_out)], dtype=object)

    def _output(self, table, transformer=None):
        """The output of the transformer, or of a copy, as an array."""
        table = (transformer or self.transformer_).transform(table)
        return table.toarray() if hasattr(table, "toarray") else np.asarray(table)

    def _check_rows(self, table):
        """Number of output columns; ValueError where company changes a claim's row."""
        spread = np.linspace(0, len(table) - 1, _MOST_ROWS).round().astype(int)
        table = table[np.unique(spread)]
        together = self._output(table)
        if together.ndim != 2 or len(together) != len(table):
            raise ValueError(
                f"{self.transformer!r} makes an array of shape {together.shape} for "
                f"{len(table)} claims: one row per claim is needed"
            )
        size = np.where(np.isfinite(together), abs(together), 0).max(axis=0)
        for a, b in _list_tables(len(table)):
            alone, expected = self._output(table[a:b]), together[a:b]
            same = alone.shape == expected.shape and np.isclose(
                alone, expected, rtol=0, atol=_ROUNDING * size, equal_nan=True
            )
            if not np.all(same):
                raise ValueError(
                    f"{self.transformer!r} gives a claim other values among {b - a} "
                    f"claims than among {len(table)}, by more than {_ROUNDING:g} of the "
                    "largest in a column, which rounding would explain. Calibration and "
                    "new problems would then be measured differently, which voids the "
                    "guarantee: use a transformer that learns in fit"
                )
        return together.shape[1]

    def _compare_halves(self, table, problem_of):
        """Warn where the transformer sees which problems it was fitted to."""
        n = problem_of[-1] + 1 if len(problem_of) else 0
        half = (np.random.default_rng(0).permutation(n) % 2).astype(bool)
        if n < _FEWEST:  # nothing could be told from them
            return
        try:
            copy = clone(self.transformer).fit(table[half[problem_of]])
            chances = _chances(self._output(table, copy), problem_of, half)
        except ValueError:  # it takes more than half of the claims
            chances = iter([0.0])
        if min(chances, default=1.0) < _CHANCE:
            warn(
                "the transformer follows the problems that it is fitted to: new ones come "
                "out otherwise. If these problems calibrate, too, the promise does not "
                "hold. Put it into the classifier, HardCF(make_pipeline(transformer, "
                "classifier)), or calibrate the fitted pipeline on problems that it has "
                f"not seen. It is {self.transformer!r}"
            )


def _chances(values, problem_of, half):
    """Probabilities that chance makes two halves differ as much, in location and spread."""
    from scipy.stats import mannwhitneyu

    centred = values - np.median(values, axis=0)
    scale = np.median(np.abs(centred), axis=0)
    centred /= np.where(scale > 0, scale, 1.0)
    known = np.bincount(problem_of, minlength=len(half)) > 0
    for claims in (centred.mean(axis=1), (centred**2).mean(axis=1)):
        total = np.bincount(problem_of, claims, len(half))
        means = total[known] / np.bincount(problem_of, minlength=len(half))[known]
        one, other = means[half[known]], means[~half[known]]
        if len(one) and len(other) and np.isfinite(means).all():
            yield mannwhitneyu(one, other).pvalue


def _list_tables(n_rows: int) -> Iterator[tuple[int, int]]:
    """Bounds of some small tables, which lie anywhere in the large one."""
    for height in _HEIGHTS:
        last = max(n_rows - height, 0)
        for a in np.unique(np.linspace(0, last, _N_TABLES).round().astype(int)):
            yield int(a), int(min(a + height, n_rows))


def _get_table(batch: GraphBatch) -> np.ndarray:
    """The features, or a ValueError where there are none."""
    if batch.features is None:
        raise ValueError(
            "the problems have no features yet: add some first, such as "
            "reasoning_features()"
        )
    return batch.features
