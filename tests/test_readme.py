"""What README.md shows runs as it stands, and the files it names exist."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_every_block_is_found():
    assert len(SNIPPETS) == TEXT.count("```python") >= 2


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet_runs(number):
    exec(compile(SNIPPETS[number], f"{README.name}[{number}]", "exec"), {})


def test_first_snippet_keeps_what_the_table_above_it_says(capsys):
    exec(compile(SNIPPETS[0], README.name, "exec"), {})
    shown = capsys.readouterr().out
    rows = re.findall(r"^\| (.+?) \| (true|\*\*false\*\*) \| (\S+)", TEXT, re.MULTILINE)
    assert [decision.strip("~:") for *_, decision in rows] == ["kept", "kept"] + [
        "dropped"
    ] * 2
    kept = [text for text, _, decision in rows if decision == "kept"]
    assert shown.startswith("\n".join(kept) + "\n2 of 4 claims kept")
    assert "it builds on claim 3" in shown


def test_snippet_with_numbers_keeps_its_promise(capsys):
    (snippet,) = (s for s in SNIPPETS if "evaluate_filter" in s)
    exec(compile(snippet, README.name, "exec"), {})
    shown = capsys.readouterr().out
    rows = re.findall(r"^0\.100 +0\.900 +([\d.]+).*?([\d.]+) \+-", shown, re.MULTILINE)
    (plain_coverage, plain), (coverage, learnt) = [map(float, row) for row in rows]
    assert min(plain_coverage, coverage) >= 0.85
    assert learnt > plain > 1


def test_files_exist():
    named = re.findall(r"`((?:docs/|LICENSE)[\w./]*)`", TEXT)
    assert named
    assert [name for name in named if not (README.parent / name).exists()] == []


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make (demo|test|lint|docs|bench)\b", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_results_stand_there_once():
    assert TEXT.count("<!-- benchmarks/report.py writes this table -->") == 1
