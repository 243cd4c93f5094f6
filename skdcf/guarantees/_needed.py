"""How many calibration problems a promise takes."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from .._checks import check_alpha
from ..ops.conformal import problems_needed as needed_in_one


def problems_needed(
    alpha: float,
    delta: float | None = None,
    by: Mapping[Any, float] | Iterable[Any] | None = None,
) -> int:
    """The number of calibration problems from which on anything can be kept.

    Parameters
    ----------
    alpha : float in (0, 1)
    delta : float in (0, 1), optional
        As in `NoFalseClaim`.
    by : mapping from group to share, or iterable with a group per problem, optional
        How problems are distributed over the groups that the promise is made in. The
        result is then what it takes until the smallest group has enough, on average.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If alpha, delta or a share is not between 0 and 1.

    Examples
    --------
    >>> from skdcf.guarantees import problems_needed
    >>> problems_needed(0.1), problems_needed(0.1, delta=0.05)
    (9, 29)
    >>> problems_needed(0.1, by={"short": 0.9, "long": 0.1})
    90
    """
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"delta is {delta!r}, but must be between 0 and 1")
    needed = needed_in_one(check_alpha(alpha), delta)
    return needed if by is None else ceil(needed / _smallest_share(by) - 1e-9)


def _smallest_share(by):
    if not isinstance(by, Mapping):
        groups = list(by)
        by = {group: groups.count(group) for group in set(groups)}
    shares = {group: share / sum(by.values()) for group, share in by.items()}
    if not shares or not all(share > 0 for share in shares.values()):
        raise ValueError(f"by is {by!r}: every group needs a share above 0")
    return min(shares.values())
