"""
Reword instead of delete
========================

A filter that drops a claim may still keep a vaguer wording of it. The filtered text contains the
most specific wording that is kept.
"""

# %%
# Claims with a vaguer wording
# ----------------------------
# Each answer has four claims. The vaguer wording of a claim has a smaller risk and is usually
# true even if the claim is false. In one of fifty cases the model rewords incorrectly, and the
# vaguer wording is false even if the claim is true.

import matplotlib.pyplot as plt
import numpy as np

from skdcf import HardCF, ReasoningGraph
from skdcf.metrics import evaluate_filter

rng = np.random.default_rng(0)


def draw(n):
    """Draw answers with wordings, a label for each wording, and the truth of each claim."""
    graphs, labels, truth = [], [], []
    for i in range(n):
        risk = rng.uniform(size=4)
        true = rng.uniform(size=4) > 0.8 * risk**2
        vaguer = (true | (rng.uniform(size=4) < 0.8)) & (rng.uniform(size=4) > 0.02)
        scores = -np.stack([risk, risk * rng.uniform(0.2, 0.6, 4)], axis=1)
        words = [[f"{i}.{c}: in 1871", f"{i}.{c}: long ago"] for c in range(4)]
        graphs.append(ReasoningGraph(scores.reshape(-1, 1), (), wordings=words))
        labels.append(np.stack([true & vaguer, vaguer], axis=1).ravel().astype(int))
        truth.append(true.astype(int))
    return graphs, labels, truth


graphs, labels, truth = draw(1400)

# %%
# With and without the vaguer wordings
# ------------------------------------

alphas = [0.05, 0.1, 0.2]
plain = [graph.shown() for graph in graphs]
reports = {}
for name, X, y in (("deleted", plain, truth), ("reworded", graphs, labels)):
    cf = HardCF(0, alpha=0.1).fit(X[:400], y[:400], groups=False)
    reports[name] = evaluate_filter(cf, X[400:], y[400:], alphas, groups=False)
    print(name, "missed:", np.round(1 - reports[name].coverage, 3))
    print(name, "true statements:", np.round(reports[name].retention, 2))
print(cf.filter(graphs[403:404], alpha=0.2, output="text")[0])

# %%
# Plot
# ----
# With vaguer wordings, the filter keeps more true statements, and many of them are vaguer. Each
# claim is counted once, with the wording in the filtered text. The guarantee is the same.

before, after = reports["deleted"], reports["reworded"]
place = np.arange(len(alphas))
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.bar(place - 0.2, before.retention, 0.36, label="deleted: specific", color="0.7")
specific = after.retention - after.reworded
ax.bar(place + 0.2, specific, 0.36, label="reworded: specific")
ax.bar(place + 0.2, after.reworded, 0.36, bottom=specific, label="reworded: vaguer")
ax.set_xticks(place, [f"alpha = {alpha:g}" for alpha in alphas])
ax.set_ylabel("true statements per answer")
ax.legend(frameon=False)
