"""
Filter with labels of the first error
=====================================

Data sets for process reward models label the first wrong step of a solution and none of the later
steps. These labels are sufficient for a filter of chains of steps. The filter keeps the steps
before the first doubtful step.
"""

# %%
# The generated solutions have a known position of the first error, or -1 if there is none. You
# can also run this example with ``data = fetch_process_bench("gsm8k")``, which downloads answers
# of language models with the first error marked by people.

import numpy as np

from skdcf.datasets import make_word_problems

data = make_word_problems(400, random_state=0)
graphs = data.graphs

# %%
# Labels after the first error have no effect on calibration, because a later step is kept only if
# all earlier steps are kept. In this example, they are unknown (-1).

from skdcf.datasets import labels_from_first_error

first = [
    int(np.argmax(labels != 1)) if (labels != 1).any() else -1 for labels in data.labels
]
labels = [
    labels_from_first_error(graph.n_claims, error)
    for graph, error in zip(graphs, first, strict=True)
]
print(labels[int(np.argmax(np.array(first) >= 2))])

# %%
# Half of the questions are used for training and calibration, and the other half is filtered.
# With ``edges=chain_edges``, the filter computes the edges of each answer, so each step depends
# on the steps before it.

from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter
from skdcf.edges import chain_edges

split = GroupShuffleSplit(1, test_size=0.5, random_state=0)
known, new = next(split.split(graphs, groups=data.groups))
cf = CoherentConformalFilter(edges=chain_edges, random_state=0)
cf = cf.fit(graphs[known], [labels[i] for i in known], data.groups[known])

# %%
# The table shows the coverage and the number of true steps kept at each level:

from skdcf.evaluation import coverage_score, retention_score

truth = [labels[i] for i in new]
alphas = np.array([0.02, 0.05, 0.1, 0.2, 0.3])
masks = [cf.predict(graphs[new], alpha=alpha) for alpha in alphas]
for alpha, kept in zip(alphas, masks, strict=True):
    print(
        f"alpha = {alpha:4.2f}: coverage {coverage_score(truth, kept):.3f}, "
        f"{retention_score(truth, kept):.2f} true steps are kept, "
        f"{np.mean([mask.any() for mask in kept]):.0%} of the answers are shown"
    )

# %%
# Each bar is a solution with an error. Blue steps are kept, and grey steps are dropped. The cross
# marks the first error. A cross on blue is a kept false step, which occurs in at most a share
# alpha of all solutions.

import matplotlib.pyplot as plt

wrong = [j for j, i in enumerate(new) if first[i] >= 0][:60]
wrong.sort(key=lambda j: (first[new[j]], masks[2][j].sum()))
stop = [masks[2][j].sum() for j in wrong]
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
place = np.arange(len(wrong))
ax.bar(place, [len(masks[2][j]) for j in wrong], color="0.85", label="dropped")
ax.bar(place, stop, color="C0", label="kept")
error = np.array([first[new[j]] for j in wrong]) + 0.5
ax.plot(place, error, "x", color="C3", ms=5, label="first error")
ax.set(xlabel="solutions with an error (alpha = 0.1)", ylabel="step", xticks=[])
ax.set_ylim(top=max(len(masks[2][j]) for j in wrong) + 1)
ax.legend(frameon=False, ncols=3, loc="upper left")
