"""The examples of docs/development/extending.rst work in a copy of the package."""

import re
import shutil
import subprocess
import sys
from textwrap import dedent, indent

import pytest

MODULES = {
    "doubtful_children": "scorers",
    "normal_relaxation": "relaxation",
    "true_conclusion": "guarantees",
}
PROGRAM = """
import skdcf
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import TrueConclusion
from skdcf.relaxation import NormalRelaxation
from skdcf.scorers import DoubtfulChildren
graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
cf = skdcf.HardCF(DoubtfulChildren(), guarantee=TrueConclusion()).fit(graphs, y)
skdcf.save(cf, "filter.skops")
assert skdcf.load("filter.skops").threshold_ == cf.threshold_  # needs no `trusted`
skdcf.CoherentConformalFilter(relaxation=NormalRelaxation()).fit(graphs, y)
"""


@pytest.mark.long
def test_the_examples_inside_the_package(checkout, tmp_path):
    development = checkout / "docs/development"
    page = (development / "extending.rst").read_text("utf-8")
    package = shutil.copytree(checkout / "skdcf", tmp_path / "skdcf")
    for example, module in MODULES.items():
        text = (development / f"{example}.py").read_text("utf-8")
        own = re.sub(f"from skdcf.{module} import .*\n", "", text)
        with (package / f"{module}.py").open("a", encoding="utf-8") as file:
            file.write(own)
    run(tmp_path, "-c", PROGRAM)

    option, start, read = re.findall(
        r"\.\. code-block:: (?:toml|python)\n\n((?:   .*\n|\n)+)", page
    )
    commands = package / "apps/cli/commands.toml"
    replace(commands, "[arguments]\n", f"[arguments]\n{dedent(option)}")
    replace(commands, '"--language", "--no', '"--first", "--language", "--no')
    start, read = dedent(start).rstrip(), indent(dedent(read).rstrip(), "    ")
    code = package / "apps/cli/_split.py"
    replace(code, "\n".join(start.splitlines()[:2]), start)
    replace(code, read.removesuffix("[: options.first]"), read)
    log = checkout / "docs/guide/tutorial/log.jsonl"
    names = "asked=problem,answered=answer"
    command = ["-m", "skdcf", "split", log, "-o", "new.jsonl", "--map", names]
    run(tmp_path, *command, "--first", "2")
    assert len((tmp_path / "new.jsonl").read_text("utf-8").splitlines()) == 2
    assert "got 0" in run(tmp_path, *command, "--first", "0", code=2)


def replace(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(folder, *arguments, code=0):
    """Run Python in a folder, whose copy of the package is found first."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode()
