"""What one claim says: its numbers and words, and how they agree with its premises."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import islice

from ._cleaning import (
    IGNORED,
    NUMBER_WORDS,
    clean,
    clean_words,
    find_numbers,
    find_spelled_numbers,
)
from ._equations import check_equalities, find_results, split_clauses

_MOST_NUMBERS = 64  # different ones of one text that are compared with others
_HEAD = 4000  # characters whose words are compared
_REMEMBERED = 1000  # characters; what longer texts say is not kept in mind


def _list_forms(words):
    """The words as they stand in a text, with the punctuation that may follow."""
    return frozenset(word + mark for word in words.split() for mark in ("", *",.:;"))


FLAGS = {
    "defines": _list_forms("let let's denote denotes denoted define defined suppose"),
    "concludes": _list_forms("therefore thus hence final finally answer"),
    "hedges": _list_forms(
        "about approximately approx assume assumes assumed assuming assumption "
        "probably perhaps maybe might likely roughly"
    ),
    "contrasts": _list_forms(
        "not however but cannot can't don't doesn't isn't aren't didn't won't although"
    ),
}
_NO_FLAG = [False] * len(FLAGS)
_SPELLED = {word: n for word, n in NUMBER_WORDS.items() if n not in IGNORED}
_SPECIAL = _SPELLED.keys() | set().union(*FLAGS.values())
LONG_WORD = re.compile(r"[^\W\d_]{4,}")


class ClaimText:
    """What can be read from the text of a claim alone."""

    def __init__(self, text: str):
        text, words = clean_words(text)
        self.size = len(text)
        self._head = text[:_HEAD]
        if self.size > _HEAD:
            words = self._head.split()
        self.words = frozenset(words)
        found = find_numbers(text)
        self.n_numerals = len(found)
        self.n_equal = text.count("=")
        self._clauses = split_clauses(text)
        self.right, self.wrong = check_equalities(self._clauses)
        self.flags = _NO_FLAG
        special = self.words & _SPECIAL
        if special:
            found += find_quantities(special)
            self.flags = [not special.isdisjoint(flag) for flag in FLAGS.values()]
        self.found = _drop_repeats(found)

    @cached_property
    def results(self) -> frozenset[float]:
        """Values of the right-hand sides of its equations."""
        return find_results(self._clauses)

    @cached_property
    def long_words(self) -> frozenset[str]:
        """Its words of four letters or more."""
        return frozenset(LONG_WORD.findall(self._head))


def find_quantities(words):
    """Numbers that are spelled out among the words, in the order of the alphabet."""
    return [_SPELLED[word] for word in sorted(_SPELLED.keys() & words)]


def read_claim(text: str) -> ClaimText:
    """What a text says; short ones are remembered, as each split transforms them again."""
    return _read_short(text) if len(text) <= _REMEMBERED else ClaimText(text)


_read_short = lru_cache(8192)(ClaimText)  # some 4 KB each


class Question:
    """The numbers of a question, and each over 100."""

    __slots__ = ("asked", "bit_of", "known", "largest")

    def __init__(self, text):
        text = clean(text or "")
        asked = find_numbers(text) + find_spelled_numbers(text)
        self.asked = _drop_repeats(asked)[:63]  # one bit of a number for each
        shares = ((k, round(q / 100, 9)) for k, q in enumerate(self.asked))
        self.bit_of = {share: 1 << k for k, share in shares if share}
        self.bit_of |= {q: 1 << k for k, q in enumerate(self.asked)}
        self.known = frozenset(self.bit_of)
        self.largest = max(self.asked, default=0.0)


def read_question(text: str | None) -> Question:
    """The numbers of a question; of a short one they are remembered."""
    return _ask_short(text) if len(text or "") <= _REMEMBERED else Question(text)


_ask_short = lru_cache(1024)(Question)


def _drop_repeats(values):
    if len(values) < 2:
        return values
    return list(dict.fromkeys(values))[:_MOST_NUMBERS]


def compare_claim(claim, question, above, earlier):
    """The counted columns and the facts of one claim, and the question's numbers in it.

    The latter are bits of one number, so that a union over ancestors is one operation.
    """
    found, known, words = claim.found, question.known, claim.words
    if above:
        premises = known.union(*[u.found for u in above])
        others = [u.words for u in above]
        shared = words & (others[0].union(*others[1:]) if others[1:] else others[0])
    else:
        premises, shared = known, ()
    supported, refuted = _judge_numbers(claim, premises)
    loose = underived = in_question = in_premises = new = bits = 0
    for x in found:
        new += x not in earlier
        in_premises += x in premises
        if x in known:
            in_question += 1
            bits |= question.bit_of[x]
        if x not in supported:
            loose += 1
            if underived < 2:
                underived += x in refuted or not _is_derived(x, premises)
    n, wrong = len(found), min(len(claim.wrong), 2)
    return (
        claim.size,
        claim.n_numerals,
        claim.n_equal,
        new,
        loose,
        min(len(claim.right), 3),
        wrong,
        in_question / n if n else 1.0,
        in_premises / n if n else 1.0,
        len(shared) / len(words) if words else 1.0,
        in_question > 0,
        *claim.flags,
        wrong,
        underived,
        max(found) if n else 0.0,
    ), bits


def _judge_numbers(claim, premises):
    """Numbers that premises and checked equalities support; results that fail."""
    if not claim.right and not claim.wrong:
        return premises, ()
    supported = set().union(premises, IGNORED)
    for sides in claim.right:
        left, right = [[x for x in side if type(x) is float] for side in sides]
        if supported.issuperset(left):
            supported.update(right)
        elif supported.issuperset(right):
            supported.update(left)
    if not claim.wrong:
        return supported, ()
    refuted = set().union(*[min(sides[::-1], key=len) for sides in claim.wrong])
    return supported - refuted, refuted


def _is_derived(x, known):
    """Whether x is one operation away from known numbers."""
    operands = list(islice(known, _MOST_NUMBERS))
    for a in operands:
        # x = b - a, a + b, b / a, a * b, square root of a
        if x + a in known or x - a in known or x * a in known or x / a in known:
            return True
        if x * x == a:
            return True
    if x % 1 == 0 and not any([a % 1 for a in operands]):
        return False
    # Sums of decimals are not exact, so that they are compared in millionths.
    millionths = {int(b * 1e6 + 0.5) for b in known}
    for a in operands:
        if (
            int((x + a) * 1e6 + 0.5) in millionths
            or int((x - a) * 1e6 + 0.5) in millionths
            or int(x * a * 1e6 + 0.5) in millionths
            or int(x / a * 1e6 + 0.5) in millionths
        ):
            return True
    return False
