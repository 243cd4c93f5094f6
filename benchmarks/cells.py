"""Cached cells of an experiment, which later runs reuse.

A cell is the result of a function of a few values, such as one filter on one split. A cell is
valid until the package or its input data change. Cells are written atomically.
"""

import contextlib
import hashlib
import json
from pathlib import Path

from joblib import Parallel, delayed
from joblib import hash as digest
from tqdm import tqdm

import skdcf
from skdcf._files import write_text

PACKAGE = Path(skdcf.__file__).parent
FIELDS = ("features", "feature_names", "offsets", "edges", "claims", "problems")


def code_of_package():
    """A digest of the modules of skdcf, without the applications."""
    total = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        if "apps" not in file.parts:
            total.update(file.read_bytes())
    return total.hexdigest()[:16]


def compute(folder, name, cells, n_jobs, begin=True):
    """Results by key, of which only those that are missing are computed.

    Parameters
    ----------
    folder : Path
    name : str
        Of the experiment.
    cells : dict of str to (function, arguments)
        The function gives what JSON can hold, and is told apart by its arguments.
    n_jobs : int
    begin : bool, default=True
        If False, no cell is computed, and the result of a missing cell is None.
    """
    code, seen, known, missing = code_of_package(), {}, {}, {}
    for key, (function, arguments) in cells.items():
        marks = [mark_of(value, seen) for value in arguments]
        mark = f"{code}-{function.__name__}-{digest(marks)}"
        path = folder / "cells" / name / f"{digest(key)}.json"
        known[key] = read(path, mark)
        if known[key] is None:
            missing[key] = delayed(_work)(key, path, mark, function, arguments)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    work = parallel(missing.values() if begin else ())
    bar = {"total": len(cells), "initial": len(cells) - len(missing)}
    for key, result in tqdm(work, desc=name, unit="cell", **bar):
        known[key] = result
    return known


def mark_of(value, seen):
    """A digest of an argument, of which the same object needs only one."""
    if id(value) not in seen:
        held = value
        if isinstance(value, skdcf.GraphBatch):  # and not what it has cached
            held = [getattr(value, field) for field in FIELDS]
        seen[id(value)] = digest(held)
    return seen[id(value)]


def _work(key, path, mark, function, arguments):
    result = function(*arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, [json.dumps({"mark": mark, "result": result})])
    return key, result


def read(path, mark):
    """A saved result; None where there is none of the same code and data."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["mark"] == mark:
            return saved["result"]
    return None
