"""Loss of the grid relaxation and its gradient by hand.

The letters are those of `skdcf.ops.soft_grid`. Of claim v and threshold t::

    x_vt = (t - r_v + keep_shift) / T_p     log p = log sigmoid(x)     log q = W log p
    l_t  = sum over false v of log(1 - q_vt) / their number     V_t = 1 - exp(l_t / tau_s)
    s    = sum_t u_t t,  u = softmax(beta (minmax(t) - lambda minmax(V_t)))
    b    = NeuralSort(s, k)
    A_t  = sum over true v of q_vt
    w    = softmax(beta t + log sigmoid((b - t - gate_shift) / tau_z))
    L    = -sum_t c_i w_t A_t / n,  c_i how often problem i is predicted

L is a function of w and A, s of t and V, so that nothing but log q and its gradient has
a value per cell. Backwards, a bar is the derivative of L::

    log q: -c w q / n for true v,  -l_bar q / (1 - q) for false ones, per number of them
    log p: W' times that           x: (1 - p) times that

The first threshold of a problem is its least and the last its greatest, and V never falls
in t, so that these two hold minimum and maximum of both.

Each function of thresholds returns its value and its vjp, which takes the derivative of the
loss in that value and returns those in what the function was given. ``grid`` is a
`skdcf.ops.segments.Segments` with one segment per problem.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.conformal import conformal_rank
from ..ops.segments import Segments
from ..ops.soft import log1mexp, neural_sort_and_gradient
from ..ops.soft_grid import LARGEST, block_product


class GridLoss:
    """Loss and gradient for one plan and level, in buffers that are used again.

    Parameters
    ----------
    relaxation : GridRelaxation
    plan : GridPlan
        From `plan`.
    alpha : float
        Level to train for, in (0, 1).
    """

    def __init__(self, relaxation: Any, plan: Any, alpha: float) -> None:
        self.relaxation = relaxation
        self.plan = plan
        self.alpha = alpha
        layout = plan.layout
        self.claims = Segments(layout.offsets)
        self.grid = Segments(layout.grid_offsets)
        self.cells = Segments(layout.cell_offsets)
        self.n_thresholds = len(plan.false_share)
        ends = [self.grid.first, self.grid.last]
        self.inner = np.delete(np.arange(self.n_thresholds), ends)
        # Thresholds of cells, numbered apart for false and for unknown claims.
        kind = np.where(plan.labels[plan.claims] == 1, 0, 2)
        self.slot = self.cells.spread(self.n_thresholds * kind) + layout.cell_threshold
        self.slot[plan.false_cells] -= self.n_thresholds
        self.to_slots = np.zeros(3 * self.n_thresholds)
        self.back = plan.blocks and [b.swapaxes(1, 2) for b in plan.blocks]
        self.x, self.log_p, self.log_q, self.q = np.empty((4, len(self.slot)))

    def __call__(
        self, risk: NDArray[Any], calibration: Any = None, prediction: Any = None
    ) -> Any:
        """Compute the loss and its gradient in ``risk``, as `Relaxation.retention` does."""
        relaxation = self.relaxation
        grid = self.grid
        r = risk.take(self.plan.claims)
        ends = self.claims.reduce(np.minimum, r), self.claims.reduce(np.maximum, r)
        t = np.empty(self.n_thresholds)
        t[self.inner] = r
        t[grid.first] = ends[0] - relaxation.margin
        t[grid.last] = ends[1] + relaxation.margin
        true, log_valid, slope = self._sums(self._log_q(r, t))
        share = self.plan.false_share
        tau = relaxation.violation_temperature
        V, valid_back = violation_and_vjp(log_valid, share, tau)
        scores, scores_back = soft_supremum_and_vjp(
            t,
            V,
            grid,
            sharpness=relaxation.sharpness,
            weight=relaxation.violation_weight,
        )
        bound, in_scores = self._bound(scores, calibration)
        w, weights_back = gated_weights_and_vjp(
            t,
            bound,
            grid,
            sharpness=relaxation.sharpness,
            temperature=relaxation.gate_temperature,
            shift=relaxation.gate_shift,
        )
        share = self._share(prediction)
        loss = -((share * true) @ w)
        if not np.isfinite(loss):
            return loss, np.full(len(risk), np.nan)
        g_t, g_bound = weights_back(-share * true)
        g_more, g_violation = scores_back(g_bound * in_scores)
        g_cells = self._into_cells(-share * w, valid_back(g_violation), slope)
        return loss, self._into_risk(g_t, g_more, g_cells, r=r, ends=ends)

    def _log_q(self, r, t):
        """Compute log q of all cells; x and log p stay in their buffers."""
        x = self.x
        log_p = self.log_p
        t.take(self.plan.layout.cell_threshold, out=x, mode="clip")
        x -= self.cells.spread(r)
        if self.relaxation.keep_shift:
            x += self.relaxation.keep_shift
        x /= self.relaxation.keep_temperature
        self.clipped = None
        if x.max() >= LARGEST:
            self.clipped = np.flatnonzero(x >= LARGEST)
            x[self.clipped] = LARGEST
        np.exp(np.negative(np.abs(x, out=log_p), out=log_p), out=log_p)
        np.log1p(log_p, out=log_p)
        np.subtract(np.minimum(x, 0.0, out=self.log_q), log_p, out=log_p)
        if self.back is None:
            return log_p
        return block_product(log_p, self.plan.blocks, self.log_q)

    def _sums(self, log_q):
        """Compute A, l, and the derivative of log(1 - q) in log q of false cells.

        One pass over the cells adds up q of true claims and log(1 - q) of false ones.
        """
        false = self.plan.false_cells
        q = np.exp(log_q, out=self.q)
        of_false = log_q.take(false)
        slope = q.take(false) / np.expm1(of_false)
        q[false] = log1mexp(of_false)
        sums = np.bincount(self.slot, q, len(self.to_slots))
        return *np.split(sums, 3)[:2], slope

    def _bound(self, scores, calibration):
        """Compute the soft threshold, and its gradient in all scores."""
        place = np.arange(len(scores))
        if calibration is not None:
            place = self.plan.problems_back[calibration]
        k = max(conformal_rank(len(place), self.alpha), 1)
        strength = self.relaxation.quantile_strength
        bound, gradient = neural_sort_and_gradient(scores[place], k, strength)
        return bound, np.bincount(place, gradient, len(scores))

    def _share(self, prediction):
        """Compute c / n of all thresholds: how often each problem is predicted."""
        n = self.plan.n_problems
        if prediction is None:
            return np.full(self.n_thresholds, 1 / n)
        times = np.bincount(self.plan.problems_back[prediction], minlength=n)
        return self.grid.spread(times / len(prediction))

    def _into_cells(self, g_true, g_valid, slope):
        """Compute the derivative in t - r of all cells from those of A and l."""
        plan = self.plan
        g = self.q
        x = self.x
        self.to_slots[: self.n_thresholds] = g_true
        g *= self.to_slots.take(self.slot)
        g[plan.false_cells] = g_valid.take(plan.false_thresholds) * slope
        if self.back is not None:
            g = block_product(g, self.back, self.log_q)
        np.exp(np.subtract(self.log_p, x, out=x), out=x)  # 1 - p
        if self.clipped is not None:
            x[self.clipped] = 0.0
        g *= x
        g /= self.relaxation.keep_temperature
        return g

    def _into_risk(self, g_t, g_more, g_cells, r, ends):
        """Compute the gradient in the risk of all claims, in their own order.

        A risk is in t - r of its own cells, and a threshold for its problem; the least
        and the greatest of a problem are the first and the last threshold, too.
        """
        plan = self.plan
        cells = plan.layout.cell_threshold
        g_t += g_more + np.bincount(cells, g_cells, self.n_thresholds)
        g_r = g_t[self.inner] - self.cells.reduce(np.add, g_cells)
        for end, place in zip(ends, (self.grid.first, self.grid.last), strict=True):
            hits, g = self.claims.hits(g_t[place], r, end)
            g_r[hits] += g
        return g_r[plan.claims_back]


def violation_and_vjp(log_valid, share, temperature):
    """V, shape (n_thresholds,), of sums of log(1 - q): ``1 - exp(share sum / tau_s)``."""
    scale = share / temperature
    log_safe = log_valid * scale
    return -np.expm1(log_safe), lambda g: -g * np.exp(log_safe) * scale


def soft_supremum_and_vjp(thresholds, violations, grid, sharpness, weight):
    """Scores, shape (n_problems,), as `skdcf.ops.soft_grid.soft_supremum`.

    The derivatives of the logits sum to 0 in each problem, which leaves the ends with
    the same amount, of opposite signs.
    """
    t, t_back = _minmax_and_vjp(thresholds, grid)
    v, v_back = _minmax_and_vjp(violations, grid)
    w = grid.softmax(sharpness * (t - weight * v))
    scores = grid.reduce(np.add, w * thresholds)

    def back(g):
        direct = grid.spread(g) * w
        logit = sharpness * direct * (thresholds - grid.spread(scores))
        return direct + t_back(logit), v_back(-weight * logit)

    return scores, back


def _minmax_and_vjp(values, grid):
    """Scale each segment to [0, 1]; its ends hold minimum and maximum."""
    low = values[grid.first]
    width = values[grid.last] - low
    flat = width < np.finfo(float).tiny * 1e20
    scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, width))
    spread = grid.spread(scale)
    scaled = (values - grid.spread(low)) * spread

    def back(g):
        end = grid.reduce(np.add, g * scaled) * scale
        out = g * spread
        out[grid.first] += end
        out[grid.last] -= end
        return out

    return scaled, back


def gated_weights_and_vjp(thresholds, bound, grid, sharpness, temperature, shift):
    """w, shape (n_thresholds,), as `skdcf.ops.soft_grid.gated_weights`."""
    y = (bound - shift - thresholds) / temperature
    small = np.exp(-np.abs(y))
    gate = np.minimum(y, 0) - np.log1p(small)
    w = grid.softmax(sharpness * thresholds + gate)

    def back(g):
        logit = w * (g - grid.spread(grid.reduce(np.add, w * g)))
        closing = logit * np.where(y < 0, 1.0, small) / (1 + small) / temperature
        return sharpness * logit - closing, closing.sum()

    return w, back
