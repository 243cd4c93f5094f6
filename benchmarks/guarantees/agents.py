"""Measure the error rate of agent runs that stop before the first doubtful step.

    python -m benchmarks.guarantees.agents [--splits N] [--runs N]

The program prints benchmarks/results/agents.txt. The first table contains results on
AgentProcessBench (hotpotqa: 250 runs on 50 tasks, with 734 steps that people judged, and an average
of 2.22 correct steps per run). In each split, 40 tasks are used to fit a filter with
``online=True``. "missed" is the proportion of runs of the other 10 tasks in which a wrong step is
kept. "agreement" is a column that measures how well an answer agrees with the answers of the other
four runs of the task. "two judges" are the verdicts of kimi-k2.5 and deepseek-v3.2, who saw whole
runs. The gain is the mean difference from the row above it with the same scorer and without
agreement. Errors are naive standard errors over the splits.

The second table contains means over the 50 tasks of the same set, where each task is averaged over
the splits that test it, with the standard error of the mean. The third table contains the gain from
each column and from additional columns, as paired differences over tasks. Each of these columns is
computed from the step and the preceding messages. The fourth table contains the two sets without
texts (with averages of 9.79 and 8.08 correct steps per run). The fifth table contains generated
runs, in which the risk of a step is uniform on [0, 1] and a step is wrong with probability
.8 risk^2. The runs of the first set are streamed with ``stop=True``. docs/guide/figures/agents.svg
shows a run of the first test.
"""

import argparse
import re
import warnings

import numpy as np
from scipy.stats import betabinom
from sklearn.utils import Bunch

from benchmarks import GUIDE
from benchmarks.pages.figures import plt
from skdcf import CoherentConformalFilter, GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import fetch_agent_process_bench
from skdcf.datasets.fetch import read
from skdcf.ops.conformal import conformal_rank

FIGURE = GUIDE / "figures" / "agents.svg"
SCORERS = {
    "auto": lambda seed: CoherentConformalFilter(online=True, random_state=seed),
    "regression": lambda seed: HardCF(online=True, random_state=seed),
}
TWO = ("kimi-k2.5", "deepseek-v3.2")
ALPHAS = (0.1, 0.2)
N_FIT = 40


def measure(data, scorer, alpha, n_splits):
    """Per split and run, whether a wrong step is kept and how many good ones."""
    values = np.full((n_splits, len(data.labels), 2), np.nan)
    for seed in range(n_splits):
        tasks = np.random.default_rng(seed).permutation(np.unique(data.groups))
        train = np.flatnonzero(np.isin(data.groups, tasks[:N_FIT]))
        test = np.flatnonzero(np.isin(data.groups, tasks[N_FIT:]))
        cf = SCORERS[scorer](seed).set_params(alpha=alpha)
        cf.fit(data.graphs[train], [data.labels[i] for i in train])
        for i, mask in zip(test, cf.predict(data.graphs[test]), strict=True):
            truth = data.labels[i]
            values[seed, i] = (mask & (truth == 0)).any(), (mask & (truth == 1)).sum()
    return values


def over_tasks(values, groups):
    """Mean and standard error over the tasks, first averaged over splits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a run that no split tested
        of_runs = np.nanmean(values, axis=0)
        of_tasks = np.array(
            [np.nanmean(of_runs[groups == task], axis=0) for task in np.unique(groups)]
        )
    of_tasks = of_tasks[~np.isnan(of_tasks).any(axis=1)]
    return of_tasks.mean(axis=0), of_tasks.std(axis=0, ddof=1) / np.sqrt(len(of_tasks))


def published(n_splits):
    """Print both tables of AgentProcessBench."""
    print(f"AgentProcessBench, hotpotqa; {n_splits} splits by task")
    print(
        "scorer      columns                 alpha  good steps kept  gain            missed"
    )
    by_task = []
    for scorer in SCORERS:
        for judges in ((), TWO):
            without = {}
            for agreement in (False, True):
                data = fetch_agent_process_bench(judges=judges, alternatives=agreement)
                name = "two judges" if judges else "plain"
                name += ", agreement" if agreement else ""
                for alpha in ALPHAS:
                    values = measure(data, scorer, alpha, n_splits)
                    missed, kept = np.nanmean(values, axis=1).T
                    gain = mean_of(kept - without[alpha]) if agreement else ""
                    without.setdefault(alpha, kept)
                    print(
                        f"{scorer:11} {name:23} {alpha:4.1f}   {mean_of(kept)}  {gain:15} "
                        f"{mean_of(missed)}",
                        flush=True,
                    )
                    by_task.append(
                        (scorer, name, alpha, over_tasks(values, data.groups))
                    )
    print("\nthe same over tasks")
    print("scorer      columns                 alpha  good steps kept  missed")
    for scorer, name, alpha, (mean, error) in by_task:
        print(
            f"{scorer:11} {name:23} {alpha:4.1f}   {mean[1]:.3f} +- {error[1]:.3f}  "
            f"{mean[0]:.3f} +- {error[0]:.3f}"
        )


def one_by_one(n_splits):
    """Print what each column gains beside others, and what more of them would gain."""
    print(
        f"\ncolumns one by one; gain in good steps kept, {n_splits} splits, over tasks"
    )
    print(
        "column                      auto, 0.1          auto, 0.2          regression, 0.1"
    )
    print("without agreement")
    gains_of_columns(fetch_agent_process_bench(), {}, n_splits)
    print("with agreement")
    data = fetch_agent_process_bench(alternatives=True)
    gains_of_columns(data, other_columns(data), n_splits)


def gains_of_columns(data, others, n_splits):
    """Print the gain of each column beside those in use."""
    chosen = data.feature_names
    columns = dict(zip(chosen, data.graphs.features.T, strict=True)) | others

    def kept_with(names):
        table = np.column_stack([columns[name] for name in names])
        rows = np.split(table, data.graphs.offsets[1:-1])
        graphs = [
            graph.replace(features=of_graph, feature_names=names)
            for graph, of_graph in zip(data.graphs, rows, strict=True)
        ]
        changed = Bunch(**(data | {"graphs": GraphBatch.from_graphs(graphs)}))
        return [
            measure(changed, scorer, alpha, n_splits)[:, :, 1]
            for scorer, alpha in (("auto", 0.1), ("auto", 0.2), ("regression", 0.1))
        ]

    in_use = kept_with(chosen)
    for name in columns:
        is_used = name in chosen
        changed = kept_with([n for n in columns if (n in chosen) != (n == name)])
        gains = []
        for all_used, values in zip(in_use, changed, strict=True):
            gain = all_used - values if is_used else values - all_used
            mean, error = over_tasks(gain[:, :, None], data.groups)
            gains.append(f"{mean[0]:+.3f} +- {error[0]:.3f}")
        kind = "in use" if is_used else "not"
        print(f"{name:18} {kind:7} {'   '.join(gains)}", flush=True)


def other_columns(data):
    """Columns that are not in use, each of a step and the messages before it."""
    columns = {
        name: [] for name in ("search", "words seen", "observed words", "repeated")
    }
    columns |= {"call fails": [], "length observed": []}
    records = read("agent_process_bench/hotpotqa.jsonl", {})
    for record, about in zip(records, data.metadata, strict=True):
        observed, calls, last = "", set(), None
        for number, message in enumerate(record["messages"]):
            if message["role"] == "tool":
                last = message["content"] or ""
                observed += f" {last}"
            if number not in about["messages"]:
                continue
            asked = [call["function"] for call in message.get("tool_calls") or ()]
            text = " ".join(call["arguments"] for call in asked) or message["content"]
            words = words_in(text)
            seen = {
                "words seen": words_in(f"{record['question']} {observed}"),
                "observed words": words_in(observed),
            }
            for name, before in seen.items():
                columns[name].append(len(words & before) / max(len(words), 1))
            columns["search"].append(float(bool(asked)))
            columns["repeated"].append(float(bool(asked) and text in calls))
            fails = last is not None and ("error" in last[:20] or not last.strip())
            columns["call fails"].append(float(fails))
            columns["length observed"].append(np.log1p(len(last or "")))
            calls.add(text)
    return {name: np.array(values) for name, values in columns.items()}


def words_in(text):
    """The words of a text."""
    return set(re.findall(r"\w+", text.casefold()))


def draw_run(alpha=0.2):
    """Draw the longest run of the first split that is stopped where people see an error."""
    data = fetch_agent_process_bench(alternatives=True)
    tasks = np.random.default_rng(0).permutation(np.unique(data.groups))
    train = np.flatnonzero(np.isin(data.groups, tasks[:N_FIT]))
    test = np.flatnonzero(np.isin(data.groups, tasks[N_FIT:]))
    cf = SCORERS["auto"](0).set_params(alpha=alpha)
    cf.fit(data.graphs[train], [data.labels[i] for i in train])
    masks = dict(zip(test, cf.predict(data.graphs[test]), strict=True))
    stopped = [i for i in test if masks[i].sum() == np.argmin(data.labels[i]) > 1]
    shown = max(stopped, key=lambda i: len(masks[i]))

    risk = cf.path_risk([data.graphs[int(shown)]])[0]
    kept = int(masks[shown].sum())
    step = np.arange(1, len(risk) + 1)
    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    axes.step(
        step[: kept + 1], risk[: kept + 1], where="mid", color="0.8", lw=1, zorder=1
    )
    axes.plot(step[:kept], risk[:kept], "o", color="#009e73", ms=7, label="carried out")
    label = "stop: a person is asked"
    axes.plot(step[kept], risk[kept], "s", color="#d55e00", ms=7, label=label)
    axes.plot(step[kept], risk[kept], "kx", ms=5, label="wrong, people say")
    axes.axhline(cf.threshold(), color="k", ls="--", lw=1)
    axes.set_xlabel("step")
    axes.set_ylabel("path risk")
    axes.set_xticks(step[: kept + 1])
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})


def without_texts(n_splits):
    """Print the table of the sets of which positions and verdicts alone are here."""
    print("\nother sets; position and two judges, with a chain and without edges")
    print("set     edges  scorer      alpha  good steps kept  missed, over tasks")
    for subset in ("tau2", "bfcl"):
        for graph in ("chain", "none"):
            data = fetch_agent_process_bench(subset, judges=TWO, graph=graph)
            for scorer in SCORERS:
                for alpha in ALPHAS:
                    values = measure(data, scorer, alpha, n_splits)
                    mean, error = over_tasks(values, data.groups)
                    print(
                        f"{subset:7} {graph:6} {scorer:11} {alpha:4.1f}   "
                        f"{mean_of(np.nanmean(values, axis=1).T[1])}  "
                        f"{mean[0]:.3f} +- {error[0]:.3f}",
                        flush=True,
                    )


def mean_of(values):
    """A mean with its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3f} +- {error:.3f}"


def generated(n_runs, n_sets=20):
    """Print the table of generated runs."""
    print(
        f"\ngenerated runs of 3 to 6 steps, {n_sets} times 200 calibrate and {n_runs} run"
    )
    print("alpha  covered            by the law  99 % of such means  stream = predict")
    for alpha in ALPHAS:
        shares = []
        equal = 0
        for seed in range(n_sets):
            X, y = draw(200 + n_runs, seed)
            cf = HardCF(0, online=True, alpha=alpha).fit(X[:200], y[:200])
            masks = cf.predict(X[200:])
            covered = [
                not (mask & (truth == 0)).any()
                for mask, truth in zip(masks, y[200:], strict=True)
            ]
            shares.append(np.mean(covered))
            new = X[200:] if seed == 0 else ()
            for graph, mask in zip(new, masks, strict=False):
                decisions = list(cf.stream(steps(graph), stop=True))
                equal += decisions == mask[: int(mask.sum()) + 1].tolist()
        n = cf.n_calibration_
        rank = conformal_rank(n, alpha)
        law = betabinom(n_runs, n + 1 - rank, rank)
        mean = law.mean() / n_runs
        width = 2.576 * law.std() / n_runs / np.sqrt(n_sets)
        print(
            f"{alpha:4.1f}   {mean_of(np.array(shares))}    {mean:.3f}       "
            f"{mean - width:.3f} to {mean + width:.3f}      {equal} of {n_runs}"
        )


def draw(n, seed):
    """Runs whose steps make a chain, with their labels."""
    rng = np.random.default_rng(seed)
    graphs = []
    labels = []
    for size in rng.integers(3, 7, n):
        risk = rng.random(size)
        labels.append((rng.random(size) >= 0.8 * risk**2).astype(int))
        chain = [(v - 1, v) for v in range(1, size)]
        graphs.append(ReasoningGraph(-risk[:, None], chain))
    return GraphBatch.from_graphs(graphs), labels


def steps(graph):
    """The steps of a run, one at a time."""
    for v, row in enumerate(graph.features):
        yield {"features": row, "parents": [v - 1] if v else []}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2000)
    chosen = parser.parse_args()
    published(chosen.splits)
    one_by_one(min(chosen.splits, 40))
    without_texts(min(chosen.splits, 40))
    generated(chosen.runs)
    draw_run()
