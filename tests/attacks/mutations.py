"""Mutations of the code behind the guarantee, each against the tests of its folder.

    python tests/attacks/mutations.py --number 400 --seed 0

A mutation changes one comparison, number, sign, word or call in a copy of the package. Each
mutation that no test notices is printed. It is either equivalent or a hole in the net.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {  # of the files of the package
    "ops/hard.py": ("ops", "graphs", "estimators"),
    "ops/conformal.py": ("ops", "guarantees", "estimators"),
    "guarantees/*.py": ("guarantees", "guards", "estimators"),
    "guards.py": ("guards", "estimators"),
    "columns.py": ("estimators", "guards"),
    "filters.py": ("estimators", "guards", "guarantees"),
    "online.py": ("estimators", "guarantees"),
    "choosing.py": ("guarantees", "estimators"),
}
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLED = {
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "floor": "ceil",
    "ceil": "floor",
    "maximum": "minimum",
    "minimum": "maximum",
    "argmin": "argmax",
    "argmax": "argmin",
}
WORDS = {"left": "right", "right": "left"}  # sides of a search


def nodes_that_compute(tree):
    """Return nodes that decide: no docstrings, annotations, messages or imports."""
    nodes = [tree]
    for node in nodes:  # which grows by what stands inside
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "exc"):
                continue
            skipped = ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr
            children = value if isinstance(value, list) else [value]
            nodes += [
                child
                for child in children
                if isinstance(child, ast.AST) and not isinstance(child, skipped)
            ]
    return nodes


def variants(node):
    """Other nodes in place of one."""
    yield from operators_in_place_of(node)
    yield from values_in_place_of(node)
    if isinstance(node, ast.Attribute) and node.attr in CALLED:
        yield ast.Attribute(node.value, CALLED[node.attr], node.ctx)
    elif isinstance(node, ast.Name) and node.id in CALLED:
        yield ast.Name(CALLED[node.id], node.ctx)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def operators_in_place_of(node):
    """The other comparison, sign, word or branch."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        operator = COMPARED[type(node.ops[0])]()
        yield ast.Compare(node.left, [operator, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        yield ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def values_in_place_of(node):
    """Another number, truth value or side."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and value in WORDS:
        yield ast.Constant(WORDS[value])


class Exchange(ast.NodeTransformer):
    """Puts a variant in the place of a node."""

    def __init__(self, node, variant):
        self.node, self.variant = node, variant

    def visit(self, node):
        return self.variant if node is self.node else self.generic_visit(node)


def all_mutations(package):
    """Yield (path, tests, tree of the module, node, what takes its place)."""
    for pattern, tests in TESTS.items():
        for path in sorted(package.glob(pattern)):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in nodes_that_compute(tree):
                for variant in variants(node):
                    yield path, tests, tree, node, variant


def detected(folder, tests):
    """Return whether a test fails or never ends."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long"]
    command += ["-p", "no:cacheprovider", *(f"tests/{name}" for name in tests)]
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=600
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n_detected = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        hidden = shutil.ignore_patterns("__pycache__", ".*", "docs")
        shutil.copytree(ROOT, folder, ignore=hidden)
        mutations = list(all_mutations(folder / "skdcf"))
        drawn = random.Random(options.seed).sample(mutations, options.number)
        for path, tests, tree, node, variant in drawn:
            original = path.read_text(encoding="utf-8")
            # One call, so that the node is still a part of the tree.
            tree, node, variant = copy.deepcopy((tree, node, variant))
            changed = Exchange(node, variant).visit(tree)
            path.write_text(ast.unparse(changed), encoding="utf-8")
            noticed = detected(folder, tests)
            path.write_text(original, encoding="utf-8")
            n_detected += noticed
            if not noticed:
                place = f"{path.relative_to(folder)}:{node.lineno}"
                print(f"{place}: {ast.unparse(node)}  ->  {ast.unparse(variant)}")
    print(f"{n_detected} of {options.number} detected")


if __name__ == "__main__":
    main()
