"""
Stop an agent at its first doubtful step
========================================

A filter stops an agent before a step that may be wrong and asks a person. The guarantee is that
no step that was carried out before the stop is wrong, with a chosen probability.
"""

# %%
# Recorded runs
# -------------
# The runs consist of chat messages. This simulated agent books rooms. Calls with more guests are
# wrong more often. People judged every message of the agent.

import json

import matplotlib.pyplot as plt
import numpy as np

from skdcf import CoherentConformalFilter
from skdcf.datasets import from_messages

rng = np.random.default_rng(0)


def record(task):
    """Return a run of one to six bookings, with one label for each step."""
    messages = [{"role": "user", "content": f"Book rooms for party {task}."}]
    labels = []
    for number in range(rng.integers(1, 7)):
        guests = [f"guest {k}" for k in range(rng.integers(1, 20))]
        function = {"name": "book", "arguments": json.dumps({"guests": guests})}
        labels.append(int(rng.random() > (len(guests) / 25) ** 2))
        calls = [{"id": f"{number}", "function": function}]
        messages += [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"{number}", "content": "booked"},
        ]
    return {"task": task, "messages": messages, "labels": labels}


data = from_messages([record(task) for task in range(600)])
print(data.graphs[0].claims[0][:60], "...")

# %%
# An online filter
# ----------------
# With ``online=True``, the risk of a step is computed from this step and the preceding ones.

cf = CoherentConformalFilter(online=True, alpha=0.1, random_state=0)
cf.fit(data.graphs[:300], data.labels[:300])
print(cf.describe())

# %%
# The agent runs
# --------------
# ``stream`` reads one step at a time and yields True if the step may be carried out. It ends
# after the first step that may not.


def agent(run):
    """Yield the steps that the agent proposes in a run."""
    for v, (text, row) in enumerate(zip(run.claims, run.features, strict=True)):
        yield {"text": text, "features": row, "parents": [v - 1] if v else []}


carried_out, wrong, stopped = [], 0, 0
for run, labels in zip(data.graphs[300:], data.labels[300:], strict=True):
    about = {"problem": run.problem, "feature_names": run.feature_names}
    decisions = list(cf.stream(agent(run), stop=True, **about))
    carried_out.append(sum(decisions))
    stopped += not all(decisions)
    wrong += any(labels[v] == 0 for v, keep in enumerate(decisions) if keep)
print(f"{stopped} of 300 runs were stopped, and {wrong} executed a wrong step")
assert wrong < 300 * (0.1 + 0.096)  # 3 standard deviations over calibration sets

# %%
# Approval or correction by a person
# ----------------------------------
# If the person approves the step unchanged, the agent continues, and the person must approve
# every later step as well, because the filter makes no statement about them. If the person
# corrects the step, a new segment begins. The expected number of segments with a wrong step is at
# most alpha times the number of segments.

# %%
# Plot
# ----
# The left panel shows a run with its stop. The right panel shows the number of executed steps at
# each level.

masks = cf.predict(data.graphs[300:])
shown = next(i for i, mask in enumerate(masks) if 2 <= mask.sum() < len(mask) - 1)
risk = cf.path_risk([data.graphs[300 + shown]])[0]
kept = int(masks[shown].sum())
step = np.arange(1, len(risk) + 1)
fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
left.plot(step[:kept], risk[:kept], "o", color="C0", label="carried out")
left.plot(step[kept], risk[kept], "s", color="C3", label="stop")
left.plot(step[kept + 1 :], risk[kept + 1 :], "o", color="0.8", label="never proposed")
left.axhline(cf.threshold(), color="k", ls="--", lw=1)
left.set(xlabel="step", ylabel="path risk", xticks=step)
left.legend(frameon=False)
levels = [0.02, 0.05, 0.1, 0.2, 0.3]
means = [np.mean([m.sum() for m in cf.predict(data.graphs[300:], a)]) for a in levels]
right.plot(levels, means, "o-", color="C0")
right.axhline(np.mean(np.diff(data.graphs[300:].offsets)), color="0.6", lw=1)
right.set(xlabel="alpha", ylabel="steps carried out per run", ylim=(0, None))
