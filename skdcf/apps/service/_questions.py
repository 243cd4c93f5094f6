"""Recognise repeated questions using keyed hashes.

An attacker could recover short questions from plain hashes by guessing, so the hashes use a
secret key. The key is the token of the service, or a random key in the folder of the journal if
there is no token.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...graphs import ReasoningGraph, question_groups
from ._journal import Entry

_KEY = "journal.key"


class Questions:
    """Questions whose answers have been counted by a monitor.

    Parameters
    ----------
    filter : fitted filter
        The filter. Answers to its calibration questions are not counted.
    key : bytes
        Secret key used to hash the questions.
    """

    def __init__(self, filter: Any, key: bytes) -> None:
        # Calibration questions may have names, whereas a request may contain only the text of the
        # question.
        calibrated = filter._calibrated
        self.calibrated = {
            *calibrated["question"].tolist(),
            *calibrated["text"].tolist(),
        }
        self.key = key
        self.counted: set[str] = set()

    def name(self, graph: ReasoningGraph) -> tuple[str | None, bool]:
        """Return the hash that identifies the question of an answer in the journal.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer.

        Returns
        -------
        digest : str or None
            The keyed hash of the question, or None if the answer has no question.
        is_calibrated : bool
            Whether the question is a calibration question of the filter.
        """
        [question] = question_groups([graph]).tolist()
        if question < 0:
            return None, False
        digest = hmac.digest(self.key, b"%d" % question, "sha256").hex()[:32]
        return digest, question in self.calibrated

    def counts(self, entry: Entry) -> bool:
        """Return whether an answer is the first labelled answer to a new question.

        The method records the question if it is new.

        Parameters
        ----------
        entry : Entry
            Journal entry of the answer.

        Returns
        -------
        is_new : bool
            True for an answer without a question, and False for an answer to a calibration
            question.
        """
        if entry.question is None:
            return True
        if entry.calibrated or entry.question in self.counted:
            return False
        self.counted.add(entry.question)
        return True


def read_key(token: str | None, folder: str | os.PathLike[str] | None) -> bytes:
    """Return the secret key used to hash the questions.

    Parameters
    ----------
    token : str or None
        The token of the service, which is used as the key unless the token is None.
    folder : path-like or None
        Folder of the journal, where a random key is stored if there is no token.

    Returns
    -------
    key : bytes
        Secret key used to hash the questions.
    """
    if token is not None:
        return token.encode()
    if folder is None:
        return secrets.token_bytes(32)
    path = Path(folder, _KEY)
    if not path.exists():
        # The file is created atomically, because another process may start at the same
        # time.
        new = path.with_suffix(f".{secrets.token_hex(4)}.part")
        new.touch(0o600)
        new.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):
            os.link(new, path)
        new.unlink()
    return path.read_bytes()
