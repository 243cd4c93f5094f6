"""Measure the proportion of passing answers with a kept false claim.

    python -m benchmarks.guarantees.passing [DRAWS]

An answer has four claims without edges. Their risks are uniform on [0, 1], and a claim is false
with probability .8 risk^2. In each draw n answers calibrate a guarantee with ``show=share``, and
four are new. "passing" is the share of the new answers that pass, "wrong among passing" the share
of these of which a false claim is kept, with its standard error. "exact" is the probability of
the latter. Of the n + 1 answers ``k0 = ceil(share (n + 1))`` are in the set of those that pass, the
new one is equally likely to be any of these, and it is wrong if its score is among the
``k = floor(alpha k0)`` smallest: k / k0, up to draws (less than one in 1,000) in which fewer than
k of them have a false claim.
"""

import sys
from fractions import Fraction
from math import ceil, floor

import numpy as np

from skdcf.guarantees import Calibration, Jumps, NoFalseClaim, PathRisks

SETTINGS = [  # alpha, calibration answers, share
    (0.1, 50, 0.6),
    (0.1, 50, 0.3),
    (0.2, 50, 0.3),
    (0.1, 19, 0.6),
    (0.1, 200, 0.6),
    (0.2, 19, 1.0),
]
N_NEW = 4


def draw(rng, n):
    """Risks and falsehood of the claims of n answers, each of shape (n, 4)."""
    risk = rng.random((n, 4))
    return risk, rng.random((n, 4)) < 0.8 * risk**2


def path_risks(risk):
    """Path risks of answers without edges, as a guarantee takes them."""
    return PathRisks(risk.ravel(), offsets=np.arange(len(risk) + 1) * 4)


def simulate(alpha, n, share, draws, seed=0):
    """Numbers of new answers that pass, and that pass and are wrong, one row per draw."""
    rng = np.random.default_rng(seed)
    rows = np.empty((draws, 2))
    guarantee = NoFalseClaim(show=share)
    for row in rows:
        risk, false = draw(rng, n)
        scores = np.where(false, risk, np.inf).min(axis=1)
        lowest = risk.min(axis=1)
        calibration = Calibration(guarantee, Jumps.of_scores(scores), lowest)
        risk, false = draw(rng, N_NEW)
        new = path_risks(risk)
        kept = risk < calibration.thresholds(new, alpha)[:, None]
        wrong = (kept & false).any(axis=1)
        row[:] = calibration.passes(new).sum(), wrong.sum()
    return rows


def exact(alpha, n, share):
    """Probability that an answer that passes is wrong, where scores are not tied."""
    in_set = ceil(Fraction(str(share)) * (n + 1))
    return floor(Fraction(str(alpha)) * in_set) / in_set


def main(draws):
    """Print the table."""
    print(f"{draws} draws of {N_NEW} new answers")
    print("alpha    n  share  passing  wrong among passing   exact")
    for alpha, n, share in SETTINGS:
        passing, wrong = (rows := simulate(alpha, n, share, draws)).mean(axis=0)
        rate = wrong / passing
        error = (rows[:, 1] - rate * rows[:, 0]).std(ddof=1) / np.sqrt(draws) / passing
        print(
            f"{alpha:5.2f} {n:4} {share:6.2f} {passing / N_NEW:8.3f}"
            f" {rate:10.4f} ± {error:.4f} {exact(alpha, n, share):9.4f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20_000)
