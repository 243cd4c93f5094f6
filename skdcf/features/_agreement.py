"""How far other answers to the same question agree with a claim: no model, no label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, log1p
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from ..graphs import GraphBatch
from ..ops.ancestors import pass_on
from ._answers import find_answer, normalise_answer
from ._cleaning import clean_words, find_numbers
from ._equations import find_results, split_clauses
from ._reading import LONG_WORD, find_quantities, read_claim, read_question
from ._transformers import OptionalTexts

_PER_PROBLEM = (
    "answer_agreement",
    "answer_rival",
    "answer_entropy",
    "log_n_alternatives",
)
_PER_CLAIM = (
    "numbers_agreement",
    "numbers_all_agree",
    "has_new_numbers",
    "results_agreement",
    "results_all_agree",
    "has_results",
    "words_agreement",
)
# Share of right answers, and true claims kept at alpha 0.05 with two others over without.
_MEASURED = ((0.16, 1.0), (0.31, 1.0), (0.465, 1.85), (0.6, 2.4))
_NEUTRAL = 0.5  # share of alternatives where there is nothing to compare
_MOST_SENTENCES = 200  # of one alternative
_REMEMBERED = 1024  # texts: alternatives to one answer are often those to another
_SENTENCE = re.compile(r"[.!?:;](?= |$)|\bstep \d{1,9}")


class AgreementFeatures(OptionalTexts):
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

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **OptionalTexts._parameter_constraints,
        "answer": [callable, None],
    }

    field: ClassVar[str] = "alternatives"
    columns: ClassVar[tuple[str, ...]] = (
        *_PER_PROBLEM,
        *_PER_CLAIM,
        "numbers_agreement_above",
    )
    looks_ahead: ClassVar[frozenset[str]] = frozenset(_PER_PROBLEM[:3])

    def __init__(
        self,
        answer: Callable[[str], str | None] | None = None,
        *,
        optional: bool = False,
    ):
        super().__init__(optional=optional)
        self.answer = answer

    def _used_columns(self, batch: GraphBatch) -> np.ndarray:
        conclude = self.answer or find_answer
        read = lru_cache(_REMEMBERED)(lambda text: _Reading(text, conclude))
        rows = []
        for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
            question = None if batch.problems is None else batch.problems[i]
            known = read_question(question).known
            texts = () if batch.claims is None else batch.claims[a:b]
            others = [read(text) for text in batch.alternatives[i] if text.strip()]
            own = _conclude("\n".join(texts), conclude) if others else None
            per_problem = _compare_answers(own, [other.answer for other in others])
            rows += [
                (*per_problem, *_compare_claim(read_claim(text), known, others))
                for text in texts
            ]
        table = np.array(rows, dtype=float).reshape(
            batch.n_claims, len(self.columns) - 1
        )
        return np.column_stack([table, _find_lowest(batch, table)])


class AgreementWorth(NamedTuple):
    """What other answers to a question can be expected to be worth."""

    n_answers: int  # whose labels say whether they are right
    share_right: float  # of these, without a false claim
    interval: tuple[float, float]  # of that share, 95 %
    factor: tuple[float, float]  # true claims kept at alpha 0.05, at its two ends

    def __str__(self) -> str:
        low, high = self.factor
        return (
            f"{self.share_right:.0%} of {self.n_answers:,} answers are right (between "
            f"{self.interval[0]:.0%} and {self.interval[1]:.0%}). Where as many were right "
            f"in published data, two other answers multiplied the true claims kept at "
            f"alpha 0.05 by {low:.1f} to {high:.1f}"
        )


def estimate_agreement(y: Sequence[ArrayLike]) -> AgreementWorth:
    """Estimate from labels that exist what other answers would be worth.

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
    share of right answers: Mr-Ben's mathematics .16 and a science .31 (1.0, nothing), a
    science .48 (1.5) and Mr-Ben's chemistry .45 (2.2), as their mean, and biology .60
    (2.4). They scatter, and models other than those of Mr-Ben will, too.

    Examples
    --------
    >>> from skdcf.features import estimate_agreement
    >>> worth = estimate_agreement([[1, 1], [1], [1, 0, -1], [1]] * 50)
    >>> round(worth.share_right, 2), worth.factor[0] > 2
    (0.75, True)
    """
    labels = [np.asarray(row) for row in y]
    right = [
        0 if (row == 0).any() else 1 for row in labels if 0 in row or -1 not in row
    ]
    if not right:
        raise ValueError(
            "no answer can be told right or wrong: each has unknown labels and no false one"
        )
    counts = sum(right) + 0.5, len(right) - sum(right) + 0.5
    interval = tuple(betaincinv(*counts, (0.025, 0.975)).tolist())  # Jeffreys'
    factor = tuple(np.interp(interval, *np.array(_MEASURED).T).tolist())
    return AgreementWorth(len(right), float(np.mean(right)), interval, factor)


def _conclude(text, answer):
    """The final answer in the form that is compared, or None."""
    found = answer(text)
    if not isinstance(found, str | None):
        raise ValueError(f"answer(text) gave {found!r}, but must give a str or None")
    return None if found is None else normalise_answer(found)


class _Reading:
    """What an alternative says."""

    __slots__ = ("answer", "numbers", "results", "sentences")

    def __init__(self, text, conclude):
        self.answer = _conclude(text, conclude)
        text, words = clean_words(text)
        self.results = find_results(split_clauses(text))
        self.numbers = frozenset(find_numbers(text) + find_quantities(words))
        parts = _SENTENCE.split(text, maxsplit=_MOST_SENTENCES)[:_MOST_SENTENCES]
        self.sentences = {frozenset(LONG_WORD.findall(part)) for part in parts}


def _compare_answers(own, answers):
    """The columns of a whole problem, from final answers or None."""
    counts = Counter(answer for answer in answers if answer is not None)
    total, same = counts.total(), counts[own]
    rival = max((n for other, n in counts.items() if other != own), default=0)
    if own is not None:
        counts[own] += 1
    shares = [n / counts.total() for n in counts.values() if n]
    return (
        same / total if total and own is not None else _NEUTRAL,
        rival / max(total, 1),
        -sum(share * log(share) for share in shares),
        log1p(len(answers)),
    )


def _compare_claim(claim, known, others):
    """The columns of one claim, from the numbers of the question and the alternatives."""
    new = frozenset([x for x in claim.found if x not in known])
    return (
        *_share(new, [other.numbers for other in others]),
        *_share(claim.results, [other.results for other in others]),
        _overlap(claim.long_words, others) if others else 0.0,
    )


def _share(values, sets):
    """Mean share of the sets that hold a value, share that hold all, any value."""
    if not values or not sets:
        return _NEUTRAL, _NEUTRAL, bool(values)
    held = [len(values & some) / len(values) for some in sets]
    return sum(held) / len(sets), held.count(1.0) / len(sets), True


def _overlap(words, others):
    """Mean over the alternatives of the overlap with the closest sentence."""
    total, n_words = 0.0, len(words)
    for other in others:
        best = 0.0
        for sentence in other.sentences:
            both = len(words & sentence)
            if both:
                best = max(best, both / (n_words + len(sentence) - both))
        total += best
    return total / len(others)


def _find_lowest(batch, table):
    """The lowest share of new numbers among each claim and its ancestors."""
    share, has = table[:, len(_PER_PROBLEM)], table[:, len(_PER_PROBLEM) + 2]
    lowest = pass_on(np.minimum, np.where(has, share, np.inf), batch)
    return np.where(np.isinf(lowest), _NEUTRAL, lowest)
