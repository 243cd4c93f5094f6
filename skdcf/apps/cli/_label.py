"""The command ``label``, which serves a local web page on which people judge claims.

People judge whole answers, or filtered answers if ``--review`` or ``--audit`` is set.
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

from ... import GraphBatch, load
from ..._checks import counted, printable
from ..._files import write_text
from ...datasets import jsonl
from ...datasets.records import Columns
from ...estimators import seen
from ...metrics import error_rate_upper_bound
from .. import labelling
from ..labelling.sources import WORDS, get_label_sources, set_label_sources
from ._commands import Lines, decided, format_lines, one_line, read_lines, shown_texts
from ._files import check_folder, inform, read_problems, write_lines

_SHOWN = 20  # maximum number of disagreements to print
_CONFIDENCE_LEVEL = 0.95
_LOOKS_BY_DEFAULT = [50]
#: Options that apply only to labelling, keyed by attribute name.
_LABELLING = {
    "filter": "--filter",
    "show_known": "--show-known",
    "label_studio": "--label-studio",
    "csv": "--csv",
    "results": "--import",
    "compare": "--compare",
    "settle": "--settle",
}
#: Options that require --review or --audit.
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
    """Serve the labelling page until the user stops the program, then write the labels."""
    _refuse_mixed(options)
    if options.review:
        _review(options)
    elif options.audit:
        _audit(options)
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
                    f"{options.results} contains labels from annotators other than {by}. Pass "
                    f"--annotator with one of {names}"
                )
            by = names[0]
    if options.settle:
        first, second = annotators
        store.settle(first, second, by)
    meaning = _meaning(options, problems.graphs)
    if not (options.no_page or options.compare):
        _serve(options, store, by, order, meaning=meaning, others=annotators)
    _write(options, store, by, meaning=meaning, problems=problems)
    _say_where(options, journal, is_done=not order(store, by))
    if options.compare:
        _compare(store, by, options.compare)


def _say_where(options, journal, is_done):
    """Print the paths of the output file and of the journal."""
    if options.output:
        inform(f"saved in {options.output}")
    to_continue = "" if is_done else ". To continue later, run the same command again"
    inform(f"judgements are stored in {journal}{to_continue}")


def _refuse_mixed(options):
    """Raise ValueError if an option would have no effect."""
    for name, (option, needed) in _NEEDS.items():
        if getattr(options, name) not in (None, False, "") and not getattr(
            options, needed
        ):
            raise ValueError(
                f"{option} has no effect without --{needed}. Omit {option}, or pass --{needed}"
            )
    if options.review and options.audit:
        raise ValueError(
            "--review and --audit cannot be combined. Pass only one of them"
        )
    if options.review or options.audit:
        for name, option in _LABELLING.items():
            if getattr(options, name):
                raise ValueError(
                    f"{option} only applies to calibration labels and has no effect with --review "
                    f"or --audit. Omit {option}"
                )


def _review(options):
    """Let a person check the dropped claims with the lowest risk, and write the kept claims."""
    check_folder(options.output)
    if options.budget is not None and options.budget < 0:
        raise ValueError(f"--budget must be nonnegative, got {options.budget}")
    filter = load(options.review)
    lines = Lines.join(read_lines(options))
    graphs = lines.problems.graphs
    review = labelling.ReviewOrder(filter, graphs, options.alpha)
    error_rate = options.error_rate or 0.0
    # Raise an error for an invalid error rate before the annotator starts to judge.
    review.describe(error_rate)
    masks_before = review.masks()
    budget = len(lines) if options.budget is None else options.budget
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
        decisions = decided(filter, lines, graphs, masks=masks, counts=Counter())
        judged = _judged(decisions, store, meaning=meaning, sampling="review")
        judged = replace(judged, checked=review.checked())
        _write_lines(options, judged, _level(filter, options))
    n_kept = sum(int(mask.sum()) for mask in masks)
    n_before = sum(int(mask.sum()) for mask in masks_before)
    n_empty = sum(len(mask) > 0 and not mask.any() for mask in masks)
    inform(
        f"{n_kept} of {counted(graphs.n_claims, 'claim')} in "
        f"{counted(len(lines), 'problem')} are kept, compared with {n_before} without "
        f"checks. All claims of {counted(n_empty, 'problem')} were removed"
    )
    inform(f"guarantee: {review.describe(error_rate)}")
    _say_where(options, journal, is_done=not order(store, by))


def _audit(options):
    """Let a person judge a random sample of filtered texts, and print a bound on the error rate."""
    check_folder(options.output)
    looks = None if options.n is None else _read_looks(options.n)
    filter = load(options.audit)
    lines = Lines.join(read_lines(options))
    graphs = lines.problems.graphs
    _refuse_seen(filter, graphs)
    masks = filter.predict(graphs, options.alpha)
    is_shown = [bool(mask.any()) for mask in masks]
    n_shown = sum(is_shown)
    if not n_shown:
        raise ValueError(
            f"{options.problems}: there are no claims to judge, because the filter drops "
            "all claims of all answers. Increase --alpha"
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
        lines_drawn = lines.take(drawn)
        decisions = decided(
            filter,
            lines_drawn,
            lines_drawn.problems.graphs,
            masks=[masks[i] for i in drawn],
            counts=Counter(),
        )
        judged = _judged(decisions, store, meaning=meaning, sampling="audit")
        _write_lines(options, judged, _level(filter, options))
    n_texts, n_wrong, n_open = order.look(store)
    n_wrong += n_open
    # The bounds hold simultaneously (Bonferroni correction), so the audit can stop at any
    # of the planned sample sizes.
    error = (1 - _CONFIDENCE_LEVEL) / len(looks)
    bound = error_rate_upper_bound(n_wrong, n_texts, confidence_level=1 - error)
    if n_open:
        inform(
            f"{n_open} of the {n_texts} texts are not judged yet and count as wrong. "
            "To continue, run the same command again"
        )
    print(
        f"with {_CONFIDENCE_LEVEL:.0%} confidence, at most {bound:.1%} of the "
        f"{n_shown} nonempty texts contain a false claim. {n_wrong} of the {n_texts} "
        "randomly drawn texts contain one. The bound corresponds to at most "
        f"{bound * n_shown / len(lines):.1%} of all {len(lines)} answers"
    )
    if len(looks) > 1:
        number = looks.index(n_texts) + 1
        inform(
            f"this is interim result {number} of {len(looks)}. The interim results are "
            f"computed after {_listed(looks)} texts"
        )
    _say_where(options, journal, is_done=not order(store, by))


def _read_looks(text):
    """Parse the sample sizes of the interim analyses of an audit, for example 50,100,150."""
    try:
        looks = [int(part) for part in text.split(",")]
    except ValueError:
        looks = []
    if not looks or looks[0] < 1 or looks != sorted(set(looks)):
        raise ValueError(
            "-n must be a positive integer or a list of increasing integers, for example "
            f"50,100,150, got {text}"
        )
    return looks


def _listed(looks):
    return ",".join(map(str, looks))


_START_AGAIN = "start a new audit with another --journal, which draws new answers"


def _plan_audit(store, looks, *, masks, seed, by):
    """Return the plan of an audit, which is stored in the journal before the first verdict.

    If auditors extended the sample until the bound was satisfactory, the bound would be wrong in
    more than 5 % of the audits. The plan therefore fixes the sample sizes in advance.
    Each journal contains a random salt, so different audits draw different texts.
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
            f"-n must be {_listed(plan['looks'])} to match the plan of this audit "
            f"({store.path}), got {_listed(looks)}. The bound does not hold if the sample "
            f"sizes are changed later. Omit -n, or {_START_AGAIN}"
        )
    if any(plan[name] != value for name, value in draw.items()):
        raise ValueError(
            f"{store.path} belongs to an audit with different answers, or with a "
            "different filter, --alpha or --seed. Use the same answers and options as at "
            f"the start of that audit, or {_START_AGAIN}"
        )
    return plan


def _refuse_seen(filter, graphs):
    trained, calibrated = seen(filter, graphs)
    used = trained | calibrated
    if used.any():
        raise ValueError(
            "an audit requires answers to new questions, but the questions of "
            f"{int(used.sum())} answers were used for training or calibration (the first "
            f"is {graphs.name_of(int(np.argmax(used)))}). The filter makes fewer errors "
            "on questions that it has seen. Remove these answers from the audit"
        )


def _level(filter, options):
    return filter.calibration_.guarantee.level(options.alpha, filter.alpha)


def _meaning_of_filter(options, filter, graphs):
    """Return the label meaning used in calibration or, if unknown, the meaning in the file."""
    meanings = {meaning for meaning in filter.provenance_.get("label_meaning", ())} - {
        None
    }
    if len(meanings) != 1:
        return _meaning(options, graphs)
    [meaning] = meanings
    if options.meaning not in (None, meaning):
        raise ValueError(
            f"--meaning must be {meaning!r} to match the calibration labels, got "
            f"{options.meaning!r}. Omit --meaning"
        )
    return meaning


def _judged(lines, store, *, meaning, sampling):
    """Return the lines with labels, which are marked as unsuitable for calibration."""
    about = {"sampling": sampling, "label_meaning": meaning}
    problems = [
        _judged_problem(problem, store, i, about)
        for i, problem in enumerate(lines.problems.problems())
    ]
    return replace(lines, problems=Columns.join([problems]))


def _judged_problem(problem, store, i, about):
    """Return a problem with the labels and sources in the store."""
    graph = problem.graph
    labels = problem.labels
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
    metadata = (problem.metadata or {}) | about
    marked = set_label_sources(graph.replace(metadata=metadata), sources)
    return problem._replace(graph=marked, labels=labels, metadata=marked.metadata)


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
    meanings = {(graph.metadata or {}).get("label_meaning") for graph in graphs} - {
        None
    }
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


def _drawn(store, by, options):
    """Return the sampling method for each problem, or None if the method is unknown."""
    order = labelling.RandomOrder(options.seed)
    passed = order.passed_over(store, by)
    if passed and not options.filter:
        inform(
            f"skipped: {counted(len(passed), 'problem')}, so the judged problems are not a "
            "random sample. Unjudged claims will count as false in calibration"
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
        lines = jsonl.format_jsonl(
            graphs, out.labels, problems.masks, groups=problems.groups
        )
        write_lines(options.output, lines)
    # Export the problems in random order. If annotators label only the first few problems, the
    # labelled problems are a random sample.
    order = labelling.RandomOrder(options.seed).order(store)
    if options.csv:
        labelling.exchange.write_csv(options.csv, graphs, out.words, order)
        inform(
            f"wrote {options.csv}. A text that starts with =, +, - or @ is preceded by an "
            "apostrophe, which --import removes. Programs should match rows by problem_id and "
            "claim_number instead of the text"
        )
    if options.label_studio:
        tasks = labelling.to_label_studio(graphs, out.words, order)
        write_text(options.label_studio, [json.dumps(tasks)])
    inform(labelling.describe_labels(graphs, out.labels))
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


def _compare(store, first, second):
    """Print the agreement between two annotators, and the claims that they labelled differently."""
    store.check_judged(first, second)
    # Labels in the file are not judgements of an annotator, so only verdicts are compared.
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
            f"... and {len(differences) - _SHOWN} more (--settle {second} shows all "
            "disagreements)"
        )
