"""Measure the proportion of shown texts with a false claim.

    python -m benchmarks.guarantees.shown [draws]

An answer has four claims without edges. The risks are uniform on [0, 1], and a claim is false with
probability .8 risk^2. In each draw, n answers are used for calibration, and m answers are new.
"promised" is alpha. "false among shown" is the proportion of shown texts with a false claim,
averaged over the draws, where a draw without shown texts counts as 0. "pooled" is the total number
of false texts divided by the total number of shown texts. The last rows use two other
distributions, for which most or few of the answers are shown.
"""

import sys

import numpy as np

from skdcf.ops.conformal import shown_rank

LAWS = {"square": (0.8, 2.0), "rare": (0.05, 1.0), "frequent": (1.0, 0.3)}
SETTINGS = [
    ("square", 200, 100, 0.1),
    ("square", 50, 100, 0.1),
    ("square", 19, 20, 0.2),
    ("square", 200, 100, 0.02),
    ("rare", 200, 100, 0.1),
    ("frequent", 999, 500, 0.1),
]


def draw(rng, law, n):
    """Risks and truth of the claims of n answers, each of shape (n, 4)."""
    height, power = LAWS[law]
    risk = rng.random((n, 4))
    return risk, rng.random((n, 4)) >= height * risk**power


def simulate(law, n, m, alpha, draws, seed=0):
    """Share of false among shown, share shown and true claims kept, one row per draw."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(draws):
        risk, true = draw(rng, law, n)
        scores = np.sort(np.where(true, np.inf, risk).min(axis=1))
        risk, true = draw(rng, law, m)
        rank = shown_rank(scores, risk.min(axis=1), alpha)
        kept = risk < (scores[rank - 1] if rank else -np.inf)
        shown = kept.any(axis=1).sum()
        wrong = (kept & ~true).any(axis=1).sum()
        rows.append([wrong / max(1, shown), shown, (kept & true).sum() / m, wrong])
    return np.array(rows)


def main(draws):
    """Print the table."""
    print(f"{draws} draws; errors are standard errors")
    print(
        "law        n    m  promised  false among shown   pooled  shown  true claims kept"
    )
    for law, n, m, alpha in SETTINGS:
        rows = simulate(law, n, m, alpha, draws)
        rate, shown, true, wrong = rows.mean(axis=0)
        error = rows[:, 0].std(ddof=1) / np.sqrt(draws)
        pooled = wrong / shown if shown else np.nan
        print(
            f"{law:8} {n:4} {m:4} {alpha:9.2f} {rate:10.4f} +- {error:.4f} "
            f"{pooled:8.4f} {shown / m:6.3f} {true:17.3f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4000)
