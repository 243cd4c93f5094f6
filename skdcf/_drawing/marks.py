"""How a claim looks: kept or dropped, and true, false or not judged.

Each difference is made three times, by colour, by shape and by outline, so that it
survives print in grey and eyes that see fewer colours (palette of Okabe and Ito).
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

FALSE, NOT_JUDGED = "#d55e00", "#5c5c5c"


@dataclass(frozen=True)
class Look:
    """Fill, outline and colour of the number; dropped claims are dashed squares."""

    word: str
    fill: str
    outline: str
    ink: str
    square: bool


class Mark(Enum):
    """What is drawn at the corner of a claim."""

    NONE = ""
    FALSE = "false"
    UNKNOWN = "not judged"


LOOKS = {
    None: Look("claim", "#2f5d8a", "#1d3d5c", "#ffffff", False),
    True: Look("kept", "#00664d", "#003b2c", "#ffffff", False),
    False: Look("dropped", "#f4f4f4", "#6b6b6b", "#333333", True),
}


MARKS = {1: Mark.NONE, 0: Mark.FALSE, -1: Mark.UNKNOWN}


class Shown(NamedTuple):
    """Look and mark of one claim."""

    look: Look
    mark: Mark

    @property
    def words(self):
        """What the claim is, as text: "kept, false"."""
        known = self.look.word if self.look is not LOOKS[None] else ""
        return ", ".join(word for word in (known, self.mark.value) if word)


def shown_of(n_claims, kept, labels):
    """Look and mark of each claim.

    Parameters
    ----------
    n_claims : int
    kept : sequence of bool, or None where nothing was filtered
    labels : sequence of int, or None
        1 true, 0 false, -1 not judged.

    Returns
    -------
    list of Shown
    """
    states = [None] * n_claims if kept is None else np.asarray(kept, bool).tolist()
    known = [1] * n_claims if labels is None else np.asarray(labels, int).tolist()
    pairs = zip(states, known, strict=True)
    return [Shown(LOOKS[state], MARKS[label]) for state, label in pairs]
