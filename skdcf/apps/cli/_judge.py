"""The command ``judge``, which finds out whether a judge still gives the same verdicts."""

import json
from datetime import date

import numpy as np

from ..._checks import counted
from ...datasets.jsonl import format_jsonl
from ...identity import question_groups
from . import _files as files
from ._extract import client_of
from ._main import FAILED, _numbered


def judge(options):
    """Judge answers twice, or compare the verdicts of today and return 1 if they changed."""
    if bool(options.today) == bool(options.model) or (options.output and options.today):
        raise ValueError("pass either --model, or --with and no --output")
    if not 0 < options.delta < 1:
        raise ValueError(f"--delta must be between 0 and 1, got {options.delta}")
    problems = files.read_problems(options)
    if options.model:
        today = _ask(options, problems.graphs)
    if options.output:
        both = (today, _ask(options, problems.graphs))
        rows = [
            {"judge_a": a.tolist(), "judge_b": b.tolist()}
            for a, b in zip(*map(problems.graphs.split, both), strict=True)
        ]
        columns = {"groups": problems.groups, "metadata": rows}
        lines = format_jsonl(problems.graphs, problems.labels, **columns)
        files.write_lines(options.output, lines)
        return None
    path = options.problems
    if options.today:
        options.problems = options.today
        others = files.read_problems(options)
        texts = [graph.claims for graph in problems.graphs]
        if [graph.claims for graph in others.graphs] != texts:
            raise ValueError(f"{options.today} must have the same claims as {path}")
        today = _verdicts(options.today, others, "judge_a")
    n_flips, p_values = _compare(path, problems, today)
    with open(f"{path}.runs", "a+", encoding="utf-8") as runs:
        runs.seek(0)
        n_runs = len(runs.readlines()) + 1
        runs.write(json.dumps({"date": str(date.today()), "p": p_values}) + "\n")
    p_value = min(1.0, min(p_values) * len(p_values))
    level = options.delta / (n_runs * (n_runs + 1))
    files.inform(
        f"run {n_runs}: {counted(n_flips, 'verdict')} of {len(today)} changed, p = "
        f"{p_value:.2g}. The alarm is at {level:.2g}"
    )
    if p_value > level and not (options.deterministic and n_flips):
        return None
    files.inform(
        "the judge changed. Calibrate again each filter whose labels or columns it computed"
    )
    return FAILED


def _compare(path, problems, today):
    """Print the verdicts that changed, and return their number and the p values."""
    graphs = problems.graphs
    first = _verdicts(path, problems, "judge_a")
    flips = np.flatnonzero(first != today)
    for i in flips:
        problem = graphs.problem_of[i]
        name = _numbered(graphs.name_of(problem))
        word = "true" if today[i] else "false"
        files.inform(f"{name}, claim {i - graphs.offsets[problem] + 1}: now {word}")
    question = np.unique(question_groups(graphs), return_inverse=True)[1]
    question = question[graphs.problem_of]
    direction = np.bincount(question, today - first)
    p_values = [min(1.0, 2 * upper_tail(direction, abs(direction.sum())))]
    if any("judge_b" in row for row in graphs.metadata_rows):
        second = _verdicts(path, problems, "judge_b")
        amount = np.bincount(question, abs(second - today) - abs(first - second))
        p_values.append(upper_tail(amount, amount.sum()))
    return len(flips), p_values


def _ask(options, graphs):
    """Return the verdict of the model on each claim, 0 or 1. A claim without a verdict has 0."""
    from .. import llm

    client = client_of(options)
    verdicts = llm.Verify().apply(graphs, model=options.model, client=client)
    return (np.concatenate(verdicts)[:, 0] > 0).astype(int)


def _verdicts(path, problems, key):
    """Return the verdict on each claim, 0 or 1, which stands under a key or is the label."""
    rows = [row.get(key, ()) for row in problems.graphs.metadata_rows]
    if not any(rows):
        rows = problems.labels or [()] * len(problems.graphs)
    for i, row in enumerate(rows):
        n_claims = problems.graphs.sizes[i]
        if len(row) != n_claims or not {*row} <= {0, 1}:
            raise ValueError(
                f'{path}: problem {i} must have 0 or 1 under "{key}" or "labels" for each of its '
                f"{n_claims} claims, got {list(row)}"
            )
    return np.concatenate(rows).astype(int)


def upper_tail(differences, total):
    """Return the probability that a sum is at least ``total`` if each sign is a fair coin.

    The distribution of the sum is computed exactly, by adding one difference after another.
    """
    sizes = np.abs(differences.astype(int))
    law = np.ones(1)
    for size in sizes[sizes > 0]:
        gap = np.zeros(2 * size)
        law = (np.append(law, gap) + np.append(gap, law)) / 2
    return float(law[int(total) + sizes.sum() :].sum())
