"""Measure how well `Surprisal` with a small language model detects wrong sums, offline.

    make foreign    # runs foreign_model.py first, then this program

SmolLM2-135M-Instruct computes the log-probabilities of answers to questions about sums with
transformers on one core. Some of the results in the answers are wrong. The default columns check
such sums exactly, so they are omitted. One filter uses only the dependencies between the claims,
and the other also uses the four columns of `Surprisal`. The program prints
benchmarks/results/foreign_surprisal.txt.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from scripted_model import ScriptedModel, is_right, make_question

from benchmarks import RESULTS
from benchmarks.small_model import load_model, read_text
from skdcf import CoherentConformalFilter, ReasoningGraph
from skdcf.edges import number_flow_edges
from skdcf.features import GraphFeatures, Surprisal

ALPHAS = (0.1, 0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-answers", type=int, default=240)
    parser.add_argument("--splits", type=int, default=8)
    options = parser.parse_args()
    graphs, labels = make_answers(options.n_answers, seed=0)
    tokenizer, model = load_model("float32")
    start = time.process_time()
    surprisal = Surprisal(lambda text: read_text(tokenizer, model, text))
    columns = surprisal.fit_transform(graphs)
    seconds = (time.process_time() - start) / len(graphs)
    structure = GraphFeatures().fit_transform(graphs)
    together = structure.replace_features(
        np.hstack([structure.features, columns.features]),
        [*structure.feature_names, *columns.feature_names],
    )
    lines = [*describe(columns, labels, seconds), ""]
    lines += compare(structure, together, labels, options.splits)
    text = "\n".join(lines) + "\n"
    (RESULTS / "foreign_surprisal.txt").write_text(text, encoding="utf-8")
    print(text, end="")


def make_answers(n, seed):
    """Return answers to questions about sums, and whether each claim is right."""
    rng = random.Random(seed)
    writer = ScriptedModel(slips=0.2)
    graphs = []
    for _ in range(n):
        question = make_question(rng)
        claims = writer.solve(question, rng).splitlines()
        edges = number_flow_edges(claims, question)
        graphs.append(ReasoningGraph(edges=edges, claims=claims, problem=question))
    return graphs, [np.array([is_right(c) for c in g.claims]) for g in graphs]


def describe(columns, labels, seconds):
    """Return how well each column orders a false and a true claim."""
    false = ~np.concatenate(labels)
    lines = [
        f"SmolLM2-135M-Instruct, {len(labels)} answers with {len(false)} claims, {false.sum()} "
        "of them false;",
        f"one pass takes {seconds:.2f} s of processor time per answer",
        "",
        "column            a false claim has the larger value",
    ]
    for name, values in zip(columns.feature_names, columns.features.T, strict=True):
        lines.append(f"{name:16}  {100 * roc_auc_score(false, values):3.0f} % of pairs")
    return lines


def compare(structure, together, labels, n_splits):
    """Return what filters keep of the answers that they were not fitted on."""
    lines = [
        f"fitted on half of the answers, mean of {n_splits} splits",
        "alpha  columns           true claims kept  answers with a false claim",
    ]
    splits = list(ShuffleSplit(n_splits, test_size=0.5, random_state=0).split(labels))
    for alpha in ALPHAS:
        for name, X in (("edges", structure), ("edges, Surprisal", together)):
            kept, spoiled = np.mean(
                [one_split(X, labels, alpha, *rows) for rows in splits], axis=0
            )
            lines.append(f"{alpha:5.2f}  {name:16}  {kept:16.2f}  {spoiled:24.1%}")
    return lines


def one_split(X, labels, alpha, known, new):
    """Return true claims kept per new answer, and the share of answers with a false claim."""
    cf = CoherentConformalFilter(alpha=alpha, random_state=0)
    cf.fit(X[known], [labels[i] for i in known])
    masks = cf.predict(X[new])
    pairs = [(labels[i], mask) for i, mask in zip(new, masks, strict=True)]
    return (
        np.mean([(right & mask).sum() for right, mask in pairs]),
        np.mean([(~right & mask).any() for right, mask in pairs]),
    )


if __name__ == "__main__":
    main()
