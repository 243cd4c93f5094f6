"""The command ``demo``: the main job on one screen."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from .. import datasets
from ..estimators import CoherentConformalFilter, HardCF, IndependentFactuality
from ..exceptions import CalibrationWarning
from ..features import reasoning_features
from ..metrics import evaluate_filter, leave_one_out
from ..reporting import write_report
from ._files import show_claims

ALPHAS = (0.02, 0.05, 0.1, 0.2)
_MOST = 200  # test problems of which every one is worth calibrating on, too
PLAIN, LEARNT = "HardCF", "CoherentConformalFilter"


def demo(options):
    """Fit three filters on one half of the problems, and show the other half."""
    warnings.simplefilter("ignore", CalibrationWarning)  # the table shows abstention
    data = SOURCES[options.data](options.n_problems, options.seed)
    print(
        f"{len(data.graphs)} problems ({options.data}), {data.graphs.n_claims} claims"
    )
    fit, test = halves(data.groups, options.seed)
    filters = fit_filters(data, fit, options.alpha, options.seed)
    held = data.graphs[test], [data.labels[i] for i in test]
    alphas = sorted({*ALPHAS, options.alpha})
    evaluate = leave_one_out if len(test) < _MOST else evaluate_filter
    reports = {name: evaluate(f, *held, alphas) for name, f in filters.items()}
    for name, report in reports.items():
        print(f"\n{name}\n{report}")
    print("\n" + "\n".join(describe(reports, options.alpha, len(fit))) + "\n")
    shown = show_answer(filters[LEARNT], *held)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    write_pictures(reports, shown, folder)
    report = write_report(folder / "report.html", filters[LEARNT], *held, alphas=alphas)
    print(f"wrote {report}: what came out, and why claims were dropped; for a browser")


def _words(n_problems, seed):
    data = datasets.make_word_problems(n_problems, random_state=seed)
    return _with_features(data)


def _with_features(data):
    return Bunch(**{**data, "graphs": reasoning_features().fit_transform(data.graphs)})


SOURCES = {
    "words": _words,
    "math": lambda n, seed: datasets.make_reasoning_graphs(n, random_state=seed),
    "felm": lambda n, seed: datasets.make_reasoning_graphs(
        n, "felm", random_state=seed
    ),
    "coherent-math": lambda n, seed: datasets.fetch_coherent_math(),
    "perl": lambda n, seed: _with_features(datasets.fetch_perl()),
}


def fit_filters(data, fit, alpha, seed):
    """The filters that the demonstration compares, by name."""
    common = {"alpha": alpha, "ties": "jitter", "random_state": seed}
    filters = {
        "IndependentFactuality": IndependentFactuality(**common),
        PLAIN: HardCF(**common),
        LEARNT: CoherentConformalFilter(**common),
    }
    labels, groups = [data.labels[i] for i in fit], data.groups[fit]
    return {k: f.fit(data.graphs[fit], labels, groups) for k, f in filters.items()}


def halves(groups, seed):
    """Positions of two random halves that share no question."""
    code = np.unique(groups, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(code.max() + 1)
    first = np.isin(code, order[: len(order) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def describe(reports, alpha, n_fit):
    """What was promised and what came out, in sentences."""
    learnt, plain = reports[LEARNT], reports[PLAIN]
    j = int(np.flatnonzero(learnt.alpha == alpha)[0])
    low, high = learnt.coverage_band[j]
    yield (
        f"Promised: in at least {1 - alpha:.0%} of the answers nothing false is kept, on "
        f"average over calibration sets; with this many problems {low:.1%} to {high:.1%}."
    )
    yield (
        f"Came out: {learnt.coverage[j]:.1%}, with {learnt.retention[j]:.2f} true claims "
        f"kept per answer ({plain.retention[j]:.2f} by {PLAIN})."
    )
    short = plain.retention - learnt.retention
    error = np.hypot(plain.retention_error, learnt.retention_error)
    for i in np.flatnonzero(short > 0):
        chance = short[i] < 2 * error[i]
        reason = "it may be chance" if chance else f"{n_fit} problems teach too little"
        yield (
            f"At alpha = {learnt.alpha[i]:g} {LEARNT} keeps {short[i]:.2f} claims fewer "
            f"than {PLAIN} (standard error {error[i]:.2f}): {reason}."
        )


def show_answer(filter, graphs, labels):
    """Print one answer before and after, and return it with its mask and labels."""
    masks = filter.predict(graphs)
    truth = [np.asarray(y) == 1 for y in labels]
    i = max(range(len(masks)), key=lambda j: _instructive(masks[j], truth[j]))
    graph, mask = graphs[i], masks[i]
    print(f"One answer (kept at alpha = {filter.alpha:g}):")
    show_claims(graph, mask, labels[i])
    print()
    return graph, mask, labels[i]


def _instructive(mask, truth):
    """Kept true claims next to dropped false ones, in a problem of about 8 claims."""
    typical = not (mask & ~truth).any() and (~truth).any()
    return typical, bool((mask & truth).any()), -abs(8 - len(mask)), mask.sum()


def write_pictures(reports, shown, folder):
    """Save both pictures, or say what is missing for that."""
    try:
        import matplotlib
    except ImportError:
        print("No pictures: pip install matplotlib")
        return
    matplotlib.use("Agg")
    from ..plots import FilterReportDisplay, ReasoningGraphDisplay

    graph, mask, label = shown
    pictures = {
        "coverage_and_retention.png": FilterReportDisplay.from_reports(reports),
        "one_answer.png": ReasoningGraphDisplay.from_graph(
            graph, kept=mask, labels=label
        ),
    }
    for name, display in pictures.items():
        display.figure_.savefig(folder / name, dpi=120)
        print(f"wrote {folder / name}")
