"""`auto` as it is without one of its parts, or with an option: one entry per change."""

from methods import TIES
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skdcf import CoherentConformalFilter
from skdcf.scorers import (
    ConformalScorer,
    Hazard,
    LinearScorer,
    MixtureScorer,
    NeymanPearsonScorer,
)

CAP = 5000  # claims of a tree's sample, as it was


def mixed(second):
    """`auto` with another second member."""
    first = ConformalScorer(LinearScorer(spread=0.0))
    members = {"linear": first, "neyman-pearson": second}
    scorer = MixtureScorer(members, prior=(0.0, 2.0))
    return CoherentConformalFilter(scorer, **TIES)


class CappedForest(RandomForestClassifier):
    """Each tree sees half of the claims, but at most so many."""

    def fit(self, X, y):
        """Fit the trees."""
        self.max_samples = min(len(X) // 2 + 1, CAP)
        return super().fit(X, y)


def hazards(forest):
    """The four default hazards, with a forest of one's own."""
    boosted = HistGradientBoostingClassifier(
        max_iter=75,
        max_depth=2,
        l2_regularization=5.0,
        max_features=0.5,
        max_bins=63,
        early_stopping=False,
        random_state=0,
    )
    return [
        Hazard(LogisticRegression(C=0.1, max_iter=1000)),
        Hazard(LogisticRegression(C=0.03, max_iter=1000), with_problem=True),
        Hazard(boosted),
        Hazard(forest, with_problem=True, doubt=0.05),
    ]


def capped():
    """The forest before it lost its cap."""
    forest = CappedForest(40, min_samples_leaf=8, max_features=0.3, random_state=0)
    return NeymanPearsonScorer(hazards(forest))


CAPPED = "auto, forest with its cap"
CHANGES = {CAPPED: mixed(capped())}
