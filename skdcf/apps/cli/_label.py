"""The command ``label``, which serves a local web page on which people judge claims.

People judge whole answers, or check dropped claims if ``--review`` is set.
"""

import getpass
import json
import signal
import threading
import webbrowser
from collections import defaultdict
from pathlib import Path

import numpy as np

from ... import load
from ..._checks import counted
from ..._files import write_text
from ...datasets import jsonl
from ...inspection import explain
from .. import labelling, text
from ..labelling import exchange
from ._files import check_folder, inform, read_problems, write_lines
from ._filter import write_answers


def label(options):
    """Serve the labelling page until the user stops the program, then write the labels."""
    useless = "json text_key"
    if options.review:
        useless = "filter label_studio csv import"
    for name in useless.split():
        if getattr(options, name):
            option = name.replace("_", "-")
            place = "with" if options.review else "without"
            raise ValueError(f"--{option} has no effect {place} --review. Omit it")
    options.annotator = options.annotator or getpass.getuser()
    if options.review:
        options.next = "skdcf report {review} test.jsonl -o report.html"
    problems = read_problems(options)
    if options.review:
        _review(options, problems)
    else:
        _judge(options, problems)


def _judge(options, problems):
    """Let a person label answers for calibration, and write the labels."""
    for path in (options.label_studio, options.csv):
        check_folder(path)
    order = labelling.RandomOrder(options.seed)
    if options.filter:
        model = load(options.filter)
        order = labelling.FilterOrder(model, problems.graphs, options.alpha)
    journal = options.journal or f"{options.problems}.labels"
    store = labelling.LabelStore(problems.graphs, journal, problems.labels)
    if getattr(options, "import"):
        _import(store, options)
    meaning = _meaning(options, problems.graphs)
    _serve(options, store, order, meaning=meaning)
    if options.output:
        about = {"label_order": "random", "label_meaning": meaning}
        if options.filter:
            about["label_order"] = "doubtful"
        _write_judged(options, store, problems, about)
        _propose_patterns(store)
    _write_tables(options, store)
    _say_where(options, journal, is_done=not order(store, options.annotator))


def _review(options, problems):
    """Let a person check the dropped claims with the lowest risk, and write the kept claims."""
    filter = load(options.review)
    graphs = problems.graphs
    review = labelling.ReviewOrder(filter, graphs, options.alpha)
    n_before = sum(int(mask.sum()) for mask in review.masks())
    journal = options.journal or f"{options.problems}.review"
    store = labelling.LabelStore(graphs, journal, purpose="review")
    meanings = set(filter.provenance_.get("label_meaning", ())) - {None}
    meaning = _meaning(options, graphs, meanings if len(meanings) == 1 else ())
    _serve(options, store, review, meaning=meaning)
    is_done = not review(store, options.annotator)
    masks = review.masks()
    if options.output:
        problems.graphs, labels = review.reviewed(label_meaning=meaning)
        known = problems.labels or [np.full(len(row), -1) for row in labels]
        problems.labels = [
            np.where(row < 0, old, row) for row, old in zip(labels, known, strict=True)
        ]
        explained = explain(filter, graphs, alpha=options.alpha)
        write_answers(options, problems, explained, masks, review.checked())
    inform(
        f"{sum(int(mask.sum()) for mask in masks)} of {counted(graphs.n_claims, 'claim')} in "
        f"{counted(len(masks), 'answer')} are kept, compared with {n_before} without checks",
        f"guarantee: {review.describe()}",
    )
    _say_where(options, journal, is_done=is_done)


def _say_where(options, journal, is_done):
    """Print the paths of the output file and of the journal."""
    if options.output:
        inform(f"saved in {options.output}")
    to_continue = "" if is_done else ". To continue later, run the same command again"
    inform(f"verdicts are stored in {journal}{to_continue}")


def _meaning(options, graphs, meanings=()):
    """Return the label meaning of a filter, in the file, of ``--meaning``, or by the context."""
    meanings = set(meanings)
    if not meanings:
        meanings = {row.get("label_meaning") for row in graphs.provenance_rows} - {None}
    if options.meaning:
        meanings.add(options.meaning)
    if len(meanings) > 1:
        raise ValueError(
            "--meaning and all labels in the file or in the filter must have the same meaning, "
            f"got {sorted(map(str, meanings))}"
        )
    has_context = any(graph.context for graph in graphs)
    return next(iter(meanings), "supported" if has_context else "true")


def _serve(options, store, order, meaning):
    """Serve the page until Ctrl-C, even if all claims are judged, so verdicts can be changed."""
    by = options.annotator
    if not options.no_page and (order(store, by) or by in store.annotators()):
        with labelling.LabelServer(
            store, by, options.port, order=order, meaning=meaning
        ) as server:
            inform(f"judging as {by}: {server.url}", "Press Ctrl-C to stop")
            if not options.no_browser:
                webbrowser.open(server.url)
            _wait()
        store.follow()
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


def _import(store, options):
    """Import verdicts from another program, and attribute them to their annotators."""
    path = getattr(options, "import")
    content = Path(path).read_bytes()
    if content.lstrip().startswith((b"[", b"{")):
        try:
            tasks = json.loads(content)
        except ValueError as error:
            raise ValueError(
                f"{path} must be a CSV table or a single JSON document ({error})"
            ) from None
        judgements = exchange.from_label_studio(tasks, store.graphs)
    else:
        judgements = exchange.read_csv(path, store.graphs)
    for name, words in judgements.items():
        by = options.annotator if name == "imported" else name
        new = [
            (i, v, word)
            for i, row in enumerate(words)
            for v, (word, old) in enumerate(zip(row, store.said(i, by), strict=True))
            if word not in (None, old)
        ]
        for verdict in new:
            store.label(*verdict, by=by)
        inform(f"imported {counted(len(new), 'verdict')} of {by} from {path}")
    if options.no_page and options.annotator not in store.annotators():
        raise ValueError(
            f"--annotator must be one of {store.annotators()}, whose labels were imported from "
            f"{path}, got {options.annotator!r}"
        )


def _write_judged(options, store, problems, about):
    """Write the problems that were judged in the current order, with the labels of people.

    In random order, problems that were skipped and problems without claims are written too, up to
    the last judged problem. Without them, the written problems would not be a random sample.
    """
    by = options.annotator
    rows = labelling.RandomOrder(options.seed).order(store)
    if options.filter:
        rows = [i for i in rows if any(store.said(i, by))]
    while rows and not any(store.said(rows[-1], by)):
        rows.pop()
    if not rows:
        inform(f"no claim is judged yet, so {options.output} is not written")
        options.output = None
        return
    exported = store.export(by)
    if exported.n_corrected and problems.graphs.features is not None:
        inform(
            f"the edges of {counted(exported.n_corrected, 'answer')} changed. Compute their "
            "feature columns again"
        )
    of_people = store.labels(by, known=False)
    graphs = []
    labels = []
    rows.sort()
    for i in rows:
        made = exported.graphs[i].provenance or {}
        is_by_person = made.get("label_source") == "person"
        labels.append(exported.labels[i] if is_by_person else of_people[i])
        made = made | about | {"label_source": "person"}
        graphs.append(exported.graphs[i].replace(provenance=made))
    groups = problems.groups
    groups = None if groups is None else [groups[i] for i in rows]
    write_lines(options.output, jsonl.format_jsonl(graphs, labels, groups=groups))
    inform(labelling.describe_labels(graphs, labels))


def _propose_patterns(store):
    """Print patterns for sentences that people judged at least twice, always as "no claim"."""
    words_of = defaultdict(list)
    for by in store.annotators():
        for i, v in store.in_order(by):
            pattern = text.pattern_of(store.graphs[i].claims[v])
            words_of[pattern].append(store.said(i, by)[v])
    patterns = [
        pattern
        for pattern, words in words_of.items()
        if words.count("no claim") == len(words) > 1
    ]
    if patterns:
        inform(
            'these patterns match the sentences that were always judged "no claim". To leave out '
            "such sentences, append the patterns to a copy of the built-in list "
            "(skdcf/apps/text/no_claim.txt), and pass the copy to skdcf split --no-claim:",
            *patterns,
        )


def _write_tables(options, store):
    """Write the claims and verdicts for other programs.

    The problems are in random order. If annotators label only the first few problems, the
    labelled problems are a random sample.
    """
    order = labelling.RandomOrder(options.seed).order(store)
    if options.csv:
        exchange.write_csv(options.csv, store, options.annotator, order)
        inform(
            f"wrote {options.csv}. A text that starts with =, +, - or @ is preceded by an "
            "apostrophe, which --import removes"
        )
    if options.label_studio:
        tasks = exchange.to_label_studio(store, options.annotator, order)
        write_text(options.label_studio, [json.dumps(tasks)])
