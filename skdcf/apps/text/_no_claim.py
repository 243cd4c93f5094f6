"""Separate claims from sentences without a claim, using a list of patterns.

Sentences such as "Sure." and "Here is what I found:" make no claim. If labels state whether a
passage supports each sentence, sentences without a claim are labelled false. A filter calibrated
with such labels keeps fewer sentences that make a claim. Sentences without a claim are therefore
removed before any computation, both for calibration and for prediction. The provenance of the
claims records the list of patterns.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

_BUILT_IN = files("skdcf.apps.text").joinpath("no_claim.txt")


@dataclass(frozen=True)
class NoClaimList:
    """List of patterns that match sentences without a claim.

    Parameters
    ----------
    name : str
        Name that identifies the list in the provenance of the claims. Lists with the same
        patterns have the same name.
    patterns : tuple of re.Pattern
        The patterns. A sentence makes no claim if a pattern matches the whole sentence.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...]

    def matches(self, sentence: str) -> bool:
        """Return whether a sentence does not make a claim.

        Parameters
        ----------
        sentence : str
            A sentence, as returned by `split_sentences`.

        Returns
        -------
        matches : bool
            True if a pattern matches the whole sentence.
        """
        plain = " ".join(sentence.replace("\u2019", "'").split())
        return any(pattern.fullmatch(plain) for pattern in self.patterns)

    def divide(self, sentences: list[str]) -> tuple[list[str], list[list[Any]]]:
        """Separate the claims from the sentences without a claim.

        Parameters
        ----------
        sentences : list of str
            The sentences of one answer, in order.

        Returns
        -------
        claims : list of str
            The sentences that make a claim.
        without_claim : list of [position, text]
            The sentences that make no claim. ``position`` is the number of claims before the
            sentence.
        """
        claims: list[str] = []
        without_claim: list[list[Any]] = []
        for sentence in sentences:
            if self.matches(sentence):
                without_claim.append([len(claims), sentence])
            else:
                claims.append(sentence)
        return claims, without_claim


def no_claim_list(path: str | os.PathLike[str] | None = None) -> NoClaimList:
    """Read a list of patterns that match sentences without a claim.

    Parameters
    ----------
    path : path-like, optional
        A text file with one regular expression per line. Empty lines and lines that begin with
        ``"# "`` are ignored. The default is the built-in list ``no_claim.txt``.

    Returns
    -------
    no_claim : NoClaimList
        The list, whose name depends only on the patterns.

    Raises
    ------
    ValueError
        If a line is not a valid regular expression.
    """
    if path is None:
        return _built_in()
    return _parsed(Path(path).read_text("utf-8"), os.fspath(path))


@cache
def _built_in():
    return _parsed(_BUILT_IN.read_text("utf-8"), "no_claim.txt")


def _parsed(text, source):
    patterns = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("# "):
            continue
        try:
            patterns.append(re.compile(line.strip(), re.IGNORECASE))
        except re.error as error:
            raise ValueError(
                f"{source}, line {number}: {line.strip()!r} is not a valid regular "
                f"expression ({error}). Write one pattern per line, and escape "
                "special characters such as ( and ? with a backslash"
            ) from error
    content = "\n".join(pattern.pattern for pattern in patterns)
    return NoClaimList(
        name=hashlib.sha256(content.encode()).hexdigest()[:12],
        patterns=tuple(patterns),
    )
