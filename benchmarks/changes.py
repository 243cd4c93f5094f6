"""Scorers as they were before a change: what each change is worth."""

from methods import NEYMAN_PEARSON, TIES
from sklearn.ensemble import RandomForestClassifier

from skdcf import HardCF
from skdcf.scorers import NeymanPearsonScorer
from skdcf.scorers._hazards import default_hazards

CAP = 5000  # claims of a tree's sample, as it was
CAPPED = f"{NEYMAN_PEARSON}, trees of {CAP:,} claims at most"


class CappedForest(RandomForestClassifier):
    """Each tree sees half of the claims, but at most so many."""

    def fit(self, X, y):
        """Fit the trees."""
        self.max_samples = min(len(X) // 2 + 1, CAP)
        return super().fit(X, y)


def with_cap():
    """The default hazards, of which the forest has its old cap."""
    hazards = default_hazards(CAP, random_state=0)
    for hazard in hazards:
        if isinstance(hazard.estimator, RandomForestClassifier):
            hazard.estimator = CappedForest(**hazard.estimator.get_params())
    return {CAPPED: HardCF(NeymanPearsonScorer(hazards), **TIES)}
