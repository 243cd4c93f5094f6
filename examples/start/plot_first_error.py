"""
Where the first error is: clean prefixes
========================================

Data for process-reward models say where the first wrong step of a solution is, and nothing
about what comes after it. In a chain of steps that is all a filter needs. What it keeps of
a solution is its beginning: the steps before the first doubtful one.
"""

# %%
# Solutions with the position of their first error; -1 says that there is none. These are
# generated; ``data = fetch_process_bench("gsm8k")`` downloads answers of language models in
# which people marked the first error, and the rest of the page runs on them as it stands.

import numpy as np

from skdcf.datasets import make_word_problems

data = make_word_problems(400, random_state=0)
graphs = data.graphs

# %%
# Labels after the first error do not matter: a later step is kept only if all earlier ones
# are. They are unknown, -1, here.

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
# Half of the questions train and calibrate, the other half is filtered. The filter makes the
# chain itself, here and in all later calls: each step builds on the one before it.

from sklearn.model_selection import GroupShuffleSplit

from skdcf import CoherentConformalFilter
from skdcf.edges import chain_edges
from skdcf.features import reasoning_features

split = GroupShuffleSplit(1, test_size=0.5, random_state=0)
known, new = next(split.split(graphs, groups=data.groups))
cf = CoherentConformalFilter(
    features=reasoning_features(), edges=chain_edges, random_state=0
)
cf = cf.fit(graphs[known], [labels[i] for i in known], data.groups[known])

# %%
# How long are the beginnings that are kept, and how often is one free of false steps?

from skdcf.metrics import coverage_score, retention_score

truth = [labels[i] for i in new]
alphas = np.array([0.02, 0.05, 0.1, 0.2, 0.3])
masks = [cf.predict(graphs[new], alpha=alpha) for alpha in alphas]
for alpha, kept in zip(alphas, masks, strict=True):
    print(
        f"alpha = {alpha:4.2f}: coverage {coverage_score(truth, kept):.3f}, "
        f"{retention_score(truth, kept):.2f} true steps are kept, "
        f"{np.mean([mask.any() for mask in kept]):.0%} of the answers keep something"
    )

# %%
# Each column below is one solution with an error, cut where the filter stops: blue steps
# are kept, grey ones dropped, and the mark is the first error. A mark on blue is a false
# step that was kept; that happens to at most the share alpha of all solutions.

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
