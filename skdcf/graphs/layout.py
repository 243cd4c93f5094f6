"""The text between the sentences of an answer: line breaks, markers of list items, and rules.

A layout is a list of the text before each sentence, followed by the text after the last sentence.
An entry may also be a list of this text and the line breaks within the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
_BREAKS = re.compile(_BREAK)
_LINE_START = re.compile(rf"(?s).*{_BREAK}")
#: Pattern for a rule on the line after a sentence. Such a rule marks the sentence as a heading or
#: as the first row of a table.
_RULE = re.compile(rf"(?:(?!{_BREAK})\s)*{_BREAK}[ \t]*[-=|+:][-=|+: \t]*(?={_BREAK})")
#: Pattern for whitespace, rules and markers of list items. A layout contains nothing else, because
#: any other word, number or sign may be part of an answer.
_ONLY_LAYOUT = re.compile(r"(?:[-=|+:*_>\u2022\s]|(?<!\d)\d{1,9}[.)](?=\s))*")


def is_layout(value: Any, n_sentences: int) -> bool:
    """Return whether a value is the layout of an answer.

    Parameters
    ----------
    value : object
        Value from the metadata.
    n_sentences : int
        Number of sentences in the answer.

    Returns
    -------
    is_layout : bool
        True if the value has the expected format and contains only whitespace, rules and markers
        of list items.
    """
    if not isinstance(value, (list, tuple)) or len(value) != n_sentences + 1:
        return False
    entries = (e if isinstance(e, (list, tuple)) and e else [e] for e in value)
    return all(
        isinstance(text, str) and _ONLY_LAYOUT.fullmatch(text)
        for entry in entries
        for text in entry
    )


def join_sentences(sentences: Sequence[str], layout: Sequence[Any]) -> str:
    """Return the text of an answer with its layout.

    Parameters
    ----------
    sentences : sequence of str
        The sentences.
    layout : sequence of (str or list of str)
        The layout.

    Returns
    -------
    text : str
        The text, without leading and trailing whitespace.
    """
    parts = []
    for text, entry in zip(sentences, layout, strict=False):
        before, *breaks = [entry] if isinstance(entry, str) else entry
        lines = text.split("\n")
        if len(breaks) != len(lines) - 1:
            breaks = ["\n"] * (len(lines) - 1)
        pairs = zip([before, *breaks], lines, strict=True)
        parts += [part for pair in pairs for part in pair]
    return "".join([*parts, _before(layout[-1])]).strip()


def cut_layout(layout: Sequence[Any], kept: Sequence[bool]) -> list[Any]:
    """Return the layout of the kept sentences.

    The text between two kept sentences that were neighbours is not changed. Between other kept
    sentences, the result contains the largest line break that was between them. A marker of a
    list item is kept if a sentence of its line is kept.

    Parameters
    ----------
    layout : sequence of (str or list of str)
        The layout of all sentences.
    kept : sequence of bool
        Whether each sentence is kept.

    Returns
    -------
    layout : list of (str or list of str)
        The layout of the kept sentences.
    """
    out: list[Any] = []
    previous = -1
    for place in [i for i, is_kept in enumerate(kept) if is_kept]:
        texts = [_before(entry) for entry in layout[previous + 1 : place + 1]]
        before = texts[0]
        if len(texts) > 1:
            break_ = "" if previous < 0 else _largest_break(texts)
            before = break_ + _marker(texts, at_start=previous < 0)
        entry = layout[place]
        out.append(before if isinstance(entry, str) else [before, *entry[1:]])
        previous = place
    after = _before(layout[previous + 1])
    rule = _RULE.match(after)
    if previous + 1 < len(kept):
        after = rule[0] if rule and previous >= 0 else ""
    return [*out, after]


def _before(entry):
    """Return the text before a sentence."""
    return entry if isinstance(entry, str) else entry[0]


def _marker(texts, *, at_start):
    """Return the beginning of the line of the last sentence, such as ``"- "``."""
    for text in reversed(texts):
        if line_start := _LINE_START.match(text):
            return text[line_start.end() :]
    return texts[0] if at_start else ""


def _largest_break(texts):
    """Return the largest break between two sentences: a paragraph, a line, or a space."""
    rule = _RULE.match(texts[0])
    attached = rule[0] if rule else ""
    between = [texts[0][len(attached) :], *texts[1:]]
    largest = max(between, key=lambda text: len(_BREAKS.findall(text)[:2]))
    space = " " if any(between) else ""
    return attached + ("".join(_BREAKS.findall(largest)[:2]) or space)
