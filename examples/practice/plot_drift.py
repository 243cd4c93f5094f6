"""
Monitors detect a loss of coverage
==================================

After the calibration of a filter, the language model changes. One monitor uses labels of the
filtered answers, and another monitor uses only path risks. Recalibration on the latest judged
problems restores the coverage.
"""

# %%
# A stream with a change
# ----------------------
# The first 600 problems have the distribution of the calibration problems. After that, some of
# the true claims become false, and the features barely change.

import matplotlib.pyplot as plt
import numpy as np

from skdcf import HardCF
from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(2700, random_state=0, return_X_y=True)
cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:500], labels[:500])

rng = np.random.default_rng(0)
stream, truth = graphs[500:], list(labels[500:])
change = 600
for i in range(change, len(truth)):
    truth[i] = np.where(rng.random(len(truth[i])) < 0.1, 0, truth[i])
features = stream.features.copy()
late = stream.problem_of >= change
features[late, 0] -= rng.random(late.sum()) * features[late, 0] * 0.3
stream = stream.replace_features(features, stream.feature_names)

# %%
# Two monitors
# ------------
# One monitor bets against the guarantee, and the other against an unchanged distribution. If what a
# monitor bets against is true, its wealth ever reaches ``1 / delta = 20`` with a probability of at
# most 5 %, for streams of any length.

from skdcf.monitoring import CoverageMonitor, ExchangeabilityTest

monitor = CoverageMonitor(delta=0.05).fit(cf)
test = ExchangeabilityTest(delta=0.05, random_state=0).fit(cf)
for start in range(0, len(truth), 100):
    now = slice(start, start + 100)
    monitor.update(stream[now], truth[now])
    test.update(stream[now])
print("labels:     alarm after problem", monitor.alarm_at)
print("path risks: alarm after problem", test.alarm_at)
assert change < monitor.alarm_at < change + 700
assert change < test.alarm_at < change + 700

# %%
# Recalibration
# -------------
# A copy of the filter is calibrated on the latest 400 judged problems. Each problem is filtered
# with a threshold computed from earlier problems.

from copy import deepcopy


def errors_of(labels, kept):
    """Return whether a false claim was kept in each problem."""
    return [(mask & (row != 1)).any() for row, mask in zip(labels, kept, strict=True)]


recalibrated = deepcopy(cf)
wrong = {"as calibrated": [], "recalibrated": []}
for start in range(0, len(truth), 50):
    now = slice(start, start + 50)
    wrong["as calibrated"].append(errors_of(truth[now], cf.predict(stream[now])))
    kept = recalibrated.predict(stream[now])
    wrong["recalibrated"].append(errors_of(truth[now], kept))
    if now.stop >= 200:
        latest = slice(max(0, now.stop - 400), now.stop)
        recalibrated.calibrate(stream[latest], truth[latest])
wrong = {name: np.concatenate(rows) for name, rows in wrong.items()}
last = {name: 1 - rows[-600:].mean() for name, rows in wrong.items()}
print({name: round(float(value), 3) for name, value in last.items()})
assert last["as calibrated"] < 0.85 < 0.87 < last["recalibrated"]

# %%
# Plot
# ----

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.4, 5), sharex=True, layout="constrained"
)
for name, rows in wrong.items():
    mean = np.convolve(1 - rows, np.full(200, 1 / 200), mode="valid")
    top.plot(np.arange(200, len(rows) + 1), mean, label=name)
top.axhline(0.9, color="k", ls="--", lw=1, label="guaranteed")
top.set(ylabel="coverage, last 200", ylim=(0.5, 1))
top.legend(frameon=False, ncols=3, loc="lower left")
bottom.plot(monitor.log_wealth_ / np.log(10), label="CoverageMonitor")
bottom.plot(test.log_wealth_ / np.log(10), label="ExchangeabilityTest")
bottom.axhline(np.log10(20), color="k", ls="--", lw=1, label="alarm")
bottom.set(xlabel="problems in use", ylabel="wealth, log10", ylim=(-1, 8))
bottom.legend(frameon=False)
for ax in (top, bottom):
    ax.axvline(change, color="0.6", lw=1)
