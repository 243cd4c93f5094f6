"""The commands that the guide shows, run one after another as a reader would."""

import json
import re
import runpy
import shlex
import shutil
from pathlib import Path
from textwrap import dedent

from skdcf.apps.cli import main
from skdcf.datasets.records import KEYS

FILES = "log", "judged", "test"
BLOCK = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", re.MULTILINE)


def test_the_tutorial(checkout, tmp_path, monkeypatch, capsys):
    folder = checkout / "docs/guide/tutorial"
    (tmp_path / "docs/guide").mkdir(parents=True)
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / "docs/guide/tutorial"))
    made = runpy.run_path("make_log.py")
    before = {name: Path(f"{name}.jsonl").read_text("utf-8") for name in FILES}
    made["main"]()
    assert before == {name: Path(f"{name}.jsonl").read_text("utf-8") for name in FILES}
    turns = [json.loads(line) for line in before["log"].splitlines()]
    page = (checkout / "docs/guide/tutorial.rst").read_text(encoding="utf-8")
    run(BLOCK.findall(page), capsys)
    kept = Path("kept.jsonl").read_text(encoding="utf-8")
    before, turn = turns[8], json.loads(kept.splitlines()[8])
    assert (turn["asked"], turn["passages"]) == (before["asked"], before["passages"])
    assert turn["mask"] == [True, True, False]


def run(blocks, capsys):
    """Run commands one after another, and compare what is printed with what is shown."""
    for block in blocks:
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


def test_every_key_of_a_line_has_a_row(checkout):
    page = (checkout / "docs/guide/data.rst").read_text(encoding="utf-8")
    table = page.partition("list-table::")[2].partition("\n\nEach line")[0]
    keys = re.findall(r"``(\w+)``", "".join(re.findall(r"^   \* - .*$", table, re.M)))
    assert sorted(keys) == sorted([*KEYS, "question"])
