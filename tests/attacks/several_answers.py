"""Several answers to one question in `predict`: the rate over questions with any false text.

The guarantee is about one of the answers that was settled beforehand. Before November 2026
nothing was said; now there is one warning.
"""

import warnings

import numpy as np
from rates import one_claim_each, run

from skdcf import HardCF

ALPHA, ANSWERS = 0.1, 7


def any_of_seven(seed):
    rng = np.random.default_rng(seed)
    X = one_claim_each(rng.random(99))
    cf = HardCF(0, alpha=ALPHA).fit(X, (rng.random(99) < 0.6).astype(int))
    new = one_claim_each(rng.random(ANSWERS), problems=["What is it?"] * ANSWERS)
    false = rng.random(ANSWERS) >= 0.6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = np.concatenate(cf.predict(new)).astype(bool)
    told = [w for w in caught if f"{ANSWERS} answers to 1 question" in str(w.message)]
    global n_told
    n_told += len(told)
    return float((kept & false).any())


n_told = 0

if __name__ == "__main__":
    run(any_of_seven, ALPHA, f"any of {ANSWERS} answers to a question")
    print(f"warnings: {n_told}")
