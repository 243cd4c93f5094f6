"""
Two claims, feature by feature
==============================

The paper behind this package (arXiv:2604.20098) shows two claims and what its trained,
linear score makes of them: one that is true although no other answer repeats it, and one
that is false although all of them do. Here are both, rebuilt from the printed numbers,
with what the numbers say when they are checked.
"""

# %%
# A true claim that a frequency would drop
# ----------------------------------------
# Twelve steps solve for c, and eleven of them are formulas that follow from each other.
# Claim 8 was found in none of the other answers. By frequency alone, it and all that
# builds on it would go; the trained score kept it. This is what was kept at alpha = 0.06.

import numpy as np

from skdcf import ReasoningGraph
from skdcf.plots import ReasoningGraphDisplay

CHAIN = [(8, 9), (9, 10), (10, 11)]
roots = ReasoningGraph(
    None,
    [(0, 1), (0, 2), (1, 4), (2, 4), (3, 4), (4, 6), (5, 6), (6, 8), (7, 8), *CHAIN],
    problem="x² + bx + c = 0, |r₁ - r₂| = |b - 2c|, c ≠ 0: c = ?",
    claims=[
        "roots r₁, r₂",
        "r₁ + r₂ = -b",
        "r₁ r₂ = c",
        "(r₁ - r₂)² = (r₁ + r₂)² - 4 r₁ r₂",
        "(r₁ - r₂)² = b² - 4c",
        "|r₁ - r₂| = |b - 2c|",
        "b² - 4c = (b - 2c)²",
        "(b - 2c)² = b² - 4bc + 4c²",
        "0 = -4bc + 4c² + 4c",
        "0 = 4c (c + 1 - b)",
        "c = 0 or c = b - 1",
        "c = b - 1",
    ],
)
kept = np.arange(12) < 9
ReasoningGraphDisplay.from_graph(roots, kept=kept, labels=np.ones(12))

# %%
# Weight times value, for the features whose value is printed. A feature that is 0, as
# the frequency is, adds nothing.

from skdcf.inspection import Contributions

case_1 = {  # feature: value, weight, printed contribution
    "nx_reachability": (3.0, 0.272, 0.815),
    "claim_index": (8.0, 0.098, 0.780),
    "nx_in_degree": (2.0, 0.135, 0.269),
    "quadratic_equations": (1.0, 0.229, 0.229),
    "nx_out_degree": (1.0, 0.176, 0.176),
    "problem_relevance": (1.0, 0.144, 0.144),
    "coherent_to_ancestors": (1.0, 0.110, 0.110),
    "nx_betweenness": (0.22, 0.292, 0.064),
    "uses_problem_data": (0.50, 0.104, 0.052),
    "frequency-score": (0.0, 0.021, 0.000),
}


def rebuilt(case):
    """Contributions from printed values and weights."""
    values, weights, _ = zip(*case.values(), strict=True)
    return Contributions(case, values, weights)


rebuilt(case_1)

# %%
# A false claim that a frequency would keep
# -----------------------------------------
# This answer has nothing to do with its question. The other answers made the same
# mistake, so that the frequency of claim 2 is 5 out of 5. The trained score gives it
# little, and nothing is kept.

digits = ReasoningGraph(
    None,
    [(0, 1), (1, 2), (1, 3), (1, 4), (1, 6), (6, 5)],
    problem="rectangle, area 180, perimeter 54: diagonal² = ?",
    claims=["3, 6, 9", "n = 369", "n > 0", "n odd", "3 | n", "9 | n", "n = 9 · 41"],
)
nothing = np.zeros(7, dtype=bool)
ReasoningGraphDisplay.from_graph(digits, kept=nothing, labels=np.zeros(7))

# %%

case_2 = {
    "nx_is_source": (1.0, -0.253, -0.253),
    "word_problems": (1.0, 0.227, 0.227),
    "claim_index": (2.0, 0.098, 0.195),
    "nx_in_degree": (1.0, 0.135, 0.135),
    "coherent_to_ancestors": (1.0, 0.110, 0.110),
    "frequency-score": (5.0, 0.021, 0.107),
    "nx_pagerank": (0.13, -0.249, -0.033),
    "nx_closeness": (0.22, 0.093, 0.021),
}
rebuilt(case_2)

# %%
# Do the printed numbers agree with each other?
# ---------------------------------------------
# Weights are printed with three decimals. Multiplied by the value, their rounding
# explains every difference from the printed contributions: with a value of 8, up to
# 0.004.

printed_total = {"case 1": 2.66, "case 2": 0.54}
for (name, total), case in zip(printed_total.items(), (case_1, case_2), strict=True):
    values, weights, printed = np.array(list(case.values())).T
    rounding = 0.0005 * np.abs(values) + 0.0005
    rounding += np.where(values == np.round(values), 0, 0.005 * np.abs(weights))
    apart = np.abs(values * weights - printed)
    print(f"{name}: every product agrees: {bool((apart <= rounding + 1e-12).all())}")
    print(
        f"   printed contributions add up to {printed.sum():.3f}, printed total {total}"
    )

# %%
# The *totals* are not the sums: 0.021 is missing in the first case, 0.031 in the second.
# The paper says that a bias is added, and prints none. With all roundings, a bias
# between 0.022 and 0.031 would explain both.
#
# The graphs can be checked too, because they are drawn.

from skdcf.features import GraphFeatures

for graph, claim, case in ((roots, 8, case_1), (digits, 2, case_2)):
    batch = GraphFeatures().fit_transform([graph])
    print(f"claim {claim} of {graph.n_claims}")
    for feature, value in zip(batch.feature_names, batch.features[claim], strict=True):
        said = f"{case[feature][0]:g}" if feature in case else "-"
        print(f"   {feature:22} {value:6.3f}   printed: {said}")

# %%
# Reachability, degrees, betweenness, closeness and pagerank are those printed. Two things
# are not. Claim 2 of the second answer builds on claim 1, so it is no source, although
# the table gives it ``nx_is_source`` 1 beside ``nx_in_degree`` 1, and the text explains
# the low score by that; it is a sink. And claim 8 of the first answer has a pagerank, a
# closeness and a depth that are not 0, and do not appear in its table, which is said to
# show every feature that is not 0.
#
# A filter of your own gives such tables for every claim: see `skdcf.inspection.explain`.
