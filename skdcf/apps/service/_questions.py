"""Questions that were asked, by keyed hashes: known again, and told to nobody.

Short questions can be guessed and compared with a plain hash. The key is the secret of the
service, or one in a file beside the journal where it has none.
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
    """The questions that a monitor has counted.

    Parameters
    ----------
    filter : fitted filter
        Questions that calibrated it do not count.
    key : bytes
        By which questions are hashed.
    """

    def __init__(self, filter: Any, key: bytes) -> None:
        # A question may have had a name there, and have its text alone here.
        calibrated = filter._calibrated
        texts = calibrated.get("text", calibrated["question"])
        names_one = calibrated.get("text_names_one", slice(None))
        self.calibrated = {*calibrated["question"].tolist(), *texts[names_one].tolist()}
        self.key = key
        self.counted: set[str] = set()

    def name(self, graph: ReasoningGraph) -> tuple[str | None, bool]:
        """What the journal holds of the question of an answer.

        Parameters
        ----------
        graph : ReasoningGraph
            The answer.

        Returns
        -------
        digest : str or None
            A keyed hash; None for an answer that stands alone.
        is_calibrated : bool
            Whether the question calibrated the filter.
        """
        [question] = question_groups([graph]).tolist()
        if question < 0:
            return None, False
        digest = hmac.digest(self.key, b"%d" % question, "sha256").hex()[:32]
        return digest, question in self.calibrated

    def counts(self, entry: Entry) -> bool:
        """Whether labels of an answer are the first of its question, which is remembered.

        Parameters
        ----------
        entry : Entry
            As the journal has it.

        Returns
        -------
        bool
            True for an answer that stands alone.
        """
        if entry.question is None:
            return True
        if entry.calibrated or entry.question in self.counted:
            return False
        self.counted.add(entry.question)
        return True


def read_key(token: str | None, folder: str | os.PathLike[str] | None) -> bytes:
    """The key by which questions are hashed; it outlives the process where the journal does.

    Parameters
    ----------
    token : str or None
        The secret of the service, which is the key where there is one.
    folder : path-like or None
        Where the journal stands.

    Returns
    -------
    bytes
    """
    if token is not None:
        return token.encode()
    if folder is None:
        return secrets.token_bytes(32)
    path = Path(folder, _KEY)
    if not path.exists():
        # It appears as a whole, since another process may begin at the same time.
        new = path.with_suffix(f".{secrets.token_hex(4)}.part")
        new.touch(0o600)
        new.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):
            os.link(new, path)
        new.unlink()
    return path.read_bytes()
