"""Data set of agent runs in which people and language models judged every step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Unpack

from .._checks import check_choice
from ..graphs.sources import SOURCES
from .fetch import Names, Options, chosen, fetcher, load, read, rows
from .runs import answers_of_other_runs, read_run

_SUBSETS = ("hotpotqa", "tau2", "bfcl", "gaia_dev")
_WITH_TEXTS = ("hotpotqa",)
_JUDGES = (
    "deepseek-v3.2",
    "gemini-3-flash",
    "gpt-5.2-thinking",
    "kimi-k2.5",
    "llama-3.3-70b",
    "qwen3-8b",
)
_FOLDER = "agent_process_bench"
#: The published verdicts are "good", "neutral" and "wrong". Some model verdicts are missing.
_LABELS = {1: 1, 0: 1, -1: 0, None: -1}


@fetcher()
def fetch_agent_process_bench(
    subset: str = "hotpotqa",
    *,
    judges: Names = (),
    labels: str = "people",
    graph: str = "chain",
    alternatives: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Load AgentProcessBench, a data set of agent runs with human labels for every step.

    Parameters
    ----------
    subset : {"hotpotqa", "tau2", "bfcl", "gaia_dev"}
        Part of the data set to load. Each subset contains five runs for each of 50 tasks. Only
        "hotpotqa" includes the step texts. The other subsets contain only step positions and
        verdicts.
    judges : {"deepseek-v3.2", "gemini-3-flash", "gpt-5.2-thinking", "kimi-k2.5", \
"llama-3.3-70b", "qwen3-8b", "all"} or list of them
        Models whose published verdicts are added as features. A verdict is 1 (good), 0 (neutral
        or missing) or -1 (wrong). The models judged completed runs (see ``DESCR``).
    labels : str
        Source of the labels, either "people" or the name of a judge.
    graph : {"chain", "data", "none"}
        Rule that creates the edges, as in `skdcf.adapters.from_runs`. With "none", the steps are
        independent. With "data", the subset must contain the step texts.
    alternatives : bool
        Whether to compare each run with the four other runs of the same task, as in
        `skdcf.adapters.from_runs`. With ``alternatives=True``, the subset must contain the step
        texts.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for a run whose verdicts do not match its steps, or to drop the
        run.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 0
        wrong, 1 not wrong, -1 without a verdict), ``groups`` (task index of each problem),
        ``metadata`` (list of dict, with label sources), ``feature_names``, ``dropped`` (list of
        (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, if an option requires texts but the subset has none, or if a run
        is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    *AgentProcessBench*, 2026, arXiv:2603.14465.
    """
    check_choice("subset", subset, _SUBSETS)
    check_choice("labels", labels, ("people", *_JUDGES))
    check_choice("graph", graph, ("chain", "data", "none"))
    if subset not in _WITH_TEXTS and (graph == "data" or alternatives):
        raise ValueError(
            'graph="data" and alternatives=True require the step texts, got '
            f"subset={subset!r}. Only the subset {_WITH_TEXTS[0]} contains the step texts"
        )
    names = chosen(judges=(judges, _JUDGES))["judges"] if len(judges) else []
    records = list(_records(subset, dict.fromkeys([*names, labels]), options))
    if alternatives:
        runs = [_as_run(record) for _, record in records]
        for (_, record), texts in zip(
            records, answers_of_other_runs(runs), strict=True
        ):
            record["alternatives"] = texts
    return load(
        _FOLDER,
        records,
        partial(_parse_run, judges=names, labels=labels, edges=graph),
        options,
        subset=subset,
        judges=names or "none",
        labels=labels,
        edges=graph,
    )


def _records(subset, names, options) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and the record of each run, with the verdicts of several judges."""
    verdicts = {}
    for name in names:
        folder = "labels" if name == "people" else f"judges/{name}"
        verdicts[name] = {
            _run_of(record): record["step_labels"]
            for record in read(f"{_FOLDER}/{folder}/{subset}.jsonl", options)
        }
    folder = "" if subset in _WITH_TEXTS else "labels/"
    pattern = f"{_FOLDER}/{subset}/{{query_index}}/{{sample_index}}"
    for id, record in rows(f"{_FOLDER}/{folder}{subset}.jsonl", pattern, options):
        of_run = {
            name: runs.get(_run_of(record), {}) for name, runs in verdicts.items()
        }
        yield id, record | {"subset": subset, "verdicts": of_run}


def _run_of(record):
    return record["query_index"], record["sample_index"]


def _as_run(record):
    task = f"{record['subset']}/{record['query_index']}"
    return {"task": task, "messages": record["messages"]}


def _parse_run(record, judges, labels, edges):
    if record["subset"] in _WITH_TEXTS:
        rule = "data" if edges == "data" else "chain"
        line = read_run(_as_run(record), rule, record.get("alternatives"))
        positions = line["metadata"]["messages"]
        line["problem"] = record["question"]
    else:
        positions = sorted(map(int, record["step_labels"]))
        line = {
            "features": [[float(v)] for v in range(len(positions))],
            "feature_names": ["position"],
            "edges": [[v - 1, v] for v in range(1, len(positions))],
            "group": f"{record['subset']}/{record['query_index']}",
        }

    verdicts = {
        name: _in_order(name, of_run, positions)
        for name, of_run in record["verdicts"].items()
    }
    for name in judges:
        line["feature_names"].append(f"verdict of {name}")
        for row, verdict in zip(line["features"], verdicts[name], strict=True):
            row.append(float(verdict or 0))
    if edges == "none":
        line["edges"] = []

    line["labels"] = [_LABELS[verdict] for verdict in verdicts[labels]]
    kind = "human" if labels == "people" else "model"
    source = {"kind": kind, "by": labels, "when": None, "version": None}
    line["metadata"] = {
        "subset": record["subset"],
        "task": record["query_index"],
        "run": record["sample_index"],
        "messages": positions,
        SOURCES: [source] * len(positions),
    }
    # All runs were judged, so no run was selected because of its content.
    if labels == "people":
        line["metadata"]["sampling"] = "random"
    return line


def _in_order(name, of_run, positions):
    """Return the verdicts of one judge, in the order of the steps."""
    judged = sorted(map(int, of_run))
    if judged != positions:
        raise ValueError(
            f"the messages judged by {name} must be the steps of the run ({positions}), "
            f"got {judged}"
        )
    return [of_run[str(position)] for position in positions]
