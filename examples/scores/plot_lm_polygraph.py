"""
Calibrate the uncertainty scores of LM-Polygraph
================================================

LM-Polygraph estimates the uncertainty of a language model about each claim. This example
calibrates a threshold on labelled answers and combines several estimators in one filter.
"""

# %%
# The output of the manager
# -------------------------
# The data have the format of ``manager.stats["claims"]``, ``manager.estimations`` and
# ``manager.gen_metrics``. The values are simulated, so the example needs no language model. Two
# estimators detect different errors, and a third estimator detects none. In LM-Polygraph,
# **higher values mean more uncertainty**, and the fact checker assigns **1 to false claims**.

from types import SimpleNamespace

import numpy as np

from skdcf.datasets import from_lm_polygraph

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
        ("claim", "ClaimConditionedProbability"): (noise[0] + 3.5 * planned)
        .ravel()
        .tolist(),
        ("claim", "PTrueClaim"): (noise[1] + 3.5 * (false & ~planned)).ravel().tolist(),
        ("claim", "RandomBaseline"): noise[2].ravel().tolist(),
    },
    gen_metrics={("claim", "OpenAIFactCheck"): false.astype(int).ravel().tolist()},
)

# %%
# The adapter reverses both
# -------------------------
# The features are the negative estimates, so higher values mean more confidence. Label 1 means
# true, as everywhere in this package.

data = from_lm_polygraph(
    manager.stats["claims"],
    manager.estimations,
    labels=manager.gen_metrics["claim", "OpenAIFactCheck"],
)
print(data.graphs)
print(data.graphs.feature_names)

# %%
# One estimator or all estimators
# -------------------------------
# The guarantee is the same for every score, even for the random one. The scores differ in the
# number of true claims kept.

from skdcf import HardCF
from skdcf.evaluation import evaluate_filter
from skdcf.plots import ReportDisplay

known, y_known = data.graphs[:1500], data.labels[:1500]
new, y_new = data.graphs[1500:], data.labels[1500:]
names = ["first", "second", "random"]
scores = dict(zip(names, data.graphs.feature_names, strict=True))
scores["all, learnt"] = "linear"
reports = {}
for name, score in scores.items():
    cf = HardCF(score, edges="none", random_state=0).fit(known, y_known)
    reports[name] = evaluate_filter(cf, new, y_new, [0.05, 0.1, 0.2, 0.3])
    print(
        f"{name:<12} coverage {reports[name].coverage[1]:.3f}, "
        f"{reports[name].retention[1]:.2f} true claims kept at alpha = 0.1"
    )

# %%
display = ReportDisplay.from_report(reports)
