"""
How many labelled problems are needed?
======================================

The guarantee holds for any number of calibration problems. Their number determines whether a
filter can keep any claim, and how much the coverage of *your* calibrated filter may differ from
its mean.
"""

# %%
# The smallest number
# -------------------
# With n problems, the rank of the threshold is the integer part of ``alpha (n + 1)``. If the rank
# is 0, the filter keeps nothing and warns with the number of problems that it needs.

from skdcf.guarantees import NoFalseClaim

for alpha in (0.2, 0.1, 0.05, 0.02, 0.01):
    print(
        f"alpha = {alpha:<5} needs {NoFalseClaim().problems_needed(alpha):3d} problems"
    )

# %%
# The coverage of a single filter
# -------------------------------
# The guarantee is a mean over random calibration sets. The coverage given one calibration set
# follows a Beta distribution. The band below contains the coverage for 95 % of the calibration
# sets. Its lower edge reaches 0.87 with about 500 problems.

import matplotlib.pyplot as plt
import numpy as np

from skdcf.evaluation import coverage_band

sizes = np.unique(np.geomspace(9, 2000, 200).astype(int))
band = np.array([coverage_band(int(n), 0.1) for n in sizes])

_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.fill_between(sizes, *band.T, alpha=0.25, label="95 % of calibration draws")
ax.axhline(0.9, color="k", ls="--", lw=1, label="guaranteed on average")
ax.set(xscale="log", xlabel="calibration problems", ylabel="coverage")
ax.set_ylim(0.6, 1.0)
ax.legend(frameon=False, loc="lower right")
