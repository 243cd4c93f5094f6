"""The final answer of a text, and the form in which it is compared with others."""

from __future__ import annotations

import re

from ..ops.texts import NUMBER, clean
from ._equations import find_value
from ._latex import NEVER, rewrite_plainly

_LONGEST = 200  # characters of an answer
# The last of these says where the final answer begins.
_MARK = re.compile(
    r"\\boxed ?\{|#### ?(?=-?\d)|\banswer(?: is| ?[:=])|\bchoice(?:\\?_| \(?)(?=[a-h]\b)"
)
_MARK_WORDS = ("\\boxed", "####", "answer", "choice")  # what a mark begins with
_UP_TO_DIGIT = re.compile(r"(?s:.*)\d")
_SENTENCE = re.compile(r"[.;!?](?= |$)")
_CHOICE = re.compile(r"\(?([a-z])(?:[).:,]|$)")
# A minus behind a value is an operation.
_NUMERAL = re.compile(rf"(?:(?<![\d)\]}}] )(?<![\w)\]}}])-)?{NUMBER}")
_PROSE_BEFORE = re.compile(r"(?:[a-z']{2,},? )+(?=-?\d)")
_SEVERAL = re.compile(r"\d[^a-z]*[a-z]{2}.*\d")  # 3 hours 20 minutes
_LETTER = re.compile("[a-z]")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


def find_answer(text: str) -> str | None:
    r"""The final answer of a text.

    Parameters
    ----------
    text : str

    Returns
    -------
    str or None
        What follows the last ``\boxed{``, "####", "the answer is" or "Choice_", and
        without one of these the last number; None where there is no number either.
    """
    text = clean(text)
    mark = _find_last_mark(text)
    if mark is None:
        digit = _UP_TO_DIGIT.match(text)
        if digit is None:
            return None
        word = text.rfind(" ", 0, digit.end()) + 1
        return _NUMERAL.findall(text, word)[-1]
    rest = text[mark.end() : mark.end() + _LONGEST].lstrip(" :=")
    if mark[0][-1] == "{":
        return rest[: _find_end(rest)].strip() or None
    if mark[0].startswith("choice"):
        return rest[0]
    return _SENTENCE.split(rest, maxsplit=1)[0].strip() or None


def _find_last_mark(text):
    """Match of the last mark of a final answer, or None."""
    places = {word: text.rfind(word) for word in _MARK_WORDS}
    while max(places.values()) >= 0:
        word = max(places, key=places.__getitem__)
        mark = _MARK.match(text, places[word])
        if mark:
            return mark
        places[word] = text.rfind(word, 0, places[word] + len(word) - 1)
    return None


def _find_end(text):
    """Where the brace that is open at the start of a text is closed."""
    depth = 1
    for place, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if not depth:
            return place
    return len(text)


def normalise_answer(answer: str) -> float | str:
    """An answer in the form in which it is compared with others.

    Parameters
    ----------
    answer : str

    Returns
    -------
    float or str
        A value, where the text is one number or calculation, with a unit or without;
        else the text without mark-up and blanks.
    """
    text = clean(answer)
    if choice := _CHOICE.match(text):
        return choice[1]
    plain = rewrite_plainly(text)
    if NEVER in plain:  # stands for "<" and for ">"
        return _BLANK.sub("", text)
    text = plain.rpartition("=")[2].replace("%", "").strip(" .,:;'\"")
    compact = _BLANK.sub("", text)
    if len(text) <= _LONGEST and not _SEVERAL.search(text):
        prose = _PROSE_BEFORE.match(text)
        side = text[prose.end() if prose else 0 :] if _LETTER.search(text) else compact
        value = find_value(side)
        if value is not None:
            return value
    return compact
