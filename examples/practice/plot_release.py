"""
Release or review whole answers
===============================

A person can review some answers, but not all of them. `skdcf.monitoring.release` selects the
answers that need no review. The false discovery rate, which is the expected share of released
answers with a false claim, is at most alpha.
"""

# %%
# One batch of answers
# --------------------

import matplotlib.pyplot as plt
import numpy as np

from skdcf import CoherentConformalFilter
from skdcf.datasets import make_reasoning_graphs
from skdcf.monitoring import release

graphs, labels = make_reasoning_graphs(
    2400, kind="felm", random_state=1, return_X_y=True
)
wrong = np.array([bool((row == 0).any()) for row in labels])
cf = CoherentConformalFilter("neyman-pearson", random_state=0)
cf.fit(graphs[:800], labels[:800])
answers, truth = graphs[800:1200], wrong[800:1200]
free = release(cf, answers, alpha=0.1)
print(f"{truth.mean():.0%} of all answers contain a false claim")
print(
    f"{free.sum()} of {len(free)} are released, {truth[free].mean():.0%} of them with one"
)

# %%
# On average over draws
# ---------------------
# The guarantee is an average over random calibration problems and new answers. In this example,
# the filter is calibrated 100 times on 300 random problems and selects from 200 others.

rng = np.random.default_rng(0)
pool = np.arange(800, 2400)
levels = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3])
rate = np.zeros((100, len(levels)))
share = np.zeros_like(rate)
part = cf.calibration_part(graphs[800:], [labels[i] for i in pool])
for draw in range(100):
    rows = rng.permutation(len(pool))[:500]
    cf.calibrate_parts([part[rows[:300]]])
    new = graphs[pool[rows[300:]]]
    for j, alpha in enumerate(levels):
        free = release(cf, new, alpha)
        false = wrong[pool[rows[300:]]][free].sum()
        rate[draw, j] = false / max(free.sum(), 1)
        share[draw, j] = free.mean()
error = rate.std(axis=0) / np.sqrt(len(rate))
for alpha, mean, se, out in zip(
    levels, rate.mean(axis=0), error, share.mean(axis=0), strict=True
):
    print(f"alpha {alpha:.2f}: {mean:.3f} +- {se:.3f} wrong, {out:.0%} released")
assert (rate.mean(axis=0) <= levels + 2.5 * error).all()

# %%
# Plot
# ----
# The left panel shows the share of wrong answers among the released answers. The right panel
# compares the largest path risks of correct and wrong answers. Wrong answers rarely have a small
# largest path risk.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4), layout="constrained")
left.plot([0, 0.3], [0, 0.3], "k--", lw=1, label="guaranteed")
left.errorbar(levels, rate.mean(axis=0), 2 * error, fmt="o-", label="observed")
left.plot(levels, share.mean(axis=0), "s-", color="0.6", label="released")
left.set(xlabel="alpha", ylabel="share of answers", ylim=(0, 1))
left.legend(frameon=False)
risk = np.array([row.max() for row in cf.path_risk(answers)])
bins = np.linspace(risk.min(), risk.max(), 20)
right.hist([risk[~truth], risk[truth]], bins, stacked=True, label=["right", "wrong"])
right.set(xlabel="largest path risk of the answer", ylabel="answers")
right.legend(frameon=False)
