"""Descriptions that many docstrings share, and the decorator that inserts them.

A docstring refers to a description by its name in braces. ``{X}`` on its own line stands for a
whole parameter, and ``X : {problems}`` for the type of a parameter.
"""

import re
from inspect import isfunction
from typing import TypeVar

_T = TypeVar("_T")

#: Shared parameter descriptions, keyed by name. A description may refer to other descriptions.
DESCRIPTIONS = {
    "problems": "sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)",
    "labels": "sequence of 1-D arrays, one per problem",
    "X": """X : {problems}
    The problems.""",
    "y": """y : {labels}
    Claim labels of the problems.""",
    "alpha": """alpha : float, default=0.1
    Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).""",
    "own_alpha": """alpha : float in (0, 1), optional
    If None, the alpha of the filter is used.""",
    "ax": """ax : matplotlib Axes, optional
    Axes to draw on. If None, a new figure is created.""",
    "axes": """ax : matplotlib Axes, or a sequence of one per panel, optional
    Axes to draw on. If None, a new figure is created.""",
}

#: Pattern for a name in braces, either at the beginning of a line or after a parameter name.
_REFERENCE = re.compile(r"^( *)(\w+ : )?\{(\w+)\}", re.MULTILINE)


def documented(described: _T) -> _T:
    """Insert the descriptions into the docstring of a function, or of a class and its methods."""
    members = (getattr(m, "__func__", m) for m in vars(described).values())
    for each in (described, *filter(isfunction, members)):
        if each.__doc__:  # Python removes docstrings if it runs with -OO.
            each.__doc__ = _REFERENCE.sub(_description, each.__doc__)
    return described


def _description(reference):
    """Return the description, or the same text if it is not the name of a description."""
    indent, parameter, name = reference.groups(default="")
    if name not in DESCRIPTIONS:
        return reference[0]
    text = _REFERENCE.sub(_description, DESCRIPTIONS[name])
    return indent + parameter + text.replace("\n", f"\n{indent}")
