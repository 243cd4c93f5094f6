"""Normalise texts and extract their numbers, in linear time."""

import re
import unicodedata
from functools import lru_cache

# Whitespace and markup reveal the source of a text but not whether the text is true.
_replace_markup = re.compile(r"\*\*|\$|\\[$()\[\]]|`|<<[^<>]*>>").sub
# Two stars denote a power in 2**3, but they mark bold text in **bold**.
_replace_powers = re.compile(r"\*\*(?<=[\d)]..)(?=\d)").sub
# Patterns for "## Step 3:", "- " and "2. " before a claim. A list marker must precede a word, so
# "- 3 + 5 = 2" keeps its minus sign.
_replace_label = re.compile(
    r"(?i)\A(?:#+\s*|(?:[-*+>•]|\d{1,3}[.)])\s+(?=[a-z#])){0,3}"
    r"(?:step\s*\d{1,9}\s*[:.)]?\s*)?"
).sub
# "by steps 2 and 3" refers to claims, so 2 and 3 are not quantities here.
_replace_steps = re.compile(r"\bsteps? \d+(?:(?:,| and| to|-) ?\d+)*").sub
# Replace ".5" with "0.5".
_replace_points = re.compile(r"(?<![\d.])\.(?=\d)").sub
# A comma followed by three digits is a thousands separator, so 1,200 is one number and 1,20 is
# two numbers.
NUMBER = r"\d\d*(?:,\d{3}(?!\d))*(?:\.\d+)?"
_find_numerals = re.compile(NUMBER, re.ASCII).findall
_replace_digits = re.compile(r"[^\D0-9]").sub  # digits of another script
_find_words = re.compile(r"[a-z]+").findall
# Shared numbers such as 1 or 100 occur in nearly every text and are no evidence that two texts
# are related.
IGNORED = frozenset((0.0, 1.0, 2.0, 100.0))


# A word that is hyphenated at the end of a line.
_replace_hyphens = re.compile(
    r"[-\u2010\u00ad](?<=[^\W\d_].)[^\S\n]*\n\s*(?=[^\W\d_])"
).sub


def list_names(text):
    """Split a space-separated string of names into a tuple."""
    return tuple(text.split())


def _list_numbers(words, start, difference=1):
    return {word: start + difference * i for i, word in enumerate(words.split())}


_ONES = _list_numbers("one two three four five six seven eight nine", 1)
_TEENS = _list_numbers(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
    10,
)
_TENS = _list_numbers("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
_FRACTIONS = (
    _list_numbers("third fourth fifth sixth seventh eighth", 3)
    | _list_numbers("thirds fourths fifths sixths sevenths eighths", 3)
    | {"half": 0.5, "quarter": 4, "quarters": 4, "dozen": 12, "thousand": 1000}
)
_SCALES = {"hundred": 100, "thousand": 1000}
NUMBER_WORDS = {w: float(n) for w, n in (_ONES | _TEENS | _TENS | _FRACTIONS).items()}


def unify(text):
    """Return a text whose words are written in one way.

    Letters and decimal digits are in the compatibility form NFKC. Soft hyphens and hyphens at the
    end of a line are removed. Fractions and exponents such as "\u00bd" and "\u00b2" are
    not changed.
    """
    if "\n" in text:
        text = _replace_hyphens("", text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text.replace("\u00ad", ""))
    if unicodedata.is_normalized("NFKC", text):
        return text
    return "".join(
        unicodedata.normalize("NFKC", c) if c.isalpha() or c.isdecimal() else c
        for c in text
    )


def clean(text):
    """Return the text in lower case, without markup, extra spaces or a leading "Step k:".

    Parameters
    ----------
    text : str
        Text of a claim, an answer or a question.

    Returns
    -------
    clean_text : str
        The clean text.
    """
    return remove_markup(text).casefold()


def remove_markup(text):
    """Return the text without markup, extra spaces or a leading "Step k:", but with its capitals.

    Parameters
    ----------
    text : str
        Text of a claim, an answer or a question.

    Returns
    -------
    plain_text : str
        The text, which only differs from the clean text in its capitals.
    """
    text = unify(text)
    text = _replace_markup("", _replace_powers("^", text))
    if not text.isascii():
        text = _replace_digits(lambda m: str(int(m[0])), text)
    text = _replace_label("", text.lstrip())
    text = " ".join(text.split())
    if " ." in text or "(." in text or text[:1] == ".":
        text = _replace_points("0.", text)
    return text


def find_numbers(text):
    """Return the numbers of a clean text in order of appearance, excluding 0, 1, 2 and 100.

    Parameters
    ----------
    text : str
        A clean text.

    Returns
    -------
    numbers : list of float
        The numbers, including repetitions.
    """
    if "step" in text:
        text = _replace_steps("", text)
    values = map(read_numeral, _find_numerals(text.replace("{,}", ",")))
    return [v for v in values if v == v and v not in IGNORED]


@lru_cache(8192)
def read_numeral(token):
    """Return the value of a numeral with thousands separators, or NaN for a long numeral."""
    token = token.replace(",", "")
    # maximum number of characters in a numeral that is treated as a quantity
    return float(token) if len(token) <= 30 else float("nan")


def find_spelled_numbers(text):
    """Return the numbers that a clean text spells out, such as "twenty-five" and "dozen".

    A spelled-out fraction is represented by its denominator, so "two-thirds" yields 3.

    Parameters
    ----------
    text : str
        A clean text.

    Returns
    -------
    numbers : list of float
        The numbers in order of appearance, excluding 0, 1, 2 and 100.
    """
    numbers = []
    previous = ""
    for word in _find_words(text):
        # Combine numbers as in twenty + five and three * hundred. Any other number begins a new
        # quantity.
        if word in _ONES and previous in _TENS:
            numbers[-1] += _ONES[word]
        elif word in _SCALES and previous in NUMBER_WORDS.keys() - _SCALES and numbers:
            numbers[-1] *= _SCALES[word]
        elif word in NUMBER_WORDS:
            numbers.append(NUMBER_WORDS[word])
        previous = word
    return [n for n in numbers if n not in IGNORED]


def check_claim_texts(batch):
    """Raise ValueError if a claim has no text."""
    if batch.claims is None and batch.n_claims:
        raise ValueError(
            f"{batch.locate(0)} must have a text, but it has none: pass claims= to the graph"
        )
