"""Features that compare an answer with alternative answers, or with the options of the question.

The features require neither a model nor labels. Final answers are normalised before they are
compared. Options are the choices of a multiple-choice question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import accumulate
from math import log, log1p

import numpy as np

from .._parameters import settings
from ..graphs import GraphBatch, pass_on
from ._cleaning import clean, list_names, remove_markup
from ._equations import CHANGING, UNITS, find_results, read_side, split_clauses
from ._expression import NEVER, evaluate, rewrite_plainly
from ._text import LONG_WORD, find_all_numbers, list_texts, read_claim, read_question
from ._transformers import OptionalColumns
from .sentences import split_paragraph

# Pattern for the markers after whose last occurrence the final answer begins.
_find_marks = re.compile(
    r"[\\#AaCc](?i:(?<=\\)boxed ?\{|(?<=#)### ?(?=-?\d)|(?<=\ba)nswer(?: is| ?[:=])"
    r"|((?<=\bc)hoice(?:\\?_| \(?)(?=[a-h]\b)))"
).finditer
# Words and numbers contain no end of a sentence, except for a period at the end.
_is_phrase = re.compile(r"(?:[\w %/-]|(?<=\d)[.,](?=\d))+\.?").fullmatch
_match_up_to_digit = re.compile(r"(?s:.*)\d").match
# Parts of a final answer that would mislead `split_paragraph` about the end of the sentence.
_replace_parts = re.compile(
    r"""(?x)
    # a short word before a number, as in "Rom. 5", unless it is an answer or a unit
    (?:\b[ap]\.m | (?<!\d\ )\b(?!(?i:yes|true|none|both|zero|one|two|four|five|six|nine|ten)\.)
      [A-Za-z]{2,4})\.(?=\ \d)
    # a unit before a smaller one, as in "5 hrs. 10 min"
    | (?<=\d\ )[a-z]+\.(?=\ \d+\ [a-z]+(?:\.|\Z))
    # "No" before anything but a number, as in "No. I think so"
    | \A[Nn]o(?=\.\ (?!\d|[IVX]+(?:[.,]|\Z)))
    # a colon, after which a number would be taken for a list marker, as in "B: 5. Hence"
    | :(?=\ )"""
).sub
# Before the last number of a text is read, citations such as " [1]" and remarks such as
# " (source: 2021)" are removed. In "the roots are [1, 5]", the brackets contain the answer.
_replace_notes = re.compile(
    r"(?:(?<! is)(?<! are)(?<![ \\]in)(?<![=:\u2208]) |(?<=[.\]]))"
    r"\[\d{1,3}(?:, ?\d{1,3}){0,9}\]"
    r"| \((?=[^()]{0,99}[a-z]{2})(?=[^()]{0,99}\d)[^()]{0,100}\)"
).sub
# Citations such as "[1][2]" after a final answer, which may end with any character if ". [1]"
# follows. All other brackets are part of the answer.
_replace_citations = re.compile(
    r"\A(.*(?=\. ?\[)|[^\[]*[\w%)\]}\"\u20ac])(?<!\bis)(?<!\bare)(?<!\bin)[ .]{0,2}"
    r"(?:\[\d{1,3}\] ?)+\Z"
).sub
# A name or a calculation before the value of an answer, as in "x = 5" and "x = 2 + 3 = 5". In
# "3 when x = 5" and "x + y = 5", the number at the end is not the answer.
_replace_names = re.compile(
    r"\A(?:\\?[^\W\d][\w\\(){}]* ?=(?=.))?(?:[-+*/^%{}\u221a.\d =]*=(?= ?[-\d]))?"
).sub
# In an answer, "3 1/2", "3\frac{1}{2}" and "3\u00bd" are sums.
_separate_fractions = re.compile(r"(?<=\d) ?(?=[\u00bc\u00bd\u00be]|\\[dt]?frac)").sub
_replace_mixed = re.compile(
    r"(?<![\d,])(\d{1,9}) +\(?\(?(\d{1,9})\)?/\(?([1-9]\d{0,8})\)?\)?"
).sub
# Split a number, fraction or product from the words after it. If something other than words follows
# the number, the whole text is taken as words. Two slashes separate the parts of a date.
_split_amount = re.compile(
    r"(?s)(?:(?!\d+/\d+/)"
    r"((?>-? ?[\d(](?:(?:[\d.,()/*^{} ]|(?<=[({^])-)*[\d)}])?(?:e-?\d{1,3}\b)?))"
    r" *(?![^\w\u20ac\u00a3\u00a5\u20b9]))?(.*)"
).findall
# The last number of a text may be the second one of a range or a date.
_split_series = re.compile(
    r"(?s)(.*?)(\d[\d.,/]*(?<!\.) (?:(?:to|and|or) )?)?\Z"
).findall
# Words before the last number of a text that turn it into a bound, negate it, or make it part of a
# calculation.
_CHANGING = CHANGING | frozenset(
    list_names("""
        not no never cannot without least most up max min maximum minimum fewer over under above
        below about approx approximately around roughly nearly almost between or either before
        after < > \u2264 \u2265 \u2260
    """)
)
_match_letter = re.compile(r"\(?([a-z])[).:,]?$").match
_another = r"[).:]?(?:[,;]| no,|\b (?=\()|([ (](?:and|or)\b| ?[&/]))+ ?\(?(?!a (?!and|or))[a-h]\b"
# In "A, B", "(A) or (B)", "A: no, B" and "A (or B)", the first letter is not the answer. In "A. B
# and C are wrong", "A (not B)" and "A, E. coli", it is. Without "and" or "or" (group 2), the next
# letter is an option only if the end, a bracket, "both", "are" or a third letter follows.
_match_option = re.compile(
    rf"\(?([a-z])(?!{_another}(?(2)|(?:[).:,;?!]*(?:$| \(| both\b| are\b)|{_another})))"
    r"(?:[).:,]|$| \([^()]*\)?$)"
).match
_find_counted = re.compile(r"[Hh](?i:(?<=\bh)ow many (\w+))").findall
_replace_blanks = re.compile(r"(?<!\d) | (?!\d)").sub


def find_answer(text, has_options=False):
    r"""Return the final answer of a text.

    Parameters
    ----------
    text : str
        Answer or claim text.
    has_options : bool, default=False
        Whether the question has options, so ``Choice_`` may mark the answer.

    Returns
    -------
    answer : str or None
        The text in the last ``\boxed{}``, or the rest of the sentence after "####" or "the answer
        is", or the letter after ``Choice_`` if ``has_options`` is True. If the text contains no
        such marker, the last number outside of remarks in brackets is returned, with the unit after
        it. If it is the second number of a range or date, the first one precedes it. A preceding
        word such as "not" or "isn't" is included. The result is None if there is no number.
    """
    text = remove_markup(text)
    marks = [m for m in _find_marks(text) if has_options or not m[1]]
    if not marks:
        text = _replace_notes("", text.casefold())
        digit = _match_up_to_digit(text)
        if digit is None:
            return None
        start = text.rfind(" ", 0, digit.end()) + 1
        # Read at most 60 characters before the number.
        before, earlier = _split_series(text, max(start - 60, 0), start)[0]
        number, *unit = text[start : start + 200].split(" ", 2)[:2]
        return " ".join(
            [
                *(
                    word
                    for word in before.split()[-2:]
                    if word in _CHANGING or word.endswith(("n't", "n\u2019t"))
                ),
                earlier + number,
                *(
                    word
                    for word in unit
                    if word.replace(".", "").strip("(),;:!?\u00b2\u00b3") in UNITS
                ),
            ]
        )
    mark = marks[-1]
    rest = text[mark.end() : mark.end() + 200].lstrip(" :=")
    if mark[0][-1] == "{":
        depths = accumulate((sign == "{") - (sign == "}") for sign in rest)
        end = [*depths, -1].index(-1)  # The closing brace may be missing.
        return rest[:end].strip() or None
    if mark[1]:
        return rest[0]
    if _is_phrase(rest):
        return rest.removesuffix(".").strip()
    # The text is placed between two words. Without the first word, the splitter would read "5." as
    # a list marker. Without the second, it would include ":)" after the text in the last sentence.
    hidden = _replace_parts(lambda m: "=" * len(m[0]), rest)
    sentence = next(split_paragraph(f"is {hidden} It", "en"))
    return re.sub(r"[.!?]? *\Z", "", rest[: len(sentence) - 3]).strip() or None


def normalise_answer(answer, has_options=False, counted=()):
    """Convert a final answer to a number or to plain text, for comparisons with other answers.

    Parameters
    ----------
    answer : str
        A final answer, as returned by `find_answer` or by a user-defined function.
    has_options : bool, default=False
        Whether the question has options, so the letter of an option is an answer.
    counted : tuple of str, optional
        The word after each "how many" in the question, which an answer may repeat.

    Returns
    -------
    normalised_answer : float or str
        The value as a float if the text is a single number, fraction or product. If words other
        than those in ``counted`` follow, such as a unit of measurement, the result is the value and
        these words as a str. For any other text, such as a date, a range, a bound, or a number with
        a remark in brackets, the result is the text without markup, spaces or final citations. A
        name before a value is ignored ("x = 5").
    """
    text = clean(answer).strip(" .,:;'\"")
    # maximum number of characters in a numeral, as in `read_numeral`
    if text.isdecimal() and len(text) <= 30:
        return float(text)
    text = _replace_citations(lambda m: m[1], text)
    if choice := (_match_option if has_options else _match_letter)(text):
        return choice[1]
    # \frac12 is short for \frac{1}{2}.
    full = re.sub(r"\\[dt]?frac(\d)(\d)", r"\\frac{\1}{\2}", text)
    plain = rewrite_plainly(_separate_fractions("  ", full), drop_notes=False)
    # A text that contains a relation other than equality, such as "<", is not a value.
    side = text if NEVER in plain else _replace_names("", plain)
    side = side.replace("%", "").strip(" .,:;'\"")
    side = _replace_mixed(lambda m: repr(int(m[1]) + int(m[2]) / int(m[3])), side)
    side += "".join(re.findall("[\u20ac\u00a3\u00a5\u20b9]", text))
    number, rest = _split_amount(side)[0]
    value = evaluate(read_side(number.replace("e", "*10^"))[1])
    if value is None:
        return _replace_blanks("", side)
    value = round(value, 6) or float(f"{value:.6g}")
    unit = "".join(UNITS.get(word.replace(".", ""), word) for word in rest.split())
    return f"{value:.10g}{unit}" if unit and rest not in counted else value


_AGREEMENT = list_names("""
    answer_agreement answer_rival answer_entropy log_n_alternatives
    numbers_agreement numbers_all_agree has_new_numbers
    results_agreement results_all_agree has_results words_agreement
    numbers_agreement_above
""")
_split_sentences = re.compile(
    r"[.!?:;s](?:(?<=[.!?:;])(?= |$)|(?<=\bs)tep \d{1,9})"
).split


@settings
class AgreementFeatures(OptionalColumns):
    r"""Agreement of each claim with alternative answers to the same question (``alternatives``).

    Texts are cleaned and numbers are extracted as in `TextFeatures`. A number is *new* if it does
    not occur in the question. *Results* are the right-hand side values of equations.

    ===========================  ======================================================
    column                       value for claim v
    ===========================  ======================================================
    ``answer_agreement``         proportion of alternatives with the same final answer
    ``answer_rival``             proportion of alternatives with the most common other answer
    ``answer_entropy``           entropy of the final answers, including that of this answer
    ``log_n_alternatives``       log1p of the number of alternatives
    ``numbers_agreement``        mean proportion of alternatives that contain a new number of v
    ``numbers_all_agree``        proportion of alternatives that contain all new numbers of v
    ``has_new_numbers``          1 if v has a new number
    ``results_agreement``        mean proportion of alternatives that contain a result of v
    ``results_all_agree``        proportion of alternatives that contain all results of v
    ``has_results``              1 if v has a result
    ``words_agreement``          mean word overlap with the closest sentence of an alternative
    ``numbers_agreement_above``  smallest ``numbers_agreement`` among v and its ancestors
    ===========================  ======================================================

    The word overlap is the Jaccard index of the words with at least four letters, averaged over
    the alternatives. In ``numbers_agreement_above``, claims without new numbers are ignored.

    If a comparison is impossible because there are no alternatives, no final answer, no new
    numbers or no results, proportions are set to 0.5, and ``answer_rival``, ``answer_entropy``
    and ``words_agreement`` are set to 0. In the first three columns, alternatives without a final
    answer are ignored. Empty alternatives are always ignored.

    The final answer is the text after the last ``\boxed{``, "####" or "the answer is". If the
    question has options, it may also follow ``Choice_``, and a single letter is the letter of an
    option. If a text contains no marker, the final answer is the last number.

    A final answer is compared as a value if it is a single number, fraction or product
    (``\frac{3}{4}`` equals 0.75, "$1,200" equals "1200 dollars", "50%" equals 50). The words after
    a value must be equal too ("5 km" equals "5 kilometers", but not "5 miles" or "5"). Only the
    word after "how many" in the question makes no difference: if the question is "How many eggs are
    left?", "5 eggs" equals "5". Other final answers, such as dates, ranges, bounds ("at least 5")
    and numbers with a remark ("2 (mod 5)"), are compared as texts without markup or spaces.
    Citations such as "[1]" after a final answer are ignored.

    Parameters
    ----------
    answer : callable, optional
        Function ``answer(text)`` that returns the final answer in a text as a str, or None if
        there is none. The function is called with each unchanged alternative, and with the claims
        of each problem joined by line breaks.
    optional : bool, default=False
        If True and no problem seen during `fit` has alternatives, no columns are added and no
        error is raised. `reasoning_features` sets ``optional=True``.

    Attributes
    ----------
    used_ : bool
        Whether the transformer adds columns.

    Raises
    ------
    ValueError
        If the alternatives of a problem are unknown (None), if a claim has no text, or if
        ``answer`` returns something other than a str or None. An empty tuple means that there are
        no alternatives.

    Notes
    -----
    The alternatives are part of the problem. Sample the same number of alternatives in the
    same way for calibration and prediction. The comparison is limited to 64 different numbers per
    claim, and to 200 results and 200 sentences per alternative.

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
    field = "alternatives"
    columns = _AGREEMENT

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        # maximum number of cached texts (answers to the same question share their alternatives)
        read = lru_cache(1024)(partial(_Reading, self.answer))
        rows = []
        for (problem, texts), given in zip(
            list_texts(batch),
            batch.alternatives,  # type: ignore[arg-type]  # The batch has been validated.
            strict=True,
        ):
            known = read_question(problem).known
            asked = bool(_read_options(problem)), tuple(_find_counted(problem or ""))
            others = [read(text, *asked) for text in given if text.strip()]
            own = _conclude(self.answer, "\n".join(texts), *asked) if others else None
            of_answer = _compare_answers(own, [other.answer for other in others])
            rows += [
                (*of_answer, *_compare_claim(read_claim(text), known, others))
                for text in texts
            ]
        table = np.array(rows, dtype=float).reshape(-1, len(_AGREEMENT) - 1)
        share, _, has_new_numbers = table[:, 4:7].T
        agreement = np.where(has_new_numbers, share, np.inf)
        lowest = pass_on(np.minimum, agreement, batch)
        return np.column_stack([table, np.where(np.isinf(lowest), 0.5, lowest)])


def _conclude(answer, text, has_options, counted):
    """Return the normalised final answer of a text, or None."""
    conclusion = answer(text) if answer else find_answer(text, has_options)
    if not isinstance(conclusion, str | None):
        raise ValueError(f"answer(text) must return a str or None, got {conclusion!r}")
    if conclusion is None:
        return None
    return normalise_answer(conclusion, has_options, counted)


class _Reading:
    """Final answer, numbers, results and sentences of an alternative answer."""

    def __init__(self, answer, text, has_options, counted):
        self.answer = _conclude(answer, text, has_options, counted)
        text = clean(text)
        self.results = find_results(split_clauses(text))
        self.numbers = find_all_numbers(text, text.split())
        # Later sentences are ignored.
        pieces = _split_sentences(text, maxsplit=200)[:200]
        self.sentences = {frozenset(LONG_WORD.findall(piece)) for piece in pieces}


def _compare_answers(own, answers):
    """Compute the columns that are equal for all claims in a problem."""
    counts = Counter(answer for answer in answers if answer is not None)
    total = counts.total()
    same = counts[own]
    rival = max((n for conclusion, n in counts.items() if conclusion != own), default=0)
    if own is not None:
        counts[own] += 1
    shares = [n / counts.total() for n in counts.values()]
    agreement = same / total if total and own is not None else 0.5
    entropy = -sum(share * log(share) for share in shares)
    return agreement, rival / max(total, 1), entropy, log1p(len(answers))


def _compare_claim(claim, known, others):
    """Compute the columns that compare one claim with the alternatives."""
    new = frozenset([x for x in claim.found if x not in known])
    numbers = _share(new, [alternative.numbers for alternative in others])
    results = _share(claim.results, [alternative.results for alternative in others])
    return *numbers, *results, _overlap(claim.long_words, others) if others else 0.0


def _share(values, sets):
    """Return the mean agreement, the proportion of full agreement, and whether values exist."""
    if not values or not sets:
        return 0.5, 0.5, bool(values)
    shares = [len(values & numbers) / len(values) for numbers in sets]
    return sum(shares) / len(sets), shares.count(1.0) / len(sets), True


def _overlap(words, others):
    """Compute the word overlap with the closest sentence, averaged over the alternatives."""
    closest = 0.0
    for other in others:
        overlaps = [
            k / (len(words) + len(sentence) - k)
            for sentence in other.sentences
            if (k := len(words & sentence))
        ]
        closest += max(overlaps, default=0.0)
    return closest / len(others)


# Pattern for "A: text", "(b) text" and "C. text" at the beginning of a line.
_find_options = re.compile(
    r"(?m)^\s{0,9}\(?([A-Ha-h])[).:]\s{1,9}(\S.{0,500})$"
).findall
_find_words = re.compile(r"[^\W_]+").findall
_DENIES = list_names("""
    not no cannot isn doesn don false incorrect incorrectly wrong eliminate
    eliminated exclude excluded rule ruled unlikely instead neither nor
""")


class OptionFeatures(OptionalColumns):
    """Word overlap and agreement of each claim with the options of a multiple-choice question.

    See `reasoning_features` for a description of the columns.

    Parameters
    ----------
    optional : bool, default=False
        If True and no question seen during `fit` has options, no columns are added.

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
    columns = list_names(
        "option_is_chosen option_words option_rival options_ruled_out option_agrees"
    )

    def _is_there(self, batch):
        return batch.problems is not None and any(map(_read_options, batch.problems))

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        table = np.zeros((batch.n_claims, len(self.columns)))
        for (problem, claims), rows in zip(
            list_texts(batch), batch.split(table), strict=True
        ):
            options = _read_options(problem)
            chosen = _find_letter("\n".join(claims)) if options else None
            if chosen in options:
                rows[:] = _compare_answer(claims, options, chosen)
        return table


def _read_options(question):
    """Return the words of each option, keyed by letter, if there are at least two options."""
    lines = _find_options(question or "")
    options = {letter.lower(): _list_words(text) for letter, text in lines}
    return options if len(options) > 1 else {}


def _list_words(text):
    return frozenset(_find_words(clean(text)))


def _find_letter(text):
    """Return the letter of the last option that a text names as its answer, or None."""
    letter = normalise_answer(find_answer(text, True) or "", True)
    return letter if isinstance(letter, str) and len(letter) == 1 else None


def _compare_answer(claims, options, chosen):
    words = [_list_words(text) for text in claims]
    last = _list_shares(options, frozenset().union(*words[-2:]))
    agrees = last.pop(chosen) - max(last.values())
    rows = []
    ruled_out = set()
    for text, claim_words in zip(claims, words, strict=True):
        shares = _list_shares(options, claim_words)
        best_option = max(shares, key=shares.__getitem__)
        # A claim refers to an option if it contains at least half of the words in the option.
        if shares[best_option] >= 0.5 and not claim_words.isdisjoint(_DENIES):
            ruled_out.add(best_option)
        mine = shares.pop(chosen)
        named = _find_letter(text) == chosen
        rival = max(shares.values())
        rows.append((named, mine, rival, len(ruled_out) / len(options), agrees))
    return rows


def _list_shares(options, words):
    """Return the proportion of each option's words that a text contains, keyed by letter."""
    return {k: len(o & words) / max(len(o), 1) for k, o in options.items()}
