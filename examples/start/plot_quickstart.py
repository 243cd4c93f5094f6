"""
Quick start
===========

This example fits a filter on answers that are split into claims. At least 90 % of the filtered
answers contain no false claim.
"""

# %%
# Answers
# -------
# A problem is a `~skdcf.ReasoningGraph` with the claims of one answer, and with edges from each
# claim to the claims that depend on it. This graph is written by hand:

from skdcf import ReasoningGraph

answer = ReasoningGraph.from_parents(
    [[], [0], [1]],
    claims=["x + 2 = 5", "so x = 3", "so x squared is 6"],
    problem="Solve x + 2 = 5 and square the solution.",
)
answer

# %%
# A filter needs answers with labelled claims. This example generates them. You can also run it
# with ``data = fetch_felm()`` from the same module, which downloads answers of a language model
# that people judged.

from skdcf.datasets import make_word_problems

data = make_word_problems(600, random_state=0)
print(data.graphs)

# %%
# Fit
# ---
# `~skdcf.features.reasoning_features` computes columns from the question, the claims and the
# edges. The filter trains a score on some of the problems and calibrates on others. Problems with
# the same question form a group and are used either for training or for calibration.

from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter

split = GroupShuffleSplit(1, test_size=0.4, random_state=0)
known, new = next(split.split(data.graphs, groups=data.groups))
labels = [data.labels[i] for i in known]
model = CoherentConformalFilter(alpha=0.1, random_state=0)
model.fit(data.graphs[known], labels, groups=data.groups[known])
print(f"{model.n_calibration_} calibration problems")

# %%
# Filter
# ------
# ``predict`` returns one mask per answer. In this answer, the filter drops false claims:

import textwrap

kept = model.predict(data.graphs[new])
truth = [data.labels[i] == 1 for i in new]


def shows_both(j):
    """Return the smaller of the numbers of kept true and dropped false claims."""
    return min((truth[j] & kept[j]).sum(), (~truth[j] & ~kept[j]).sum())


j = max(range(len(new)), key=shows_both)
shown = data.graphs[new][j]
print(textwrap.fill(shown.problem, 88), "\n")
for claim, keep in zip(shown.claims, kept[j], strict=True):
    print("kept   " if keep else "dropped", " ".join(claim.split())[:75])

# %%
# The plot also shows the labels of the claims:

from skdcf.plots import ReasoningGraphDisplay

drawn = ReasoningGraphDisplay.from_graph(
    shown, kept=kept[j], labels=data.labels[new[j]]
)

# %%
# Guaranteed and observed coverage
# --------------------------------
# The guarantee is an average over filters. The shaded band is the range expected by theory for
# the coverage of a single filter with this number of calibration problems.

from skdcf.evaluation import evaluate_filter
from skdcf.plots import ReportDisplay

report = evaluate_filter(
    model,
    data.graphs[new],
    [data.labels[i] for i in new],
    alphas=[0.05, 0.1, 0.15, 0.2],
)
print(report)
display = ReportDisplay.from_report({"learnt": report})
