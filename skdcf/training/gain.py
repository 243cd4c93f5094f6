"""What the true claims that are kept of an answer are worth: the gain of a filter.

To keep as many claims as possible spends the risk on the answers that are sure, and empties
the others. With a power below 1, a claim in an answer that would be empty is worth more than a
fifth one elsewhere.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: From numbers of kept claims, an array, to what they are worth together.
Worth: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Gain: TypeAlias = float | Literal["claims", "answers"] | Worth
POWERS = {"claims": 1.0, "answers": 0.0}
FLOOR = 0.001  # added to a soft number: at 0 the slope of most gains is infinite
MOST_KEPT = 1000  # largest number of claims for which a gain is checked


def worth_of(gain: Gain) -> Worth:
    """Return the function that a power or a name stands for, or the function itself.

    Raises
    ------
    ValueError
        If it is not a function, and not such a power.
    """
    power = _power_of(gain)
    if callable(power):
        return power
    # The power 0 would not grow beyond one claim; the logarithm grows as little.
    return np.log1p if power == 0 else lambda kept: kept**power


def _power_of(gain: Any) -> Any:
    power = POWERS.get(gain, gain) if isinstance(gain, str) else gain
    is_number = isinstance(power, Real) and not isinstance(power, bool)
    if callable(power) or (is_number and 0 <= float(power) <= 1):
        return power
    raise ValueError(
        f"gain is {gain!r}, but must be a power from 0 to 1, one of {list(POWERS)}, or "
        "a function of the number of kept claims, such as numpy.sqrt"
    )


def check_gain(gain: Gain) -> None:
    """Raise ValueError unless a gain grows with every claim, and the less the more there are.

    Otherwise no common price per claim exists, and kept sets would not be nested in alpha.
    """
    worth = worth_of(gain)
    gains = np.diff(np.asarray(worth(np.arange(MOST_KEPT + 1.0)), dtype=np.float64))
    grows = np.isfinite(gains).all() and (gains > 0).all()
    if not (grows and (np.diff(gains) <= 1e-9 * gains[:-1]).all()):
        raise ValueError(
            "gain must grow with every claim that is kept, and be concave: no claim may be "
            "worth more than the one before it"
        )


def soft_worth_of(gain: Gain) -> Callable[[Any], Any]:
    """Return `worth_of` for soft numbers of claims, as autograd follows it.

    Raises
    ------
    ValueError
        If the gain is a function that autograd cannot follow.
    """
    import autograd.numpy as anp
    from autograd import elementwise_grad

    power = _power_of(gain)
    if callable(power):
        try:
            elementwise_grad(power)(np.ones(1))
        except TypeError as error:
            raise ValueError(
                f"gain is {gain!r}, of which autograd finds no gradient: write it in "
                "functions of autograd.numpy, such as autograd.numpy.sqrt"
            ) from error
        return lambda kept: power(kept + FLOOR)
    if power == 0:
        return anp.log1p
    return lambda kept: kept if power == 1 else (kept + FLOOR) ** power
