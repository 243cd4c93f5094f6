"""Soft coherent factuality on a grid of thresholds: one function per row of the paper.

Hittesdorf, Salzetta, Cheng, Differentiable Conformal Training for LLM Reasoning
Factuality (arXiv:2604.20098), section 3 and algorithms 1 and 2.

=========  ===================================================================
r_v        risk of claim v
T          grid of a problem: min r - m, the risk of each claim, max r + m
p_vt       softly, is r_v <= t?
q_vt       softly, are v and all its ancestors kept at t?
V_t        softly, is a false claim kept at t? in [0, 1]
w_t        weight of threshold t
=========  ===================================================================

A problem with n claims has n + 2 thresholds and n (n + 2) *cells*, one for each claim
and threshold, stored claim after claim. Problems are sorted by their number of claims
beforehand, so that all those of one size form a block of shape (problems, n, n + 2):
coherence is then one stack of matrix products per size, and nothing is padded.
"""

from dataclasses import dataclass
from typing import Any, Self

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from ..graphs.ragged import offsets_of, ranges, segment_ids
from . import segments as seg
from .soft import log1mexp, log_sigmoid

# sigmoid(600) is 1 to the last bit, but its logarithm, -1e-261, is not 0 yet:
# log(1 - q) stays finite, and so do all products of gradients.
LARGEST = 600.0


@dataclass(frozen=True)
class GridLayout:
    """Where the thresholds and cells of packed problems lie.

    Attributes
    ----------
    offsets : ndarray of shape (n_problems + 1,)
        Claims of each problem.
    grid_offsets : ndarray of shape (n_problems + 1,)
        Thresholds of each problem, two more than claims.
    cell_offsets : ndarray of shape (n_claims + 1,)
        Cells of each claim.
    cell_claim, cell_threshold : ndarray of shape (n_cells,)
    grid : ndarray of shape (n_thresholds,)
        Puts the lowest thresholds of all problems, the risks and the highest
        thresholds, one after the other, into the order of the grid.
    """

    offsets: np.ndarray
    grid_offsets: np.ndarray
    cell_offsets: np.ndarray
    cell_claim: np.ndarray
    cell_threshold: np.ndarray
    grid: np.ndarray

    @classmethod
    def of(cls, sizes: Any) -> Self:
        """Layout of problems with the given numbers of claims, shape (n_problems,)."""
        n = len(sizes)
        offsets = offsets_of(sizes)
        grid_offsets = offsets_of(sizes + 2)
        of_claim = segment_ids(offsets)
        cells = offsets_of(sizes[of_claim] + 2)
        threshold = ranges(grid_offsets[:-1][of_claim], np.diff(cells))
        grid = np.empty(grid_offsets[-1], dtype=np.int64)
        grid[grid_offsets[:-1]] = np.arange(n)
        grid[np.arange(len(of_claim)) + 2 * of_claim + 1] = n + np.arange(len(of_claim))
        grid[grid_offsets[1:] - 1] = n + len(of_claim) + np.arange(n)
        return cls(
            offsets=offsets,
            grid_offsets=grid_offsets,
            cell_offsets=cells,
            cell_claim=segment_ids(cells),
            cell_threshold=threshold,
            grid=grid,
        )


def threshold_grid(risk: NDArray[Any], layout: Any, margin: float) -> Any:
    """Make the thresholds of all problems, shape (n_thresholds,); not sorted."""
    low = seg.segment_min(risk, layout.offsets) - margin
    high = seg.segment_max(risk, layout.offsets) + margin
    return seg.take(anp.concatenate([low, risk, high]), layout.grid)


def log_keep(
    risk: NDArray[Any],
    thresholds: NDArray[Any],
    layout: Any,
    temperature: float,
    shift: float = 0.0,
) -> Any:
    """log p, shape (n_cells,): ``sigmoid((t - r_v + shift) / temperature)``.

    Hard twin: ``r_v <= t``. Theorem 1 takes shift = sqrt(temperature).
    """
    t = seg.take(thresholds, layout.cell_threshold)
    r = seg.take(risk, layout.cell_claim)
    return log_sigmoid(anp.minimum((t - r + shift) / temperature, LARGEST))


def _pull_coherence(ans, log_p, blocks):
    back = [np.swapaxes(b, 1, 2) for b in blocks]
    return lambda g: block_product(g, back, np.empty_like(g))


@seg.with_vjp(_pull_coherence)
def log_coherence(log_p: Any, blocks: Any) -> Any:
    """log q, shape (n_cells,): weighted mean of log p over each claim and its ancestors.

    Hard twin: all of them are kept.

    Parameters
    ----------
    log_p : ndarray of shape (n_cells,)
    blocks : list of ndarray of shape (n_problems of this size, size, size)
        In the order of the cells; row v holds the weights of v and its ancestors,
        which sum to 1.
    """
    return block_product(log_p, blocks, np.empty_like(log_p))


def block_product(cells: Any, blocks: Any, out: Any) -> Any:
    """Multiply each problem's block with its cells into ``out``, shape (n_cells,)."""
    start = 0
    for block in blocks:
        count, n, _ = block.shape
        stop = start + count * n * (n + 2)
        shape = count, n, n + 2
        product = out[start:stop].reshape(shape)
        np.matmul(block, cells[start:stop].reshape(shape), out=product)
        start = stop
    return out


def violation(
    log_q: Any,
    false_cells: Any,
    false_thresholds: Any,
    false_share: Any,
    temperature: float,
) -> Any:
    """V, shape (n_thresholds,): ``1 - exp(mean of log(1 - q) / temperature)``.

    The mean is over the false claims of the problem; V is 0 where there are none.
    Hard twin: some false claim is kept.

    Parameters
    ----------
    log_q : ndarray of shape (n_cells,)
    false_cells, false_thresholds : ndarray of int
        Cells of the false claims, and the threshold of each.
    false_share : ndarray of shape (n_thresholds,)
        One over the number of false claims of the problem, 0 where there are none.
    temperature : float
    """
    valid = log1mexp(seg.take(log_q, false_cells))
    log_valid = seg.scatter_sum(valid, false_thresholds, len(false_share)) * false_share
    return -anp.expm1(log_valid / temperature)


def soft_supremum(
    thresholds: NDArray[Any],
    violations: Any,
    layout: Any,
    sharpness: float,
    weight: Any,
) -> Any:
    """Compute the nonconformity score of each problem, shape (n_problems,).

    Mean of the thresholds under ``softmax(sharpness (minmax(t) - weight minmax(V_t)))``.
    The weight stands before V, as in the paper's algorithm 1 and its tables, not before
    t, as in its text. At weight 1 the lowest and the highest threshold are tied (0 - 0
    and 1 - 1) wherever only the lowest is safe; the limit needs more than 1.
    Hard twin: the last safe threshold.
    """
    scaled = seg.segment_minmax(thresholds, layout.grid_offsets)
    unsafe = seg.segment_minmax(violations, layout.grid_offsets)
    w = seg.segment_softmax(sharpness * (scaled - weight * unsafe), layout.grid_offsets)
    return seg.segment_sum(w * thresholds, layout.grid_offsets)


def gated_weights(
    thresholds: NDArray[Any],
    bound: Any,
    layout: Any,
    sharpness: float,
    temperature: float,
    shift: float = 0.0,
) -> Any:
    """w, shape (n_thresholds,): ``exp(sharpness t) sigmoid((bound - t - shift) / T)``.

    Scaled to sum 1 per problem. Hard twin: the largest threshold below ``bound``.
    Theorem 2 takes shift = sqrt(temperature).
    """
    gate = log_sigmoid((bound - thresholds - shift) / temperature)
    return seg.segment_softmax(sharpness * thresholds + gate, layout.grid_offsets)


def grid_retention(log_q: Any, weights: NDArray[Any], layout: Any) -> Any:
    """q, shape (n_claims,): mean of q_vt under the weights of the thresholds.

    Hard twin: is v in the filtered set?
    """
    cells = anp.exp(log_q) * seg.take(weights, layout.cell_threshold)
    return seg.segment_sum(cells, layout.cell_offsets)
