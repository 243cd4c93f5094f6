"""Write the results page and the tables of the README from the saved results.

    python -m benchmarks.pages.report [--results DIR] [--pages DIR]

All numbers come from the files. Nothing is computed.
"""

import argparse
import csv
import io
import json
from math import exp
from pathlib import Path
from textwrap import fill

import numpy as np

from benchmarks import REFEREES, RESULTS, ROOT
from benchmarks.methods import AUTO, LOGISTIC
from benchmarks.pages import texts
from benchmarks.pages.figures import save_all
from benchmarks.pages.pooling import human, pooled
from benchmarks.retention.evidence import COUNTED, OTHERS, PASSAGES, TEXT

CLEAR = 0.05  # p-value below which a change gets its star
PASSING = RESULTS / "passing_scorers.json"
README_LEVEL = 0.1


def read(folder):
    """Saved experiments by name, and what three programs printed."""
    files = [path for path in folder.glob("*.json") if path.stem != PASSING.stem]
    saved = {path.stem: json.loads(path.read_text("utf-8")) for path in files}
    for name in ("online", "rivals", "default_scorer"):
        path = folder / f"{name}.txt"
        if path.exists():
            saved[name] = path.read_text("utf-8")
    return saved


def table(title, header, rows):
    """A csv-table; cells are text."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([header, *rows])
    body = "".join(f"   {line}\n" for line in lines.getvalue().splitlines())
    return f".. csv-table:: {title}\n   :header-rows: 1\n\n{body}"


def cells(experiment, key="retention"):
    """{(filter, alpha): value} of one column."""
    rows = experiment["rows"]
    return {(row["filter"], row["alpha"]): row[key] for row in rows}


def shown(row):
    """Shares: of answers shown, and of these with a false claim.

    An answer is shown if something of it is kept, and what is not shown is covered.
    """
    share = 1 - row["abstention"]
    return share, (1 - row["coverage"]) / share if share > 0 else None


def change(experiment, name, reference, alpha):
    """(percent, its error, p) of one filter against another."""
    for row in experiment["differences"]:
        if (row["filter"], row["reference"], row["alpha"]) == (name, reference, alpha):
            kept = cells(experiment)[reference, alpha]
            error = row["corrected_error"]
            relative = None if error is None or not kept else 100 * error / kept
            return row["percent"], relative, row["p_value"]
    raise KeyError((name, reference, alpha))


def change_text(percent, error, p):
    """A change in percent ± its error, with a star where it is clear."""
    if percent is None:
        return ""
    text = f"{round(percent):+d}"
    if error is not None:
        text += f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{error:.0f}"
    clear = p is not None and p < CLEAR
    return text + "\N{NO-BREAK SPACE}\\*" * clear


def heading(text):
    """A heading of the page."""
    return f"{text}\n{'-' * len(text)}"


def summary(results):
    """The first paragraph."""
    kept = cells(results["gsm8k-solutions"])
    three = ", 3 others"
    judged = [results[name] for name in human(results)]
    share, wrong = shown_means(judged, AUTO, 0.05)
    share_regression, wrong_regression = shown_means(judged, LOGISTIC, 0.05)
    return texts.SUMMARY.format(
        n_sets=len(judged),
        mean=pooled_text(pooled(results)[0.05]),
        shown=share,
        shown_regression=share_regression,
        wrong=wrong,
        wrong_regression=wrong_regression,
        lacking=kept[AUTO, 0.01],
        having=kept[AUTO + three, 0.01],
        logistic=kept[LOGISTIC + three, 0.01],
    )


def shown_means(experiments, name, alpha):
    """Return the means of the values of `shown` over the data sets, in percent."""
    rows = [
        shown(row)
        for experiment in experiments
        for row in experiment["rows"]
        if (row["filter"], row["alpha"]) == (name, alpha)
    ]
    return 100 * np.mean(rows, axis=0)


def figure(name, alt, caption):
    """A picture with its caption."""
    indented = fill(
        caption,
        95,
        initial_indent="   ",
        subsequent_indent="   ",
        break_on_hyphens=False,
    )
    return f".. figure:: figures/results_{name}.svg\n   :alt: {alt}\n\n{indented}"


def pooled_text(mean):
    """A mean over sets as a change in percent, with a star where it is clear."""
    times = exp(mean.mean)
    return change_text(100 * (times - 1), 100 * times * mean.error, mean.p_value)


def evidence(results):
    """What each kind of evidence is worth at one level: header and rows of text."""
    alpha = texts.EVIDENCE_LEVEL
    cost = {
        row["evidence"]: f"{row['milliseconds']:.1f} ms"
        for row in results["evidence-seconds"]["rows"]
    }

    def worth(name, with_it, without):
        kept = cells(results[name])
        shares = [cells(results[name], k) for k in ("shown", "false_among_shown")]
        return [
            worth_of(kept[without, alpha], kept[with_it, alpha]),
            *(
                f"{100 * of[without, alpha]:.0f} % → {100 * of[with_it, alpha]:.0f} %"
                for of in shares
            ),
        ]

    checks = next(
        row
        for row in results["evidence-checks"]["rows"]
        if (row["data"], row["alpha"]) == ("process-bench-math", alpha)
    )
    found = {
        "passages": (
            worth("evidence-passages", PASSAGES, TEXT),
            cost["passages"],
        ),
        "others": (
            worth("evidence-answers", OTHERS, TEXT),
            cost["other answers"],
        ),
        "frequency": (worth("evidence-frequency", COUNTED, TEXT), cost["text alone"]),
        "check": (
            [worth_of(checks["no check"], checks["one check"]), "-", "-"],
            "one judgement",
        ),
    }
    return [
        [what, *found[key][0], calls, found[key][1], command]
        for key, (what, calls, command) in texts.EVIDENCE.items()
    ]


def worth_of(without, with_it):
    """How many true claims are kept without and with it, and the ratio."""
    return f"{without:.2f} → {with_it:.2f} (x {with_it / without:.1f})"


def printed(text):
    """What a program printed, word for word."""
    lines = "".join(f"   {line}\n" for line in text.splitlines())
    return f".. code-block:: text\n\n{lines}"


def results_page(results):
    """The text of the page."""
    sets = [[*about] for name, about in texts.SETS.items() if name in results]
    labelled = results["labels"]["rows"]
    alt, caption = texts.FIGURES["labelled"]
    parts = [
        texts.HEAD,
        summary(results),
        texts.READING,
        table("The data sets", ["data", "labelled by", "errors"], sets),
        texts.IN_SHORT,
        table("Change in true claims kept, %", *compared_rows(results)),
        texts.POOLING.format(n=len(human(results))),
        figure("forest", *texts.FIGURES["forest"]),
        figure("retention", *texts.FIGURES["retention"]),
        figure("labelled", alt, caption.format(draws=labelled[0]["draws"])),
        heading("The default scorer"),
        texts.DEFAULT,
        printed(results["default_scorer"]),
        heading("How the scorer auto was chosen"),
        texts.CHOSEN,
        heading("Other packages"),
        texts.RIVALS,
        printed(results["rivals"]),
        heading("While an answer is written"),
        texts.WRITTEN,
        printed(results["online"]),
        conditions(results),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def conditions(results):
    """Commits, versions and seeds."""
    versions = results["prmbench"]["versions"]
    saved = [found for found in results.values() if isinstance(found, dict)]
    commits = sorted({found["commit"] for found in saved if "commit" in found})
    return "\n\n".join(
        [
            heading("Conditions"),
            texts.CONDITIONS.format(
                commits=f"commit{'s' * (len(commits) > 1)} {' and '.join(commits)}",
                versions=", ".join(f"{k} {v}" for k, v in versions.items()),
            ),
        ]
    )


TABLE = "this table"
EVIDENCE = "what evidence is worth"
END = "<!-- end -->"


def with_tables(readme, results):
    """The README with the tables of today."""
    readme = put(readme, TABLE, readme_table())
    rows = [texts.EVIDENCE_HEAD, *evidence(results)]
    text = markdown([row[:5] for row in rows])  # the landing page has the rest
    return put(readme, EVIDENCE, text)


def put(readme, name, text):
    """A text in its place between two marks."""
    start = f"<!-- benchmarks/pages/report.py writes {name} -->\n"
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(END)
    return before + start + text + END + after if after else readme


def compared_rows(results):
    """Header, and one row per comparison, with the mean over all sets at the end.

    Changes at four levels; at one of them what is kept and shown by both filters.
    """
    alpha, rows = texts.EVIDENCE_LEVEL, []
    for name, pairs in texts.IN_SHORT_PAIRS.items():
        experiment = results[name]
        at = {row["filter"]: row for row in experiment["rows"] if row["alpha"] == alpha}
        for filter, reference, text in pairs:
            changes = [
                change_text(*change(experiment, filter, reference, a))
                for a in texts.POOLED
            ]
            pair = at[filter], at[reference]
            kept = " / ".join(f"{row['retention']:.2f}" for row in pair)
            shares = zip(*(shown(row) for row in pair), strict=True)
            both = [
                " / ".join("-" if x is None else f"{100 * x:.0f}" for x in of)
                for of in shares
            ]
            rows.append([text.replace("`", "``"), *changes, kept, *both])
    means = pooled(results)
    changes = [pooled_text(means[a]) for a in texts.POOLED]
    name = texts.POOLED_ROW.format(n=len(human(results)))
    rows.append([name, *changes, *([""] * len(texts.AT_ONE_LEVEL))])
    more = [text.format(alpha=alpha) for text in texts.AT_ONE_LEVEL]
    return ["data", *(f"{a:g}" for a in texts.POOLED), *more], rows


def readme_table():
    """Compare the scorers at the same share of passing answers, in Markdown."""
    rows = json.loads(PASSING.read_text("utf-8"))
    rows = [row for row in rows if row["alpha"] == README_LEVEL]
    named = {row["set"]: row for row in rows}
    numbers = ("shown", "wrong among passing", "true claims")
    means = {
        scorer: {
            number: [
                np.mean([row[scorer][number][0] for row in rows]),
                np.sqrt(np.sum([row[scorer][number][1] ** 2 for row in rows]))
                / len(rows),
            ]
            for number in numbers
        }
        for scorer in texts.README_SCORERS
    }
    of_set = {title: named[name] for name, title in texts.README_SETS.items()}
    lines = []
    for title, row in {**of_set, f"**mean over {len(rows)} sets**": means}.items():
        cells = [title]
        for number in numbers:
            each = (row[scorer][number] for scorer in texts.README_SCORERS)
            form = "{:.2f} ± {:.2f}" if number == "true claims" else "{:.0f} ± {:.0f}"
            scale = 1 if number == "true claims" else 100
            cells.append(
                " / ".join(form.format(scale * x, scale * error) for x, error in each)
            )
        lines.append(cells)
    return markdown([texts.README_HEAD, *lines])


def markdown(rows):
    """A table whose first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines).replace("\\", "").replace("``", "`") + "\n"


def save_tables(results, folder):
    """Save the table of evidence for the landing page."""
    rows = [texts.EVIDENCE_HEAD, *evidence(results)]
    rows = [[cell.replace("`", "``") for cell in row] for row in rows]
    with (folder / "evidence.csv").open("w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main(results, pages):
    """Write the page, its pictures and the tables."""
    saved = read(results)
    save_all(saved, pages / "figures")
    (pages / "results.rst").write_text(results_page(saved), encoding="utf-8")
    save_tables(saved, results)
    readme = ROOT / "README.md"
    if pages == REFEREES:
        text = with_tables(readme.read_text(encoding="utf-8"), saved)
        readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--pages", type=Path, default=REFEREES)
    chosen = parser.parse_args()
    main(chosen.results, chosen.pages)
