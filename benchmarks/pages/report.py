"""Write the results page and the tables of the README from the saved results.

    python -m benchmarks.pages.report

All numbers come from the files. Nothing is computed.
"""

import csv
import io
import json

import numpy as np

from benchmarks import REFEREES, RESULTS, ROOT
from benchmarks.pages import texts

LEVEL = 0.1  # of the table of scorers
SCORERS = "default", "priced", "regression"
END = "<!-- end -->"


def read(folder):
    """Saved results by name: evidence, scorers, and what three programs printed."""
    saved = {
        name: (folder / f"{name}.txt").read_text("utf-8")
        for name in ("online", "rivals", "default_scorer")
    }
    for name in ("evidence", "passing_scorers", "surprisal"):
        saved[name] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    saved["evidence"]["rows"] += saved["surprisal"]["rows"]
    saved["rival rows"] = json.loads((folder / "rivals.json").read_text("utf-8"))
    return saved


def table(title, header, rows):
    """A csv-table; cells are text."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([header, *rows])
    body = "".join(f"   {line}\n" for line in lines.getvalue().splitlines())
    return f".. csv-table:: {title}\n   :header-rows: 1\n\n{body}"


def heading(text):
    """A heading of the page."""
    return f"{text}\n{'-' * len(text)}"


def printed(text):
    """What a program printed, word for word."""
    lines = "".join(f"   {line}\n" if line else "\n" for line in text.splitlines())
    return f".. code-block:: text\n\n{lines}"


def evidence(results):
    """What each kind of evidence is worth at one level, as rows of text."""
    found = {
        row["evidence"]: row
        for row in results["evidence"]["rows"]
        if row["alpha"] == texts.EVIDENCE_LEVEL
    }
    for key, (what, calls, command) in texts.EVIDENCE.items():
        row = found[key]
        without, having = row["without"], row["with"]
        work = f"{row['milliseconds']:.1f} ms" if calls else "one judgement"
        shares = zip(without[1:], having[1:], strict=True)
        yield [
            what,
            f"{without[0]:.2f} → {having[0]:.2f}",
            *(f"{100 * before:.0f} → {100 * after:.0f}" for before, after in shares),
            calls or "none",
            work,
            command,
        ]


def scorer_rows(results, sets):
    """Compare the scorers at the same share of passing answers, with the mean of all sets."""
    rows = [row for row in results["passing_scorers"] if row["alpha"] == LEVEL]
    named = {row["set"]: row for row in rows}
    for name, title in sets.items():
        yield [title, *scorer_cells(named[name])]
    mean = {scorer: mean_of([row[scorer] for row in rows]) for scorer in SCORERS}
    yield [f"**mean over {len(rows)} sets**", *scorer_cells(mean)]


def rival_rows(rows):
    """Methods of several packages at one level, as rows of text."""
    for method, alpha, (true, safe, shown, _), errors in rows:
        if alpha == LEVEL and method in texts.README_RIVALS:
            yield [
                texts.README_RIVALS[method],
                f"{true:.2f} ± {errors[0]:.2f}",
                f"{100 * shown:.0f} ± {100 * errors[2]:.0f}",
                f"{100 * (1 - safe):.1f} ± {100 * errors[1]:.1f}",
            ]


def mean_of(rows):
    """Means of numbers, and the errors of the means."""
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        name: (pairs[:, 0].mean(), np.linalg.norm(pairs[:, 1]) / len(pairs))
        for name, pairs in values.items()
    }


def scorer_cells(row):
    """Numbers of the three scorers with their errors."""
    for number, scale, digits in (
        ("shown", 100, 0),
        ("wrong among passing", 100, 0),
        ("true claims", 1, 2),
    ):
        pairs = [row[scorer][number] for scorer in SCORERS]
        yield " / ".join(
            f"{scale * mean:.{digits}f} ± {scale * error:.{digits}f}"
            for mean, error in pairs
        )


def results_page(results):
    """The text of the page."""
    sets = [list(about) for about in texts.SETS.values()]
    names = {name: about[0].partition(",")[0] for name, about in texts.SETS.items()}
    compared = {row["set"]: names[row["set"]] for row in results["passing_scorers"]}
    parts = [
        texts.HEAD,
        texts.READING,
        table("The data sets", ["data", "labelled by"], sets),
        heading("The default scorer"),
        texts.DEFAULT,
        printed(results["default_scorer"]),
        heading("The same number of passing answers"),
        texts.PASSING,
        table("alpha = 0.1", texts.SCORERS_HEAD, scorer_rows(results, compared)),
        heading("Evidence"),
        texts.WITH_EVIDENCE,
        table("alpha = 0.05", texts.EVIDENCE_HEAD, evidence(results)),
        heading("Other packages"),
        texts.RIVALS,
        printed(results["rivals"]),
        heading("While an answer is written"),
        texts.WRITTEN,
        printed(results["online"]),
        heading("Conditions"),
        conditions(results["evidence"]),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def conditions(saved):
    """Commit and versions."""
    versions = ", ".join(f"{name} {v}" for name, v in saved["versions"].items())
    return texts.CONDITIONS.format(commit=saved["commit"], versions=versions)


def with_tables(readme, results):
    """The README with the tables of today."""
    rivals = [texts.RIVALS_HEAD, *rival_rows(results["rival rows"])]
    readme = put(readme, "this table", markdown(rivals))
    rows = [texts.EVIDENCE_HEAD, *evidence(results)]
    text = markdown([row[:4] for row in rows])  # the landing page has the rest
    return put(readme, "what evidence is worth", text)


def put(readme, name, text):
    """A text in its place between two marks."""
    start = f"<!-- benchmarks/pages/report.py writes {name} -->\n"
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(END)
    return before + start + text + END + after if after else readme


def markdown(rows):
    """A table whose first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines).replace("``", "`") + "\n"


def main(results, pages):
    """Write the page and the tables."""
    saved = read(results)
    (pages / "results.rst").write_text(results_page(saved), encoding="utf-8")
    with (results / "evidence.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([texts.EVIDENCE_HEAD, *evidence(saved)])
    if pages == REFEREES:
        readme = ROOT / "README.md"
        text = with_tables(readme.read_text(encoding="utf-8"), saved)
        readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(RESULTS, REFEREES)
