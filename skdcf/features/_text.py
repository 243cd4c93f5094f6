"""Features computed from the text of a claim, its question, its parents and its answer.

Every feature is computed from texts and edges with a fixed formula, without a model. The first
part of the module extracts facts from single texts. The second part compares a claim with its
premises.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import islice

import numpy as np

from .._arrays import optional_rows, reduce_segments, slices
from ..graphs import GraphBatch, pass_on
from ..ops.ancestors import sum_ancestors
from . import _cleaning as cleaning
from ._equations import check_equalities, find_results, split_clauses
from ._transformers import GraphTransformer


def _list_forms(words):
    """Return every word, alone and followed by each possible punctuation mark."""
    return frozenset(word + mark for word in words.split() for mark in ("", *",.:;"))


FLAGS = {
    "defines": _list_forms("let let's denote denotes denoted define defined suppose"),
    "concludes": _list_forms("therefore thus hence final finally answer"),
    "hedges": _list_forms("""
        about approximately approx assume assumes assumed assuming assumption
        probably perhaps maybe might likely roughly
    """),
    "contrasts": _list_forms(
        "not however but cannot can't don't doesn't isn't aren't didn't won't although"
    ),
}
_SPELLED = {w: n for w, n in cleaning.NUMBER_WORDS.items() if n not in cleaning.IGNORED}
_SPECIAL = _SPELLED.keys() | set().union(*FLAGS.values())
LONG_WORD = re.compile(r"[^\W\d_]{4,}")


class ClaimText:
    """Facts extracted from the text of a single claim."""

    def __init__(self, text):
        text = cleaning.clean(text)
        self.size = len(text)
        self._head = text[:4000]  # The rest is not read.
        self.words = frozenset(self._head.split())
        numbers = cleaning.find_numbers(text)
        self.n_numerals = len(numbers)
        self.n_equal = text.count("=")
        self._clauses = split_clauses(text)
        self.right, self.wrong = check_equalities(self._clauses)
        special = self.words & _SPECIAL
        numbers += find_quantities(special)
        self.flags = [not special.isdisjoint(flag) for flag in FLAGS.values()]
        self.found = _drop_repeats(numbers)

    @cached_property
    def results(self):
        """Return the right-hand side values of the equations."""
        return find_results(self._clauses)

    @cached_property
    def long_words(self):
        """Return the words of four letters or more."""
        return frozenset(LONG_WORD.findall(self._head))


def find_quantities(words):
    """Return the spelled-out numbers among the words, in alphabetical order."""
    return [_SPELLED[word] for word in sorted(_SPELLED.keys() & words)]


def find_all_numbers(text, words):
    """Return the numbers of a clean text and those that its words spell out."""
    return frozenset(cleaning.find_numbers(text) + find_quantities(words))


def read_claim(text):
    """Return the facts extracted from a text, with a cache for short texts."""
    return _read_short(text) if len(text) <= 1000 else ClaimText(text)


_read_short = lru_cache(8192)(ClaimText)  # A cached text takes about 4 KB.


class Question:
    """The numbers in a question, and each number divided by 100."""

    def __init__(self, text):
        text = cleaning.clean(text or "")
        asked = cleaning.find_numbers(text) + cleaning.find_spelled_numbers(text)
        # There are at most 63 numbers, so each number corresponds to a bit in a 64-bit integer.
        self.asked = _drop_repeats(asked)[:63]
        shares = ((k, round(q / 100, 9)) for k, q in enumerate(self.asked))
        self.bit_of = {share: 1 << k for k, share in shares if share}
        self.bit_of |= {q: 1 << k for k, q in enumerate(self.asked)}
        self.known = frozenset(self.bit_of)
        self.largest = max(self.asked, default=0.0)


def read_question(text):
    """Extract a question's numbers. Short questions are cached."""
    return _ask_short(text) if len(text or "") <= 1000 else Question(text)


_ask_short = lru_cache(1024)(Question)


def list_texts(batch):
    """Yield the question and the claims of each problem."""
    for i, rows in enumerate(slices(batch.offsets)):
        claims = () if batch.claims is None else batch.claims[rows]
        yield optional_rows(batch.problems, i), claims


def _drop_repeats(values):
    """Return the first 64 distinct numbers."""
    return list(dict.fromkeys(values))[:64]


def compare_claim(claim, question, above, earlier):
    """Return the columns of a claim, and a bit mask of the question's numbers that it contains.

    Each bit represents a number of the question, so the union over ancestors is a single
    operation.
    """
    numbers = claim.found
    asked_numbers = question.known
    words = claim.words
    premises = asked_numbers.union(*[u.found for u in above])
    shared = set().union(*[words & u.words for u in above])
    supported, refuted = _judge_numbers(claim, premises)
    loose = underived = in_question = in_premises = new = bits = 0
    for x in numbers:
        new += x not in earlier
        in_premises += x in premises
        if x in asked_numbers:
            in_question += 1
            bits |= question.bit_of[x]
        if x not in supported:
            loose += 1
            if underived < 2:
                underived += x in refuted or not _is_derived(x, premises)
    n = len(numbers)
    wrong = min(len(claim.wrong), 2)
    shares = (in_question / n, in_premises / n) if n else (1.0, 1.0)
    overlap = len(shared) / len(words) if words else 1.0
    row = (
        claim.size,
        claim.n_numerals,
        claim.n_equal,
        new,
        loose,
        min(len(claim.right), 3),
        wrong,
        *shares,
        overlap,
        in_question > 0,
        *claim.flags,
        wrong,
        underived,
        max(numbers, default=0.0),
    )
    return row, bits


def _judge_numbers(claim, premises):
    """Return the numbers supported by premises or valid equalities, and the refuted results."""
    supported = {*premises, *cleaning.IGNORED}
    for sides in claim.right:
        left, right = [[x for x in side if type(x) is float] for side in sides]
        if supported.issuperset(left):
            supported.update(right)
        elif supported.issuperset(right):
            supported.update(left)
    refuted = set().union(*[min(sides[::-1], key=len) for sides in claim.wrong])
    return supported - refuted, refuted


def _is_derived(x, known):
    """Return whether a single operation on known numbers yields x."""
    operands = list(islice(known, 64))
    # A number x is derived if it is b - a, a + b, b / a, a * b or the square root of a.
    results = [b for a in operands for b in (x + a, x - a, x * a, x / a)]
    if x * x in operands or not known.isdisjoint(results):
        return True
    if x % 1 == 0 and not any([a % 1 for a in operands]):
        return False
    # Sums of decimals are inexact, so numbers are compared in millionths.
    millionths = {int(b * 1e6 + 0.5) for b in known}
    return not millionths.isdisjoint([int(b * 1e6 + 0.5) for b in results])


# Columns that are computed for each claim separately.
_COUNTED = cleaning.list_names("""
    log_length n_numbers n_equalities new_numbers unsupported_numbers arithmetic_right
    arithmetic_wrong numbers_in_question numbers_in_premises words_in_premises
    uses_problem_data
""") + tuple(FLAGS)
_WHOLE = cleaning.list_names("""
    claim_index relative_position log_n_claims question_unused question_covered
    underived_numbers arithmetic_wrong_above log_magnitude
""")


class TextFeatures(GraphTransformer):
    """Features that describe the length, position, numbers and arithmetic of each claim.

    Texts are converted to lower case, whitespace is normalised, and ``**``, ``$``, ``\\(``,
    ``\\)``, ``\\[``, ``\\]``, backticks and ``<<...>>`` are removed. At the start of a claim,
    "Step k:", "#" and list markers before a word are also removed. The removed characters do not
    affect any column. *Numbers* are numerals, which may contain thousands separators and decimals,
    and spelled-out numbers such as "three" and "dozen". The numbers 0, 1, 2 and 100 are ignored.
    The question's numbers include each number divided by 100, so "40%" matches 0.4. The *premises*
    of a claim are the question and its direct parents. *Earlier* claims precede v in the answer.
    ``Anc[v]`` contains v and all its ancestors.

    ==========================  =======================================================
    column                      value for claim v
    ==========================  =======================================================
    ``claim_index``             position, from 0
    ``relative_position``       position / (n_claims - 1)
    ``log_n_claims``            log of the number of claims
    ``question_unused``         proportion of the question's numbers that no claim uses
    ``question_covered``        proportion of the question's numbers found in Anc[v]
    ``underived_numbers``       log1p of the number of underived numbers in Anc[v]
    ``arithmetic_wrong_above``  log1p of the number of wrong equalities of v's ancestors
    ``log_magnitude``           log10(1 + largest number) minus that of the question
    ``log_length``              log1p of the number of characters
    ``n_numbers``               log1p of the number of numerals
    ``n_equalities``            log1p of the number of "=" signs
    ``new_numbers``             log1p of the number of new numbers
    ``unsupported_numbers``     log1p of the number of unsupported numbers
    ``arithmetic_right``        number of equalities that are correct, at most 3
    ``arithmetic_wrong``        number of equalities that are wrong, at most 2
    ``numbers_in_question``     proportion of v's numbers in the question, 1 if it has none
    ``numbers_in_premises``     proportion of v's numbers in the premises, 1 if it has none
    ``words_in_premises``       proportion of v's words that occur in a direct parent
    ``uses_problem_data``       1 if a number of the question occurs in v
    ``defines``                 1 if v has a word such as "let", "denote"
    ``concludes``               1 if v has a word such as "therefore", "answer"
    ``hedges``                  1 if v has a word such as "about", "perhaps", "assume"
    ``contrasts``               1 if v has a word such as "not", "however", "but"
    ==========================  =======================================================

    A number is *new* if it is neither in the question nor in an earlier claim. A number is
    *supported* if it is in the premises, or on one side of a correct equality whose other side is
    supported. Results of a wrong equality are not supported. An unsupported number is *underived*
    if an equality refutes it, or if it cannot be obtained from the premises by a single addition,
    subtraction, multiplication, division or square root. At most two underived numbers and two
    wrong equalities are counted per claim.

    An equality is checked if both sides are arithmetic expressions, in plain notation or LaTeX,
    which may contain fractions, percentages, roots, powers, thousands separators and units
    between the numbers. Chains of equalities, such as ``a = b = c``, are also checked. A result
    may be rounded to the number of digits shown. An equality that cannot be parsed reliably is
    ignored.

    Raises
    ------
    ValueError
        If a claim has no text. A missing question is treated as an empty text.

    Notes
    -----
    The computing time is linear in the length of the texts. The last 8,192 different claims of
    up to 1,000 characters are cached (about 30 MB), so transforming the same problems again,
    as in cross-validation, takes less than half the time. At most 64 different numbers, the
    words in the first 4,000 characters, and 200 equalities of a text are compared.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.features import TextFeatures
    >>> graph = ReasoningGraph.from_parents(
    ...     [[], [0]],
    ...     claims=["Step 1: 3 pens cost 3 * $4 = $12.", "With tax: $12 + $5 = $18."],
    ...     problem="What do 3 pens at $4 cost?",
    ... )
    >>> batch = TextFeatures().fit_transform([graph])
    >>> for name in "arithmetic_right", "arithmetic_wrong", "unsupported_numbers":
    ...     print(name, batch.features[:, batch.feature_names.index(name)].round(2))
    arithmetic_right [1. 0.]
    arithmetic_wrong [0. 1.]
    unsupported_numbers [0.  1.1]
    """

    def own_names(self) -> tuple[str, ...]:
        return _WHOLE + _COUNTED

    def _check(self, batch):
        cleaning.check_claim_texts(batch)

    def own_columns(self, batch: GraphBatch) -> np.ndarray:
        table, bits, asked = _read_problems(batch)
        counted, facts = np.split(table, [len(_COUNTED)], axis=1)
        counted[:, :5] = np.log1p(counted[:, :5])
        return np.column_stack(
            [*_describe_answer(batch, facts.T, bits, *asked.T), counted]
        )


def _read_problems(batch):
    """Return the counts per claim, bit masks of the question's numbers, and totals per question."""
    rows = []
    bits = []
    asked = []
    edges = batch.position[batch.edges].tolist()
    for (problem, texts), place in zip(
        list_texts(batch), slices(batch.edge_offsets), strict=True
    ):
        question = read_question(problem)
        asked.append((len(question.asked), question.largest))
        claims = [*map(read_claim, texts)]
        parents = [[] for _ in claims]
        for u, v in edges[place]:
            parents[v].append(claims[u])
        earlier = set(question.known)
        for claim, above in zip(claims, parents, strict=True):
            # At most 64 parents are compared.
            row, asked_in_it = compare_claim(claim, question, above[:64], earlier)
            rows.append(row)
            bits.append(asked_in_it)
            earlier.update(claim.found)
    table = np.array(rows, float).reshape(-1, len(_COUNTED) + 3)
    return table, np.array(bits, np.uint64), np.array(asked, float).reshape(-1, 2)


def _describe_answer(batch, facts, bits, n_asked, largest_asked):
    """Return the columns that depend on positions, ancestors and other claims."""
    wrong, underived, largest = facts
    problem_of = batch.problem_of
    size = batch.sizes[problem_of]
    share = 1 / np.maximum(n_asked, 1)
    used = _count_bits(reduce_segments(np.bitwise_or, bits, batch.offsets, 0))
    covered = _count_bits(pass_on(np.bitwise_or, bits, batch))
    errors = sum_ancestors(underived, batch), sum_ancestors(wrong, batch) - wrong
    return (
        batch.position,
        batch.position / np.maximum(size - 1, 1),
        np.log(size),
        ((n_asked - used) * share)[problem_of],
        covered * share[problem_of],
        *map(np.log1p, errors),
        np.log10(1 + largest) - np.log10(1 + largest_asked)[problem_of],
    )


def _count_bits(masks):
    return np.unpackbits(masks.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
