"""Commands that look: ``check``, ``features``, ``plan``, ``evaluate``, ``compare``, ``report``."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import asdict

import numpy as np
from scipy.stats import beta
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit

from .. import load
from .._checks import printable
from ..datasets.jsonl import format_jsonl, read_jsonl
from ..evaluation import compare_filters
from ..exceptions import CalibrationWarning
from ..features import reasoning_features
from ..guarantees import problems_needed
from ..labelling import describe_labels
from ..metrics import evaluate_filter
from ..ops.conformal import conformal_rank
from ..reporting import write_report
from ._files import (
    check_folder,
    count_questions,
    inform,
    read_problems,
    renamed,
    show,
    source,
    ticking,
    write_lines,
)
from ._fit import make_filter, wanted_features

FOUND_BROKEN_LINES = 1
_SHOWN = 20  # broken lines
_DOUBLINGS, _DRAWS = 6, 10


def check(options):
    """Print what there is, and each line that breaks the format."""
    how = {"rename": renamed(options), "on_invalid": "drop"}
    try:
        data = read_jsonl(source(options.problems), **how)
        summary, dropped = _summary(data), data.dropped
    except ValueError as error:
        if not (dropped := getattr(error, "dropped", None)):
            raise
        summary = {"problems": 0}
    summary["broken_lines"] = [{"line": n, "reason": why} for n, why in dropped]
    text = "\n".join(_describe(options.problems, summary))
    show(summary if options.json else text, options.json)
    return FOUND_BROKEN_LINES if dropped else 0


def _summary(data):
    graphs = data.graphs
    labels = np.concatenate(data.labels or [[]]).astype(int)
    words = {"true": 1, "false": 0, "unknown": -1}
    try:
        questions = count_questions(graphs)
    except ValueError as error:  # one text may be an instruction, or a question
        questions = str(error)
    return {
        "problems": len(graphs),
        "claims": graphs.n_claims,
        "edges": len(graphs.edges),
        "edges_known": int(np.sum(graphs.edges_known)),
        "questions": questions,
        "claim_texts": graphs.claims is not None,
        "features": None if graphs.features is None else graphs.n_features,
        "alternatives": _sizes(graphs.alternatives),
        "context": _sizes(graphs.context),
        "labels": {name: int(np.sum(labels == v)) for name, v in words.items()},
        "metadata": sorted({key for row in data.metadata or [] for key in row or {}}),
    }


def _sizes(rows):
    """How many problems have how many texts."""
    known = () if rows is None else filter(lambda row: row is not None, rows)
    return dict(Counter(map(len, known)))


def _describe(name, summary):
    n = summary["problems"]
    yield f"{name}: {n} problems" + (f", {summary['claims']} claims" if n else "")
    for title, value in _rows(summary) if n else ():
        yield f"  {title:13} {value or 'none'}"
    if broken := summary["broken_lines"]:
        yield f"{len(broken)} broken lines:"
        yield from (f"  line {b['line']}: {b['reason']}" for b in broken[:_SHOWN])
        if len(broken) > _SHOWN:
            yield f"  and {len(broken) - _SHOWN} more"


def _rows(summary):
    n, known = summary["problems"], summary["edges_known"]
    unknown = f", unknown in {n - known} problems" if known < n else ""
    yield "questions", summary["questions"]
    yield "claim texts", "yes" if summary["claim_texts"] else "no"
    yield "edges", f"{summary['edges']}{unknown}"
    computed = 'none ("skdcf fit" computes those of texts and edges)'
    yield "features", summary["features"] or computed
    for name, what in (("alternatives", "other answers"), ("context", "passages")):
        counts = sorted(summary[name].items())
        yield name, ", ".join(f"{k} {what} in {m} problems" for k, m in counts)
    labels = summary["labels"].items()
    yield "labels", ", ".join(f"{m} {name}" for name, m in labels if m)
    yield "metadata", ", ".join(map(printable, summary["metadata"]))


def add_features(options):
    """Write the problems again, with the built-in columns beside those that they have."""
    data = read_problems(options)
    graphs = reasoning_features().fit_transform(data.graphs)
    columns = (data.labels, data.masks)
    more = {"groups": data.groups, "metadata": data.metadata}
    write_lines(options.output, format_jsonl(graphs, *columns, **more))
    inform(f"{len(graphs)} problems with {graphs.n_features} features each")


def plan(options):
    """Print how many answers a level takes, and what each doubling buys."""
    alpha, needed = options.alpha, problems_needed(options.alpha, options.delta)
    sizes = [(needed + 1) * 2**k - 1 for k in range(_DOUBLINGS)]
    rows = [_promised(n, alpha, options.delta) for n in sizes]
    if options.problems:
        data = read_problems(options, labelled=True)
        with ticking(f"fitting on parts of {len(data.graphs)} problems"):
            for row in rows:
                row |= _kept(row["answers"], data, options)
    text = "\n".join(_planned(rows, needed, options))
    show(rows if options.json else text, options.json)


def _promised(n, alpha, delta):
    k = conformal_rank(n, alpha, delta)
    low, high = beta.ppf([0.05, 0.95], n + 1 - k, k)
    return {"answers": n, "coverage_low": low, "coverage_high": high}


def _kept(n, data, options):
    """True claims kept per answer with so many labels, over draws of them."""
    size, graphs = len(data.graphs), data.graphs
    if 5 * n > 4 * size:
        return {}
    if features := wanted_features(options.features, graphs):
        graphs = features.fit_transform(graphs)  # no label enters
    groups = np.arange(size) if data.groups is None else data.groups
    cut = GroupShuffleSplit(_DRAWS, train_size=n / size, random_state=options.seed)
    filter, kept = make_filter(options.scorer, options, alpha=options.alpha), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the numbers say it
        for some, others in cut.split(groups, groups=groups):
            known, held = _part(graphs, data, some), _part(graphs, data, others)
            try:
                model = clone(filter).fit(*known, groups[some])
            except ValueError:  # too few to train anything
                return {}
            found = evaluate_filter(model, *held, [options.alpha])
            kept.append([found.retention[0], found.false_kept[0]])
    (true, false), error = np.mean(kept, axis=0), np.std(kept, axis=0, ddof=1)[0]
    error /= np.sqrt(len(kept))
    return {"kept": float(true), "kept_error": float(error), "false_kept": float(false)}


def _part(graphs, data, rows):
    return graphs[rows], [data.labels[i] for i in rows]


def _planned(rows, needed, options):
    yield (
        f"At alpha = {options.alpha:g} nothing is kept before {needed} answers calibrate. "
        "Draw the answers to judge at random."
    )
    if options.delta is not None:
        yield f"So many are needed to be sure of it with probability {1 - options.delta:g}."
    yield "answers   if all calibrate, coverage is (90 %)   true, false claims kept if they train"
    for row in rows:
        band = f"{row['coverage_low']:.1%} to {row['coverage_high']:.1%}"
        form = "{kept:.2f} +- {kept_error:.2f}, {false_kept:.2f}"
        kept = form.format_map(row) if "kept" in row else "-"
        yield f"{row['answers']:7}   {band:34}   {kept}"
    if not options.problems:
        yield "With a file of labelled answers the last column is measured on them."


def evaluate(options):
    """Print coverage and retention of a saved filter."""
    model = load(options.model)
    data = read_problems(options, labelled=True)
    held = data.graphs, data.labels
    report = evaluate_filter(model, *held, options.alphas, by=options.by)
    inform(f"labels: {describe_labels(*held)}")
    show(asdict(report) if options.json else report, options.json)


def compare(options):
    """Print what filters with different scorers keep."""
    data = read_problems(options, labelled=True)
    graphs = data.graphs
    if features := wanted_features(options.features, graphs):
        graphs = features.fit_transform(graphs)  # no label enters
    report = compare_filters(
        {name: make_filter(name, options) for name in options.scorers},
        graphs,
        data.labels,
        options.alphas,
        cv=options.splits,
        groups=data.groups,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=sys.stderr.isatty(),
        resume=options.resume,
    )
    show(report.rows() if options.json else report, options.json)


def report(options):
    """Write a page that a reader without Python understands."""
    check_folder(options.output)
    model = load(options.model)
    data = read_problems(options, labelled=True)
    more = {"alphas": options.alphas, "by": options.by, "n_answers": options.answers}
    with ticking("writing the page"):
        write_report(options.output, model, data.graphs, data.labels, **more)
    inform(f"wrote {options.output}")
