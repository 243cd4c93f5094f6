"""One linear score, feature by feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._drawing import card, table


class Contributions:
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

    def to_frame(self) -> Any:
        """`rows` as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def _cells(self):
        """Texts of the table: features that add nothing are left out."""
        for row in self.rows():
            if row["contribution"]:
                value, weight, part = list(row.values())[1:]
                yield row["feature"], f"{value:.4g}", f"{weight:.4f}", f"{part:+.4f}"
        if self.offset:
            yield "offset", "", "", f"{self.offset:+.4f}"
        yield "total", "", "", f"{self.total:+.4f}"

    def __repr__(self) -> str:
        cells = list(self._cells())
        width = max(map(len, [*(row[0] for row in cells), "feature"]))
        lines = [f"{'feature':{width}}  {'value':>6}  {'weight':>7}  contribution"]
        lines += [
            f"{name:{width}}  {value:>6}  {weight:>7}  {part:>12}"
            for name, value, weight, part in cells
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return card(contributions_table(self))


def contributions_table(contributions, caption=None):
    """The table in HTML, without a frame."""
    header = "feature", "value", "weight", "contribution"
    return table(header, contributions._cells(), caption)
