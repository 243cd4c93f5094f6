"""Commands that make and use a filter: ``fit``, ``calibrate``, ``filter``, ``explain``."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
from tqdm import tqdm

from .. import inspection, load, save
from ..datasets.jsonl import format_jsonl, iter_jsonl
from ..estimators import CoherentConformalFilter
from ..features import reasoning_features
from ..graphs import GraphBatch, answer_text
from ..labelling import describe_labels
from ..scorers import ClassifierScorer
from ._files import (
    check_folder,
    count_questions,
    inform,
    read_problems,
    renamed,
    show,
    show_claims,
    source,
    ticking,
    write_lines,
)

RESULT = "filtered"  # the key of the metadata under which the result stands
KEEPS_NOTHING = 1  # the exit code where there are too few labels
_CHUNK = 500  # problems in memory at a time


def make_filter(scorer, options, **more):
    """Make an unfitted filter with the scorer of that name."""
    scorer = ClassifierScorer() if scorer == "logistic" else scorer
    return CoherentConformalFilter(scorer, random_state=options.seed, **more)


def wanted_features(wanted, graphs):
    """Make what computes the columns, or None where those given are enough."""
    wanted = wanted or ("built-in" if graphs.features is None else "given")
    if wanted == "given":
        return None
    return reasoning_features().set_params(keep_input=wanted == "both")


def fit(options):
    """Train, calibrate and save a filter."""
    check_folder(options.output)
    data = read_problems(options, labelled=True)
    size = options.calibration
    model = make_filter(
        options.scorer,
        options,
        alpha=options.alpha,
        edges="none" if options.no_edges else "given",
        calibration_size=int(size) if size is not None and size >= 1 else size,
    )
    model.features = wanted_features(options.features, data.graphs)
    with ticking(f"fitting on {len(data.graphs)} problems"):
        model.fit(data.graphs, data.labels)
    n, alone = len(data.graphs), "" if len(data.graphs.edges) else ", without edges"
    inform(f"fitted on {n} problems of {count_questions(data.graphs)} questions{alone}")
    return _save(model, data, options)


def calibrate(options):
    """Calibrate a saved filter again and save it."""
    check_folder(options.output)
    filter = load(options.model)
    data = read_problems(options, labelled=True)
    if options.alpha is not None:
        promised = filter.guarantee and filter.guarantee.for_level(options.alpha)
        filter.set_params(alpha=options.alpha, guarantee=promised)
    with ticking(f"calibrating on {len(data.graphs)} problems"):
        filter.calibrate(data.graphs, data.labels)
    return _save(filter, data, options)


def _save(filter, data, options):
    """Save what can keep something, and say what it promises."""
    n = filter.n_calibration_
    inform(
        f"labels: {describe_labels(data.graphs, data.labels)}",
        f"promise: {filter.describe()}",
        f"{n} answers calibrated; they allow levels from alpha = {1 / (n + 1):.3g} on",
    )
    for reason in filter.origin_.get("accepted", ()):
        inform(f"problems made otherwise were accepted: {reason}")
    if np.all(np.isneginf(filter.threshold())) and not options.force:
        inform(
            f"skdcf {options.command}: at this level the filter would keep nothing, so it "
            "was not saved. Judge more answers (skdcf plan says how many), choose a larger "
            "--alpha, or save it all the same with --force"
        )
        return KEEPS_NOTHING
    save(filter, options.output)
    inform(f"saved as {options.output}")


def filter_problems(options):
    """Write each problem with the mask of what is kept, its level per claim and the text."""
    filter = load(options.model)
    alpha = filter.calibration_.guarantee.level(options.alpha, filter.alpha)
    counts = Counter()
    rows = iter_jsonl(source(options.problems), rename=renamed(options))
    rows = _filtered(filter, rows, alpha, counts)
    lines = _lines(rows, alpha)
    if options.text:
        lines = (kept_text(row.graph, m) or options.empty for row, m, _ in rows)
    write_lines(options.output, lines)
    inform(
        f"{counts['kept']} of {counts['claims']} claims kept in {counts['problems']} "
        f"problems; in {counts['empty']} of them nothing is left"
    )


def _filtered(filter, rows, alpha, counts):
    """Yield each `Problem` of ``rows`` with the mask and the levels of its claims."""
    rows = iter(rows)
    # None shows progress where somebody watches, and is silent in a pipe.
    with tqdm(unit=" problems", disable=None) as bar:
        while chunk := list(islice(rows, _CHUNK)):
            graphs = GraphBatch.pack([row.graph for row in chunk])
            masks, levels = filter.predict(graphs, alpha), filter.predict_alpha(graphs)
            for row, mask, level in zip(chunk, masks, levels, strict=True):
                n = int(mask.sum())
                counts.update(problems=1, claims=len(mask), kept=n, empty=not n)
                yield row, mask, level
            bar.update(len(chunk))


def kept_text(graph, mask):
    """Give the kept claims as one line; empty where nothing is kept."""
    return " ".join(answer_text(graph.subgraph(mask)).split())


def _lines(rows, alpha):
    for row, mask, levels in rows:
        result = {"alpha": alpha, "claim_alpha": levels.tolist()}
        if row.graph.claims is not None:
            result["text"] = kept_text(row.graph, mask)
        metadata = {**(row.metadata or {}), RESULT: result}
        columns = ([v] for v in (row.graph, row.labels, mask))
        yield from format_jsonl(*columns, groups=[row.group], metadata=[metadata])


def explain(options):
    """Print what was kept of one answer, and why the rest was dropped."""
    model = load(options.model)
    graph = _find(read_problems(options).graphs, options.id)
    explained = inspection.explain(model, graph, alpha=options.alpha)
    if not options.json:
        show_claims(graph, explained.kept)
    show(explained.rows() if options.json else explained, options.json)


def _find(graphs, wanted):
    """The problem of that id, or else of that number, counted from 1."""
    ids = [None] * len(graphs) if graphs.ids is None else list(map(str, graphs.ids))
    if wanted in ids:
        return graphs[ids.index(wanted)]
    if wanted.isdecimal() and 0 < int(wanted) <= len(graphs):
        return graphs[int(wanted) - 1]
    raise ValueError(
        f'no problem has the id "{wanted}"; a number from 1 to {len(graphs)} names a '
        "problem by its place in the file"
    )
