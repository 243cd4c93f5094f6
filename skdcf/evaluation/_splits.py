"""How problems are divided: (train, calibration, test), or (train, test).

Finished splits are kept in a file, from which an interrupted comparison goes on.
"""

import json
import os
from numbers import Integral

import numpy as np
from joblib import hash as digest

from .. import __version__
from .._files import replaced

FOLDS, LEAVE_ONE_OUT = "folds", "leave-one-out"
SHARES = {FOLDS: (0.70, 0.15, 0.15), LEAVE_ONE_OUT: (0.5, 0.5)}
REPEATS = {FOLDS: 20, LEAVE_ONE_OUT: 40}


def make_splits(cv, questions, protocol, rng):
    """List of tuples of sorted positions: one tuple per split, one entry per part.

    Parameters
    ----------
    cv : int, splitter, iterable of tuples of index arrays, or None
    questions : ndarray of int, shape (n,)
        The question that each problem answers, by its number from 0 on.
    protocol : {"folds", "leave-one-out"}
    rng : RandomState
    """
    shares, n = SHARES[protocol], len(questions)
    if cv is None or isinstance(cv, Integral):
        repeats = REPEATS[protocol] if cv is None else int(cv)
        if repeats < 1:
            raise ValueError(f"cv is {cv}: the number of splits must be at least 1")
        rows = np.arange(n)
        splits = [cut(rows, questions, shares, rng) for _ in range(repeats)]
    else:
        splits = [
            given(split, questions, shares, rng) for split in listed(cv, questions)
        ]
        if not splits:
            raise ValueError("cv gives no splits")
    for number, parts in enumerate(splits):
        check(parts, number, questions, protocol)
    return splits


def cut(rows, codes, shares, rng):
    """Random parts of about these shares of the problems; no question is divided."""
    found, inverse = np.unique(codes[rows], return_inverse=True)
    order = rng.permutation(len(found))
    sizes = np.bincount(inverse)[order]
    middle = np.cumsum(sizes) - sizes / 2
    bounds = len(rows) * np.cumsum(shares)[:-1] / np.sum(shares)
    part = np.empty(len(found), dtype=int)
    part[order] = np.searchsorted(bounds, middle)
    return tuple(rows[part[inverse] == p] for p in range(len(shares)))


def listed(cv, questions):
    """The splits of a splitter, or of an iterable, as a list."""
    if not hasattr(cv, "split"):
        return list(cv)
    n = len(questions)
    several = questions.max() + 1 < n
    more = {"groups": questions} if several else {}
    return list(cv.split(np.zeros(n), **more))


def given(split, codes, shares, rng):
    """The caller's parts; where calibration is missing, it is cut from training."""
    n = len(codes)
    parts = [positions(part, n) for part in split]
    if len(parts) == 2 and len(shares) == 3:
        parts = [*cut(parts[0], codes, shares[:2], rng), parts[1]]
    if len(parts) != len(shares):
        raise ValueError(
            f"a split has {len(parts)} parts, but {len(shares)} are needed: "
            + ("train, calibration, test" if len(shares) == 3 else "train, test")
        )
    return tuple(parts)


def positions(part, n):
    """Sorted problem numbers from an index array or a mask."""
    part = np.asarray(part)
    if part.dtype == bool and part.shape == (n,):
        return np.flatnonzero(part)
    if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
        raise ValueError("a part of a split must be a 1-D array of problem numbers")
    part = np.sort(part.astype(np.int64))
    if part.size and not (part[0] >= 0 and part[-1] < n):
        wrong = part[-1] if part[-1] >= n else part[0]
        raise ValueError(f"a split names problem {wrong}, but there are {n} problems")
    return part


def check(parts, number, codes, protocol):
    """ValueError if a part of a split is too small, or shares a problem or a question."""
    least = 2 if protocol == LEAVE_ONE_OUT else 1
    if any(len(part) < least for part in parts):
        sizes = "/".join(str(len(part)) for part in parts)
        raise ValueError(
            f"split {number} has parts of {sizes} problems, but each needs at least "
            f"{least}: pass more problems, or more questions with fewer answers"
        )
    members = np.concatenate([np.unique(codes[part]) for part in parts])
    if len(np.unique(np.concatenate(parts))) < sum(map(len, parts)):
        raise ValueError(f"split {number}: a problem is in two parts, or twice in one")
    if len(np.unique(members)) < len(members):
        raise ValueError(
            f"split {number}: answers to one question are in two parts. Leave cv to its "
            "default or use a splitter that keeps groups together, such as "
            "GroupShuffleSplit"
        )


FORMAT = "skdcf comparison 1"


def fingerprint(**inputs):
    """A digest of each input; equal inputs in another session have the same one."""
    out = {}
    for name, value in inputs.items():
        try:
            out[name] = digest(value)
        except Exception as error:
            raise ValueError(
                f"resume needs inputs that can be pickled, but {name} cannot: {error}. "
                "Use a named function instead of a lambda"
            ) from error
    return out


class ResumeFile:
    """Results by split number, rewritten whole and atomically after each split.

    Whatever interrupts a write leaves the file of before: a new one takes its place
    only once it is complete.
    """

    def __init__(self, path, key):
        self.path = os.fspath(path)
        self.key = key
        self.results = {}
        if os.path.exists(self.path):
            self.results = self._load()
        else:
            self._write()  # a path that cannot be written to shows now

    def _load(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                saved = json.load(file)
            known = saved["format"] == FORMAT
            key = dict(saved["key"])
            splits = {int(k): result for k, result in saved["splits"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            known = False
        if not known:
            raise ValueError(f"{self.path} exists, but is no file of a comparison")
        other = sorted(
            k for k in self.key.keys() | key.keys() if self.key.get(k) != key.get(k)
        )
        if other:
            raise ValueError(
                f"{self.path} belongs to a comparison with other inputs: "
                f"{', '.join(other)}. Pass the same inputs to go on, or another path"
            )
        return splits

    def add(self, number, result):
        """Keep the result of a split."""
        self.results[number] = result
        self._write()

    def _write(self):
        content = {"format": FORMAT, "key": self.key, "splits": self.results}
        with replaced(self.path, encoding="utf-8") as file:
            json.dump(content, file)


def key_of(filters, batch, labels, questions, alphas, protocol, splits, seeds):
    """A digest of each input of a comparison."""
    names = ("features", "feature_names", "offsets", "edges", "claims", "problems")
    names += ("metadata", "alternatives", "context", "edges_known")
    inputs = {
        "X": [getattr(batch, name) for name in names],
        "y": np.concatenate(list(labels)),
        "groups": questions,
        "alphas": alphas,
        "protocol": protocol,
        "cv or random_state": (splits, seeds),
        "the version of skdcf": __version__,
        "the names of the filters": sorted(filters),
    }
    return fingerprint(**inputs, **{f"filter {k!r}": f for k, f in filters.items()})


def open_results(path, key, random_state):
    """The file of a comparison, which may hold results already."""
    if not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"random_state is {random_state!r}, but resume needs an integer: another "
            "run has to draw the same splits"
        )
    return ResumeFile(path, key)


def check_results(saved, n_splits, names, metrics, n_alphas):
    """ValueError unless a file holds results of this comparison."""
    for number, result in saved.results.items():
        try:
            rows = [[result[name][metric] for metric in metrics] for name in names]
            right = np.array(rows, dtype=float).shape[2] == n_alphas
            right &= all(float(result[name]["seconds"]) >= 0 for name in names)
            right &= all(len(result[name]["chosen"]) == n_alphas for name in names)
        except (KeyError, TypeError, ValueError, IndexError):
            right = False
        if not right or not 0 <= number < n_splits:
            raise ValueError(
                f"{saved.path} is damaged: the result of split {number} is unusable"
            )
