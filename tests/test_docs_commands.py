"""The commands that the guide shows, run one after another as a reader would."""

import re
import shlex
from textwrap import dedent

import pytest

from skdcf.cli import main

BLOCK = re.compile(
    r"^\.\. code-block:: (python|console)\n\n((?:   .*\n|\n)+)", re.MULTILINE
)


def test_commands_of_the_guide(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (checkout / "docs/guide/command_line.rst").read_text(encoding="utf-8")
    blocks = BLOCK.findall(page)
    assert len(blocks) >= 6
    for language, block in blocks:
        if language == "python":
            exec(dedent(block), {})
            continue
        for command in dedent(block).strip().split("$ skdcf ")[1:]:
            line, _, shown = command.partition("\n")
            assert main(shlex.split(line)) == 0, line
            said = capsys.readouterr().out.strip()
            assert not shown.strip() or said == shown.strip()


def test_every_command_is_on_the_page(checkout, capsys):
    page = (checkout / "docs/guide/command_line.rst").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    (\w+)  ", capsys.readouterr().out, re.MULTILINE)
    assert {"check", "fit", "filter"} <= set(commands)
    missing = [c for c in commands if f"skdcf {c}" not in page and c != "demo"]
    assert missing == []
