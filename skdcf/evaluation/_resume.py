"""Finished splits in a file, so that an interrupted comparison can go on."""

import json
import os

from joblib import hash as digest

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
