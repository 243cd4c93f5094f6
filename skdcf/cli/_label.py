"""The command ``label``: a page on this machine where people judge claims."""

from __future__ import annotations

import getpass
import json
import signal
import threading
import webbrowser
from pathlib import Path

from .. import GraphBatch, datasets, labelling, load
from .._checks import printable
from .._files import write_text
from ._files import check_folder, inform, read_problems

_SHOWN = 20  # disagreements


def label(options):
    """Serve the page until it is interrupted, then write what was judged."""
    for path in (options.label_studio, options.csv):
        check_folder(path)
    problems = read_problems(options)
    journal = options.journal or f"{options.problems}.labels"
    by = options.annotator or getpass.getuser()
    order = labelling.RandomOrder(options.seed)
    annotators = ()
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
    inform(f"saved in {journal}")
    if options.compare:
        _compare(store, by, options.compare)


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
        while not done.wait(0.5):  # on Windows, waiting for good sees no signal
            pass
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _import(store, path, by):
    """Save judgements that were made elsewhere under the names of who made them."""
    if path.endswith(".csv"):
        judgements = labelling.exchange.read_csv(path, store.graphs)
    else:
        tasks = json.loads(Path(path).read_text("utf-8"))
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
    """What the file says of how each problem came to be judged; None where nothing."""
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


def _with_metadata(graph, meaning, drawn):
    metadata = {k: v for k, v in (graph.metadata or {}).items() if k != "drawn"}
    metadata["label_meaning"] = meaning
    if drawn is not None:
        metadata["drawn"] = drawn
    return graph.replace(metadata=metadata)


def _write(options, store, by, *, meaning, problems):
    out = store.export(by)
    marks = zip(out.graphs, _drawn(store, by, options), strict=True)
    graphs = GraphBatch.from_graphs(
        [_with_metadata(g, meaning, drawn) for g, drawn in marks]
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
    labels_of_first = store.export(first, known=False).labels
    labels_of_second = store.export(second, known=False).labels
    agreed = labelling.agreement(labels_of_first, labels_of_second)
    print(f"{first} and {second}: {agreed.kappa}")
    differences = [
        (store.graphs[i], i, v, f"{a} / {b}")
        for i, v, a, b in store.compare(first, second, by="")
        if a != b and "unsure" not in (a, b)
    ]
    for graph, i, v, verdicts in differences[:_SHOWN]:
        in_brackets = "" if graph.id is None else f" ({printable(graph.id)})"
        claim = printable(graph.claims[v])
        print(f"problem {i + 1}{in_brackets}, claim {v + 1}: {verdicts}: {claim}")
    if len(differences) > _SHOWN:
        print(
            f"... and {len(differences) - _SHOWN} more: --settle {second} shows them all"
        )
