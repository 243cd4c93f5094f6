"""Evaluate arithmetic expressions with two stacks, without recursion or ``eval``.

An expression is a list of floats and one-character symbols. The symbols are ``+ - * / ^``, ``m`` (a
minus between spaces), ``C`` (binomial), ``r`` (square root), ``!`` and ``%`` after a number, and
parentheses. Internally, ``~`` denotes the unary minus.

Arithmetic in LaTeX or with typographic signs is first rewritten in plain notation.
"""

import math
import re
from operator import add, mul, sub, truediv

from ._cleaning import list_names

_BINDING = {
    s: k for k, signs in enumerate(("+-m", "*/C", "~", "r", "^")) for s in signs
}
UNKNOWN = "unknown"  # placeholder for parts of an expression that cannot be parsed


def evaluate(items):
    """Return the value of an expression.

    Parameters
    ----------
    items : list of float and str
        Numbers and symbols, as described in the docstring of the module.

    Returns
    -------
    value : float or None
        The value, or None if the expression is malformed or undefined.
    """
    try:
        value = _calculate(items)
    except (ArithmeticError, ValueError, IndexError, KeyError):
        return None
    return value if abs(value) < 1e300 else None


def _calculate(items):
    """Evaluate an expression with a stack of numbers and a stack of pending operators."""
    values = []
    waiting = []
    complete = False
    for item in items:
        if isinstance(item, float):
            if complete:
                raise ValueError
            values.append(item)
            complete = True
        elif complete:
            complete = _apply_behind_value(item, values, waiting)
        elif item in ("(", "r", "-", "m"):
            waiting.append("~" if item in "-m" else item)
        else:
            raise ValueError
    if not complete:
        raise ValueError
    while waiting:
        _apply(waiting.pop(), values)
    (value,) = values
    return value


def _apply_behind_value(item, values, waiting):
    """Process a symbol that follows a value, and return whether the expression is complete."""
    if item in ("%", "!"):
        values[-1] = _factorial(values[-1]) if item == "!" else values[-1] / 100
        return True
    if item == ")":
        while waiting[-1] != "(":
            _apply(waiting.pop(), values)
        waiting.pop()
        return True
    binding = _BINDING[item] + (item == "^")  # a ^ b ^ c means a ^ (b ^ c).
    while waiting and waiting[-1] != "(" and _BINDING[waiting[-1]] >= binding:
        _apply(waiting.pop(), values)
    waiting.append(item)
    return False


def _apply(symbol, values):
    right = values.pop()
    if symbol in ("~", "r"):
        values.append(-right if symbol == "~" else math.sqrt(right))
    else:
        values.append(_BINARY[symbol](values.pop(), right))


def _choose(n, k):
    if n != int(n) or k != int(k) or not 0 <= k <= n <= 1000:
        raise ValueError
    return float(math.comb(int(n), int(k)))


def _factorial(n):
    if n != int(n) or not 0 <= n <= 100:
        raise ValueError
    return float(math.factorial(int(n)))


_BINARY = {
    "+": add,
    "-": sub,
    "m": sub,
    "*": mul,
    "/": truediv,
    "^": math.pow,
    "C": _choose,
}


def judge_equality(left, right, rounded):
    """Return whether the two sides of an equality agree.

    Parameters
    ----------
    left, right : list of float and str
        Expressions.
    rounded : bool
        Whether the sign between the sides means "about".

    Returns
    -------
    sides_agree : bool or None
        True if the sides agree, False if they differ. The result is None if a side cannot be
        parsed, if neither side is a calculation (as in a definition or a unit conversion), or
        if the difference may be due to rounding.
    """
    values = _evaluate_both(left, right)
    if values is None:
        return None
    a, b = values
    if _agree(a, b) or _agree_as_list(left, right):
        return True
    return _explain_gap(a, b, left, right, rounded)


def _evaluate_both(left, right):
    """Return the values of two sides, or None if neither is a calculation or one has no value."""
    values = evaluate(left), evaluate(right)
    if None in values or (is_bare(left) and is_bare(right)):
        return None
    return values


def is_bare(items):
    """Return whether an expression is empty or a single number."""
    return len(items) < 2 or (len(items) == 2 and items[0] in ("-", "m"))


def _agree(a, b):
    """Return whether values agree up to floating-point rounding. Integers must agree exactly."""
    gap = abs(a - b)
    size = max(abs(a), abs(b))
    # Integers below 2^53 are exact in floating point.
    return gap <= 1e-9 * size and (gap < 0.5 or size >= 2.0**53)


def _agree_as_list(left, right):
    """Return whether sides agree if a minus is a list marker, as in "4 = 2 * 2 - 6 = 2 * 3"."""
    n = len(left) - left[::-1].index("m") if "m" in left else 0
    m = right.index("m") if "m" in right[1:] else len(right)
    for tail in (left, left[n:]):
        for head in (right, right[:m]):
            values = _evaluate_both(tail, head)
            if values is not None and _agree(*values):
                return True
    return False


def _explain_gap(a, b, left, right, rounded):
    """Return True if the difference is due to rounding, None if that is uncertain, else False."""
    gap = abs(a - b)
    for value, items in ((a, left), (b, right)):
        if is_bare(items) and gap < _find_last_place(value) * (1 - 1e-6):
            return True if value != int(value) or rounded else None
        percent = items[-1:] == ["%"] and is_bare(items[:-1])
        if percent and gap < _find_last_place(items[-2]) / 100 * (1 - 1e-6):
            return True
    places = [_find_last_place(x) for x in left + right if isinstance(x, float)]
    if gap <= 0.005 * max(abs(a), abs(b)) and min(places) < 0.05:
        return None
    if "%" in left or "%" in right:
        of_what = any(map(_is_percent_of_something, (left, right)))
        if of_what or _agree(a, 100 * b) or _agree(100 * a, b):
            return None
    return False


def _is_percent_of_something(items):
    """Return whether a percentage is added to a number, as in 50 + 10%, which may mean 55."""
    n_numbers = sum(isinstance(item, float) for item in items)
    return 0 < items.count("%") < n_numbers and not {"+", "-", "m"}.isdisjoint(items)


def _find_last_place(value):
    """Return the place value of the last decimal of a number, or 1 for integers."""
    digits = repr(value).partition(".")[2]
    return 1.0 if digits == "0" or "e" in digits else 10.0 ** -len(digits)


_replace_commands = re.compile(
    r"""(?x)
    \\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}
    | \\(?:dfrac|tfrac|times|cdot|ast|div|left|right|displaystyle|approx|implies
      |rightarrow|to|quad|qquad|boxed|ldots|cdots|dots)(?![a-z])
    | \\[,;: %!\\] | \{,\} | \^\s?\{?\\circ\}?"""
).sub
_PLAIN = (
    dict.fromkeys(list_names(r"\dfrac \tfrac"), r"\frac")
    | dict.fromkeys(list_names(r"\times \cdot \ast"), "*")
    | dict.fromkeys(list_names(r"\implies \rightarrow \to \\"), ";")
    | dict.fromkeys(list_names(r"\ldots \cdots \dots"), "…")
    | {r"\div": "/", r"\approx": "≈", r"\%": "%", "{,}": ",", r"\!": ""}
)
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("×·⋅∙", "*")  # noqa: RUF001
    | dict.fromkeys("÷∕", "/")  # noqa: RUF001
    | dict.fromkeys("−–", "-")  # noqa: RUF001
    | dict.fromkeys("°€£¥₹", "")
    | dict.fromkeys("→⇒", ";")
    | {"²": "^2", "³": "^3", "½": "(1/2)", "¼": "(1/4)", "¾": "(3/4)"}
)
_replace_fractions = re.compile(r"\\(frac|binom)\s?\{([^{}]*)\}\s?\{([^{}]*)\}").sub
_replace_roots = re.compile(r"\\sqrt\s?(?=[{\d])|s(?<!\ws)qrt(?=\()").sub
# In 2\frac{1}{2}, the fraction may be added or multiplied.
_is_mixed = re.compile(r"\d\s?$").search
# Pattern for an equation in brackets, such as "(3 * 5 = 15)".
_replace_brackets = re.compile(r"\(([^()=]*=[^()]*)\)").sub
# Pattern for a remark between numbers, such as "(first day)". The pattern does not match the
# argument of a function.
_replace_notes = re.compile(r"\((?<![a-z]\()(?=[^()]*[a-z]{3})[a-z][a-z ,.'&-]*\)").sub
# Pattern for relations other than equality, for the colon in a time such as "11:30" or in a ratio,
# and for numbers such as 0x10.
_replace_unread = re.compile(
    r"!=|\\not *=?|<=?|>=?|==|=>|\\(?:neq?|leq?|geq?|equiv)(?![a-z])|≠|≤|≥|≡"
    r"|:(?<=\d:)(?=\d)|0(?<![\d.]0)[xbo][0-9a-f]+"
).sub
NEVER = "¿"  # placeholder for text that makes an equality unreadable


def rewrite_plainly(text, drop_notes=True):
    """Return a clean text with arithmetic in plain notation, in which "∁" denotes a binomial.

    Parameters
    ----------
    text : str
        A clean text.
    drop_notes : bool, default=True
        Whether remarks in brackets, such as "(first day)", are removed.

    Returns
    -------
    plain_text : str
        The same text in plain notation.
    """
    if not text.isascii():
        text = text.translate(_TYPOGRAPHIC)
    if "\\" in text or "{" in text:
        text = _replace_commands(lambda m: m[1] or _PLAIN.get(m[0], " "), text)
        # maximum number of nested fractions
        for _ in range(3):
            text = _replace_fractions(_bracket_both, text)
    if "sqrt" in text:
        text = _replace_roots("√", text)
    if drop_notes and "(" in text:
        text = _replace_brackets(r" ; \1 ; ", _replace_notes("", text))
    return _replace_unread(NEVER, text)


def _bracket_both(match):
    sign = "/" if match[1] == "frac" else "∁"
    start = match.start()
    is_mixed = _is_mixed(match.string, max(start - 2, 0), start)
    unclear = NEVER if is_mixed and match[2].isdecimal() else ""
    return f"{unclear}(({match[2]}){sign}({match[3]}))"
