"""How messages name problems and claims, and show what users wrote."""

from typing import Any

import numpy as np

from .._checks import printable

LONGEST = 80  # characters that a message shows of one value
MOST = 10  # claims that a message names of one cycle


def name_problem(i, ids):
    """Problem ``i``, with its id where that is known."""
    named = ids is not None and ids[i] is not None
    return f'problem {i} ("{printable(ids[i])}")' if named else f"problem {i}"


def locate(row, offsets, ids):
    """The claim in a row of a batch, with its problem."""
    i = np.searchsorted(offsets, row, side="right") - 1
    return f"{name_problem(i, ids)}, claim {row - offsets[i]}"


def show(value):
    """A value on one line, cut where it is long."""
    text = printable(repr(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def show_count(graph):
    """The number of edges of a graph for its repr, where it is known."""
    return len(graph.edges) if graph.edges_known else "unknown"


def cycle_message(cycle):
    """What is wrong where claims depend on each other, for a message."""
    named = [str(v) for v in cycle]
    if len(named) > MOST:
        named[MOST - 1 :] = [f"... ({len(cycle):,} claims)"]
    path = " -> ".join([*named, named[0]])
    return f"the claims depend on each other in a cycle: {path}"


class Names:
    """How messages name the problems and the claims of a batch."""

    ids: Any
    offsets: Any

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
        return name_problem(i, self.ids)

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
        return locate(row, self.offsets, self.ids)
