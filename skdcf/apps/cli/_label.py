"""The command ``label``: a page on this machine where people judge claims.

What is judged are answers, or with ``--review`` and ``--audit`` what a filter made of them.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import secrets
import signal
import threading
import webbrowser
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import GraphBatch, datasets, load
from ..._checks import printable
from ..._files import write_text
from ...estimators import seen
from ...metrics import error_rate_upper_bound
from .. import labelling
from ..labelling.sources import WORDS, get_label_sources, set_label_sources
from ._commands import decided, format_row, iterate_rows, marked_text
from ._files import check_folder, inform, read_problems, write_lines

_SHOWN = 20  # disagreements
_CONFIDENCE_LEVEL = 0.95
_LOOKS_BY_DEFAULT = [50]
#: Options of labelling, by the names that they have here.
_LABELLING = {
    "filter": "--filter",
    "show_known": "--show-known",
    "label_studio": "--label-studio",
    "csv": "--csv",
    "results": "--import",
    "compare": "--compare",
    "settle": "--settle",
}
#: Those that need one of the others.
_NEEDS = {
    "budget": ("--budget", "review"),
    "error_rate": ("--error-rate", "review"),
    "mark_checked": ("--mark-checked", "review"),
    "text": ("--text", "review"),
    "text_key": ("--text-key", "review"),
    "empty": ("--empty", "review"),
    "n": ("-n", "audit"),
}


def label(options):
    """Serve the page until it is interrupted, then write what was judged."""
    _refuse_mixed(options)
    if options.review:
        _review(options)
    elif options.audit:
        _audit(options)
    else:
        _judge(options)


def _judge(options):
    """Take the labels of answers, which may calibrate."""
    for path in (options.label_studio, options.csv):
        check_folder(path)
    problems = read_problems(options)
    journal = options.journal or f"{options.problems}.labels"
    by = options.annotator or getpass.getuser()
    order: Any = labelling.RandomOrder(options.seed)
    annotators: tuple[str, ...] = ()
    if options.settle:
        annotators = (by, options.settle)
        order = labelling.Disagreements(by, options.settle)
        by = " & ".join(annotators)
    elif options.filter:
        model = load(options.filter)
        order = labelling.FilterOrder(model, problems.graphs, options.alpha)
    store = labelling.LabelStore(problems.graphs, journal, problems.labels)
    if options.results:
        names = _import(store, options.results, by)
        without_page = options.no_page and not (options.settle or options.compare)
        if without_page and names and by not in store.annotators():
            if options.annotator is not None or len(names) > 1:
                raise ValueError(
                    f"say whose labels to write: --annotator, one of {names}"
                )
            by = names[0]
    if options.settle:
        first, second = annotators
        store.settle(first, second, by)
    meaning = _meaning(options, problems.graphs)
    if not (options.no_page or options.compare):
        _serve(options, store, by, order, meaning=meaning, others=annotators)
    _write(options, store, by, meaning=meaning, problems=problems)
    _say_where(options, journal)
    if options.compare:
        _compare(store, by, options.compare)


def _say_where(options, journal):
    """Say in which file the result is, and in which one the judgements are."""
    if options.output:
        inform(f"saved in {options.output}")
    inform(f"judgements are kept in {journal}: the next start goes on there")


def _refuse_mixed(options):
    """ValueError for options that would change nothing."""
    for name, (option, needed) in _NEEDS.items():
        if getattr(options, name) not in (None, False, "") and not getattr(
            options, needed
        ):
            raise ValueError(f"{option} is an option of --{needed}: leave it out")
    if options.review and options.audit:
        raise ValueError("--review and --audit are two kinds of work: choose one")
    if options.review or options.audit:
        for name, option in _LABELLING.items():
            if getattr(options, name):
                raise ValueError(
                    f"{option} is for labels that calibrate, and not for --review and "
                    "--audit: leave it out"
                )


def _review(options):
    """Ask a person about the claims of a batch where it pays, and write what is kept."""
    check_folder(options.output)
    if options.budget is not None and options.budget < 0:
        raise ValueError(f"--budget is {options.budget}, but must be 0 or more")
    filter = load(options.review)
    rows = list(iterate_rows(options))
    graphs = GraphBatch.from_graphs([row.problem.graph for row in rows])
    review = labelling.ReviewOrder(filter, graphs, options.alpha)
    error_rate = options.error_rate or 0.0
    # This refuses an impossible level before anything is asked.
    review.describe(error_rate)
    masks_before = review.masks()
    budget = len(rows) if options.budget is None else options.budget
    order = labelling.BudgetOrder(review, budget)

    journal = options.journal or f"{options.problems}.review"
    store = labelling.LabelStore(graphs, journal, purpose="review")
    meaning = _meaning_of_filter(options, filter, graphs)
    by = options.annotator or getpass.getuser()
    if not options.no_page:
        _serve(options, store, by, order, meaning=meaning)
        store.follow()
    order.take_in(store)

    masks = review.masks()
    if options.output:
        # What a person found true holds nothing false: the chance is that of the rest.
        pairs = zip(masks_before, masks, strict=True)
        unchecked = [before & now for before, now in pairs]
        decisions = decided(filter, rows, graphs, masks=unchecked, counts=Counter())
        lines = [
            replace(
                _judged(row, store, i, meaning=meaning, sampling="review"),
                mask=masks[i],
                checked=checked,
            )
            for i, (row, checked) in enumerate(
                zip(decisions, review.checked(), strict=True)
            )
        ]
        _write_rows(options, lines, _level(filter, options))
    n_kept = sum(int(mask.sum()) for mask in masks)
    n_before = sum(int(mask.sum()) for mask in masks_before)
    n_empty = sum(not mask.any() for mask in masks)
    inform(
        f"{n_kept} of {graphs.n_claims} claims kept in {len(rows)} problems, {n_before} "
        f"without checks; in {n_empty} of them nothing is left"
    )
    inform(f"guarantee: {review.describe(error_rate)}")
    _say_where(options, journal)


def _audit(options):
    """Ask a person about texts that are drawn blindly, and print what is known of all."""
    check_folder(options.output)
    looks = None if options.n is None else _read_looks(options.n)
    filter = load(options.audit)
    rows = list(iterate_rows(options))
    graphs = GraphBatch.from_graphs([row.problem.graph for row in rows])
    _refuse_seen(filter, graphs)
    masks = filter.predict(graphs, options.alpha)
    is_shown = [bool(mask.any()) for mask in masks]
    n_shown = sum(is_shown)
    if not n_shown:
        raise ValueError(
            f"{options.problems}: nothing is kept of any answer, so that there is no text to "
            "judge"
        )

    journal = options.journal or f"{options.problems}.audit"
    by = options.annotator or getpass.getuser()
    all_answers = labelling.LabelStore(graphs, journal, purpose="audit")
    plan = _plan_audit(all_answers, looks, masks=masks, seed=options.seed, by=by)
    looks = sorted({min(n, n_shown) for n in plan["looks"]})
    in_order = labelling.RandomOrder(f"{options.seed} {plan['salt']}")
    shown = [i for i in in_order.order(all_answers) if is_shown[i]]
    drawn = shown[: looks[-1]]
    drawn_graphs = [graphs[i] for i in drawn]
    store = labelling.LabelStore(drawn_graphs, journal, purpose="audit")
    order = labelling.AuditOrder([masks[i] for i in drawn], looks)
    meaning = _meaning_of_filter(options, filter, graphs)
    if not options.no_page:
        _serve(options, store, by, order, meaning=meaning)
        store.follow()

    if options.output:
        decisions = decided(
            filter,
            [rows[i] for i in drawn],
            GraphBatch.from_graphs(drawn_graphs),
            masks=[masks[i] for i in drawn],
            counts=Counter(),
        )
        lines = [
            _judged(row, store, i, meaning=meaning, sampling="audit")
            for i, row in enumerate(decisions)
        ]
        _write_rows(options, lines, _level(filter, options))
    n_texts, n_wrong, n_open = order.look(store)
    n_wrong += n_open
    # All looks hold at once, so that it does no harm to stop at one that looks good.
    error = (1 - _CONFIDENCE_LEVEL) / len(looks)
    bound = error_rate_upper_bound(n_wrong, n_texts, confidence_level=1 - error)
    if n_open:
        inform(
            f"{n_open} of the {n_texts} texts are not judged yet, and count as wrong: the "
            "next start goes on there"
        )
    print(
        f"with {_CONFIDENCE_LEVEL:.0%} confidence, at most {bound:.1%} of the {n_shown} texts "
        f"of which something is kept hold something false: {n_wrong} of {n_texts} that were "
        f"drawn blindly. That is at most {bound * n_shown / len(rows):.1%} of all "
        f"{len(rows)} answers"
    )
    if len(looks) > 1:
        number = looks.index(n_texts) + 1
        inform(f"this is look {number} of {len(looks)}, at {_listed(looks)} texts")
    _say_where(options, journal)


def _read_looks(text):
    """The sizes of the looks of an audit, from a text such as 50,100,150."""
    try:
        looks = [int(part) for part in text.split(",")]
    except ValueError:
        looks = []
    if not looks or looks[0] < 1 or looks != sorted(set(looks)):
        raise ValueError(
            f"-n is {text}, but must be a number of texts, or several in increasing order, "
            "such as 50,100,150"
        )
    return looks


def _listed(looks):
    return ",".join(map(str, looks))


_START_AGAIN = "start a new audit with another --journal, which draws new answers"


def _plan_audit(store, looks, *, masks, seed, by):
    """The plan of an audit, which its journal keeps: it is settled before any verdict.

    With sizes that grow until the bound looks good, the bound was wrong in .184 of the
    audits instead of .05. A salt lets each journal draw texts of its own.
    """
    decided = hashlib.sha256()
    for digest, mask in sorted(
        (store.digest(i), mask.tobytes()) for i, mask in enumerate(masks)
    ):
        decided.update(digest.encode() + mask)
    draw = {"seed": seed, "texts": decided.hexdigest()}
    if store.plan is None:
        salt = secrets.token_hex(8)
        store.settle_plan(looks or _LOOKS_BY_DEFAULT, by=by, salt=salt, **draw)
    plan = store.plan
    if looks not in (None, plan["looks"]):
        raise ValueError(
            f"-n is {_listed(looks)}, but this audit was planned with -n "
            f"{_listed(plan['looks'])} ({store.path}). Its bound does not hold if the sizes "
            f"are changed later: leave -n out, or {_START_AGAIN}"
        )
    if any(plan[name] != value for name, value in draw.items()):
        raise ValueError(
            f"{store.path} is the journal of an audit of other answers, or of another "
            f"filter, --alpha or --seed: pass what that audit began with, or {_START_AGAIN}"
        )
    return plan


def _refuse_seen(filter, graphs):
    trained, calibrated = seen(filter, graphs)
    used = trained | calibrated
    if used.any():
        raise ValueError(
            f"{int(used.sum())} answers, {graphs.name_of(int(np.argmax(used)))} first, are to "
            "questions that trained or calibrated the filter, which does better on "
            "them than on new ones: leave them out of the audit"
        )


def _level(filter, options):
    return filter.calibration_.guarantee.level(options.alpha, filter.alpha)


def _meaning_of_filter(options, filter, graphs):
    """Find what a label means, which is what it meant at calibration if that is known."""
    meanings = {meaning for meaning in filter.provenance_.get("label_meaning", ())} - {
        None
    }
    if len(meanings) != 1:
        return _meaning(options, graphs)
    [meaning] = meanings
    if options.meaning not in (None, meaning):
        raise ValueError(
            f"labels that calibrated the filter mean {meaning!r}, not --meaning "
            f"{options.meaning}"
        )
    return meaning


def _judged(row, store, i, *, meaning, sampling):
    """The line of an answer with its verdicts as labels, marked as what may not calibrate."""
    graph = row.problem.graph
    labels = row.problem.labels
    labels = np.full(graph.n_claims, -1) if labels is None else np.array(labels)
    sources = get_label_sources(graph)
    names = store.annotators()
    words = {by: store.said(i, by) for by in names}
    for v in range(graph.n_claims):
        word = labelling.strictest(words[by][v] for by in names)
        if word is None:
            continue
        labels[v] = WORDS[word]
        by = next(by for by in names if words[by][v] == word)
        sources[v] = store.sources(i, by)[v]
    metadata = {**(row.problem.metadata or {}), "sampling": sampling}
    metadata |= {"label_meaning": meaning}
    marked = set_label_sources(graph.replace(metadata=metadata), sources)
    problem = row.problem._replace(
        graph=marked, labels=labels, metadata=marked.metadata
    )
    return replace(row, problem=problem)


def _write_rows(options, rows, level):
    marks = {"mark_checked": options.mark_checked}
    if options.text:
        lines = (marked_text(row, **marks) or options.empty for row in rows)
    else:
        decision = {"alpha": level, "guarantee": "answers"}
        lines = (format_row(row, decision, options, **marks) for row in rows)
    write_lines(options.output, lines)


def _meaning(options, graphs):
    """Find what a label says: the option, the file, or the presence of a context tells."""
    meanings = {(graph.metadata or {}).get("label_meaning") for graph in graphs} - {
        None
    }
    if len(meanings) > 1:
        raise ValueError(
            f"labels of the file mean {sorted(map(str, meanings))}: divide it"
        )
    if meanings and options.meaning and {options.meaning} != meanings:
        raise ValueError(f"labels of this file mean {meanings.pop()!r}, not --meaning")
    context = any(graph.context for graph in graphs)
    return options.meaning or (meanings or {"supported" if context else "true"}).pop()


def _serve(options, store, by, order, **shown):
    if options.guideline:
        shown["guideline"] = Path(options.guideline).read_text("utf-8")
    shown |= {"order": order, "show_known": options.show_known}
    # Where nothing is left to judge, what was judged can still be looked at and changed.
    if order(store, by) or by in store.annotators():
        with labelling.LabelServer(store, by, options.port, **shown) as server:
            inform(f"judging as {by}: {server.url}", "Ctrl-C ends it")
            if not options.no_browser:
                webbrowser.open(server.url)
            _wait()
    if not order(store, by):
        inform(order.done)


def _wait():
    """Wait until somebody ends the program, also where Ctrl-C is ignored by default."""
    done = threading.Event()
    ends = signal.SIGINT, signal.SIGTERM
    handlers = {n: signal.signal(n, lambda *_: done.set()) for n in ends}
    try:
        while not done.wait(0.5):  # on Windows, an endless wait sees no signal
            pass
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _import(store, path, by):
    """Save judgements that were made elsewhere under the names of who made them."""
    if path.endswith(".csv"):
        judgements = labelling.exchange.read_csv(path, store.graphs)
    else:
        tasks = json.loads(Path(path).read_bytes())
        judgements = labelling.from_label_studio(tasks, store.graphs)
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
        inform(f"{len(new)} judgements of {name} were taken from {path}")
    return sorted({by if name == "imported" else name for name in judgements})


def _drawn(store, by, options):
    """Read from the file how each problem came to be judged; None where it does not say."""
    order = labelling.RandomOrder(options.seed)
    passed = order.passed_over(store, by)
    if passed and not options.filter:
        inform(
            f"{len(passed)} problems were passed over, so that those judged are not a "
            "random draw: what is not judged will count as false in calibration"
        )
    if passed or options.filter or by not in store.annotators():
        return [None] * len(store.graphs)
    reached = set(order.reached(store, by))
    return ["reached" if i in reached else "random" for i in range(len(store.graphs))]


def _with_metadata(graph, meaning, sampling):
    metadata = {k: v for k, v in (graph.metadata or {}).items() if k != "sampling"}
    metadata["label_meaning"] = meaning
    if sampling is not None:
        metadata["sampling"] = sampling
    return graph.replace(metadata=metadata)


def _write(options, store, by, *, meaning, problems):
    out = store.export(by)
    marks = zip(out.graphs, _drawn(store, by, options), strict=True)
    graphs = GraphBatch.from_graphs(
        [_with_metadata(g, meaning, sampling) for g, sampling in marks]
    )
    if options.output:
        datasets.write_jsonl(
            Path(options.output),
            graphs,
            out.labels,
            problems.masks,
            groups=problems.groups,
        )
    if options.csv:
        labelling.exchange.write_csv(options.csv, graphs, out.words)
    if options.label_studio:
        tasks = labelling.to_label_studio(graphs, out.words)
        write_text(options.label_studio, [json.dumps(tasks)])
    inform(labelling.describe_labels(graphs, out.labels))
    if unfinished := labelling.describe_unfinished(graphs, out.labels):
        inform(unfinished)
    if out.n_unknown:
        inform(
            f"edges: it was unknown what claims build on, {by} said it in {out.n_unknown} of "
            f"{len(graphs)} problems, and nobody said that it is known of all now. So it stays "
            "unknown in the file, and a filter takes claims as standing alone. The page asks "
            "whether it is known of all; what was said is kept"
        )
    if not problems.graphs.edges_known.all() and out.graphs.edges_known.all():
        inform(
            "edges: known of all problems now. New answers need theirs, corrected in the same "
            'way; "skdcf fit --no-edges" takes claims as standing alone'
        )
    if out.n_corrected and graphs.features is not None:
        inform(f"edges of {out.n_corrected} problems changed: make their columns anew")


def _compare(store, first, second):
    """Print how far two people agree, and the claims that only one calls true."""
    store.check_judged(first, second)
    # Labels that nobody gave, but that the file has, are nobody's agreement.
    agreed = labelling.agreement(store.verdicts(first), store.verdicts(second))
    print(f"{first} and {second}: {agreed.kappa}")
    differences = [
        (store.graphs[i], i, v, f"{a} / {b}")
        for i, v, a, b in store.compare(first, second, by="")
        if a != b and {a, b} <= {"true", "false"}
    ]
    for graph, i, v, verdicts in differences[:_SHOWN]:
        in_brackets = "" if graph.id is None else f" ({printable(graph.id)})"
        claim = printable(graph.claims[v])
        print(f"problem {i + 1}{in_brackets}, claim {v + 1}: {verdicts}: {claim}")
    if len(differences) > _SHOWN:
        print(
            f"... and {len(differences) - _SHOWN} more: --settle {second} shows them all"
        )
