"""How often a false claim is kept in cases that break the assumptions of a guarantee.

Each case generates labelled and new answers. The error rate is bounded by .1 (by .3 for `release`).
The program prints the share of new answers in which a false claim is kept (a refusal counts as
nothing kept), and the shares of draws that are refused or cause a warning. In the first eight
cases, many answers are copies. In "row orders", the first share is that of the draws in which two
orders of the same rows result in different thresholds. In the next four cases, the precision
differs between calibration and use. Then a search chooses a column or a level with the calibration
labels. "release, harder group" is the rate among the shown answers of the harder of two groups. In
the last case, the filter is loaded from the file given by --file, which the first run writes. To
compare two checkouts, run the program in both with the same file::

    PYTHONPATH=CHECKOUT python benchmarks/guarantees/faults.py --draws 200 --file FILE
    python -m benchmarks.guarantees.faults --draws 200 --file FILE
"""

import argparse
import warnings
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph, load, save
from skdcf.choosing import release
from skdcf.evaluation import CalibratedSearch
from skdcf.exceptions import GuaranteeWarning
from skdcf.guarantees import NoFalseClaim

ALPHA = 0.1
N_NEW = 200


def draw(rng, n):
    """Return columns (n, 2 claims, 3 columns) and labels of answers to different questions."""
    columns = rng.normal(size=(n, 2, 3))
    chance = 1 / (1 + np.exp(-1.5 - columns[:, :, 0]))
    return columns, (rng.uniform(size=(n, 2)) < chance).astype(int)


def graphs_of(columns, questions=None, texts=None, kinds=None):
    """Return graphs of the columns, with questions, claim texts and kinds if these are given."""
    return [
        ReasoningGraph(
            row,
            (),
            problem=None if questions is None else questions[i],
            claims=None if texts is None else [f"{texts[i]} {k}" for k in range(2)],
            metadata=None if kinds is None else {"kind": kinds[i]},
        )
        for i, row in enumerate(columns)
    ]


def forest(**settings):
    """A forest, which remembers the answers that it was trained on."""
    model = RandomForestClassifier(20, random_state=0)
    return HardCF(model, alpha=ALPHA, random_state=0, **settings)


def default(**settings):
    """The default filter."""
    return CoherentConformalFilter(alpha=ALPHA, random_state=0, **settings)


def reworded(rng, make):
    """The log holds each answer under two wordings of its question."""
    columns, labels = draw(rng, 60)
    rows = np.repeat(np.arange(60), 2)
    questions = [
        f"{'Please answer: ' * (i % 2)}question {row}" for i, row in enumerate(rows)
    ]
    cf = make().fit(graphs_of(columns[rows], questions, rows), labels[rows])
    new, truth = draw(rng, N_NEW)
    names = np.arange(1000, 1000 + N_NEW)
    return cf.predict(graphs_of(new, [f"question {i}" for i in names], names)), truth


def without_texts(rng, make):
    """Three copies of each row of columns, without texts and questions."""
    columns, labels = draw(rng, 60)
    rows = np.repeat(np.arange(60), 3)
    cf = make().fit(graphs_of(columns[rows]), labels[rows])
    new, truth = draw(rng, N_NEW)
    return cf.predict(graphs_of(new)), truth


def calibrated_on_float32(rng, make):
    """Calibrates on the training rows as float32 numbers."""
    columns, labels = draw(rng, 100)
    cf = make(calibration_size=1).fit(graphs_of(columns), labels)
    cf.calibrate(graphs_of(columns.astype(np.float32)), labels)
    new, truth = draw(rng, N_NEW)
    return cf.predict(graphs_of(new)), truth


def question_dropped(rng, make):
    """Calibrates on training answers whose questions are left out."""
    columns, labels = draw(rng, 100)
    texts = np.arange(100)
    cf = make(calibration_size=1)
    cf.fit(graphs_of(columns, [f"question {i}" for i in texts], texts), labels)
    cf.calibrate(graphs_of(columns, None, texts), labels)
    new, truth = draw(rng, N_NEW)
    return cf.predict(graphs_of(new, None, 100 + np.arange(N_NEW))), truth


def row_orders(rng, cf):
    """Counts a draw as wrong if two orders of the same rows result in different thresholds.

    Each question has three answers with equal texts and different columns.
    """
    columns, labels = draw(rng, 180)
    names = np.arange(180) // 3
    graphs = graphs_of(columns, [f"question {i}" for i in names], names)
    first, second = (
        cf.fit([graphs[i] for i in order], labels[order]).threshold_
        for order in (range(180), rng.permutation(180))
    )
    return [np.array([first != second])], [np.zeros(1)]


def rounded(rng, setting):
    """Calibrates and filters scores of a narrow range with a precision each."""
    before, after, noise = setting

    def answers(n):
        return 0.9001 + noise(rng, (n, 2, 1)), (rng.random((n, 2)) < 0.8).astype(int)

    known, labels = answers(200)
    cf = HardCF(0, alpha=ALPHA).fit(graphs_of(before(known)), labels)
    new, truth = answers(N_NEW)
    return cf.predict(graphs_of(after(new))), truth


def normal(width):
    """Return a function that draws normal numbers."""
    return lambda rng, size: rng.normal(0, width, size)


def below(width):
    """Return a function that draws negative numbers, most of which are close to 0."""
    return lambda rng, size: -rng.exponential(width, size)


def bfloat16(values):
    """Round to the upper 16 bits of a float32."""
    bits = values.astype(np.float32).view(np.uint32) + 0x8000 & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def searched(rng, search):
    """Picks one of 21 columns without information with the labels of 60 answers."""
    known, labels = rng.normal(size=(60, 2, 21)), rng.random((60, 2)) < 0.8
    new, truth = rng.normal(size=(N_NEW, 2, 21)), rng.random((N_NEW, 2)) < 0.8
    search.fit(graphs_of(known), labels.astype(int))
    return search.predict(graphs_of(new)), truth


def grid(**values):
    """Return a search of scikit-learn."""
    return GridSearchCV(HardCF(0, alpha=ALPHA), values, cv=5, error_score="raise")


def harder_group(rng, show):
    """Shows a batch of two kinds of answers, in one of which most claims are false."""
    cf = HardCF(0, guarantee=NoFalseClaim(by="kind"))
    kinds = ["easy", "hard"] * N_NEW

    def answers():
        columns = rng.normal(size=(2 * N_NEW, 2, 1))
        labels = rng.random((2 * N_NEW, 2)) < [[0.97], [0.5]] * N_NEW
        return graphs_of(columns + labels[..., None], kinds=kinds), labels

    cf.fit(*answers())
    new, truth = answers()
    masks, hard = show(cf, new, 0.3), np.arange(1, 2 * N_NEW, 2)
    shown = [i for i in hard if masks[i].any()]
    return masks[shown], truth[shown]


def from_file(rng, path):
    """Filters answers without alternatives, for which the filter was not calibrated.

    Their scores carry no information. The file is written if it does not exist.
    """
    if not path.exists():
        columns, labels = draw(rng, 500)
        known = [g.replace(alternatives=["another"]) for g in graphs_of(columns)]
        save(HardCF(0, alpha=ALPHA).fit(known, labels), path)
    columns, truth = draw(rng, N_NEW)
    return load(path).predict(graphs_of(rng.permutation(columns))), truth


CASES = {
    **{
        f"{case.__name__}, {make.__name__}": (case, make)
        for case in (reworded, without_texts, calibrated_on_float32, question_dropped)
        for make in (forest, default)
    },
    "row orders, column": (row_orders, HardCF(0, alpha=ALPHA)),
    "row orders, forest": (row_orders, forest()),
    "float64, used in float16": (rounded, (np.float64, np.float16, normal(4e-4))),
    "float64, used in bfloat16": (rounded, (np.float64, bfloat16, normal(3e-3))),
    "float16, used in float64": (rounded, (np.float16, np.float64, below(4e-4))),
    "bfloat16, used in float64": (rounded, (bfloat16, np.float64, below(3e-3))),
    "GridSearchCV, columns": (searched, grid(scorer=range(21))),
    "CalibratedSearch, columns": (
        searched,
        CalibratedSearch(grid(scorer=range(21)), random_state=0),
    ),
    "GridSearchCV, alpha": (searched, grid(alpha=[0.05, 0.1, 0.3])),
    "release, harder group": (harder_group, release),
    "filter from a file": (from_file, None),
}


def one_draw(case, setting, seed):
    """Return the share of answers with a false claim (None if refused), and if it is warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            masks, truth = case(np.random.default_rng(seed), setting)
        except ValueError:
            return None, False
    wrong = [(row[mask] == 0).any() for row, mask in zip(truth, masks, strict=True)]
    warned = any(issubclass(w.category, GuaranteeWarning) for w in caught)
    return np.mean(wrong or [0]), warned


def main():
    """Print the rates of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--file", type=Path, default=Path(gettempdir(), "faults.skops"))
    options = parser.parse_args()
    for name in options.only:
        case, setting = CASES[name]
        setting = setting or options.file
        draws = [one_draw(case, setting, seed) for seed in range(options.draws)]
        rates, warned = zip(*draws, strict=True)
        wrong = np.array([rate or 0.0 for rate in rates])
        error = wrong.std() / np.sqrt(options.draws)
        print(
            f"{name:32} wrong {wrong.mean():.3f} ± {error:.3f}, "
            f"refused {np.mean([rate is None for rate in rates]):.2f}, "
            f"warned {np.mean(warned):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
