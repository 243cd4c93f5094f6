"""What the service remembers: masks and labels, on disk before anybody hears of them."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._files import append_journal, open_journal
from ..monitoring import CoverageMonitor


class Journal:
    """A file that only grows: one line for each answer, and one for its labels.

    Parameters
    ----------
    filter : fitted filter
        Labels of answers that another filter judged are kept, but say nothing of this one.
    folder : path-like or None
        Where the file stands; None keeps everything in memory.
    """

    def __init__(self, filter: Any, folder: Any):
        told = f"{filter!r} {filter.n_calibration_} {filter.threshold()!r}".encode()
        scores = np.asarray(filter.largest_risks_, dtype=np.float64).tobytes()
        self.digest = hashlib.sha256(told + scores).hexdigest()[:16]
        self.guarantee = filter.calibration_.guarantee
        self.alpha = self.guarantee.level(None, filter.alpha)
        self.answers: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        self.monitor, self.watches = CoverageMonitor(filter), False
        with suppress(ValueError):  # where errors have no known law, nothing is watched
            self.monitor.update_errors([])
            self.watches = True
        self.path = folder and Path(folder) / "journal.jsonl"
        for line in open_journal(self.path) if self.path else ():
            with suppress(json.JSONDecodeError):  # half written when it was killed
                self._take(json.loads(line))

    def _take(self, entry, *, sync=None):
        """Take in an answer or its labels, once they are on disk."""
        if self.path and sync is not None:
            append_journal(self.path, entry, sync=sync)
        if "labels" in entry:
            self._judge(entry)
        else:
            self.answers[entry["id"]] = entry

    def add(self, name: str, mask: Any, alpha: float) -> None:
        """Remember what was kept of an answer."""
        bits = "".join("01"[int(keep)] for keep in mask)
        entry = {"id": name, "mask": bits, "filter": self.digest, "alpha": alpha}
        with self.lock:
            self._take(entry, sync=False)

    def label(self, name: str, labels: list[int], drawn: bool) -> tuple[int, str]:
        """Remember the labels of an answer; give the status and what to say.

        Parameters
        ----------
        name : str
        labels : list of int
            1 true, 0 false, -1 not judged.
        drawn : bool
            Whether the answer was chosen at random, whatever was kept of it.

        Returns
        -------
        (int, str)
        """
        with self.lock:
            answer = self.answers.get(name)
            if answer is None:
                return 404, "no answer has this id"
            if len(labels) != len(answer["mask"]):
                return 400, f"{len(labels)} labels but {len(answer['mask'])} claims"
            if "labels" in answer:
                if answer["labels"] == labels and answer["drawn"] == drawn:
                    return 200, "these labels were known"
                return 409, "this answer has other labels"
            entry = {"id": name, "labels": labels, "drawn": drawn}
            self._take(entry, sync=True)
            return 200, "saved"

    def _judge(self, entry):
        answer = self.answers[entry["id"]]
        answer |= {"labels": entry["labels"], "drawn": entry["drawn"]}
        ours = answer["filter"] == self.digest and answer["alpha"] == self.alpha
        if ours and entry["drawn"] and self.watches:
            mask = np.array([bit == "1" for bit in answer["mask"]], dtype=bool)
            ends = np.array([0, len(mask)])
            lost = self.guarantee.loss(np.array(entry["labels"]), mask, ends)
            self.monitor.update_errors(lost > 0)
