"""A guarantee about the last claim of an answer and its ancestors."""

import numpy as np

from skdcf.guarantees import Guarantee


class TrueConclusion(Guarantee):
    """With probability at least 1 - alpha, no false conclusion is kept."""

    def __init__(self, by=None):
        self.by = by

    def scores(self, path_risk, labels, offsets):
        filled, last = offsets[1:] > offsets[:-1], offsets[1:] - 1
        safe = ~filled | (labels[last] == 1)
        return np.where(safe, np.inf, path_risk[last])

    def loss(self, labels, kept, offsets):
        filled, last = offsets[1:] > offsets[:-1], offsets[1:] - 1
        return filled & kept[last] & (labels[last] != 1)
