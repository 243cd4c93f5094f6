"""Read and write the files of the commands, and tell the user how it goes."""

import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..._checks import printable
from ..._files import write_text
from ...datasets import records
from ...datasets.jsonl import bunch_of, read_lines
from ...datasets.paths import MISSING, paths_of, value_at
from ...graphs import question_groups
from ...graphs.problems import GROUP
from ._csv import CsvAsLines

STANDARD = "-"
NAMES = "names_in_log"  # the key of the metadata for values under keys that the format has, too
_ANSWER = "answer"
_ALL_TARGETS = ("answer", "messages", "spans", "resourceSpans", "task", "labels")
_NOTED = 100  # keys that a message lists
_CALLED_ANSWER = ("response",)  # as RAGAS and others call the context


def source(path):
    """Give the source that problems are read from: a path, a table, or standard input."""
    if str(path).lower().endswith(".csv"):
        return CsvAsLines(path)
    return sys.stdin.buffer if path == STANDARD else Path(path)


def read_records(options, read, on_invalid="raise", dropped=None, *, path=None):
    """Yield what ``read`` makes of each line of a file.

    A key of ``--map`` that no line has is a ValueError that lists the keys there are.
    """
    missing = {theirs for theirs in renamed(options, also=_ALL_TARGETS)}
    there: dict[str, None] = {}

    def read_and_note(record):
        if missing and isinstance(record, dict):
            missing.difference_update(
                [key for key in missing if value_at(record, key) is not MISSING]
            )
            if len(there) < _NOTED:
                there.update(dict.fromkeys(paths_of(record)))
        return read(record)

    try:
        yield from read_lines(
            source(path or options.problems),
            read_and_note,
            on_invalid,
            dropped=[] if dropped is None else dropped,
            max_line_bytes=options.max_line_bytes,
        )
    except ValueError as error:
        if missing and there:
            raise _unknown_keys(missing, there) from error
        raise
    if missing and there:
        raise _unknown_keys(missing, there)


def _unknown_keys(missing, there):
    keys = ", ".join(map(printable, list(there)[:_NOTED]))
    return ValueError(
        f"--map {', '.join(sorted(missing))}: no line has this key. The keys are {keys}"
    )


def check_folder(path):
    """Raise an error, before long work, if the folder of the output is not there."""
    folder = Path(path or "").absolute().parent
    if path and path != STANDARD and not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")


def write_lines(path, lines):
    """Write a text; a file appears when it is complete, compressed if it ends in .gz."""
    if path == STANDARD:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        write_text(path, lines)


def renamed(options, *, also=()):
    """Give the keys of the format by those of the file, from ``--map THEIRS=OURS``.

    ``also`` are keys that a command takes beside those of a problem.
    """
    rename: dict[str, str] = {}
    targets = sorted({*records.schemas_of_keys(), *also})
    for pair in ",".join(options.map).split(",") if options.map else ():
        theirs, _, ours = pair.strip().partition("=")
        if not theirs or not ours:
            raise ValueError(f"--map takes THEIRS=OURS, as in text=claims: {pair!r}")
        if ours == "answer" and ours not in targets:
            raise ValueError(
                f"--map {theirs}={ours}: problems hold claims, and no whole answer. Cut the "
                'answers into sentences first, by "skdcf split"'
            )
        if ours not in targets:
            raise ValueError(
                f"--map {theirs}={ours}: problems have no key {ours!r}. The keys are "
                f"{', '.join(targets)}"
            )
        if rename.get(theirs, ours) != ours:
            raise ValueError(
                f"--map reads {theirs!r} as {rename[theirs]!r} and as {ours!r}: choose one"
            )
        rename[theirs] = ours
    return rename


def own_keys(options):
    """Keys that hold the user's own, from ``--own KEY``; several pairs or commas."""
    return {key.strip() for text in options.own for key in text.split(",")}


def problem_reader(options):
    """A function from the object of a line to its `Problem`, as the options say."""
    read = records.line_reader(renamed(options), own_keys(options))
    if options.group_by is None:
        return read

    def read_in_group(record):
        return _with_group(read(record), options.group_by)

    return read_in_group


def answer_reader(options):
    """A function from the object of a line to the text of its answer and its `Problem`.

    Without claims the problem has none. The answer stays under the key that it has.
    """
    rename = renamed(options, also=[_ANSWER])
    keys = [theirs for theirs, ours in rename.items() if ours == _ANSWER]
    keys += [key for key in (_ANSWER, *_CALLED_ANSWER) if key not in own_keys(options)]
    rename = {theirs: ours for theirs, ours in rename.items() if ours != _ANSWER}
    read = records.line_reader(rename, own_keys(options))

    def read_answer(record):
        texts = [value_at(record, key) for key in keys]
        answer = next((text for text in texts if isinstance(text, str)), None)
        if answer is None and not getattr(options, "write", False):
            raise ValueError(
                f'there is no text called "answer", only {sorted(paths_of(record))}: if it '
                "stands under another key or path, name it by --map KEY=answer"
            )
        problem = read({"claims": []} | record)
        names = names_in_file(record, problem, rename)
        if names:
            problem = _with_metadata(problem, {NAMES: names})
        if options.group_by is not None:
            problem = _with_group(problem, options.group_by)
        return answer, problem

    return read_answer


def names_in_file(record, problem, rename):
    """Give the names that keys of the format have in the file, where these are others.

    An answer that was split or extracted brings those of its log.
    """
    rename = rename | {"question": "problem"}
    metadata = problem.metadata or {}
    names = dict(metadata.get(NAMES) or {})
    names |= {rename[key]: key for key in record if key in rename}
    own_keys = metadata.get(records.OWN, ())
    for theirs, ours in records.USUAL.items():
        if theirs in record and theirs not in own_keys:
            names[ours] = theirs
    return names


def _with_group(problem, by):
    """The problem with its question as ``--group-by`` tells it."""
    graph = problem.graph
    metadata = problem.metadata or {}
    if by == "none":  # so that a copy of an answer in another file stays the same one
        content = [graph.problem, graph.context, graph.claims, graph.id]
        if graph.claims is None:
            content.append(graph.features.tolist())
        group = _digest(content)
    elif by == "context" and "context" not in metadata:
        if not graph.context:
            raise ValueError(
                "there is no context, by which --group-by context tells the question: name "
                "a key (--group-by KEY), or say --group-by none"
            )
        group = _digest(graph.context)
    else:
        group = graph.id if by == "id" else metadata.get(by)
        if group is None:
            keys = sorted({*metadata} - {records.OWN, NAMES})
            raise ValueError(
                f"--group-by {by}: there is no such key, only {', '.join(keys) or 'none'}"
            )
        if isinstance(group, bool) or not isinstance(group, (str, int)):
            raise ValueError(
                f"--group-by {by}: the key is {group!r}, but what names the question has to "
                "be a text or a whole number"
            )
    return _with_metadata(problem, {GROUP: group})._replace(group=group)


def _with_metadata(problem, more):
    metadata = {**(problem.metadata or {}), **more}
    graph = problem.graph.replace(metadata=metadata)
    return problem._replace(graph=graph, metadata=metadata)


def _digest(content):
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_problems(options, *, labelled=False, path=None):
    """Read the problems of a file, which has to hold labels where they are needed.

    Whether the output can be written is seen here, before any work.
    """
    path = path or options.problems
    check_folder(getattr(options, "output", None))
    rows = list(read_records(options, problem_reader(options), path=path))
    problems = bunch_of(rows, path, [])
    if labelled and problems.labels is None:
        raise ValueError(
            f'{path}: no line has "labels". They are one number per claim: 1 true, 0 '
            "false, -1 where nobody judged it"
        )
    meanings = {(row or {}).get("label_meaning") for row in problems.metadata or ()}
    if labelled and "supported" in meanings and problems.graphs.context is None:
        raise ValueError(
            f"{path}: the labels say whether claims are supported by their context, and no "
            "line has a context. Where it stands under another key, name it: --map "
            "KEY=context"
        )
    if n := _count_divided(problems.graphs):
        inform(
            f"{n} answers share question and passages with an answer to which the file, or "
            "--group-by, gives another question. A fault of the passages would spoil both: "
            "--group-by context is the safe choice"
        )
    return problems


def _count_divided(graphs):
    """Count answers to one text over the same passages that are in different groups."""
    if graphs.context is None or graphs.problems is None or graphs.metadata is None:
        return 0
    asked = []
    groups_of = defaultdict(set)
    for graph in graphs:
        group = (graph.metadata or {}).get(GROUP)
        if graph.context and graph.problem and group is not None:
            asked.append((" ".join(graph.problem.split()), graph.context))
            groups_of[asked[-1]].add(group)
    return sum(len(groups_of[question]) > 1 for question in asked)


@contextmanager
def clock(work):
    """Show, where somebody watches, for how long the work has gone on."""

    def tick():
        while not bar.disable:  # as at the end, or where nobody watches
            bar.refresh()
            time.sleep(0.5)

    with tqdm(desc=work, bar_format="{desc} ... {elapsed}", disable=None) as bar:
        threading.Thread(target=tick, daemon=True).start()
        yield


def count_questions(graphs):
    """Count the questions that the answers belong to."""
    return len(np.unique(question_groups(graphs)))


def inform(*lines):
    """Tell the user something that is no result."""
    for line in lines:
        print(line, file=sys.stderr)


def show(result, as_json):
    """Print a result, as JSON where other programs read it."""
    print(json.dumps(plain(result)) if as_json else result)


def plain(value):
    """Turn a result into what JSON has; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def show_claims(graph, kept, labels=None):
    """Print a question and its claims, with what was kept and, if known, what is true."""
    print(f"  {printable(graph.problem or graph.id or 'a problem without a question')}")
    words = {1: "  (true) ", 0: "  (FALSE)", -1: "  (?)    "}
    for v, keep in enumerate(kept):
        truth = "" if labels is None else words[int(labels[v])]
        text = printable(graph.claims[v]) if graph.claims else ""
        print(f"  {('dropped', 'kept   ')[int(keep)]}{truth}  {v + 1}. {text}")
