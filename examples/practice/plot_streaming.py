"""
Decisions while an answer is written
====================================

If users read an answer while a model writes it, each claim must be kept or dropped before the
next one arrives. With ``online=True``, the risk of a claim is computed from this claim and the
preceding ones, in calibration and in use, so the guarantee remains exact.
"""

# %%
# An online filter
# ----------------
# The agreement of a claim with other answers does not depend on later claims. Columns that depend
# on later claims, such as the number of its children, are computed from the claims so far.

import matplotlib.pyplot as plt
import numpy as np

from skdcf import HardCF
from skdcf.datasets import make_word_problems
from skdcf.evaluation import coverage_score, retention_score
from skdcf.features import reasoning_features

graphs, labels = make_word_problems(700, random_state=3, return_X_y=True)
online = HardCF(features=reasoning_features(), online=True, random_state=0)
online.fit(graphs[:400], labels[:400])


def written(graph):
    """Yield the claims of an answer in order, as a model would write them."""
    for v, text in enumerate(graph.claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
        columns = {} if graph.features is None else {"features": graph.features[v]}
        yield {"text": text, "parents": parents, **columns}


# %%
# Decisions during generation
# ---------------------------
# ``stream`` yields the decision about a claim before it reads the next one. A claim that depends
# on a dropped claim is dropped immediately.

masks = online.predict(graphs[400:])
shown = next(i for i, mask in enumerate(masks) if 1 < mask.sum() < len(mask))
graph = graphs[400 + shown]
about = {"problem": graph.problem, "alternatives": graph.alternatives}
decisions = online.stream(written(graph), feature_names=graph.feature_names, **about)
streamed = []
for text, keep in zip(graph.claims, decisions, strict=True):
    print("keep" if keep else "drop", "|", text)
    streamed.append(keep)
assert streamed == masks[shown].tolist()

# %%
# The loss of true claims
# -----------------------
# A filter of whole answers has more evidence about each claim. Both filters have the guaranteed
# coverage.

whole = HardCF(features=reasoning_features(), random_state=0)
whole.fit(graphs[:400], labels[:400])
filters = {"whole answers": whole, "while written": online}
alphas, truth = [0.02, 0.05, 0.1, 0.2], labels[400:]
kept = {name: [] for name in filters}
for alpha in alphas:
    for name, cf in filters.items():
        mask = cf.predict(graphs[400:], alpha)
        kept[name].append(retention_score(truth, mask))
        assert coverage_score(truth, mask) > 1 - alpha - 0.09
for name, numbers in kept.items():
    print(f"{name:14s}", *(f"{number:5.2f}" for number in numbers))

# %%
# Plot
# ----
# The left panel shows the path risk of each claim of the answer, in the order of arrival. The
# right panel shows the number of true claims kept per answer.

fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
risk = online.path_risk([graph])[0]
colours = np.where(masks[shown], "C0", "C3")
left.scatter(np.arange(1, len(risk) + 1), risk, c=colours, zorder=2)
left.step(np.arange(1, len(risk) + 1), risk, where="post", color="0.7", lw=1)
left.axhline(online.threshold(), color="k", ls="--", lw=1)
left.set(xlabel="claim", ylabel="path risk", title="kept below the threshold")
for k, (name, numbers) in enumerate(kept.items()):
    right.bar(np.arange(4) + 0.38 * k - 0.19, numbers, 0.36, label=name)
right.set(xlabel="alpha", ylabel="true claims kept", xticks=range(4))
right.set_xticklabels(alphas)
right.legend(frameon=False)
