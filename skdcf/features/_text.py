"""What a claim's text says, read against the question, its parents and the answer.

Every column is a formula over texts and edges: no model, no label, nothing learned.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from struct import Struct
from typing import ClassVar

import numpy as np

from ..graphs import GraphBatch
from ..ops.ancestors import pass_on, sum_ancestors
from ._cleaning import check_claim_texts
from ._reading import FLAGS, compare_claim, read_claim, read_question
from ._transformers import GraphTransformer, number_claims

# Filled claim by claim; the others follow from the whole batch.
_COUNTED = (
    "log_length",
    "n_numbers",
    "n_equalities",
    "new_numbers",
    "unsupported_numbers",
    "arithmetic_right",
    "arithmetic_wrong",
    "numbers_in_question",
    "numbers_in_premises",
    "words_in_premises",
    "uses_problem_data",
    *FLAGS,
)
# What the columns of the whole answer need of each claim.
_FACTS = ("wrong", "underived", "largest")
_pack = Struct(f"{len(_COUNTED) + len(_FACTS)}d").pack
_LOGARITHMIC = slice(0, 5)
COLUMNS = (
    "claim_index",
    "relative_position",
    "log_n_claims",
    "question_unused",
    "question_covered",
    "underived_numbers",
    "arithmetic_wrong_above",
    "log_magnitude",
    *_COUNTED,
)
_MOST_PARENTS = 64  # of one claim


class TextFeatures(GraphTransformer):
    """Length, position, numbers and arithmetic of each claim.

    Texts are cleaned first: lower case, white space collapsed, ``**``, ``$``, ``\\(``,
    ``\\)``, ``\\[``, ``\\]``, backticks and ``<<...>>`` removed, as are in front of a
    claim "Step k:", "#" and marks of lists before a word. So none of these changes a
    column. *Numbers* are numerals with thousands separators and decimals and, for lack
    of a numeral, words ("three", "dozen"); 0, 1, 2 and 100 do not count. The question
    also lends each of its numbers over 100, so that "40%" may return as 0.4. *Premises*
    are the question and the direct parents; an *earlier* claim is one that stands
    before v. ``Anc[v]`` is v with all its ancestors.

    ==========================  =======================================================
    column                      value for claim v
    ==========================  =======================================================
    ``claim_index``             position, from 0
    ``relative_position``       position / (n_claims - 1)
    ``log_n_claims``            log of the number of claims
    ``question_unused``         share of the question's numbers that no claim uses
    ``question_covered``        share of the question's numbers found in Anc[v]
    ``underived_numbers``       log1p of the sum over Anc[v] of unsupported numbers
                                (below) that an equality refutes or that are not one
                                operation (+ - * / square root) away from two numbers
                                of the premises, at most 2 a claim
    ``arithmetic_wrong_above``  log1p of the failing equalities of v's ancestors, at
                                most 2 a claim
    ``log_magnitude``           log10(1 + largest number) minus that of the question
    ``log_length``              log1p of the number of characters
    ``n_numbers``               log1p of the number of numerals
    ``n_equalities``            log1p of the number of signs "="
    ``new_numbers``             log1p of numbers neither in the question nor earlier
    ``unsupported_numbers``     log1p of numbers neither in the premises nor on one
                                side of an equality that holds and whose other side is
                                supported; results of a failing equality count
    ``arithmetic_right``        equalities that were checked and hold, at most 3
    ``arithmetic_wrong``        equalities that were checked and fail, at most 2
    ``numbers_in_question``     share of v's numbers in the question, 1 if it has none
    ``numbers_in_premises``     share of v's numbers in the premises, 1 if it has none
    ``words_in_premises``       share of v's words that occur in a direct parent
    ``uses_problem_data``       1 if a number of the question occurs in v
    ``defines``                 1 if v has a word such as "let", "denote"
    ``concludes``               1 if v has a word such as "therefore", "answer"
    ``hedges``                  1 if v has a word such as "about", "perhaps", "assume"
    ``contrasts``               1 if v has a word such as "not", "however", "but"
    ==========================  =======================================================

    Equalities are checked where both sides are arithmetic: plain or LaTeX, fractions,
    percent, roots, powers, thousands separators, units between the numbers, chains
    ``a = b = c``; a result may be rounded to the digits it shows. What cannot be read
    safely counts as neither right nor wrong.

    Raises
    ------
    ValueError
        If a claim has no text. A missing question counts as an empty one.

    Notes
    -----
    Time is linear in the length of the texts. What the last 8,192 different claims of up
    to 1,000 characters say is kept in mind (some 30 MB), so that transforming the same
    problems again, as cross-validation does, takes less than half the time. Of one text,
    64 different numbers, the words of the first 4,000 characters and 200 equalities are
    compared with others.

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

    looks_ahead: ClassVar[frozenset[str]] = frozenset(
        ("relative_position", "log_n_claims", "question_unused")
    )

    def _own_names(self) -> tuple[str, ...]:
        return COLUMNS

    def _check(self, batch: GraphBatch) -> None:
        check_claim_texts(batch)

    def _own_columns(self, batch: GraphBatch) -> np.ndarray:
        table, bits, asked = _read_problems(batch)
        counted, facts = np.split(table, [len(_COUNTED)], axis=1)
        counted[:, _LOGARITHMIC] = np.log1p(counted[:, _LOGARITHMIC])
        whole = _describe_answer(batch, facts.T, bits, asked.T)
        return np.column_stack([*whole, counted])


def _read_problems(batch):
    """Counts and facts of each claim, the question's numbers in it, and in the question."""
    rows, bits, asked = bytearray(), array("Q"), array("d")
    first, parents = _list_parents(batch)
    texts = () if batch.claims is None else batch.claims
    for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
        question = read_question(None if batch.problems is None else batch.problems[i])
        asked.extend((len(question.asked), question.largest))
        claims = [read_claim(text) for text in texts[a:b]]
        earlier = set(question.known)
        for v, claim in enumerate(claims, a):
            above = parents[first[v] : first[v + 1]][:_MOST_PARENTS]
            above = [claims[u - a] for u in above]
            row, asked_in_it = compare_claim(claim, question, above, earlier)
            rows += _pack(*row)
            bits.append(asked_in_it)
            earlier.update(claim.found)
    table = np.frombuffer(rows).reshape(-1, len(_COUNTED) + len(_FACTS))
    return table, np.array(bits), np.array(asked).reshape(-1, 2)


def _list_parents(batch):
    """Where the parents of each claim begin, and the parents."""
    parents, children = batch.edges.T
    first = np.searchsorted(children, np.arange(batch.n_claims + 1))
    return first.tolist(), parents.tolist()


def _describe_answer(batch, facts, bits, asked):
    """The columns that look at positions, ancestors and other claims."""
    (wrong, underived, largest), (n_asked, largest_asked) = facts, asked
    index = number_claims(batch)
    problem_of, size = batch.problem_of, batch.sizes[batch.problem_of]
    share = 1 / np.maximum(n_asked, 1)
    used = _count_bits(_reduce_segments(np.bitwise_or, bits, batch.offsets))
    covered = _count_bits(pass_on(np.bitwise_or, bits, batch))
    all_wrong = sum_ancestors(wrong, batch)
    all_underived = sum_ancestors(underived, batch)
    return (
        index,
        index / np.maximum(size - 1, 1),
        np.log(size),
        ((n_asked - used) * share)[problem_of],
        covered * share[problem_of],
        np.log1p(all_underived),
        np.log1p(all_wrong - wrong),
        np.log10(1 + largest) - np.log10(1 + largest_asked)[problem_of],
    )


def _reduce_segments(ufunc, values, offsets):
    """One value per segment; 0 for an empty one."""
    result = np.zeros(len(offsets) - 1, dtype=values.dtype)
    filled = np.diff(offsets) > 0
    if filled.any():
        result[filled] = ufunc.reduceat(values, offsets[:-1][filled])
    return result


def _count_bits(masks):
    return np.unpackbits(masks.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
