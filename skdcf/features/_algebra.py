"""Equations with variables in a text: what they say, and where both sides agree.

Sides are read as in `_equations`, but single letters count as variables: of a side
counts what touches the sign of equality, and what could mean something else makes it
unreadable. Expressions are evaluated by `_expression.evaluate` at a few fixed points, so
that nothing of a text is ever run, and each bound below limits what a text can cost.
"""

import random
import re
from functools import lru_cache
from itertools import pairwise

from ._clean import NUMBER, read_numeral
from ._equations import CHANGING, CLAUSE, UNITS
from ._expression import evaluate
from ._latex import NEVER, rewrite_plainly

MOST_EQUATIONS = 12  # of one text
_MOST_SIDES = 8  # of one clause
_LONGEST_SIDE = 200  # characters
_MOST_ITEMS = 60  # of one side
_N_POINTS = 3
_SIZES = (1, 0.02, 50)

_CUT = "cut"  # where words, or two values side by side, end an expression
_LETTER = r"[a-z](?:_(?:[a-z0-9]|\{[a-z0-9]{1,3}\}))?(?![a-z0-9_])"
_TOKEN = re.compile(rf" ?(?:{NUMBER}|{_LETTER}|[^\W\d_]+|\S)")
_NAME = re.compile(_LETTER)
_TIMES = re.compile(r"(?<=\d) ?x ?(?=\d)")  # 3 x 4
_BULLET = re.compile(r"^ ?- ")
_BRACES = re.compile(r"(\\sqrt|\^) ?\{([^{}]*)\}")
_DEEPEST = 3  # braces within braces
_SIGNS = dict(zip("+-*/^()[]{}√%", "+-*/^()()()r%", strict=True))
_OPERATORS = frozenset("+-*/^")
# Constants, and what is written in front of an argument: f(x) is no product.
_CONSTANTS = frozenset("ei")
_FUNCTIONS = frozenset("fghpq")


class Equation:
    """Two sides, and the difference of their values at the points.

    Attributes
    ----------
    left, right : tuple of float and str
        Expressions, with variables as they are written.
    variables : frozenset of str
    gap : tuple of float, or None
        Left minus right at each point, in units of the first; all zero for an identity,
        None where a side has no value at some point.
    """

    __slots__ = ("gap", "left", "right", "variables")

    def __init__(self, left, right):
        self.left, self.right = left, right
        self.variables = frozenset(filter(_is_variable, left + right))
        self.gap = self._measure()

    def _measure(self):
        sizes, gaps = [], []
        for k in range(_N_POINTS):
            at = {name: _point(name, k) for name in self.variables}
            a, b = _evaluate_at(self.left, at), _evaluate_at(self.right, at)
            if a is None or b is None:
                return None
            sizes.append(abs(a) + abs(b))
            gaps.append(a - b)
        if all(abs(g) <= 1e-9 * size for g, size in zip(gaps, sizes, strict=True)):
            return (0.0,) * _N_POINTS
        return tuple(g / gaps[0] for g in gaps) if gaps[0] else None

    @property
    def is_identity(self):
        """Whether it holds at all points."""
        return self.gap is not None and not any(self.gap)

    def says_the_same(self, other):
        """Whether it is a constant multiple of another equation."""
        if self.gap is None or other.gap is None:
            return False
        pairs = zip(self.gap, other.gap, strict=True)
        return all(abs(a - b) <= 1e-7 * (1 + abs(a)) for a, b in pairs)

    def holds_at(self, values):
        """Whether it holds for these values of its variables; None if it has no value."""
        a, b = _evaluate_at(self.left, values), _evaluate_at(self.right, values)
        if a is None or b is None:
            return None
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-9)

    @property
    def breaks_a_chain(self):
        """Whether both sides calculate with the same variables, and differ."""
        one, other = ({*filter(_is_variable, side)} for side in (self.left, self.right))
        calculates = len(self.left) > 1 and len(self.right) > 1
        return self.gap is not None and any(self.gap) and one == other and calculates

    @property
    def solution(self):
        """(variable, number) where one side is a variable and the other has none."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            if len(one) == 1 and _is_variable(one[0]) and len(self.variables) == 1:
                value = None if one[0] in other else evaluate(list(other))
                return None if value is None else (one[0], value)
        return None


def find_equations(text: str) -> list[list[Equation]]:
    """The equations with variables of a clean text, at most `MOST_EQUATIONS`.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of list of Equation
        One list for each chain ``a = b = c``, here of two equations.
    """
    if "=" not in text:
        return []
    chains, n = [], 0
    for clause in CLAUSE.findall(rewrite_plainly(_open_braces(text))):
        if "=" not in clause or NEVER in clause or "≈" in clause:
            continue
        for chain in _read_clause(clause):
            n += len(chain)
            if n > MOST_EQUATIONS:
                return chains
            chains.append(chain)
    return chains


def _open_braces(text):
    """Roots and powers in parentheses, so that fractions around them can be read."""
    for _ in range(_DEEPEST if "{" in text else 0):
        text, n = _BRACES.subn(_use_parentheses, text)
        if not n:
            break
    return text


def _use_parentheses(match):
    return f"{'^' if match[1] == '^' else '√'}({match[2]})"


def _read_clause(clause):
    """The chains of a clause; where a side is cut in two, a new one begins."""
    clause = _BULLET.sub("", clause.removesuffix("?"), count=1)
    sides = clause.split("=", _MOST_SIDES)[:_MOST_SIDES]
    chain = []
    for one, other in pairwise([_read_side(side) for side in sides]):
        left, right = one[1], other[0]
        readable = bool(left and right) and any(map(_is_variable, left + right))
        if readable:
            chain.append(Equation(left, right))
        if chain and (not readable or other[0] != other[1]):
            yield chain
            chain = []
    if chain:
        yield chain


@lru_cache(4096)
def _read_side(side):
    """Head and tail of a side as tuples of items; empty where they cannot be read."""
    if len(side) > _LONGEST_SIDE:
        return (), ()
    items, before = [], ""
    for token, after in pairwise([*_TOKEN.findall(_TIMES.sub(" * ", side)), ""]):
        _append(items, token, before, after)
        before = token
    if _CUT not in items:
        whole = _readable(items)
        return whole, whole
    first, last = items.index(_CUT), len(items) - items[::-1].index(_CUT)
    follow = next((item for item in items[first:] if item != _CUT), None)
    head = () if follow in _OPERATORS else _readable(items[:first])
    tail = _readable(items[last:])
    return head, () if tail[:1] and tail[0] in _OPERATORS else tail


def _append(items, token, before, after):
    """Append what a token means after the items before it."""
    text, glued = token.lstrip(" "), token[0] != " "
    if text[0].isdecimal():
        # x2 is no product
        value = None if glued and _ends_value(items) else read_numeral(text)
        _append_value(items, value, glued)
    elif text == "a" and not glued and after[:1] == " " and after[1:2].isalpha():
        items.append(_CUT)
    elif _NAME.fullmatch(text):
        unclear = text in _CONSTANTS or (text in _FUNCTIONS and after[:1] == "(")
        apart = not glued and _is_variable(items[-1] if items else None)  # x y
        _append_value(items, None if unclear or apart else f"${text}", glued or apart)
    elif text[0].isalpha():
        unclear = text in CHANGING or (glued and before and text not in UNITS)
        items += (None, _CUT, None) if unclear else (_CUT,)
    elif text in "([{√":
        if _ends_value(items):
            _multiply(items, glued)
        items.append(_SIGNS[text])
    else:
        items.append(_SIGNS.get(text))


def _append_value(items, value, glued):
    if _ends_value(items):
        _multiply(items, glued)
    items.append(value)


def _multiply(items, glued):
    """A product without a sign; two values with a blank between them are two."""
    if not glued:
        items.append(_CUT)
    elif _follows_slash(items):
        items += (None, "*")  # 1/2x
    else:
        items.append("*")


def _follows_slash(items):
    """Whether the value that ends here is a divisor."""
    depth, at = 0, len(items) - 1
    while at > 0:
        depth += (items[at] == ")") - (items[at] == "(")
        if not depth:
            break
        at -= 1
    return at > 0 and items[at - 1] == "/"


def _ends_value(items):
    last = items[-1] if items else None
    return isinstance(last, float) or last in (")", "%") or _is_variable(last)


def _is_variable(item):
    return isinstance(item, str) and item[0] == "$"


def _readable(items):
    """The items if they are one expression that has a value somewhere."""
    if not items or len(items) > _MOST_ITEMS or None in items:
        return ()
    for size in _SIZES:  # roots have values at some of them only
        at = {item: size * _point(item, 0) for item in items if _is_variable(item)}
        if _evaluate_at(items, at) is not None:
            return tuple(items)
    return ()


def _evaluate_at(items, values):
    return evaluate([values.get(item, item) for item in items])


@lru_cache(1024)
def _point(name, k):
    """The k-th value of a variable, the same wherever it occurs.

    It is positive: what holds for such values only, as sqrt(x^2) = x, is no error.
    """
    return random.Random(f"{name} {k}").uniform(1.1, 3.9)
