"""Measure retention by the number of labelled problems.

    python -m benchmarks.retention.small_samples [--jobs N] [--splits N] [--output DIR]
        [--only NAME]

Each filter is fitted with its defaults on n labelled problems, some of which are used for training
and the others for calibration. The filter is then applied to problems with other questions. Errors
are standard errors over draws of the n problems.
"""

import numpy as np
from sklearn.base import clone

from benchmarks.cells import compute
from benchmarks.methods import AUTO, LOGISTIC, TIES
from benchmarks.real_data import base, load
from benchmarks.saving import SEED, options, wanted, write
from skdcf import CoherentConformalFilter, HardCF
from skdcf.evaluation import coverage_score, retention_score
from skdcf.scorers import ClassifierScorer

SIZES = dict.fromkeys((50, 100, 200, 400, 800, 1600), 20)  # problems: draws
MOST_NEW = 1000  # problems that are filtered in one draw


def filters(alpha):
    """What is fitted on few problems."""
    more = {"alpha": alpha, **TIES}
    return {
        LOGISTIC: HardCF(ClassifierScorer(target="hazard"), **more),
        AUTO: CoherentConformalFilter(**more),
    }


def fitted_cell(filter, X, labels, groups, n, seeds):
    """[true claims kept per problem, coverage] of each draw."""
    rows = []
    for seed in seeds:
        known, new = draw(n, groups, seed)
        cf = clone(filter).set_params(random_state=seed)
        cf.fit(X[known], [labels[i] for i in known], groups[known])
        kept, truth = cf.predict(X[new]), [labels[i] for i in new]
        truth = [np.maximum(y, 0) for y in truth]  # nobody's judgement is not "true"
        rows.append([retention_score(truth, kept), coverage_score(truth, kept)])
    return rows


def draw(n, groups, seed):
    """n problems about half of the questions, and some about the other half.

    Problems are drawn one by one: whole questions would be fewer and more alike.
    """
    rng = np.random.RandomState(seed)
    code = np.unique(groups, return_inverse=True)[1]
    first = rng.permutation(code.max() + 1)[code] <= code.max() // 2
    order = rng.permutation(len(code))
    return order[first[order]][:n], order[~first[order]][:MOST_NEW]


def sources(chosen):
    """Name, problems, labels, groups."""
    for name in ("prmbench", "gsm8k-solutions"):
        data = load(name)
        yield name, base(chosen.output, name, data), data.labels, data.groups


def labels_worth(chosen):
    """True claims kept at alpha 0.05 by the number of labelled problems."""
    rows = []
    for name, X, y, groups in sources(chosen):
        cells = {
            f"{name}/{key}/{n}/{first}": (
                fitted_cell,
                (filter, X, y, groups, n, list(range(first, first + 5))),
            )
            for key, filter in filters(0.05).items()
            for n, draws in SIZES.items()
            for first in range(0, few(draws, chosen), 5)
        }
        found = compute(chosen.output, "labels", cells, chosen.jobs)
        for key in filters(0.05):
            for n, draws in SIZES.items():
                starts = range(0, few(draws, chosen), 5)
                values = [found[f"{name}/{key}/{n}/{first}"] for first in starts]
                about = {"data": name, "filter": key, "n": n, "alpha": 0.05}
                rows.append(about | summary(np.concatenate(values)))
    save("labels", "Gain by the number of labelled problems", rows, chosen)


def few(draws, chosen):
    """Draws, fewer where the command line asks for a quick look."""
    return draws if chosen.splits is None else min(draws, 5 * chosen.splits)


def summary(values):
    """Means and their errors over draws."""
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    names = ("retention", "coverage")
    out = dict(zip(names, mean.tolist(), strict=True)) | {"draws": len(values)}
    return out | {f"{n}_error": float(e) for n, e in zip(names, error, strict=True)}


def save(name, title, rows, chosen):
    """Write and print."""
    write(name, chosen, {"title": title, "rows": rows, "seeds": [SEED]})
    print(f"\n{title}", *rows, sep="\n", flush=True)


def main(chosen):
    """Run and save."""
    if wanted("labels", chosen):
        labels_worth(chosen)


if __name__ == "__main__":
    main(options(__doc__))
