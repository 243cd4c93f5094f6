"""Tell sentences that claim nothing from claims, by a list of patterns.

"Sure." and "Here is what I found:" are neither true nor false. Judged by whether a passage
supports them they are false, and a filter that is calibrated on such labels keeps less of the
rest. So they are taken out of the claims before anything is computed, alike in calibration and in
use. The list is part of the provenance.
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

_BUILT_IN = files("skdcf.apps.llm").joinpath("no_claim.txt")


@dataclass(frozen=True)
class NoClaimList:
    """Patterns of sentences that claim nothing.

    Parameters
    ----------
    name : str
        For the provenance: two lists of the same patterns have the same name.
    patterns : tuple of re.Pattern
        A sentence claims nothing if one of them matches the whole of it.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...]

    def matches(self, sentence: str) -> bool:
        """Tell whether a sentence claims nothing.

        Parameters
        ----------
        sentence : str
            As `split_sentences` returns it.

        Returns
        -------
        bool
            False for every sentence that is not on the list.
        """
        plain = " ".join(sentence.replace("\u2019", "'").split())
        return any(pattern.fullmatch(plain) for pattern in self.patterns)

    def divide(self, sentences: list[str]) -> tuple[list[str], list[list[Any]]]:
        """Divide sentences into claims and those that claim nothing.

        Parameters
        ----------
        sentences : list of str
            Of one answer, in their order.

        Returns
        -------
        claims : list of str
            The others.
        without_claim : list of [position, text]
            ``position`` is the number of claims before the sentence.
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
    """Read a list of sentences that claim nothing.

    Parameters
    ----------
    path : path-like, optional
        A text file with one regular expression per line; empty lines and lines that begin with
        ``"# "`` are comments. None is the list of the package, ``no_claim.txt``.

    Returns
    -------
    NoClaimList
        With a name that depends on the patterns only.

    Raises
    ------
    ValueError
        If a line is not a regular expression.
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
                f"{source}, line {number}: {line.strip()!r} is not a regular expression "
                f"({error}). Write one pattern per line, and escape characters such as ( and ? "
                "by a backslash"
            ) from error
    content = "\n".join(pattern.pattern for pattern in patterns)
    return NoClaimList(
        name=hashlib.sha256(content.encode()).hexdigest()[:12],
        patterns=tuple(patterns),
    )
