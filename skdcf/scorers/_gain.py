"""What kept claims are worth: as many as possible, or something in every answer.

To keep as many claims as possible spends the risk on the answers that are sure, and
empties the others. With a square root, a claim in an answer that would be empty is worth
more than a fifth one elsewhere.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: From numbers of kept claims, an array, to what they are worth together.
Worth: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Gain: TypeAlias = Literal["claims", "answers"] | Worth

MOST = 1000  # claims up to which a gain is looked at


def count_claims(kept):
    """Each claim is worth the same."""
    return kept


WORTH = {"claims": count_claims, "answers": np.sqrt}


def worth_of(gain):
    """The function behind a name, or the function itself; ValueError if it is none.

    A gain has to grow with every claim, and the less the more there are. Otherwise no
    common price per claim exists, and kept sets would not be nested in alpha.
    """
    worth = WORTH.get(gain, gain) if isinstance(gain, str) else gain
    if not callable(worth):
        raise ValueError(
            f"gain is {gain!r}, but must be one of {list(WORTH)}, or a function of the "
            "number of kept claims, such as numpy.sqrt"
        )
    steps = np.diff(np.asarray(worth(np.arange(MOST + 1.0)), dtype=np.float64))
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise ValueError("gain must grow with every claim that is kept")
    if (np.diff(steps) > 1e-9 * steps[:-1]).any():
        raise ValueError(
            "gain must be concave: no claim may be worth more than the one before it"
        )
    return worth
