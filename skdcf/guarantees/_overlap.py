"""Thresholds for groups that overlap."""

from typing import Any

import numpy as np

from ..graphs.grouping import as_set
from ..ops.conformal import conformal_threshold
from ..ops.overlap import overlap_threshold
from ..ops.risk_control import Steps
from ._calibration import Calibration, Claims
from ._groups import rows_of_groups


class Overlapping(Calibration):
    """One quantile regression on the indicators of all groups.

    Parameters
    ----------
    promise : NoFalseClaim
    steps : Steps
    claims : Claims
        Groups of the calibration problems, a frozenset for each.
    """

    def __init__(self, promise: Any, steps: Steps, claims: Claims) -> None:
        groups = [as_set(group) for group in claims.groups]
        known = frozenset().union(*groups)
        self.names = sorted(known, key=str)
        self.position, self.n, self.promise = steps.position, steps.n, promise
        self.indicators = np.array([self._indicate(group) for group in groups])

    def _indicate(self, groups):
        return np.array([name in groups for name in self.names], dtype=bool)

    def levels(self, claims, keep_equal=False):
        raise ValueError(
            f"with groups that overlap (by={self.promise.by!r}) the smallest alpha of a "
            "claim is not known: thresholds are solved for, one alpha at a time, and need "
            "not be nested. Use predict(X, alpha) or masks(X, alphas)"
        )

    def thresholds(self, claims, level):
        out = np.full(len(claims), -np.inf)
        for groups, rows in rows_of_groups(claims.groups).items():
            groups = as_set(groups)
            known = self._known(groups, claims, rows[0])
            # Problems in no group are solved for as well. The threshold of all problems
            # together may be too high for them, and nobody would make up for it.
            if known or not groups:
                out[rows] = overlap_threshold(
                    self.position, self.indicators, self._indicate(known), level
                )
            elif known is not None:  # all unseen, and pooled: nothing is promised
                out[rows] = conformal_threshold(np.sort(self.position), level)
        return out

    def _known(self, groups, claims, i):
        unseen = sorted(groups - set(self.names), key=str)
        if unseen and self.promise.unseen == "error":
            raise ValueError(
                f"{claims.names(i)} is of group {unseen[0]!r}, of which no problem was "
                f"among those that calibrated (they were of {self.names[:10]}): nothing "
                'can be promised for it. unseen="empty" keeps nothing of such problems, '
                'and unseen="pool" looks at their other groups alone'
            )
        if unseen and self.promise.unseen == "empty":
            return None
        return groups - set(unseen)

    def keeps_nothing(self, level):
        return self.n < self.promise.problems_needed(level)

    def lacking(self, level):
        needed = self.promise.problems_needed(level)
        counts = zip(self.names, self.indicators.sum(axis=0), strict=True)
        short = [f"{name!r} ({n})" for name, n in counts if n < needed]
        if self.n < needed:
            return self.promise.needed(self.n, level)
        if not short:
            return None
        return (
            f"groups with too few calibration problems for alpha = {level:g}: "
            f"{', '.join(short[:5])}. Nothing can be kept in them; each needs at least "
            f"{needed}"
        )
