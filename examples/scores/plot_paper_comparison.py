"""
The methods of the paper, side by side
======================================

All filters promise the same. What makes one better than another is how many true claims
it keeps, and that is compared here: on the same splits, and with errors that account for
splits that share problems.
"""

# %%
# Problems that resemble answers to competition mathematics, with 31 features each. They
# are generated: they show how a comparison is made, and measure no gain on real answers.

from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(700, random_state=0, return_X_y=True)

# %%
# The filters, by the names to print. The first is what the others are compared with:
# coherent factuality with a score made by hand, the frequency of a claim among regenerated
# answers.

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    XGBoostCF,
)

filters = {
    "coherent, by hand": HardCF(ties="jitter"),
    "independent": IndependentFactuality(ties="jitter"),
    "boosted independent": BoostedIndependentFactuality(ties="jitter"),
    "boosted trees": XGBoostCF(ties="jitter"),
    "differentiable, linear": CoherentConformalFilter("linear", ties="jitter"),
    "stack": CoherentConformalFilter(ties="jitter"),
}

# %%
# Each of the splits has 70 % of the problems to train on, 15 % to calibrate on and 15 % to
# test on.

from skdcf.evaluation import compare_filters
from skdcf.plots import ReportDisplay

report = compare_filters(
    filters, graphs, labels, alphas=[0.05, 0.1], cv=5, random_state=0
)
print(report)

# %%
# The differences to the first filter, with corrected errors (Nadeau and Bengio): the splits
# share problems, so that their results are not independent.

print(report.differences())

# %%
# Coverage lies where theory says, for all of them; retention differs.

display = ReportDisplay.from_report(report)
