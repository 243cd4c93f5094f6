"""Find and check arithmetic equalities in a text.

A text is split into clauses at punctuation marks, and each clause is split into sides at the
equality signs. Only the expressions next to an equality sign are evaluated, such as ``3 * 5`` and
``15`` in "so 3 * 5 = 15 eggs in all". Units between numbers are skipped. An ambiguous equality,
for example one that contains a variable, a function, or a word instead of a number, is not
checked, because a false alarm costs more than a missed error. New rules should only be added if
they improve the results on published data.
"""

import re
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from operator import eq

from ._cleaning import NUMBER, list_names, read_numeral
from ._expression import UNKNOWN, evaluate, is_bare, judge_equality, rewrite_plainly

# Two placeholders replace text that is not arithmetic. A side that contains UNKNOWN cannot be
# parsed. A side is split at each WORD, such as the words around "3 * 5" in "so 3 * 5 eggs".
WORD = "word"
_UNREADABLE = [UNKNOWN]

# A clause ends at punctuation, unless the punctuation is part of a number or an ellipsis.
_find_clauses = re.compile(
    r"[^.,;:?]+(?:(?:[.,](?=\d)|\.(?=\.)|(?<=\.)\.)[^.,;:?]*)*\??"
).findall
# Each token includes the preceding space, which distinguishes "5-digit" from "5 - 3".
_find_tokens = re.compile(
    rf" ?(?:{NUMBER}|[^\W\d_]+(?:(?: |['’-])[^\W\d_]+)*|\\[a-z]+|[^\s\d])"  # noqa: RUF001
).findall
_split_sides = re.compile("[=≈]").split
_has_digit = re.compile(r"\d").search
_find_units = re.compile("[0-9] ?([a-z]+)").findall
_SYMBOLS = frozenset("-+*/^(){}[]%!√∁")
_OPERATORS = frozenset("+-*/^Crm")

# Units and other suffixes that may follow a number without a space.
_UNITS = list_names("""
    km cm mm m kg g mg lb lbs oz ml l gb mb tb kb mph kmh h hr hrs min mins s sec kw
    kwh am pm ft in st nd rd th
""")
# Names of units. A semicolon separates kinds of units, and a slash separates the names of one unit.
# Units that are also common words, such as "in", are omitted.
# The dollar sign is removed from texts, so the canonical name of dollars is empty.
_KINDS = """
    second/seconds/sec minute/minutes/min/mins hour/hours/hr/hrs/h day/days week/weeks
    month/months year/years;
    am pm hour/hours;
    bc/bce ad/ce;
    \u00b0c \u00b0f;
    inch/inches foot/feet/ft yard/yards mile/miles mm cm meter/meters/m kilometer/kilometers/km;
    mg gram/grams/g kilogram/kilograms/kg ounce/ounces/oz pound/pounds/lb/lbs ton/tons;
    ounce/ounces/oz cup/cups pint/pints quart/quarts gallon/gallons ml liter/liters/l;
    dozen hundred thousand million billion trillion;
    /dollar/dollars/usd \u20ac/euro/euros/eur
"""
_UNIT_OF = [
    {form: unit for unit in kind.split() for form in unit.split("/")}
    for kind in _KINDS.split(";")
]
#: The canonical name of each unit of measurement, keyed by each of its names.
UNITS = {
    form: unit.partition("/")[0] for names in _UNIT_OF for form, unit in names.items()
}
#: Words that change the value of their neighbours. For example, "5 more than 3" does not mean 5.
CHANGING = frozenset(
    list_names("""
        than half twice double triple third quarter thirds quarters percent square
        squared cube cubed root times plus minus less more hundred thousand million
        billion dozen base mod modulo sin cos tan log ln pi choose by from remainder
    """)
)


def split_clauses(text):
    """Return the clauses of a clean text that contain an equality sign, in plain notation.

    Parameters
    ----------
    text : str
        A clean text.

    Returns
    -------
    clauses : list of str
        The clauses. The list is empty if the text contains no equality sign.
    """
    if "=" not in text and "≈" not in text and "\\approx" not in text:
        return []
    clauses = _find_clauses(rewrite_plainly(text))
    return [clause for clause in clauses if "=" in clause or "≈" in clause]


def find_results(clauses):
    """Return the right-hand side values of equations.

    Parameters
    ----------
    clauses : list of str
        The clauses, as returned by `split_clauses`.

    Returns
    -------
    right_hand_sides : frozenset of float
        The values of the first 200 right-hand sides that can be parsed.
    """
    sides = (side for c in clauses for side in _split_sides(c)[1:])
    values = [
        evaluate(read_side(side)[0]) for side in islice(sides, 200) if _has_digit(side)
    ]
    return frozenset(round(value, 6) for value in values if value is not None)


def check_equalities(clauses):
    """Separate valid equalities from wrong equalities.

    Parameters
    ----------
    clauses : list of str
        The clauses, as returned by `split_clauses`.

    Returns
    -------
    right, wrong : list of (list, list)
        The valid equalities and the wrong equalities, each given as a pair of expressions.
    """
    right = []
    wrong = []
    for left, follow, rounded, sides in islice(_read_equalities(clauses), 200):
        holds = judge_equality(left, follow, rounded)
        if holds:
            right.append((left, follow))
        elif holds is not None and not _may_convert(*sides):
            wrong.append((left, follow))
    return right, wrong


def _read_equalities(clauses):
    """For each equality sign, yield both expressions, whether it means "about", and both texts."""
    name = last = None
    for clause in clauses:
        rounded = "≈" in clause
        first, *between, end = _split_sides(clause, maxsplit=200)
        left = _UNREADABLE
        previous = first
        read = first
        # If the first side of the equation consists only of the name, the equation begins a new
        # sentence about the same quantity.
        if first.strip() == name:
            left = _drop_bare(read_side(last)[0])
            read = last
        elif _has_digit(first):
            left = read_side(first)[1]
        for side in between:
            head, tail = _read_between(previous, side)
            yield left, head, rounded, (read, side)
            left = tail
            previous = side
            read = side
        name = first.strip()
        last = end.removesuffix("?")
        if left is not _UNREADABLE and last is end and _has_digit(last):
            yield left, read_side(last)[0], rounded, (read, last)


def _read_between(before, side):
    """Return the expressions at both ends of a side, without the name of the next quantity."""
    if not _has_digit(side):
        return _UNREADABLE, _UNREADABLE
    n = _measure_shared_ending(before, side)
    if not n:
        return read_side(side)
    side = side.rstrip()
    head, _ = read_side(side[: len(side) - n].rstrip(" -"))
    return head, _drop_bare(head)


def _measure_shared_ending(one, other):
    """Return the length of the name that both sides end with, or 0 if there is none.

    The two lines "cost = 3 * 5" and "cost = 15" state ``3 * 5 = 15``. When the line break is
    removed, the name on the second line follows the value on the first line.
    """
    if other.rstrip()[-2:] != one.rstrip()[-2:]:
        return 0
    one = one.split()
    other = other.split()
    n = sum(takewhile(bool, map(eq, reversed(one), reversed(other))))
    if n < len(one) and one[-1 - n] in _OPERATORS:
        # In "6 + x = 2, x = 2 - 6", the shared x follows an operator and is not a name.
        return 0
    # In "3 * 5 miles, distance = 15 miles", the unit precedes the name.
    end = len(other) - n
    before = other[:end]
    unit = sum(takewhile(bool, map(str.isalpha, reversed(before))))
    # A word in a name must end with a letter. Up to three words of a unit may precede the name.
    # After a unit, a single word that both sides share is a name only if it is the whole left-hand
    # side.
    words = other[end:]
    is_whole = n == len(one) or not unit
    named = any(w[-1].isalpha() for w in words) and unit <= 3 and (is_whole or n > 1)
    return len(" ".join(words)) if named else 0


def _may_convert(one, other):
    """Return whether the sides may agree after unit conversion, as in 2 * 30 minutes = 1 hour."""
    words = _find_units(f"{one} {other}")
    if "cents" in words or "cent" in words:
        return True  # The dollar sign has already been removed.
    return any(len({unit.get(w) for w in words} - {None}) > 1 for unit in _UNIT_OF)


def _drop_bare(items):
    """Return the items if they form a calculation, otherwise the sentinel _UNREADABLE.

    A single number may be the value of a named quantity, and the same name may be used for other
    quantities.
    """
    return _UNREADABLE if is_bare(items) else items


def read_side(side):
    """Return the expressions at the head and at the tail of a side."""
    # Maximum number of characters in a side that is interpreted as arithmetic.
    if len(side) > 1000:
        return _UNREADABLE, _UNREADABLE
    return _read_short(side)


@lru_cache(4096)
def _read_short(side):
    """Parse a side token by token, and return the expressions at both ends.

    The meaning of a token depends on the preceding value or space, and on the next token. Two
    adjacent values are separated by UNKNOWN.
    """
    items = []
    previous = ""
    for token, after in pairwise([*_find_tokens(side), ""]):
        text = token.lstrip(" ")
        first = text[0]
        if first.isdecimal():
            if _is_value(items):
                items.append(UNKNOWN)
            items.append(read_numeral(text))
        elif first.isalpha():
            _append_prose(items, previous, token, after)
        elif first in _SYMBOLS:
            _append_symbol(items, text, token == text, after)
        else:
            items.append(UNKNOWN)
        previous = text
    return _cut_ends(items)


def _append_prose(items, before, token, after):
    """Parse words as an operator, as a unit to skip, or as the end of the expression."""
    words = token.split()
    glued = token[0] != " "
    has_value = _is_value(items)
    if has_value:
        spoken = _find_spoken_operator(items, words, glued, after)
        if spoken:
            items.append(spoken)
            return
    if before == "/" and glued and len(token) > 1:
        items.pop()  # The slash in "km/h" and "5/hour" belongs to a unit.
        return
    share = has_value and words[0] == "of"  # "30% of the total" is a proportion.
    touches = glued and before[-1:].isdecimal()
    if share or _is_variable(words, touches) or not CHANGING.isdisjoint(words):
        items += (UNKNOWN, WORD, UNKNOWN)
    elif not (has_value and len(words) <= 4 and _closes(after)):
        items.append(WORD)
    elif not after and (len(words) > 2 or is_bare(_cut_tail(items))):
        # The sides of "3 hours = 3 * 60 minutes" have different units.
        items += (WORD, UNKNOWN)


def _is_value(items):
    """Return whether the items end with a value, which an operator may follow."""
    return bool(items) and (isinstance(items[-1], float) or items[-1] in (")", "%"))


def _is_variable(words, touches):
    """Return whether words contain letters that denote numbers, such as "2lw" and "n"."""
    if touches and words[0] not in _UNITS:
        return True  # An example is "2lw".
    return any([len(w) == 1 and w not in "ai" for w in words])


def _closes(after):
    """Return whether an operator, a bracket, or the end of the side follows."""
    return not after or after.lstrip(" ")[0] in "+-*/)]}"


def _find_spoken_operator(items, words, glued, after):
    """Return the operator that a word between two numbers denotes, or None."""
    follow = after.lstrip(" ")[:1]
    if not follow.isdecimal() and follow not in {*"([{√"}:
        return None
    if words == ["of"] and (items[-1] == "%" or "/" in items[-4:]):
        return "*"
    spoken = {
        "x": "*",
        "times": "*",
        "multiplied by": "*",
        "divided by": "/",
        "plus": "+",
        "minus": "-",
    }
    for n in (1, 2):
        symbol = spoken.get(" ".join(words[-n:]))
        unit = words[:-n]
        if symbol and 1 not in map(len, unit) and CHANGING.isdisjoint(unit):
            # "5x3", "5 x 3" and "5 m x 3" are multiplications, but "5x (3)" is a product
            # with a variable.
            even = (glued and not unit) == (after[0] != " ")
            return symbol if words[-1] != "x" or even else None
    return None


def _append_symbol(items, text, glued, after):
    """Append the operator that a sign denotes, given the spaces and tokens around it.

    A bracket immediately after a value denotes multiplication, as in 3(4). A bracket after a space
    starts a remark. A minus between spaces is replaced with "m", because it may be a list marker.
    A minus before a word is a hyphen. "!" denotes a factorial if an operator, a bracket or the
    end of the side follows, and is punctuation otherwise.
    """
    if text in "([{√":
        if _is_value(items):
            items += ("*",) if glued and text != "{" else (WORD, UNKNOWN)
        items.append("r" if text == "√" else "(")
    elif text in ")]}":
        if items[-2:] == ["(", WORD]:
            del items[-2:]  # The brackets in "3 (breakfast)" contain only a remark.
        else:
            items.append(")")
    elif text == "-":
        if after[:1].isalpha() and len(after) > 1:
            return  # An example is "5-digit".
        items.append("m" if after[:1] == " " and (not glued or not items) else "-")
    elif text != "!" or _closes(after):
        items.append("C" if text == "∁" else text)


def _cut_ends(items):
    """Return the expressions at the beginning and at the end of a side."""
    if WORD not in items:
        return items, items
    first = items.index(WORD)
    head = items[:first]
    tail = _cut_tail(items)
    if _skip_words(items[first:]) in _OPERATORS:
        head = _UNREADABLE
    if (
        is_bare(tail)
        or tail[0] in _OPERATORS
        or _skip_words(items[len(items) - len(tail) - 1 :: -1]) in _OPERATORS
    ):
        tail = _UNREADABLE
    return head, tail


def _skip_words(items):
    return next((item for item in items if item != WORD), None)


def _cut_tail(items):
    """Return the items after the last word."""
    if WORD not in items:
        return items
    return items[len(items) - items[::-1].index(WORD) :]
