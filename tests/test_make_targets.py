"""Each target of the Makefile installs what its commands import.

No environment is built for this: the Makefile and ``setup.cfg`` are read, and so are the
programs, tests and pages that a target runs.
"""

import ast
import re
import runpy
import sys
from configparser import ConfigParser
from functools import cache

import pytest

#: The distributions of modules that have another name.
DISTRIBUTION = {
    "docutils": "sphinx",
    "sklearn": "scikit-learn",
    "sphinxcontrib": "sphinxcontrib-bibtex",
    "starlette": "fastapi",
    "xdist": "pytest-xdist",
    "xgboost": "xgboost-cpu",
}
#: Imported by tests and benchmarks that are skipped, or say so, if these are missing.
OPTIONAL = {
    "sentence_transformers",
    "torch",
    "transformers",
}
TARGETS = ["demo", "test", "long-tests", "coverage", "wheel-test", "lint", "docs"]
TARGETS += ["matrix", "release-check", "attacks", "bench", "paper", "foreign"]


@pytest.fixture(scope="module")
def makefile(checkout):
    """{target: (its extras, its commands)}."""
    text = (checkout / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    rule = (
        r"^([\w-]+): \$\(VENV\)/with-(\S+)(?: \S+)*\n((?:(?:\t|ifdef|else|endif).*\n)+)"
    )
    return {target: found for target, *found in re.findall(rule, text, re.MULTILINE)}


@pytest.fixture(scope="module")
def brought_by(checkout):
    """{extra: the distributions that it installs, with those of the core}."""
    setup = ConfigParser()
    setup.read(checkout / "setup.cfg", encoding="utf-8")
    required = setup["options"]["install_requires"]
    extras = setup["options.extras_require"]

    def names(lines):
        for name, others in re.findall(r"^([\w-]+)(?:\[(.+)\])?", lines, re.MULTILINE):
            yield name
            for other in others.split(",") if name == "skdcf" else ():
                yield from names(extras[other])

    return {extra: {*names(required), *names(extras[extra])} for extra in extras}


def test_targets_are_found(makefile):
    assert sorted(makefile) == sorted(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_extras_of_a_target_bring_what_it_imports(
    checkout, makefile, brought_by, target
):
    extras, commands = makefile[target]
    installed = set().union(*(brought_by[extra] for extra in extras.split(",")))
    own = {p.stem for p in checkout.glob("[!.]*/**/*.py")} | {
        "benchmarks",
        "skdcf",
        "tests",
    }
    other = own | set(sys.stdlib_module_names) | OPTIONAL
    modules = {name.partition(".")[0] for name in needed(checkout, commands)} - other
    asked = {m: DISTRIBUTION.get(m, m.replace("_", "-")) for m in modules}
    assert {m: name for m, name in asked.items() if name not in installed} == {}


def needed(checkout, commands):
    """Return the modules that commands need: as programs, as plugins, and by import."""
    tools = {
        *re.findall(r"python -m (\w+)", commands),
        *re.findall(r"N\)/(\w+)", commands),
    }
    modules = tools - {"python"}
    programs = re.findall(r"python -m (benchmarks\S+)", commands)
    named = re.findall(r"(?<![\w/$])[\w./]+\.py\b", commands)
    files = [checkout / name for name in named]
    if "tests/attacks/" in commands:
        files += (checkout / "tests" / "attacks").glob("*.py")
    if "pytest" in tools:
        modules |= {"xdist"} if " -n " in commands else set()
        modules |= {"pytest_cov"} if "--cov" in commands else set()
        files.append(checkout / "conftest.py")
        files += [] if "docs/" in commands else (checkout / "tests").rglob("*.py")
    if "sphinx" in tools:
        files += (checkout / "examples").rglob("*.py")
        files += (checkout / "docs" / "_ext").glob("*.py")
        files.append(checkout / "docs" / "conf.py")
        conf = files[-1].read_text(encoding="utf-8")
        modules |= set(re.findall(r'^    "([\w.]+)",$', conf.partition("]")[0], re.M))
        for page in (checkout / "docs").rglob("*.rst"):
            text = page.read_text(encoding="utf-8")
            modules |= set(re.findall(r"^ *>>> (?:import|from) (\w+)", text, re.M))
    files = {*files, *(module_path(checkout, name) for name in programs)}
    seen = set()
    while files:
        seen.add(path := files.pop())
        names = imported(path)
        modules |= names
        files |= {module_path(checkout, name) for name in names} - seen
        files = {path for path in files if path.exists()}
    return modules


@cache
def imported(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def module_path(checkout, name):
    """The file of a module of benchmarks/; none of other packages stands there."""
    return checkout.joinpath(*name.split(".")).with_suffix(".py")


def test_every_file_that_may_be_mutated_has_tests_that_exist(checkout):
    folder = checkout / "tests" / "attacks"
    names = runpy.run_path(str(folder / "mutations.py"))
    tests = {path.stem.removeprefix("test_") for path in checkout.glob("tests/**/*.py")}
    assert {name for name, *_ in names["all_mutations"]()} == names["TESTS"].keys()
    assert set(" ".join([*names["TESTS"].values(), names["OTHERS"]]).split()) <= tests
