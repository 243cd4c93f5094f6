"""The command ``demo``, which compares filters on example data."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from ... import datasets, evaluation, presets
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ...guarantees import NoFalseClaim
from ..reporting import write_report
from ._files import show_claims

LEARNT = "CoherentConformalFilter"
#: The filters to compare, from the simplest to the most complex.
KINDS = ("IndependentFactuality", "HardCF", LEARNT)
SOURCES = {
    "words": lambda n, seed: datasets.make_word_problems(n, random_state=seed),
    "math": lambda n, seed: datasets.make_reasoning_graphs(n, random_state=seed),
    "felm": lambda *_: datasets.fetch_felm(),
    "coherent-math": lambda *_: datasets.fetch_coherent_math(),
}


def demo(options):
    """Fit filters on one half of the problems, and evaluate them on the other half."""
    # The printed table already contains the information in the warning.
    warnings.simplefilter("ignore", CalibrationWarning)
    alpha = options.alpha
    problems: Any = SOURCES[options.data](options.n_problems, options.seed)
    graphs = problems.graphs
    labels = problems.labels
    groups = problems.groups
    if graphs.features is None:
        graphs = reasoning_features().fit_transform(graphs)
    cut = GroupShuffleSplit(1, test_size=0.5, random_state=options.seed)
    fit, test = next(cut.split(groups, groups=groups))
    graphs_to_fit = graphs[fit]
    y_to_fit = [labels[i] for i in fit]
    test_graphs = graphs[test]
    y_test = [labels[i] for i in test]
    settings = {"alpha": alpha, "ties": "jitter", "random_state": options.seed}
    filters = {
        kind: getattr(presets, kind)(**settings).fit(
            graphs_to_fit, y_to_fit, groups=groups[fit]
        )
        for kind in KINDS
    }
    print(
        f"Three filters are trained and calibrated on {len(fit)} labelled answers "
        f"({options.data}) and evaluated on {len(test)} other answers.\n"
        f"alpha = {alpha:g}: a false claim may be kept in at most {100 * alpha:g} % of the "
        "answers.\n"
    )
    reports = {
        name: evaluation.evaluate_filter(f, test_graphs, y_test, [alpha])
        for name, f in filters.items()
    }
    print(*_table(reports), sep="\n")
    passing = getattr(presets, LEARNT)(guarantee=NoFalseClaim(show="auto"), **settings)
    passing.fit(graphs_to_fit, y_to_fit, groups=groups[fit])
    print(f'\nWith show="auto": {passing.describe()}.')
    report = evaluation.evaluate_filter(passing, test_graphs, y_test, [alpha])
    print(
        f"Observed: {report.passing[0]:.0%} of the new answers pass. The filter "
        f"kept a false claim in {1 - report.coverage[0]:.1%} of the passing "
        "answers."
    )
    print()
    show_answer(filters[LEARNT], test_graphs, y_test)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    page = write_report(folder / "report.html", filters[LEARNT], test_graphs, y_test)
    print(f"\nThe full report with the reasons for dropped claims is in {page}")


def _table(reports):
    """Yield the lines of a table with one row per filter."""
    first = next(iter(reports.values()))
    columns = "true claims kept", "answers shown", "wrong answers", "false among shown"
    yield f"{'filter':24}" + "".join(f"{column:>19}" for column in columns)
    yield (
        f"{'none':24}{'all':>19}{'100 %':>19}" + 2 * f"{100 * first.unfiltered:17.1f} %"
    )
    for name, report in reports.items():
        kept = f"{report.retention[0]:.2f} ± {report.retention_error[0]:.2f}"
        shares = report.shown[0], 1 - report.coverage[0], report.false_among_shown[0]
        yield f"{name:24}{kept:>19}" + "".join(
            f"{100 * share:17.1f} %" for share in shares
        )


def show_answer(filter, graphs, labels):
    """Print an example of an answer in which only the false claims are dropped."""
    masks = filter.predict(graphs)

    def instructive(i):
        mask = masks[i]
        true = np.asarray(labels[i]) == 1
        typical = not (mask & ~true).any() and (~true).any()
        return typical, bool((mask & true).any()), -abs(8 - len(mask)), mask.sum()

    i = max(range(len(masks)), key=instructive)
    print(f"One answer, filtered at alpha = {filter.alpha:g}:")
    show_claims(graphs[i], masks[i], labels[i])
