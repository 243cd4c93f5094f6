"""No import runs upwards, and heavy modules are imported late.

There is one test per rule. Its message names the files that break it.
"""

import ast
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"

# Each layer may import what lies below it, and what lies next to it without a circle.
LAYERS = [
    {
        "_checks",
        "_files",
        "_html",
        "_jobs",
        "_parameters",
        "_sklearn",
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
    {"adapters", "datasets", "monitoring", "persistence"},
    {"apps"},
    {"apps.text"},
    {"apps.labelling", "apps.llm", "apps.reporting"},
    {"__main__", "apps.cli", "apps.service"},
]

# Pure mathematics: nothing of scikit-learn, whose interface is added above.
WITHOUT_SKLEARN = {"graphs", "identity", "labels", "ops", "training"}

# Gradients are taken here and nowhere else, so that predicting needs no autograd.
AUTOGRAD = (
    "ops/soft*.py",
    "ops/segments.py",
    "relaxation.py",
    "training/*",
    "scorers/_models.py",
)

# Imported inside the functions that use them, never at the top of a module.
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

# A service is made of these. The command imports it when it serves.
WEB = {"fastapi", "pydantic", "pydantic_core", "starlette", "uvicorn"}


def is_web(path):
    return place(path).startswith(
        ("apps/service/", "apps/labelling/_pages", "apps/cli/_serve")
    )


def place(path):
    return path.relative_to(PACKAGE).as_posix()


def package_of(path):
    """Return the part of the package that a file belongs to, such as "ops" or "apps.llm"."""
    return package_of_name(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of_name(parts):
    """Return the part of the package that a dotted name begins with."""
    inside = parts[0] == "apps" and parts[1:2] not in ((), ("__init__",))
    return ".".join(parts[: 1 + inside])


def layer_of(name):
    """The number of a package's layer; the package itself stands on the last."""
    found = [number for number, packages in enumerate(LAYERS) if name in packages]
    return found[0] if found else len(LAYERS) - 1


def python_files():
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """Pairs (dotted module, whether it is imported as soon as the file is)."""
    return list(_imports(path))


def _imports(path):
    statements = [(node, True) for node in tree_of(path).body]
    for node, at_once in statements:  # which grows by what stands inside
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = base_of(path, node)
            names = [f"{base}.{a.name}" for a in node.names] + [base]
        else:
            at_once &= not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            inner = [
                n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)
            ]
            statements += [(statement, at_once) for statement in inner]
            continue
        for name in names:
            yield name, at_once


def base_of(path, node):
    """The dotted x of ``from x import y``, relative ones resolved."""
    if not node.level:
        return node.module
    package = ("skdcf", *path.relative_to(PACKAGE).parent.parts)
    package = package[: len(package) - node.level + 1]
    return ".".join((*package, *([node.module] if node.module else ())))


def packages_imported(path):
    """The packages that a file imports from, apart from its own."""
    names = [tuple(name.split(".")) for name, _ in imports(path)]
    found = {
        package_of_name(parts[1:])
        for parts in names
        if parts[0] == "skdcf" and len(parts) > 1
    }
    return {name for name in found if is_module(name)} - {package_of(path)}


def is_module(name):
    path = PACKAGE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def private_of_others(path):
    """Names that a file imports although another package keeps them to itself.

    Modules at the top, such as ``skdcf._checks``, are shared by all packages.
    """
    for name, _ in imports(path):
        parts = name.split(".")
        if (
            parts[0] == "skdcf"
            and parts[1:]
            and package_of_name(parts[1:]) != package_of(path)
        ):
            inside = parts[2:] if parts[1] != "apps" else parts[3:]
            if any(p.startswith("_") and not p.startswith("__") for p in inside):
                yield name


def external(path):
    """Pairs (package, whether it is imported as soon as the file is)."""
    return {(name.split(".")[0], at_top) for name, at_top in imports(path)}


def test_no_import_runs_upwards():
    upwards = [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name in packages_imported(path)
        if layer_of(name) > layer_of(package_of(path))
    ]
    assert upwards == []


def test_no_circles():
    graph = {}
    for path in python_files():
        if path != PACKAGE / "__init__.py":
            graph.setdefault(package_of(path), set()).update(packages_imported(path))
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_every_package_has_a_layer():
    packages = {package_of(path) for path in python_files()} - {"__init__"}
    assert packages - set().union(*LAYERS) == set()


def test_private_modules_are_private():
    found = {place(path): list(private_of_others(path)) for path in python_files()}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_is_public_stands_on_the_page_of_the_interface(checkout):
    """Names are listed where users import from, and in no other module."""
    page = (checkout / "docs" / "api.rst").read_text(encoding="utf-8")
    documented = set(re.findall(r"^   (skdcf[.\w]*)$", page, re.MULTILINE))
    listing = {
        "skdcf" + "".join(f".{part}" for part in path.relative_to(PACKAGE).parts)
        for path in python_files()
        if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    names = {name.removesuffix(".py").removesuffix(".__init__") for name in listing}
    assert names == documented


def test_maths_without_sklearn():
    assert [
        place(path)
        for path in python_files()
        if package_of(path) in WITHOUT_SKLEARN
        and "sklearn" in {name for name, _ in external(path)}
    ] == []


def test_autograd_where_gradients_are_taken():
    assert [
        place(path)
        for path in python_files()
        if not any(fnmatch(place(path), pattern) for pattern in AUTOGRAD)
        and "autograd" in {name for name, _ in external(path)}
    ] == []


def test_heavy_modules_inside_functions():
    assert [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name, at_top in external(path)
        if at_top and name in HEAVY and name not in (WEB if is_web(path) else ())
    ] == []


def test_the_core_imports_no_application():
    assert [
        f"{place(path)} imports {name}"
        for path in python_files()
        for name, _ in imports(path)
        if name.startswith("skdcf.apps")
        and not package_of(path).startswith("apps")
        and place(path) != "__main__.py"
    ] == []


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


def test_checker_resolves_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    for folder in ("ops", "graphs"):
        (tmp_path / folder).mkdir()
    for name in ("metrics", "filters"):
        (tmp_path / f"{name}.py").touch()
    path = tmp_path / "ops" / "soft.py"
    path.write_text(
        '"""A docstring\nof two lines."""\n'
        "import numpy as np\n"
        "from .. import metrics, HardCF\n"
        "from ..graphs._ragged import split\n"
        "from .hard import path_risk  # a comment\n"
        "from . import _here\n"
        "\n"
        "def f():\n"
        "    from skdcf.filters import HardCF\n"
        "    import pandas.api\n"
    )
    assert packages_imported(path) == {"metrics", "graphs", "filters"}
    assert list(private_of_others(path)) == [
        "skdcf.graphs._ragged.split",
        "skdcf.graphs._ragged",
    ]
    assert external(path) == {
        ("numpy", True),
        ("skdcf", True),
        ("skdcf", False),
        ("pandas", False),
    }
    assert layer_of(package_of(path)) == 2


def test_every_warning_has_a_category_of_its_own():
    """So that each kind can be filtered; `warn` needs one, and nothing goes around it."""
    bare = [
        place(path)
        for path in python_files()
        if "warnings.warn(" in path.read_text(encoding="utf-8")
        or ", UserWarning)" in path.read_text(encoding="utf-8")
    ]
    assert bare == ["_checks.py"]
