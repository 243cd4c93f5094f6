"""Choose one of five runs, then filter it: what calibrates has to be chosen by the same rule.

    python benchmarks/chosen.py [splits]

It prints benchmarks/results/chosen.txt. AgentProcessBench, hotpotqa: 50 tasks with five runs
each, whose steps people judged, with the verdicts of two models and the agreement of the runs
as columns. In each split 20 tasks train a regression, 20 calibrate with one run each, and of
each of the other 10 one run is filtered. "sampled" is a run drawn at random, "best" the one
that looks best of five: its largest risk of a step is the smallest. No label enters the rule.
"kept whole" is the share of the runs of which every step is kept. Errors are naive ones over
the splits.
"""

import sys
import warnings

import numpy as np

from skdcf import HardCF
from skdcf.datasets import fetch_agent_process_bench
from skdcf.exceptions import CalibrationWarning, SettingWarning

TWO = ("kimi-k2.5", "deepseek-v3.2")
WAYS = (("sampled", "sampled"), ("sampled", "best"), ("best", "best"))


def choose(rule, filter, data, tasks, rng):
    """One run of each task, by a rule that knows no label."""
    rows = []
    for task in tasks:
        runs = np.flatnonzero(data.groups == task)
        if rule == "sampled":
            rows.append(int(rng.choice(runs)))
            continue
        largest = [
            risk.max(initial=-np.inf) for risk in filter.path_risk(data.graphs[runs])
        ]
        rows.append(int(runs[np.argmin(largest)]))
    return rows


def measure(data, alpha, seed):
    """For each way: share of runs with a wrong step, kept whole, and good steps kept."""
    rng = np.random.default_rng(seed)
    tasks = rng.permutation(np.unique(data.groups))
    train, calibrate, test = np.split(tasks, [20, 40])
    rows = np.flatnonzero(np.isin(data.groups, train))
    filter = HardCF(alpha=alpha, calibration_size=5, random_state=seed).fit(
        data.graphs[rows], [data.labels[i] for i in rows]
    )
    values = []
    for rule_calibrated, rule_used in WAYS:
        chosen = choose(rule_calibrated, filter, data, calibrate, rng)
        filter.calibrate(data.graphs[chosen], [data.labels[i] for i in chosen])
        used = choose(rule_used, filter, data, test, rng)
        pairs = zip(filter.predict(data.graphs[used]), used, strict=True)
        values.append(
            np.mean(
                [
                    (
                        (mask & (data.labels[i] != 1)).any(),
                        mask.all(),
                        (mask & (data.labels[i] == 1)).sum(),
                    )
                    for mask, i in pairs
                ],
                axis=0,
            )
        )
    return values


def main(n_splits):
    """Print the table."""
    data = fetch_agent_process_bench(judges=TWO, alternatives=True)
    lines = [f"AgentProcessBench, hotpotqa; {n_splits} splits by task"]
    lines.append(
        "alpha  calibrated  used     missed             kept whole         good steps kept"
    )
    for alpha in (0.1, 0.2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            warnings.simplefilter("ignore", SettingWarning)  # 20 runs rank by chance
            values = np.array([measure(data, alpha, seed) for seed in range(n_splits)])
        means = values.mean(axis=0)
        errors = values.std(axis=0, ddof=1) / np.sqrt(n_splits)
        for (calibrated, used), mean, error in zip(WAYS, means, errors, strict=True):
            columns = "   ".join(
                f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True)
            )
            lines.append(f"{alpha:5.1f}  {calibrated:10}  {used:7}  {columns}")
    print("\n".join(lines))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
