"""The results page of the documentation, from the saved results.

    python benchmarks/report.py [--results DIR] [--page FILE]

Nothing is computed anew and nothing is left out: what is in the files is on the page.
"""

import argparse
import csv
import io
import json
import math
from pathlib import Path

from methods import AUTO, FREQUENCY, LINEAR, LOGISTIC, NEYMAN_PEARSON, OURS
from paper import ABLATION, MAIN

HERE = Path(__file__).resolve().parent
KINDS = ("math", "felm")
PERL = ("perl-halves", "perl-gsm8k-math", "perl-math-gsm8k", "perl-native")
PAPERS_GRID = "DCF, paper's grid"

INTRODUCTION = """\
..
   Written by benchmarks/report.py from benchmarks/results; `make bench` does both anew.

Results
=======

Every filter that the package has, on the same splits of the same problems, by
`~skdcf.evaluation.compare_filters`; :doc:`comparing` explains the protocols. Retention is
the number of true claims kept per problem, and the largest in each column is bold.

Leave-one-out coverage is at least 1 - alpha by its construction, for these filters as for
any; only the folds, which calibrate and test on different problems, put it to the test.

Two standard errors stand behind a difference. The *naive* one takes the splits for
independent, which is right where each split has problems of its own, as in the tables of
generated problems by leave-one-out. Where the same problems are divided again and again,
as in the folds and on PERL, it is far too small, and the *corrected* one (Nadeau and
Bengio, 2003) is the one to believe. A star marks a difference beyond two errors of the
kind that applies.

Generated problems test the mechanism. In particular, hallucinated answers differ there in
the mean of their features, which gives learning more to learn than real problems may. How
much there is to gain on real problems is what the tables of PERL show.
"""

FOLDS_NOTE = (
    "The paper divides its problems 70/15/15 and names the parts training, validation and "
    "test. It does not say which problems calibrate; here the second part does, and a "
    "method that needs validation problems takes them from the first. With 202 problems "
    "30 calibrate, so that nothing can be kept at alpha = 0.03, where the paper reports "
    "1.76 claims: that level is left out."
)
NATIVE_NOTE = (
    "In the tables above, a step of PERL that builds on an error is false. Here it is true "
    "if it is right given its premises, as in the labels of Rubin-Toles et al. Filters "
    "without a graph then get credit for steps whose premises they drop, so their retention "
    "and that of the others do not count the same thing."
)
PAPER_NOTE = (
    "The numbers of the paper are for its own problems, which were not published; ours are "
    "for generated problems that were made to resemble them. Columns of one row can be "
    "compared within the paper or within ours, and between the two only in their order of "
    "magnitude."
)


def read(folder):
    """Saved experiments by name."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def table(title, header, rows):
    """A csv-table; cells are text."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([header, *rows])
    body = "".join(f"   {line}\n" for line in lines.getvalue().splitlines())
    return f".. csv-table:: {title}\n   :header-rows: 1\n\n{body}"


def cells(experiment, key):
    """{(filter, alpha): value} of one column."""
    rows = experiment["rows"]
    return {(row["filter"], row["alpha"]): row[key] for row in rows}


def by_alpha(experiment, key, title, form):
    """Filters down, alphas across."""
    values, alphas = cells(experiment, key), experiment["alphas"]
    best = {a: max(values[name, a] for name in experiment["names"]) for a in alphas}
    rows = []
    for name in experiment["names"]:
        texts = [form(values[name, a]) for a in alphas]
        if key == "retention":
            texts = [
                f"**{text}**" if values[name, a] == best[a] else text
                for text, a in zip(texts, alphas, strict=True)
            ]
        rows.append([name, *texts])
    return table(title, ["alpha", *(f"{a:g}" for a in alphas)], rows)


def difference_text(row, kept, error):
    """Change in percent with naive / corrected error, and a star if it is clear."""
    if row["percent"] is None:
        return "-"
    text = f"{row['percent']:+.0f}"
    if row["naive_error"] is None:  # a single split
        return text
    errors = (100 * row[key] / kept for key in ("naive_error", "corrected_error"))
    text += " ({:.0f} / {:.0f})".format(*errors)
    return text + (r" \*" if abs(row["difference"]) > 2 * row[error] else "")


def differences(experiment, error):
    """Our filters against a reference each, per alpha."""
    found = {
        (row["filter"], row["reference"], row["alpha"]): row
        for row in experiment["differences"]
    }
    kept, alphas = cells(experiment, "retention"), experiment["alphas"]

    def texts(name, references):
        pairs = [
            ((name, r, a), (r, a)) for r, a in zip(references, alphas, strict=True)
        ]
        return [difference_text(found[row], kept[ref], error) for row, ref in pairs]

    rows = [
        [f"{name} against {reference}", *texts(name, [reference] * len(alphas))]
        for reference in (FREQUENCY, LOGISTIC)
        if reference in experiment["names"]
        for name in OURS
    ]
    best = best_baselines(experiment)
    rows.append([f"{AUTO} against the best baseline", *texts(AUTO, best)])
    rows.append(["which is, after the fact,", *best])
    title = "Change of retention in %, with its naive / corrected standard error"
    return table(title, ["alpha", *(f"{a:g}" for a in alphas)], rows)


def best_baselines(experiment):
    """The method of others that keeps most, one per alpha."""
    kept = cells(experiment, "retention")
    others = [name for name in experiment["names"] if name not in OURS]
    others = [name for name in others if not name.startswith("DCF")]
    alphas = experiment["alphas"]
    return [max(others, key=lambda name, a=a: kept[name, a]) for a in alphas]


def described(experiment):
    """How the experiment was done, in a sentence."""
    sizes = [f"{size:g}" for size in experiment["sizes"]]
    n = experiment["n_splits"]
    splits = "One split" if n == 1 else f"{n} splits"
    if experiment["protocol"] == "folds":
        return (
            f"{splits} of {sizes[0]} problems to train, {sizes[1]} to calibrate and "
            + (f"{sizes[2]} to test on.")
        )
    return (
        f"{splits} of {sizes[0]} problems to train on and {sizes[1]} to evaluate "
        "leave-one-out."
    )


def coverage_text(experiment):
    """What became of the promise; of folds only, where chance has a part in it."""
    rows = experiment["rows"]
    low = [row for row in rows if not row["in_band"]]
    names = ", ".join(f"{row['filter']} at {row['alpha']:g}" for row in low) or "none"
    missed = sum(not row["meets_target"] for row in rows)
    return (
        f"Of the {len(rows)} mean coverages {missed} are below 1 - alpha, and below the "
        f"band that chance allows about it: {names}."
    )


def section(experiment, *, independent=False, notes=()):
    """Heading, sentences and tables of an experiment."""
    title = experiment["title"]
    parts = [f"{title}\n{'-' * len(title)}", described(experiment), *notes]
    parts.append(by_alpha(experiment, "retention", "Retention", "{:.2f}".format))
    parts.append(
        differences(experiment, "naive_error" if independent else "corrected_error")
    )
    if experiment["protocol"] == "folds":
        percent = by_alpha(
            experiment, "coverage", "Coverage in %", lambda c: f"{100 * c:.1f}"
        )
        parts += [percent, coverage_text(experiment)]
    return "\n\n".join(parts)


def beside_the_paper(kind, experiment):
    """The paper's main table and our numbers."""
    unit = "retention" if kind == "math" else "retention_share"
    scale, form = (1, "{:.2f}") if kind == "math" else (100, "{:.1f}")
    ours = cells(experiment, unit)
    columns = (FREQUENCY, PAPERS_GRID, LINEAR, NEYMAN_PEARSON, AUTO)
    header = [
        "alpha",
        "paper: CF",
        "paper: DCF",
        "paper: change",
        *columns,
        "auto: change",
    ]
    rows = []
    for alpha, (_, _, dcf, cf) in MAIN[kind].items():
        values = [scale * ours[name, alpha] for name in columns]
        change = 100 * (values[-1] / values[0] - 1) if values[0] else math.nan
        rows.append(
            [f"{alpha:g}", f"{cf:g}", f"{dcf:g}", f"{100 * (dcf / cf - 1):+.0f} %"]
            + [form.format(value) for value in values]
            + [f"{change:+.0f} %"]
        )
    what = (
        "true claims kept per problem"
        if kind == "math"
        else "% of the true claims kept"
    )
    return table(f"{kind.upper()} and {kind.upper()}-like, {what}", header, rows)


def ablation(kind, experiment):
    """Single features, the paper's and ours."""
    ours = cells(experiment, "retention")
    names = experiment["names"]
    published = ["reachability", "claim index", "frequency", "DCF"]
    header = ["alpha", *(f"paper: {name}" for name in published), *names]
    rows = [
        [f"{alpha:g}", *(f"{value:.2f}" for value in (*single, dcf))]
        + [f"{ours[name, alpha]:.2f}" for name in names]
        for alpha, (dcf, *single) in ABLATION[kind].items()
    ]
    return table(
        f"{kind.upper()} and {kind.upper()}-like, claims per problem", header, rows
    )


PRINTED = {
    "edge_cases": "The guarantee at its edges",
    "surrogate": "Soft and hard procedure",
    "no_gain": "Where there is nothing to gain",
    "hard_speed": "Speed of filtering",
    "relaxation_speed": "Speed of the relaxations",
    "scorer_speed": "Speed of the Neyman-Pearson scorer and of auto",
    "text_speed": "Speed of the features",
    "compare_speed": "Speed of comparisons",
    "large_problems": "Large problems",
}


def page(results, folder):
    """The whole page."""
    parts = [INTRODUCTION]
    for name in PERL:
        notes = [NATIVE_NOTE] if name == "perl-native" else []
        parts.append(section(results[name], notes=notes))
    for kind in KINDS:
        parts.append(section(results[f"main-{kind}"], independent=True))
        parts.append(PAPER_NOTE)
        parts.append(beside_the_paper(kind, results[f"main-{kind}"]))
        parts.append(section(results[f"few-{kind}"], independent=True))
        parts.append(section(results[f"folds-{kind}"], notes=[FOLDS_NOTE]))
    parts.append("Single features\n---------------")
    parts += [described(results["ablation-math"]), PAPER_NOTE]
    parts += [ablation(kind, results[f"ablation-{kind}"]) for kind in KINDS]
    for name, heading in PRINTED.items():
        if (folder / f"{name}.txt").exists():
            printed = (folder / f"{name}.txt").read_text(encoding="utf-8")
            indented = "".join(f"   {line}\n" for line in printed.splitlines())
            parts.append(f"{heading}\n{'-' * len(heading)}")
            parts.append(f"Printed by ``benchmarks/{name}.py``::\n\n" + indented)
    parts.append(conditions(results))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def conditions(results):
    """Versions, and seconds of fitting."""
    halves = results["perl-halves"]
    versions = ", ".join(f"{k} {v}" for k, v in halves["versions"].items())
    rows = [[name, f"{s:.3f}"] for name, s in halves["seconds_per_level"].items()]
    title = "Seconds of fitting per level, PERL halves, one core of the machine at hand"
    return f"Conditions\n----------\n\nComputed with {versions}.\n\n" + table(
        title, ["filter", "seconds"], rows
    )


def main(results, target):
    """Write the page."""
    text = page(read(results), results)
    target.write_text(text, encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    guide = HERE.parent / "docs" / "guide"
    parser.add_argument("--page", type=Path, default=guide / "results.rst")
    chosen = parser.parse_args()
    main(chosen.results, chosen.page)
