"""Mutations of the code behind the guarantee, each against the tests of its folder.

    python tests/attacks/mutations.py --number 400 --seed 0

A mutation changes one comparison, number, sign, word or condition in a copy of the package. Each
mutation that no test notices is printed. It is either equivalent or a hole in the net.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {  # of the files of the package
    "ops/hard.py": "ops graphs estimators",
    "ops/conformal.py": "ops guarantees estimators",
    "guarantees.py": "guarantees guards estimators",
    "guards.py": "guards estimators",
    "columns.py": "estimators guards",
    "filters.py": "estimators guards guarantees",
    "online.py": "estimators guarantees",
    "choosing.py": "guarantees estimators",
}
PAIRS = """< <=
> >=
== !=
+ -
& |
and or
any all
min max
floor ceil
argmin argmax
maximum minimum
left right
True False"""
IN_PLACE = {"is": "is not", "in": "not in", "not": ""}
IN_PLACE |= {"if": "if not", "elif": "elif not", "return": "return None and"}
for pair in PAIRS.splitlines():
    one, other = pair.split()
    IN_PLACE |= {one: other, other: one}


def all_mutations(package):
    """Yield (path, tests, token, what takes its place)."""
    for pattern, tests in TESTS.items():
        for path in sorted(package.glob(pattern)):
            with tokenize.open(path) as file:
                for token in tokenize.generate_tokens(file.readline):
                    word = token.string.strip("\"'")
                    new = IN_PLACE.get(word, word + " + 1" if word.isdigit() else None)
                    if new is not None:
                        new = token.string.replace(word, new)
                        yield path, tests, token, new


def mutated(text, token, new):
    """Return the text of a module, or None if Python cannot read it."""
    lines = text.splitlines(keepends=True)
    row, column = token.start
    line = lines[row - 1]
    lines[row - 1] = f"{line[:column]}{new}{line[token.end[1] :]}"
    try:
        compile("".join(lines), "", "exec")
    except SyntaxError:
        return None
    return "".join(lines)


def detected(folder, tests):
    """Return whether a test fails or never ends."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long"]
    command += ["-p", "no:cacheprovider", *(f"tests/{name}" for name in tests.split())]
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
    n_tried = n_detected = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        hidden = shutil.ignore_patterns("__pycache__", ".*", "docs")
        shutil.copytree(ROOT, folder, ignore=hidden)
        mutations = list(all_mutations(folder / "skdcf"))
        random.Random(options.seed).shuffle(mutations)
        for path, tests, token, new in mutations:
            text = path.read_text("utf-8")
            if n_tried == options.number or not (other := mutated(text, token, new)):
                continue
            path.write_text(other, "utf-8")
            noticed = detected(folder, tests)
            path.write_text(text, "utf-8")
            n_tried, n_detected = n_tried + 1, n_detected + noticed
            if not noticed:
                row = token.start[0]
                line = text.splitlines()[row - 1].strip()
                print(f"{path.name}:{row}: {line}: {token.string} -> {new}")
    print(f"{n_detected} of {n_tried} detected")


if __name__ == "__main__":
    main()
