"""Gain functions, which assign a value to the number of kept true claims in an answer.

If the number of kept claims were maximised, the risk would be spent on the safest answers, and no
claims in other answers would be kept. If the gain is a power below 1, the first claim kept in an
answer is worth more than the fifth claim kept in another answer.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._checks import is_real

#: Function that maps an array of kept-claim counts to the values of these counts.
Worth: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Gain: TypeAlias = float | Literal["claims", "answers"] | Worth
POWERS = {"claims": 1.0, "answers": 0.0}
# offset added to a soft count, because most gains have an infinite slope at 0
FLOOR = 0.001
MOST_KEPT = 1000  # maximum number of claims for which a gain is checked


def worth_of(gain: Gain) -> Worth:
    """Return the gain as a function of the number of claims.

    Raises
    ------
    ValueError
        If the gain is not a function, a known name, or a power between 0 and 1.
    """
    power = _power_of(gain)
    if callable(power):
        return power
    # With a power of 0, the gain would not increase beyond one claim. The logarithm, which is
    # also concave, is used instead of a power of 0.
    return np.log1p if power == 0 else lambda kept: kept**power


def _power_of(gain: Any) -> Any:
    power = POWERS.get(gain, gain) if isinstance(gain, str) else gain
    if callable(power) or (is_real(power) and 0 <= float(power) <= 1):
        return power
    raise ValueError(
        f"gain must be an exponent between 0 and 1, one of {list(POWERS)}, or a "
        f"function of the number of kept claims, such as numpy.sqrt, got {gain!r}"
    )


def check_gain(gain: Gain) -> None:
    """Raise ValueError unless the gain is increasing and concave.

    With any other gain, claims would have no common price, so the sets of kept claims would not
    be nested in alpha.
    """
    worth = worth_of(gain)
    gains = np.diff(np.asarray(worth(np.arange(MOST_KEPT + 1.0)), dtype=np.float64))
    grows = np.isfinite(gains).all() and (gains > 0).all()
    if not (grows and (np.diff(gains) <= 1e-9 * gains[:-1]).all()):
        raise ValueError(
            "gain must be increasing and concave in the number of kept claims. Each "
            "additional claim must add a positive value that does not exceed the value "
            "added by the previous claim"
        )


def soft_worth_of(gain: Gain) -> Callable[[Any], Any]:
    """Return the gain as a function of soft counts, which autograd can differentiate.

    Raises
    ------
    ValueError
        If the gain is a function that autograd cannot differentiate.
    """
    import autograd.numpy as anp
    from autograd import elementwise_grad

    power = _power_of(gain)
    if callable(power):
        try:
            elementwise_grad(power)(np.ones(1))
        except TypeError as error:
            raise ValueError(
                f"gain must be differentiable with autograd, got {gain!r}. Use functions from "
                "autograd.numpy, such as autograd.numpy.sqrt"
            ) from error
        return lambda kept: power(kept + FLOOR)
    if power == 0:
        return anp.log1p
    return lambda kept: kept if power == 1 else (kept + FLOOR) ** power
