"""What other answers to the same question are worth, on GSM8K model solutions.

    python benchmarks/agreement.py FILE [--splits N]

FILE is example_model_solutions.jsonl of openai/grade-school-math: four models' solutions
of each question, of which the other three are a solution's alternatives. Claims are its
calculations, and edges run from a result to its use. Labels are derived: in a right
solution every step is true, in a wrong one those whose value the reference has, too.
"""

import argparse
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph
from skdcf.evaluation import compare_filters
from skdcf.features import reasoning_features

ALPHAS = (0.01, 0.02, 0.05, 0.1)
CALCULATION = re.compile(r"<<([^<>=]*)=([^<>]*)>>(?:[\d.,]*\d)?")
NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


def value_of(text):
    """A result as a number, or as it stands."""
    number = NUMBER.fullmatch(text.replace(",", ""))
    return round(float(number[0]), 6) if number else text


def graph_of(solution, question, others):
    """The graph of one solution, None without calculations, and its results."""
    steps = list(CALCULATION.finditer(solution))
    if not steps:
        return None, []
    results = [value_of(step[2]) for step in steps]
    used = [set(map(value_of, NUMBER.findall(step[1]))) for step in steps]
    edges = []
    for v, numbers in enumerate(used):
        latest = {result: u for u, result in enumerate(results[:v])}
        edges += [(latest[x], v) for x in numbers & latest.keys()]
    ends = [0, *(step.end() for step in steps[:-1]), len(solution)]
    claims = [solution[a:b] for a, b in pairwise(ends)]
    more = {"problem": question, "alternatives": others}
    return ReasoningGraph(None, edges, claims=claims, **more), results


def label(results, reference, is_correct):
    """1 for true steps and 0 for false ones, of which a wrong solution has one."""
    labels = np.array([is_correct or x in reference for x in results], dtype=int)
    if not is_correct and labels.all():
        labels[-1] = 0
    return labels


def load(path):
    """Graphs, labels, and the number of the question of each."""
    graphs, labels, groups, rng = [], [], [], np.random.default_rng(0)
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines()):
        record = json.loads(line)
        reference = CALCULATION.finditer(record["ground_truth"])
        reference = {value_of(step[2]) for step in reference}
        models = {k: v for k, v in record.items() if isinstance(v, dict)}
        for name, answer in models.items():
            others = [v["solution"] for k, v in models.items() if k != name]
            rng.shuffle(
                others
            )  # so that the first ones are not always the same models'
            graph, results = graph_of(answer["solution"], record["question"], others)
            if graph is not None:
                graphs.append(graph)
                labels.append(label(results, reference, answer["is_correct"]))
                groups.append(number)
    return graphs, labels, groups


def main():
    """Compare the same filters with 0, 1, 2 and 3 other answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--splits", type=int, default=2)
    chosen = parser.parse_args()
    graphs, y, groups = load(chosen.file)
    filters = {"logistic regression": HardCF(), "auto": CoherentConformalFilter()}
    for most in range(4):
        some = [g.alternatives[:most] if most else None for g in graphs]
        pairs = zip(graphs, some, strict=True)
        cut = [graph.replace(alternatives=others) for graph, others in pairs]
        X = reasoning_features().fit_transform(cut)
        more = {"cv": chosen.splits, "groups": groups, "random_state": 0}
        print(f"{most} other answers: {X}, {sum(map(sum, y))} true claims")
        print(compare_filters(filters, X, y, ALPHAS, protocol="leave-one-out", **more))


if __name__ == "__main__":
    main()
