"""No import runs upwards, and what is heavy is imported where it is used."""

import ast
import subprocess
import sys
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"

# Whatever is not named here lies around the estimators: layer 6.
LAYERS = {
    "_checks": 0,
    "_drawing": 0,
    "_files": 0,
    "_parameters": 0,
    "exceptions": 0,
    "graphs": 1,
    "ops": 2,
    "guarantees": 3,
    "relaxation": 3,
    "training": 3,
    "scorers": 4,
    "estimators": 5,
}
AROUND = 6

# Pure mathematics: nothing of scikit-learn, whose face is put on above.
WITHOUT_SKLEARN = ("graphs", "ops", "training")

# Gradients are taken here and nowhere else, so that predicting needs no autograd.
AUTOGRAD = (
    "ops/soft*.py",
    "ops/segments.py",
    "relaxation/*",
    "training/*",
    "scorers/_mlp.py",
)

# Imported inside the functions that use them, never at the top of a module.
HEAVY = {
    "distributed",
    "matplotlib",
    "narwhals",
    "networkx",
    "openai",
    "pandas",
    "polars",
    "pooch",
    "skops",
    "xgboost",
}

LONGEST = 350
FILES = sorted(PACKAGE.rglob("*.py"))


def place(path):
    return path.relative_to(PACKAGE).as_posix()


def top_level(module):
    """The part of a dotted name that has a layer: skdcf.ops.hard -> ops."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(path):
    """Pairs (dotted module, whether it is imported as soon as the file is)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = from_names(path, node)
        else:
            continue
        for name in names:
            yield name, node not in inside


def from_names(path, node):
    """Dotted modules of ``from x import y``, relative ones resolved."""
    base = base_of(path, node)
    if base != "skdcf":
        return [base]
    return [
        f"skdcf.{alias.name}" if is_module(alias.name) else base for alias in node.names
    ]


def base_of(path, node):
    """The dotted x of ``from x import y``."""
    if not node.level:
        return node.module
    package = ("skdcf", *path.relative_to(PACKAGE).parent.parts)
    package = package[: len(package) - node.level + 1]
    return ".".join((*package, *([node.module] if node.module else ())))


def names_imported(path):
    """Pairs (dotted module, name taken from it) of all ``from x import y``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = base_of(path, node)
            yield from ((base, alias.name) for alias in node.names)


def is_module(name):
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def private_of_others(path):
    """What a file imports although another package keeps it to itself.

    Modules at the top, such as ``skdcf._checks``, are shared by all of them.
    """
    own = path.relative_to(PACKAGE).parent.parts[:1]
    for base, name in names_imported(path):
        top, *parts = *base.split("."), name
        if top == "skdcf" and tuple(parts[:1]) != own:
            inside = parts[1:]  # of that package
            if any(p.startswith("_") and not p.startswith("__") for p in inside):
                yield f"{base}.{name}"


def imports_within(layer):
    """For each module of a layer the others of that layer that it imports."""
    graph = {}
    for path in FILES:
        if layer_of(path) == layer and path != PACKAGE / "__init__.py":
            own = path.relative_to(PACKAGE).with_suffix("").parts[0]
            found = {top_level(m) for m, _ in imports(path) if m.startswith("skdcf.")}
            same = {m for m in found if LAYERS.get(m, AROUND) == layer and is_module(m)}
            graph.setdefault(own, set()).update(same - {own})
    return graph


def layer_of(path):
    if path == PACKAGE / "__init__.py":
        return AROUND
    return LAYERS.get(path.relative_to(PACKAGE).with_suffix("").parts[0], AROUND)


@pytest.mark.parametrize("path", FILES, ids=place)
def test_no_import_runs_upwards(path):
    own = layer_of(path)
    above = [
        module
        for module, _ in imports(path)
        if module.split(".")[0] == "skdcf"
        and LAYERS.get(top_level(module), AROUND) > own
    ]
    assert above == [], f"layer {own} imports from a layer above it"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_private_modules_are_private(path):
    assert list(private_of_others(path)) == []


@pytest.mark.parametrize("layer", range(AROUND + 1))
def test_no_circles_within_a_layer(layer):
    graph = imports_within(layer)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")
    assert set(order) == set(graph)


def test_layers_hold_what_they_should():
    assert set(imports_within(AROUND)) == {
        "__main__",
        "adapters",
        "cli",
        "datasets",
        "edges",
        "evaluation",
        "features",
        "inspection",
        "labelling",
        "llm",
        "metrics",
        "monitoring",
        "partitions",
        "persistence",
        "pipeline",
        "plots",
        "reporting",
    }
    assert {name for name in LAYERS if not is_module(name)} == set()


@pytest.mark.parametrize("path", FILES, ids=place)
def test_maths_without_sklearn(path):
    if place(path).removesuffix(".py").split("/")[0] in WITHOUT_SKLEARN:
        assert [m for m, _ in imports(path) if m.split(".")[0] == "sklearn"] == []


@pytest.mark.parametrize("path", FILES, ids=place)
def test_autograd_where_gradients_are_taken(path):
    if not any(fnmatch(place(path), pattern) for pattern in AUTOGRAD):
        assert [m for m, _ in imports(path) if m.split(".")[0] == "autograd"] == []


@pytest.mark.parametrize("path", FILES, ids=place)
def test_heavy_modules_inside_functions(path):
    early = [m for m, at_top in imports(path) if at_top and m.split(".")[0] in HEAVY]
    assert early == []


@pytest.mark.parametrize("path", FILES, ids=place)
def test_length(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= LONGEST


def loaded_after(statement):
    code = f"{statement}; import sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    run = [sys.executable, "-c", code]
    return set(subprocess.check_output(run, text=True).split())


def test_importing_loads_nothing_heavy():
    """scikit-learn itself may load some of them where they are installed."""
    new = loaded_after("import skdcf") - loaded_after("import sklearn.model_selection")
    assert new.isdisjoint(HEAVY | {"autograd"}), sorted(new)


def test_checker_resolves_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "ops").mkdir()
    (tmp_path / "metrics.py").touch()
    path = tmp_path / "ops" / "soft.py"
    path.write_text(
        "import numpy as np\n"
        "from .. import metrics, HardCF\n"
        "from ..graphs._ragged import split\n"
        "from .hard import path_risk\n"
        "from . import conformal\n"
        "def f():\n"
        "    from skdcf.estimators import HardCF\n"
        "    import pandas.api\n"
    )
    assert list(imports(path)) == [
        ("numpy", True),
        ("skdcf.metrics", True),
        ("skdcf", True),
        ("skdcf.graphs._ragged", True),
        ("skdcf.ops.hard", True),
        ("skdcf.ops", True),
        ("skdcf.estimators", False),
        ("pandas.api", False),
    ]
    assert layer_of(path) == 2


def test_checker_finds_what_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    for folder in ("ops", "graphs"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "ops" / "hard.py"
    path.write_text(
        "from .. import __version__, _checks\n"
        "from .._checks import warn\n"
        "from ._here import anything\n"
        "from . import _here\n"
        "from ..graphs import GraphBatch, _ragged\n"
        "def f():\n"
        "    from ..graphs._ragged import split\n"
        "    from skdcf.graphs import _ragged as r\n"
        "    from .hard import _own\n"
    )
    assert list(private_of_others(path)) == [
        "skdcf.graphs._ragged",
        "skdcf.graphs._ragged.split",
        "skdcf.graphs._ragged",
    ]
    beside = tmp_path / "plots.py"
    beside.write_text(
        "from .ops._here import x\n"
        "from ._checks import warn\n"
        "from .ops.hard import y, _z\n"
    )
    assert list(private_of_others(beside)) == ["skdcf.ops._here.x", "skdcf.ops.hard._z"]
