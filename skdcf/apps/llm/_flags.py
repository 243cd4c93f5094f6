"""Find doubtful claims in an answer without calling a model.

A model that splits an answer into claims may change a number, add a statement that is not in
the answer, or repeat a claim. Doubtful claims are flagged and dropped by filters.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from ...graphs import ReasoningGraph

# maximum proportion of an answer that may be outside all claims before the answer is flagged
_MOST_OUTSIDE = 0.2
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLURAL = {"contains": "contain", "is": "are", "has": "have", "equals": "equal"}
#: Zero-width characters and characters that change the text direction.
_UNSEEN = re.compile(
    "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Return a text without invisible characters, which could be used to hide content."""
    return _UNSEEN.sub("", text)


def flagged_claims(graph: ReasoningGraph) -> dict[str, list[int]]:
    """Find the claims that may misstate the answer.

    Parameters
    ----------
    graph : ReasoningGraph
        A graph whose metadata contain the answer and the words that state each claim.

    Returns
    -------
    positions : dict
        Positions of the doubtful claims, keyed by the reason, such as "is not stated in the
        answer".
    """
    claims = graph.claims or ()
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    words = _words(answer)
    numbers_known = _numbers(f"{answer}\n{graph.problem or ''}")
    seen: set[str] = set()
    outside = []
    altered = []
    repeated = []
    for v, claim in enumerate(claims):
        if not any(_states(words, text) for text in (spans.get(claim, claim), claim)):
            outside.append(v)
        if _numbers(claim) - numbers_known:
            altered.append(v)
        if (normalised := " ".join(visible(claim).casefold().split())) in seen:
            repeated.append(v)
        seen.add(normalised)
    return {
        "is not stated in the answer": outside,
        "contains a number that occurs neither in the answer nor in the question": altered,
        "equals an earlier one": repeated,
    }


def texts_of(flagged: dict[str, list[int]]) -> list[str]:
    """Return one description per type of fault, with the number of affected claims."""
    texts = []
    for wrong, rows in flagged.items():
        if len(rows) == 1:
            texts.append(f"1 claim {wrong}")
        elif rows:
            verb, _, rest = wrong.partition(" ")
            texts.append(f"{len(rows)} claims {_PLURAL[verb]} {rest}")
    return texts


def _words(text):
    """Return the words and numbers of a text, separated by single spaces."""
    plain = unicodedata.normalize("NFKC", visible(text)).casefold()
    return f" {' '.join(_WORD.findall(plain))} "


def _states(words, text):
    """Return whether the words of a text occur consecutively in an answer."""
    words_of_text = _words(text)
    return bool(words_of_text.strip()) and words_of_text in words


def _numbers(text):
    """Return the numbers in a text, without thousands separators."""
    plain = unicodedata.normalize("NFKC", text)
    return {number.replace(",", "") for number in _NUMBER.findall(plain)}


def flag_of_text(graph: ReasoningGraph) -> str | None:
    """Return a flag if a large part of the answer is not covered by any claim."""
    metadata = graph.metadata or {}
    answer = metadata.get("answer") or ""
    spans = metadata.get("spans") or {}
    stated = np.zeros(len(answer), dtype=bool)
    for claim in graph.claims or ():
        words = map(re.escape, str(spans.get(claim, claim)).split())
        for match in re.finditer(r"\s+".join(words), answer):
            stated[slice(*match.span())] = True
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    share = (letters & ~stated).sum() / max(letters.sum(), 1)
    few = share <= _MOST_OUTSIDE
    return None if few else f"{share:.0%} of the answer's text is outside all claims"
