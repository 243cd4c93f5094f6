"""What users install: the wheel, alone, in an environment that holds nothing else."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

# Left by tools, or by an earlier build: nothing of it may be looked at.
LEFTOVERS = (".*", "__pycache__", "*.egg-info", "build", "dist", "_build", "generated")

PROGRAM = """
import importlib.util
from importlib.resources import files
import skdcf
from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import (make_reasoning_graphs,)

graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
hard = HardCF("frequency-score", alpha=0.1).fit(graphs[:100], labels[:100])
learnt = CoherentConformalFilter(alpha=0.1, random_state=0)
learnt.fit(graphs[:100], labels[:100])
for filter in (hard, learnt):
    print(len(filter.predict(graphs[100:])))
print(files("skdcf").joinpath("py.typed").is_file())
print(importlib.util.find_spec("matplotlib"), skdcf.__file__)
"""


def run(*command, cwd):
    """What a command prints, in a folder and with nothing of ours on its path."""
    environ = {name: os.environ[name] for name in os.environ.keys() - {"PYTHONPATH"}}
    command = [str(part) for part in command]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    """The wheel, built from a copy of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(*LEFTOVERS))
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
    run(*pip, "--wheel-dir", folder, copy, cwd=folder)
    (built,) = folder.glob("skdcf-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """The programs of an environment with the wheel and what it requires, no extras."""
    return install(wheel, tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def with_apps(wheel, tmp_path_factory):
    """The programs of an environment with the wheel and the extra ``apps``."""
    return install(f"skdcf[apps] @ {wheel.as_uri()}", tmp_path_factory.mktemp("apps"))


def install(what, folder):
    venv.create(folder)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    run(*pip, "install", "--quiet", "--no-compile", what, cwd=folder)
    return programs


@pytest.mark.wheel
def test_wheel_holds_the_package_and_nothing_else(wheel, checkout):
    names = [name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name]
    kinds = (".py", ".pyi", ".html", ".json", ".toml", ".txt", ".typed")
    source = [p for p in checkout.glob("skdcf/**/*") if p.suffix in kinds]
    source = [p.relative_to(checkout).as_posix() for p in source]
    assert {"skdcf/py.typed", "skdcf/__init__.pyi"} <= set(names)
    assert sorted(names) == sorted(source)


@pytest.mark.wheel
def test_source_distribution_holds_what_its_tests_read(checkout, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".venv", ".git"))
    build = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"
    run(sys.executable, "-c", build, cwd=copy)
    (archive,) = tmp_path.glob("skdcf-*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    asked = ("git", "ls-files")
    tracked = set(run(*asked, cwd=checkout).splitlines())
    left_out = {name for name in tracked if name.startswith((".github/", ".gitignore"))}
    assert tracked - left_out - held == set()


@pytest.mark.wheel
def test_wheel_filters_without_extras(bare, tmp_path):
    printed = run(bare / "python", "-c", PROGRAM, cwd=tmp_path)
    *counts, data, rest = printed.splitlines()
    assert counts == ["20", "20"]
    assert data == "True"
    matplotlib, where = rest.split(" ", 1)
    assert matplotlib == "None"
    assert Path(where).is_relative_to(bare.parent)


@pytest.mark.wheel
def test_command_without_its_extra_says_what_to_install(bare, tmp_path):
    line = '{"problem": "What is 1 + 1?", "answer": "It is 2."}'
    (tmp_path / "log.jsonl").write_text(line, encoding="utf-8")
    command = [bare / "skdcf", "split", "log.jsonl", "-o", "claims.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert 'pip install ".[apps]"' in line


@pytest.mark.wheel
def test_wheel_brings_the_command(with_apps, tmp_path):
    assert "report" in run(with_apps / "skdcf", "--help", cwd=tmp_path)
    few = ("demo", "--n-problems", "100", "--output", "pictures")
    assert "report.html" in run(with_apps / "skdcf", *few, cwd=tmp_path)


MADE = """
import gzip, json
from skdcf.datasets import make_word_problems

def record(number, graph, labels):
    parents = [[int(u) for u, w in graph.edges if w == v] for v in range(graph.n_claims)]
    return {"question": graph.problem, "claims": list(graph.claims), "parents": parents,
            "labels": [int(y) for y in labels], "ticket": f"T-{number}", "by": {"bot": 1}}

for name, n, seed in (("labelled", 120, 0), ("test", 60, 1), ("new", 20, 2)):
    data = make_word_problems(n, random_state=seed)
    rows = [record(i, g, y) for i, (g, y) in enumerate(zip(data.graphs, data.labels))]
    if name == "new":
        rows = [{k: v for k, v in row.items() if k != "labels"} for row in rows]
    with gzip.open(f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\\n" for row in rows)
"""


@pytest.mark.wheel
def test_wheel_goes_from_json_lines_to_a_report(with_apps, tmp_path):
    """With ``parents``, compressed, and with keys of one's own."""
    run(with_apps / "python", "-c", MADE, cwd=tmp_path)

    def skdcf(*words):
        return run(with_apps / "skdcf", *words, cwd=tmp_path)

    skdcf("fit", "labelled.jsonl.gz", "-o", "filter.skops", "--alpha", "0.1")
    skdcf("filter", "filter.skops", "new.jsonl.gz", "--json", "-o", "kept.jsonl.gz")
    texts = "filter", "filter.skops", "new.jsonl.gz", "--empty", "(nothing)"
    packed = [(tmp_path / f"{name}.jsonl.gz").read_bytes() for name in ("new", "kept")]
    lines = [gzip.decompress(one).splitlines() for one in packed]
    given, kept = ([json.loads(line) for line in file] for file in lines)
    for before, after in zip(given, kept, strict=True):
        for key in ("ticket", "by", "claims"):
            assert after[key] == before[key]
        mask = after["mask"]
        assert len(mask) == len(before["claims"])
        assert all(
            mask[u] for v, us in enumerate(before["parents"]) if mask[v] for u in us
        )
    texts_kept = [row["metadata"]["filtered"]["text"] for row in kept]
    shown = [" ".join((text or "(nothing)").split()) for text in texts_kept]
    assert skdcf(*texts, "-o", "-").splitlines() == shown
    levels = "--alphas", "0.1", "0.2"
    report = "report", "filter.skops", "test.jsonl.gz", "-o", "report.html"
    assert "0.100   0.900" in skdcf(*report, *levels)
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_folder_of_the_same_name_does_not_hide_the_package(tmp_path):
    """Such as a clone: Python takes it for a package in parts, the last it looks for."""
    (tmp_path / "skdcf").mkdir()
    where = run(
        sys.executable, "-c", "import skdcf; print(skdcf.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).name == "__init__.py"
