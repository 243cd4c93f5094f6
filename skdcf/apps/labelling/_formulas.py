"""LaTeX in questions and claims as trees of MathML, which say nothing but mathematics."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\((.{1,2000}?)\\\)|"
    r"(?<![\\$])\$(?=\S)([^$\n]{1,500}?)(?<=[^\s\\])\$(?!\d)",
    re.DOTALL,
)
#: A formula with any other element or attribute is shown as it was written: claims are
#: written by a model, and ``\\text{<script>}`` is one of the things that LaTeX can say.
_TAG = re.compile(
    "math|mrow|mi|mn|mo|mtext|mspace|msup|msub|msubsup|mfrac|msqrt|mroot|mover|munder|"
    "munderover|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|mfenced"
)
_ATTRIBUTE = re.compile("display|mathvariant|stretchy|fence|accent|linethickness|width")


def split_formulas(text: str | None) -> list[Any] | None:
    """Cut a text into strings and trees (tag, attributes, children) of MathML.

    A page builds them without reading any HTML.

    Parameters
    ----------
    text : str or None

    Returns
    -------
    list or None
        None if there is no formula.
    """
    text = text or ""
    pieces: list[Any] = []
    end = 0
    for match in _FORMULA.finditer(text):
        try:
            root = ElementTree.fromstring(convert(next(filter(None, match.groups()))))
            tree = _tree(root)
        except Exception:  # whatever a model wrote: it is shown as it stands
            continue
        pieces += [text[end : match.start()], tree]
        end = match.end()
    return [*pieces, text[end:]] if pieces else None


def _tree(element):
    tag = element.tag.rpartition("}")[2]
    if not _TAG.fullmatch(tag) or not all(map(_ATTRIBUTE.fullmatch, element.attrib)):
        raise ValueError(f"{tag} with {sorted(element.attrib)} is not shown")
    children = [element.text or ""]
    for child in element:
        children += [_tree(child), child.tail or ""]
    return [tag, element.attrib, [c for c in children if c]]
