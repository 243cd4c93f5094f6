"""A relaxation that assumes normally distributed nonconformity scores."""

import autograd.numpy as anp
import numpy as np
from autograd.scipy.special import expit
from autograd.tracer import getval
from scipy.stats import norm

from skdcf.ops import soft
from skdcf.ops.segments import segment_min, take
from skdcf.relaxation import PathRelaxation, Relaxation


class NormalRelaxation(Relaxation):
    """Relaxation with the mean plus a multiple of the standard deviation as the threshold."""

    def __init__(self, temperature=0.3):
        self.temperature = temperature

    def plan(self, batch, labels):
        return PathRelaxation().plan(batch, labels)

    def soft_threshold(self, scores, alpha):
        finite = scores[np.flatnonzero(np.isfinite(getval(scores)))]
        if not len(finite):  # no problem has a false claim
            return np.inf
        share = alpha * (len(scores) + 1) / (len(finite) + 1)
        return anp.mean(finite) + norm.ppf(min(share, 0.95)) * anp.std(finite)

    def state(self, risk, plan):
        return soft.path_risk(risk, plan.batch)

    def scores(self, path_risk, plan):
        # Take the minimum over the false claims of each problem.
        return segment_min(take(path_risk, plan.false_claims), plan.false_offsets)

    def kept(self, path_risk, threshold, plan):
        return expit((threshold - path_risk) / self.temperature)
