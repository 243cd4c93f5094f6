"""Broken input of every kind is refused with a documented error, or taken and kept whole.

    python tests/attacks/fuzz.py [--inputs 1000000] [--seed 0] [--target NAME]

Each input is made from a good one by changes at random, and is a function of the seed, the
target and its number. An undocumented error and an input that does not come back the same are
faults: they are printed, and the exit code is 1. A crash or a hang ends the program with the
traceback of where it is.
"""

import argparse
import contextlib
import copy
import faulthandler
import io
import json
import random
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

import skdcf
from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import (
    from_frame,
    from_lm_polygraph,
    from_uqlm,
    read_jsonl,
    write_jsonl,
)

PATIENCE = 60  # seconds for one input

NASTY = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**70), 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), 1j),
    *("", "0", "1e999", "nan", "\x00", "\ud800", "é" * 50, "a" * 5000, b"bytes"),
    *([], {}, (), [[]], [None], {"a": None}, [0, [1]], [[0, 0]], [[1, 0], [0, 1]]),
    *(object, print, np.nan, np.int8(3), np.array([1.5]), np.zeros((0, 3)), "1", ["1"]),
)


def places(value, found=None):
    """All (container, key) inside of lists and dicts."""
    found = [] if found is None else found
    if isinstance(value, dict):
        keys = list(value)
    else:
        keys = range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        places(value[key], found)
    return found


def mutated(value, rng):
    """A copy with one to four changes somewhere inside."""
    value = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        container, key = rng.choice(places(value))
        change = rng.random()
        if change < 0.6 or container is value:
            container[key] = copy.deepcopy(rng.choice(NASTY))
        elif change < 0.75:
            del container[key]
        else:
            other, place = rng.choice(places(value))
            container[key] = copy.deepcopy(other[place])
    return value[0]


def changed_arguments(arguments, rng):
    """Arguments of the same names, the values of one or two of them changed."""
    arguments = dict(arguments)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(arguments))
        arguments[name] = mutated(arguments[name], rng)
    return arguments


def changed_bytes(content, rng):
    """Bytes with one to four of their parts cut out, exchanged, repeated or cut off."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(content) + 1)
        end = start + rng.choice((0, 1, 1, 1, 20, len(content)))
        junk = (
            b"",
            b"}",
            b"[",
            b'"',
            b"NaN",
            b"1e999",
            b"\n",
            content[start : start + 30],
        )
        new = rng.choice((bytes([rng.randrange(256)]), rng.choice(junk)))
        content = content[:start] + new + content[end:]
    return content


GRAPH = {
    "features": [[0.5, 1.0], [0.25, 2.0], [0.75, 0.0]],
    "edges": [[0, 1], [1, 2]],
    "claims": ["a", "b", "c"],
    "problem": "why?",
    "alternatives": ["because"],
    "feature_names": ["f", "g"],
    "id": "one",
}


PARENTS = {"parents": [[], [0], [0, 1]], "features": [[1.0], [2.0], [3.0]]}
ARRAYS = {"features": [[1.0], [2.0]], "offsets": [0, 1, 2], "edges": []}


class Jsonl:
    """Lines as bytes: what is read can be written and is read as the same."""

    def __init__(self, folder):
        self.path = Path(folder) / "a.jsonl"
        line = {
            "version": 1,
            **GRAPH,
            "labels": [1, 0, -1],
            "mask": [True, False, True],
        }
        self.line = line | {"group": 3, "metadata": {"a": [1, {"b": None}]}}
        self.content = (json.dumps(self.line) + "\n").encode() * 2

    def run(self, rng):
        if rng.random() < 0.5:
            content = changed_bytes(self.content, rng)
        else:
            content = json.dumps(mutated(self.line, rng), default=str).encode()
        data = read_jsonl(io.BytesIO(content))
        if rng.random() < 0.02:
            more = {"groups": data.groups, "metadata": data.metadata}
            write_jsonl(self.path, data.graphs, data.labels, data.masks, **more)
            again = read_jsonl(self.path)
            assert list(again.graphs) == list(data.graphs), "graphs changed"
            assert str(again.labels) == str(data.labels), "labels changed"
            assert str(again.metadata) == str(data.metadata), "metadata changed"


UQLM = {
    "prompts": ["?"],
    "claims_data": [
        [{"claim": "x", "entailment": 0.9}, {"claim": "y", "entailment": 0.2}]
    ],
}
POLYGRAPH = {"claims": [["x", "y"]], "estimates": {("claim", "e"): [0.1, 0.2]}}
FRAME = {"answer": [0, 0], "claim": ["a", "b"], "label": [1, 0], "f": [1.0, 2.0]}
NAMES = {"answer": "answer", "claim": "claim", "label": "label", "features": ["f"]}


def of_frame(**columns):
    try:
        frame = pd.DataFrame(columns)
    except Exception as error:  # what pandas itself refuses is no frame
        raise ValueError(str(error)) from error
    return from_frame(frame, **NAMES).graphs


class Graphs:
    """Every way to make problems, also from what other tools write."""

    WAYS = (
        (lambda graph: [ReasoningGraph.from_dict(graph)], {"graph": GRAPH}),
        (lambda **graph: [ReasoningGraph(**graph)], GRAPH),
        (lambda **graph: [ReasoningGraph.from_parents(**graph)], PARENTS),
        (GraphBatch.from_arrays, ARRAYS),
        (lambda result: from_uqlm(result).graphs, {"result": UQLM}),
        (lambda **result: from_lm_polygraph(**result).graphs, POLYGRAPH),
        (of_frame, FRAME),
    )

    def __init__(self, folder):
        pass

    def run(self, rng):
        make, arguments = rng.choice(self.WAYS)
        for graph in make(**changed_arguments(arguments, rng)):
            same = repr(ReasoningGraph.from_dict(graph.to_dict()).to_dict())
            assert same == repr(graph.to_dict()), "a graph changed"


class Saved:
    """Saved filters and thresholds: changed bytes, and sealed ones with other content.

    No filter has a tree: scikit-learn does not check nodes, and a forged tree ends the process.
    """

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.X, y = rng.random((60, 2)), rng.integers(2, size=60)
        self.path = Path(folder) / "a"
        self.filter = HardCF(0).fit(self.X, y)
        self.content = skdcf.save(self.filter, self.path).read_bytes()

    def run(self, rng):
        if rng.random() < 0.5:
            self.path.write_bytes(changed_bytes(self.content, rng))
            masks = skdcf.load(self.path).predict(self.X)
            same = np.array_equal(masks, self.filter.predict(self.X))
            assert same, "a changed file was loaded"
        else:
            self.path.write_bytes(self.sealed(self.content, rng))
            back = skdcf.load(self.path)
            # Whatever it is by now, it must not end the process.
            with contextlib.suppress(Exception):
                back.predict(self.X)

    def sealed(self, content, rng):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(list(parts))
        if name == "schema.json":
            schema = mutated(json.loads(parts[name]), rng)
            parts[name] = json.dumps(schema, default=str).encode()
        else:
            parts[name] = changed_bytes(parts[name], rng)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        return buffer.getvalue()


TARGETS = {"graphs": Graphs, "jsonl": Jsonl, "saved": Saved}
DOCUMENTED = ValueError, ImportError


def run_target(name, inputs, seed):
    """Print how many inputs were taken and refused, and return the number of faults."""
    n_taken, faults = 0, []
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[name](folder)
        for number in range(inputs):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            try:
                target.run(random.Random(f"{seed} {name} {number}"))
                n_taken += 1
            except DOCUMENTED:
                pass
            except Exception as error:
                faults.append(f"{number}: {type(error).__name__}: {error}"[:200])
    faulthandler.cancel_dump_traceback_later()
    print(f"{name}: {inputs:,} inputs, {n_taken:,} taken, {len(faults)} faults")
    for fault in faults[:10]:
        print(f"    {fault}")
    return len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=list(TARGETS))
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    share = options.inputs // len(options.target)
    return any([run_target(name, share, options.seed) for name in options.target])


if __name__ == "__main__":
    sys.exit(main())
