"""Loss of the path relaxation and its gradient by hand, where maximum and minimum are hard.

=====  ==========================================================================
r_v    risk of claim v
R_v    maximum of r over v and its ancestors; its gradient goes to where it is found
s_i    minimum of R over the deciding false claims of problem i; likewise
t      root of ``sum_i sigmoid((t - s_i) / T_s) = count``
q_v    ``sigmoid((t - R_v) / T_q)``
L      ``-sum_v w_v q_v / n``, w_v 1 for true claims of problems that are predicted
=====  ==========================================================================

Backwards, with ``a_v = w_v q_v (1 - q_v) / (n T_q)``::

    dL/dR_v = a_v    dL/dt = -sum_v a_v    dt/ds_i = p_i, p ~ sigmoid'((t - s_i) / T_s)

No R is needed but those of true and of deciding claims. Where a maximum or a minimum is
tied, the tied share its gradient equally, as in `skdcf.ops.segments`. In a large problem R
is found by one pass along the edges, and a tie leaves all to the later row.
"""

import numpy as np

from ..graphs.ragged import offsets_of, ranges
from ..ops.segments import Segments
from ..ops.soft_quantile import quantile_root, quantile_slope


class PathStep:
    """Loss and gradient for one plan and level.

    It remembers the last threshold, from which the next search for a root starts.

    Parameters
    ----------
    relaxation : PathRelaxation
    plan : PathPlan
    alpha : float
    """

    def __init__(self, relaxation, plan, alpha):
        self.relaxation, self.plan, self.alpha = relaxation, plan, alpha
        self.true = np.flatnonzero(plan.labels)
        rows = np.concatenate([self.true, plan.false_claims])
        indptr, indices = plan.batch.small_closure
        count = np.diff(indptr)[rows]
        self.listed = indices[ranges(indptr[rows], count)]
        self.large = np.flatnonzero(np.isin(self.listed, plan.large))
        self.of_large = np.searchsorted(plan.large, self.listed[self.large])
        self.rows = Segments(offsets_of(count))
        n_false = np.diff(plan.false_offsets)
        self.with_errors = np.flatnonzero(n_false)
        self.errors = Segments(offsets_of(n_false[self.with_errors]))
        self.last = np.nan

    def __call__(self, risk, calibration=None, prediction=None):
        """Loss and its gradient in ``risk``; problems as in `Relaxation.retention`."""
        listed = self._listed(risk)
        above = risk.take(listed)
        path_risk = self.rows.reduce(np.maximum, above)
        of_true, of_false = np.split(path_risk, [len(self.true)])
        scores = self.errors.reduce(np.minimum, of_false)
        threshold, slope = self._threshold(scores, calibration)
        loss, g_true = self._loss(threshold, of_true, prediction)
        if not np.isfinite(loss):
            return loss, np.full(len(risk), np.nan)
        deciding, g = self.errors.hits(-g_true.sum() * slope, of_false, scores)
        g_false = np.bincount(deciding, g, len(of_false))
        hits, g = self.rows.hits(np.append(g_true, g_false), above, path_risk)
        return loss, np.bincount(listed[hits], g, len(risk))

    def _listed(self, risk):
        """Claims and ancestors of all rows; of a large problem only the highest."""
        if not len(self.large):
            return self.listed
        listed = self.listed.copy()
        listed[self.large] = self.plan.find_highest(risk)[self.of_large]
        return listed

    def _threshold(self, scores, calibration):
        """t, and its gradient in the scores of problems with errors."""
        n, chosen = self.plan.n_problems, np.arange(len(scores))
        if calibration is not None:
            place = np.full(n, -1)
            place[self.with_errors] = chosen
            n, chosen = len(calibration), place[calibration]
            chosen = chosen[chosen >= 0]
        known = scores[chosen]
        if not len(known):
            return np.inf, np.zeros(len(scores))
        count = self.relaxation.error_count(self.alpha, n, len(known))
        T = self.relaxation.quantile_temperature
        self.last = quantile_root(known, count, T, self.last)
        slope = quantile_slope(known, self.last, T)
        return self.last, np.bincount(chosen, slope, len(scores))

    def _loss(self, threshold, path_risk, prediction):
        """L, and its gradient in R of the true claims at a fixed threshold."""
        T, plan = self.relaxation.keep_temperature, self.plan
        n, weight = plan.n_problems, plan.labels[self.true]
        if prediction is not None:
            chosen = np.bincount(prediction, minlength=n)
            weight = weight * chosen[plan.problem_of[self.true]]
            n = len(prediction)
        x = (threshold - path_risk) / T
        small = np.exp(-np.abs(x))  # of q and 1 - q the smaller over the larger
        kept = np.where(x > 0, 1.0, small) / (1 + small)
        slope = small / np.square(1 + small)
        return -(weight @ kept) / n, weight * slope / (n * T)
