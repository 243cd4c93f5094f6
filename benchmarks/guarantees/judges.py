"""Measure the error rate by human labels of filters that were calibrated on model verdicts.

    python -m benchmarks.guarantees.judges [--splits N]

The program prints benchmarks/results/judges.txt and writes docs/guide/figures/judges.svg.

The data are those of AgentProcessBench, with 250 runs on 50 tasks in each set, judged by people and
by six models. In each split, the default filter is fitted on 40 tasks at alpha = .1 and stops at
the first doubtful step. "missed" is the proportion of runs of the other 10 tasks in which a step is
kept that people call wrong. In "judge", all 40 tasks have the labels of the judge. In "judge and
people", 20 tasks have the labels of the judge and are used for training, and the other 20 tasks
have human labels and are used for calibration. "people" uses only the human labels of these 20
tasks, and "people, all" uses human labels of all 40 tasks. The columns of hotpotqa are the
position, the length and the number of calls. The columns of the other sets are the position and the
verdicts of the five other judges. Errors are standard errors of a mean over the 50 tasks, where
each task is averaged over the splits that test it.
"""

import argparse
import warnings

import numpy as np

from benchmarks import GUIDE
from benchmarks.pages.figures import plt
from skdcf import CoherentConformalFilter, GraphBatch
from skdcf.datasets import fetch_agent_process_bench

FIGURE = GUIDE / "figures" / "judges.svg"
JUDGES = (
    "kimi-k2.5",
    "deepseek-v3.2",
    "gpt-5.2-thinking",
    "gemini-3-flash",
    "qwen3-8b",
    "llama-3.3-70b",
)
SETS = ("hotpotqa", "tau2", "bfcl")
WAYS = ("judge", "judge and people", "people", "people, all")
ALPHA = 0.1
N_FIT = 40
N_PEOPLE = 20


def measure(subset, judge, n_splits):
    """Per way, the missed runs and the good steps kept, as means over tasks with errors."""
    others = [name for name in JUDGES if name != judge]
    columns = others if subset != "hotpotqa" else ()
    judged = fetch_agent_process_bench(subset, judges=columns, labels=judge)
    people = fetch_agent_process_bench(subset, judges=columns)
    truth = people.labels
    values = {way: np.full((n_splits, len(truth), 2), np.nan) for way in WAYS}
    for seed in range(n_splits):
        tasks = np.random.default_rng(seed).permutation(np.unique(people.groups))
        test = np.flatnonzero(np.isin(people.groups, tasks[N_FIT:]))
        by_people = np.flatnonzero(np.isin(people.groups, tasks[:N_PEOPLE]))
        by_judge = np.flatnonzero(np.isin(people.groups, tasks[N_PEOPLE:N_FIT]))
        both = np.concatenate([by_people, by_judge])
        parts = {
            "judge": [(judged, both)],
            "judge and people": [(people, by_people), (judged, by_judge)],
            "people": [(people, by_people)],
            "people, all": [(people, both)],
        }
        for way, chosen in parts.items():
            X = GraphBatch.from_graphs(
                [data.graphs[int(i)] for data, rows in chosen for i in rows]
            )
            y = [data.labels[i] for data, rows in chosen for i in rows]
            cf = CoherentConformalFilter(alpha=ALPHA, online=True, random_state=seed)
            masks = cf.fit(X, y).predict(people.graphs[test])
            for i, mask in zip(test, masks, strict=True):
                wrong = (mask & (truth[i] == 0)).any()
                values[way][seed, i] = wrong, (mask & (truth[i] == 1)).sum()
    return {way: over_tasks(value, people.groups) for way, value in values.items()}


def over_tasks(values, groups):
    """Means and standard errors over tasks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a run that no split tested
        of_runs = np.nanmean(values, axis=0)
    of_tasks = np.array(
        [np.nanmean(of_runs[groups == task], axis=0) for task in np.unique(groups)]
    )
    of_tasks = of_tasks[~np.isnan(of_tasks).any(axis=1)]
    error = of_tasks.std(axis=0, ddof=1) / np.sqrt(len(of_tasks))
    return of_tasks.mean(axis=0), error


def draw(results):
    """Missed runs by judge, one panel a set."""
    figure, panels = plt.subplots(1, len(SETS), figsize=(10, 3.2), sharey=True)
    styles = {
        "judge": ("#d55e00", "o", -0.12),
        "judge and people": ("#0072b2", "s", 0.12),
    }
    places = np.arange(len(JUDGES))
    for panel, subset in zip(panels, SETS, strict=True):
        for way, (colour, marker, shift) in styles.items():
            means = [results[subset, judge][way][0][0] for judge in JUDGES]
            errors = [results[subset, judge][way][1][0] for judge in JUDGES]
            label = {
                "judge": "judged by the model alone",
                "judge and people": "the model trains, people calibrate",
            }[way]
            panel.errorbar(
                places + shift,
                means,
                errors,
                fmt=marker,
                color=colour,
                ms=5,
                capsize=2,
                label=label,
            )
        panel.axhline(ALPHA, color="black", lw=0.8, ls=":")
        panel.set_xticks(places, [judge.split("-")[0] for judge in JUDGES], rotation=35)
        panel.set_title(subset)
        panel.set_ylim(0, 0.5)
    panels[0].set_ylabel("runs that keep a wrong step")
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})


def main(options):
    """Print the table and draw the picture."""
    print(f"alpha {ALPHA}; {options.splits} splits by task; missed by people's labels")
    head = "".join(f"{way:18}" for way in WAYS)
    print(f"set       judge             {head}good steps kept, in the same order")
    results = {}
    for subset in SETS:
        for judge in JUDGES:
            found = results[subset, judge] = measure(subset, judge, options.splits)
            missed = "".join(
                f"{mean[0]:.3f} +- {error[0]:.3f}    " for mean, error in found.values()
            )
            kept = "  ".join(f"{mean[1]:.2f}" for mean, _ in found.values())
            print(f"{subset:9} {judge:17} {missed}{kept}", flush=True)
    draw(results)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=40)
    main(parser.parse_args())
