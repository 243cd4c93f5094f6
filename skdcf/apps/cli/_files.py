"""Read problems, write lines and print messages for the commands."""

import hashlib
import io
import json
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..._files import write_text
from ...datasets import jsonl, records
from ...datasets.paths import MISSING, value_at
from ...datasets.tables import read_table
from ...identity import question_groups


def inform(*lines):
    """Print messages to standard error."""
    print(*lines, sep="\n", file=sys.stderr)


def check_folder(path):
    """Raise ValueError if the folder of the output file does not exist."""
    folder = Path(path or "").absolute().parent
    if path and path != "-" and not folder.is_dir():
        raise ValueError(
            f"{path} cannot be written, because the folder {folder} does not exist. "
            "Create the folder first"
        )


def write_lines(path, lines):
    """Write lines atomically to a file (compressed if the suffix is .gz) or to standard output."""
    if path == "-":
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        write_text(path, lines)


def renamed(options):
    """Return the mapping ``--map`` from keys and paths in the file to keys of our format."""
    pairs = ",".join(options.map).split(",") if options.map else []
    rename = dict(pair.strip().partition("=")[::2] for pair in pairs)
    targets = sorted({*records.KEYS, "question", "answer", "logprobs"})
    if not {*rename.values()} <= {*targets} or len({*rename.values()}) < len(pairs):
        raise ValueError(
            f"--map must have the form THEIRS=OURS, where each OURS is another one of "
            f"{', '.join(targets)}, got {pairs}"
        )
    return rename


def read_records(options, read):
    """Yield ``read(record, rename)`` for the object of each line and the mapping ``--map``."""
    path = options.problems
    source = sys.stdin.buffer if path == "-" else Path(path)
    rename = renamed(options)
    if path.lower().endswith((".csv", ".tsv")):
        source = _table_as_lines(path, rename)

    def prepared(record):
        record = _grouped(record, rename, options.group_by)
        record = _with_names(record, {"question": "problem", **rename})
        return read(record, rename)

    return jsonl.iter_read(source, prepared)


def _with_names(record, rename):
    """Return a line whose metadata contain the keys of the file for our keys, if they differ."""
    metadata = record.get("metadata") or {}
    names = {
        ours: theirs
        for theirs, ours in rename.items()
        if theirs in record or ours == "answer"
    }
    if not names or not isinstance(metadata, dict):
        return record
    return {**record, "metadata": {**metadata, records.NAMES: names}}


def _table_as_lines(path, rename):
    """Return a stream of JSON Lines whose line numbers are the row numbers of a CSV table.

    A cell that contains a JSON list or object is parsed. An empty cell is read as null, or as an
    empty string if the column contains answers.
    """
    answers = [theirs for theirs, ours in rename.items() if ours == "answer"]
    answers.append("answer")
    table = read_table(path)
    lines = [""] * max(table, default=0)
    for number, row in table.items():
        record = {key: _value(cell, key in answers) for key, cell in row.items()}
        lines[number - 1] = json.dumps(record)
    stream = io.BytesIO("\n".join(lines).encode())
    stream.name = str(path)
    return stream


def _value(cell, is_answer):
    text = cell.strip()
    if text[:1] in ("[", "{"):
        with suppress(ValueError):
            return json.loads(text)
    return cell if text or is_answer else None


def _grouped(record, rename, by):
    """Return a line with the group according to ``--group-by``."""
    if by is None:
        return record
    line = records.rename_keys(record, rename)
    # Copies of an answer in different files must be in the same group.
    if by == "none":
        content = "problem context claims features answer id"
        group = _digest([line.get(key) for key in content.split()])
    elif by == "context" and line.get("context"):
        passages = line["context"]
        group = _digest([passages] if isinstance(passages, str) else passages)
    else:
        group = value_at(record, by)
        if group is MISSING:
            group = value_at(record, f"metadata.{by}")
    if isinstance(group, bool) or not isinstance(group, str | int):
        raise ValueError(
            f"--group-by {by}: each line must have a string or an integer under this key, got "
            f"{'no value' if group is MISSING else repr(group)}. The line has the keys "
            f"{', '.join(record)}"
        )
    return {**record, "group": group}


def _digest(content):
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_problems(options, *, labelled=False):
    """Read the problems in the file, and check that labels exist if they are required.

    The function also checks that the output folder exists.
    """
    check_folder(options.output)
    path = options.problems
    rows = list(read_records(options, records.read_row))
    try:
        problems = records.as_bunch(rows)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if labelled and problems.labels is None:
        raise ValueError(
            f'{path}: at least one line must contain "labels", but no line does. Add one '
            "number per claim: 1 if it is true, 0 if it is false, and -1 if it is "
            "unjudged"
        )
    meanings = {row.get("label_meaning") for row in problems.graphs.provenance_rows}
    if labelled and "supported" in meanings and problems.graphs.context is None:
        raise ValueError(
            f"{path}: the labels state whether the context supports each claim, but no line "
            'has the key "context". If it has a different key, pass --map KEY=context'
        )
    return problems


def count_questions(graphs):
    """Return the number of distinct questions."""
    return len(np.unique(question_groups(graphs)))
