"""What all experiments share: how ties are broken, and fits at several levels.

Ties are broken by a seeded jitter in all filters. Filters with coarse scores, such as a frequency
out of five, keep more claims with the jitter. Without it, trained scores would have an advantage.
"""

from sklearn.base import clone

TIES = {"ties": "jitter"}


def fit_levels(filter, X, y, alphas, groups=None):
    """Return the filter fitted at each level, keyed by alpha."""
    return {
        alpha: clone(filter).set_params(alpha=alpha).fit(X, y, groups)
        for alpha in alphas
    }
