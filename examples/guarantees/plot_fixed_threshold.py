"""
Calibrated and fixed thresholds
===============================

Tools that score claims often drop claims with a score below a fixed threshold, such as 1/3. The
share of answers with remaining false claims is then unknown and differs between kinds of answers.
A calibrated threshold controls this share.
"""

# %%
# Two kinds of answers
# --------------------
# The scores have the format of UQLM. The score of a claim is the share of sampled answers that
# entail it. For the second kind of question, false claims have higher scores.

from types import SimpleNamespace

import numpy as np

from skdcf.datasets import from_uqlm

rng = np.random.default_rng(0)


def draw_answers(n, sureness_when_wrong):
    """Return results in the format of UQLM, and labels."""
    rows, labels = [], []
    for _ in range(n):
        true = rng.random(6) < 0.88
        chance = np.where(true, 0.75, sureness_when_wrong)
        share = rng.binomial(10, rng.beta(8 * chance, 8 * (1 - chance))) / 10
        rows.append(
            [{"claim": f"claim of {len(rows)}", "entailment": s} for s in share]
        )
        labels.append(true.astype(int))
    prompts = [f"question {i}" for i in range(n)]
    result = SimpleNamespace(data={"prompts": prompts, "claims_data": rows})
    return from_uqlm(result, labels=labels)


kinds = {
    "easy to tell": draw_answers(800, 0.1),
    "hard to tell": draw_answers(800, 0.45),
}

# %%
# The fixed threshold
# -------------------
# Half of the answers of each kind are used for calibration, and the other half for testing.

from skdcf import HardCF
from skdcf.evaluation import coverage_score, retention_score

alphas = [0.05, 0.1, 0.2, 0.3]
fixed, calibrated = {}, {}
for name, data in kinds.items():
    new, truth = data.graphs[400:], data.labels[400:]
    kept = new.split(new.features[:, 0] > 1 / 3)
    fixed[name] = coverage_score(truth, kept), retention_score(truth, kept)
    cf = HardCF("entailment", edges="none", ties="jitter", random_state=0)
    cf.fit(data.graphs[:400], data.labels[:400])
    masks = [cf.predict(new, alpha=alpha) for alpha in alphas]
    calibrated[name] = [
        (coverage_score(truth, kept), retention_score(truth, kept)) for kept in masks
    ]
    print(
        f"{name}: a false claim scores above 1/3 in {1 - fixed[name][0]:.0%} of the answers"
    )

# %%
# The calibrated threshold
# ------------------------
# You choose the largest accepted share of answers with a kept false claim. The number of kept
# claims then depends on the score.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for color, name in zip(("C0", "C1"), kinds, strict=True):
    coverage, retention = zip(*calibrated[name], strict=True)
    ax.plot(retention, coverage, "o-", color=color, label=f"calibrated, {name}")
    for alpha, x, y in zip(alphas, retention, coverage, strict=True):
        ax.annotate(
            f"{alpha:g}", (x, y), (4, 5), textcoords="offset points", color=color
        )
    ax.plot(*fixed[name][::-1], "X", ms=10, color=color, label=f"above 1/3, {name}")
ax.set(xlabel="true claims kept per answer", ylabel="answers without a false claim")
ax.margins(0.1)
ax.legend(frameon=False, loc="lower left")
ax.set_title("Numbers are values of alpha", fontsize=10)
