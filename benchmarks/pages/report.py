"""Write the results pages of the documentation from the saved results.

    python -m benchmarks.pages.report [--results DIR] [--pages DIR]

All numbers come from the files. Nothing is computed.
"""

import argparse
import csv
import io
import json
import re
from itertools import combinations
from math import exp, hypot, sqrt
from pathlib import Path
from textwrap import fill

import numpy as np

from benchmarks import REFEREES, RESULTS, ROOT
from benchmarks.methods import (
    AUTO,
    BOOSTED,
    COHERENT,
    LINEAR,
    LOGISTIC,
    MARGIN,
    NEYMAN_PEARSON,
    OWN_LABEL,
    OWN_SCORE,
    PUBLISHED,
    UNTRAINED,
)
from benchmarks.pages import texts
from benchmarks.pages.figures import save_all
from benchmarks.pages.pooling import human, pooled
from benchmarks.retention.evidence import COUNTED, OTHERS, PASSAGES, TEXT

SHORT = {
    OWN_LABEL: "logistic regression on each claim's own label",
    COHERENT: "logistic regression on the coherent label",
    LOGISTIC: "logistic regression",
    OWN_SCORE: "the authors' score",
    MARGIN: "as published, but with margin 0.1",
    BOOSTED: "boosted trees",
    LINEAR: "linear, trained end to end",
    PUBLISHED: "as published (arXiv:2604.20098)",
    UNTRAINED: "proportion of trigrams found, untrained",
    "1 others": "one other",
    "2 others": "two others",
    "3 others": "three others",
    "6 others": "six others",
    'auto, gain="answers"': '``auto`` with ``gain="answers"``',
}
KEPT = "True claims kept per answer (false claims in parentheses)"
SHOWN = "Answers shown / shown answers with a false claim / kept claims that are true"
WRITTEN_LEVELS = (
    "0.02",
    "0.05",
    "0.1",
    "0.2",
)  # those of benchmarks/guarantees/online.py
CLEAR = 0.05  # p-value below which a change gets its star


PASSING = RESULTS / "passing_scorers.json"
README_LEVEL = 0.1


def read(folder):
    """Saved experiments by name, and what three programs printed."""
    files = [path for path in folder.glob("*.json") if path.stem != PASSING.stem]
    saved = {path.stem: json.loads(path.read_text("utf-8")) for path in files}
    for name in ("online", "rivals", "agents"):
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


def short(name):
    """A name as readers of the page know it."""
    for key, text in SHORT.items():
        name = name.replace(key, text)
    return name


def cells(experiment, key="retention"):
    """{(filter, alpha): value} of one column."""
    rows = experiment["rows"]
    return {(row["filter"], row["alpha"]): row[key] for row in rows}


def alphas_of(experiment):
    """The head of a table with a column per level."""
    return ["alpha", *(f"{alpha:g}" for alpha in experiment["alphas"])]


def retention_rows(experiment, names):
    """One row per filter; the largest number of a column is bold."""
    values, false = cells(experiment), cells(experiment, "false_kept")
    best = {a: max(values[n, a] for n in names) for a in experiment["alphas"]}

    def cell(key, alpha):
        mark = "**" if values[key] == best[alpha] else ""
        return f"{mark}{values[key]:.3f}{mark} ({false[key]:.3f})"

    return [
        [short(name), *(cell((name, a), a) for a in experiment["alphas"])]
        for name in names
    ]


def shown(row):
    """Shares: of answers shown, of these with a false claim, of kept claims that are true.

    An answer is shown if something of it is kept, and what is not shown is covered.
    """
    share = 1 - row["abstention"]
    kept = row["retention"] + row["false_kept"]
    return (
        share,
        (1 - row["coverage"]) / share if share > 0 else None,
        row["retention"] / kept if kept > 0 else None,
    )


def shown_text(row):
    """The three shares in percent; a dash where nothing is kept."""
    return " / ".join("-" if x is None else f"{100 * x:.0f} %" for x in shown(row))


def shown_rows(experiment, names):
    """One row per filter, and a cell with three shares per level."""
    rows = {(row["filter"], row["alpha"]): row for row in experiment["rows"]}
    return [
        [short(name), *(shown_text(rows[name, a]) for a in experiment["alphas"])]
        for name in names
    ]


def change(experiment, name, reference, alpha):
    """(percent, its error, p) of one filter against another."""
    for row in experiment["differences"]:
        if (row["filter"], row["reference"], row["alpha"]) == (name, reference, alpha):
            kept = cells(experiment)[reference, alpha]
            error = row["naive_error" if independent(experiment) else "corrected_error"]
            relative = None if error is None or not kept else 100 * error / kept
            return row["percent"], relative, row["p_value"]
    raise KeyError((name, reference, alpha))


def independent(experiment):
    """Whether every split has problems of its own."""
    return experiment.get("independent", False)


def change_text(percent, error, p):
    """A change in percent ± its error, with a star where it is clear."""
    if percent is None:
        return ""
    text = f"{round(percent):+d}"
    if error is not None:
        text += f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{error:.0f}"
    clear = p is not None and p < CLEAR
    return text + "\N{NO-BREAK SPACE}\\*" * clear


def change_rows(experiment, pairs):
    """One row per pair of filter and reference, in percent."""
    return [
        [f"{short(name)} against {short(reference)}, %"]
        + [
            change_text(*change(experiment, name, reference, a))
            for a in experiment["alphas"]
        ]
        for name, reference in pairs
    ]


def comparison(experiment, title, pairs, names=None):
    """Retention, below it the changes, and what a reader is shown."""
    names = experiment["names"] if names is None else names
    pairs = [pair for pair in pairs if {*pair} <= {*experiment["names"]}]
    rows = retention_rows(experiment, names) + change_rows(experiment, pairs)
    header = alphas_of(experiment)
    read = table(SHOWN, header, shown_rows(experiment, names))
    return table(title, header, rows) + "\n" + read


def described(experiment):
    """Size and protocol, in three sentences."""
    about, (train, test) = experiment["data"], experiment["sizes"]
    unknown = f", {about['n_unknown']:,} unknown" if about["n_unknown"] else ""
    return (
        f"The data set contains {about['n_problems']:,} answers to {about['n_questions']:,} "
        f"questions, with {about['n_claims']:,} claims ({about['n_false']:,} false{unknown}). Of "
        f"these {about['n_problems']:,} answers, {about['n_clean']:,} contain no error. The "
        f"experiment uses {experiment['n_splits']} random splits of the questions into halves. In "
        f"each split, {train:,.0f} answers are used for training and {test:,.0f} for "
        "evaluation."
    )


def heading(text, sign="-"):
    """A heading of the page."""
    return f"{text}\n{sign * len(text)}"


def summary(results):
    """The first paragraph."""
    names = {
        "planted": "prmbench",
        "natural": "process-bench",
        "gsm": "gsm8k-solutions",
        "mr_ben": "mr-ben",
        "perl": "perl-natural",
    }
    changes = {
        key: change_text(*change(results[name], AUTO, LOGISTIC, 0.05))
        for key, name in names.items()
    }
    kept = cells(results["gsm8k-solutions"])
    three = ", 3 others"
    judged = [results[name] for name in human(results)]
    share, wrong = shown_means(judged, AUTO, 0.05)
    share_regression, wrong_regression = shown_means(judged, LOGISTIC, 0.05)
    return texts.SUMMARY.format(
        **changes,
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
    """Return the means of the first two values of `shown` over the data sets, in percent."""
    rows = [
        shown(row)[:2]
        for experiment in experiments
        for row in experiment["rows"]
        if (row["filter"], row["alpha"]) == (name, alpha)
    ]
    return 100 * np.mean(rows, axis=0)


def figure(name, alt, caption, folder="figures"):
    """A picture with its caption."""
    indented = fill(
        caption,
        95,
        initial_indent="   ",
        subsequent_indent="   ",
        break_on_hyphens=False,
    )
    return f".. figure:: {folder}/results_{name}.svg\n   :alt: {alt}\n\n{indented}"


PAIRS = [(AUTO, LOGISTIC), (LINEAR, LOGISTIC), (AUTO, BOOSTED)]


def natural_sections(results):
    """The data sets with errors that models made by themselves."""
    answers = ('auto, gain="answers"', AUTO)
    agreement, three, six = ", agreement", ", 3 others", ", 6 others"
    wanted = {
        "qags-cnndm": [(AUTO, LOGISTIC)],
        "qags-xsum": [(AUTO, LOGISTIC)],
        "refchecker": [(AUTO, LOGISTIC), *with_others(six)],
        "felm": [
            (AUTO, LOGISTIC),
            (AUTO, OWN_LABEL),
            (PUBLISHED, LOGISTIC),
            (MARGIN, LOGISTIC),
        ],
        "process-bench": PAIRS,
        "process-bench-math": PAIRS,
        "mr-ben": PAIRS + with_others(agreement),
        "mr-ben-biology": [(AUTO, LOGISTIC), *with_others(agreement)],
        "mr-ben-chemistry": [(AUTO, LOGISTIC), *with_others(agreement)],
        "gsm8k-solutions": PAIRS + with_others(three),
        "perl-natural": [*PAIRS, answers],
        "perl": [*PAIRS, answers],
        "conformal-rag": [(AUTO, LOGISTIC), (AUTO, OWN_SCORE), (LOGISTIC, OWN_SCORE)],
    }
    for name in filter(results.__contains__, wanted):
        experiment = results[name]
        yield heading(experiment["title"])
        yield texts.LABELS[name] + "\n\n" + described(experiment)
        yield comparison(experiment, KEPT, wanted[name])


def with_others(suffix):
    """What other answers are worth to each filter, and the filters that have them."""
    more = f"{AUTO}{suffix}", f"{LOGISTIC}{suffix}"
    return [(more[0], AUTO), (more[1], LOGISTIC), more]


def planted_section(results):
    """PRMBench, its other grouping, its style."""
    experiment, other = results["prmbench"], results["prmbench-wording"]
    names = [LOGISTIC, BOOSTED, LINEAR, NEYMAN_PEARSON, AUTO]
    yield heading(experiment["title"])
    yield texts.LABELS["prmbench"] + "\n\n" + described(experiment)
    yield comparison(experiment, KEPT, PAIRS, names)
    yield texts.WORDING
    title = "PRMBench, halves by the wording of the question (unreliable)"
    yield comparison(other, title, [(AUTO, LOGISTIC)])
    yield texts.STYLE
    rows = [
        [short(row["filter"])]
        + [f"{row[k]:.3f} ± {row[f'{k}_spread']:.3f}" for k in ("false", "style")]
        for row in results["style"]["rows"]
    ]
    title = "AUC against unchanged true steps, and its spread over splits"
    yield table(title, ["filter", "false steps", "rewritten true steps"], rows)


def changes_section(results):
    """What was tried, and what sizing calibration is worth."""
    yield heading("Ideas that did not help")
    tried = results["symbolic"]
    yield texts.SYMBOLIC
    rows = {}
    for row in tried["rows"]:
        values = row["percent"], row["error"], row["p_value"]
        rows.setdefault((row["data"], short(row["filter"])), {})[row["alpha"]] = values
    rows = [
        [*key, *(change_text(*found[a]) if a in found else "" for a in texts.LEVELS)]
        for key, found in rows.items()
    ]
    header = ["data", "filter", *(f"{a:g}" for a in texts.LEVELS)]
    yield table("With symbolic columns, %", header, rows)
    rows = []
    for row in results["calibration"]["rows"]:
        kept = f"{row['retention']:.3f} ± {row['retention_error']:.3f}"
        cover = f"{100 * row['coverage']:.1f} ± {100 * row['coverage_error']:.1f}"
        held = "chosen by level" if row["size"] is None else f"{row['size']:.0%}"
        gain = 100 * row["gain"] / (row["retention"] - row["gain"])
        error = 100 * row["gain_error"] / (row["retention"] - row["gain"])
        text = f"{gain:+.0f} ± {error:.0f}" if row["size"] is None else ""
        rows.append([row["data"], f"{row['alpha']:g}", held, kept, text, cover])
    header = [
        "data",
        "alpha",
        "calibration proportion",
        "true claims kept",
        "gain, %",
        "coverage, %",
    ]
    yield table("A hundred labelled problems, auto", header, rows)


def labels_section(results):
    """What a logistic regression should learn."""
    names = [
        name
        for name in texts.LEARNT
        if OWN_LABEL in results.get(f"hazard-labels-{name}", {}).get("names", ())
    ]
    if not names:
        return
    yield heading("Labels for the classifier")
    rows, n_splits = [], set()
    for name in names:
        experiment = results[f"hazard-labels-{name}"]
        levels, values = experiment["alphas"], cells(experiment)
        n_splits.add(f"{experiment['n_splits']}")
        kept = [f"{values[LOGISTIC, a]:.3f}" for a in levels]
        rows.append([f"{texts.LEARNT[name]}, hazard label", *kept])
        for label, filter in (("own", OWN_LABEL), ("coherent", COHERENT)):
            found = [
                change_text(*change(experiment, filter, LOGISTIC, a)) for a in levels
            ]
            rows.append([f"{label} instead, %", *found])
    yield texts.CLASSIFIER.format(n=" or ".join(sorted(n_splits)))
    yield table("Logistic regression, true claims kept", alphas_of(experiment), rows)


def false_section(results):
    """What fewer false claims cost."""
    if "false-price" not in results:
        return
    yield heading("Fewer false claims in failed answers")
    yield texts.FALSE_PRICE
    rows = {}
    for row in results["false-price"]["rows"]:
        if (row["data"], row["alpha"]) in texts.PRICED:
            asis = row["way"] == "as it is"
            rows.setdefault(row["way"], []).extend(
                f"{row[k]:.3f}"
                if asis
                else f"{100 * row[f'{k}_change']:+.0f} ± {100 * row[f'{k}_error']:.0f}"
                for k in ("true", "false")
            )
    header = ["price"]
    for data, alpha in texts.PRICED:
        name = {"felm": "FELM", "prmbench": "PRMBench"}[data]
        header += [f"{name} at {alpha:g}: true", "false"]
    rows = [[way, *found] for way, found in rows.items()]
    yield table("Claims kept per answer, and their change in %", header, rows)


def answers_section(results):
    """Emptied answers."""
    yield heading("Some claims in every answer")
    yield texts.ANSWERS
    experiment = results["perl"]
    names = [LOGISTIC, AUTO, 'auto, gain="answers"']
    empty = cells(experiment, "abstention")
    rows = [
        [short(name), *(f"{empty[name, a]:.2f}" for a in experiment["alphas"])]
        for name in names
    ]
    yield table(
        "Proportion of PERL answers from which all claims are dropped",
        alphas_of(experiment),
        rows,
    )


def coverage_section(results):
    """Whether the promise is kept."""
    yield heading("Test of the coverage")
    yield texts.COVERAGE
    rows = [
        [
            {"prmbench": "PRMBench"}.get(row["data"], "GSM8K solutions, three others"),
            short(row["filter"]),
            f"{row['alpha']:g}",
            row["n_calibration"],
            f"{100 * row['coverage']:.2f} ± {100 * row['clustered_error']:.2f}",
            f"{100 - 100 * row['alpha']:g} to {100 * row['expected_most']:.2f}",
            "yes" if row["in_band"] else "**no**",
        ]
        for row in results["coverage"]["rows"]
    ]
    header = [
        "data",
        "filter",
        "alpha",
        "calibration problems",
        "coverage, %",
        "theory",
        "in band",
    ]
    yield table("Coverage, with errors clustered by question", header, rows)


def resources_section(results):
    """Seconds and memory."""
    yield heading("Time and memory")
    here, all_answers = results["resources"]["rows"]
    yield texts.RESOURCES.format(here=here, all=all_answers)


def written_section(results):
    """Decisions about whole answers, and while they are written."""
    if "online" not in results:
        return
    first, *lines = results["online"].splitlines()
    ways, rows, data = {"whole": "whole", "online": "while written"}, [], ""
    for line in lines:
        if line.startswith("  "):
            kept = re.findall(r"[\d.]+ \([\d.]+\)", line)
            rows.append([f"{data}, {ways[line.split()[0]]}", *kept])
        else:
            data = line.partition(":")[0]
    yield heading("While an answer is written")
    names = "graphs", "claims", "differ", "safe", "guaranteed", "calibration", "share"
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", first)
    streamed = dict(zip((*names, "low", "high"), numbers, strict=True))
    yield texts.WRITTEN.format(**streamed)
    yield table("True claims kept (coverage)", ["answers", *WRITTEN_LEVELS], rows)


def stopped_section(results):
    """What agents carry out that are stopped at their first doubtful step."""
    if "agents" not in results:
        return
    _, _, table_of_tasks = results["agents"].partition("the same over tasks\n")
    rows = {}
    for line in table_of_tasks.partition("\n\n")[0].splitlines()[1:]:
        scorer, columns, alpha, kept, missed = re.split(r"\s{2,}", line)
        columns = columns.replace("plain", "position, length, number of calls")
        cell = f"{kept.replace('+-', '±')} ({missed.replace('+-', '±')})"
        rows.setdefault(columns, {})[scorer, alpha] = cell
    header = ["columns", *(f"{scorer}, {alpha}" for scorer, alpha in rows[columns])]
    yield heading("Stopping agents")
    yield texts.STOPPED
    cells_of = [[columns, *of_columns.values()] for columns, of_columns in rows.items()]
    yield table("Correct steps carried out (missed)", header, cells_of)


def rag_section(results):
    """Conformal-RAG's own score, and other packages, on the data of Conformal-RAG."""
    if "conformal-rag" not in results:
        return
    experiment = results["conformal-rag"]
    yield heading("Comparison with Conformal-RAG")
    yield texts.RAG
    names = [OWN_SCORE, LOGISTIC, AUTO]
    pairs = [(AUTO, OWN_SCORE), (LOGISTIC, OWN_SCORE), (AUTO, LOGISTIC)]
    yield comparison(experiment, KEPT, pairs, names)
    if "rivals" in results:
        lines = "".join(f"   {line}\n" for line in results["rivals"].splitlines())
        yield texts.RIVALS
        yield f".. code-block:: text\n\n{lines}"


PRINTED = {
    "online": "Decisions while an answer is written",
    "agents": "Stopping agents",
    "judges": "Model labels and human labels",
    "edge_cases": "Edge cases of the guarantee",
    "no_gain": "Data with little information",
    "hard_speed": "Speed of filtering",
    "relaxation_speed": "Speed of the relaxations",
    "scorer_speed": "Speed of the Neyman-Pearson scorer and of auto",
    "text_speed": "Speed of the features",
    "compare_speed": "Speed of comparisons",
    "large_problems": "Large problems",
}


def program_of(name):
    """The path of a program of PRINTED, within the checkout."""
    folders = ("benchmarks/guarantees", "benchmarks/retention", "benchmarks/speed")
    paths = [f"{folder}/{name}.py" for folder in (*folders, "tests/attacks")]
    (path,) = [path for path in paths if (ROOT / path).exists()]
    return path


def first_table(results):
    """Who labelled what, and what is kept against what else users would do."""
    alpha, rows = texts.FIRST, []
    safe = {(row["data"], row["way"]): row for row in results["observed"]["rows"]}
    for name, about in texts.SETS.items():
        if name not in results:
            continue
        kept = cells(results[name])
        cell = f"**{kept[AUTO, alpha]:.2f}** / {kept[LOGISTIC, alpha]:.2f}"
        for way in ("fixed", "all"):
            found = safe[name, way]
            cell += f" / {found['kept']:.2f} ({100 * found['safe']:.0f} %)"
        percent, error, p = change(results[name], AUTO, LOGISTIC, alpha)
        clear = "yes" if p is not None and p < CLEAR else "no"
        change_cell = f"{clear}, {change_text(percent, error, None)} %"
        rows.append([*about, cell, change_cell])
    return table(texts.FIRST_TITLE, texts.FIRST_HEAD, rows)


def percent_of(log_ratio, error, p):
    """A ratio as a change in percent, with a star where it is clear."""
    times = exp(log_ratio)
    return change_text(100 * (times - 1), 100 * times * error, p)


def pooled_text(mean):
    """A mean over sets as a change in percent."""
    return percent_of(mean.mean, mean.error, mean.p_value)


def pooled_section(results):
    """The forest, and what it says in numbers."""
    means = pooled(results)
    if not means:
        return
    yield heading("All sets combined")
    yield texts.POOLING.format(n=len(human(results)))
    yield figure("forest", *texts.FIGURES["forest"])
    rows = [
        ["mean of the sets, %", *map(pooled_text, means.values())],
        ["p", *(f"{mean.p_value:.1g}" for mean in means.values())],
        ["sets", *(str(mean.n_sets) for mean in means.values())],
        ["spread between sets, %", *(f"{100 * m.tau:.0f}" for m in means.values())],
        ["proportion of the variance between sets, %"]
        + [f"{100 * mean.share:.0f}" for mean in means.values()],
        [
            "p for the same effect in all sets",
            *(f"{m.p_same:.2g}" for m in means.values()),
        ],
    ]
    header = ["alpha", *(f"{alpha:g}" for alpha in means)]
    title = "The default relative to the regression, over all sets judged by people"
    yield table(title, header, rows)


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


def has_evidence(results):
    """Whether all of it was measured."""
    names = ("passages", "frequency", "answers", "checks", "seconds")
    return {f"evidence-{name}" for name in names} <= {*results}


def falls(results):
    """The largest fall with more labels, in errors of the difference."""
    lines, worst = {}, {"fall": 0.0}
    for row in results["labels"]["rows"]:
        lines.setdefault((row["data"], row["filter"]), []).append(row)
    for line in lines.values():
        for few, more in combinations(line, 2):
            error = hypot(few["retention_error"], more["retention_error"])
            found = {
                "fall": (few["retention"] - more["retention"]) / error,
                "few": f"{few['coverage']:.3f} with {few['n']:,}",
                "more": f"{more['coverage']:.3f} with {more['n']:,}",
            }
            worst = max(worst, found, key=lambda one: one["fall"])
    draws = sorted({row["draws"] for row in results["labels"]["rows"]})
    asked = results["prmbench"]["data"]["n_questions"]
    draws = " to ".join(map(str, draws[:1] + draws[1:][-1:]))
    return worst | {"draws": draws, "asked": asked}


def spread(results):
    """The largest difference of coverage between filters at one level, and where it is."""
    found = {}
    for name, (title, *_) in texts.SETS.items():
        for row in results[name]["rows"] if name in results else ():
            if not row["filter"].startswith("agreement alone"):  # ties keep it above
                found.setdefault((title, row["alpha"]), []).append(row["coverage"])
    place = max(found, key=lambda key: max(found[key]) - min(found[key]))
    width = 100 * (max(found[place]) - min(found[place]))
    return {"spread": width, "where": f"{place[0]} answers, alpha = {place[1]:g}"}


def shortfall(results):
    """How far the observed coverage stays below the promised one where it does most."""
    worst = {"worst": 0.0, "errors": 0.0}
    for row in results["observed"]["rows"]:
        if row["way"] not in ("fixed", "all"):
            alpha, n = float(row["way"]), row["n_questions"]
            miss = 1 - alpha - row["safe"]
            found = {
                "worst": 100 * miss,
                "errors": miss / sqrt(alpha * (1 - alpha) / n),
            }
            worst = max(worst, found, key=lambda one: one["errors"])
    return worst


def results_page(results):
    """The page that a reader meets first."""
    parts = [texts.HEAD]
    if "observed" in results:
        parts.append(texts.GUARANTEE.format(**shortfall(results)))
        parts += [
            figure("guaranteed", *texts.FIGURES["guaranteed"]),
            first_table(results),
        ]
    parts.append(summary(results))
    header, rows = compared_rows(results, texts.IN_SHORT_PAIRS)
    rows += pooled_row(results)
    parts += [texts.IN_SHORT, table("Change in true claims kept, %", header, rows)]
    parts += pooled_section(results)
    parts += [heading("How the default was chosen"), texts.CHOSEN]
    alt, caption = texts.FIGURES["labelled"]
    parts.append(figure("retention", *texts.FIGURES["retention"]))
    parts.append(figure("labelled", alt, caption.format(**falls(results))))
    parts += rag_section(results)
    parts += written_section(results)
    parts += stopped_section(results)
    parts.append(conditions(results))
    return joined(parts)


def tables_page(results):
    """The appendix with every table."""
    parts = [texts.TABLES, texts.READING.format(**spread(results))]
    for section in (
        planted_section,
        natural_sections,
        changes_section,
        labels_section,
        answers_section,
        false_section,
        coverage_section,
        resources_section,
    ):
        parts += section(results)
    return joined(parts)


def measurements_page(folder):
    """What other programs print, word for word, folded."""
    parts = [texts.MEASUREMENTS]
    for name, title in PRINTED.items():
        path = folder / f"{name}.txt"
        if path.exists():
            printed = path.read_text(encoding="utf-8").strip("\n")
            lines = (f"      {line}".rstrip() for line in printed.splitlines())
            fold = f".. dropdown:: {program_of(name)}\n\n   .. code-block:: text\n\n"
            parts += [heading(title), texts.MEASURED[name], fold + "\n".join(lines)]
    table = (folder / "over_folds.txt").read_text(encoding="utf-8")
    block = "".join(f"      {line}\n" for line in table.splitlines())
    fold = ".. dropdown:: all cells\n\n   .. code-block:: text\n\n"
    return joined(
        [*parts, heading("Calibration over folds"), texts.FOLDS, fold + block]
    )


def joined(parts):
    """One text of many."""
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
    if has_evidence(results):
        rows = [texts.EVIDENCE_HEAD, *evidence(results)]
        text = markdown([row[:5] for row in rows])  # the landing page has the rest
        readme = put(readme, EVIDENCE, text)
    return readme


def put(readme, name, text):
    """A text in its place between two marks."""
    start = f"<!-- benchmarks/pages/report.py writes {name} -->\n"
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(END)
    return before + start + text + END + after if after else readme


def compared_rows(results, pairs_of_set):
    """Header, and one row per comparison.

    Changes at four levels; at one of them what is kept and shown by both filters.
    """
    alpha, rows = texts.EVIDENCE_LEVEL, []
    for name, pairs in pairs_of_set.items():
        experiment = results.get(name, {"names": ()})
        at = {
            row["filter"]: row
            for row in experiment.get("rows", ())
            if row["alpha"] == alpha
        }
        for filter, reference, text in pairs:
            if not {filter, reference} <= {*experiment["names"]}:
                continue
            changes = [
                change_text(*change(experiment, filter, reference, a))
                for a in texts.POOLED
            ]
            pair = at[filter], at[reference]
            kept = " / ".join(f"{row['retention']:.2f}" for row in pair)
            shares = zip(*(shown(row)[:2] for row in pair), strict=True)
            both = [
                " / ".join("-" if x is None else f"{100 * x:.0f}" for x in of)
                for of in shares
            ]
            rows.append([text.replace("`", "``"), *changes, kept, *both])
    more = [text.format(alpha=alpha) for text in texts.AT_ONE_LEVEL]
    return ["data", *(f"{a:g}" for a in texts.POOLED), *more], rows


def pooled_row(results):
    """The mean over all sets that people judged, as a row below the sets."""
    means = pooled(results)
    if not means:
        return []
    changes = [pooled_text(means[a]) if a in means else "" for a in texts.POOLED]
    name = texts.POOLED_ROW.format(n=len(human(results)))
    return [[name, *changes, *([""] * len(texts.AT_ONE_LEVEL))]]


def readme_table():
    """Compare the default and the regression among answers that pass, in Markdown."""
    rows = json.loads(PASSING.read_text("utf-8"))
    rows = [row for row in rows if row["alpha"] == README_LEVEL]

    def both(row, number, form):
        values = (row[scorer][number] for scorer in ("stack", "regression"))
        return " / ".join("-" if x is None else form.format(x) for x in values)

    def line(name, row):
        return [
            name,
            f"{100 * row['unfiltered']:.0f} %",
            both(row, "shown", "{:.0%}").replace("%", " %"),
            both(row, "wrong among passing", "{:.0%}").replace("%", " %"),
            both(row, "wrong among shown", "{:.0%}").replace("%", " %"),
            both(row, "true claims", "{:.2f}"),
        ]

    named = {row["set"]: row for row in rows}
    lines = [line(title, named[name]) for name, title in texts.README_SETS.items()]
    mean = {"unfiltered": np.mean([row["unfiltered"] for row in rows])}
    for scorer in ("stack", "regression"):
        numbers = {
            number: np.mean([row[scorer][number] for row in rows])
            for number in ("shown", "true claims")
        }
        mean[scorer] = numbers | {
            "wrong among passing": None,
            "wrong among shown": None,
        }
    lines.append(line(f"**mean over {len(rows)} sets**", mean))
    return markdown([texts.README_HEAD, *lines])


def markdown(rows):
    """A table whose first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines).replace("\\", "").replace("``", "`") + "\n"


def save_tables(results, folder):
    """Save the table of evidence for the landing page."""
    if has_evidence(results):
        rows = [[cell.replace("`", "``") for cell in row] for row in evidence(results)]
        with (folder / "evidence.csv").open("w", encoding="utf-8") as file:
            header = [cell.replace("`", "``") for cell in texts.EVIDENCE_HEAD]
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main(results, pages):
    """Write the pages and their pictures."""
    saved = read(results)
    save_all(saved, pages / "figures")
    for name, text in (
        ("results", results_page(saved)),
        ("results_tables", tables_page(saved)),
        ("measurements", measurements_page(results)),
    ):
        (pages / f"{name}.rst").write_text(text, encoding="utf-8")
        print(f"wrote {pages / name}.rst")
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
