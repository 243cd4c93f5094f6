"""Judged answers without a question calibrate twice.

Before November 2026 they counted twice: .173 +- .011 for .1 with 5 answers, and .121 +- .005
with 25. Now they are refused until groups say which are one answer.
"""

import numpy as np
from rates import one_claim_each, run

from skdcf import HardCF

ALPHA = 0.1


def twice(n):
    def measure(seed):
        rng = np.random.default_rng(seed)
        scores = np.tile(rng.random(n), 2)
        texts = [f"claim {i}" for i in np.tile(np.arange(n), 2)]
        batch = one_claim_each(scores, claims=texts)
        try:
            cf = HardCF(0, alpha=ALPHA).fit(batch, np.zeros(2 * n, int))
        except ValueError as error:
            assert "groups" in str(error), error
            return np.nan
        return np.clip(1 + cf.threshold_, 0, 1)  # all are false; scores are uniform

    return measure


if __name__ == "__main__":
    for n in (5, 25):
        run(twice(n), ALPHA, f"{n} answers judged twice")
