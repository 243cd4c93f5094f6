"""
Pipelines that filter and explain
=================================

A pipeline of scikit-learn hands on ``fit`` and ``predict``, and no more. One that ends in a
filter should also filter, say at which alpha a claim is kept, and explain itself.
"""

# %%
# Made as one
# -----------
# `~skdcf.pipeline.make_filter_pipeline` is `~sklearn.pipeline.make_pipeline` for filters. The
# first step computes columns from texts and edges, the last one calibrates.

from skdcf import HardCF
from skdcf.datasets import make_word_problems
from skdcf.features import reasoning_features
from skdcf.pipeline import FilterPipeline, make_filter_pipeline

X, y = make_word_problems(600, random_state=0, return_X_y=True)
known, new = X[:400], X[400:]
pipe = make_filter_pipeline(
    reasoning_features(), HardCF("neyman-pearson", alpha=0.1, random_state=0)
)
pipe.fit(known, y[:400])

# %%
# Texts, levels, reasons
# ----------------------
# ``filter`` gives what is left of answers, ``predict_alpha`` the level from which on each
# claim is kept, and ``explain`` the reason why a claim went.

print(pipe.filter(new[:1], output="text")[0])

# %%

for text, alpha in zip(new[0].claims, pipe.predict_alpha(new[:1])[0], strict=True):
    print(f"{alpha:.3f}  {text}")

# %%

explained = pipe.explain(new, y[400:])
some = max(explained, key=lambda e: min(e.kept.sum(), (~e.kept).sum()))
some

# %%
# A search as a pipeline
# ----------------------
# `~skdcf.evaluation.fit_search` chooses settings and calibrates on problems that the search
# never saw. ``FilterPipeline.of`` gives what comes out of it the same methods; nothing is
# fitted again. So it does for a pipeline that `~sklearn.pipeline.make_pipeline` made.

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

plain = make_pipeline(
    reasoning_features(), HardCF(LogisticRegression(max_iter=5000), random_state=0)
)
other = FilterPipeline.of(plain.fit(known, y[:400]))
print(other.explain(new[0]))

# %%
# Side by side
# ------------
# Each claim of the new answers has a smallest alpha at which it is kept: the further left
# the true ones are, the better. A share alpha of the answers may keep false claims; where
# errors build on each other, these few hold many of them.

import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
truth = np.concatenate(y[400:]) == 1
levels = np.linspace(0.01, 0.5, 50)
both = {"Neyman-Pearson": pipe, "logistic regression": other}
for ax, (name, model) in zip(axes, both.items(), strict=True):
    alphas = np.concatenate(model.predict_alpha(new))
    for kind, rows, style in (("true", truth, "C2-"), ("false", ~truth, "C1--")):
        share = [(alphas[rows] <= level).mean() for level in levels]
        ax.plot(levels, share, style, label=f"{kind} claims")
    ax.set(title=name, xlabel="alpha", xlim=(0, 0.5), ylim=(-0.02, 1.02))
axes[0].set_ylabel("share of the claims that is kept")
axes[0].legend(loc="lower right")
