"""The command ``label``, which serves a local web page on which people judge claims.

People judge whole answers, or check dropped claims if ``--review`` is set.
"""

from __future__ import annotations

import getpass
import json
import signal
import threading
import webbrowser
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import GraphBatch, load
from ..._checks import counted
from ..._files import write_text
from ...datasets import jsonl
from ...datasets.records import Columns
from .. import labelling
from ..labelling.sources import WORDS
from ._commands import decided, format_lines, one_line, read_lines, shown_texts
from ._files import check_folder, inform, read_problems, write_lines

#: Options that apply only to labelling, keyed by attribute name.
_LABELLING = {
    "filter": "--filter",
    "show_known": "--show-known",
    "label_studio": "--label-studio",
    "csv": "--csv",
    "results": "--import",
}
#: Options that apply only to a review, keyed by attribute name.
_REVIEW = {
    "error_rate": "--error-rate",
    "mark_checked": "--mark-checked",
    "text": "--text",
    "text_key": "--text-key",
    "empty": "--empty",
}


def label(options):
    """Serve the labelling page until the user stops the program, then write the labels."""
    _refuse_mixed(options)
    if options.review:
        _review(options)
    else:
        _judge(options)


def _judge(options):
    """Let a person label answers for calibration, and write the labels."""
    for path in (options.label_studio, options.csv):
        check_folder(path)
    problems = read_problems(options)
    journal = options.journal or f"{options.problems}.labels"
    by = options.annotator or getpass.getuser()
    order: Any = labelling.RandomOrder(options.seed)
    if options.filter:
        model = load(options.filter)
        order = labelling.FilterOrder(model, problems.graphs, options.alpha)
    store = labelling.LabelStore(problems.graphs, journal, problems.labels)
    if options.results:
        names = _import(store, options.results, by)
        if options.no_page and names and by not in store.annotators():
            if options.annotator is not None or len(names) > 1:
                raise ValueError(
                    f"{options.results} contains labels from annotators other than {by}. Pass "
                    f"--annotator with one of {names}"
                )
            by = names[0]
    meaning = _meaning(options, problems.graphs)
    if not options.no_page:
        _serve(options, store, by, order, meaning=meaning)
    _write(options, store, by, meaning=meaning, problems=problems)
    _say_where(None, journal, is_done=not order(store, by))


def _say_where(output, journal, is_done):
    """Print the paths of the output file and of the journal."""
    if output:
        inform(f"saved in {output}")
    to_continue = "" if is_done else ". To continue later, run the same command again"
    inform(f"judgements are stored in {journal}{to_continue}")


def _refuse_mixed(options):
    """Raise ValueError if an option would have no effect."""
    unused, needed = _REVIEW, "without --review"
    if options.review:
        unused, needed = _LABELLING, "with --review"
    for name, option in unused.items():
        if getattr(options, name) not in (None, False, ""):
            raise ValueError(f"{option} has no effect {needed}. Omit {option}")


def _review(options):
    """Let a person check the dropped claims with the lowest risk, and write the kept claims."""
    check_folder(options.output)
    filter = load(options.review)
    [lines] = read_lines(options)
    graphs = lines.problems.graphs
    review = labelling.ReviewOrder(filter, graphs, options.alpha)
    error_rate = options.error_rate or 0.0
    # Raise an error for an invalid error rate before the annotator starts to judge.
    review.describe(error_rate)
    masks_before = review.masks()
    journal = options.journal or f"{options.problems}.review"
    store = labelling.LabelStore(graphs, journal, purpose="review")
    meaning = _meaning_of_filter(options, filter, graphs)
    by = options.annotator or getpass.getuser()
    if not options.no_page:
        _serve(options, store, by, review, meaning=meaning)
        store.follow()
    is_done = not review(store, by)
    masks = review.masks()
    if options.output:
        decisions = decided(filter, lines, graphs, masks=masks, counts=Counter())
        judged = _judged(decisions, store, by, meaning=meaning)
        judged = replace(judged, checked=review.checked())
        level = filter.calibration_.guarantee.level(options.alpha, filter.alpha)
        _write_lines(options, judged, level)
    n_kept = sum(int(mask.sum()) for mask in masks)
    n_before = sum(int(mask.sum()) for mask in masks_before)
    n_empty = sum(len(mask) > 0 and not mask.any() for mask in masks)
    inform(
        f"{n_kept} of {counted(graphs.n_claims, 'claim')} in "
        f"{counted(len(lines), 'problem')} are kept, compared with {n_before} without "
        f"checks. All claims of {counted(n_empty, 'problem')} were removed"
    )
    inform(f"guarantee: {review.describe(error_rate)}")
    _say_where(options.output, journal, is_done=is_done)


def _meaning_of_filter(options, filter, graphs):
    """Return the label meaning used in calibration or, if unknown, the meaning in the file."""
    meanings = set(filter.provenance_.get("label_meaning", ())) - {None}
    if len(meanings) != 1:
        return _meaning(options, graphs)
    [meaning] = meanings
    if options.meaning not in (None, meaning):
        raise ValueError(
            f"--meaning must be {meaning!r} to match the calibration labels, got "
            f"{options.meaning!r}. Omit --meaning"
        )
    return meaning


def _judged(lines, store, by, *, meaning):
    """Return the lines with labels, which are marked as unsuitable for calibration."""
    about = {
        "label_order": "review",
        "label_meaning": meaning,
        "label_source": "person",
    }
    problems = []
    for i, problem in enumerate(lines.problems.problems()):
        graph = problem.graph
        labels = problem.labels
        labels = np.full(graph.n_claims, -1) if labels is None else np.array(labels)
        for v, word in enumerate(store.said(i, by)):
            if word is not None:
                labels[v] = WORDS[word]
        made = (graph.provenance or {}) | about
        graph = graph.replace(provenance=made, metadata=problem.metadata)
        problems.append(problem._replace(graph=graph, labels=labels))
    return replace(lines, problems=Columns.from_problems(problems))


def _write_lines(options, lines, level):
    """Write the kept texts, or the lines with the decisions of the filter."""
    if options.text:
        texts = shown_texts(lines, options.mark_checked)
        written = (one_line(text) or options.empty for text in texts)
    else:
        decision = {"alpha": level, "guarantee": "answers"}
        written = format_lines(
            lines, decision, options, mark_checked=options.mark_checked
        )
    write_lines(options.output, written)


def _meaning(options, graphs):
    """Return the label meaning, determined by ``--meaning``, the metadata or the context."""
    meanings = {(graph.provenance or {}).get("label_meaning") for graph in graphs}
    meanings -= {None}
    if len(meanings) > 1:
        raise ValueError(
            "all labels in a file must have the same meaning, got "
            f"{sorted(map(str, meanings))}. Split the file by meaning"
        )
    if meanings and options.meaning and {options.meaning} != meanings:
        raise ValueError(
            f"--meaning must be {meanings.pop()!r} to match the labels in the file, got "
            f"{options.meaning!r}. Omit --meaning"
        )
    context = any(graph.context for graph in graphs)
    return options.meaning or (meanings or {"supported" if context else "true"}).pop()


def _serve(options, store, by, order, **shown):
    if options.guideline:
        shown["guideline"] = Path(options.guideline).read_text("utf-8")
    shown |= {"order": order, "show_known": options.show_known}
    # Even if all claims are judged, the existing verdicts can be reviewed and changed.
    if order(store, by) or by in store.annotators():
        with labelling.LabelServer(store, by, options.port, **shown) as server:
            inform(f"judging as {by}: {server.url}", "Press Ctrl-C to stop")
            if not options.no_browser:
                webbrowser.open(server.url)
            _wait()
    if not order(store, by):
        inform(order.done)


def _wait():
    """Wait for Ctrl-C or SIGTERM, even if the process ignores Ctrl-C by default."""
    done = threading.Event()
    ends = signal.SIGINT, signal.SIGTERM
    handlers = {n: signal.signal(n, lambda *_: done.set()) for n in ends}
    try:
        # On Windows, signals do not interrupt a wait without a timeout.
        while not done.wait(0.5):
            pass
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _import(store, path, by):
    """Import verdicts from another program, and attribute them to their annotators."""
    content = Path(path).read_bytes().lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")
    if content.startswith((b"[", b"{")):
        try:
            tasks = json.loads(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(
                f"{path} must be a single JSON document ({error}). Export the labels as "
                '"JSON" or CSV'
            ) from None
        judgements = labelling.from_label_studio(tasks, store.graphs)
    else:
        judgements = labelling.exchange.read_csv(path, store.graphs)
    for name, words in judgements.items():
        name = by if name == "imported" else name
        new = [
            (i, v, word)
            for i, row in enumerate(words)
            for v, (word, old) in enumerate(zip(row, store.said(i, name), strict=True))
            if word not in (None, old)
        ]
        for judged in new:
            store.label(*judged, by=name)
        inform(f"imported {counted(len(new), 'judgement')} of {name} from {path}")
    return sorted({by if name == "imported" else name for name in judgements})


def _rows_to_write(store, by, options):
    """Return the positions of the problems to write, and the order in which they were judged.

    In random order, problems that were skipped and problems without claims are written too, up to
    the last judged problem. Without them, the written problems would not be a random sample.
    """
    if options.filter:
        judged = [any(store.said(i, by)) for i in range(len(store.graphs))]
        return np.flatnonzero(judged).tolist(), "doubtful"
    order = labelling.RandomOrder(options.seed)
    return sorted(order.up_to_last_judged(store, by)), "random"


def _with_labels_of(graph, labels, own_labels, about):
    """Return a problem with its provenance, and with the labels of people only."""
    made = graph.provenance or {}
    by_person = made.get("label_source") == "person"
    made = made | about | {"label_source": "person"}
    return graph.replace(provenance=made), labels if by_person else own_labels


def _write_judged(options, store, by, *, meaning, problems):
    """Write the problems that were judged in the current order, with the labels of people."""
    rows, order = _rows_to_write(store, by, options)
    if not rows:
        inform(f"no claim is judged yet, so {options.output} is not written")
        return
    about = {"label_order": order, "label_meaning": meaning}
    out = store.export(by)
    own_labels = store.export(by, known=False).labels
    pairs = [
        _with_labels_of(out.graphs[i], out.labels[i], own_labels[i], about)
        for i in rows
    ]
    graphs, labels = zip(*pairs, strict=True)
    masks = problems.masks and [problems.masks[i] for i in rows]
    groups = problems.groups
    groups = None if groups is None else [groups[i] for i in rows]
    batch = GraphBatch.from_graphs(graphs)
    write_lines(options.output, jsonl.format_jsonl(batch, labels, masks, groups=groups))
    inform(f"saved in {options.output}")


def _write(options, store, by, *, meaning, problems):
    out = store.export(by)
    graphs = out.graphs
    if options.output:
        _write_judged(options, store, by, meaning=meaning, problems=problems)
    # Export the problems in random order. If annotators label only the first few problems, the
    # labelled problems are a random sample.
    order = labelling.RandomOrder(options.seed).order(store)
    if options.csv:
        labelling.exchange.write_csv(options.csv, graphs, out.words, order, out.sources)
        inform(
            f"wrote {options.csv}. A text that starts with =, +, - or @ is preceded by an "
            "apostrophe, which --import removes. Programs should match rows by problem_id and "
            "claim_number instead of the text"
        )
    if options.label_studio:
        tasks = labelling.to_label_studio(graphs, out.words, order, out.sources)
        write_text(options.label_studio, [json.dumps(tasks)])
    by_person = {"label_source": "person"}
    judged = [
        graph.replace(provenance=(graph.provenance or {}) | by_person)
        if any(words)
        else graph
        for graph, words in zip(graphs, out.words, strict=True)
    ]
    inform(labelling.describe_labels(judged, out.labels))
    if unfinished := labelling.describe_unfinished(graphs, out.labels):
        inform(unfinished)
    if out.n_unknown:
        inform(
            f"edges: the file has no edges. {by} added edges to {out.n_unknown} of "
            f"{len(graphs)} problems, but did not confirm that the edges of all "
            "problems are known. The edges therefore remain unknown in the file, and "
            "a filter treats the claims as independent. Confirm the edges on the "
            "page. The added edges are stored in the journal"
        )
    if not problems.graphs.edges_known.all() and out.graphs.edges_known.all():
        inform(
            "edges: the edges of all problems are now known. The edges of new "
            "answers must be corrected in the same way. To treat claims as "
            'independent, use "skdcf fit --no-edges"'
        )
    if out.n_corrected and graphs.features is not None:
        inform(
            f"edges of {counted(out.n_corrected, 'problem')} changed. Compute the feature "
            "columns of these problems again"
        )
