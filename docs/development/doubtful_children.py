"""A scorer that lowers the confidence in a claim if its children are probably false."""

import numpy as np

from skdcf.scorers import ClassifierScorer, Scorer


class DoubtfulChildren(Scorer):
    """Scorer that combines a claim's confidence with the mean confidence of its children."""

    requires_fit = True

    def __init__(self, classifier=None, share=0.3):
        self.classifier = classifier
        self.share = share

    def fit(self, batch, labels, task=None):
        self.own_ = ClassifierScorer(self.classifier, target="own", gain=None).fit(
            batch, labels, task
        )
        return self

    def confidence(self, batch):
        own, (parent, child) = self.own_.confidence(batch), batch.edges.T
        count = np.bincount(parent, minlength=batch.n_claims)
        total = np.bincount(parent, weights=own[child], minlength=batch.n_claims)
        below = np.where(count > 0, total / np.maximum(count, 1), own)
        return (1 - self.share) * own + self.share * below
