"""What README.md shows runs as it stands, and the files it names exist."""

import json
import re
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from skdcf.apps.cli import main

README = Path(__file__).resolve().parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_every_block_is_found():
    assert len(SNIPPETS) == TEXT.count("```python") >= 1


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet_runs(number):
    exec(compile(SNIPPETS[number], f"{README.name}[{number}]", "exec"), {})


def test_first_snippet_keeps_what_the_table_above_it_says(capsys):
    exec(compile(SNIPPETS[0], README.name, "exec"), {})
    shown = capsys.readouterr().out
    rows = re.findall(r"^\| (.+?) \| (true|\*\*false\*\*) \| (\S+)", TEXT, re.MULTILINE)
    decisions = [decision.strip("~,") for *_, decision in rows]
    assert decisions == ["kept"] * 3 + ["dropped"] * 2
    kept = [text for text, _, decision in rows if decision == "kept"]
    assert shown == "\n".join(kept) + "\n"


def test_the_commands_run_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("sentencex", reason="the command line needs the extra apps")
    folder, *commands = re.findall(r"^    (cd|skdcf) (.*)$", TEXT, re.MULTILINE)
    shutil.copytree(README.parent / folder[1], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    assert [main(words.split()) for _, words in commands] == [0, 0, 0]
    assert len(Path("kept.txt").read_text("utf-8").splitlines()) == 10


def test_the_first_program_has_at_most_twenty_lines():
    lines = [line for line in SNIPPETS[0].splitlines() if line.strip()]
    assert len(lines) <= 20


LINKS = re.findall(r"\]\(([^)]*)\)", TEXT)


def test_every_pointer_is_a_link_within_the_repository():
    assert len(LINKS) > 10
    assert [name for name in LINKS if not (README.parent / name).exists()] == []
    assert re.findall(r"`(?:docs|benchmarks|examples)/[\w./]*`", TEXT) == [
        "`benchmarks/guarantees/guarantee.py`"
    ] * TEXT.count("`benchmarks/guarantees/guarantee.py`")


def test_a_release_writes_the_address_into_links_and_images():
    """The index shows README alone, where what is relative leads nowhere."""
    script = runpy.run_path(str(README.parent / ".ci/release_check.py"))
    text = script["with_addresses"](TEXT, "https://example.org/skdcf", "1.2.3")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) == len(LINKS)
    assert all(link.startswith("https://example.org/skdcf/") for link in links)
    assert (
        "](https://example.org/skdcf/raw/v1.2.3/docs/guide/figures/guarantee.svg)"
        in text
    )
    assert "](https://example.org/skdcf/blob/v1.2.3/docs/guide/tutorial.rst)" in text
    assert script["relative_links"](TEXT) == LINKS
    assert script["relative_links"](text) == []


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make (demo|test|lint|docs|bench)\b", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_results_stand_there_once_and_are_short():
    """Methods first, then evidence; the long tables stand in the documentation."""
    evidence = "<!-- benchmarks/pages/report.py writes what evidence is worth -->\n| "
    scorers = "<!-- benchmarks/pages/report.py writes this table -->\n| "
    assert TEXT.count(evidence) == TEXT.count(scorers) == 1
    assert TEXT.index(scorers) < TEXT.index(evidence)
    tables = re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE)
    assert len(tables) == 3
    n_rows = [table.count("\n") - 2 for table in tables]  # without header and line
    assert max(n_rows) <= 6


def test_the_text_below_the_table_says_what_the_table_says():
    rows = re.findall(
        r"^\| (the default|logistic .*?) \| ([\d.]+) ± ([\d.]+)", TEXT, re.MULTILINE
    )
    (_, default, error), (_, priced, other) = rows
    assert abs(float(default) - float(priced)) < np.hypot(float(error), float(other))
    saved = json.loads(
        (README.parent / "benchmarks/results/passing_scorers.json").read_text()
    )
    rows = [row for row in saved if row["alpha"] == 0.1]
    shown = [
        np.mean([row[name]["shown"][0] for row in rows])
        for name in ("priced", "regression")
    ]
    assert len(rows) == 9 and shown[0] - shown[1] == pytest.approx(0.09, abs=0.01)
    assert "the price shows 9 ± 3\npercentage points more answers" in TEXT
