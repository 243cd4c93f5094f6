"""
From answers to answers that can be trusted
===========================================

Answers that were cut into claims go in; what is left of them holds nothing false, in at
least 90 % of the answers.
"""

# %%
# Answers
# -------
# A problem is a `~skdcf.ReasoningGraph`: the claims of one answer, and edges from a claim to
# those that build on it. Here is one by hand.

from skdcf import ReasoningGraph

answer = ReasoningGraph.from_parents(
    [[], [0], [1]],
    claims=["x + 2 = 5", "so x = 3", "so x squared is 6"],
    problem="Solve x + 2 = 5 and square the solution.",
)
answer

# %%
# To learn from, a filter needs answers whose claims were judged. These are generated;
# ``data = fetch_perl()`` from the same module downloads solutions by language models that
# people judged, and the rest of the page runs on them as it stands.

from skdcf.datasets import make_word_problems

data = make_word_problems(600, random_state=0)
print(data.graphs)

# %%
# Fit
# ---
# `~skdcf.features.reasoning_features` computes columns from question, claims and edges. The
# filter behind it trains a score on some of the problems and calibrates on others. Problems
# with the same question, one group, stay on one side.

from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter
from skdcf.features import reasoning_features

split = GroupShuffleSplit(1, test_size=0.4, random_state=0)
known, new = next(split.split(data.graphs, groups=data.groups))
labels = [data.labels[i] for i in known]
model = CoherentConformalFilter(
    features=reasoning_features(), alpha=0.1, random_state=0
)
model.fit(data.graphs[known], labels, groups=data.groups[known])
print(f"{model.n_calibration_} problems calibrated")

# %%
# Filter
# ------
# ``predict`` gives one mask per answer. Here is an answer in which something false was found.

import textwrap

kept = model.predict(data.graphs[new])
truth = [data.labels[i] == 1 for i in new]


def shows_both(j):
    """How far an answer shows both: true claims kept, and false ones dropped."""
    return min((truth[j] & kept[j]).sum(), (~truth[j] & ~kept[j]).sum())


j = max(range(len(new)), key=shows_both)
shown = data.graphs[new][j]
print(textwrap.fill(shown.problem, 88), "\n")
for claim, keep in zip(shown.claims, kept[j], strict=True):
    print("kept   " if keep else "dropped", " ".join(claim.split())[:75])

# %%
# As a picture, with the verdict of the people who judged the claims:

from skdcf.plots import ReasoningGraphDisplay

drawn = ReasoningGraphDisplay.from_graph(
    shown, kept=kept[j], labels=data.labels[new[j]]
)

# %%
# What was promised, and what came out
# ------------------------------------
# The shaded band is what theory says about the coverage of one filter, calibrated on this
# many problems; it is on average that the promise holds.

from skdcf.metrics import evaluate_filter
from skdcf.plots import ReportDisplay

report = evaluate_filter(
    model,
    data.graphs[new],
    [data.labels[i] for i in new],
    alphas=[0.05, 0.1, 0.15, 0.2],
)
print(report)
display = ReportDisplay.from_report({"learnt": report})
