"""
Twenty-five labels
==================

A filter splits its labels into those for training and those for calibration. At alpha = 0.05,
calibration needs at least 19 answers, so 25 labels are too few for both. With
``calibration_size="all"``, most labels are used twice. The guarantee is the same, but the scorer is
fitted again for each new answer, which takes 1 to 10 ms.
"""

# %%
# Labels for 25 answers
# ---------------------
# The steps of each solution form a chain, because each step may depend on all earlier ones. For
# filters that use all labels, every claim but the first must have a parent.

from skdcf import CoherentConformalFilter
from skdcf.datasets import make_word_problems
from skdcf.edges import chain_edges

graphs, labels = make_word_problems(400, random_state=0, return_X_y=True)
split = CoherentConformalFilter(alpha=0.05, edges=chain_edges, random_state=0)
split.fit(graphs[:25], labels[:25])
print(split.describe())

# %%
# All 25 answers are used to train the scorer, and 19 of them are also used for calibration, because
# more would not raise the rank of the threshold.

every = CoherentConformalFilter(alpha=0.05, edges=chain_edges, calibration_size="all")
print(every.fit(graphs[:25], labels[:25]).describe())

# %%
# Ten sets of labels
# ------------------
# The guarantee is a mean over sets of labels. With few labels, the coverage varies widely between
# the sets: for a single set, it may well be below 0.95. It is measured on 100 other answers.

import matplotlib.pyplot as plt

from skdcf.evaluation import evaluate_filter

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.axvline(0.95, color="grey", linestyle="--", label="1 - alpha")
for i in range(10):
    rows = slice(25 * i, 25 * i + 25)
    every.fit(graphs[rows], labels[rows])
    report = evaluate_filter(every, graphs[300:], labels[300:], [0.05])
    ax.plot(report.coverage, report.shown, "o", color="C0")
ax.set(xlabel="coverage", ylabel="share of answers shown", ylim=(0, 1))
ax.legend()

# %%
# With fewer than 32 labels, the filter that splits its labels shows no answer.
