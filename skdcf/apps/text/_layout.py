"""The text of the kept claims, in the layout of the original answer.

The metadata key ``layout`` of an answer that was split into sentences is a list. At even positions,
it contains the text before each sentence (line breaks, markers of list items, and rules), and the
text after the last sentence. At odd positions, it contains None for each claim, and the text of
each sentence that makes no claim.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...edges import heading_level
from ...features.sentences import INVISIBLE
from ...graphs import ReasoningGraph

#: Metadata key for the layout of an answer.
LAYOUT = "layout"
_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
#: Find a horizontal rule on the line after a sentence. Such a rule marks the sentence as a heading
#: or as the first row of a table.
_find_rule = re.compile(
    rf"(?:(?!{_BREAK})\s)*{_BREAK}[ \t]*[-=|+:][-=|+: \t]*(?={_BREAK})"
).match


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
    >>> layout = ["- ", None, "\\n- ", None, "\\n- ", None, ""]
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
    if graph.claims is None and mask.size:
        raise ValueError(
            f"the claims of the problem {graph.id!r} must have texts, but they have none. Pass "
            'claims= to the graph, or add the key "claims" to the line'
        )
    if not mask.any():
        return ""
    claims: Any = graph.claims
    layout: Any = (graph.metadata or {}).get(LAYOUT)
    if not _fits(layout, graph.n_claims):
        return "\n".join(compress(claims, mask))
    gaps, others = layout[::2], layout[1::2]
    remaining = iter(claims)
    sentences = [next(remaining) if text is None else text for text in others]
    levels = [
        1 if _find_rule(after) and "|" not in text else heading_level(text)
        for text, after in zip(sentences, gaps[1:], strict=True)
    ]
    kept = _kept_sentences(mask, [text is None for text in others], levels)
    return _join(sentences, gaps, kept).strip()


def heading_mark(layout: list[str], i: int) -> str:
    r"""Return how a heading is marked: "\f" (number signs), "\v" (bold or italic) or "".

    The mark is empty unless the sentence at the odd position ``i`` is alone on its line and not a
    list item. Four or more number signs are not a heading: "#### 42" is an answer. Sentences
    contain neither "\f" nor "\v" once their white space is joined.
    """
    before, text, after = layout[i - 1 : i + 2]
    if before.strip() or not re.search(_BREAK, after):
        return ""
    if i > 1 and not re.search(_BREAK, before):
        return ""
    signs = re.match(r"#{1,3}(?= )|\*", text)
    return {"#": "\f", "*": "\v"}[signs[0][0]] if signs else ""


def _fits(layout, n_claims):
    """Return whether a value is the layout of an answer, and contains no other text."""
    if not isinstance(layout, list | tuple):
        return False
    gaps, others = layout[::2], layout[1::2]
    # Any other word, number or sign between the sentences may be part of an answer.
    allowed = rf"(?:[-=|+:*_>\u2022\s{INVISIBLE}]|(?<!\d)\d{{1,9}}[.)](?=\s))*"
    return (
        len(gaps) == len(others) + 1
        and others.count(None) == n_claims
        and all(isinstance(text, str | None) for text in others)
        and all(isinstance(gap, str) and re.fullmatch(allowed, gap) for gap in gaps)
    )


def _kept_sentences(mask, is_claim, levels):
    """Return whether each sentence is kept.

    A heading without a claim is kept if a claim before the next heading is kept. The next heading
    has at most as many number signs, and may be a claim. Other sentences without a claim are kept
    next to a kept claim.
    """
    number = len(mask)
    around = [False, *mask, False]
    # For each level, whether a claim is kept before the next heading, and the level of a heading
    # that ends the search as soon as a claim precedes it.
    below = [False] * 8
    end = 8
    kept = []
    for own, level in zip(reversed(is_claim), reversed(levels), strict=True):
        if own:
            number -= 1
            below = [mask[number] or (below[k] and k < end) for k in range(8)]
            end = 8
            kept.append(mask[number])
        elif level and number < len(mask):
            kept.append(below[level])
        else:
            kept.append(around[number] or around[number + 1])
        end = min(end, level or 8)
    return kept[::-1]


def _join(sentences, gaps, kept):
    """Return the text of the kept sentences.

    The text between two kept sentences that were neighbours is not changed. Between other kept
    sentences, the result contains the largest line break that was between them. A marker of a
    list item is kept if a sentence of its line is kept.
    """
    text = ""
    since = [gaps[0]]
    if not kept[0]:
        # Only the marker of the first line can be kept.
        since = ["\n" + re.split(_BREAK, gaps[0])[-1]]
    for sentence, gap, is_kept in zip(sentences, gaps[1:], kept, strict=True):
        if is_kept:
            text += _shortened(since) + sentence
            since = []
        since.append(gap)
    if kept[-1]:
        return text + gaps[-1]
    return text + _rule_of(since[0])


def _rule_of(gap):
    rule = _find_rule(gap)
    return rule[0] if rule else ""


def _shortened(gaps):
    """Return the text between two kept sentences, given the text around the ones between them."""
    if len(gaps) == 1:
        return gaps[0]
    attached = _rule_of(gaps[0])
    gaps = [gaps[0].removeprefix(attached), *gaps[1:]]
    breaks = max((re.findall(_BREAK, gap)[:2] for gap in gaps), key=len)
    if not breaks:
        return attached + (" " if any(gaps) else "")
    marked = [gap for gap in gaps if re.search(_BREAK, gap)]
    return attached + "".join(breaks) + re.split(_BREAK, marked[-1])[-1]
