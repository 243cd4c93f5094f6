"""What README.md shows runs as it stands, and the files it names exist."""

import re
import runpy
import shutil
from pathlib import Path

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
    folder, *commands = re.findall(r"^    (cd|skdcf) (.*)$", TEXT, re.MULTILINE)
    shutil.copytree(README.parent / folder[1], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    assert [main(words.split()) for _, words in commands] == [0, 0, 0]
    assert len(Path("kept.txt").read_text("utf-8").splitlines()) == 10


LINKS = re.findall(r"\]\(([^)]*)\)", TEXT)


def test_every_pointer_is_a_link_within_the_repository():
    assert len(LINKS) > 10
    assert [name for name in LINKS if not (README.parent / name).exists()] == []


def test_a_release_writes_the_address_into_links_and_images():
    """The index shows README alone, where what is relative leads nowhere."""
    script = runpy.run_path(str(README.parent / ".ci/release_check.py"))
    text = script["with_addresses"](TEXT, "https://example.org/skdcf", "1.2.3")
    assert (
        "](https://example.org/skdcf/raw/v1.2.3/docs/guide/figures/guarantee.svg)"
        in text
    )
    assert "](https://example.org/skdcf/blob/v1.2.3/docs/guide/tutorial.rst)" in text
    assert script["relative_links"](TEXT) == LINKS
    assert script["relative_links"](text) == []
