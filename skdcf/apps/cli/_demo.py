"""The command ``demo``, which compares filters on example data."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from ... import evaluation, presets
from ...datasets import make_word_problems
from ...exceptions import CalibrationWarning
from ...features import reasoning_features
from ...guarantees import NoFalseClaim
from ..reporting import write_report


def demo(options):
    """Fit filters on one half of the problems, and evaluate them on the other half."""
    # The printed table already contains the information in the warning.
    warnings.simplefilter("ignore", CalibrationWarning)
    alpha = options.alpha
    problems: Any = make_word_problems(options.n_problems, random_state=options.seed)
    graphs = reasoning_features().fit_transform(problems.graphs)
    groups = problems.groups
    cut = GroupShuffleSplit(1, test_size=0.5, random_state=options.seed)
    train, test = next(cut.split(groups, groups=groups))
    y_train = [problems.labels[i] for i in train]
    y_test = [problems.labels[i] for i in test]

    def evaluated(kind, **more):
        filter = getattr(presets, kind)(
            alpha=alpha, ties="jitter", random_state=options.seed, **more
        )
        filter.fit(graphs[train], y_train, groups=groups[train])
        return filter, evaluation.evaluate_filter(filter, graphs[test], y_test, [alpha])

    print(
        f"Three filters are trained and calibrated on {len(train)} labelled answers "
        f"(word problems) and evaluated on {len(test)} other answers.\n"
        f"alpha = {alpha:g}: a false claim may be kept in at most {100 * alpha:g} % of the "
        "answers.\n"
    )
    learnt = "CoherentConformalFilter"
    results = {
        kind: evaluated(kind) for kind in ("IndependentFactuality", "HardCF", learnt)
    }
    filter, report = results[learnt]
    print(f"{'':24}  true claims kept  answers shown  wrong answers")
    print(f"{'no filter':24}  {'all':>16}  {'100 %':>13}  {report.unfiltered:>13.1%}")
    for kind, (_, row) in results.items():
        kept = f"{row.retention[0]:.2f} ± {row.retention_error[0]:.2f}"
        wrong = 1 - row.coverage[0]
        print(f"{kind:24}  {kept:>16}  {row.shown[0]:>13.1%}  {wrong:>13.1%}")
    passing, row = evaluated(learnt, guarantee=NoFalseClaim(show="auto"))
    print(
        f'\nWith show="auto": {passing.describe()}.\nObserved: {row.passing[0]:.0%} of the new '
        f"answers pass. The filter kept a false claim in {1 - row.coverage[0]:.1%} of these.\n"
    )
    show_answer(filter, graphs[test], y_test)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    page = write_report(folder / "report.html", filter, graphs[test], y_test)
    print(f"\nThe full report with the reasons for dropped claims is in {page}")


def show_answer(filter, graphs, labels):
    """Print an example of an answer in which only the false claims are dropped."""
    masks = filter.predict(graphs)

    def instructive(i):
        mask = masks[i]
        true = np.asarray(labels[i]) == 1
        typical = not (mask & ~true).any() and (~true).any()
        return typical, bool((mask & true).any()), -abs(8 - len(mask)), mask.sum()

    i = max(range(len(masks)), key=instructive)
    graph = graphs[i]
    print(f"One answer, filtered at alpha = {filter.alpha:g}:")
    print(f"  {graph.problem}")
    rows = zip(graph.claims, masks[i], labels[i], strict=True)
    for number, (claim, keep, label) in enumerate(rows, start=1):
        decision = "kept   " if keep else "dropped"
        truth = "(true) " if label else "(FALSE)"
        print(f"  {decision}  {truth}  {number}. {claim}")
