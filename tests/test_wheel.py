"""What users install: the wheel, alone, in an environment that holds nothing else."""

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
from skdcf import CoherentConformalFilter
from skdcf.datasets import make_reasoning_graphs

graphs, labels = make_reasoning_graphs(120, random_state=0, return_X_y=True)
cf = CoherentConformalFilter(random_state=0).fit(graphs[:100], labels[:100])
print(len(cf.predict(graphs[100:])), importlib.util.find_spec("matplotlib"))
"""


REPORT = ("report", "filter.skops", "test.jsonl", "-o", "report.html")


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
    kinds = (".css", ".py", ".pyi", ".html", ".json", ".toml", ".txt", ".typed")
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
    assert run(bare / "python", "-c", PROGRAM, cwd=tmp_path) == "20 None\n"


@pytest.mark.wheel
def test_command_without_its_extra_says_what_to_install(bare, tmp_path):
    line = '{"problem": "What is 1 + 1?", "claims": ["It is 2."]}'
    (tmp_path / "claims.jsonl").write_text(line, encoding="utf-8")
    command = [bare / "skdcf", "label", "claims.jsonl", "-o", "labelled.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert 'pip install ".[apps]"' in line


@pytest.mark.wheel
def test_the_commands_of_the_readme(with_apps, checkout, tmp_path):
    lines = (checkout / "README.md").read_text("utf-8").splitlines()
    commands = [line.split() for line in lines if line.startswith("    skdcf ")]
    shutil.copytree(checkout / "docs/guide/tutorial", tmp_path / "copy")
    for _, *words in [*commands, ("", *REPORT)]:
        run(with_apps / "skdcf", *words, cwd=tmp_path / "copy")
    assert (tmp_path / "copy/kept.txt").stat().st_size > 0


def test_folder_of_the_same_name_does_not_hide_the_package(tmp_path):
    """Such as a clone: Python takes it for a package in parts, the last it looks for."""
    (tmp_path / "skdcf").mkdir()
    where = run(
        sys.executable, "-c", "import skdcf; print(skdcf.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).name == "__init__.py"
