"""No import runs upwards, and packages are imported where they may be."""

import ast
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).resolve().parent.parent / "skdcf"
FILES = sorted(PACKAGE.rglob("*.py"))

# Each layer may import what lies below it, and what lies next to it without a circle.
LAYERS = [
    "_arrays _checks _files _html _jobs _parameters _version exceptions",
    "edges graphs identity labels",
    "ops",
    "features guarantees relaxation training",
    "scorers",
    "guards",
    "columns jitter",
    "online",
    "full",
    "parts",
    "filters",
    "presets uses",
    "choosing",
    "evaluation",
    "inspection plots",
    "datasets monitoring persistence",
    "apps apps.text",
    "apps.labelling apps.llm apps.reporting",
    "skdcf __main__ apps.cli apps.service",
]
HEIGHTS = {part: n for n, layer in enumerate(LAYERS) for part in layer.split()}


def imports(path):
    """Return the dotted names that a file imports, also inside functions."""
    folders = "skdcf", *path.relative_to(PACKAGE).parts
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*(folders[: -node.level] if node.level else ())]
            base += [node.module] if node.module else []
            names += [".".join([*base, alias.name]) for alias in node.names]
    return names


def part_of(name):
    """Return the part of the package that a dotted name begins with, such as "apps.llm"."""
    _, *names = name.split(".")
    parts = ".".join(names[:2]), *names[:1], "skdcf"
    return next(part for part in parts if part in HEIGHTS)


IMPORTS = {path: imports(path) for path in FILES}
# Between parts of the package: (importing file, its part, imported name, its part).
BETWEEN = []
for path, names in IMPORTS.items():
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for name in names:
        here, there = part_of(module), part_of(name)
        if name.startswith("skdcf") and here != there:
            BETWEEN.append((path.name, here, name, there))


def test_no_import_runs_upwards():
    assert [row for row in BETWEEN if HEIGHTS[row[3]] > HEIGHTS[row[1]]] == []


def test_no_circles():
    graph = nx.DiGraph([(here, there) for _, here, _, there in BETWEEN])
    assert list(nx.simple_cycles(graph)) == []


def test_private_modules_are_private():
    inside = [(row, row[2].removeprefix(f"skdcf.{row[3]}")) for row in BETWEEN]
    assert [row for row, rest in inside if "._" in rest.replace("__", "")] == []


# Only these modules compute gradients, so `predict` does not need autograd. The mathematical
# modules do not import scikit-learn, because higher layers add its interface.
GRADIENTS = ("ops/soft", "ops/segments", "relaxation", "training/", "scorers")
MATHEMATICS = "graphs", "identity", "labels", "ops/", "training/"


def test_packages_where_they_may_be_imported():
    for path, names in IMPORTS.items():
        place = path.relative_to(PACKAGE).as_posix()
        packages = {name.partition(".")[0] for name in names}
        assert "autograd" not in packages or place.startswith(GRADIENTS), place
        assert "sklearn" not in packages or not place.startswith(MATHEMATICS), place
        private = [n for n in names if n.startswith("sklearn") and "._" in n]
        assert not private or place == "_parameters.py", place


def test_every_warning_has_a_category():
    """`warn` needs one, and nothing goes around it."""
    texts = {path.name: path.read_text("utf-8") for path in FILES}
    warning = [name for name, text in texts.items() if "warnings.warn(" in text]
    assert warning == ["_checks.py"]
