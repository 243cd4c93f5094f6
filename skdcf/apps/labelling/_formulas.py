"""Convert LaTeX in questions and claims to MathML trees that contain only allowed elements."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert


def split_formulas(text: str | None) -> list[Any] | None:
    """Split a text into strings and MathML trees of the form [tag, attributes, children].

    The labelling page builds DOM elements from the trees and never parses HTML.

    Parameters
    ----------
    text : str or None
        The text to split.

    Returns
    -------
    pieces : list or None
        The strings and trees in order, or None if the text contains no formula.
    """
    text = text or ""
    pieces: list[Any] = []
    end = 0
    formula = (
        r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\((.{1,2000}?)\\\)|"
        r"(?<![\\$])\$(?=\S)([^$\n]{1,500}?)(?<=[^\s\\])\$(?!\d)"
    )
    for match in re.finditer(formula, text, re.DOTALL):
        try:
            root = ElementTree.fromstring(convert(next(filter(None, match.groups()))))
            tree = _tree(root)
        except Exception:  # Invalid LaTeX is shown as plain text.
            continue
        pieces += [text[end : match.start()], tree]
        end = match.end()
    return [*pieces, text[end:]] if pieces else None


def _tree(element):
    tag = element.tag.rpartition("}")[2]
    # A formula with any other element or attribute is shown as plain text, because claims are
    # untrusted model output and LaTeX can contain ``\\text{<script>}``.
    tags = (
        "math mrow mi mn mo mtext mspace msup msub msubsup mfrac msqrt mroot mover munder "
        "munderover mtable mtr mtd mstyle mpadded mphantom menclose mfenced"
    )
    attributes = "display mathvariant stretchy fence accent linethickness width"
    if tag not in tags.split() or not {*element.attrib} <= {*attributes.split()}:
        raise ValueError(f"{tag} must not have the attributes {sorted(element.attrib)}")
    children = [element.text or ""]
    for child in element:
        children += [_tree(child), child.tail or ""]
    return [tag, element.attrib, [c for c in children if c]]
