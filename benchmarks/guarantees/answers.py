"""Measure the error rate for one answer to a new question with several answers per question.

    python -m benchmarks.guarantees.answers [--sets 2000] [--seconds 500] [--output FILE]

A cell draws calibration sets of questions with 1 to 10 answers each. The answers to a question are
either near-copies or independent given the question. Under "more", hard or easy questions have more
answers. A filter is calibrated on each set in three ways: for all problems together, for each of
two parts, and with ``delta=``. The part depends on the answer, and the second part contains more
hard answers. The miss is the probability that a false claim is kept in one answer to a new
question. The mean miss over the sets is compared with alpha. With ``delta=``, the proportion of
sets with a miss above alpha is compared with delta. For comparison, the output also contains the
miss of a threshold that counts every answer.

A row passes if its miss exceeds the bound by at most three standard errors. Finished cells are
cached in FILE. The exit code is 1 if a row fails.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import RESULTS
from skdcf import HardCF
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_threshold


def in_part(batch):
    """The part of each answer: the first column."""
    return batch.features[:, 0] > 0


QUESTIONS, DELTA, BLOCK, NEW = 60, 0.1, 100, 1_000_000
WAYS = {
    "one": NoFalseClaim(),
    "by": NoFalseClaim(by=in_part),
    "delta": NoFalseClaim(delta=DELTA),
}
ALPHAS, MORE = (0.05, 0.1, 0.2), ("same", "hard", "easy")
SAVED = RESULTS / "answers.json"


def draw_questions(rng, n, more, largest=10):
    """How easy each question is, and how many answers it has."""
    easy = rng.normal(size=n)
    sizes = rng.integers(1, largest + 1, n)
    if more != "same":
        many = easy < 0 if more == "hard" else easy > 0
        sizes = np.where(many, np.maximum(sizes, largest // 2), (sizes + 4) // 5)
    return easy, sizes


def draw_answers(rng, easy, question, copies):
    """A table of part, confidence and four columns of noise, and what is true.

    Near-copies share all but a thousandth of their columns, and their label.
    """

    def own(*shape):
        if not copies:
            return rng.normal(size=(len(question), *shape))
        whole = rng.normal(size=(len(easy), *shape))[question]
        return whole + 1e-3 * rng.normal(size=whole.shape)

    level = easy[question]
    part = rng.random(len(question)) < chance(-level)
    luck = rng.random(len(easy))[question] if copies else rng.random(len(question))
    return np.column_stack([part, level + own(), own(4)]), luck < chance(level)


def chance(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def new_answers(rng, more, copies, part=None):
    """Sorted risks of the false ones among one answer to each of many new questions.

    Of a part: those questions that have an answer in it, and one such answer.
    """
    easy, sizes = draw_questions(rng, NEW, more)
    if part is not None:
        own = chance(-easy) if part else chance(easy)
        easy = easy[rng.random(NEW) < 1 - (1 - own) ** sizes]
    table, true = draw_answers(rng, easy, np.arange(len(easy)), copies)
    return np.sort(-table[~true, 1]), len(easy)


def missed(threshold, new):
    """The share of the new answers of which a false claim is kept."""
    risks, n = new
    return np.searchsorted(risks, threshold) / n


def cell(alpha, copies, more, n_sets):
    """Mean miss of each way to calibrate, and its standard error.

    All sets of a block calibrate at once, each as a group of its own. The first one of each
    block calibrates alone, too, and has to have the same threshold.
    """
    rng, found = np.random.default_rng(0), {}
    new, *of_part = (new_answers(rng, more, copies, part) for part in (None, 0, 1))
    for first in range(0, n_sets, BLOCK):
        count = min(BLOCK, n_sets - first)
        easy, sizes = draw_questions(rng, QUESTIONS * count, more)
        question = np.repeat(np.arange(len(easy)), sizes)
        X, true = draw_answers(rng, easy, question, copies)
        number, own = question // QUESTIONS, X[:, 0].astype(int)
        some = HardCF(1, alpha=alpha).fit(X[number == 0], true[number == 0])
        part = some.calibration_part(X, true, groups=question)
        for name, guarantee in WAYS.items():
            groups = 2 * number + own if name == "by" else number
            thresholds = thresholds_of(part, groups, guarantee, alpha)
            compare_alone(X, true, question, alpha, guarantee, thresholds)
            for group, t in thresholds.items():
                share = missed(t, of_part[group % 2] if name == "by" else new)
                key = f"by {group % 2}" if name == "by" else name
                found.setdefault(key, []).append(share)
        for i in range(count):
            scores = np.sort(part.scores[number == i])
            t = conformal_threshold(scores, alpha)
            found.setdefault("every", []).append(missed(t, new))
    out = {name: said(values, NEW) for name, values in found.items()}
    above = np.mean(np.array(found["delta"]) > alpha)
    return out | {"delta": [above, np.sqrt(above * (1 - above) / n_sets)]}


def thresholds_of(part, groups, guarantee, alpha):
    """The threshold of each group of problems, by number."""
    chosen, _ = replace(part, groups=groups.tolist()).choose(guarantee, alpha, True)
    order = np.lexsort((part.scores[chosen], groups[chosen]))
    scores, groups = part.scores[chosen][order], groups[chosen][order]
    names, first = np.unique(groups, return_index=True)
    cuts = zip(names.tolist(), np.split(scores, first[1:]), strict=True)
    delta = guarantee.delta
    return {name: conformal_threshold(own, alpha, delta) for name, own in cuts}


def compare_alone(X, true, question, alpha, guarantee, thresholds):
    """The first set has the threshold that it has by itself."""
    rows = question < QUESTIONS
    cf = HardCF(1, alpha=alpha, guarantee=guarantee)
    cf.fit(X[rows], true[rows], groups=question[rows])
    found = [cf.calibration_] if guarantee.by is None else cf.calibration_.parts
    names = [0] if guarantee.by is None else map(int, cf.calibration_.names)
    for name, own in zip(names, found, strict=True):
        np.testing.assert_allclose(own.threshold(alpha), thresholds[name], rtol=1e-9)


def said(misses, n_new):
    """Mean miss and its standard error, of the sets and of the new answers."""
    mean = np.mean(misses)
    return [mean, np.sqrt(np.var(misses) / len(misses) + mean * (1 - mean) / n_new)]


def run(n_sets, path, end):
    """Compute the cells that are missing, until the time is over."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    if kept.get("sets") != n_sets:
        kept = {"sets": n_sets, "cells": {}}
    names = {
        f"{'near-copies' if copies else 'independent'}, {more}": (copies, more)
        for copies in (True, False)
        for more in MORE
    }
    for name, kind in names.items():
        for alpha in ALPHAS:
            if f"{alpha} {name}" not in kept["cells"] and time.monotonic() < end:
                kept["cells"][f"{alpha} {name}"] = cell(alpha, *kind, n_sets)
                path.write_text(json.dumps(kept, indent=1) + "\n")
    return kept


def table(kept):
    """All cells as lines of text, and how many rows do not hold."""
    n_sets = kept["sets"]
    wrong = 0
    lines = [
        f"{n_sets:,} calibration sets of {QUESTIONS} questions a cell; delta = {DELTA}",
        f"{'alpha':5}  {'answers, more of':20}  {'one answer':15}  {'the worse part':15}"
        f"  {'delta: sets':13}  every answer",
    ]
    for key, found in kept["cells"].items():
        alpha, name = key.split(" ", 1)
        rows = {"one": float(alpha), "by 0": float(alpha), "by 1": float(alpha)}
        rows["delta"] = DELTA
        bad = [k for k, bound in rows.items() if found[k][0] > bound + 3 * found[k][1]]
        wrong += len(bad)
        found["by"] = max(found["by 0"], found["by 1"])
        texts = [
            "{:.4f} +- {:.4f}".format(*found.get(k, (np.nan, np.nan)))
            for k in ("one", "by", "delta")
        ]
        lines.append(
            f"{alpha:5}  {name:20}  {texts[0]}  {texts[1]}  {texts[2][:6]:13}"
            f"  {found['every'][0]:12.4f}" + "  TOO HIGH: " * bool(bad) + ", ".join(bad)
        )
    return "\n".join([*lines, f"rows above their bound: {wrong or 'none'}"]), wrong


def main():
    """Compute, print, and keep the table beside the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--output", type=Path, default=SAVED)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    kept = run(options.sets, options.output, time.monotonic() + options.seconds)
    text, wrong = table(kept)
    print(text)
    options.output.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
