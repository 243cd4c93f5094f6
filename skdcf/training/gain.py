"""Gain, which is the value of the number of kept true claims in an answer.

If the number of kept claims were maximised, the risk would be spent on the safest answers, and no
claims in other answers would be kept. If the gain is a power below 1, the first claim kept in an
answer is worth more than the fifth claim kept in another answer.
"""

from collections.abc import Callable
from typing import Any

from .._checks import is_real

# Offset added to a soft count, because a power below 1 has an infinite slope at 0.
FLOOR = 0.001


def check_gain(gain: Any) -> None:
    """Raise ValueError unless the gain is None, 0 or a number between 0.01 and 1."""
    if gain is not None and not (
        is_real(gain) and (gain == 0 or 0.01 <= float(gain) <= 1)
    ):
        raise ValueError(
            "gain must be None, 0 (the logarithm of 1 + the number of kept claims), or an "
            f"exponent between 0.01 and 1, got {gain!r}"
        )


def soft_worth_of(gain: float) -> Callable[[Any], Any]:
    """Return the gain as a function of soft counts, which autograd can differentiate."""
    import autograd.numpy as anp

    if gain == 0:
        return anp.log1p
    return lambda kept: kept if gain == 1 else (kept + FLOOR) ** gain
