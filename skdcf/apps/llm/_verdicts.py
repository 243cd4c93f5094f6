"""Extract verdicts and their log odds from the replies of judges."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from ._reply import Reply

CERTAIN = 14.0  # Log odds beyond 14 differ only by rounding errors.
_AROUND = " .!*_`'\""  # characters that may surround a verdict word
#: Pairs of words that mean "true" and "false".
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
#: Pattern for a reply that begins with a verdict. Replies such as "The correct value ..." do not
#: match.
_BEGINS = re.compile(rf"(?i)\W*((?:true|false)\b|(?:{_WORDS})\b(?!\s*\w))")
#: Words that indicate a verdict even within a sentence. Other verdict words often have another
#: meaning within a sentence.
_DECIDING = re.compile(r"(?i)\b(true|false|correct|incorrect)\b")
#: Pattern for a sentence that ends with a verdict or with a reason for it.
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
    """Return the standard form of a verdict, in lower case."""
    lowered = word.strip().lower()
    return _SYNONYMS.get(lowered.strip(_AROUND), lowered)


def read_prose(sentences: Sequence[str], shown: str) -> str | None:
    """Return the verdict ("true" or "false") in prose, or None if the verdict is ambiguous.

    A verdict is unambiguous if it begins the reply and no other verdict is mentioned. A verdict
    is also unambiguous if the last sentence states it with a single word and no earlier sentence
    contradicts it. Quotations, questions, negations and suppositions are not verdicts.

    Parameters
    ----------
    sentences : sequence of str
        The sentences of the reply, without the preceding reasoning of the model.
    shown : str
        The texts in the model's input. The reply may repeat these texts.

    Returns
    -------
    verdict : str or None
        The verdict, which is "true" or "false", or None if the verdict is ambiguous.
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
    """Return the verdict expressed by all words, or None if the words disagree."""
    verdicts = {plain_word(word) for word in words}
    return verdicts.pop() if len(verdicts) == 1 else None


def log_odds(reply: Reply, verdicts: Sequence[str]) -> list[float]:
    """Return the log odds of "true" for each verdict in a reply, in order of appearance.

    The log odds are computed at the position of the verdict, because the preceding reasoning may
    also contain the words "true" and "false". If this position is not found, or if the log odds
    contradict the verdict, +1 is used for "true" and -1 for "false". If the reply has no
    log-probabilities, the log odds are NaN.
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
    """Return the log odds of "true" at a position, or 0 if "true" and "false" are both unlikely."""
    pair = next(pair for pair in _PAIRS if verdict in pair)
    sides = dict.fromkeys(pair, 0.0)
    for token, logprob in row.items():
        word = re.sub(r"\W", "", token).lower()
        for side in sides:
            if word and (side.startswith(word) or word.startswith(side)):
                sides[side] += math.exp(min(logprob, 0.0))
    true, false = (math.log(max(p, 1e-300)) for p in sides.values())
    return min(max(true - false, -CERTAIN), CERTAIN)
