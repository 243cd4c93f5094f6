"""The commands that the guide shows, run one after another as a reader would."""

import json
import re
import runpy
import shlex
import shutil
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from skdcf.apps.cli import main
from skdcf.datasets.records import KEYS

FILES = "log", "judged", "test"
BLOCK = re.compile(
    r"^\.\. code-block:: (python|console)\n\n((?:   .*\n|\n)+)", re.MULTILINE
)


@pytest.mark.long
def test_commands_of_the_guide(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(checkout, "command_line")
    assert len(blocks) >= 6
    run(blocks, capsys)


def test_the_tutorial(checkout, tmp_path, monkeypatch, capsys):
    folder = checkout / "docs/guide/tutorial"
    (tmp_path / "docs/guide").mkdir(parents=True)
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / "docs/guide/tutorial"))
    made = runpy.run_path("make_log.py")
    before = {name: Path(f"{name}.jsonl").read_text("utf-8") for name in FILES}
    made["main"]()
    assert before == {name: Path(f"{name}.jsonl").read_text("utf-8") for name in FILES}
    turns = [json.loads(line) for line in before["log"].splitlines()]
    run(blocks_of(checkout, "tutorial"), capsys)
    kept = Path("kept.jsonl").read_text(encoding="utf-8")
    before, turn = turns[1], json.loads(kept.splitlines()[1])
    assert turn["answered"].startswith("The reading room has 22 seats.")
    assert "8 euros" in before["answered"] and "8 euros" not in turn["answered"]
    assert (turn["asked"], turn["passages"]) == (before["asked"], before["passages"])
    assert turn["mask"] == [True, True, False]


def blocks_of(checkout, page):
    """Blocks of code and of commands on a page of the guide."""
    text = (checkout / f"docs/guide/{page}.rst").read_text(encoding="utf-8")
    return BLOCK.findall(text)


def run(blocks, capsys):
    """Run them one after another, and compare what is printed with what is shown."""
    for language, block in blocks:
        if language == "python":
            exec(dedent(block), {})
            continue
        for command in dedent(block).strip().split("$ skdcf ")[1:]:
            line, _, shown = command.partition("\n")
            assert main(shlex.split(line)) == 0, line
            printed, told = capsys.readouterr()
            if not shown.strip():
                continue
            # Three dots stand for any text, as in doctests.
            pattern = ".*".join(map(re.escape, shown.strip().split("...")))
            for said in (printed, told, printed + told):
                if re.fullmatch(pattern, said.strip(), re.DOTALL):
                    break
            else:
                raise AssertionError(f"{line}\n{shown}\nis not\n{printed}{told}")


def test_every_command_has_a_heading_and_every_key_a_row(checkout):
    page = (checkout / "docs/guide/command_line.rst").read_text(encoding="utf-8")
    described = (checkout / "skdcf/apps/cli/commands.toml").read_text(encoding="utf-8")
    commands = tomllib.loads(described)["commands"]
    headings = re.findall(r"^``(\w+)``\n~+$", page, re.MULTILINE)
    assert sorted(headings) == sorted(commands)
    table = page.partition("list-table::")[2].partition("\n\n``claims``")[0]
    keys = re.findall(r"``(\w+)``", "".join(re.findall(r"^   \* - .*$", table, re.M)))
    assert sorted(keys) == sorted([*KEYS, "question"])
