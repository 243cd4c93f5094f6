"""Mutations of the code behind the guarantee, each against the tests of its file.

    python tests/attacks/mutations.py --number 400 --seed 0 --out mutations.jsonl
    python tests/attacks/mutations.py --out mutations.jsonl --again
    python tests/attacks/mutations.py --out mutations.jsonl --show

A mutation changes one comparison, number, sign, word or call in a copy of the package. Its
tests run until one fails. What passes all of them is printed, and is either equivalent or a
hole in the net. The file of results is read first, so that a run goes on where it stopped. With
``--again`` what passed meets the tests of other files as well, on the same commit.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "skdcf"
ROOMS = (
    "ops/hard.py",
    "ops/conformal.py",
    "guarantees/*.py",
    "guards.py",
    "columns.py",
    "filters.py",
    "online.py",
    "choosing.py",
)
ENDS = 60  # seconds, or four times what the tests take; an endless loop is noticed

#: The tests of a file, which take about 20 seconds together.
TESTS = {
    "ops/hard.py": "hard oracle guarantees recorded",
    "ops/conformal.py": "hard oracle guarantee guarantees few_problems show recorded",
    "guarantees/_calibration.py": "shown guarantee guarantees group_report "
    "few_problems show",
    "guarantees/_guarantees.py": "guarantee guarantees groups show "
    "few_problems settings",
    "guarantees/_passing.py": "show show_filter",
    "guards.py": "chosen_by people questions direction unknown leakage settings seen_questions "
    "attacks provenance rounding",
    "columns.py": "conformal_filter labels_of_tables unknown groups",
    "filters.py": "fit_order holdout protocol few_problems questions recorded parts show_filter",
    "online.py": "online",
    "choosing.py": "choose shown",
}

#: Tests of other files that what passed meets as well.
OTHERS = (
    "show show_filter groups attacks guarantees recorded filter_columns "
    "provenance questions parts online settings monitoring conformal_filter rounding "
    "partitions properties estimators bad_input"
)

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


def mutations_of(path):
    """Tuples (start, stop, text): which stretch of a file is replaced, and by what."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))

    def stretch(node):
        first = starts[node.lineno - 1] + node.col_offset
        return first, starts[node.end_lineno - 1] + node.end_col_offset

    found = []
    for node in nodes_that_compute(ast.parse(source)):
        for other in variants(node):
            found.append((*stretch(node), ast.unparse(other)))
    return found


def nodes_that_compute(tree):
    """Nodes that decide what comes out: no docstrings, annotations, messages or imports."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "exc"):
                continue
            children = value if isinstance(value, list) else [value]
            for child in children:
                skipped = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
                if isinstance(child, ast.AST) and not isinstance(child, skipped):
                    waiting.append(child)


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


def all_mutations():
    """Tuples (file, start, stop, text) of all files."""
    paths = sorted(path for room in ROOMS for path in PACKAGE.glob(room))
    return [
        (path.relative_to(PACKAGE).as_posix(), *mutation)
        for path in paths
        if path.name != "__init__.py"
        for mutation in mutations_of(path)
    ]


def copy_of_tree(folder):
    """What the tests need, without what others are writing just now."""
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("skdcf", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=hidden)
    for name in ("pyproject.toml", "setup.cfg", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)


def outcome(folder, names, ends=ENDS):
    """Whether a test fails ("noticed"), none does ("passed"), or they never end."""
    found = {path.stem: path for path in sorted((folder / "tests").rglob("test_*.py"))}
    there = [found[f"test_{test}"] for test in names.split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long"]
    command += ["-p", "no:cacheprovider", *there]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=ends,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "endless"
    return "passed" if done.returncode == 0 else "noticed"


@contextmanager
def mutated(folder, name, start, stop, text):
    """A file of the copy with one mutation; what stood there before is put back."""
    path = folder / "skdcf" / name
    original = path.read_bytes()
    new = text if text == "pass" else f"({text})"
    path.write_bytes(original[:start] + new.encode() + original[stop:])
    try:
        yield original
    finally:
        path.write_bytes(original)


def meet_others(out, minutes):
    """Run the tests of other files on what passed, and note in the file what noticed it."""
    entries = [json.loads(line) for line in out.read_text().splitlines()]
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_of_tree(folder)
        for entry in entries:
            if entry["result"] != "passed" or time.monotonic() > end:
                continue
            with mutated(folder, *entry["mutation"]) as original:
                start, stop = entry["mutation"][1:3]
                if original[start:stop].decode() != entry["before"]:
                    raise SystemExit("these mutations were drawn from another commit")
                if outcome(folder, OTHERS, 10 * ENDS) == "passed":
                    entry["result"] = "passed all"
                else:
                    entry["result"] = "noticed by others"
            out.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def run(number, seed, out, minutes):
    """Draw mutations and write what became of each."""
    drawn = random.Random(seed).sample(all_mutations(), number)
    lines = out.read_text().splitlines() if out.exists() else []
    finished = {tuple(json.loads(line)["mutation"]) for line in lines}
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_of_tree(folder)
        ends = {}
        for name, start, stop, text in drawn:
            if time.monotonic() > end:
                break
            if (name, start, stop, text) in finished:
                continue
            begin = time.monotonic()
            if name not in ends:
                if outcome(folder, TESTS[name], 10 * ENDS) != "passed":
                    raise SystemExit(f"the tests of {name} fail without a mutation")
                ends[name] = max(ENDS, 4 * (time.monotonic() - begin))
                begin = time.monotonic()
            with mutated(folder, name, start, stop, text) as original:
                result = outcome(folder, TESTS[name], ends[name])
            entry = {
                "mutation": [name, start, stop, text],
                "line": original[:start].count(b"\n") + 1,
                "before": original[start:stop].decode(),
                "result": result,
                "seconds": round(time.monotonic() - begin, 1),
            }
            with out.open("a") as file:
                file.write(json.dumps(entry) + "\n")


def show(out):
    """Counts, and the mutations that passed."""
    entries = [json.loads(line) for line in out.read_text().splitlines()]
    rooms = sorted({entry["mutation"][0] for entry in entries})
    for room in rooms:
        results = [e["result"] for e in entries if e["mutation"][0] == room]
        passed = sum(result.startswith("passed") for result in results)
        print(f"{room:<30} {len(results):>4} {passed:>4} passed")
    for entry in entries:
        if entry["result"].startswith("passed"):
            name, _, _, text = entry["mutation"]
            place = f"{name}:{entry['line']}"
            print(f"{entry['result']}: {place}: {entry['before']}  ->  {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--out", type=Path, default=Path("mutations.jsonl"))
    parser.add_argument(
        "--again", action="store_true", help="what passed meets more tests"
    )
    parser.add_argument("--show", action="store_true", help="print what a run found")
    options = parser.parse_args()
    if options.again:
        meet_others(options.out, options.minutes)
    elif not options.show:
        run(options.number, options.seed, options.out, options.minutes)
    show(options.out)


if __name__ == "__main__":
    main()
