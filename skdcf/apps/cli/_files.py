"""Read problems, write lines and print progress for the commands."""

import hashlib
import json
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..._checks import printable
from ..._files import write_text
from ...datasets import jsonl, records
from ...identity import GROUP, question_groups
from ._csv import CsvAsLines

STANDARD = "-"
# Metadata key for the original names of the format keys in the log.
NAMES = "names_in_log"
_NOTED = 100  # maximum number of keys listed in a message


def source(path, answers=()):
    """Return the source of the problems: a path, a CSV stream, or standard input.

    ``answers`` contains the names of the CSV columns in which an empty cell is read as an empty
    answer.
    """
    if str(path).lower().endswith((".csv", ".tsv")):
        return CsvAsLines(path, answers)
    return sys.stdin.buffer if path == STANDARD else Path(path)


def read_records(options, read, *, path=None):
    """Yield the object of each line of a file, and the result of calling ``read`` on it."""
    return jsonl.iter_read(_source(options, path), read)


def _source(options, path=None):
    rename = renamed(options, also=["answer", "logprobs"])
    answers = {theirs for theirs, ours in rename.items() if ours == "answer"}
    return source(path or options.problems, {"answer", "response"} | answers)


def check_folder(path):
    """Raise ValueError if the folder of the output file does not exist."""
    folder = Path(path or "").absolute().parent
    if path and path != STANDARD and not folder.is_dir():
        raise ValueError(
            f"{path} cannot be written, because the folder {folder} does not exist. "
            "Create the folder first"
        )


def write_lines(path, lines):
    """Write lines atomically to a file (compressed if the suffix is .gz) or to standard output."""
    if path == STANDARD:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        write_text(path, lines)


def renamed(options, *, also=()):
    """Return the mapping ``--map`` from keys in the file to keys of the JSON Lines format.

    ``also`` contains the keys that a command accepts in addition to the problem keys.
    """
    rename: dict[str, str] = {}
    targets = sorted({*records.KEYS, "question", *also})
    for pair in ",".join(options.map).split(",") if options.map else ():
        theirs, _, ours = pair.strip().partition("=")
        if not theirs or not ours:
            raise ValueError(
                f"--map must have the form THEIRS=OURS, for example text=claims, got {pair!r}"
            )
        if ours == "answer" and ours not in targets:
            raise ValueError(
                f"--map {theirs}={ours} cannot be used, because the problems in the file must "
                "contain claims instead of a whole answer. Split the answers into sentences "
                'with "skdcf split" first'
            )
        if ours not in targets:
            raise ValueError(
                f"--map {theirs}={ours}: {ours!r} is not a valid key of a problem. The valid "
                f"keys are {', '.join(targets)}"
            )
        if rename.get(theirs, ours) != ours:
            raise ValueError(
                f"--map must assign a single name to each key, got {rename[theirs]!r} and "
                f"{ours!r} for {theirs!r}. Remove one of them"
            )
        rename[theirs] = ours
    return rename


def row_reader(options):
    """Return a function that converts the JSON object in a line to a row."""
    rename = renamed(options)

    def read(record):
        row = records.read_row(record, rename)
        if options.group_by is not None:
            _set_group(row, options.group_by)
        return row

    return read


def answer_reader(options):
    """Return a function that converts the JSON object in a line to an `AnsweredLine`.

    A line without claims is converted to a problem with zero claims.
    """
    # This module is imported here, because the import is slow and few commands need the module.
    from ..text import AnswerReader

    read = AnswerReader(renamed(options, also=["answer", "logprobs"]))

    def read_answer(record):
        line = read(record)
        problem = line.problem
        names = names_in_file(record, problem.metadata, read.rename)
        if names:
            problem = _with_metadata(problem, {NAMES: names})
        if options.group_by is not None:
            problem = _with_group(problem, options.group_by)
        return line._replace(problem=problem)

    return read_answer


def names_in_file(record, metadata, rename):
    """Return a mapping from keys of the JSON Lines format to the keys used instead in the file.

    For a problem written by ``split`` or ``extract``, the mapping contains the keys of the
    original log.
    """
    rename = rename | {"question": "problem"}
    metadata = metadata or {}
    names = dict(metadata.get(NAMES) or {})
    targets = Counter(rename[key] for key in record if key in rename)
    # Columns that were joined keep no name of their own.
    names |= {
        rename[key]: key
        for key in record
        if key in rename and targets[rename[key]] == 1
    }
    return names


def _set_group(row, by):
    """Set the group of a row according to ``--group-by``."""
    metadata = row.get("metadata", {})
    # Copies of an answer in different files must be in the same group.
    if by == "none":
        content = [row.get(key) for key in ("problem", "context", "claims", "id")]
        if "claims" not in row:
            content.append(row["features"].tolist())
        group = _digest(content)
    elif by == "context" and "context" not in metadata:
        if not row.get("context"):
            raise ValueError(
                '--group-by context requires the key "context", but the line does not contain it. '
                "Pass --group-by KEY with a key of your lines, or --group-by none"
            )
        group = _digest(row["context"])
    else:
        group = row.get("id") if by == "id" else metadata.get(by)
        if group is None:
            keys = sorted({*metadata} - {records.OWN, NAMES})
            raise ValueError(
                f"--group-by {by}: the line does not contain this key. The existing keys are "
                f"{', '.join(keys) or '(none)'}"
            )
        if isinstance(group, bool) or not isinstance(group, (str, int)):
            raise ValueError(
                f"--group-by {by}: each value must be a string or an integer, got {group!r}"
            )
    row["group"] = group
    row["metadata"] = {**metadata, GROUP: group}


def _with_group(problem, by):
    """Return the problem of an answer with its group set according to ``--group-by``."""
    graph = problem.graph
    row = {
        "problem": graph.problem,
        "context": graph.context and list(graph.context),
        "claims": list(graph.claims),
        "id": graph.id,
        "metadata": problem.metadata or {},
    }
    _set_group(row, by)
    return _with_metadata(problem, {GROUP: row["group"]})._replace(group=row["group"])


def _with_metadata(problem, more):
    metadata = {**(problem.metadata or {}), **more}
    graph = problem.graph.replace(metadata=metadata)
    return problem._replace(graph=graph, metadata=metadata)


def _digest(content):
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_problems(options, *, labelled=False, path=None):
    """Read the problems in a file, and check that labels exist if they are required.

    The function also checks that the output folder exists.
    """
    path = path or options.problems
    check_folder(getattr(options, "output", None))
    problems = jsonl.read_bunch(_source(options, path), row_reader(options))
    if labelled and problems.labels is None:
        raise ValueError(
            f'{path}: at least one line must contain "labels", but no line does. Add one '
            "number per claim: 1 if it is true, 0 if it is false, and -1 if it is "
            "unjudged"
        )
    rows = problems.graphs.provenance_rows
    meanings = {row.get("label_meaning") for row in rows}
    if labelled and "supported" in meanings and problems.graphs.context is None:
        raise ValueError(
            f"{path}: the labels state whether the context supports each claim, but no "
            "line has a context. If the context has a different key, pass --map "
            "KEY=context"
        )
    return problems


@contextmanager
def clock(work):
    """Show the elapsed time of a task if standard error is a terminal."""

    def tick():
        # The progress bar is disabled when the work ends or if the output is not a terminal.
        while not bar.disable:
            bar.refresh()
            time.sleep(0.5)

    with tqdm(desc=work, bar_format="{desc} ... {elapsed}", disable=None) as bar:
        threading.Thread(target=tick, daemon=True).start()
        yield


def count_questions(graphs):
    """Return the number of distinct questions."""
    return len(np.unique(question_groups(graphs)))


def inform(*lines):
    """Print messages to standard error."""
    for line in lines:
        print(line, file=sys.stderr)


def show_claims(graph, kept, labels=None):
    """Print a question, its claims, the decision on each claim and, if known, the labels."""
    print(f"  {printable(graph.problem or graph.id or 'a problem without a question')}")
    words = {1: "  (true) ", 0: "  (FALSE)", -1: "  (?)    "}
    for v, keep in enumerate(kept):
        truth = "" if labels is None else words[int(labels[v])]
        text = printable(graph.claims[v]) if graph.claims else ""
        print(f"  {('dropped', 'kept   ')[int(keep)]}{truth}  {v + 1}. {text}")
