"""Questions that were asked, by keyed hashes: known again, and told to nobody.

Short questions can be guessed and compared with a plain hash. The key is the secret of the
service, or one in a file beside the journal where it has none.
"""

from __future__ import annotations

import hmac
import os
import secrets
from typing import Any

from ..graphs import ReasoningGraph, question_groups

_KEY = "journal.key"


class Questions:
    """The questions that a monitor has counted.

    Parameters
    ----------
    filter : fitted filter
        Questions that calibrated it do not count.
    token : str or None
        The secret of the service.
    folder : path-like or None
        Where its journal stands.
    """

    def __init__(self, filter: Any, token: str | None, folder: Any) -> None:
        # A question may have had a name there, and have its text alone here.
        calibrated = filter._calibrated
        texts = calibrated.get("text", calibrated["question"])
        names_one = calibrated.get("text_names_one", slice(None))
        self.calibrated = {*calibrated["question"].tolist(), *texts[names_one].tolist()}
        self.key = _read_key(folder) if token is None else token.encode()
        self.counted: set[str] = set()

    def name(self, graph: ReasoningGraph) -> dict[str, Any]:
        """What the journal holds of the question of an answer.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer.

        Returns
        -------
        dict
            ``question``, a keyed hash, and ``calibrated`` where it calibrated the filter;
            empty for an answer that stands alone.
        """
        [question] = question_groups([graph]).tolist()
        if question < 0:
            return {}
        digest = hmac.digest(self.key, b"%d" % question, "sha256").hex()[:32]
        entry: dict[str, Any] = {"question": digest}
        if question in self.calibrated:
            entry["calibrated"] = True
        return entry

    def counts(self, answer: dict[str, Any]) -> bool:
        """Whether labels of an answer are the first of its question, which is remembered.

        Parameters
        ----------
        answer : dict
            As the journal has it.

        Returns
        -------
        bool
            True for an answer that stands alone.
        """
        question = answer.get("question")
        if question is None:
            return True
        if answer.get("calibrated") or question in self.counted:
            return False
        self.counted.add(question)
        return True


def _read_key(folder):
    """A key for who has no token; it outlives the process where the journal does."""
    if folder is None:
        return secrets.token_bytes(32)
    path = os.path.join(folder, _KEY)
    try:
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        with open(path, "rb") as file:
            return file.read()
    with open(place, "wb") as file:
        key = secrets.token_bytes(32)
        file.write(key)
    return key
