"""How messages name problems and claims, and show what users wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import printable

LONGEST = 80  # characters that a message shows of one value
MOST = 10  # claims that a message names of one cycle


def show(value):
    """A value on one line, cut where it is long."""
    text = printable(repr(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def show_count(graph):
    """The number of edges of a graph or batch for its repr, where any are known."""
    return len(graph.edges) if np.any(graph.edges_known) else "unknown"


def cycle_message(cycle):
    """A sentence on claims that depend on each other, in the order of dependence."""
    named = [str(v) for v in cycle]
    if len(named) > MOST:
        named[MOST - 1 :] = [f"... ({len(cycle):,} claims)"]
    path = " -> ".join([*named, named[0]])
    return f"the claims depend on each other in a cycle: {path}"


class Names:
    """How messages name the problems and the claims of a batch."""

    def __init__(self, ids: Any, offsets: Any) -> None:
        self.ids, self.offsets = ids, offsets

    def name_of(self, i: int) -> str:
        """How messages name a problem.

        Parameters
        ----------
        i : int
            Position of the problem.

        Returns
        -------
        str
        """
        named = self.ids is not None and self.ids[i] is not None
        return f"problem {i}" + (f' ("{printable(self.ids[i])}")' if named else "")

    def locate(self, row: int) -> str:
        """How messages name a claim.

        Parameters
        ----------
        row : int
            Row number of the claim.

        Returns
        -------
        str
        """
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"{self.name_of(i)}, claim {row - self.offsets[i]}"

    def at(self, i: int | None = None) -> str:
        """How a message begins that is about one problem, or about all of them.

        Parameters
        ----------
        i : int, optional
            Position of the problem.

        Returns
        -------
        str
        """
        return "" if i is None else f"{self.name_of(i)}: "


class OneName(Names):
    """How messages name a graph on its own, and its claims."""

    def __init__(self, id):
        self.name = "" if id is None else f'problem "{printable(id)}"'

    def at(self, i=None):
        """The name of the problem, where it has one."""
        return self.name and f"{self.name}: "

    def locate(self, row):
        """The name of a claim."""
        return f"{self.at()}claim {row}"
