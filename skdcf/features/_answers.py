"""The final answer of a text, and what claims say about the options of a question.

An answer is brought into the form in which it is compared with others. Options are those
of a multiple-choice question.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ..graphs import GraphBatch
from ._cleaning import NUMBER, clean
from ._equations import find_value
from ._expression import NEVER, rewrite_plainly
from ._transformers import OptionalColumns

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


# "A: text", "(b) text", "C. text" at the beginning of a line.
_OPTION = re.compile(r"(?m)^\s{0,9}\(?([A-Ha-h])[).:]\s{1,9}(\S.{0,500})$")
_WORD = re.compile(r"[^\W_]+")
_DENIES = frozenset(
    _WORD.findall(
        "not no cannot isn doesn don false incorrect incorrectly wrong eliminate "
        "eliminated exclude excluded rule ruled unlikely instead neither nor"
    )
)
_NAMED = 0.5  # share of an option's words from which on a claim is about it


class OptionFeatures(OptionalColumns):
    """How a claim bears on the options of a multiple-choice question.

    `reasoning_features` describes the columns.

    Parameters
    ----------
    optional : bool, default=False
        Whether to add no column where no question seen in `fit` has options.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import reasoning_features
    >>> graph = ReasoningGraph(
    ...     None,
    ...     claims=["It is not a red fox.", "So it is a grey wolf.", "Choice_B"],
    ...     problem="Which animal?\\nA: red fox\\nB: grey wolf",
    ... )
    >>> batch = reasoning_features().fit_transform([graph])
    >>> for name, column in zip(batch.feature_names[-5:], batch.features.T[-5:]):
    ...     print(name, column)
    option_is_chosen [0. 0. 1.]
    option_words [0. 1. 0.]
    option_rival [1. 0. 0.]
    options_ruled_out [0.5 0.5 0.5]
    option_agrees [1. 1. 1.]
    """

    reads_edges = False
    columns: ClassVar[tuple[str, ...]] = (
        "option_is_chosen",
        "option_words",
        "option_rival",
        "options_ruled_out",
        "option_agrees",
    )
    looks_ahead: ClassVar[frozenset[str]] = frozenset(columns) - {"options_ruled_out"}

    def _is_there(self, batch: GraphBatch) -> bool:
        return batch.problems is not None and any(map(_read_options, batch.problems))

    def _used_columns(self, batch: GraphBatch) -> np.ndarray:
        table = np.zeros((batch.n_claims, len(self.columns)))
        bounds = pairwise(batch.offsets.tolist() if batch.n_claims else ())
        for i, (a, b) in enumerate(bounds):
            options = {} if batch.problems is None else _read_options(batch.problems[i])
            chosen = _find_letter("\n".join(batch.claims[a:b]))
            if chosen in options:
                table[a:b] = _compare_answer(batch.claims[a:b], options, chosen)
        return table


def _read_options(question):
    """Words of each option by its letter; none where there are no two."""
    lines = _OPTION.findall(question or "")
    options = {letter.lower(): _list_words(text) for letter, text in lines}
    return options if len(options) > 1 else {}


def _list_words(text):
    return frozenset(_WORD.findall(clean(text)))


def _find_letter(text):
    """The letter that a text concludes with, or None."""
    answer = find_answer(text)
    letter = None if answer is None else normalise_answer(answer)
    return letter if isinstance(letter, str) and len(letter) == 1 else None


def _compare_answer(claims, options, chosen):
    words = [_list_words(text) for text in claims]
    rows, ruled_out = [], set()
    for text, own in zip(claims, words, strict=True):
        shares = _list_shares(options, own)
        about = max(shares, key=shares.__getitem__)
        if shares[about] >= _NAMED and not own.isdisjoint(_DENIES):
            ruled_out.add(about)
        mine = shares.pop(chosen)
        named = _find_letter(text) == chosen
        rows.append((named, mine, max(shares.values()), len(ruled_out) / len(options)))
    ending = frozenset().union(*words[-2:])
    last = _list_shares(options, ending)
    agrees = last.pop(chosen) - max(last.values())
    return [(*row, agrees) for row in rows]


def _list_shares(options, words):
    """Share of the words of each option that are there, by its letter."""
    return {k: len(o & words) / max(len(o), 1) for k, o in options.items()}
