"""
Reading a coverage interval
===========================

A report shows a coverage, an interval and a band, and the coverage may well lie below what
was promised. When is that chance, and when a defect?
"""

# %%
# One filter, one test set
# ------------------------
# 100 problems calibrate and 300 others test.

import numpy as np

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.metrics import evaluate_filter

graphs, labels = make_reasoning_graphs(40_000, random_state=0, return_X_y=True)
labels = np.array(labels, dtype=object)


def one_report(seed):
    """The report of a filter that was calibrated and tested on problems of its own."""
    rows = np.random.default_rng(seed).permutation(len(graphs))[:400]
    cf = HardCF("frequency-score", alpha=0.1, ties="jitter", random_state=seed)
    cf.fit(graphs[rows[:100]], labels[rows[:100]])
    return evaluate_filter(cf, graphs[rows[100:]], labels[rows[100:]], [0.1])


print(one_report(1))

# %%
# * The **interval** belongs to this filter: it says where the share of all problems to come
#   lies of which nothing false is kept, as far as 300 test problems can tell.
# * The **band** belongs to the promise: had everything been done right, the coverage on 300
#   test problems would lie in it for 95 of 100 filters. It is wide for two reasons, few
#   calibration problems and few test problems.
#
# An interval that excludes 0.9 is no alarm. A coverage below the band is.

# %%
# Forty of them
# -------------
# Each line is a filter with its interval. Most intervals hold the coverage that this filter
# really has, but the filters differ among each other, because each was calibrated on a
# draw of its own. About two of forty fall out of the band.

import matplotlib.pyplot as plt

reports = [one_report(seed) for seed in range(40)]
coverage = np.array([r.coverage[0] for r in reports])
interval = np.array([r.coverage_interval[0] for r in reports])
low, high = reports[0].coverage_band[0]
outside = (coverage < low) | (coverage > high)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.axhspan(low, high, color="0.9", label="band")
ax.axhline(0.9, color="k", ls="--", lw=1, label="guaranteed on average")
for x, (ends, out) in enumerate(zip(interval, outside, strict=True)):
    ax.plot([x, x], ends, color="C3" if out else "C0", lw=1)
    ax.plot(x, coverage[x], "o", ms=4, color="C3" if out else "C0")
ax.set(xlabel="filters", ylabel="coverage", xticks=[])
ax.legend(frameon=False, loc="lower left")
print(f"{outside.sum()} of 40 outside; their mean is {coverage.mean():.3f}")

# %%
# More calibration problems
# -------------------------
# They are what narrows the band. More test problems only narrow the interval.

from skdcf.metrics import coverage_band

for n in (100, 500, 2000):
    for m in (300, 3000):
        low, high = coverage_band(n, 0.1, n_test=m)
        print(f"{n:4d} to calibrate, {m:4d} to test: {low:.3f} to {high:.3f}")
