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
claim and threshold, stored claim by claim. The problems are sorted by their number of claims
beforehand, so all problems of the same size form a block of shape (problems, n, n + 2). Coherence
is then computed by one stack of matrix products per size, without padding.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of, ranges, reduce_segments
from . import hard
from .hard import Array
from .segments import (
    pull_rescale,
    pull_softmax,
    segment_rescale,
    segment_softmax,
    share,
    spread,
    with_vjp,
    with_vjps,
)
from .soft import log1mexp, log_sigmoid

# sigmoid(600) equals 1 to the last bit, but its logarithm is -1e-261 instead of 0, so log(1 - q)
# and all products of gradients are finite.
LARGEST = 600.0


@dataclass(frozen=True)
class GridPlan:
    """Data that a GridRelaxation precomputes, with the problems sorted by size.

    Attributes
    ----------
    n_problems : int
        Number of problems.
    problem_of : ndarray of shape (n_claims,)
        Problem index of each claim.
    labels : ndarray of float of shape (n_claims,)
        Claim labels (1 true, 0 otherwise).
    claims, claims_back : ndarray of shape (n_claims,)
        Indices of the claims, sorted by the size of their problem, and the inverse permutation.
    problems_back : ndarray of shape (n_problems,)
        Inverse of the permutation that sorts the problems by size.
    offsets : ndarray of shape (n_problems + 1,)
        Offsets of the sorted claims in each sorted problem.
    grid_offsets : ndarray of shape (n_problems + 1,)
        Offsets of the thresholds in each problem. A problem has two more thresholds than claims.
    cell_offsets : ndarray of shape (n_claims + 1,)
        Offsets of the cells of each claim.
    cell_threshold : ndarray of shape (n_cells,)
        Index of the threshold of each cell.
    of_claim : ndarray of shape (n_claims,)
        Index of the threshold that equals the risk of each claim.
    false_cells, false_thresholds : ndarray of int
        Indices of the cells of false claims, and the threshold index of each of these cells.
    false_share : ndarray of shape (n_thresholds,)
        Reciprocal of the number of false claims in each problem, or 0 for problems without false
        claims.
    blocks : list of ndarray or None
        Weights of ancestors, passed to `log_coherence`, or None if there are no edges.
    """

    n_problems: int
    problem_of: Array
    labels: Array
    claims: Array
    claims_back: Array
    problems_back: Array
    offsets: Array
    grid_offsets: Array
    cell_offsets: Array
    cell_threshold: Array
    of_claim: Array
    false_cells: Array
    false_thresholds: Array
    false_share: Array
    blocks: list[Array] | None

    @classmethod
    def of(cls, batch: GraphBatch, labels: Array, ancestor_weight: float) -> Self:
        """Return the plan for problems with labels (1 true, 0 false, -1 unknown)."""
        order = np.argsort(batch.sizes, kind="stable")
        sizes = batch.sizes[order]
        claims = ranges(batch.offsets[order], sizes)
        problem = np.repeat(np.arange(len(sizes)), sizes)
        grid_offsets = offsets_of(sizes + 2)
        cell_offsets = offsets_of(sizes[problem] + 2)
        cell_threshold = ranges(grid_offsets[problem], sizes[problem] + 2)
        is_false = labels[claims] == 0
        false_cells = np.flatnonzero(np.repeat(is_false, sizes[problem] + 2))
        n_false = np.bincount(problem[is_false], minlength=len(sizes))
        share = np.where(n_false > 0, 1 / np.maximum(n_false, 1), 0.0)
        blocks = None
        if len(batch.edges):
            blocks = _ancestor_weights(batch, claims, sizes, ancestor_weight)
        return cls(
            n_problems=len(batch),
            problem_of=batch.problem_of,
            labels=(labels == 1).astype(np.float64),
            claims=claims,
            claims_back=np.argsort(claims),
            problems_back=np.argsort(order),
            offsets=offsets_of(sizes),
            grid_offsets=grid_offsets,
            cell_offsets=cell_offsets,
            cell_threshold=cell_threshold,
            of_claim=np.arange(len(claims)) + 2 * problem + 1,
            false_cells=false_cells,
            false_thresholds=cell_threshold[false_cells],
            false_share=np.repeat(share, sizes + 2),
            blocks=blocks,
        )


def _ancestor_weights(batch, claims, sizes, ancestor_weight):
    """Return one stack of ancestor-weight matrices per problem size, with rows that sum to 1."""
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
    distinct, counts = np.unique(sizes, return_counts=True)
    bounds = offsets_of(counts * distinct**2)
    return [
        flat[bounds[i] : bounds[i + 1]].reshape(count, size, size)
        for i, (size, count) in enumerate(zip(distinct, counts, strict=True))
    ]


def _pull_grid(g, ans, risk, plan, margin):
    gradient = g[plan.of_claim]
    ends = (
        (hard.segment_min(risk, plan.offsets), plan.grid_offsets[:-1]),
        (hard.segment_max(risk, plan.offsets), plan.grid_offsets[1:] - 1),
    )
    for extreme, end in ends:
        hits, portions = share(g[end], risk, extreme, plan.offsets)
        gradient[hits] += portions
    return gradient


@with_vjp(_pull_grid)
def threshold_grid(risk: Array, plan: GridPlan, margin: float) -> Any:
    """Compute the thresholds of each problem, which are min r - m, all risks, and max r + m.

    The risks are in the order of the claims. The thresholds of a problem without claims are -m
    and m.
    """
    thresholds = np.empty(plan.grid_offsets[-1])
    lowest = reduce_segments(np.minimum, risk, plan.offsets, 0.0)
    highest = reduce_segments(np.maximum, risk, plan.offsets, 0.0)
    thresholds[plan.grid_offsets[:-1]] = lowest - margin
    thresholds[plan.of_claim] = risk
    thresholds[plan.grid_offsets[1:] - 1] = highest + margin
    return thresholds


def _pull_keep(g, ans, risk, thresholds, plan, temperature, shift=0.0):
    slope = g * np.expm1(ans) / -temperature
    g_thresholds = np.bincount(plan.cell_threshold, slope, len(thresholds))
    return -hard.segment_sum(slope, plan.cell_offsets), g_thresholds


@with_vjps(_pull_keep)
def log_keep(
    risk: Array,
    thresholds: Array,
    plan: GridPlan,
    temperature: float,
    shift: float = 0.0,
) -> Any:
    """Compute log p for each cell, where p is ``sigmoid((t - r_v + shift) / temperature)``.

    The hard version of p is ``r_v <= t``. Theorem 1 of the paper uses shift = sqrt(temperature).
    """
    above = thresholds.take(plan.cell_threshold) - spread(risk, plan.cell_offsets)
    return log_sigmoid(np.minimum((above + shift) / temperature, LARGEST))


def _pull_coherence(g, ans, log_p, blocks):
    return _block_product(g, [np.swapaxes(block, 1, 2) for block in blocks])


@with_vjp(_pull_coherence)
def log_coherence(log_p: Any, blocks: Any) -> Any:
    """For each claim, compute log q, the weighted mean of log p over the claim and its ancestors.

    The hard version of q indicates whether the claim and all its ancestors are kept.

    Parameters
    ----------
    log_p : ndarray of shape (n_cells,)
        Result of `log_keep`.
    blocks : list of ndarray of shape (n_problems of this size, size, size)
        Weights, in the order of the cells. Row v contains the weights of v and its ancestors,
        which sum to 1.
    """
    return _block_product(log_p, blocks)


def _block_product(cells, blocks):
    """Multiply the block of each problem by the cells of the problem."""
    out = np.empty_like(cells)
    start = 0
    for block in blocks:
        count, n, _ = block.shape
        shape = count, n, n + 2
        stop = start + count * n * (n + 2)
        product = out[start:stop].reshape(shape)
        np.matmul(block, cells[start:stop].reshape(shape), out=product)
        start = stop
    return out


def _pull_violation(g, ans, log_q, plan, temperature):
    of_false = log_q.take(plan.false_cells)
    g_valid = g * (ans - 1) * plan.false_share / temperature
    gradient = np.zeros(len(log_q))
    slope = np.exp(of_false) / np.expm1(of_false)
    gradient[plan.false_cells] = g_valid.take(plan.false_thresholds) * slope
    return gradient


@with_vjp(_pull_violation)
def violation(log_q: Array, plan: GridPlan, temperature: float) -> Any:
    """Compute V for each threshold, which is ``1 - exp(mean(log(1 - q)) / temperature)``.

    The mean is over the false claims of each problem, and V is 0 for problems without false
    claims. The hard version of V indicates whether a false claim is kept.
    """
    valid = log1mexp(log_q.take(plan.false_cells))
    log_valid = np.bincount(plan.false_thresholds, valid, len(plan.false_share))
    return -np.expm1(log_valid * plan.false_share / temperature)


def _pull_supremum(g, ans, thresholds, violations, plan, sharpness, weight):
    offsets = plan.grid_offsets
    t, unsafe, w = _supremum(
        thresholds, violations, plan, sharpness=sharpness, weight=weight
    )
    direct = spread(g, offsets) * w
    logit = sharpness * direct * (thresholds - spread(ans, offsets))
    g_unsafe = pull_rescale(-weight * logit, unsafe, violations, offsets)
    return direct + pull_rescale(logit, t, thresholds, offsets), g_unsafe


@with_vjps(_pull_supremum)
def soft_supremum(
    thresholds: Array,
    violations: Any,
    plan: GridPlan,
    sharpness: float,
    weight: Any,
) -> Any:
    """Compute the soft nonconformity score of each problem.

    The score is the mean of the thresholds, weighted by ``softmax(sharpness (minmax(t) - weight
    minmax(V_t)))``. The weight multiplies V, as in algorithm 1 and in the tables of the paper. In
    the text of the paper, however, the weight multiplies t. If the weight is 1 and only the
    lowest threshold is safe, the lowest and highest thresholds are tied, because 0 - 0 = 1 - 1.
    Therefore, convergence to the hard score requires a weight above 1. Both t and V have their
    minimum at the first threshold and their maximum at the last threshold, because V never
    decreases in t. The hard version of the score is the last safe threshold.
    """
    _, _, w = _supremum(
        thresholds, violations, plan, sharpness=sharpness, weight=weight
    )
    return hard.segment_sum(w * thresholds, plan.grid_offsets)


def _supremum(thresholds, violations, plan, sharpness, weight):
    """Compute minmax(t), minmax(V_t) and the weights of the thresholds."""
    t = segment_rescale(thresholds, plan.grid_offsets)
    unsafe = segment_rescale(violations, plan.grid_offsets)
    logit = sharpness * (t - weight * unsafe)
    return t, unsafe, segment_softmax(logit, plan.grid_offsets)


def _pull_gate(g, ans, thresholds, bound, plan, sharpness, temperature, shift=0.0):
    logit = pull_softmax(g, ans, plan.grid_offsets)
    closing = logit * expit((thresholds + shift - bound) / temperature)
    closing /= temperature
    return sharpness * logit - closing, closing.sum()


@with_vjps(_pull_gate)
def gated_weights(
    thresholds: Array,
    bound: Any,
    plan: GridPlan,
    sharpness: float,
    temperature: float,
    shift: float = 0.0,
) -> Any:
    """Compute the weight w of each threshold.

    The weights are ``exp(sharpness t) sigmoid((bound - t - shift) / temperature)``, normalised to
    sum to 1 in each problem. The hard version of the weights selects the largest threshold below
    ``bound``. Theorem 2 of the paper uses shift = sqrt(temperature).
    """
    gate = log_sigmoid((bound - thresholds - shift) / temperature)
    return segment_softmax(sharpness * thresholds + gate, plan.grid_offsets)


def _pull_retention(g, ans, log_q, weights, plan):
    g_cells = spread(g, plan.cell_offsets) * np.exp(log_q)
    g_weights = np.bincount(plan.cell_threshold, g_cells, len(weights))
    return g_cells * weights.take(plan.cell_threshold), g_weights


@with_vjps(_pull_retention)
def grid_retention(log_q: Any, weights: Array, plan: GridPlan) -> Any:
    """Compute the weighted mean of q_vt over the thresholds for each claim v.

    The hard version of the weighted mean indicates whether claim v is kept.
    """
    cells = np.exp(log_q) * weights.take(plan.cell_threshold)
    return hard.segment_sum(cells, plan.cell_offsets)
