"""What each feature adds to scores, and features ranked by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._table import Table
from ..metrics import filter_in

if TYPE_CHECKING:
    from ..graphs import Problems


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceReport(Table):
    """Importances of features over repetitions; prints as a ranking.

    Attributes
    ----------
    feature_names : tuple of str
    importances : ndarray of shape (n_repeats, n_features)
    what : str
        What an importance is, in words.
    """

    feature_names: tuple
    importances: np.ndarray
    what: str

    @property
    def mean(self) -> NDArray:
        """Mean importance, shape (n_features,)."""
        return self.importances.mean(axis=0)

    @property
    def deviation(self) -> NDArray:
        """Standard deviation over the repetitions, shape (n_features,)."""
        return self.importances.std(axis=0)

    @property
    def ranking(self) -> NDArray:
        """Column numbers, the most important first."""
        return np.argsort(-self.mean, kind="stable")

    def rows(self) -> list[dict[str, Any]]:
        """One dict per feature, in the order of the ranking.

        Returns
        -------
        list of dict
        """
        return [
            {
                "rank": rank + 1,
                "feature": self.feature_names[j],
                "mean": float(self.mean[j]),
                "deviation": float(self.deviation[j]),
            }
            for rank, j in enumerate(self.ranking)
        ]

    _columns = {
        "rank": "{rank:d}",
        "feature": "{feature}",
        "mean": "{mean:.3f}",
        "deviation": "{deviation:.3f}",
    }

    def _heading(self):
        return self.what


@dataclass(frozen=True, eq=False, repr=False)
class ShapReport(ImportanceReport):
    """Shapley values of claims; as an importance, their absolute values.

    Attributes
    ----------
    feature_names : tuple of str
    importances : ndarray of shape (n_rows, n_features)
        Absolute Shapley values, so that ``mean`` and ``deviation`` are those of the
        paper's table.
    what : str
    values : ndarray of shape (n_rows, n_features)
        Shapley values: what the feature adds to the confidence of the claim.
    features : ndarray of shape (n_rows, n_features)
        The features themselves.
    """

    values: np.ndarray
    features: np.ndarray

    @classmethod
    def from_values(cls, feature_names, values, features):
        """A report of Shapley values and of the features that they belong to.

        Parameters
        ----------
        feature_names : sequence of str
        values, features : ndarray of shape (n_rows, n_features)

        Returns
        -------
        ShapReport
        """
        what = f"mean |SHAP| over {len(values)} values per feature"
        return cls(tuple(feature_names), np.abs(values), what, values, features)


def shap_values(filter: Any, X: Problems, *, background: Problems | None = None) -> Any:
    """Shapley values of each claim's confidence.

    Exact, without sampling: of a linear score they are weight times the distance of the
    value from the mean over the background; of xgboost's trees, its own contributions to
    the log odds. Other scorers are refused: see `permutation_importance`.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : problems, as in the filter's `predict`
    background : problems, optional
        Values are compared with these; None is X. Trees compare with what they were
        trained on, and look at no background.

    Returns
    -------
    ShapReport

    Raises
    ------
    ValueError
        If the scorer is neither linear nor a boosted tree.

    References
    ----------
    S. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model Predictions.
    NeurIPS 2017.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import shap_values
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0).fit(graphs[:200], y[:200])
    >>> report = shap_values(dcf, graphs[200:])
    >>> report.values.shape == graphs[200:].features.shape
    True
    """
    filter = filter_in(filter)
    batch = filter.columns(X)
    other = batch if background is None else filter.columns(background)
    values = filter.scorer_.shap_values(batch, other)
    return ShapReport.from_values(names_of(batch), values, batch.features)


def names_of(batch):
    """Names of the features, or x0, x1, ... where they have none."""
    return batch.feature_names or tuple(f"x{j}" for j in range(batch.n_features))
