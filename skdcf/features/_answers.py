"""What a text concludes: its final answer, and the results of its equations."""

import re
from itertools import islice

from ..ops.texts import NUMBER, clean
from ._equations import CLAUSE, MOST_SIDES, read_side
from ._expression import evaluate
from ._latex import NEVER, rewrite_plainly

_LONGEST = 200  # characters of an answer
# The last of these says where the final answer begins.
_MARK = re.compile(
    r"\\boxed ?\{|#### ?(?=-?\d)|\banswer(?: is| ?[:=])|\bchoice(?:\\?_| \(?)(?=[a-h]\b)"
)
_SENTENCE = re.compile(r"[.;!?](?= |$)")
_CHOICE = re.compile(r"\(?([a-z])(?:[).:,]|$)")
# A minus behind a value is an operation.
_NUMERAL = re.compile(rf"(?:(?<![\d)\]}}] )(?<![\w)\]}}])-)?{NUMBER}")
_PROSE_BEFORE = re.compile(r"(?:[a-z']{2,},? )+(?=-?\d)")
_SEVERAL = re.compile(r"\d[^a-z]*[a-z]{2}.*\d")  # 3 hours 20 minutes
_LETTER = re.compile("[a-z]")
_DIGIT = re.compile(r"\d")
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
    text, mark = clean(text), None
    for mark in _MARK.finditer(text):  # noqa: B007 - the last one counts
        pass
    if mark is None:
        numbers = _NUMERAL.findall(text)
        return numbers[-1] if numbers else None
    rest = text[mark.end() : mark.end() + _LONGEST].lstrip(" :=")
    if mark[0][-1] == "{":
        return rest[: _find_end(rest)].strip() or None
    if mark[0].startswith("choice"):
        return rest[0]
    return _SENTENCE.split(rest, maxsplit=1)[0].strip() or None


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
        value = _find_value(side)
        if value is not None:
            return value
    return compact


def find_results(text: str) -> frozenset[float]:
    """Values of the right-hand sides of a text's equations.

    Parameters
    ----------
    text : str

    Returns
    -------
    frozenset of float
        Of the first 200 right-hand sides.
    """
    text = clean(text)
    if "=" not in text and "≈" not in text and "\\approx" not in text:
        return frozenset()
    clauses = CLAUSE.findall(rewrite_plainly(text).replace("≈", "="))
    sides = (side for clause in clauses for side in clause.split("=")[1:])
    return frozenset(map(_find_value, islice(sides, MOST_SIDES))) - {None}


def _find_value(side):
    """The value of the number or calculation that a text begins with, or None."""
    value = evaluate(read_side(side)[0]) if _DIGIT.search(side) else None
    return None if value is None else round(value, 6)
