"""How well the scores of a filter separate true from false claims (the paper's appendix)."""

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit
from sklearn.utils import check_random_state

TEST_SIZE = 0.15
GRID = 2001  # number of points at which the two densities are compared
BEYOND = 0.25  # margin for the tails of the densities, as a proportion of the range of the scores


def score_separation(filter, reference, X, y, alpha, cv):
    """Return the measures of a filter's separation, from scores of held-out problems.

    In each of ``cv`` splits, 15 % of the problems are scored by filters that are fitted to the
    other problems. The scores of both filters and all splits are pooled and standardised
    together. The appendix does not define the overlap. Here, the overlap is the area under both
    of two Gaussian kernel density estimates.
    """
    rng = check_random_state(0)
    seed = int(rng.randint(2**31 - 1))
    splitter = ShuffleSplit(cv, test_size=TEST_SIZE, random_state=seed)
    scores = []
    true = []
    for split in splitter.split(np.empty(len(X))):
        train, test = np.sort(split[0]), np.sort(split[1])
        seed = int(rng.randint(2**31 - 1))
        true.append(np.concatenate([y[i] for i in test]) == 1)
        settings = {"alpha": alpha, "random_state": seed}
        known = X[train], [y[i] for i in train]
        fitted = [
            clone(one).set_params(**settings).fit(*known) for one in (reference, filter)
        ]
        scores.append([one.confidence(X[test]) for one in fitted])
    pooled = np.concatenate(scores, axis=1)
    pooled = (pooled - pooled.mean()) / pooled.std()
    true = np.concatenate(true)
    reference, own = ((row[true], row[~true]) for row in pooled)
    separation = own[0].mean() - own[1].mean()
    return {
        "separation": float(separation),
        "ratio": float(separation / (reference[0].mean() - reference[1].mean())),
        "cohens_d": float(cohens_d(*own)),
        "overlap": overlap(*own),
    }


def cohens_d(true, false):
    """Return Cohen's d of the scores of true and false claims."""
    n, m = len(true), len(false)
    within = ((n - 1) * true.var(ddof=1) + (m - 1) * false.var(ddof=1)) / (n + m - 2)
    return (true.mean() - false.mean()) / np.sqrt(within)


def overlap(true, false):
    """Return the area below both of two kernel density estimates."""
    scores = np.concatenate([true, false])
    margin = BEYOND * np.ptp(scores)
    at = np.linspace(scores.min() - margin, scores.max() + margin, GRID)
    least = np.minimum(gaussian_kde(true)(at), gaussian_kde(false)(at))
    return float(least.sum() * (at[1] - at[0]))
