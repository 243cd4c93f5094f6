"""
A table of claims in pandas
===========================

After this example you can filter a pandas table that has one row per claim: read it, fit a filter
on the judged answers, and write the decisions back into the table.
"""

# %%
# The table
# ---------
# Each row is a claim. ``answer`` identifies the answer to which it belongs. ``score`` is the
# confidence of a verifier, and ``label`` is 1 for a true claim and 0 for a false one.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n_answers, n_claims = 200, 5
table = pd.DataFrame(
    {
        "answer": np.repeat([f"answer {i}" for i in range(n_answers)], n_claims),
        "text": [f"step {v} of {i}" for i in range(n_answers) for v in range(n_claims)],
        "label": (rng.random(n_answers * n_claims) < 0.9).astype(int),
    }
)
table["score"] = rng.normal(table["label"] * 2.5, 1).round(2)
table.head(n_claims)

# %%
# Fit a filter
# ------------
# `~skdcf.datasets.from_frame` returns one graph and one array of labels per answer. The filter
# uses the column ``score`` as it is, so no answers are held out for training.
# A table has no edges, so the filter computes them: each claim depends on the claim before it.

from skdcf import HardCF
from skdcf.datasets import from_frame
from skdcf.edges import chain_edges

data = from_frame(
    table, claim="text", label="label", answer="answer", features=["score"]
)
cf = HardCF("score", alpha=0.1, edges=chain_edges).fit(
    data.graphs[:150], data.labels[:150]
)

# %%
# Write the decisions into the table
# ----------------------------------
# ``predict`` returns a mask per answer, in the order of the rows. ``predict_alpha`` returns the
# smallest level at which each claim is kept.

new = table.iloc[150 * n_claims :].copy()
new["kept"] = np.concatenate(cf.predict(data.graphs[150:]))
new["alpha"] = np.concatenate(cf.predict_alpha(data.graphs[150:])).round(3)
new.head(2 * n_claims)

# %%
# Check the guarantee
# -------------------
# An answer is covered if none of its false claims is kept. The coverage can be computed directly
# with pandas. `~skdcf.evaluation.evaluate_filter` also computes intervals.

wrong = new["kept"] & (new["label"] == 0)
coverage = 1 - wrong.groupby(new["answer"]).any().mean()
print(f"{coverage:.0%} of the filtered answers contain no false claim")
print(f"{new['kept'].mean():.0%} of the claims are kept")

# %%
# A true claim can be dropped because it depends on a dropped claim. This share of the dropped
# true claims has scores above the threshold:

dropped = new[~new["kept"] & (new["label"] == 1)]
print(f"{(dropped['score'] > -cf.threshold_).mean():.0%}")
