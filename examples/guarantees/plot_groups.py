"""
A guarantee for every group
===========================

With a single threshold, the coverage is guaranteed on average over all answers. It can be too low
for one kind of question and too high for another. With ``NoFalseClaim(by=...)``, the coverage is
guaranteed within every group.
"""

# %%
# Two kinds of answers
# --------------------
# The generated answers are long or short. The score separates true from false claims better in
# one of the two groups, and a single threshold depends only on their mixture.

import numpy as np

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import evaluate_filter
from skdcf.guarantees import NoFalseClaim

graphs, labels = make_reasoning_graphs(10_000, random_state=0, return_X_y=True)
middle = np.median(np.diff(graphs.offsets))


def kind(problems):
    """Return the group of each answer, which does not depend on labels."""
    return np.where(np.diff(problems.offsets) > middle, "long", "short").tolist()


known, y_known, new, y_new = graphs[:3000], labels[:3000], graphs[3000:], labels[3000:]
names, counts = np.unique(kind(graphs), return_counts=True)
print(dict(zip(names.tolist(), counts.tolist(), strict=True)))

# %%
# One threshold, and one per group
# --------------------------------

filters = {
    "one threshold": HardCF("frequency-score", ties="jitter", random_state=0),
    "by group": HardCF(
        "frequency-score",
        ties="jitter",
        guarantee=NoFalseClaim(by=kind),
        random_state=0,
    ),
}
kinds = np.array(kind(new))
reports = {}
for name, cf in filters.items():
    cf.fit(known, y_known)
    whole = evaluate_filter(cf, new, y_new, [0.1])
    print(f"\n{name}: coverage {whole.coverage[0]:.3f} over all answers")
    for own in sorted(names):
        rows = np.flatnonzero(kinds == own)
        labels_of_group = [y_new[i] for i in rows]
        reports[name, own] = evaluate_filter(cf, new[rows], labels_of_group, [0.1])
        print(reports[name, own])

# %%
# Over all answers, both filters have the guaranteed coverage. Within each group, only the second
# filter does. It keeps fewer claims in one group and more in the other.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for row, name in enumerate(filters):
    for place, own in enumerate(sorted(names)):
        [part] = reports[name, own].rows
        x, mark = place + 0.12 * (2 * row - 1), "os"[row]
        low, high = part["coverage_interval_low"], part["coverage_interval_high"]
        axes[0].plot([x, x], [low, high], color=f"C{row}")
        first = {"label": name} if place == 0 else {}
        axes[0].plot(x, part["coverage"], mark, color=f"C{row}", **first)
        axes[1].plot(x, part["retention"], mark, color=f"C{row}")
axes[0].axhline(0.9, color="k", ls="--", lw=1)
axes[0].set_ylabel("coverage (guaranteed: 0.9)")
axes[1].set_ylabel("true claims kept per answer")
axes[0].legend()
for ax in axes:
    ax.set(xticks=[0, 1], xticklabels=sorted(names), xlim=(-0.5, 1.5))

# %%
# Each group is calibrated separately. At alpha = 0.1, each group needs at least 9 labelled
# answers. With fewer answers, the filter keeps no claim in this group.
# If a tenth of the answers are long, about 90 labelled answers are needed in all.

print(NoFalseClaim().problems_needed(0.1))
