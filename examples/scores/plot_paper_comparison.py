"""
Comparison of the methods of the paper
======================================

All filters have the same guarantee. This example compares the number of true claims that they
keep, on the same splits. The standard errors account for the overlap between splits.
"""

# %%
# The generated problems resemble answers to competition mathematics, with 31 features per claim.
# They illustrate a comparison and do not measure gains on real answers.

from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(700, random_state=0, return_X_y=True)

# %%
# The dictionary contains the filters and their names. The others are compared with the first
# filter, coherent factuality with the frequency of a claim among regenerated answers as its
# score.

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    HardCF,
    IndependentFactuality,
    XGBoostCF,
)
from skdcf.scorers import ConfTrScorer

filters = {
    "coherent, by hand": HardCF(ties="jitter"),
    "independent": IndependentFactuality(ties="jitter"),
    "boosted independent": BoostedIndependentFactuality(ties="jitter"),
    "boosted trees": XGBoostCF(ties="jitter"),
    "differentiable, no price": CoherentConformalFilter(
        ConfTrScorer(gain=None), ties="jitter"
    ),
    "differentiable, priced": CoherentConformalFilter(ties="jitter"),
}

# %%
# Each split uses 70 % of the problems for training, 15 % for calibration and 15 % for testing.

from skdcf.evaluation import compare_filters
from skdcf.plots import ReportDisplay

report = compare_filters(
    filters, graphs, labels, alphas=[0.05, 0.1], cv=5, random_state=0
)
print(report)

# %%
# The column "delta %" is the change from the first filter. The errors are corrected (Nadeau and
# Bengio), because the splits share problems, and their results are therefore not independent.
#
# The coverage of all filters agrees with theory. Their retention differs.

display = ReportDisplay.from_report(report)
