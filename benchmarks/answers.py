"""Several answers to a question: what one answer to a new question misses.

    python benchmarks/answers.py [--sets 2000]

A cell draws calibration sets of questions with 1 to 10 answers each. Answers are near-copies of
one another or independent given the question, and hard or easy questions have more answers
where "more" says so. ``HardCF.fit(X, y, groups=...)`` calibrates; one answer to each of 20,000 new
questions is then kept with a false claim in a share of cases, the miss. It is compared with
alpha: its mean over sets (with ``by=`` in each of two parts), and with ``delta=`` the share of
sets that miss more than alpha. What every answer counted would miss stands beside it.
"""

import argparse
import warnings

import numpy as np

from skdcf import HardCF
from skdcf.guarantees import NoFalseClaim
from skdcf.ops.conformal import conformal_threshold

QUESTIONS, DELTA, POOL = 60, 0.1, 20_000


def in_part(batch):
    """The part of each question: the second column."""
    return batch.features[:, 1] > 0


def draw(rng, n, copies, more, largest=10):
    """Scores, parts and questions of the answers to n questions."""
    hard = rng.normal(size=n)
    sizes = rng.integers(1, largest + 1, n)
    if more != "same":
        many = hard < 0 if more == "hard" else hard > 0  # low scores are hard questions
        sizes = np.where(many, np.maximum(sizes, largest // 2), (sizes + 4) // 5)
    question = np.repeat(np.arange(n), sizes)
    own = rng.normal(size=len(question)) * (0.01 if copies else 1.0)
    part = (rng.random(n) < 0.5)[question]
    return (hard[question] + own), part, question


def one_each(rng, scores, part, question):
    """One answer to each question, drawn blindly."""
    order = rng.permutation(len(question))
    rows = order[np.unique(question[order], return_index=True)[1]]
    return scores[rows], part[rows]


def run(rng, n_sets, alpha, copies, more):
    """Mean miss, with its standard error, of each way to calibrate."""
    pool = one_each(rng, *draw(rng, POOL, copies, more))
    filters = {
        "one answer": HardCF(0, alpha=alpha),
        "by": HardCF(0, alpha=alpha, guarantee=NoFalseClaim(by=in_part)),
        "delta": HardCF(0, alpha=alpha, guarantee=NoFalseClaim(delta=DELTA)),
    }
    found = {name: [] for name in (*filters, "every answer")}
    for _ in range(n_sets):
        scores, part, question = draw(rng, QUESTIONS, copies, more)
        X, y = np.column_stack([-scores, part]), np.zeros(len(scores), dtype=int)
        for name, cf in filters.items():
            cf.fit(X, y, groups=question)
            if name == "by":
                parts = zip(cf.calibration_.names, cf.calibration_.parts, strict=True)
                thresholds = {k: p.threshold(alpha) for k, p in parts}
                found[name] += [
                    np.mean(pool[0][pool[1] == k] < t) for k, t in thresholds.items()
                ]
            else:
                found[name].append(np.mean(pool[0] < cf.threshold_))
        all_of_them = conformal_threshold(np.sort(scores), alpha)
        found["every answer"].append(np.mean(pool[0] < all_of_them))
    return {name: np.array(values) for name, values in found.items()}


def main():
    """Print a table with a row per cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    n_sets = parser.parse_args().sets
    warnings.simplefilter("ignore", UserWarning)
    print(
        f"{n_sets:,} calibration sets of {QUESTIONS} questions a cell; delta = {DELTA}"
    )
    print("alpha  answers      more  one answer      by              ", end="")
    print("delta: sets above  every answer")
    for alpha in (0.05, 0.1, 0.2):
        for copies in (True, False):
            for more in ("same", "hard", "easy"):
                rng = np.random.default_rng(0)
                found = run(rng, n_sets, alpha, copies, more)
                said = [
                    f"{found[k].mean():.4f} +- {found[k].std() / np.sqrt(n_sets):.4f}"
                    for k in ("one answer", "by")
                ]
                above = np.mean(found["delta"] > alpha)
                kind = "copies" if copies else "independent"
                print(
                    f"{alpha:5}  {kind:11}  {more:4}  {said[0]}  "
                    f"{said[1]}  {above:17.4f}  {found['every answer'].mean():12.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
