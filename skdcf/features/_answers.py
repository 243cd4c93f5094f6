"""The final answer of a text, how far other answers agree with a claim, and options.

No model, no label. An answer is brought into the form in which it is compared with others.
Options are those of a multiple-choice question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import log, log1p
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from .._parameters import settings
from ..graphs import GraphBatch
from ..ops.ancestors import pass_on
from ._cleaning import NUMBER, clean, clean_words, find_numbers, list_names
from ._equations import find_results, find_value, split_clauses
from ._expression import NEVER, rewrite_plainly
from ._text import LONG_WORD, find_quantities, read_claim, read_question
from ._transformers import OptionalColumns

_LONGEST = 200  # characters of an answer that is read as a value
# The last of these says where the final answer begins.
_MARK = re.compile(
    r"\\boxed ?\{|#### ?(?=-?\d)|\banswer(?: is| ?[:=])|\bchoice(?:\\?_| \(?)(?=[a-h]\b)"
)
_MARK_WORDS = ("\\boxed", "####", "answer", "choice")  # a mark begins with one of these
_UP_TO_DIGIT = re.compile(r"(?s:.*)\d")
_ENDED = re.compile(r"[.;!?](?= |$)")
_CHOICE = re.compile(r"\(?([a-z])(?:[).:,]|$)")
# A minus behind a value is an operation.
_NUMERAL = re.compile(rf"(?:(?<![\d)\]}}] )(?<![\w)\]}}])-)?{NUMBER}")
_PROSE_BEFORE = re.compile(r"(?:[a-z']{2,},? )+(?=-?\d)")
_SEVERAL = re.compile(r"\d[^a-z]*[a-z]{2}.*\d")  # as in 3 hours 20 minutes
_LETTER = re.compile("[a-z]")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


def find_answer(text: str) -> str | None:
    r"""The final answer of a text.

    Parameters
    ----------
    text : str
        An answer, or one of its claims.

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
    return _ENDED.split(rest, maxsplit=1)[0].strip() or None


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
    """Find where the brace that is open at the start of a text is closed."""
    depths = list(accumulate((sign == "{") - (sign == "}") for sign in text))
    return depths.index(-1) if -1 in depths else len(text)


def normalise_answer(answer: str) -> float | str:
    """Bring an answer into the form in which it is compared with others.

    Parameters
    ----------
    answer : str
        What `find_answer` found, or a function of the caller's.

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
    if NEVER in plain:  # a relation such as "<" was there
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


_AGREEMENT = list_names(
    "answer_agreement answer_rival answer_entropy log_n_alternatives "
    "numbers_agreement numbers_all_agree has_new_numbers "
    "results_agreement results_all_agree has_results words_agreement "
    "numbers_agreement_above"
)
# Share of right answers, and how many times as many true claims two other answers keep at
# alpha 0.05.
_MEASURED = ((0.16, 1.0), (0.31, 1.0), (0.45, 1.4), (0.48, 1.5), (0.6, 1.8))
_NEUTRAL = 0.5  # share where there is nothing to compare
_MOST_SENTENCES = 200  # of an alternative; later ones are not read
_REMEMBERED = 1024  # texts, since alternatives to one answer are often those to another
_SENTENCE = re.compile(r"[.!?:;](?= |$)|\bstep \d{1,9}")


@settings
class AgreementFeatures(OptionalColumns):
    r"""How far the other answers to the question, ``alternatives``, agree.

    Texts are cleaned and numbers are read as in `TextFeatures`. *New* numbers are those
    that are not in the question, *results* the values of right-hand sides of equations.

    ===========================  ======================================================
    column                       value for claim v
    ===========================  ======================================================
    ``answer_agreement``         share of alternatives with the same final answer
    ``answer_rival``             share of alternatives with the most common other one
    ``answer_entropy``           entropy of the final answers, this one's among them
    ``log_n_alternatives``       log1p of the number of alternatives
    ``numbers_agreement``        mean share of alternatives in which a new number of v
                                 occurs
    ``numbers_all_agree``        share of alternatives in which all of them occur
    ``has_new_numbers``          1 if v has a new number
    ``results_agreement``        mean share of alternatives that have a result of v, too
    ``results_all_agree``        share of alternatives that have all of them
    ``has_results``              1 if v has a result
    ``words_agreement``          word overlap (Jaccard, words of four letters or more)
                                 with the closest sentence of an alternative, mean over
                                 alternatives
    ``numbers_agreement_above``  smallest ``numbers_agreement`` of v and its ancestors,
                                 of those that have new numbers
    ===========================  ======================================================

    Shares are 0.5 where there is nothing to compare: no alternatives, no final answer,
    no new numbers, no results; ``answer_rival``, ``answer_entropy`` and
    ``words_agreement`` are 0 then. Alternatives without a final answer do not count for
    the first three columns, and blank ones not at all.

    A final answer is what follows the last ``\boxed{``, "####", "the answer is" or
    ``Choice_``, or else the last number. Answers are equal as values where they can be
    read as such (``\frac{3}{4}`` and 0.75, "$1,200" and "1200 dollars", "50%" and 50),
    and else as texts without mark-up and blanks.

    Parameters
    ----------
    answer : callable, optional
        ``answer(text)`` gives the final answer in a text as a str, or None. It sees
        each alternative as it is, and the claims of a problem joined by line ends.
    optional : bool, default=False
        Whether to add no column, instead of raising an error, where no problem seen in
        `fit` has alternatives. `reasoning_features` sets it.

    Attributes
    ----------
    used_ : bool
        Whether columns are added.

    Raises
    ------
    ValueError
        If a problem's alternatives are not known (None), whereas an empty tuple says
        that there are none; if a claim has no text, or ``answer`` returns no text.

    Notes
    -----
    Other answers are part of the problem: calibration and use must draw as many, in
    the same way. Of one text, 64 different numbers (in claims), 200 results and 200
    sentences are compared.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import AgreementFeatures
    >>> graph = ReasoningGraph.from_parents(
    ...     [[], [0]],
    ...     claims=["6 - 2 = 4 pens are left.", "They cost 4 * $3 = $13."],
    ...     problem="Ann has 6 pens at $3 and loses 2. What are the others worth?",
    ...     alternatives=["6 - 2 = 4 and 4 * 3 = 12. The answer is $12.", "6 * 3 = 18"],
    ... )
    >>> batch = AgreementFeatures().fit_transform([graph])
    >>> for name in "answer_agreement", "numbers_agreement", "results_agreement":
    ...     print(name, batch.features[:, batch.feature_names.index(name)])
    answer_agreement [0. 0.]
    numbers_agreement [0.5  0.25]
    results_agreement [0.5 0. ]
    """

    _parameter_constraints = {"answer": [callable, None], "optional": ["boolean"]}

    answer: Callable[[str], str | None] | None = None
    field: ClassVar[str] = "alternatives"
    columns: ClassVar[tuple[str, ...]] = _AGREEMENT
    looks_ahead: ClassVar[frozenset[str]] = frozenset(_AGREEMENT[:3])

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        conclude = self.answer or find_answer
        read = lru_cache(_REMEMBERED)(lambda text: _Reading(text, conclude))
        rows = []
        assert batch.alternatives is not None  # which the check of the batch made sure
        for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
            question = None if batch.problems is None else batch.problems[i]
            numbers_known = read_question(question).known
            texts = () if batch.claims is None else batch.claims[a:b]
            alternatives = [
                read(text) for text in batch.alternatives[i] if text.strip()
            ]
            conclusion = _conclude("\n".join(texts), conclude) if alternatives else None
            per_problem = _compare_answers(
                conclusion, [alternative.answer for alternative in alternatives]
            )
            rows += [
                (
                    *per_problem,
                    *_compare_claim(read_claim(text), numbers_known, alternatives),
                )
                for text in texts
            ]
        table = np.array(rows, dtype=float).reshape(-1, len(_AGREEMENT) - 1)
        return np.column_stack([table, _find_lowest(batch, table)])


class AgreementWorth(NamedTuple):
    """An estimate of what other answers to a question are worth."""

    n_answers: int  # their labels say whether they are right
    share_right: float  # the share of them without a false claim
    interval: tuple[float, float]  # 95 % interval of that share
    factor: tuple[float, float]  # true claims kept at alpha 0.05, for its two ends

    def __str__(self) -> str:
        low, high = self.factor
        return (
            f"{self.share_right:.0%} of {self.n_answers:,} answers are right (between "
            f"{self.interval[0]:.0%} and {self.interval[1]:.0%}). Where as many were right "
            f"in published data, two other answers multiplied the true claims kept at "
            f"alpha 0.05 by {low:.1f} to {high:.1f}"
        )


def estimate_agreement(y: Sequence[ArrayLike]) -> AgreementWorth:
    """Estimate what other answers would be worth, from labels that exist.

    Agreement with other answers is worth what majorities are: much where most answers are
    right, and nothing where most are wrong. So it can be told before anyone pays for
    samples.

    Parameters
    ----------
    y : sequence of array-like
        Labels of each answer: 1 true, 0 false, -1 unknown. Answers whose known labels are
        all true, but not all known, are left out.

    Returns
    -------
    AgreementWorth
        Text by ``str``.

    Raises
    ------
    ValueError
        If no answer can be told right or wrong.

    Notes
    -----
    The factor is interpolated between five sets with two other answers each, by their
    share of right answers: Mr-Ben's mathematics .16 and a science .31 (1.0, nothing),
    Mr-Ben's chemistry .45 (1.4), a science .48 (1.5), and biology .60 (1.8). They
    scatter, and models other than those of Mr-Ben will, too.

    Examples
    --------
    >>> from skdcf.features import estimate_agreement
    >>> worth = estimate_agreement([[1, 1], [1], [1, 0, -1], [1]] * 50)
    >>> round(worth.share_right, 2), worth.factor[0] > 1.5
    (0.75, True)
    """
    labels = [np.asarray(row) for row in y]
    right = [int(0 not in row) for row in labels if 0 in row or -1 not in row]
    if not right:
        raise ValueError(
            "no answer can be told right or wrong: each has unknown labels and no false one"
        )
    n_right = sum(right)
    ends = betaincinv(n_right + 0.5, len(right) - n_right + 0.5, (0.025, 0.975))
    interval = tuple(ends.tolist())  # Jeffreys' interval
    factor = tuple(np.interp(interval, *np.array(_MEASURED).T).tolist())
    return AgreementWorth(len(right), float(np.mean(right)), interval, factor)


def _conclude(text, answer):
    """The final answer of a text in the form that is compared, or None."""
    conclusion = answer(text)
    if not isinstance(conclusion, str | None):
        raise ValueError(
            f"answer(text) gave {conclusion!r}, but must give a str or None"
        )
    return None if conclusion is None else normalise_answer(conclusion)


class _Reading:
    """The contents of an alternative."""

    __slots__ = ("answer", "numbers", "results", "sentences")

    def __init__(self, text, conclude):
        self.answer = _conclude(text, conclude)
        text, words = clean_words(text)
        self.results = find_results(split_clauses(text))
        self.numbers = frozenset(find_numbers(text) + find_quantities(words))
        pieces = _SENTENCE.split(text, maxsplit=_MOST_SENTENCES)[:_MOST_SENTENCES]
        self.sentences = {frozenset(LONG_WORD.findall(piece)) for piece in pieces}


def _compare_answers(own, answers):
    """The columns of a whole problem, from final answers or None."""
    counts = Counter(answer for answer in answers if answer is not None)
    total = counts.total()
    same = counts[own]
    rival = max((n for conclusion, n in counts.items() if conclusion != own), default=0)
    if own is not None:
        counts[own] += 1
    shares = [n / counts.total() for n in counts.values() if n]
    agreement = same / total if total and own is not None else _NEUTRAL
    entropy = -sum(share * log(share) for share in shares)
    return agreement, rival / max(total, 1), entropy, log1p(len(answers))


def _compare_claim(claim, known, others):
    """The columns of one claim, from the numbers of the question and the alternatives."""
    new = frozenset([x for x in claim.found if x not in known])
    numbers = _share(new, [alternative.numbers for alternative in others])
    results = _share(claim.results, [alternative.results for alternative in others])
    return *numbers, *results, _overlap(claim.long_words, others) if others else 0.0


def _share(values, sets):
    """Mean share of the sets that hold a value, share that hold all, whether there is a value."""
    if not values or not sets:
        return _NEUTRAL, _NEUTRAL, bool(values)
    shares = [len(values & numbers) / len(values) for numbers in sets]
    return sum(shares) / len(sets), shares.count(1.0) / len(sets), True


def _overlap(words, others):
    """Mean over the alternatives of the overlap with the closest sentence."""
    total = 0.0
    n_words = len(words)
    for sentences in others:
        best = 0.0
        for sentence in sentences.sentences:
            n_shared = len(words & sentence)
            if n_shared:
                best = max(best, n_shared / (n_words + len(sentence) - n_shared))
        total += best
    return total / len(others)


def _find_lowest(batch, table):
    """The lowest share of new numbers among each claim and its ancestors."""
    share, _, has = table[:, 4:7].T
    lowest = pass_on(np.minimum, np.where(has, share, np.inf), batch)
    return np.where(np.isinf(lowest), _NEUTRAL, lowest)


# "A: text", "(b) text", "C. text" at the beginning of a line.
_OPTION = re.compile(r"(?m)^\s{0,9}\(?([A-Ha-h])[).:]\s{1,9}(\S.{0,500})$")
_SIGNS = re.compile(r"[^\W_]+")
_DENIES = list_names(
    "not no cannot isn doesn don false incorrect incorrectly wrong eliminate "
    "eliminated exclude excluded rule ruled unlikely instead neither nor"
)
_NAMED = 0.5  # from this share of an option's words on, a claim is about the option


class OptionFeatures(OptionalColumns):
    """What a claim says about the options of a multiple-choice question.

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
    columns: ClassVar[tuple[str, ...]] = list_names(
        "option_is_chosen option_words option_rival options_ruled_out option_agrees"
    )
    looks_ahead: ClassVar[frozenset[str]] = frozenset(columns) - {"options_ruled_out"}

    def _is_there(self, batch: GraphBatch) -> bool:
        return batch.problems is not None and any(map(_read_options, batch.problems))

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        table = np.zeros((batch.n_claims, len(self.columns)))
        if batch.claims is None:
            return table
        bounds = pairwise(batch.offsets.tolist())
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
    return frozenset(_SIGNS.findall(clean(text)))


def _find_letter(text):
    """The letter that a text concludes with, or None."""
    letter = normalise_answer(find_answer(text) or "")
    return letter if isinstance(letter, str) and len(letter) == 1 else None


def _compare_answer(claims, options, chosen):
    words = [_list_words(text) for text in claims]
    rows = []
    ruled_out = set()
    for text, claim_words in zip(claims, words, strict=True):
        shares = _list_shares(options, claim_words)
        best_option = max(shares, key=shares.__getitem__)
        if shares[best_option] >= _NAMED and not claim_words.isdisjoint(_DENIES):
            ruled_out.add(best_option)
        mine = shares.pop(chosen)
        named = _find_letter(text) == chosen
        rows.append((named, mine, max(shares.values()), len(ruled_out) / len(options)))
    ending = frozenset().union(*words[-2:])
    last = _list_shares(options, ending)
    agrees = last.pop(chosen) - max(last.values())
    return [(*row, agrees) for row in rows]


def _list_shares(options, words):
    """Share of each option's words that a text holds, by the option's letter."""
    return {k: len(o & words) / max(len(o), 1) for k, o in options.items()}
