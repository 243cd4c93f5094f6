"""Steps of `skdcf.ops.soft_grid` on thresholds, each with its gradient by hand.

Every function returns its value and a second function, which takes the derivative of the
loss in that value and returns those in what the first one was given. ``grid`` is a
`skdcf.ops.segments.Segments`, one segment per problem, whose first threshold is the
least and whose last one is the greatest.
"""

import numpy as np


def violation_step(log_valid, share, temperature):
    """V, shape (n_thresholds,), of sums of log(1 - q): ``1 - exp(share sum / tau_s)``."""
    scale = share / temperature
    log_safe = log_valid * scale
    return -np.expm1(log_safe), lambda g: -g * np.exp(log_safe) * scale


def soft_supremum_step(thresholds, violations, grid, sharpness, weight):
    """Scores, shape (n_problems,), as `skdcf.ops.soft_grid.soft_supremum`.

    The derivatives of the logits sum to 0 in each problem, which leaves the ends with
    the same amount, of opposite signs.
    """
    t, t_back = _minmax_step(thresholds, grid)
    v, v_back = _minmax_step(violations, grid)
    w = grid.softmax(sharpness * (t - weight * v))
    scores = grid.reduce(np.add, w * thresholds)

    def back(g):
        direct = grid.spread(g) * w
        logit = sharpness * direct * (thresholds - grid.spread(scores))
        return direct + t_back(logit), v_back(-weight * logit)

    return scores, back


def _minmax_step(values, grid):
    """Every segment scaled to [0, 1]; its ends hold minimum and maximum."""
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


def gated_weights_step(thresholds, bound, grid, sharpness, temperature, shift):
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
