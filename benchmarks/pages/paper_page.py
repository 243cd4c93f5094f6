"""Write the page "The paper, reproduced" from results/paper.json and the tables of the paper.

    python -m benchmarks.pages.paper_page [--results DIR] [--pages DIR]

The text is in paper_page.rst. This module inserts every number, from the two files.
"""

import argparse
import json
from pathlib import Path
from string import Template

import numpy as np
from scipy.stats import betabinom

from benchmarks import REFEREES, RESULTS
from benchmarks.pages.figures import plt
from benchmarks.pages.report import table
from benchmarks.retention.paper import ALPHAS, PROBLEMS, TABLES
from benchmarks.retention.paper import table as printed
from benchmarks.retention.reproduce import (
    AUTO,
    BOOSTED,
    CF,
    FOLDS,
    INDEPENDENT,
    INDEX,
    LINEAR,
    LOGISTIC,
    MARGINS,
    NARROW,
    PROBABLE,
    REACHABILITY,
    SEARCHED,
    SHARPNESS,
    TABLED,
    XGBOOST,
)
from skdcf.ops.conformal import conformal_rank

SIX = (
    CF,
    INDEPENDENT,
    BOOSTED,
    XGBOOST,
    REACHABILITY,
    INDEX,
    TABLED,
    NARROW,
    PROBABLE,
    SEARCHED,
)
OURS = (LINEAR, LOGISTIC, AUTO)
NAMES = {
    CF: "CF, frequency",
    REACHABILITY: "reachability alone",
    INDEX: "claim index alone",
    PROBABLE: f"{TABLED}, {PROBABLE}",
    LINEAR: "*path relaxation*",
    LOGISTIC: "*logistic regression*",
    f"{LOGISTIC}, no edges": "*logistic regression*, no edges",
    AUTO: "*auto*",
    "searched": "searched",
}
UNITS = {"math": ("kept_all", 1, 2), "felm": ("kept_all_share", 100, 1)}
STYLE = {
    CF: ("#4d4d4d", "s"),
    INDEPENDENT: ("#a6761d", "v"),
    BOOSTED: ("#7570b3", "D"),
    XGBOOST: ("#e7298a", "x"),
    TABLED: ("#d95f02", "o"),
    SEARCHED: ("#e6ab02", "P"),
    LINEAR: ("#1b9e77", "^"),
}


def named(method):
    """A method as the page calls it."""
    return NAMES.get(method, method)


def number(found, digits=2, scale=1, error=True):
    """Mean ± error, as text."""
    text = f"{scale * found['mean']:.{digits}f}"
    if error and found["error"] is not None:
        text += f" ±\u00a0{scale * found['error']:.{digits}f}"
    return text


# RQ2


def heads(kind):
    """The head of a table with a column per level, and what numbers stand on."""
    return ["alpha", *(f"{alpha:g}" for alpha in ALPHAS[kind]), "folds"]


def folds_of(levels):
    """How many folds the numbers of a method stand on."""
    found = sorted({row["coverage"]["n"] for row in levels.values()})
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0])


def in_order(found):
    """The methods of a table: the paper's, then ours."""
    names = [*SIX, *OURS, *(name for name in found if name not in (*SIX, *OURS))]
    return filter(found.__contains__, names)


def method_rows(found, alphas, key, digits, scale=1, error=False):
    """One row per method; a level that a method has no number at is a dash."""
    for name in in_order(found):
        levels = (found[name].get(f"{alpha:g}") for alpha in alphas)
        cells = [
            number(row[key], digits, scale, error) if row else "n/a" for row in levels
        ]
        yield [named(name), *cells, folds_of(found[name])]


def paper_rows(kind, what):
    """The two methods that the paper prints numbers of."""
    rows = printed(f"results_{kind}")
    unit = "" if kind == "math" or what == "coverage" else "_pct"
    unit = "_pct" if what == "coverage" else unit
    for name in ("cf", "dcf"):
        cells = [f"{rows[a][f'{what}_{name}{unit}']:g}" for a in ALPHAS[kind]]
        yield [f"paper: {name.upper()}", *cells, ""]


def kept_table(results, kind, number_of):
    """Claims kept in the paper's units."""
    key, scale, digits = UNITS[kind]
    rows = [*paper_rows(kind, "retention")]
    rows += method_rows(results[kind], ALPHAS[kind], key, digits, scale)
    unit = "claims kept per problem" if kind == "math" else "% of all claims kept"
    title = f"{number_of}. {kind.upper()}-like, {unit}, true and false"
    return table(title, heads(kind), rows)


def coverage_table(results, kind):
    """Coverage in percent, with the expected coverage of the rank."""
    rows = [*paper_rows(kind, "coverage")]
    n = next(iter(results[kind][CF].values()))["calibrated"]
    ranks = [int(alpha * (n + 1) + 1e-9) for alpha in ALPHAS[kind]]
    least = [f"{100 * (1 - rank / (n + 1)):.1f}" for rank in ranks]
    rows.append([f"expected with {n} calibration problems", *least, ""])
    rows += method_rows(results[kind], ALPHAS[kind], "coverage", 1, 100)
    return table(f"{kind.upper()}-like, coverage in %", heads(kind), rows)


def rows_by_kind(values, digits):
    """One row of text per name, the largest value on MATH-like problems first."""
    order = sorted(values["math"], key=values["math"].get, reverse=True)
    return [
        [named(name), *(f"{values[kind][name]:.{digits}f}" for kind in PROBLEMS)]
        for name in order
    ]


def order_table(results):
    """Mean number of true claims kept over the levels, the most first on MATH-like problems."""
    kept = {kind: mean_kept(results, kind) for kind in PROBLEMS}
    rows = rows_by_kind(kept, digits=2)
    title = "True claims kept at equal coverage, means over the levels"
    return table(
        title, ["method", *(f"{kind.upper()}-like" for kind in PROBLEMS)], rows
    )


def mean_kept(results, kind):
    """True claims kept by each method, as means over the levels."""
    found = results[f"{kind}, leave-one-out"] or results[kind]
    return {
        name: np.mean([row["kept_true"]["mean"] for row in levels.values()])
        for name, levels in found.items()
    }


def least_coverage(n_calibration, alpha, n_test, n_splits):
    """Return the 2.5 % quantile of the mean coverage over independent splits.

    The distribution of the number of covered problems in all splits is a convolution, which is
    computed with a Fourier transform.
    """
    k = conformal_rank(n_calibration, alpha)
    if k == 0:
        return 1.0
    total = n_splits * n_test
    law = betabinom.pmf(np.arange(n_test + 1), n_test, n_calibration + 1 - k, k)
    pmf = np.fft.irfft(np.fft.rfft(law, total + 1) ** n_splits, total + 1)
    return min(np.searchsorted(np.cumsum(pmf), 0.025), total) / total


def coverage_sentence(results):
    """How many mean coverages are below the band that chance allows."""
    low = total = 0
    for kind in PROBLEMS:
        for levels in results[kind].values():
            for alpha, row in levels.items():
                found, sizes = row["coverage"], (row["calibrated"], float(alpha))
                least = least_coverage(*sizes, row["tested"], found["n"])
                low, total = low + (found["mean"] < least - 1e-9), total + 1
    return (
        f"Of the {total} mean coverages in the tables, {low} are below the 2.5 % quantile that "
        "is expected if the folds are independent. By chance, about "
        f"{0.025 * total:.0f} of them would fall below this quantile. All "
        "methods use the same folds, so the deviations of their coverages are correlated."
    )


def luck_sentence(results):
    """Describe the share of problems with errors in the folds, and the coverage over many folds."""
    said = []
    for kind, found in results["luck"].items():
        held, test = (f"{100 * share:.1f} %" for share in found["errors"])
        n, alpha = (
            next(iter(results[kind][CF].values()))["calibrated"],
            ALPHAS[kind][-1],
        )
        least = 100 * (1 - int(alpha * (n + 1) + 1e-9) / (n + 1))
        many = 100 * found["many"][f"{alpha:g}"]
        said.append(
            f"In the {kind.upper()}-like data, {held} of the calibration problems and {test} "
            "of the test problems contain an error. Over "
            f"{results['many']:,} folds, the reachability score has a mean coverage of "
            f"{many:.1f} % at alpha = {alpha:g}, where {least:.1f} % is expected."
        )
    return " ".join(said)


def smallest(found):
    """The fewest folds that a number of a table stands on."""
    return min(row["coverage"]["n"] for m in found.values() for row in m.values())


def empty_levels(results, kind):
    """Name the levels with too few calibration problems."""
    n = next(iter(results[kind][CF].values()))["calibrated"]
    few = [a for a in ALPHAS[kind] if int(a * (n + 1) + 1e-9) == 0]
    if not few:
        return f"With {n} calibration problems, claims can be kept at every level."
    needed = int(np.ceil(1 / few[-1] - 1 - 1e-9))
    levels = ", ".join(f"{a:g}" for a in few)
    return (
        f"At alpha = {levels}, no method can keep any claim, because at least {needed} calibration "
        f"problems are required but only {n} are available."
    )


# RQ1


def surrogate_tables(results):
    """Correlations, and counts of claims."""
    validation = TABLES["surrogate_validation_math"]
    low, high = validation["agreement_range_pct"]
    first = ["nonconformity_pearson", "nonconformity_mae"]
    rows = [
        ["paper"]
        + [
            str(validation[key])
            for key in (*first, "threshold_pearson", "threshold_mae")
        ]
        + [f"{low:g} to {high:g}"]
    ]
    for name, found in results["surrogate"]["scores"].items():
        cells = [number(one, 3) for one in found["numbers"]]
        low, high = (100 * share for share in found["agreement"])
        rows.append([name, *cells, f"{low:.1f} to {high:.1f}"])
    header = ["settings", "scores: r", "MAE", "thresholds: r", "MAE", "claims agree, %"]
    yield table("Soft and hard procedures compared, MATH-like", header, rows)
    header = ["alpha", "both kept", "soft only", "hard only", "neither", "agree, %"]
    header += ["paper: agree", "sharp grid: agree, %"]
    paper = printed("soft_hard_agreement_math")
    first = paper["0.01--0.03"]["agree_pct"]
    rows = [["0.01", "too few", "", "", "", "", first, ""]]
    for alpha, counts in results["surrogate"]["claims"].items():
        beside = paper.get(float(alpha), {"agree_pct": first})["agree_pct"]
        agree = [f"{agreed(counts[name]):.1f}" for name in ("printed", "sharp")]
        rows.append([alpha, *counts["printed"], agree[0], beside, agree[1]])
    yield table("Table 2. Claims kept by the soft and the hard procedure", header, rows)


def agreed(counts):
    """Percent of claims on which both agree."""
    return 100 * (counts[0] + counts[3]) / sum(counts)


# Hyperparameters


def search_sentence(results):
    """Compare the searched settings with the printed ones and with a logistic regression."""
    levels, better, less = 0, 0, []
    for kind in PROBLEMS:
        for row in results[f"search-{kind}"].values():
            levels += 1
            better += row["gain"]["mean"] > 2 * (row["gain"]["error"] or 0)
            less.append(row["searched"]["mean"] / row[LOGISTIC]["mean"] - 1)
    gain = [
        row["searched"]["mean"] / row[TABLED]["mean"] - 1
        for kind in PROBLEMS
        for row in results[f"search-{kind}"].values()
    ]
    where = (
        f"At {better} of the {levels} levels, the filter with the best settings keeps"
    )
    if not better:
        where = f"At none of the {levels} levels does the filter with the best settings keep"
    return (
        f"With the best settings, the filter keeps {more_or_fewer(np.median(gain))} true claims "
        f"than with the paper's settings, and {more_or_fewer(np.median(less))} than a logistic "
        f"regression (medians over {levels} levels). {where} more true claims than the logistic "
        "regression by more than two standard errors."
    )


def more_or_fewer(change):
    """A relative change in words."""
    return f"{abs(100 * change):.0f} % {'more' if change >= 0 else 'fewer'}"


def gains_over_frequency(results):
    """The largest change of each method relative to the frequency, with its level."""
    rows = []
    for method in (TABLED, NARROW, LINEAR):
        cells = []
        for kind in PROBLEMS:
            frequency = results[kind][CF]
            changes = {
                alpha: row["kept_all"]["mean"] / frequency[alpha]["kept_all"]["mean"]
                - 1
                for alpha, row in results[kind][method].items()
                if frequency[alpha]["kept_all"]["mean"] > 0
            }
            alpha = max(changes, key=changes.get)
            cells.append(f"{100 * changes[alpha]:+.0f} (at {alpha})")
        rows.append([named(method), *cells])
    title = "Largest change in claims kept relative to the frequency, in %"
    return table(
        title, ["method", *(f"{kind.upper()}-like" for kind in PROBLEMS)], rows
    )


def causes(results):
    """True claims kept after each change to the printed settings, the largest gain first."""
    gains = {kind: gains_of_changes(results, kind) for kind in PROBLEMS}
    rows = rows_by_kind(gains, digits=1)
    title = (
        "True claims kept, as multiples of the number kept with the printed settings"
    )
    return table(
        title, ["change", *(f"{kind.upper()}-like" for kind in PROBLEMS)], rows
    )


def gains_of_changes(results, kind):
    """Ratio of the true claims kept with a change to those without, as a median over levels."""
    levels = list(results[f"training-{kind}"].values())
    return {
        name: float(
            np.median([f[name]["mean"] / f["as printed"]["mean"] for f in levels])
        )
        for name in levels[0]
        if name != "as printed"
    }


def one_of(values):
    """Alternatives as text."""
    *first, last = (f"{value:g}" for value in values)
    return f"{', '.join(first)} or {last}"


# RQ3


def ablation_table(results, kind, which):
    """Tables 11 and 12: claims kept by DCF and by single features."""
    paper, rows = printed(f"ablation_{kind}"), []
    methods = {TABLED: "dcf", REACHABILITY: "reach", INDEX: "index", CF: "freq"}
    for alpha in ALPHAS[kind]:
        row = [f"{alpha:g}"]
        for method, column in methods.items():
            found = results[kind][method][f"{alpha:g}"]
            covered = f"{100 * found['coverage']['mean']:.0f}"
            beside = 100 * paper[alpha][f"cov_{column}"]
            row.append(f"{paper[alpha][f'ret_{column}']:g} ({beside:.0f})")
            row.append(f"{number(found['kept_all'], 2, error=False)} ({covered})")
        found = results[kind][LINEAR][f"{alpha:g}"]
        covered = f"{100 * found['coverage']['mean']:.0f}"
        row.append(f"{number(found['kept_all'], 2, error=False)} ({covered})")
        rows.append(row)
    header = ["alpha"]
    for name in ("DCF, printed settings", "reachability", "claim index", "frequency"):
        header += [f"{name}: paper", "here"]
    header.append("path relaxation: here")
    title = f"{which}. {kind.upper()}-like: claims kept per problem (coverage in %)"
    return table(title, header, rows)


# The picture


def comparison_figure(results):
    """Retention and coverage against the level, for both kinds of problems."""
    methods = CF, INDEPENDENT, BOOSTED, XGBOOST, TABLED, SEARCHED, LINEAR
    figure, axes = plt.subplots(2, 2, figsize=(10, 7.2), sharex="col")
    for column, kind in enumerate(PROBLEMS):
        alphas, (key, scale, _) = ALPHAS[kind], UNITS[kind]
        for name in filter(results[kind].__contains__, methods):
            color, marker = STYLE[name]
            rows = [results[kind][name][f"{a:g}"] for a in alphas]
            more = {"color": color, "marker": marker, "ms": 4, "lw": 1.2}
            label = named(name).strip("*")
            for panel, (what, unit) in enumerate(((key, scale), ("coverage", 100))):
                values = [unit * row[what]["mean"] for row in rows]
                axes[panel, column].plot(alphas, values, label=label, **more)
        for name, (top, below) in main_lines(kind).items():
            style = {"color": STYLE[name][0], "ls": ":", "lw": 2}
            label = f"paper: {named(name)}"
            axes[0, column].plot(alphas, top, label=label, **style)
            axes[1, column].plot(alphas, below, **style)
        target = [100 * (1 - a) for a in alphas]
        axes[1, column].plot(alphas, target, color="black", lw=0.8)
        axes[0, column].set_title(f"{kind.upper()}-like")
        axes[0, column].set_ylim(bottom=0)
        axes[1, column].set_xlabel("alpha")
    axes[0, 0].set_ylabel("claims kept per problem")
    axes[0, 1].set_ylabel("% of all claims kept")
    axes[1, 0].set_ylabel("coverage, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, frameon=False)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    return figure


def main_lines(kind):
    """The paper's CF and DCF."""
    rows, unit = printed(f"results_{kind}").values(), "" if kind == "math" else "_pct"
    return {
        method: (
            [row[f"retention_{short}{unit}"] for row in rows],
            [row[f"coverage_{short}_pct"] for row in rows],
        )
        for method, short in ((CF, "cf"), (TABLED, "dcf"))
    }


# The page


def whole_seconds(results):
    """Seconds of all cells, those that are missing as those of their part."""
    parts = results["seconds"].values()
    return sum(seconds * wanted / max(done, 1) for seconds, done, wanted in parts)


def real_table(results, kind, title):
    """A published set: true claims kept, with corrected errors."""
    rows = method_rows(
        results[f"real-{kind}"], ALPHAS[kind], "kept_true", 2, error=True
    )
    return table(f"{title}, true claims kept", heads(kind), rows)


def page(results):
    """The text of the page."""
    surrogate, agreement = surrogate_tables(results)
    tried = results["tried"]
    words = {
        "surrogate": surrogate,
        "agreement": agreement,
        "kept_math": kept_table(results, "math", "Table 7"),
        "kept_felm": kept_table(results, "felm", "Table 8"),
        "coverage_math": coverage_table(results, "math"),
        "coverage_felm": coverage_table(results, "felm"),
        "coverage_sentence": coverage_sentence(results),
        "luck": luck_sentence(results),
        "empty_math": empty_levels(results, "math"),
        "order": order_table(results),
        "over_frequency": gains_over_frequency(results),
        "causes": causes(results),
        "real_math": real_table(results, "math", "Published MATH"),
        "real_felm": real_table(results, "felm", "Published FELM"),
        "n_real_math": smallest(results["real-math"]),
        "n_real_felm": smallest(results["real-felm"]),
        "search_sentence": search_sentence(results),
        "tried": tried["settings"],
        "search_draws": tried["draws"],
        "judged": tried["judged"],
        "margins": one_of(MARGINS),
        "sharpness": one_of(SHARPNESS["math"]),
        "ablation_math": ablation_table(results, "math", "Table 11"),
        "ablation_felm": ablation_table(results, "felm", "Table 12"),
        "problems_math": PROBLEMS["math"],
        "problems_felm": PROBLEMS["felm"],
        "folds": FOLDS,
        "draws": results["surrogate"]["draws"],
        "minutes": f"{whole_seconds(results) / 60:.0f}",
        "commit": results["commit"],
        "versions": ", ".join(f"{k} {v}" for k, v in results["versions"].items()),
    }
    template = Path(__file__).with_name("paper_page.rst").read_text("utf-8")
    return Template(template).substitute(words)


def main(results, pages):
    """Write the page and its picture."""
    saved = json.loads((results / "paper.json").read_text("utf-8"))
    path = pages / "figures/paper_comparison.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    comparison_figure(saved).savefig(path, metadata={"Date": None})
    (pages / "paper.rst").write_text(page(saved), encoding="utf-8")
    print(f"wrote {pages / 'paper.rst'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--pages", type=Path, default=REFEREES)
    chosen = parser.parse_args()
    main(chosen.results, chosen.pages)
