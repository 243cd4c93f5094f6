"""What is counted per problem and level, before it is averaged over problems."""

import numpy as np

from .._checks import check_choice
from ..graphs.grouping import read_groups
from ..ops.hard import segment_sum
from ._filter_report import FilterReport
from ._intervals import band_of_law, mean_interval
from ._scores import first_true

COUNTED = ("loss", "retention", "nonempty", "false_kept", "prefix", "weight")


class Tally:
    """Counts of the kept claims, each of shape (n_alphas, n_problems).

    Parameters
    ----------
    promise : Guarantee
        Says what is lost.
    alphas : ndarray of shape (n_alphas,)
    kept : ndarray of bool, shape (n_alphas, n_claims)
    labels : ndarray of int, shape (n_claims,)
    batch : GraphBatch
    claim_weight : str, callable, array-like or None
    """

    def __init__(self, promise, alphas, kept, labels, batch, claim_weight=None):
        offsets, true = batch.offsets, labels == 1
        weight = None if claim_weight is None else claim_weights(claim_weight, batch)
        self.guarantee, self.alphas, self.batch = promise, alphas, batch
        self.loss = np.array([promise.loss(labels, k, offsets) for k in kept], float)
        self.retention = self._sums(kept & true, offsets)
        self.nonempty = self._sums(kept, offsets) > 0
        self.false_kept = self._sums(kept & ~true, offsets)
        self.prefix = self.weight = np.full(self.loss.shape, np.nan)
        if is_chain(batch):
            self.prefix = np.array([first_true(~(k & true), offsets) for k in kept])
        if weight is not None:
            self.weight = self._sums(kept & true, offsets, weight)

    @staticmethod
    def _sums(kept, offsets, weight=1):
        return np.array([segment_sum(row * weight, offsets) for row in kept])

    def report(self, theory, groups=None, by=None):
        """A `FilterReport`, and in it one for each group."""
        n = self.loss.shape[1]
        whole = self._report(np.arange(n), theory, groups)
        if by is None:
            return whole
        empty = {"laws": [None] * len(self.alphas)}
        parts = {
            name: self._report(rows, theory | empty, groups)
            for name, rows in rows_by_group(by, self.batch).items()
        }
        return whole.with_groups(parts)

    def _report(self, rows, theory, groups):
        n = len(rows)
        own = {name: getattr(self, name)[:, rows] for name in COUNTED}
        if groups is not None:
            groups = np.unique(groups[rows], return_inverse=True)[1]
        probability = self.guarantee.is_probability
        with np.errstate(invalid="ignore"):
            among = 1 - (own["loss"] * own["nonempty"]).sum(1) / own["nonempty"].sum(1)
        return FilterReport(
            alpha=self.alphas,
            coverage=1 - own["loss"].mean(axis=1),
            coverage_interval=np.array(
                [mean_interval(row, probability, groups) for row in own["loss"]]
            ),
            coverage_band=np.array(
                [band_of_law(law, 0.95, n) for law in theory["laws"]]
            ),
            retention=own["retention"].mean(axis=1),
            retention_error=_errors(own["retention"], groups),
            abstention=(~own["nonempty"]).mean(axis=1),
            threshold=np.array(theory["thresholds"]),
            n_problems=n,
            n_calibration=theory["n_calibration"],
            nonempty_coverage=among,
            false_kept=own["false_kept"].mean(axis=1),
            clean_prefix=own["prefix"].mean(axis=1),
            weighted_retention=own["weight"].mean(axis=1),
        )


def _errors(values, groups):
    """Standard error of the mean over problems, or over groups of them."""
    n = values.shape[1]
    if groups is None:
        spread = values.std(axis=1, ddof=1) if n > 1 else np.full(len(values), np.nan)
        return spread / np.sqrt(n)
    m = groups.max() + 1
    centred = values - values.mean(axis=1, keepdims=True)
    sums = np.array([np.bincount(groups, row, m) for row in centred])
    scale = m / (m - 1) if m > 1 else np.nan
    return np.sqrt(scale * (sums**2).sum(axis=1)) / n


def is_chain(batch):
    """Whether every claim but the first of each problem builds on the one before it."""
    edges = batch.edges
    n_pairs = int(np.maximum(batch.sizes - 1, 0).sum())
    return len(edges) == n_pairs and bool((edges[:, 1] - edges[:, 0] == 1).all())


def claim_weights(claim_weight, batch):
    """How much each claim matters, shape (n_claims,), or ValueError."""
    if isinstance(claim_weight, str):
        check_choice("claim_weight", claim_weight, batch.feature_names or ())
        return batch.features[:, batch.feature_names.index(claim_weight)]
    values = claim_weight(batch) if callable(claim_weight) else claim_weight
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (batch.n_claims,) or not np.isfinite(values).all():
        raise ValueError(
            f"claim_weight has shape {values.shape}, but {batch.n_claims} finite numbers "
            "are needed, one per claim"
        )
    return values


def rows_by_group(by, batch):
    """The numbers of the problems of each group; a problem may be in several."""
    places: dict = {}
    values, overlap = read_groups(by, batch)
    for i, value in enumerate(values):
        for name in sorted(value, key=str) if overlap else [value]:
            places.setdefault(name, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}
