"""Finished splits in a file, from which an interrupted comparison goes on."""

import json
import os

import numpy as np
from joblib import hash as digest

from .. import __version__
from .._files import replaced

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
