"""
Reading a coverage interval
===========================

A report shows a coverage, an interval and a band. The coverage can lie below the guaranteed
value. After this example you can decide whether this is due to chance or to an error.
"""

# %%
# One filter, one test set
# ------------------------
# The filter is calibrated on 99 problems and tested on 300 others.

import numpy as np

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import evaluate_filter

graphs, labels = make_reasoning_graphs(40_000, random_state=0, return_X_y=True)
labels = np.array(labels, dtype=object)


def one_report(seed):
    """Return the report of a filter calibrated and tested on a random sample."""
    rows = np.random.default_rng(seed).permutation(len(graphs))[:400]
    cf = HardCF("frequency-score", alpha=0.1, ties="jitter", random_state=seed)
    cf.fit(graphs[rows[:100]], labels[rows[:100]])
    return evaluate_filter(cf, graphs[rows[100:]], labels[rows[100:]], [0.1])


print(one_report(1))

# %%
# * The **interval** is a confidence interval for the coverage of this filter on future problems,
#   computed from the 300 test problems.
# * The **band** follows from the guarantee. If the conditions of the guarantee hold, the observed
#   coverage on 300 test problems lies in the band for 95 of 100 filters. The band is wide because
#   there are few calibration problems and few test problems.
#
# An interval that excludes 0.9 does not indicate an error. A coverage below the band does.

# %%
# Forty filters
# -------------
# Each line shows the interval of one filter. Most intervals contain the true coverage of their
# filter, but the filters differ, because each was calibrated on a different random sample. About
# two of forty coverages lie outside the band.

import matplotlib.pyplot as plt

reports = [one_report(seed) for seed in range(40)]
coverage = np.array([r.coverage[0] for r in reports])
interval = [(r.coverage_interval_low[0], r.coverage_interval_high[0]) for r in reports]
low, high = reports[0].coverage_band_low[0], reports[0].coverage_band_high[0]
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
# More calibration problems narrow the band. More test problems mainly narrow the interval.

from skdcf.evaluation import coverage_band

for n in (100, 500, 2000):
    for m in (300, 3000):
        low, high = coverage_band(n, 0.1, n_test=m)
        print(f"{n:4d} to calibrate, {m:4d} to test: {low:.3f} to {high:.3f}")
