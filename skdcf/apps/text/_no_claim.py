"""Recognise sentences without a claim, using a list of patterns.

Sentences such as "Sure." and "Here is what I found:" make no claim. If labels state whether a
passage supports each sentence, sentences without a claim are labelled false. A filter calibrated
with such labels keeps fewer sentences that make a claim. Sentences without a claim are therefore
removed before any computation, both for calibration and for prediction. The provenance of the
claims records the list of patterns.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path


@cache
def read_patterns(path: str | None) -> tuple[re.Pattern[str], ...]:
    """Read the patterns for sentences without a claim, one regular expression per line."""
    patterns = []
    file = Path(path or Path(__file__).with_name("no_claim.txt"))
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("# "):
            continue
        try:
            patterns.append(re.compile(line.strip(), re.IGNORECASE))
        except re.error as error:
            raise ValueError(
                f"{file}, line {number}: {line.strip()!r} is not a valid regular "
                f"expression ({error}). Write one pattern per line, and escape "
                "special characters such as ( and ? with a backslash"
            ) from error
    return tuple(patterns)


def name_of(patterns: tuple[re.Pattern[str], ...]) -> str:
    """Return a hash of the patterns and of how sentences are matched, for the provenance."""
    # Increase this number when the matching changes.
    content = "\n".join(["2", *(pattern.pattern for pattern in patterns)])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def makes_claim(
    sentence: str, patterns: tuple[re.Pattern[str], ...], mark: str = ""
) -> bool:
    """Return whether no pattern matches the whole sentence, as written or without its marks.

    ``mark`` is the result of `heading_mark` for a line above a claim.
    """
    plain = _on_one_line(sentence)
    words = re.sub(r"^#{1,6} ", "", plain)
    words = re.sub(r"^(\*{1,3})(.*[^*])\1(:?)$", r"\2\3", words)
    texts = [plain, words]
    if mark:
        # Only small numbers before headings number them. Others, as in "**42. Explanation:**" or
        # "**3. Hope this helps!**", may be the answer.
        texts.append(mark + re.sub(r"^1?\d[.)] ", "", words))
    return not any(p.fullmatch(text) for p in patterns for text in texts)


def pattern_of(sentence: str) -> str:
    """Return a pattern that matches only this sentence."""
    return re.escape(_on_one_line(sentence))


def _on_one_line(sentence):
    return " ".join(sentence.replace("\u2019", "'").split())
