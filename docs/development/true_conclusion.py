"""A guarantee about the last claim of an answer and its ancestors."""

import numpy as np

from skdcf.guarantees import Guarantee, Jumps


class TrueConclusion(Guarantee):
    """With probability at least 1 - alpha, no false conclusion is kept."""

    def __init__(self, by=None):
        self.by = by

    def jumps(self, path_risk, labels, offsets):
        filled, last = offsets[1:] > offsets[:-1], offsets[1:] - 1
        is_wrong = filled & (labels[last] != 1)
        return Jumps.of_scores(np.where(is_wrong, path_risk[last], np.inf))

    def loss(self, labels, kept, offsets):
        filled, last = offsets[1:] > offsets[:-1], offsets[1:] - 1
        return filled & kept[last] & (labels[last] != 1)

    def describe(self, level):
        return f"at most {100 * level:g} % of the conclusions are false{self.scope}"
