"""
LM-Polygraph: from uncertainty to a threshold with a promise
============================================================

LM-Polygraph estimates how uncertain a language model is of each claim. Which uncertainty is
too much? Labelled answers decide, and several estimators together decide better than one.
"""

# %%
# What the manager holds
# ----------------------
# ``manager.stats["claims"]``, ``manager.estimations`` and ``manager.gen_metrics``, in the form
# that LM-Polygraph gives them. The values are made up here, so that the page runs without
# a language model: two estimators that see different errors, and one that sees none. There,
# **higher means more uncertain**, and the fact check writes **1 for false**.

from types import SimpleNamespace

import numpy as np

from skdcf.adapters import from_lm_polygraph

rng = np.random.default_rng(0)
n, size = 3000, 6
false = rng.random((n, size)) < 0.1
planned = false & (rng.random((n, size)) < 0.5)  # errors of one kind, and of the other
noise = rng.normal(size=(3, n, size))
manager = SimpleNamespace(
    stats={
        "claims": [
            [
                SimpleNamespace(claim_text=f"Claim {j} of answer {i}.")
                for j in range(size)
            ]
            for i in range(n)
        ]
    },
    estimations={
        ("claim", "ClaimConditionedProbability"): (noise[0] + 3.5 * planned).tolist(),
        ("claim", "PTrueClaim"): (noise[1] + 3.5 * (false & ~planned)).tolist(),
        ("claim", "RandomBaseline"): noise[2].tolist(),
    },
    gen_metrics={("claim", "OpenAIFactCheck"): false.astype(int).tolist()},
)

# %%
# The adapter turns both round
# ----------------------------
# Features are minus the estimates, so that higher means more trustworthy, and label 1 means
# true, as everywhere in this package.

data = from_lm_polygraph(
    manager.stats["claims"], manager.estimations, labels=manager.gen_metrics
)
print(data.graphs)
print(data.graphs.feature_names)

# %%
# One estimator, or all
# ---------------------
# The promise is the same for every score, even for the random one. What differs is how
# many true claims are left.

from skdcf import HardCF
from skdcf.metrics import evaluate_filter
from skdcf.plots import ReportDisplay

known, y_known = data.graphs[:1500], data.labels[:1500]
new, y_new = data.graphs[1500:], data.labels[1500:]
names = ["first", "second", "random"]
scores = dict(zip(names, data.graphs.feature_names, strict=True))
scores["all, learnt"] = "neyman-pearson"
reports = {}
for name, score in scores.items():
    cf = HardCF(score, random_state=0).fit(known, y_known)
    reports[name] = evaluate_filter(cf, new, y_new, [0.05, 0.1, 0.2, 0.3])
    print(
        f"{name:<12} coverage {reports[name].coverage[1]:.3f}, "
        f"{reports[name].retention[1]:.2f} true claims kept at alpha = 0.1"
    )

# %%
display = ReportDisplay.from_report(reports)
