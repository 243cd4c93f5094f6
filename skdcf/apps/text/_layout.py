"""The text of the kept claims, in the layout of the original answer.

The metadata key ``layout`` of an answer that was split into sentences is a dict of two lists. The
list ``between`` contains the text before each sentence (line breaks, markers of list items, and
rules), and the text after the last sentence. The list ``without_claim`` contains the sentences that
are no claims, each with the number of preceding claims.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import chain, compress, zip_longest
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...edges import heading_level
from ...graphs import ReasoningGraph
from ._sentences import INVISIBLE

#: Metadata key for the layout of an answer.
LAYOUT = "layout"
_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
_BREAKS = re.compile(_BREAK)
_LINE_START = re.compile(rf"(?s).*{_BREAK}")
#: Pattern for a rule on the line after a sentence. Such a rule marks the sentence as a heading or
#: as the first row of a table.
_RULE = re.compile(rf"(?:(?!{_BREAK})\s)*{_BREAK}[ \t]*[-=|+:][-=|+: \t]*(?={_BREAK})")
#: Pattern for whitespace, zero-width characters, rules and markers of list items. A layout contains
#: nothing else, because any other word, number or sign may be part of an answer.
_ONLY_LAYOUT = re.compile(
    rf"(?:[-=|+:*_>\u2022\s{INVISIBLE}]|(?<!\d)\d{{1,9}}[.)](?=\s))*"
)


def kept_text(graph: ReasoningGraph, mask: ArrayLike) -> str:
    """Return the text of the kept claims of an answer.

    If the answer was split into sentences by `AnswerSplitter`, the text has the layout of the
    answer, such as its paragraphs and lists. A heading without a claim is kept if a claim below it
    is kept, and any other sentence without a claim if it is next to a kept claim. Otherwise, the
    text has one claim per line. If no claims are kept, the text is empty.

    Parameters
    ----------
    graph : ReasoningGraph
        The whole answer.
    mask : array-like of bool, shape (n_claims,)
        Whether each claim is kept.

    Returns
    -------
    text : str
        The kept claims in the layout of the answer.

    Raises
    ------
    ValueError
        If the claims do not have texts, or if the mask does not have one value per claim.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.text import kept_text
    >>> layout = {"between": ["- ", "\\n- ", "\\n- ", ""], "without_claim": []}
    >>> graph = ReasoningGraph(claims=["A.", "B.", "C."], metadata={"layout": layout})
    >>> print(kept_text(graph, [True, False, True]))
    - A.
    - C.
    """
    mask = np.asarray(mask, dtype=bool)
    if mask.shape != (graph.n_claims,):
        raise ValueError(
            f"mask must have one value for each of the {graph.n_claims} claims, got shape "
            f"{mask.shape}"
        )
    if graph.claims is None and graph.n_claims:
        raise ValueError(
            f"the claims of the problem {graph.id!r} must have texts, but they have none. Pass "
            'claims= to the graph, or add the key "claims" to the line'
        )
    if not mask.any():
        return ""
    layout: Any = (graph.metadata or {}).get(LAYOUT)
    claims = graph.claims or ()
    if not _fits(layout, graph.n_claims):
        return "\n".join(compress(claims, mask))
    # Each sentence with the number of preceding claims, and whether it is a claim.
    sentences = [(n, True, text) for n, text in enumerate(claims)]
    sentences += [(n, False, text) for n, text in layout["without_claim"]]
    sentences.sort(key=itemgetter(0, 1))
    kept = _kept_sentences(mask, sentences, layout["between"])
    texts = [text for _, _, text in sentences]
    between = _cut_layout(layout["between"], kept)
    pairs = zip_longest(between, compress(texts, kept), fillvalue="")
    return "".join(chain.from_iterable(pairs)).strip()


def _fits(layout, n_claims):
    """Return whether a value is the layout of an answer, and contains no other text."""
    if not isinstance(layout, dict) or {*layout} != {"between", "without_claim"}:
        return False
    between, others = layout["between"], layout["without_claim"]
    if not (isinstance(between, (list, tuple)) and isinstance(others, (list, tuple))):
        return False
    return (
        all(_is_other(pair, n_claims) for pair in others)
        and len(between) == n_claims + len(others) + 1
        and all(
            isinstance(text, str) and _ONLY_LAYOUT.fullmatch(text) for text in between
        )
    )


def _is_other(pair, n_claims):
    """Return whether a value is a number of claims and a sentence."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        return False
    n_before, text = pair
    return type(n_before) is int and 0 <= n_before <= n_claims and isinstance(text, str)


def _kept_sentences(mask, sentences, between):
    """Return whether each sentence is kept.

    A heading without a claim is kept if a claim before the next heading is kept. The next heading
    has at most as many number signs, and may be a claim. Other sentences without a claim are kept
    next to a kept claim.
    """
    n_claims = len(mask)
    levels = []
    for (_, _, text), after in zip(sentences, between[1:], strict=True):
        is_underlined = _RULE.match(after) and "|" not in text
        levels.append(1 if is_underlined else heading_level(text))
    places = [
        [
            n
            for (n, _, _), own in zip(sentences, levels, strict=True)
            if 0 < own <= level
        ]
        + [n_claims]
        for level in range(8)
    ]
    n_kept = np.cumsum([0, *mask])
    kept = []
    for (n, is_claim, _), level in zip(sentences, levels, strict=True):
        start = n
        end = min(n + 1, n_claims)
        if not is_claim and level and n < n_claims:
            end = places[level][bisect_right(places[level], n)]
        elif not is_claim:
            start = max(n - 1, 0)
        kept.append(bool(n_kept[end] > n_kept[start]))
    return kept


def _cut_layout(layout, kept):
    """Return the layout of the kept sentences.

    The text between two kept sentences that were neighbours is not changed. Between other kept
    sentences, the result contains the largest line break that was between them. A marker of a
    list item is kept if a sentence of its line is kept.
    """
    kept_layout = []
    previous = -1
    for place in [i for i, is_kept in enumerate(kept) if is_kept]:
        texts = layout[previous + 1 : place + 1]
        before = texts[0]
        if len(texts) > 1:
            break_ = "" if previous < 0 else _largest_break(texts)
            before = break_ + _marker(texts, at_start=previous < 0)
        kept_layout.append(before)
        previous = place
    after = layout[previous + 1]
    if previous + 1 < len(kept):
        rule = _RULE.match(after)
        after = rule[0] if rule else ""
    return [*kept_layout, after]


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
