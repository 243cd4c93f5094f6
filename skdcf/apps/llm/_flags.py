"""What may be wrong with the claims of an answer, seen without another model.

A model that cuts an answer into claims may alter a number, state something that the answer
does not, or say a thing twice. Such claims are flagged, and filters keep none of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from ...graphs import ReasoningGraph

_MOST_OUTSIDE = 0.2  # this share of an answer may be in no claim without a flag
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLURAL = {"is": "are", "has": "have", "equals": "equal"}
#: Marks without a width, and those that change the direction of a text.
_UNSEEN = re.compile(
    "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """A text without marks that show nowhere and may hide what it says."""
    return _UNSEEN.sub("", text)


def flagged_claims(graph: ReasoningGraph) -> dict[str, list[int]]:
    """The claims that may not say what the answer says, by what is wrong with them.

    Parameters
    ----------
    graph : ReasoningGraph
        With its answer and the words that state each claim in its metadata.

    Returns
    -------
    dict
        From what is wrong, as it is said of one claim, to the positions of the claims.
    """
    claims = graph.claims or ()
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    words = _words(answer)
    known = _numbers(f"{answer}\n{graph.problem or ''}")
    seen: set[str] = set()
    outside = []
    altered = []
    repeated = []
    for v, claim in enumerate(claims):
        if not any(_states(words, text) for text in (spans.get(claim, claim), claim)):
            outside.append(v)
        if _numbers(claim) - known:
            altered.append(v)
        if (said := " ".join(visible(claim).casefold().split())) in seen:
            repeated.append(v)
        seen.add(said)
    return {
        "is not in the answer": outside,
        "has a number that neither the answer nor the question has": altered,
        "equals an earlier one": repeated,
    }


def texts_of(flagged: dict[str, list[int]]) -> list[str]:
    """What is wrong with the claims of an answer, in words."""
    texts = []
    for wrong, rows in flagged.items():
        if len(rows) == 1:
            texts.append(f"1 claim {wrong}")
        elif rows:
            verb, _, rest = wrong.partition(" ")
            texts.append(f"{len(rows)} claims {_PLURAL[verb]} {rest}")
    return texts


def _words(text):
    """The words and numbers of a text, between single blanks, whatever stands around them."""
    plain = unicodedata.normalize("NFKC", visible(text)).casefold()
    return f" {' '.join(_WORD.findall(plain))} "


def _states(words, text):
    """Whether an answer with these words has those of a text, one after the other."""
    said = _words(text)
    return bool(said.strip()) and said in words


def _numbers(text):
    """The numbers of a text, without what separates thousands."""
    plain = unicodedata.normalize("NFKC", text)
    return {number.replace(",", "") for number in _NUMBER.findall(plain)}


def flag_of_text(graph: ReasoningGraph) -> str | None:
    """A flag if much of an answer is in no claim: it was neither kept nor dropped."""
    answer, stated = stated_by(graph)
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    share = (letters & ~stated.any(axis=0)).sum() / max(letters.sum(), 1)
    few = share <= _MOST_OUTSIDE
    return None if few else f"{share:.0%} of the answer's text is in no claim"


def stated_by(graph: ReasoningGraph) -> tuple[str, np.ndarray]:
    """An answer, and for each claim which characters of it are its words."""
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    stated = np.zeros((graph.n_claims, len(answer)), dtype=bool)
    claims: Sequence[str] = graph.claims or ()
    for row, claim in zip(stated, claims, strict=False):
        words = map(re.escape, str(spans.get(claim, claim)).split())
        for match in re.finditer(r"\s+".join(words), answer):
            row[slice(*match.span())] = True
    return answer, stated
