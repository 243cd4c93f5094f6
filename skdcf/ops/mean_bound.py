"""Upper confidence bound on the mean of losses between 0 and 1."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, rel_entr


def largest_mean(total, n, delta):
    """Compute an upper confidence bound on the expected loss, given n losses in [0, 1].

    Parameters
    ----------
    total : float
        Sum of the losses, or an upper bound on the sum.
    n : int
        Number of losses.
    delta : float in (0, 1)
        Maximum probability that the mean exceeds the bound.

    Returns
    -------
    bound : float
        The smallest of the Hoeffding bound, the Bentkus bound and 1.

    References
    ----------
    S. Bates, A. Angelopoulos, L. Lei, J. Malik, M. I. Jordan. Distribution-free,
    risk-controlling prediction sets. JACM 68, 2021.
    """
    share = total / n if n else 1.0
    if share >= 1:
        return 1.0

    def hoeffding(mean):
        divergence = rel_entr(share, mean) + rel_entr(1 - share, 1 - mean)
        return -n * divergence - np.log(delta)

    def bentkus(mean):
        return np.e * bdtr(np.ceil(total), n, mean) - delta

    bound = 1.0
    for excess in (hoeffding, bentkus):
        # The excess functions decrease from positive to negative values, and the first function
        # is infinite at 1.
        if excess(1 - 1e-12) < 0:
            bound = min(bound, brentq(excess, share, 1 - 1e-12))
    return bound
