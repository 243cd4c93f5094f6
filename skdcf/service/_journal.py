"""What the service remembers: masks and labels, on disk before anybody hears of them."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np

from .._files import append_journal, open_journal
from ..metrics import filter_in
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
        filter = filter_in(filter)
        told = f"{filter!r} {filter.n_calibration_} {filter.threshold()!r}".encode()
        scores = np.asarray(filter.largest_risks_, dtype=np.float64).tobytes()
        self.digest = hashlib.sha256(told + scores).hexdigest()[:16]
        self.alpha = filter.calibration_.guarantee.level(None, filter.alpha)
        self.n_calibration = filter.n_calibration_
        self.answers: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        self.guarantee, self.monitor = (
            filter.calibration_.guarantee,
            CoverageMonitor(filter),
        )
        try:
            self.monitor.update_errors([])
        except ValueError:  # nothing is known of the errors under this guarantee
            self.watches = False
        else:
            self.watches = True
        self.path = folder and Path(folder) / "journal.jsonl"
        for line in open_journal(self.path) if self.path else ():
            self._read(line)

    def _read(self, line):
        try:
            entry = json.loads(line)
        except ValueError:  # half written when the process was killed
            return
        if "labels" in entry:
            self._judge(entry)
        else:
            self.answers[entry["id"]] = entry

    def _append(self, entry, sync):
        if self.path:
            append_journal(self.path, entry, sync=sync)

    def add(self, name: str, mask: Any, alpha: float) -> None:
        """Remember what was kept of an answer."""
        bits = "".join("01"[int(keep)] for keep in mask)
        entry = {"id": name, "mask": bits, "filter": self.digest, "alpha": alpha}
        with self.lock:
            self._append(entry, sync=False)
            self.answers[name] = entry

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
                n = len(answer["mask"])
                return 400, f"{len(labels)} labels but {n} claims"
            if "labels" in answer:
                if answer["labels"] == labels and answer["drawn"] == drawn:
                    return 200, "these labels were known"
                return 409, "this answer has other labels"
            entry = {"id": name, "labels": labels, "drawn": drawn}
            self._append(entry, sync=True)
            self._judge(entry)
            return 200, "saved"

    def _judge(self, entry):
        answer = self.answers[entry["id"]]
        answer |= {"labels": entry["labels"], "drawn": entry["drawn"]}
        ours = answer["filter"] == self.digest and answer["alpha"] == self.alpha
        if ours and entry["drawn"]:
            mask = np.array([bit == "1" for bit in answer["mask"]], dtype=bool)
            ends = np.array([0, len(mask)])
            if self.watches:
                lost = self.guarantee.loss(np.array(entry["labels"]), mask, ends)
                self.monitor.update_errors(lost > 0)
