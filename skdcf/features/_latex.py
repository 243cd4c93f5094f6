"""Arithmetic in LaTeX and in typographic signs, rewritten as plain text."""

import re

_COMMAND = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}"
    r"|\\(?:dfrac|tfrac|times|cdot|ast|div|left|right|displaystyle|approx|implies"
    r"|rightarrow|to|quad|qquad|boxed|ldots|cdots|dots)(?![a-z])"
    r"|\\[,;: %!\\]|\{,\}|\^\s?\{?\\circ\}?"
)
_PLAIN = {
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\times": "*",
    r"\cdot": "*",
    r"\ast": "*",
    r"\div": "/",
    r"\approx": "≈",
    r"\implies": ";",
    r"\rightarrow": ";",
    r"\to": ";",
    r"\ldots": "…",
    r"\cdots": "…",
    r"\dots": "…",
    r"\%": "%",
    "\\\\": ";",
    "{,}": ",",
    r"\!": "",
}
_TYPOGRAPHIC = (
    dict.fromkeys("×·⋅∙", "*")  # noqa: RUF001
    | dict.fromkeys("÷∕", "/")  # noqa: RUF001
    | dict.fromkeys("−–", "-")  # noqa: RUF001
    | dict.fromkeys("°€£¥₹", "")
    | dict.fromkeys("→⇒", ";")
    | {"²": "^2", "³": "^3", "½": "(1/2)", "¼": "(1/4)", "¾": "(3/4)"}
)
_SIGN = re.compile(f"[{''.join(_TYPOGRAPHIC)}]")
_TWO_PARTS = re.compile(r"\\(frac|binom)\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s?(?=[{\d])|\bsqrt(?=\()")
_MIXED = re.compile(r"\d\s?$")  # 2\frac{1}{2} may be a sum or a product
_CLOCK = re.compile(r":(?<=\d:)(?=\d)")  # 11:30, and ratios
_INSIDE = re.compile(r"\(([^()=]*=[^()]*)\)")  # (3 * 5 = 15)
_DEEPEST = 3  # fractions within fractions
# "(first day)" between numbers; not the argument of a function
_NOTE = re.compile(r"\((?<![a-z]\()(?=[^()]*[a-z]{3})[a-z][a-z ,.'&-]*\)")
_UNEQUAL = re.compile(r"!=|<=?|>=?|==|=>|\\(?:neq?|leq?|geq?|equiv)(?![a-z])|≠|≤|≥|≡")
NEVER = "¿"  # stands for every relation that is not an equality


def rewrite_plainly(text: str) -> str:
    """Arithmetic of a clean text in plain signs, with "∁" for a binomial coefficient.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    if not text.isascii():
        text = _SIGN.sub(lambda m: _TYPOGRAPHIC[m[0]], text)
    if "\\" in text or "{" in text:
        text = _COMMAND.sub(lambda m: m[1] or _PLAIN.get(m[0], " "), text)
        for _ in range(_DEEPEST):
            text, n = _TWO_PARTS.subn(_bracket_parts, text)
            if not n:
                break
    if "sqrt" in text:
        text = _ROOT.sub("√", text)
    if "(" in text:
        text = _INSIDE.sub(r" ; \1 ; ", _NOTE.sub("", text))
    if ":" in text:
        text = _CLOCK.sub(NEVER, text)
    if (
        "==" in text
        or "<" in text
        or ">" in text
        or "!" in text
        or "\\" in text
        or not text.isascii()
    ):
        text = _UNEQUAL.sub(NEVER, text)
    return text


def _bracket_parts(match):
    sign = "/" if match[1] == "frac" else "∁"
    mixed = match.string[max(match.start() - 2, 0) : match.start()]
    unclear = NEVER if match[2].isdecimal() and _MIXED.search(mixed) else ""
    return f"{unclear}(({match[2]}){sign}({match[3]}))"
