"""Broken input of every kind: refused with a documented error, or taken and kept whole.

    python tests/attacks/fuzz.py [--inputs 1000000] [--seed 0] [--seconds 500] [--target NAME]

Each input is made from a good one by changes at random, and is a function of the seed, the
target and its number. A worker process works through them. If it dies or hangs, or if an
input is taken that does not come back the same, that is a fault, and the exit code is 1.
The counts are kept in ``benchmarks/results/fuzz.json``; another run goes on from there.
"""

import argparse
import copy
import io
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

import skdcf
from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf._files import replaced
from skdcf.adapters import (
    from_frame,
    from_lm_polygraph,
    from_uqlm,
)
from skdcf.datasets import read_jsonl, write_jsonl
from skdcf.datasets.fetch import SOURCES, published_file
from skdcf.persistence import load_threshold, save_threshold

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks/results/fuzz.json"
PATIENCE = 60  # seconds without a sign of life are a hang
STEP = 500  # inputs between two signs of life

NASTY = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**70), 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), 1j),
    *("", "0", "1e999", "nan", "\x00", "\ud800", "é" * 50, "a" * 5000, b"bytes"),
    *([], {}, (), [[]], [None], {"a": None}, [0, [1]], [[0, 0]], [[1, 0], [0, 1]]),
    *(object, print, np.nan, np.int8(3), np.array([1.5]), np.zeros((0, 3)), "1", ["1"]),
)


class SilentError(Exception):
    """An input was taken, but is not what it was."""


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
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(rng.choice(container)))
        else:
            more = rng.choice(("x", "claims", "", "labels"))
            container[more] = copy.deepcopy(container[key])
    return value[0]


def changed_arguments(arguments, rng):
    """Arguments of the same names, the values of one or two of them changed."""
    arguments = dict(arguments)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(arguments))
        arguments[name] = mutated(arguments[name], rng)
    return arguments


def changed_bytes(content, rng):
    """Bytes with one to four of them flipped, cut out, put in or cut off."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        i = rng.randrange(len(content) + 1)
        change = rng.random()
        if change < 0.5 and i < len(content):
            content[i] ^= 1 << rng.randrange(8)
        elif change < 0.65:
            del content[i : i + rng.randrange(1, 20)]
        elif change < 0.8:
            content[i:i] = rng.choice(
                (b"\x00", b"}", b"[", b'"', b"NaN", b"1e999", b"\n")
            )
        elif change < 0.9:
            content[i:i] = content[i : i + 30]
        else:
            del content[i:]
    return bytes(content)


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
MATRIX = {"matrix": [[0, 0], [1, 0]], "features": [[1.0], [2.0]]}
ARRAYS = {"features": [[1.0], [2.0]], "offsets": [0, 1, 2], "edges": []}


def need(condition, what):
    if not condition:
        raise SilentError(what)


def same_graph(one, other):
    need(repr(one.to_dict()) == repr(other.to_dict()), "a graph changed")


class Graphs:
    """Every way to make problems, and a filter that uses them."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.filter = HardCF(0, alpha=0.4).fit(
            rng.random((30, 2)), rng.integers(2, size=30)
        )

    def run(self, rng):
        way = rng.randrange(6)
        if way == 0:
            made = ReasoningGraph.from_dict(mutated(GRAPH, rng))
        elif way == 1:
            made = ReasoningGraph(**changed_arguments(GRAPH, rng))
        elif way == 2:
            made = ReasoningGraph.from_parents(**changed_arguments(PARENTS, rng))
        elif way == 3:
            made = ReasoningGraph.from_adjacency(**changed_arguments(MATRIX, rng))
        elif way == 4:
            batch = GraphBatch.from_arrays(**changed_arguments(ARRAYS, rng))
            need(len(list(batch)) == len(batch), "a batch changed")
            made = batch[0]
        else:
            X = changed_arguments({"X": [[0.1, 0.2], [0.3, 0.4]]}, rng)["X"]
            try:
                masks = self.filter.predict(X)
            except TypeError as error:  # which scikit-learn asks for in a table
                raise ValueError(str(error)) from error
            need(len(masks) == len(X), "problems were lost")
            return
        same_graph(ReasoningGraph.from_dict(made.to_dict()), made)


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
            need(list(again.graphs) == list(data.graphs), "graphs changed")
            need(str(again.labels) == str(data.labels), "labels changed")
            need(str(again.metadata) == str(data.metadata), "metadata changed")


UQLM = {
    "prompts": ["?"],
    "claims_data": [
        [{"claim": "x", "entailment": 0.9}, {"claim": "y", "entailment": 0.2}]
    ],
}
FRAME = {"answer": [0, 0], "claim": ["a", "b"], "label": [1, 0], "f": [1.0, 2.0]}
NAMES = {"answer": "answer", "claim": "claim", "label": "label", "features": ["f"]}
POLYGRAPH = {"claims": [["x", "y"]], "estimates": {("claim", "e"): [0.1, 0.2]}}


class Adapters:
    """What other tools write, changed at random."""

    def __init__(self, folder):
        import pandas

        self.pandas = pandas

    def run(self, rng):
        way = rng.randrange(3)
        if way == 0:
            data = from_uqlm(**changed_arguments({"result": UQLM}, rng))
        elif way == 1:
            data = from_lm_polygraph(**changed_arguments(POLYGRAPH, rng))
        else:
            frame = self.frame(changed_arguments(FRAME, rng))
            data = from_frame(frame, **NAMES)
        for graph in data.graphs:
            same_graph(ReasoningGraph.from_dict(graph.to_dict()), graph)

    def frame(self, columns):
        """A table of those that are lists; what pandas itself refuses is no frame."""
        lists = {k: v for k, v in columns.items() if isinstance(v, list)}
        if len({len(v) for v in lists.values()}) > 1:
            raise ValueError("no frame")
        try:
            return self.pandas.DataFrame(lists)
        except OverflowError as error:  # older versions, of huge integers
            raise ValueError("no frame") from error


class Saved:
    """Saved filters and thresholds: changed bytes, and sealed ones with other content."""

    def __init__(self, folder):
        from sklearn.tree import DecisionTreeClassifier

        rng = np.random.default_rng(0)
        self.X, y = rng.random((60, 2)), rng.integers(2, size=60)
        self.path = Path(folder) / "a"
        trees = HardCF(DecisionTreeClassifier(max_depth=2), random_state=0)
        self.files = []
        for cf in (HardCF(0).fit(self.X, y), trees.fit(self.X, y)):
            content = skdcf.save(cf, self.path).read_bytes()
            self.files.append((content, cf.path_risk(self.X), cf.threshold_))
        self.threshold = save_threshold(cf, self.path).read_bytes()

    def run(self, rng):
        if rng.random() < 0.3:
            self.path.write_bytes(changed_bytes(self.threshold, rng))
            load_threshold(self.path).keep([0.0, 1.0])
            return
        content, risk, threshold = rng.choice(self.files)
        sealed = rng.random() < 0.5
        content = self.sealed(content, rng) if sealed else changed_bytes(content, rng)
        self.path.write_bytes(content)
        back = skdcf.load(self.path)
        if not sealed:
            need(back.threshold_ == threshold, "a changed file was loaded")
            need(
                np.array_equal(back.path_risk(self.X), risk),
                "a changed file was loaded",
            )
            return
        try:  # whatever it is by now, it must not end the process
            back.predict(self.X)
        except Exception as error:
            raise ValueError(str(error)) from error

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


class Cache:
    """Downloads of before, damaged on the disk."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = min(SOURCES)

    def run(self, rng):
        path = self.folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.randrange(200)))
        published_file(self.name, self.folder, {self.name: ("file:///none", "0" * 64)})
        raise SilentError("a damaged download was taken")


TARGETS = {
    "graphs": (Graphs, 0.35, (ValueError,)),
    "jsonl": (Jsonl, 0.4, (ValueError,)),
    "adapters": (Adapters, 0.15, (ValueError,)),
    "saved": (Saved, 0.05, (ValueError, ImportError)),
    "cache": (Cache, 0.05, (ValueError, FileNotFoundError)),
}


def work(name, seed, first, last, pipe):
    """Run inputs and tell how they went, STEP by STEP."""
    warnings.simplefilter("ignore")
    make, _, documented = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        target = make(folder)
        counts, faults = {"taken": 0, "refused": 0}, []
        for i in range(first, last):
            try:
                target.run(random.Random(f"{seed} {name} {i}"))
                counts["taken"] += 1
            except documented:
                counts["refused"] += 1
            except Exception as error:
                faults.append((i, f"{type(error).__name__}: {error}"[:200]))
            if (i + 1) % STEP == 0 or i + 1 == last:
                pipe.send((i + 1, counts, faults))
                counts, faults = {"taken": 0, "refused": 0}, []


def run_target(name, state, inputs, seed, deadline):
    """Work through a target until the deadline, past inputs that end the process."""
    done = state.setdefault(name, {"done": 0, "taken": 0, "refused": 0, "faults": []})
    goal = int(TARGETS[name][1] * inputs)
    while done["done"] < goal and time.monotonic() < deadline:
        mine, theirs = multiprocessing.Pipe(duplex=False)
        arguments = (name, seed, done["done"], goal, theirs)
        process = multiprocessing.Process(target=work, args=arguments)
        process.start()
        theirs.close()
        listen(process, mine, done, deadline)


def listen(process, pipe, done, deadline):
    try:
        while time.monotonic() < deadline:
            if not pipe.poll(PATIENCE):
                raise EOFError
            reached, counts, faults = pipe.recv()
            done["done"] = reached
            done["faults"] += faults
            for key, count in counts.items():
                done[key] += count
    except EOFError:
        process.join(0.1 if process.is_alive() else None)
        if process.exitcode != 0:
            how = "hangs" if process.exitcode is None else f"exit {process.exitcode}"
            done["faults"].append(
                (done["done"], f"within {STEP} inputs of this: {how}")
            )
            done["done"] += STEP
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    state = {"seed": options.seed, "targets": {}}
    if options.output.exists():
        state = json.loads(options.output.read_text())
        if state["seed"] != options.seed:
            parser.error(f"{options.output} belongs to seed {state['seed']}")
    deadline = time.monotonic() + options.seconds
    for name in options.target or TARGETS:
        run_target(name, state["targets"], options.inputs, options.seed, deadline)
        with replaced(options.output, encoding="utf-8") as file:
            json.dump(state, file, indent=1)
            file.write("\n")
    total = 0
    for name, done in state["targets"].items():
        total += done["done"]
        print(
            f"{name:9} {done['done']:8,} inputs: {done['taken']:8,} taken, "
            f"{done['refused']:8,} refused, {len(done['faults'])} faults"
        )
        for number, what in done["faults"][:10]:
            print(f"          {number}: {what}")
    print(f"{total:,} inputs")
    return int(any(done["faults"] for done in state["targets"].values()))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
