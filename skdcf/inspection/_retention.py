"""Where claims are lost: retention by depth, by size, by topic, by a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._drawing import card, table
from ..metrics import unwrap

if TYPE_CHECKING:
    from ..graphs import Labels, Problems

MOST_VALUES = 12  # of a number; more are put into as many ranges of equal size


@dataclass(frozen=True, eq=False, repr=False)
class RetentionReport:
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
    """

    by: str
    kind: list
    n_true: np.ndarray
    kept_true: np.ndarray
    n_false: np.ndarray
    kept_false: np.ndarray
    alpha: float

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
        columns = {
            self.by: self.kind,
            "n_true": self.n_true.tolist(),
            "kept_true": self.kept_true.tolist(),
            "share": self.share.tolist(),
            "error": self.error.tolist(),
            "n_false": self.n_false.tolist(),
            "kept_false": self.kept_false.tolist(),
        }
        lines = zip(*columns.values(), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

    def to_frame(self) -> Any:
        """`rows` as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def _cells(self):
        for kind, n, kept, share, error, m, wrong in map(dict.values, self.rows()):
            yield kind, n, kept, f"{share:.3f}", f"{error:.3f}", m, wrong

    def __str__(self):
        width = max(map(len, (*self.kind, self.by)))
        lines = [
            f"true claims kept at alpha = {self.alpha:g}",
            f"{self.by:{width}}    true    kept  share +- error   false  kept",
        ]
        lines += [
            f"{kind:{width}}  {n:6d}  {kept:6d}  {share} +- {error}  {m:6d}  {wrong:4d}"
            for kind, n, kept, share, error, m, wrong in self._cells()
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header = self.by, "true", "kept", "share", "error", "false", "kept"
        return card(table(header, self._cells(), f"alpha = {self.alpha:g}"))


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
        Or a fitted pipeline that ends in one, or a search around one.
    X, y
        Test problems and their labels. Claims whose label is unknown do not count.
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
    filter, X = unwrap(filter, X)
    batch, labels = filter.check(X, y)
    masks = list(filter.predict(batch, alpha))
    kept = np.concatenate(masks, axis=None)
    name, values = _values(by, batch)
    kinds, code = _kinds(values)
    parts = {"true": labels == 1, "false": labels == 0}
    counts = {}
    for word, chosen in parts.items():
        counts[f"n_{word}"] = np.bincount(code[chosen], minlength=len(kinds))
        both = chosen & kept
        counts[f"kept_{word}"] = np.bincount(code[both], minlength=len(kinds))
    level = filter.calibration_.guarantee.level(alpha, filter.alpha)
    return RetentionReport(by=name, kind=kinds, alpha=level, **counts)


def _values(by, batch):
    """A name, and one value per claim."""
    if isinstance(by, str):
        return by, _named(by, batch)
    values = np.asarray(by)
    if values.shape == (len(batch),) and len(batch) != batch.n_claims:
        values = values[batch.problem_of]
    if values.shape != (batch.n_claims,):
        raise ValueError(
            f"by has shape {values.shape}, but there are {len(batch)} problems and "
            f"{batch.n_claims} claims: one value is needed for each of either"
        )
    return "kind", values


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
