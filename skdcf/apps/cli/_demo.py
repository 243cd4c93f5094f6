"""The command ``demo``: the main job on one screen."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from ... import datasets, estimators, metrics
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ..reporting import write_report
from ._files import show_claims

ALPHAS = (0.02, 0.05, 0.1, 0.2)
_MOST = 200  # test problems; fewer would be better used to calibrate as well
PLAIN, LEARNT = "HardCF", "CoherentConformalFilter"


#: The filters that are compared, from the simplest to the one that learns most.
KINDS = ("IndependentFactuality", PLAIN, LEARNT)
SOURCES = {
    "words": lambda n, seed: datasets.make_word_problems(n, random_state=seed),
    "math": lambda n, seed: datasets.make_reasoning_graphs(n, random_state=seed),
    "felm": lambda n, s: datasets.make_reasoning_graphs(n, "felm", random_state=s),
    "coherent-math": lambda *_: datasets.fetch_coherent_math(),
    "perl": lambda *_: datasets.fetch_perl(),
}


def demo(options):
    """Fit three filters on one half of the problems, and show the other half."""
    # The table shows abstention.
    warnings.simplefilter("ignore", CalibrationWarning)
    problems: Any = SOURCES[options.data](options.n_problems, options.seed)
    graphs = problems.graphs
    labels = problems.labels
    groups = problems.groups
    print(f"{len(graphs)} problems ({options.data}), {graphs.n_claims} claims")
    if graphs.features is None:
        graphs = reasoning_features().fit_transform(graphs)
    cut = GroupShuffleSplit(1, test_size=0.5, random_state=options.seed)
    fit, test = next(cut.split(groups, groups=groups))
    common = {"alpha": options.alpha, "ties": "jitter", "random_state": options.seed}
    filters = {}
    for kind in KINDS:
        filter = getattr(estimators, kind)(**common)
        y = [labels[i] for i in fit]
        filters[kind] = filter.fit(graphs[fit], y, groups=groups[fit])
    new = graphs[test]
    y_new = [labels[i] for i in test]
    alphas = sorted({*ALPHAS, options.alpha})
    evaluate = metrics.leave_one_out if len(test) < _MOST else metrics.evaluate_filter
    reports = {name: evaluate(f, new, y_new, alphas) for name, f in filters.items()}
    for name, report in reports.items():
        print(f"\n{name}\n{report}")
    print("", *sentences(reports, options.alpha), "", sep="\n")
    show_answer(filters[LEARNT], new, y_new)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    page = write_report(
        folder / "report.html", filters[LEARNT], new, y_new, alphas=alphas
    )
    print(
        f"\nwrote {page}, a page that shows what came out, and why claims were dropped"
    )


def sentences(reports, alpha):
    """Say what was promised and what came out."""
    learnt = reports[LEARNT]
    plain = reports[PLAIN]
    j = int(np.flatnonzero(learnt.alpha == alpha)[0])
    low, high = learnt.coverage_band[j]
    yield (
        f"Promised: in at least {1 - alpha:.0%} of the answers nothing false is kept, on "
        f"average over calibration sets; with this many problems {low:.1%} to {high:.1%}."
    )
    yield (
        f"Came out: {learnt.coverage[j]:.1%}, with {learnt.retention[j]:.2f} true and "
        f"{learnt.false_kept[j]:.2f} false claims kept per answer ({PLAIN}: "
        f"{plain.retention[j]:.2f} and {plain.false_kept[j]:.2f}; errors of the true ones "
        f"{learnt.retention_error[j]:.2f} and {plain.retention_error[j]:.2f})."
    )


def show_answer(filter, graphs, labels):
    """Print one answer, of about 8 claims, of which true ones are kept and false ones not."""
    masks = filter.predict(graphs)

    def instructive(i):
        mask = masks[i]
        true = np.asarray(labels[i]) == 1
        typical = not (mask & ~true).any() and (~true).any()
        return typical, bool((mask & true).any()), -abs(8 - len(mask)), mask.sum()

    i = max(range(len(masks)), key=instructive)
    print(f"One answer (kept at alpha = {filter.alpha:g}):")
    show_claims(graphs[i], masks[i], labels[i])
