"""Soft coherent factuality on a grid of thresholds, with one function per step of the paper.

Hittesdorf, Salzetta, Cheng, Differentiable Conformal Training for LLM Reasoning
Factuality (arXiv:2604.20098), section 3 and algorithms 1 and 2.

=========  ===================================================================
r_v        risk of claim v
T          grid of a problem: min r - m, the risk of each claim, max r + m
p_vt       degree, in [0, 1], to which r_v <= t
q_vt       degree, in [0, 1], to which v and all its ancestors are kept at t
V_t        degree, in [0, 1], to which a false claim is kept at t
w_t        weight of threshold t
=========  ===================================================================

A problem with n claims has n + 2 thresholds and n (n + 2) *cells*, one for each combination of
claim and threshold, stored claim by claim. Coherence is a product of matrices for each problem.
The products of all problems of the same size are computed in a single call.
"""

from dataclasses import dataclass
from typing import Any, Self

import autograd.numpy as anp
import numpy as np

from .._arrays import offsets_of, ranges, segment_ids
from .hard import Array
from .segments import (
    scatter_sum,
    segment_min,
    segment_rescale,
    segment_softmax,
    segment_sum,
    spread,
    take,
    with_vjp,
)
from .soft import log1mexp, log_sigmoid


@dataclass(frozen=True)
class GridPlan:
    """Data that a GridRelaxation precomputes.

    Attributes
    ----------
    labels : ndarray of bool of shape (n_claims,)
        Whether each claim is known to be true.
    offsets, grid_offsets : ndarray of shape (n_problems + 1,)
        Offsets of the claims and of the thresholds of each problem.
    grid_order : ndarray of int of shape (n_thresholds,)
        Order of the thresholds, given the lowest, the risks and the highest thresholds.
    cell_offsets : ndarray of shape (n_claims + 1,)
        Offsets of the cells of each claim.
    cell_threshold : ndarray of shape (n_cells,)
        Index of the threshold of each cell.
    false_cells : ndarray of int
        Indices of the cells of false claims.
    false_share : ndarray
        Reciprocal of the number of false claims in the problem of each of these cells.
    blocks : list of (cells, weights)
        For all problems with n claims, the indices of the cells, of shape (n_problems, n, n + 2),
        and the weights of the ancestors, of shape (n_problems, n, n), in rows that sum to 1.
    """

    labels: Array
    offsets: Array
    grid_offsets: Array
    grid_order: Array
    cell_offsets: Array
    cell_threshold: Array
    false_cells: Array
    false_share: Array
    blocks: list[tuple[Array, Array]]

    @classmethod
    def of(cls, batch: Any, labels: Array, ancestor_weight: float) -> Self:
        """Return the plan for problems with labels (1 true, 0 false, -1 unknown)."""
        sizes = batch.sizes
        problem = batch.problem_of
        grid_offsets = offsets_of(sizes + 2)
        every = np.arange(len(sizes))
        n_cells = sizes[problem] + 2
        cell_offsets = offsets_of(n_cells)
        claim = segment_ids(cell_offsets)
        false_cells = np.flatnonzero(labels[claim] == 0)
        n_false = np.bincount(problem[labels == 0])
        blocks = _blocks(batch, n_cells, cell_offsets, ancestor_weight)
        return cls(
            labels=labels == 1,
            offsets=batch.offsets,
            grid_offsets=grid_offsets,
            grid_order=np.argsort(
                np.concatenate([every, problem, every]), kind="stable"
            ),
            cell_offsets=cell_offsets,
            cell_threshold=ranges(grid_offsets[problem], n_cells),
            false_cells=false_cells,
            false_share=1 / n_false[problem[claim[false_cells]]],
            blocks=list(blocks) if len(batch.edges) else [],
        )


def _blocks(batch, n_cells, cell_offsets, ancestor_weight):
    """Return the cells and the weights of the ancestors, for all problems of the same size."""
    indptr, ancestor = batch.closure
    claim = segment_ids(indptr)
    # The first n of the n + 2 cells of a claim stand for the n claims of its problem.
    table = np.zeros(cell_offsets[-1])
    table[cell_offsets[claim] + batch.position[ancestor]] = np.where(
        claim == ancestor, 1.0, ancestor_weight
    )
    for n in np.unique(n_cells):
        claims = np.flatnonzero(n_cells == n).reshape(-1, n - 2)
        cells = cell_offsets[claims][..., None] + np.arange(n)
        weights = table[cells[..., :-2]]
        yield cells, weights / weights.sum(axis=-1, keepdims=True)


def threshold_grid(risk, plan, margin):
    """Compute the thresholds of each problem, which are min r - m, all risks, and max r + m.

    The thresholds of a problem without claims are -m and m.
    """
    empty = plan.offsets[:-1] == plan.offsets[1:]
    lowest = anp.where(empty, 0.0, segment_min(risk, plan.offsets))
    highest = anp.where(empty, 0.0, -segment_min(-risk, plan.offsets))
    thresholds = anp.concatenate([lowest - margin, risk, highest + margin])
    return take(thresholds, plan.grid_order)


def log_keep(risk, thresholds, plan, temperature, shift):
    """Compute log p for each cell, where p is ``sigmoid((t - r_v + shift) / temperature)``.

    The hard version of p is ``r_v <= t``. Theorem 1 of the paper uses shift = sqrt(temperature).
    """
    least = spread(risk - shift, plan.cell_offsets)
    return log_sigmoid(take(thresholds, plan.cell_threshold) - least, temperature)


def _pull_coherence(g, ans, log_p, blocks):
    return log_coherence(
        g, [(cells, np.swapaxes(weights, 1, 2)) for cells, weights in blocks]
    )


@with_vjp(_pull_coherence)
def log_coherence(log_p, blocks):
    """For each claim, compute log q, the weighted mean of log p over the claim and its ancestors.

    The hard version of q indicates whether the claim and all its ancestors are kept.

    Parameters
    ----------
    log_p : ndarray of shape (n_cells,)
        Result of `log_keep`.
    blocks : list of (cells, weights)
        As in `GridPlan`. Without edges, q is p.
    """
    out = np.array(log_p)
    for cells, weights in blocks:
        out[cells] = weights @ log_p[cells]
    return out


def violation(log_q, plan, temperature):
    """Compute V for each threshold, which is ``1 - exp(mean(log(1 - q)) / temperature)``.

    The mean is over the false claims of each problem, and V is 0 for problems without false
    claims. The hard version of V indicates whether a false claim is kept.
    """
    valid = log1mexp(take(log_q, plan.false_cells)) * plan.false_share
    threshold = plan.cell_threshold[plan.false_cells]
    log_valid = scatter_sum(valid, threshold, plan.grid_offsets[-1])
    return -anp.expm1(log_valid / temperature)


def soft_supremum(thresholds, violations, plan, sharpness, weight):
    """Compute the soft nonconformity score of each problem.

    The score is the mean of the thresholds, weighted by ``softmax(sharpness (minmax(t) - weight
    minmax(V_t)))``. The weight multiplies V, as in algorithm 1 and in the tables of the paper. In
    the text of the paper, however, the weight multiplies t. If the weight is 1 and only the
    lowest threshold is safe, the lowest and highest thresholds are tied, because 0 - 0 = 1 - 1.
    Therefore, convergence to the hard score requires a weight above 1. Both t and V have their
    minimum at the first threshold and their maximum at the last threshold, because V never
    decreases in t. The hard version of the score is the last safe threshold.
    """
    offsets = plan.grid_offsets
    unsafe = segment_rescale(violations, offsets)
    logit = sharpness * (segment_rescale(thresholds, offsets) - weight * unsafe)
    return segment_sum(segment_softmax(logit, offsets) * thresholds, offsets)


def gated_weights(thresholds, bound, plan, sharpness, temperature, shift):
    """Compute the weight w of each threshold.

    The weights are ``exp(sharpness t) sigmoid((bound - t - shift) / temperature)``, normalised to
    sum to 1 in each problem. The hard version of the weights selects the largest threshold below
    ``bound``. Theorem 2 of the paper uses shift = sqrt(temperature).
    """
    gate = log_sigmoid(bound - shift - thresholds, temperature)
    return segment_softmax(sharpness * thresholds + gate, plan.grid_offsets)


def grid_retention(log_q, weights, plan):
    """Compute the weighted mean of q_vt over the thresholds for each claim v.

    The hard version of the weighted mean indicates whether claim v is kept.
    """
    cells = anp.exp(log_q) * take(weights, plan.cell_threshold)
    return segment_sum(cells, plan.cell_offsets)
