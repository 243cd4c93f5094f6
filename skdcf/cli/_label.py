"""The command ``label``: a page on this machine where people judge claims."""

import getpass
import json
import signal
import threading
import webbrowser
from pathlib import Path

from .._checks import printable
from .._files import replaced
from ..datasets import write_jsonl
from ._files import check_folder, inform, read_problems

_SHOWN = 20  # disagreements


def label(options):
    """Serve the page until it is interrupted, then write what was judged."""
    from ..labelling import LabelServer, LabelStore

    for path in filter(None, (options.output, options.label_studio)):
        check_folder(path)
    data = read_problems(options.problems)
    journal = options.journal or f"{options.problems}.labels"
    by = options.annotator or getpass.getuser()
    store = LabelStore(data.graphs, journal, data.labels)
    if not (options.no_page or options.compare):
        show = options.show_known
        with LabelServer(store, by, options.port, show_known=show) as server:
            inform(f"judging as {by}: {server.url}", "Ctrl-C ends it")
            if not options.no_browser:
                webbrowser.open(server.url)
            _wait()
    _write(options, store.export(by), journal)
    if options.compare:
        _compare(store, by, options.compare)


def _wait():
    """Until somebody ends the program, also where Ctrl-C is ignored by default."""
    done = threading.Event()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, lambda *_: done.set())
    try:
        while not done.wait(0.5):  # on Windows, waiting for good sees no signal
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(options, out, journal):
    from ..labelling import describe_labels

    if options.output:
        write_jsonl(Path(options.output), out.graphs, out.labels)
    if options.label_studio:
        from ..labelling import to_label_studio

        with replaced(options.label_studio, encoding="utf-8") as file:
            json.dump(to_label_studio(out.graphs, out.words), file)
    inform(describe_labels(out.graphs, out.labels), f"saved in {journal}")
    if out.n_corrected and out.graphs.features is not None:
        inform(
            f"the edges of {out.n_corrected} problems were corrected, but their features "
            "were made before: make them again"
        )


def _compare(store, first, second):
    from ..labelling import cohen_kappa, list_disagreements

    for name in (first, second):
        if name not in store.annotators():
            raise ValueError(
                f"{name!r} has judged nothing; there are {store.annotators()}"
            )
    graphs, labels = store.graphs, []
    for name in (first, second):
        said = store.export(name)
        known = zip(said.labels, said.words, strict=True)
        labels.append(
            [[_own(k, w) for k, w in zip(*row, strict=True)] for row in known]
        )
    print(f"{first} and {second}: {cohen_kappa(*labels)}")
    found = list_disagreements(graphs, *labels)
    for name, v, text, a, b in found[:_SHOWN]:
        words = [{1: "true", 0: "false"}[x] for x in (a, b)]
        print(
            f"{printable(name)}, claim {v + 1}: {words[0]} / {words[1]}: {printable(text)}"
        )
    if len(found) > _SHOWN:
        print(f"... and {len(found) - _SHOWN} more")


def _own(label, word):
    """Labels that nobody gave, but that the file has, are nobody's agreement."""
    return -1 if word is None else int(label)
