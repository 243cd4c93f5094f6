"""A review removes claims that a filter for ExpectedFalse() kept.

The share of false claims among those left is .261 +- .002 for .12, and before November 2026
``describe`` stated that it is at most .12. Now it states the other number printed here: the
false claims left, divided by the claims kept before the review.
"""

import numpy as np
from rates import NO_EDGES, run

from skdcf import GraphBatch, HardCF
from skdcf.apps.labelling import ReviewOrder
from skdcf.guarantees import ExpectedFalse

BOUND = 0.12


def world(rng, n):
    risk = rng.random(10 * n)
    labels = (rng.random(10 * n) >= 0.6 * risk**2).astype(int)
    offsets = np.arange(0, 10 * n + 1, 10)
    batch = GraphBatch.from_arrays(-risk[:, None], offsets, NO_EDGES)
    return batch, np.split(labels, n)


def reviewed(seed, *, of_those_before):
    rng = np.random.default_rng(seed)
    cf = HardCF(0, guarantee=ExpectedFalse(bound=BOUND)).fit(*world(rng, 100))
    batch, labels = world(rng, 50)
    review = ReviewOrder(cf, batch)
    before = review.masks()
    for i, mask in enumerate(before):
        kept = np.flatnonzero(mask)
        for v in kept[(labels[i][kept] == 1) & (rng.random(len(kept)) < 0.7)]:
            review.told(i, int(v), "false")  # a reviewer who removes what is true
    shares = [
        (row[now] == 0).sum() / max((then if of_those_before else now).sum(), 1)
        for row, then, now in zip(labels, before, review.masks(), strict=True)
    ]
    stated = review.describe().startswith(cf.calibration_.describe(BOUND))
    if stated and of_those_before:
        return np.nan  # it states something else
    if not stated and not of_those_before:
        return np.nan
    return float(np.mean(shares))


if __name__ == "__main__":
    run(
        lambda s: reviewed(s, of_those_before=False),
        BOUND,
        "share of those left",
        n=200,
    )
    run(lambda s: reviewed(s, of_those_before=True), BOUND, "of those before", n=200)
