"""Thresholds for each of several groups that do not overlap (Mondrian)."""

from typing import Any

import numpy as np

from ..graphs.grouping import as_one
from ..ops.risk_control import Steps
from ._calibration import Calibration, Claims

NEVER = np.inf  # the level of a claim that no alpha keeps


class PerGroup(Calibration):
    """One calibration per group.

    Parameters
    ----------
    promise : Guarantee
    steps : Steps
    claims : Claims
        Groups, and weights, of the calibration problems.
    """

    def __init__(self, promise: Any, steps: Steps, claims: Claims) -> None:
        places = rows_of_groups(claims.groups)
        self.n, self.promise = steps.n, promise
        self.names, self.parts = list(places), []
        for rows in places.values():
            weights = None if claims.weights is None else claims.weights[rows]
            self.parts.append(promise.calibrate_one(steps[rows], weights))
        self.pooled = promise.calibrate_one(steps, claims.weights)

    def levels(self, claims, keep_equal=False):
        out = np.full(len(claims.path_risk), NEVER)
        for part, rows in self._divided(claims):
            if part is not None:
                out[claims.rows(rows)] = part.levels(claims.take(rows), keep_equal)
        return out

    def thresholds(self, claims, level):
        out = np.full(len(claims), -np.inf)
        for part, rows in self._divided(claims):
            if part is not None:
                out[rows] = part.thresholds(claims.take(rows), level)
        return out

    def lacking(self, level):
        parts = zip(self.names, self.parts, strict=True)
        found = {name: part.lacking(level) for name, part in parts}
        short = {name: text for name, text in found.items() if text}
        if not short:
            return None
        shown = [f"group {name!r}: {text}" for name, text in list(short.items())[:5]]
        more = f" ({len(short) - 5} groups more)" if len(short) > 5 else ""
        return " ".join(shown) + more

    def keeps_nothing(self, level):
        return all(part.lacking(level) for part in self.parts)

    def _divided(self, claims):
        """Pairs (calibration or None, numbers of the problems that it is for)."""
        for name, rows in rows_of_groups(map(as_one, claims.groups)).items():
            yield self._part(name, claims, rows[0]), rows

    def _part(self, name, claims, i):
        if name in self.names:
            return self.parts[self.names.index(name)]
        if self.promise.unseen == "error":
            raise ValueError(
                f"{claims.names(i)} is of group {name!r}, of which no problem was among "
                f"those that calibrated (they were of {self.names[:10]}): nothing "
                'can be promised for it. unseen="empty" keeps nothing of such problems, '
                'and unseen="pool" gives them the threshold of all problems together'
            )
        return self.pooled if self.promise.unseen == "pool" else None


def rows_of_groups(groups):
    """The numbers of the problems of each group, in the order of the first of them."""
    places: dict = {}
    for i, group in enumerate(groups):
        places.setdefault(group, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}
