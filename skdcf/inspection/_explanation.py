"""Why claims of one answer were kept or dropped: numbers, sentences, and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from .._drawing import card, problem_html, table
from ._contributions import Contributions, contributions_table

if TYPE_CHECKING:
    from ..graphs import ReasoningGraph
    from ..scorers import LinearForm


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What a filter did to one answer; prints as sentences, shows as HTML.

    Parameters
    ----------
    graph : ReasoningGraph
        The answer, as the filter saw it.
    alpha : float
    kept : ndarray of bool, shape (n_claims,)
    confidence : ndarray of shape (n_claims,)
        What the scorer gave the claim by itself; its risk is minus that.
    path_risk : ndarray of shape (n_claims,)
        The largest risk among the claim and its ancestors.
    decided_by : ndarray of int, shape (n_claims,)
        The claim that has this largest risk: the claim itself, or an ancestor.
    threshold : ndarray of shape (n_claims,)
        A claim is kept where its path risk is below; the same for all claims, unless the
        guarantee has several thresholds.
    kept_from : ndarray of shape (n_claims,)
        The smallest alpha at which the claim is kept; +inf says that it never is,
        NaN that it is not known, as with groups that overlap.
    n_calibration : int
    labels : ndarray of int, shape (n_claims,), or None
        1 true, 0 false, -1 unknown, where they were given.
    form : LinearForm or None
        Of a linear scorer.
    """

    graph: ReasoningGraph
    alpha: float
    kept: np.ndarray
    confidence: np.ndarray
    path_risk: np.ndarray
    decided_by: np.ndarray
    threshold: np.ndarray
    kept_from: np.ndarray
    n_calibration: int
    labels: np.ndarray | None = None
    form: LinearForm | None = None

    @property
    def reasons(self) -> dict[int, str]:
        """A sentence for each dropped claim, by its number."""
        return {v: self._reason(v) for v in np.flatnonzero(~self.kept).tolist()}

    def _reason(self, v):
        return f"Claim {v} was dropped{self._why(v)}{self._way_out(v)}."

    def _why(self, v):
        threshold, cause = self.threshold[v], int(self.decided_by[v])
        if isinf(threshold):
            return (
                f": {self.n_calibration} calibration problems are too few to keep "
                f"anything at alpha = {self.alpha:g}"
            )
        risk = f"risk {self.path_risk[v] + 0.0:.4g}"  # no minus before a zero
        found = f"{risk} is not below the threshold {threshold:.4g}"
        if cause == v:
            return f": its {found}"
        return f" because it builds on claim {cause}, whose {found}"

    def _way_out(self, v):
        if isnan(self.kept_from[v]):
            return ""
        if isinf(self.kept_from[v]):
            return ", and no alpha would keep it"
        # Rounded up, or the alpha that is named would still drop the claim.
        level = ceil(self.kept_from[v] * 1e4) / 1e4
        return f"; it would be kept from alpha = {level:g} on"

    @property
    def text(self) -> str:
        """The kept claims, one a line; ValueError where the texts are not known."""
        from ..graphs import answer_text

        return answer_text(self.graph.subgraph(self.kept))

    def contributions(self, v: int) -> Contributions:
        """Weight times value of each feature of a claim; the total is its confidence.

        Parameters
        ----------
        v : int
            Number of the claim.

        Returns
        -------
        Contributions
            Values are as they count: a linear model that was trained here clips them.

        Raises
        ------
        ValueError
            If the scorer is not linear, or there is no such claim.
        """
        if self.form is None:
            raise ValueError("the scorer is not linear: no weight belongs to a feature")
        if not 0 <= v < self.graph.n_claims:
            raise ValueError(f"claim {v} but only {self.graph.n_claims} claims")
        values = self.form.values(self.graph.features[v])
        names = self.graph.feature_names or [f"x{j}" for j in range(len(values))]
        return Contributions(names, values, self.form.weights, self.form.offset)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per claim.

        Returns
        -------
        list of dict
        """
        columns = {
            "claim": np.arange(self.graph.n_claims),
            "kept": self.kept,
            "confidence": self.confidence,
            "path_risk": self.path_risk,
            "decided_by": self.decided_by,
            "threshold": self.threshold,
            "kept_from": self.kept_from,
        }
        each = [values.tolist() for values in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*each, strict=True)]

    def to_frame(self) -> Any:
        """`rows` as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    @property
    def _title(self):
        n = self.graph.n_claims
        return f"{self.kept.sum()} of {n} claims kept at alpha = {self.alpha:g}"

    def __str__(self):
        return "\n".join([self._title, *self.reasons.values()])

    __repr__ = __str__

    def body_html(self) -> str:
        """The answer with its dropped claims struck out, and all numbers, without a frame.

        Returns
        -------
        str
        """
        parts = problem_html(self.graph, self.kept, self.labels, self.reasons)
        parts += _folded("All numbers", _numbers(self))
        if self.form is not None:
            tables = [
                contributions_table(self.contributions(v), f"Confidence of claim {v}")
                for v in sorted({*self.decided_by[~self.kept].tolist()})
            ]
            if tables:
                title = "Weight times value in the claims that decided"
                parts += _folded(title, "".join(tables))
        return parts

    def _repr_html_(self) -> str:
        return card(self.body_html(), self._title)


def _folded(title, inside):
    return f"<details><summary>{title}</summary>{inside}</details>"


def _numbers(explanation):
    header = (
        "claim",
        "kept",
        "confidence",
        "path risk",
        "decided by",
        "threshold",
        "kept from alpha",
    )
    rows = [
        [
            row["claim"],
            "yes" if row["kept"] else "no",
            *(f"{row[name]:.4g}" for name in ("confidence", "path_risk")),
            row["decided_by"],
            f"{row['threshold']:.4g}",
            "never" if isinf(row["kept_from"]) else f"{row['kept_from']:.4g}",
        ]
        for row in explanation.rows()
    ]
    return table(header, rows)
