"""What CONTRIBUTING.md and the pages on development name exists."""

import re

import pytest

PAGES = ("CONTRIBUTING.md", "docs/development/index.rst")


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(checkout, page):
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    text = (checkout / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:``?|^ {4})make ([\w-]+)", text, re.MULTILINE))
    assert len(targets) >= 5
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert targets - known == set()


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(checkout, page):
    text = (checkout / page).read_text(encoding="utf-8")
    named = re.findall(r"`([\w.-]*(?:docs|tests|skdcf|\.ci)/[\w./-]+)`", text)
    assert named
    assert [name for name in named if not (checkout / name).exists()] == []


def test_ci_runs_targets_that_exist(checkout):
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    script = (checkout / ".ci" / "run").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^for target in (.*); do$", script, re.MULTILINE)
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert set(targets.split()) <= known
