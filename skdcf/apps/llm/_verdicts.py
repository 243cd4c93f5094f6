"""Verdicts in what judges write, and how sure they were of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from ._reply import Reply

_CERTAIN = 14.0  # beyond these log odds, probabilities are mere rounding
_AROUND = " .!*_`'\""  # characters that may stand around a word
#: Pairs of words that say true and false.
_PAIRS = (
    ("true", "false"),
    ("yes", "no"),
    ("correct", "incorrect"),
    ("right", "wrong"),
    ("valid", "invalid"),
    ("accurate", "inaccurate"),
)
_SYNONYMS = {true: "true" for true, _ in _PAIRS} | {
    false: "false" for _, false in _PAIRS
}
_SYNONYMS |= dict.fromkeys(("unknown", "uncertain", "unclear", "not sure"), "unsure")
_SYNONYMS |= dict.fromkeys(("support", "supported"), "supports")
_SYNONYMS |= dict.fromkeys(("contradict", "contradicted"), "contradicts")
_SYNONYMS |= {"neutral": "silent", "not_entailed": "not entailed"}

_WORDS = "|".join(word for pair in _PAIRS for word in pair)
IN_OBJECT = re.compile(rf"""(?i)["']verdict["']\s*:\s*\W*({_WORDS})\b""")
_WORD = re.compile(rf"(?i)\b({_WORDS})\b")
#: A reply that begins with its verdict, and not with "the correct value".
_BEGINS = re.compile(rf"(?i)\W*((?:true|false)\b|(?:{_WORDS})\b(?!\s*\w))")
#: Words that decide in a sentence; the others often say something else there.
_DECIDING = re.compile(r"(?i)\b(true|false|correct|incorrect)\b")
#: A sentence that ends with its verdict, or gives a reason for it.
_STATES = re.compile(
    r"""(?ix)(?:\b(?:is|are|so|thus|hence|therefore|verdict|answer|conclusion)\b|:)
    [\W_]* (?:\w+ly[\W_]+)? (true|false|correct|incorrect) [\W_]*
    (?:$|(?:because|since|as)\b)"""
)
_NOT = re.compile(
    r"(?i)(?:\b(?:not|never|hardly|neither|nor|without|cannot)\b|n['\u2019]t\b)"
    r"(?:[^\w,;:]+\w+){0,6}?[^\w,;:]+(?:true|false|correct|incorrect)\b"
)
_PERHAPS = re.compile(r"(?i)\?|\b(?:if|whether|or|would|were|could|might|may|unless)\b")
_QUOTED = re.compile(
    "\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|(?<!\\w)'[^']*'(?!\\w)"
)


def plain_word(word: str) -> str:
    """The word of a verdict that another one stands for, in lower case."""
    lowered = word.strip().lower()
    return _SYNONYMS.get(lowered.strip(_AROUND), lowered)


def read_prose(sentences: Sequence[str], shown: str) -> str | None:
    """ "true" or "false" where the sentences of a reply say it without contradiction.

    It is a reply that begins with its verdict and speaks of no other one, or one whose last
    sentence states a verdict with a single word, which no sentence before it denies. What
    is quoted, asked, negated or supposed is no verdict.

    Parameters
    ----------
    sentences : sequence of str
        Of the reply, without what the model thought before.
    shown : str
        The texts that the model was shown, which it may repeat.

    Returns
    -------
    str or None
    """
    if not sentences or _NOT.search(" ".join(sentences)):
        return None
    if begun := _BEGINS.match(sentences[0]):
        words = _DECIDING.findall(" ".join(sentences))
        return _agreed([begun[1], *words])
    unquoted = [_QUOTED.sub(" ", s) for s in sentences if s.strip() not in shown]
    stated = [_DECIDING.findall(s) for s in unquoted if not _PERHAPS.search(s)]
    last = unquoted[-1] if unquoted else ""
    if len(_DECIDING.findall(last)) != 1 or '"' in last or _PERHAPS.search(last):
        return None
    if _STATES.search(last) is None:
        return None
    return _agreed([word for words in stated for word in words])


def _agreed(words):
    """The verdict that all of several words say; None where they differ."""
    verdicts = {plain_word(word) for word in words}
    return verdicts.pop() if len(verdicts) == 1 else None


def log_odds(reply: Reply, verdicts: Sequence[str]) -> list[float]:
    """Log odds of true for each verdict of a reply, in the order of its text.

    They are read where the verdict stands: what is said before it, in thinking or as a
    reason, speaks of true and false as well. Where that place is not found, or the odds
    say the opposite of the verdict, they are +1 or -1 by the verdict. Where the reply has
    no probabilities at all, they are NaN.
    """
    rows = reply.top_logprobs
    if not rows:
        return [math.nan] * len(verdicts)
    tokens = reply.tokens or [max(row, key=row.__getitem__, default="") for row in rows]
    reply_text = "".join(tokens)
    matches = (
        list(IN_OBJECT.finditer(reply_text)) or list(_WORD.finditer(reply_text))[-1:]
    )
    matches = matches[-len(verdicts) :] if len(matches) >= len(verdicts) else []
    ends = np.cumsum([len(token) for token in tokens])
    out = [1.0 if verdict == "true" else -1.0 for verdict in verdicts]
    for i, match in enumerate(matches):
        row = rows[np.searchsorted(ends, match.start(1), side="right")]
        odds = _odds(row, match[1].lower())
        if plain_word(match[1]) == verdicts[i] and odds * out[i] > 0:
            out[i] = odds
    return out


def _odds(row, verdict):
    """Log odds of true in the place of a word; 0 where nothing speaks of it."""
    pair = next(pair for pair in _PAIRS if verdict in pair)
    sides = dict.fromkeys(pair, 0.0)
    for token, logprob in row.items():
        word = re.sub(r"\W", "", token).lower()
        for side in sides:
            if word and (side.startswith(word) or word.startswith(side)):
                sides[side] += math.exp(min(logprob, 0.0))
    true, false = (math.log(max(p, 1e-300)) for p in sides.values())
    return min(max(true - false, -_CERTAIN), _CERTAIN)
