"""What a trained score rests on: the paper's three analyses, beside its tables.

    python benchmarks/understanding.py ablation [--kinds math] [--jobs N] [--output DIR]
    python benchmarks/understanding.py shap
    python benchmarks/understanding.py separation

On generated problems, as many as the paper had: 202 like MATH, 710 like FELM. What is
printed is saved as well, as understanding_NAME.txt.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from paper import ALPHAS, PROBLEMS

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import CalibrationWarning
from skdcf.inspection import (
    ShapReport,
    pooled_shap_values,
    score_separation,
    single_feature_ablation,
)

RESULTS = Path(__file__).resolve().parent / "results"
SINGLE = {
    "reachability": "nx_reachability",
    "claim index": "claim_index",
    "frequency": "frequency-score",
}
TABLED, LINEAR, AUTO = "DCF, tabled settings", "DCF, path relaxation", "auto"

# Printed in arXiv:2604.20098. Claims kept per problem: DCF, reachability, claim index,
# frequency; mean |SHAP| and its deviation; separation, ratio, Cohen's d, overlap.
ABLATION = {
    "math": {
        0.03: (1.76, 1.60, 0.93, 0.47),
        0.04: (2.22, 2.04, 1.19, 0.84),
        0.05: (2.31, 2.16, 1.41, 1.04),
        0.06: (3.56, 2.87, 1.86, 1.49),
        0.07: (3.63, 2.69, 2.54, 1.81),
        0.08: (3.69, 3.26, 2.67, 1.94),
        0.09: (5.57, 3.72, 3.37, 2.20),
        0.10: (5.99, 4.18, 3.62, 2.21),
    },
    "felm": {
        0.01: (0.72, 0.17, 0.24, 0.51),
        0.02: (1.43, 0.31, 0.33, 0.87),
        0.03: (1.46, 0.50, 0.44, 1.27),
        0.04: (1.68, 0.58, 0.61, 1.55),
        0.05: (1.85, 0.73, 0.72, 1.71),
        0.06: (1.92, 0.84, 0.86, 2.04),
        0.07: (1.98, 0.96, 1.05, 2.27),
        0.08: (2.11, 1.05, 1.26, 2.56),
        0.09: (2.76, 1.22, 1.31, 2.72),
        0.10: (2.85, 1.29, 1.50, 2.80),
    },
}
SHAP = {
    "math": {
        "nx_reachability": (0.602, 0.428),
        "claim_index": (0.445, 0.303),
        "frequency-score": (0.180, 0.126),
        "inference_gap_size": (0.124, 0.248),
        "nx_out_degree": (0.060, 0.081),
        "nx_in_degree": (0.038, 0.056),
        "nx_is_source": (0.034, 0.035),
        "problem_relevance": (0.034, 0.032),
        "uses_problem_data": (0.034, 0.041),
        "quadratic_equations": (0.022, 0.020),
    },
    "felm, 7 features": {
        "frequency-score": (0.995, None),
        "nx_reachability": (0.154, None),
        "inference_gap_size": (0.093, None),
    },
    "felm, 20 features": {
        "frequency-score": (0.941, None),
        "claim_index": (0.209, None),
        "nx_reachability": (0.149, None),
    },
}
SEPARATION = {
    0.03: (0.170, 1.21, 0.298, 0.926),
    0.04: (0.040, 0.28, 0.046, 0.962),
    0.05: (0.450, 3.18, 0.468, 0.939),
    0.06: (0.056, 0.40, 0.057, 0.954),
    0.07: (0.535, 3.80, 0.514, 0.882),
    0.08: (0.434, 3.05, 0.574, 0.927),
    0.09: (-0.184, None, -0.192, 0.933),
    0.10: (0.111, 0.79, 0.124, 0.945),
}
SEVEN = (
    "frequency-score",
    "coherent_to_ancestors",
    "inference_gap_size",
    "has_missing_dependencies",
    "nx_pagerank",
    "nx_reachability",
    "nx_out_degree",
)
# Those that the text names; its 20 features leave out "is_well_formed".
LEFT_OUT = ("is_well_formed",)


def problems(kind):
    """Generated problems and labels, as many as the paper had."""
    return make_reasoning_graphs(PROBLEMS[kind], kind, random_state=1, return_X_y=True)


def columns(X, names):
    """The problems with these features only."""
    chosen = [X.feature_names.index(name) for name in names]
    return X.replace_features(X.features[:, chosen], names)


def tabled(kind, alphas):
    """The published procedure: one filter per alpha."""
    return {a: CoherentConformalFilter.from_paper(kind, a) for a in alphas}


def ablation(chosen):
    """20 folds of 70/15/15; beta_mix by cross-validation, per feature, level and fold."""
    for kind in chosen.kinds:
        table = ABLATION[kind]
        X, y = problems(kind)
        least = 1 / round(0.15 * len(X))
        alphas = [a for a in ALPHAS[kind] if a >= least]
        filters = {
            TABLED: tabled(kind, alphas),
            LINEAR: CoherentConformalFilter("linear", ties="jitter"),
            AUTO: CoherentConformalFilter("auto", ties="jitter"),
        }
        chosen.output.mkdir(parents=True, exist_ok=True)
        unfinished = chosen.output / f"understanding_ablation_{kind}.partial"
        report = single_feature_ablation(
            filters,
            X,
            y,
            alphas,
            SINGLE,
            n_jobs=chosen.jobs,
            random_state=0,
            resume=unfinished,  # a run that was stopped goes on where it was
        )
        unfinished.unlink()
        names = report.names
        yield f"{kind.upper()}-like, {len(X)} problems, 20 folds: claims kept per problem,"
        yield "with corrected standard errors, and coverage in %; in brackets the paper's"
        printed = (0, None, None, 1, 2, 3)
        yield " alpha  " + "  ".join(f"{name:>26}" for name in names)
        for j, alpha in enumerate(report.alpha):
            cells = []
            for i, column in enumerate(printed):
                beside = "" if column is None else f" ({table[alpha][column]:.2f})"
                kept, error = report.retention[i, :, j].mean(), report.retention_error
                covered = 100 * report.coverage[i, :, j].mean()
                cells.append(
                    f"{kept:.2f} +- {error[i, j]:.2f}{beside:7} {covered:5.1f}"
                )
            yield f"{alpha:6.2f}  " + "  ".join(f"{cell:>26}" for cell in cells)
        left = [a for a in ALPHAS[kind] if a < least]
        if left:
            yield f"Left out: alpha = {left}, for which 15 % of the problems are too few."
        yield ""


def shap(chosen):
    """8 or 10 levels by 5 splits, 100 claims of background, 500 per model."""
    if "math" in chosen.kinds:
        X, y = problems("math")
        yield from shap_tables("math", "math", X, y, ALPHAS["math"])
    if "felm" not in chosen.kinds:
        return
    X, y = problems("felm")
    low, high = ALPHAS["felm"][:8], ALPHAS["felm"][8:]
    yield from shap_tables("felm, 7 features", "felm", columns(X, SEVEN), y, low)
    kept = tuple(name for name in X.feature_names if name not in LEFT_OUT)
    yield from shap_tables("felm, 20 features", "felm", columns(X, kept), y, high)


def shap_tables(name, kind, X, y, alphas):
    """Both relaxations beside the paper's numbers."""
    linear = CoherentConformalFilter("linear")
    reports = {
        LINEAR: pooled_shap_values(linear, X, y, alphas, random_state=0),
        TABLED: pooled(
            [
                pooled_shap_values(filter, X, y, [alpha], random_state=0)
                for alpha, filter in tabled(kind, alphas).items()
            ]
        ),
    }
    n_models = 5 * len(alphas)
    yield f"{name}: mean |SHAP| and its deviation, {n_models} models; beside it the paper's"
    ranks = {key: np.argsort(report.ranking) for key, report in reports.items()}
    yield f"{'':28}" + "".join(f"{key:>28}" for key in reports) + f"{'paper':>20}"
    for rank, j in enumerate(reports[LINEAR].ranking):
        feature = X.feature_names[j]
        if rank >= 10 and feature not in SHAP[name]:
            continue
        cells = [
            f"{ranks[key][j] + 1:3d}.  {report.mean[j]:.3f} +- {report.deviation[j]:.3f}"
            for key, report in reports.items()
        ]
        mean, deviation = SHAP[name].get(feature, (None, None))
        beside = "" if mean is None else f"{mean:.3f}"
        beside += "" if deviation is None else f" +- {deviation:.3f}"
        yield f"{feature:28}" + "".join(f"{c:>28}" for c in cells) + f"{beside:>20}"
    yield ""


def pooled(reports):
    """One report of the values of all."""
    values, features = (
        np.concatenate([getattr(report, part) for report in reports])
        for part in ("values", "features")
    )
    return ShapReport.from_values(reports[0].feature_names, values, features)


def separation(chosen):
    """20 random splits; z-scores pooled over each learnt score and the frequency."""
    for kind in chosen.kinds:
        X, y = problems(kind)
        alphas = ALPHAS[kind]
        learnt = {
            LINEAR: apart(CoherentConformalFilter("linear"), X, y, alphas),
            AUTO: apart(CoherentConformalFilter(), X, y, alphas),
            TABLED: {
                alpha: numbers
                for alpha, filter in tabled(kind, alphas).items()
                for numbers in apart(filter, X, y, [alpha]).values()
            },
        }
        yield f"{kind.upper()}-like: separation, its ratio to that of the frequency,"
        yield "Cohen's d and overlap; the paper's last, where it has them"
        yield " alpha  " + "  ".join(f"{name:>26}" for name in (*learnt, "paper"))
        for alpha in alphas:
            cells = [four(numbers[alpha]) for numbers in learnt.values()]
            paper = SEPARATION.get(alpha) if kind == "math" else None
            cells.append(four(paper) if paper else "")
            yield f"{alpha:6.2f}  " + "  ".join(f"{cell:>26}" for cell in cells)
        yield ""


def apart(filter, X, y, alphas):
    """Separation, ratio, Cohen's d and overlap of a filter's score, per alpha."""
    filters = {"frequency": HardCF("frequency-score"), "learnt": filter}
    report = score_separation(filters, X, y, alphas, random_state=0)
    names = "separation", "ratio", "cohens_d", "overlap"
    numbers = [getattr(report, name)[1].tolist() for name in names]
    return dict(zip(alphas, zip(*numbers, strict=True), strict=True))


def four(numbers):
    """Separation, ratio, Cohen's d, overlap."""
    s, ratio, d, common = numbers
    return f"{s:.3f} {'--' if ratio is None else f'{ratio:.2f}'} {d:.3f} {common:.3f}"


ANALYSES = {"ablation": ablation, "shap": shap, "separation": separation}


def main(chosen):
    """Print the tables of one analysis, and save them."""
    # Few problems calibrate here; scores do not depend on that.
    warnings.simplefilter("ignore", CalibrationWarning)
    lines = []
    for line in ANALYSES[chosen.analysis](chosen):
        print(line.rstrip(), flush=True)
        lines.append(line.rstrip())
    chosen.output.mkdir(parents=True, exist_ok=True)
    kinds = "" if set(chosen.kinds) == set(PROBLEMS) else f"_{chosen.kinds[0]}"
    path = chosen.output / f"understanding_{chosen.analysis}{kinds}.txt"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("analysis", choices=ANALYSES)
    parser.add_argument("--kinds", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--jobs", type=int, default=2, help="folds at a time")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    main(parser.parse_args())
