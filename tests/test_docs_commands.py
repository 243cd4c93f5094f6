"""The commands that the guide shows, run one after another as a reader would."""

import json
import re
import runpy
import shlex
import tomllib
from textwrap import dedent

import pytest

from skdcf.apps.cli import main
from skdcf.datasets import read_jsonl
from skdcf.datasets.records import jsonl_schema

BLOCK = re.compile(
    r"^\.\. code-block:: (python|console)\n\n((?:   .*\n|\n)+)", re.MULTILINE
)


@pytest.mark.long
def test_commands_of_the_guide(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(checkout, "command_line")
    assert len(blocks) >= 6
    run(blocks, capsys)


def test_the_tutorial_as_commands_and_as_a_notebook(
    checkout, tmp_path, monkeypatch, capsys
):
    folder = checkout / "docs/guide/tutorial"
    made = runpy.run_path(str(folder / "make_notebook.py"))["notebook"]()
    saved = (checkout / "docs/guide/tutorial.ipynb").read_text(encoding="utf-8")
    assert made == json.loads(saved)
    monkeypatch.chdir(tmp_path)
    names, code = {}, [c["source"] for c in made["cells"] if c["cell_type"] == "code"]
    for source in code:
        exec("".join(source), names)
    assert "unfiltered: 0." in capsys.readouterr().out
    for name in ("log", "judged", "test"):
        written = (tmp_path / f"tutorial/{name}.jsonl").read_text(encoding="utf-8")
        assert written == (folder / f"{name}.jsonl").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path / "tutorial")
    run(blocks_of(checkout, "tutorial"), capsys)
    kept = (tmp_path / "tutorial/kept.jsonl").read_text(encoding="utf-8")
    before, turn = names["turns"][1], json.loads(kept.splitlines()[1])
    assert turn["answered"].startswith("The reading room has 22 seats.")
    assert "8 euros" in before["answered"] and "8 euros" not in turn["answered"]
    assert (turn["asked"], turn["passages"]) == (before["asked"], before["passages"])
    assert turn["mask"] == [True, True, False]
    sentences = read_jsonl("new.jsonl").graphs
    made_in_python = [names["to_problem"](turn) for turn in names["turns"]]
    assert [list(g.claims) for g in sentences] == [
        row["claims"] for row in made_in_python
    ]
    assert sentences.edges_known.all() and not len(sentences.edges)


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
    assert sorted(keys) == sorted(jsonl_schema()["properties"])
