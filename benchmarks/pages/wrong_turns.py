"""Record the messages of the commands for typical mistakes of new users.

python -m benchmarks.pages.wrong_turns

The program writes docs/guide/wrong_turns.txt, which contains each command, its exit code and its
output. A test runs the same commands and checks that none of them leaves a file behind.
"""

import io
import json
import os
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks import GUIDE
from skdcf.apps.cli import main

PAGE = GUIDE / "wrong_turns.txt"
#: What went wrong, and the command; the files are those of `write_files`.
TURNS = [
    (
        "passages under a key that nobody knows",
        "fit chunks.jsonl -o new.skops",
    ),
    (
        "labels of support without anything that could support",
        "fit unsupported.jsonl -o new.skops",
    ),
    (
        "a name that no problem has",
        "fit own.jsonl -o new.skops --map sentences=claims --map verdicts=labls",
    ),
    (
        "half of a pair",
        "check own.jsonl --map sentences",
    ),
    (
        "an instruction in place of a question",
        "fit summaries.jsonl -o new.skops",
    ),
    (
        "a key for the question that the lines do not have",
        "fit summaries.jsonl -o new.skops --group-by tickt",
    ),
    (
        "slips in every line of a file",
        "features slips.jsonl -o new.jsonl",
    ),
    (
        "whole answers in place of claims",
        "fit log.jsonl -o new.skops",
    ),
    (
        "whole answers under a key of one's own",
        "split log.jsonl -o new.jsonl",
    ),
    (
        "another key for the text that is left",
        "filter model.skops new_answers.jsonl -o new.jsonl --text-key answred",
    ),
    (
        "too few labels for the level",
        "fit labelled.jsonl -o new.skops --alpha 0.005 --features built-in "
        "--scorer context_trigrams",
    ),
    (
        "no labels at all",
        "evaluate model.skops new_answers.jsonl",
    ),
    (
        "claims that were made by another model",
        "filter model.skops other_model.jsonl -o new.jsonl",
    ),
    (
        "a server that is not there",
        "answer model.skops -q Who? -a Ann. --context passage.txt "
        "--base-url http://127.0.0.1:9/v1 --key-variable=",
    ),
    (
        "a folder that is not there",
        "filter model.skops new_answers.jsonl -o folder/new.jsonl",
    ),
]


def write_files():
    """Write the newcomer's files into the folder where one is, and fit a filter."""
    from skdcf.apps.llm import ClaimExtractor

    passages = [
        "The bridge was opened in March 1932 after nine years of work.",
        "Trams crossed it on two tracks until 1958, when these became lanes for cars.",
    ]
    claims = ["It was opened in 1932.", "Trams crossed it."]
    extraction = ClaimExtractor("m", lambda request: None).describe()

    def answers(n, **more):
        for i in range(n):
            yield {
                "problem": f"When was bridge {i} opened?",
                "context": [f"Bridge {i}.", *passages],
                "claims": [*claims, f"It has {i} lanes."],
                "edges": [],
                **more,
            }

    labels = {"labels": [1, 1, 0]}
    by_model = {"metadata": {"extraction": extraction}}
    by_other = {"metadata": {"extraction": extraction | {"model": "another"}}}
    supported = {"metadata": {"label_meaning": "supported"}}
    log = {"asked": "When?", "answered": " ".join(claims), "passages": passages}
    write("labelled", answers(40, **labels, **by_model))
    write("new_answers", answers(5, answer=" ".join(claims), **by_model))
    write("other_model", answers(5, **by_other))
    write("chunks", renamed(answers(40, **labels), context="chunks"))
    write("unsupported", renamed(answers(40, **labels, **supported), context=None))
    write("own", renamed(answers(40, **labels), claims="sentences", labels="verdicts"))
    write("summaries", answers(40, **labels, problem="Summarise the passages."))
    write("slips", renamed(answers(40, **labels), labels="labls", edges="edge"))
    write("log", [log] * 10)
    Path("passage.txt").write_text(passages[0], encoding="utf-8")
    options = "--alpha 0.2 --show 1 --features built-in --scorer context_trigrams"
    code, _, said = quietly(f"fit labelled.jsonl -o model.skops {options}")
    if code:
        raise SystemExit(said)


def renamed(rows, **names):
    """Rows with other keys, or without those that are None."""
    for row in rows:
        renamed = {names.get(key, key): value for key, value in row.items()}
        yield {key: value for key, value in renamed.items() if key is not None}


def write(name, rows):
    """A file with one object per line."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path(f"{name}.jsonl").write_text(text, encoding="utf-8")


def quietly(command):
    """Run a command; its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(command.split())
    return code, out.getvalue(), err.getvalue()


def take():
    """Each turn with its exit code, what it printed, and the files that came or went."""
    before = {path: os.stat(path).st_mtime_ns for path in os.listdir()}
    for title, command in TURNS:
        code, out, err = quietly(command)
        after = {path: os.stat(path).st_mtime_ns for path in os.listdir()}
        changed = sorted(before.items() ^ after.items())
        yield title, command, code, out, err, changed


def described(turns):
    """The page."""
    for title, command, code, out, err, _ in turns:
        yield f"# {title}\n$ skdcf {command}\n{out}{err}(ended with {code})\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_files()
        page = "\n".join(described(take())).replace(f"{folder}/", "FOLDER/")
        PAGE.write_text(page, encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
