"""How often a false claim is kept if answers occur several times, and how often a fit is refused.

Each case generates labelled answers of which many are copies, and new answers. Printed are the
share of the new answers in which a false claim is kept (a refusal counts as nothing kept), and the
share of the draws that are refused. Run in two checkouts to compare them::

    python -m benchmarks.guarantees.copies --draws 200
    PYTHONPATH=CHECKOUT python benchmarks/guarantees/copies.py --draws 200
"""

import argparse
import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph

ALPHA = 0.1
N_NEW = 200


def draw(rng, n):
    """Return columns (n, 2 claims, 3 columns) and labels of answers to different questions."""
    columns = rng.normal(size=(n, 2, 3))
    chance = 1 / (1 + np.exp(-1.5 - columns[:, :, 0]))
    return columns, (rng.uniform(size=(n, 2)) < chance).astype(int)


def graphs_of(columns, questions=None, texts=None):
    """Return graphs of the columns, with questions and claim texts if these are given."""
    return [
        ReasoningGraph(
            row,
            (),
            problem=None if questions is None else questions[i],
            claims=None if texts is None else [f"{texts[i]} {k}" for k in range(2)],
        )
        for i, row in enumerate(columns)
    ]


def reworded(rng, scorer):
    """The log holds each answer under two wordings of its question."""
    columns, labels = draw(rng, 60)
    rows = np.repeat(np.arange(60), 2)
    questions = [
        f"{'Please answer: ' * (i % 2)}question {row}" for i, row in enumerate(rows)
    ]
    filter = scorer()
    filter.fit(graphs_of(columns[rows], questions, rows), labels[rows])
    new, truth = draw(rng, N_NEW)
    names = np.arange(1000, 1000 + N_NEW)
    return filter, graphs_of(new, [f"question {i}" for i in names], names), truth


def without_texts(rng, scorer):
    """Three copies of each row of columns, without texts and questions."""
    columns, labels = draw(rng, 60)
    rows = np.repeat(np.arange(60), 3)
    filter = scorer().fit(graphs_of(columns[rows]), labels[rows])
    new, truth = draw(rng, N_NEW)
    return filter, graphs_of(new), truth


def calibrated_on_float32(rng, scorer):
    """Calibrates on the training rows as float32 numbers."""
    columns, labels = draw(rng, 100)
    filter = scorer(calibration_size=0).fit(graphs_of(columns), labels)
    filter.calibrate(graphs_of(columns.astype(np.float32)), labels)
    new, truth = draw(rng, N_NEW)
    return filter, graphs_of(new), truth


def question_dropped(rng, scorer):
    """Calibrates on training answers whose questions are left out."""
    columns, labels = draw(rng, 100)
    texts = np.arange(100)
    filter = scorer(calibration_size=0)
    filter.fit(graphs_of(columns, [f"question {i}" for i in texts], texts), labels)
    filter.calibrate(graphs_of(columns, None, texts), labels)
    new, truth = draw(rng, N_NEW)
    return filter, graphs_of(new, None, texts[-1] + 1 + np.arange(N_NEW)), truth


CASES = (reworded, without_texts, calibrated_on_float32, question_dropped)
SCORERS = {
    "forest": lambda **settings: HardCF(
        RandomForestClassifier(20, random_state=0), alpha=ALPHA, **settings
    ),
    "default": lambda **settings: CoherentConformalFilter(alpha=ALPHA, **settings),
}


def one_draw(case, scorer, seed):
    """Return the share of new answers in which a false claim is kept, or None if refused."""
    rng = np.random.default_rng(seed)
    try:
        filter, new, truth = case(rng, scorer)
    except ValueError:
        return None
    masks = filter.predict(new)
    return np.mean(
        [bool((row[mask] == 0).any()) for row, mask in zip(truth, masks, strict=True)]
    )


def main():
    """Print the rates of each case and scorer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    n_draws = parser.parse_args().draws
    print(f"alpha = {ALPHA}, {n_draws} draws")
    for case in CASES:
        for name, scorer in SCORERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rates = [one_draw(case, scorer, seed) for seed in range(n_draws)]
            wrong = np.array([rate or 0.0 for rate in rates])
            refused = np.mean([rate is None for rate in rates])
            error = wrong.std() / np.sqrt(n_draws)
            print(
                f"{case.__name__:22} {name:8} wrong {wrong.mean():.3f} ± {error:.3f}, "
                f"refused {refused:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
