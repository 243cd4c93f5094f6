"""Choose one of five runs, then filter it: what calibrates has to be chosen by the same rule.

    python -m benchmarks.guarantees.chosen [splits]

It prints benchmarks/results/chosen.txt. AgentProcessBench, hotpotqa: 50 tasks with five runs
each, whose steps people judged, with agreement of the runs among the columns. In each split 20
tasks train a regression, 20 calibrate with one run each, and of each of the other 10 one run
is filtered. "sampled" is a run drawn at random; the others look best of five: "risk", its
largest risk of a step is the smallest, or "judges", the lowest verdict of two models on a step
is the highest, then agreement. No label of people enters a rule. "kept whole" is the share of
the runs of which every step is kept, "and right" of those that are right, too. Errors are naive
ones over the splits.
"""

import sys
import warnings

import numpy as np

from skdcf import HardCF
from skdcf.datasets import fetch_agent_process_bench
from skdcf.exceptions import CalibrationWarning, ParameterWarning

TWO = ("kimi-k2.5", "deepseek-v3.2")
#: The rule that chose what calibrates, and the one that chose what is filtered.
WAYS = (
    ("sampled", "sampled"),
    ("sampled", "risk"),
    ("risk", "risk"),
    ("sampled", "judges"),
    ("judges", "judges"),
)


def looks():
    """How good two models think each run is."""
    data = fetch_agent_process_bench(judges=TWO, alternatives=True)
    names = list(data.graphs.feature_names)
    verdicts = [names.index(f"verdict of {judge}") for judge in TWO]
    agreement = names.index("answer_agreement")
    return np.array(
        [
            graph.features[:, verdicts].min(axis=0, initial=1).sum()
            + 0.01 * graph.features[:, agreement].mean()
            if graph.n_claims
            else 0.0
            for graph in data.graphs
        ]
    )


def choose(rule, filter, data, tasks, rng):
    """One run of each task, by a rule that knows no label of people."""
    rows = []
    for task in tasks:
        runs = np.flatnonzero(data.groups == task)
        if rule == "sampled":
            rows.append(int(rng.choice(runs)))
            continue
        look = data.looks[runs]
        if rule == "risk":
            risks = filter.path_risk(data.graphs[runs])
            look = [-risk.max(initial=-np.inf) for risk in risks]
        rows.append(int(runs[np.argmax(look)]))
    return rows


def measure(data, alpha, seed):
    """For each way: missed, kept whole, kept whole and right, good steps kept."""
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
        of_runs = []
        for mask, i in zip(filter.predict(data.graphs[used]), used, strict=True):
            good = data.labels[i] == 1
            missed = (mask & ~good).any()
            whole = mask.all()
            of_runs.append((missed, whole, whole and good.all(), (mask & good).sum()))
        values.append(np.mean(of_runs, axis=0))
    return values


def main(n_splits):
    """Print the table."""
    data = fetch_agent_process_bench(alternatives=True)
    data.looks = looks()
    print(f"AgentProcessBench, hotpotqa; {n_splits} splits by task")
    print(
        "alpha  calibrated  used     missed            kept whole        and right         "
        "good steps kept"
    )
    for alpha in (0.1, 0.2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            warnings.simplefilter("ignore", ParameterWarning)  # 20 runs rank by chance
            values = np.array([measure(data, alpha, seed) for seed in range(n_splits)])
        means = values.mean(axis=0)
        errors = values.std(axis=0, ddof=1) / np.sqrt(n_splits)
        for (calibrated, used), mean, error in zip(WAYS, means, errors, strict=True):
            columns = "   ".join(
                f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True)
            )
            print(f"{alpha:5.1f}  {calibrated:10}  {used:7}  {columns}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
