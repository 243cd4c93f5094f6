"""No import runs upwards, and heavy modules are imported late."""

import ast
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"
FILES = sorted(PACKAGE.rglob("*.py"))

# Each layer may import what lies below it, and what lies next to it without a circle.
LAYERS = [
    {
        "_checks",
        "_files",
        "_html",
        "_jobs",
        "_parameters",
        "_version",
        "exceptions",
    },
    {"edges", "graphs", "identity", "labels"},
    {"ops"},
    {"features", "guarantees", "relaxation", "training"},
    {"scorers"},
    {"guards"},
    {"columns", "jitter"},
    {"online"},
    {"full"},
    {"parts"},
    {"filters"},
    {"presets", "uses"},
    {"choosing"},
    {"evaluation"},
    {"inspection", "plots"},
    {"datasets", "monitoring", "persistence"},
    {"apps", "apps.text"},
    {"apps.labelling", "apps.llm", "apps.reporting"},
    {"", "__main__", "apps.cli", "apps.service"},
]

# Gradients are taken here and nowhere else, so that predicting needs no autograd.
AUTOGRAD = (
    "ops/soft*.py",
    "ops/segments.py",
    "relaxation.py",
    "training/*",
    "scorers/_models.py",
)
# Pure mathematics has nothing of scikit-learn, whose interface is added above.
MATHEMATICS = "graphs/*", "identity.py", "labels.py", "ops/*", "training/*"
HEAVY = {
    "fastapi",
    "json_repair",
    "matplotlib",
    "networkx",
    "openai",
    "pandas",
    "polars",
    "pydantic",
    "skops",
    "starlette",
    "uvicorn",
    "xgboost",
}
# The command imports these modules when it serves.
WEB = "apps/service/*", "apps/labelling/_pages*", "apps/cli/_serve*"


def place(path):
    return path.relative_to(PACKAGE).as_posix()


def part_of(names):
    """Return the part of the package that dotted names begin with, such as "apps.llm"."""
    names = [name for name in names if name != "__init__"]
    return ".".join(names[: 1 + (names[:1] == ["apps"])])


def home(path):
    return part_of(path.relative_to(PACKAGE).with_suffix("").parts)


@cache
def imports(path):
    """Pairs (dotted name, whether it is imported as soon as the file is)."""
    pairs = []
    statements = [(node, True) for node in ast.parse(path.read_text("utf-8")).body]
    for node, at_once in statements:  # which grows by what stands inside
        if isinstance(node, ast.Import):
            pairs += [(alias.name, at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folders = ("skdcf", *path.relative_to(PACKAGE).parts)[: -node.level or None]
            base = ".".join(
                [*(folders if node.level else ()), *filter(None, [node.module])]
            )
            pairs += [(f"{base}.{alias.name}", at_once) for alias in node.names]
        else:
            at_once &= not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            statements += [(inner, at_once) for inner in ast.iter_child_nodes(node)]
    return pairs


def parts_imported(path):
    """Pairs (part of the package, names inside of it) that a file imports from others."""
    for name, _ in imports(path):
        first, *names = name.split(".")
        while first == "skdcf" and names:
            if (part := part_of(names)) in set().union(*LAYERS):
                if part != home(path):
                    yield part, names[part.count(".") + 1 :]
                break
            names = names[:-1]


def packages_of(path, late=True):
    """Return the packages that a file imports, at its top or (late) in functions as well."""
    return {name.split(".")[0] for name, early in imports(path) if early or late}


def is_in(path, patterns):
    return any(fnmatch(place(path), pattern) for pattern in patterns)


def layer_of(part):
    (number,) = [n for n, layer in enumerate(LAYERS) if part in layer]
    return number


def test_no_import_runs_upwards():
    upwards = {
        (place(path), part)
        for path in FILES
        for part, _ in parts_imported(path)
        if layer_of(part) > layer_of(home(path))
    }
    assert upwards == set()


def test_no_circles():
    graph = {}
    for path in FILES:
        parts = {part for part, _ in parts_imported(path)}
        graph.setdefault(home(path), set()).update(parts)
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_private_modules_are_private():
    private = {
        (place(path), part, name)
        for path in FILES
        for part, names in parts_imported(path)
        for name in names
        if name.startswith("_") and not name.startswith("__")
    }
    assert private == set()


def test_autograd_where_gradients_are_taken():
    importing = [path for path in FILES if "autograd" in packages_of(path)]
    assert [place(path) for path in importing if not is_in(path, AUTOGRAD)] == []


def test_mathematics_without_scikit_learn():
    importing = [path for path in FILES if "sklearn" in packages_of(path)]
    assert [place(path) for path in importing if is_in(path, MATHEMATICS)] == []


def test_one_module_imports_private_names_of_scikit_learn():
    names = [(place(path), name) for path in FILES for name, _ in imports(path)]
    assert {p for p, n in names if n.startswith("sklearn") and "._" in n} == {
        "_parameters.py"
    }


def test_heavy_modules_inside_functions():
    early = {
        place(path): packages_of(path, late=False) & HEAVY
        for path in FILES
        if not is_in(path, WEB)
    }
    assert {path for path, packages in early.items() if packages} == set()


def test_importing_loads_nothing_heavy():
    """scikit-learn itself may load some of them where they are installed."""
    packages = "{name.split('.')[0] for name in sys.modules}"
    code = (
        f"import sys, sklearn.model_selection; before = {packages}\n"
        f"import skdcf; skdcf.HardCF; print(*{packages} - before)"
    )
    new = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "skdcf" in new
    assert (HEAVY | {"autograd"}).isdisjoint(new), sorted(new)


def test_every_warning_has_a_category():
    """`warn` needs one, and nothing goes around it."""
    assert [p.name for p in FILES if "warnings.warn(" in p.read_text("utf-8")] == [
        "_checks.py"
    ]
