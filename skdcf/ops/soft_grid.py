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
from numpy.typing import NDArray
from scipy.special import expit

from ..graphs.ragged import offsets_of, ranges, reduce_segments, segment_ids
from . import hard
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
class GridLayout:
    """Indices of the thresholds and cells of packed problems.

    Attributes
    ----------
    offsets : ndarray of shape (n_problems + 1,)
        Offsets of the claims in each problem.
    grid_offsets : ndarray of shape (n_problems + 1,)
        Offsets of the thresholds in each problem. A problem has two more thresholds than claims.
    cell_offsets : ndarray of shape (n_claims + 1,)
        Offsets of the cells of each claim.
    cell_threshold : ndarray of shape (n_cells,)
        Index of the threshold of each cell.
    of_claim : ndarray of shape (n_claims,)
        Index of the threshold that equals the risk of each claim.
    """

    offsets: np.ndarray
    grid_offsets: np.ndarray
    cell_offsets: np.ndarray
    cell_threshold: np.ndarray
    of_claim: np.ndarray

    @classmethod
    def of(cls, sizes: Any) -> Self:
        """Return the layout for problems with the given numbers of claims."""
        offsets = offsets_of(sizes)
        grid_offsets = offsets_of(sizes + 2)
        problem = segment_ids(offsets)
        cells = offsets_of(sizes[problem] + 2)
        return cls(
            offsets=offsets,
            grid_offsets=grid_offsets,
            cell_offsets=cells,
            cell_threshold=ranges(grid_offsets[problem], np.diff(cells)),
            of_claim=np.arange(len(problem)) + 2 * problem + 1,
        )


def _pull_grid(ans, risk, layout, margin):
    def pull(g):
        gradient = g[layout.of_claim]
        ends = (
            (hard.segment_min(risk, layout.offsets), layout.grid_offsets[:-1]),
            (hard.segment_max(risk, layout.offsets), layout.grid_offsets[1:] - 1),
        )
        for extreme, end in ends:
            hits, portions = share(g[end], risk, extreme, layout.offsets)
            gradient[hits] += portions
        return gradient

    return pull


@with_vjp(_pull_grid)
def threshold_grid(risk: NDArray[Any], layout: Any, margin: float) -> Any:
    """Compute the thresholds of each problem, which are min r - m, all risks, and max r + m.

    The risks are in the order of the claims. The thresholds of a problem without claims are -m
    and m.
    """
    thresholds = np.empty(layout.grid_offsets[-1])
    lowest = reduce_segments(np.minimum, risk, layout.offsets, 0.0)
    highest = reduce_segments(np.maximum, risk, layout.offsets, 0.0)
    thresholds[layout.grid_offsets[:-1]] = lowest - margin
    thresholds[layout.of_claim] = risk
    thresholds[layout.grid_offsets[1:] - 1] = highest + margin
    return thresholds


def _pull_keep(ans, risk, thresholds, layout, temperature, shift=0.0):
    def pull(g):
        slope = g * np.expm1(ans) / -temperature
        g_thresholds = np.bincount(layout.cell_threshold, slope, len(thresholds))
        return -hard.segment_sum(slope, layout.cell_offsets), g_thresholds

    return pull


@with_vjps(_pull_keep)
def log_keep(
    risk: NDArray[Any],
    thresholds: NDArray[Any],
    layout: Any,
    temperature: float,
    shift: float = 0.0,
) -> Any:
    """Compute log p for each cell, where p is ``sigmoid((t - r_v + shift) / temperature)``.

    The hard version of p is ``r_v <= t``. Theorem 1 of the paper uses shift = sqrt(temperature).
    """
    above = thresholds.take(layout.cell_threshold) - spread(risk, layout.cell_offsets)
    return log_sigmoid(np.minimum((above + shift) / temperature, LARGEST))


def _pull_coherence(ans, log_p, blocks):
    back = [np.swapaxes(b, 1, 2) for b in blocks]
    return lambda g: _block_product(g, back)


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


def _pull_violation(
    ans, log_q, false_cells, false_thresholds, false_share, temperature
):
    def pull(g):
        of_false = log_q.take(false_cells)
        g_valid = g * (ans - 1) * false_share / temperature
        gradient = np.zeros(len(log_q))
        slope = np.exp(of_false) / np.expm1(of_false)
        gradient[false_cells] = g_valid.take(false_thresholds) * slope
        return gradient

    return pull


@with_vjp(_pull_violation)
def violation(
    log_q: Any,
    false_cells: Any,
    false_thresholds: Any,
    false_share: Any,
    temperature: float,
) -> Any:
    """Compute V for each threshold, which is ``1 - exp(mean(log(1 - q)) / temperature)``.

    The mean is over the false claims of each problem, and V is 0 for problems without false
    claims. The hard version of V indicates whether a false claim is kept.

    Parameters
    ----------
    log_q : ndarray of shape (n_cells,)
        Result of `log_coherence`.
    false_cells, false_thresholds : ndarray of int
        Indices of the cells of false claims, and the threshold index of each of these cells.
    false_share : ndarray of shape (n_thresholds,)
        Reciprocal of the number of false claims in each problem, or 0 for problems without false
        claims.
    temperature : float
        Temperature of V.
    """
    valid = log1mexp(log_q.take(false_cells))
    log_valid = np.bincount(false_thresholds, valid, len(false_share)) * false_share
    return -np.expm1(log_valid / temperature)


def _pull_supremum(ans, thresholds, violations, layout, sharpness, weight):
    def pull(g):
        offsets = layout.grid_offsets
        t, unsafe, w = _supremum(
            thresholds, violations, layout, sharpness=sharpness, weight=weight
        )
        direct = spread(g, offsets) * w
        logit = sharpness * direct * (thresholds - spread(ans, offsets))
        g_unsafe = pull_rescale(-weight * logit, unsafe, violations, offsets)
        return direct + pull_rescale(logit, t, thresholds, offsets), g_unsafe

    return pull


@with_vjps(_pull_supremum)
def soft_supremum(
    thresholds: NDArray[Any],
    violations: Any,
    layout: Any,
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
        thresholds, violations, layout, sharpness=sharpness, weight=weight
    )
    return hard.segment_sum(w * thresholds, layout.grid_offsets)


def _supremum(thresholds, violations, layout, sharpness, weight):
    """Compute minmax(t), minmax(V_t) and the weights of the thresholds."""
    t = segment_rescale(thresholds, layout.grid_offsets)
    unsafe = segment_rescale(violations, layout.grid_offsets)
    logit = sharpness * (t - weight * unsafe)
    return t, unsafe, segment_softmax(logit, layout.grid_offsets)


def _pull_gate(ans, thresholds, bound, layout, sharpness, temperature, shift=0.0):
    def pull(g):
        logit = pull_softmax(g, ans, layout.grid_offsets)
        closing = logit * expit((thresholds + shift - bound) / temperature)
        closing /= temperature
        return sharpness * logit - closing, closing.sum()

    return pull


@with_vjps(_pull_gate)
def gated_weights(
    thresholds: NDArray[Any],
    bound: Any,
    layout: Any,
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
    return segment_softmax(sharpness * thresholds + gate, layout.grid_offsets)


def _pull_retention(ans, log_q, weights, layout):
    def pull(g):
        g_cells = spread(g, layout.cell_offsets) * np.exp(log_q)
        g_weights = np.bincount(layout.cell_threshold, g_cells, len(weights))
        return g_cells * weights.take(layout.cell_threshold), g_weights

    return pull


@with_vjps(_pull_retention)
def grid_retention(log_q: Any, weights: NDArray[Any], layout: Any) -> Any:
    """Compute the weighted mean of q_vt over the thresholds for each claim v.

    The hard version of the weighted mean indicates whether claim v is kept.
    """
    cells = np.exp(log_q) * weights.take(layout.cell_threshold)
    return hard.segment_sum(cells, layout.cell_offsets)
