"""`release` in many small batches: all false texts over all shown texts.

The guarantee is per batch, and a batch that shows nothing counts as 0. For .2 the pooled rate is
.33 here in batches of 5 and .37 one answer at a time. ``skdcf filter --guarantee shown`` prints
both rates; "stated" is alpha divided by the share of the batches that show something.
"""

import warnings

import numpy as np
from rates import one_claim_each

from skdcf import HardCF
from skdcf.choosing import release

ALPHA, ANSWERS = 0.2, 100


def world(rng, n):
    risk = rng.random(n)
    labels = (rng.random(n) >= 0.2 + 0.7 * risk).astype(int)
    return one_claim_each(-risk), labels


def batches_of(m, n_calibrations=60):
    n_wrong = n_shown = n_batches = n_showing = 0
    per_batch = []
    for seed in range(n_calibrations):
        rng = np.random.default_rng(seed)
        cf = HardCF(0, alpha=ALPHA / 5).fit(*world(rng, 99))
        for _ in range(ANSWERS // m):
            X, y = world(rng, m)
            kept = np.concatenate(release(cf, X, ALPHA)).astype(bool)
            wrong, shown = int((kept & (y == 0)).sum()), int(kept.sum())
            per_batch.append(wrong / max(shown, 1))
            n_wrong, n_shown = n_wrong + wrong, n_shown + shown
            n_batches, n_showing = n_batches + 1, n_showing + (shown > 0)
    stated = ALPHA / max(n_showing / n_batches, 1e-9)
    return (
        f"batches of {m}: {np.mean(per_batch):.3f} per batch for {ALPHA:g}, "
        f"{n_wrong / max(n_shown, 1):.3f} over all, about {stated:.3f} stated"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for m in (1, 5, 50):
        print(batches_of(m), flush=True)
