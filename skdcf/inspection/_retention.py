"""Where claims are lost: retention by depth, by size, by topic, by a feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._table import Table
from ..graphs.ragged import flatten
from ..metrics import filter_in

if TYPE_CHECKING:
    from ..graphs import Labels, Problems

MOST_VALUES = 12  # of a number; more are put into as many ranges of equal size


@dataclass(frozen=True, eq=False, repr=False)
class RetentionReport(Table):
    """Kept and dropped claims per kind of claim; prints as a table.

    Attributes
    ----------
    by : str
        What the claims were told apart by.
    kind : list of str
    n_true, kept_true : ndarray of int, shape (n_kinds,)
        True claims, and those of them that are kept.
    n_false, kept_false : ndarray of int, shape (n_kinds,)
        False claims, and those of them that are kept.
    alpha : float
        NaN where it is not known.
    """

    by: str
    kind: list
    n_true: np.ndarray
    kept_true: np.ndarray
    n_false: np.ndarray
    kept_false: np.ndarray
    alpha: float = np.nan

    @classmethod
    def from_predictions(
        cls,
        y: Sequence[ArrayLike] | ArrayLike,
        kept: Sequence[ArrayLike] | ArrayLike,
        by: ArrayLike,
    ) -> RetentionReport:
        """Count what masks keep of each kind of claim, whatever made them.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            1 true, 0 false; claims with another label do not count.
        kept : sequence of boolean masks, as `predict` returns them
            The claims that are kept.
        by : array-like of shape (n_claims,) or (n_problems,)
            The kind of each claim, or of each problem.

        Returns
        -------
        RetentionReport
        """
        labels, masks, offsets = flatten(y, kept)
        return cls._counted("kind", _per_claim(by, offsets), labels, masks)

    @classmethod
    def _counted(cls, name, values, labels, kept, alpha=np.nan):
        kinds, code = _kinds(values)
        counts = {}
        for word, chosen in (("true", labels == 1), ("false", labels == 0)):
            for key, some in (("n", chosen), ("kept", chosen & kept)):
                counts[f"{key}_{word}"] = np.bincount(code[some], minlength=len(kinds))
        return cls(by=name, kind=kinds, alpha=alpha, **counts)

    @property
    def share(self) -> NDArray:
        """Share of the true claims that is kept, shape (n_kinds,); NaN for none."""
        with np.errstate(invalid="ignore"):
            return self.kept_true / self.n_true

    @property
    def error(self) -> NDArray:
        """Standard error of the share, as if claims were independent, (n_kinds,).

        Claims of one problem are not, so that the true error is larger.
        """
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.share * (1 - self.share) / self.n_true)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per kind of claim.

        Returns
        -------
        list of dict
        """
        counts = ("n_true", "kept_true", "share", "error", "n_false", "kept_false")
        columns = [self.kind, *(getattr(self, name).tolist() for name in counts)]
        names = (self.by, *counts)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]

    @property
    def _columns(self):
        return {
            self.by: lambda row: row[self.by],
            "true": "{n_true:d}",
            "true kept": "{kept_true:d}",
            "share": "{share:.3f} +- {error:.3f}",
            "false": "{n_false:d}",
            "false kept": "{kept_false:d}",
        }

    def _heading(self):
        return f"claims kept at alpha = {self.alpha:g}"


def retention_by(
    filter: Any,
    X: Problems,
    y: Labels,
    by: str | ArrayLike,
    *,
    alpha: float | None = None,
) -> RetentionReport:
    """Share of the true claims that a filter keeps, for each kind of claim.

    Parameters
    ----------
    filter : fitted filter
        Also a fitted search around a filter.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Test problems.
    y : sequence of 1-D arrays, one per problem
        Their labels. Claims whose label is unknown do not count.
    by : str, or array-like of shape (n_claims,) or (n_problems,)
        What tells claims apart: "depth" (longest path that leads to the claim), "size"
        (claims of its problem), the name of a feature, or values of your own. Numbers
        that take many values are put into ranges that hold about as many claims each.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    RetentionReport

    Raises
    ------
    ValueError
        If ``by`` names nothing, or has another length.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import retention_by
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:200], y[:200])
    >>> report = retention_by(cf, graphs[200:], y[200:], "depth", alpha=0.2)
    >>> report.kind[:3], int(report.n_true.sum()) == int(sum(map(sum, y[200:])))
    (['0', '1', '2'], True)
    """
    filter = filter_in(filter)
    batch, labels = filter.check(X, y)
    kept = np.concatenate(list(filter.predict(batch, alpha)), axis=None)
    if isinstance(by, str):
        name, values = by, _named(by, batch)
    else:
        name, values = "kind", _per_claim(by, batch.offsets)
    level = filter.calibration_.guarantee.level(alpha, filter.alpha)
    return RetentionReport._counted(name, values, labels, kept, level)


def _per_claim(by, offsets):
    """One value per claim, from one per claim or one per problem."""
    values, n, n_claims = np.asarray(by), len(offsets) - 1, int(offsets[-1])
    if values.shape == (n,) and n != n_claims:
        values = np.repeat(values, np.diff(offsets))
    if values.shape != (n_claims,):
        raise ValueError(
            f"by has shape {values.shape}, but there are {n} problems and {n_claims} "
            "claims: one value is needed for each of either"
        )
    return values


def _named(by, batch):
    names = batch.feature_names or ()
    if by in names:
        return batch.features[:, names.index(by)]
    if by == "depth":
        return batch.depth
    if by == "size":
        return batch.sizes[batch.problem_of]
    raise ValueError(
        f'by is {by!r}, but must be "depth", "size", an array, or one of the features '
        f"{list(names)}"
    )


def _kinds(values):
    """Names of the kinds, and the number of each claim's."""
    kinds, code = np.unique(values, return_inverse=True)
    if len(kinds) <= MOST_VALUES or values.dtype.kind not in "fiu":
        return [_name(kind) for kind in kinds], code
    edges = np.unique(np.quantile(values, np.linspace(0, 1, MOST_VALUES + 1)))
    code = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    _, code = np.unique(code, return_inverse=True)
    ranges = [values[code == k] for k in range(code.max() + 1)]
    return [_range(some.min(), some.max()) for some in ranges], code


def _range(low, high):
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _name(kind):
    return f"{kind:g}" if isinstance(kind, np.floating) else str(kind)
