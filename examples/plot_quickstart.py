"""
A filter in five lines
======================

Claims with a score and a dependency graph go in; the claims that may stay come out, and
with probability at least 90 % none of them is false.
"""

# %%
# Data
# ----
# A problem is a `ReasoningGraph`: one row of features per claim, and edges from a claim
# to those that build on it. Here is one by hand.

from skdcf import ReasoningGraph

answer = ReasoningGraph(
    features=[[5.0], [5.0], [2.0], [4.0]],
    edges=[(0, 1), (1, 2), (0, 3)],
    claims=["x + 2 = 5", "x = 3", "x squared is 6", "2x + 4 = 10"],
    feature_names=["frequency-score"],
)
answer

# %%
# A thousand more, generated so that they resemble answers to competition problems.
# Labels say which claims are true.

from skdcf.datasets import make_reasoning_graphs

data = make_reasoning_graphs(1000, kind="math", random_state=0)
graphs, labels = data.graphs, data.labels
print(graphs)

# %%
# Calibrate and filter
# --------------------
# `HardCF` needs labelled problems to find its threshold. Its scorer here is the
# self-consistency frequency, which has nothing to learn, so all of them calibrate.

from skdcf import HardCF

cf = HardCF("frequency-score", alpha=0.1, ties="jitter", random_state=0)
cf.fit(graphs[:500], labels[:500])
kept = cf.predict(graphs[500:])
print(kept[0])

# %%
# What was promised and what came out
# -----------------------------------
# One report per alpha, from the same fitted filter.

from skdcf.metrics import evaluate_filter

alphas = [0.02, 0.05, 0.1, 0.15, 0.2]
report = evaluate_filter(cf, graphs[500:], labels[500:], alphas)
print(report)

# %%
# A classifier that sees all features keeps far more true claims at the same promise. It
# is trained on part of the problems, and calibrated on the rest.

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf.plots import FilterReportDisplay

classifier = make_pipeline(StandardScaler(), LogisticRegression())
learned = HardCF(classifier, alpha=0.1, random_state=0)
learned.fit(graphs[:500], labels[:500])
reports = {
    "frequency": report,
    "logistic regression": evaluate_filter(learned, graphs[500:], labels[500:], alphas),
}
FilterReportDisplay.from_reports(reports)

# %%
# One problem
# -----------
# Green claims are kept, grey ones dropped; a red border marks those that are false.

import numpy as np

from skdcf.plots import ReasoningGraphDisplay

masks = learned.predict(graphs[500:])
partly = [
    i
    for i, (mask, y) in enumerate(zip(masks, labels[500:], strict=True))
    if 0 < mask.sum() < len(mask) and not np.all(y) and len(mask) > 6
]
shown = graphs[500:][partly[0]]
display = ReasoningGraphDisplay.from_graph(
    shown, kept=masks[partly[0]], labels=labels[500 + partly[0]]
)
