"""What the grid relaxation computes once, from structure and labels alone."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from ..graphs.ragged import offsets_of, ranges
from ..ops.soft_grid import GridLayout


@dataclass(frozen=True)
class GridPlan:
    """Problems sorted by size, ancestor weights, and the cells of false claims.

    Attributes
    ----------
    n_problems : int
    problem_of : ndarray of shape (n_claims,)
    labels : ndarray of float, shape (n_claims,)
    claims, claims_back : ndarray of shape (n_claims,)
        The claims in the order of the layout, and the way back.
    problems_back : ndarray of shape (n_problems,)
    layout : GridLayout
    blocks : list of ndarray or None
        Ancestor weights, as `skdcf.ops.soft_grid.log_coherence` takes them; None where
        there is no edge.
    false_cells, false_thresholds, false_share : ndarray
        As `skdcf.ops.soft_grid.violation` takes them.
    """

    n_problems: int
    problem_of: np.ndarray
    labels: np.ndarray
    claims: np.ndarray
    claims_back: np.ndarray
    problems_back: np.ndarray
    layout: GridLayout
    blocks: list | None
    false_cells: np.ndarray
    false_thresholds: np.ndarray
    false_share: np.ndarray

    @classmethod
    def of(cls, batch, labels, ancestor_weight) -> Self:
        """The plan of a batch, labels 1 true, 0 false, -1 unknown, and a weight gamma."""
        order = np.argsort(batch.sizes, kind="stable")
        sizes = batch.sizes[order]
        claims = ranges(batch.offsets[order], sizes)
        layout = GridLayout.of(sizes)
        false = np.flatnonzero(labels[claims] == 0)
        width = np.diff(layout.cell_offsets)[false]
        false_cells = ranges(layout.cell_offsets[false], width)
        n_false = np.bincount(batch.problem_of[labels == 0], minlength=len(batch))
        n_false = n_false[order]
        share = np.where(n_false > 0, 1 / np.maximum(n_false, 1), 0.0)
        weights = (batch, claims, sizes, ancestor_weight)
        return cls(
            n_problems=len(batch),
            problem_of=batch.problem_of,
            labels=(labels == 1).astype(np.float64),
            claims=claims,
            claims_back=np.argsort(claims),
            problems_back=np.argsort(order),
            layout=layout,
            blocks=_ancestor_weights(*weights) if len(batch.edges) else None,
            false_cells=false_cells,
            false_thresholds=layout.cell_threshold[false_cells],
            false_share=np.repeat(share, sizes + 2),
        )


def _ancestor_weights(batch, claims, sizes, ancestor_weight):
    """Scaled to sum 1 in each row, one stack of square matrices per size."""
    indptr, indices = batch.closure
    count = np.diff(indptr)[claims]
    ancestor = indices[ranges(indptr[claims], count)]
    total = 1 + ancestor_weight * (count - 1)
    weight = np.repeat(ancestor_weight / total, count)
    itself = ancestor == np.repeat(claims, count)
    weight[itself] = 1 / total
    size = np.repeat(sizes, sizes)
    row_offsets = offsets_of(size)
    column = ancestor - batch.offsets[batch.problem_of[ancestor]]
    flat = np.zeros(row_offsets[-1])
    flat[np.repeat(row_offsets[:-1], count) + column] = weight
    distinct, first = np.unique(sizes, return_index=True)
    bounds = np.append(offsets_of(sizes**2)[first], len(flat))
    return [
        flat[i:j].reshape(-1, n, n)
        for n, (i, j) in zip(distinct.tolist(), pairwise(bounds), strict=True)
    ]
