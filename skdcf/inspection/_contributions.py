"""One linear score, feature by feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._table import Table


class Contributions(Table):
    """Weight times value for each feature of a claim; prints as a table.

    Parameters
    ----------
    feature_names : sequence of str
    values, weights : array-like of shape (n_features,)
    offset : float, default=0.0
        What is added whatever the features are.

    Attributes
    ----------
    contribution : ndarray of shape (n_features,)
    total : float
        Their sum with the offset: the score.

    References
    ----------
    Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix on the case studies.

    Examples
    --------
    >>> from skdcf.inspection import Contributions
    >>> Contributions(["frequency", "depth"], [5, 2], [0.02, -0.1], offset=0.3)
    feature    value   weight  contribution
    depth          2  -0.1000       -0.2000
    frequency      5   0.0200       +0.1000
    offset                          +0.3000
    total                           +0.2000
    """

    def __init__(
        self,
        feature_names: Iterable[str],
        values: ArrayLike,
        weights: ArrayLike,
        offset: float = 0.0,
    ) -> None:
        self.feature_names = tuple(feature_names)
        self.values = np.asarray(values, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.offset = float(offset)
        n = len(self.feature_names)
        if not self.values.shape == self.weights.shape == (n,):
            raise ValueError(
                f"there are {n} feature names, values of shape {self.values.shape} and "
                f"weights of shape {self.weights.shape}: one of each is needed per feature"
            )

    @property
    def contribution(self) -> NDArray[np.float64]:
        """Weight times value, shape (n_features,)."""
        return self.values * self.weights

    @property
    def total(self) -> float:
        """The sum of all contributions and the offset."""
        return float(self.contribution.sum() + self.offset)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per feature, the largest contribution first.

        Returns
        -------
        list of dict
        """
        order = np.argsort(-np.abs(self.contribution), kind="stable")
        return [
            {
                "feature": self.feature_names[i],
                "value": float(self.values[i]),
                "weight": float(self.weights[i]),
                "contribution": float(self.contribution[i]),
            }
            for i in order
        ]

    _columns = {
        "feature": "{feature}",
        "value": "{value:.4g}",
        "weight": "{weight:.4f}",
        "contribution": "{contribution:+.4f}",
    }

    def _tables(self):
        """The table without features that add nothing, and with the sum at its end."""
        nan = float("nan")
        rows = [row for row in self.rows() if row["contribution"]]
        ends = [("offset", self.offset)] if self.offset else []
        rows += [
            {"feature": name, "value": nan, "weight": nan, "contribution": part}
            for name, part in (*ends, ("total", self.total))
        ]
        return [(self._heading(), self._columns, rows)]
