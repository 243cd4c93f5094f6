"""Split a text into sentences without calling a model.

Each code block and each table row becomes one claim. All other lines are split into sentences.
"""

from __future__ import annotations

import re
from itertools import accumulate, takewhile
from typing import Any

from ...datasets.thoughts import without_thoughts
from ...features.sentences import INVISIBLE, split_paragraph


def split_sentences(
    answer: str, problem: str | None = None, *, language: str = "en"
) -> list[str]:
    """Split an answer into lines and sentences without calling a model.

    Use this function instead of `Decompose` for answers with one claim per line or sentence. A
    fenced code block or a table row is a single claim. Horizontal rules, thoughts such as
    ``<think>...</think>`` and control tokens are ignored.

    Parameters
    ----------
    answer : str
        The text to split.
    problem : str, optional
        Ignored.
    language : str
        ISO 639 code of the language, such as "en" or "de". The language determines which
        abbreviations do not end a sentence, and is recorded in the provenance. For example, pass
        ``functools.partial(split_sentences, language="de")`` as ``decompose`` for answers in
        German.

    Returns
    -------
    claims : list of str
        The claims, in order.

    Raises
    ------
    ValueError
        If ``language`` is not an ISO 639 code.

    Examples
    --------
    >>> from skdcf.apps.text import split_sentences
    >>> split_sentences("Half of 7 is 3.5, says Dr. Lee. Twice that is 7.\\n- So it is 7")
    ['Half of 7 is 3.5, says Dr. Lee.', 'Twice that is 7.', 'So it is 7']
    """
    return sentences_with_layout(answer, language)[1::2]


def sentences_with_layout(answer: str, language: str = "en") -> list[str]:
    """Split an answer into sentences, and return them with the text between them.

    Parameters
    ----------
    answer : str
        The text to split.
    language : str
        Language code, as in `split_sentences`.

    Returns
    -------
    pieces : list of str
        The sentences at odd positions. Around them is the text between the sentences, which
        consists of line breaks, markers of list items, and horizontal rules.
    """
    if not isinstance(language, str) or not re.fullmatch("[a-z]{2,3}", language):
        raise ValueError(
            f"language must be an ISO 639 code, such as 'en' or 'de', got {language!r}"
        )
    # Unpaired surrogates are replaced.
    answer = without_thoughts(answer).encode("utf-8", "replace").decode()
    pieces: list[str] = []
    end = 0
    for start, block, is_whole in _blocks(answer):
        for piece in [block] if is_whole else split_paragraph(block, language):
            if sentence := piece.strip().strip(INVISIBLE).strip():
                first = start + piece.index(sentence)
                pieces += [answer[end:first], sentence]
                end = first + len(sentence)
            start += len(piece)
    return [*pieces, answer[end:]]


def _blocks(text):
    """Yield the start and the text of each paragraph or code block, and whether it is one claim.

    A paragraph has several lines only if a line ends within a sentence or a formula.
    """
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    lines = [line.rstrip() for line in lines]
    rows = _rows_of_tables(lines)
    numbers = {-1, 0}
    number = 0
    while number < len(lines):
        line = lines[number]
        start = starts[number]
        number += 1
        # a fence, or a line that begins a multi-line formula
        if begun := re.match(
            r"\s*(`{3,}|~{3,}|"
            r"(?:\$\$|\\\[|\\begin\{\w+\*?\})(?=\s*(?:\{[^}]*\})?\s*\Z))",
            line,
        ):
            while number < len(lines) and not _ends(lines[number].strip(), begun[1]):
                number += 1
            number += 1
            yield start, text[start : starts[min(number, len(lines))]], True
        elif number - 1 in rows:
            yield start, line, True
        elif line and not _is_rule(line):
            paragraph = _without_marker(line, numbers)
            start += len(line) - len(paragraph)
            while number < len(lines) and _continues(paragraph, lines, number):
                gap = text[start + len(paragraph) : starts[number]]
                if not _opened(paragraph):
                    gap = " " * len(gap)
                paragraph += gap + lines[number]
                number += 1
            yield start, paragraph, False


def _opened(text):
    """Return the end of a formula that begins in a text, or an empty string."""
    if text.count("$$") % 2:
        return "$$"
    return "\\]" if text.count("\\[") > text.count("\\]") else ""


def _continues(paragraph, lines, number):
    """Return whether a line continues the paragraph before it."""
    if closed := _opened(paragraph):
        return any(closed in line for line in takewhile(bool, lines[number:]))
    is_wrapped = re.fullmatch(r"(?s)[^#].{20,}(?:[^\W\d_]|[,;])", paragraph)
    return bool(is_wrapped and re.match(r"\s*[a-z\u00df-\u00ff]{2}", lines[number]))


def _without_marker(line, numbers):
    """Return a line without the marker of a list item.

    A number is a marker only if the list begins with it or an earlier marker is one smaller. Any
    other number may be part of the claim, as in "12. apples". ``numbers`` contains the numbers of
    the markers so far, to which the number of this line is added.
    """
    # A mark before a number or formula may be a sign, as in "- 5", and is part of the claim.
    amount = (
        r"\s*(?!\d{1,9}[.)]\s)(?:[^\w\s>]*[\d\u00bc-\u00be\u2150-\u215f\u221e]|[$\\])"
    )
    marker: Any = re.match(
        rf"(?s)(?:\s*>(?!{amount}))*\s*"
        rf"(?:[-*](?!{amount})\s+|\u2022\s+|(?P<number>\d{{1,9}})[.)]\s+)?(?=.)",
        line,
    )
    end = marker.end()
    if marker["number"] is not None:
        number = int(marker["number"])
        if number - 1 in numbers:
            numbers.add(number)
        else:
            end = marker.start("number")
    return line[end:].strip() or line.strip()  # A marker on its own is a claim.


def _ends(line, begin):
    """Return whether a line ends the code block or formula that begins with ``begin``."""
    if begin[0] in "`~":
        return line.startswith(begin) and not line.strip(begin[0])
    end = begin.replace("begin", "end").replace("[", "]")
    return line.rstrip(".,;").endswith(end)


def _is_rule(line):
    """Return whether a line is a horizontal rule, between table rows or parts of a text."""
    rule = re.fullmatch(
        r"[|+:\s]*[-=]{3}[-=|+:\s]*|\|?(?:\s*:?-+:?\s*\|)+[-:\s]*|"
        r"(?P<mark>[-*_])(?:\s*(?P=mark)){2,}\s*",
        line.strip(),
    )
    return rule is not None


def _rows_of_tables(lines):
    """Return the line numbers of table rows, which are recognised by bars and horizontal rules."""
    rows = set()
    below = False
    for number, line in enumerate(lines):
        if "|" in line and _is_rule(line):
            below = True
            rows.add(number - 1)
        elif "|" in line and (below or line.strip()[0] == line.strip()[-1] == "|"):
            rows.add(number)
        else:
            below = False
    return rows
