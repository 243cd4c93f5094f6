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
    """Return the name of a list in the provenance, which depends only on its patterns."""
    content = "\n".join(pattern.pattern for pattern in patterns)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def makes_claim(
    sentence: str, patterns: tuple[re.Pattern[str], ...], is_heading: bool = False
) -> bool:
    """Return whether no pattern matches the whole sentence, also without its Markdown marks.

    Without its marks, a heading begins with ``"# "``.
    """
    plain = _on_one_line(sentence)
    words = re.sub(r"^(?:#{1,6} )?[*_]*(?:\d{1,3}[.)] )?|[*_]", "", plain)
    # A sign after a courtesy, as in "Hope this helps! :)". After a colon, it may be the answer.
    body, _, sign = words.rpartition(" ")
    if not (re.search(r"\w", sign) or body.endswith(":")):
        words = body
    if is_heading:
        words = f"# {words}"
    return not any(p.fullmatch(plain) or p.fullmatch(words) for p in patterns)


def pattern_of(sentence: str) -> str:
    """Return a pattern that matches only this sentence."""
    return re.escape(_on_one_line(sentence))


def _on_one_line(sentence):
    return " ".join(sentence.replace("\u2019", "'").split())
