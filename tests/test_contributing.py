"""What CONTRIBUTING.md and the pages on development name exists."""

import re

import pytest

PAGES = (
    "CONTRIBUTING.md",
    "README.md",
    "docs/development/index.rst",
    "docs/referees/index.rst",
)


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(checkout, page):
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    text = (checkout / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:``?|^ {4})make ([\w-]+)", text, re.MULTILINE))
    assert targets
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert targets - known == set()


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(checkout, page):
    text = (checkout / page).read_text(encoding="utf-8")
    named = re.findall(
        r"`([\w.-]*(?:benchmarks|docs|tests|skdcf|\.ci)/[\w./-]+)`", text
    )
    assert [name for name in named if not (checkout / name).exists()] == []


def test_ci_runs_targets_that_exist(checkout):
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    script = (checkout / ".ci" / "run").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^for target in (.*); do$", script, re.MULTILINE)
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert set(targets.split()) <= known


def test_every_example_with_other_packages_is_run_and_shown(checkout):
    """Files of `integrations` are run by the Makefile, or imported by one that is."""
    folder = checkout / "integrations"
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"INTEGRATIONS := ((?:.*\\\n)*.*)\n", makefile)
    run = set(listed.replace("\\", "").split())
    texts = {path.stem: path.read_text("utf-8") for path in folder.glob("*.py")}
    helpers = {"offline", "desk", "mlflow_filter"}
    assert set(texts) == run | helpers
    shown = (checkout / "docs/other_tools.rst").read_text("utf-8")
    assert {name for name in run if f"{name}.py" not in shown} == set()
