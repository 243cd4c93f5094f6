"""The main job on one screen: ``python -m skdcf``."""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

from . import CoherentConformalFilter, HardCF, IndependentFactuality
from .exceptions import CalibrationWarning
from .metrics import evaluate_filter, leave_one_out

SOURCES = ("math", "felm", "coherent-math", "perl")


def main(argv: list[str] | None = None) -> int:
    """Calibrate filters, print what they keep and draw it.

    Parameters
    ----------
    argv : list of str, optional
        Command line; None takes it from the process.

    Returns
    -------
    int
        0, or 2 if the data cannot be had.
    """
    options = _parser().parse_args(argv)
    warnings.simplefilter("ignore", CalibrationWarning)  # the table shows abstention
    try:
        data = load(options.data, options.n_problems, options.seed)
    except (ImportError, OSError, ValueError) as error:
        print(f"skdcf: {error}", file=sys.stderr)
        return 2
    n_problems, n_claims = len(data.graphs), data.graphs.n_claims
    print(f"{n_problems} problems ({options.data}), {n_claims} claims\n")
    fit, test = halves(data.groups, options.seed)
    reports, filter = compare(data, fit, test, options.alpha, options.seed)
    for name, report in reports.items():
        print(f"{name}\n{report}\n")
    shown = show_problem(filter, data, test)
    write_pictures(reports, shown, Path(options.output))
    if options.data in SOURCES[:2]:
        print("On real data: python -m skdcf --data coherent-math   (or --data perl)")
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="skdcf", description=__doc__)
    parser.add_argument("--data", choices=SOURCES, default="math")
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--n-problems", type=int, default=2000, help="if generated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="demo_output", help="folder for pictures")
    return parser


def load(source, n_problems, seed):
    """Problems with features, their labels and groups."""
    from . import datasets

    if source in ("math", "felm"):
        return datasets.make_reasoning_graphs(
            n_problems, kind=source, random_state=seed
        )
    if source == "coherent-math":
        return datasets.fetch_coherent_math()
    from .features import reasoning_features

    data = datasets.fetch_perl()
    data.graphs = reasoning_features().fit_transform(data.graphs)
    return data


def filters(alpha, seed):
    """The filters that the demonstration compares, by name."""
    common = {"alpha": alpha, "ties": "jitter", "random_state": seed}
    return {
        "IndependentFactuality": IndependentFactuality(**common),
        "HardCF": HardCF(**common),
        "CoherentConformalFilter": CoherentConformalFilter(**common),
    }


def compare(data, fit, test, alpha, seed):
    """Reports on the half of the problems that is new to the filters, and the last one."""
    alphas = sorted({0.02, 0.05, alpha, 0.2})
    out = {}
    for name, filter in filters(alpha, seed).items():
        filter.fit(data.graphs[fit], [data.labels[i] for i in fit], data.groups[fit])
        held = data.graphs[test], [data.labels[i] for i in test]
        few = len(test) < 200  # then every problem is worth calibrating on
        out[name] = (leave_one_out if few else evaluate_filter)(filter, *held, alphas)
    return out, filter


def halves(groups, seed):
    """Positions of two random halves that share no question."""
    code = np.unique(groups, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(code.max() + 1)
    first = np.isin(code, order[: len(order) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def show_problem(filter, data, test):
    """Print one problem with its kept and dropped claims."""
    masks = filter.predict(data.graphs[test])
    truth = [np.asarray(data.labels[j]) == 1 for j in test]
    i = max(range(len(test)), key=lambda j: _instructive(masks[j], truth[j]))
    graph, mask, label = data.graphs[int(test[i])], masks[i], truth[i]
    title = graph.problem or graph.id or f"problem {test[i]}"
    print(f"{type(filter).__name__}, alpha = {filter.alpha:g}: {title}")
    for v in range(graph.n_claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
        text = graph.claims[v] if graph.claims else f"builds on {parents or 'nothing'}"
        verdict = "kept   " if mask[v] else "dropped"
        truth = "true " if label[v] else "FALSE"
        print(f"  {verdict}  ({truth})  claim {v}: {' '.join(text.split())[:70]}")
    print()
    return graph, mask, label


def _instructive(mask, truth):
    """Kept true claims next to dropped false ones, in a problem of about 8 claims."""
    typical = not (mask & ~truth).any() and (~truth).any()
    return typical, bool((mask & truth).any()), -abs(8 - len(mask)), mask.sum()


def write_pictures(reports, shown, folder):
    """Save both pictures, or say what is missing for that."""
    try:
        import matplotlib
    except ImportError:
        print("No pictures: pip install skdcf[plot]")
        return
    matplotlib.use("Agg")
    from .plots import FilterReportDisplay, ReasoningGraphDisplay

    folder.mkdir(parents=True, exist_ok=True)
    graph, mask, label = shown
    pictures = {
        "coverage_and_retention.png": FilterReportDisplay.from_reports(reports),
        "one_problem.png": ReasoningGraphDisplay.from_graph(
            graph, kept=mask, labels=label
        ),
    }
    for name, display in pictures.items():
        display.figure_.savefig(folder / name, dpi=120)
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    sys.exit(main())
