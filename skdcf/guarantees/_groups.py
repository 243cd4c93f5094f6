"""Thresholds for groups of problems, which may overlap or not."""

from typing import Any

import numpy as np

from ..graphs.grouping import as_one, as_set
from ..ops.conformal import conformal_threshold
from ..ops.overlap import overlap_threshold
from ..ops.risk_control import Steps
from ._calibration import Calibration, PathRisks

NEVER = np.inf  # the level of a claim that no alpha keeps


class PerGroup(Calibration):
    """One calibration per group, where groups do not overlap (Mondrian).

    Parameters
    ----------
    guarantee : Guarantee
    steps : Steps
    risks : PathRisks
        Groups, and weights, of the calibration problems.
    """

    def __init__(self, guarantee: Any, steps: Steps, risks: PathRisks) -> None:
        places = rows_of_groups(risks.groups)
        self.n, self.guarantee = steps.n, guarantee
        self.names, self.parts = list(places), []
        for rows in places.values():
            weights = None if risks.weights is None else risks.weights[rows]
            self.parts.append(guarantee.calibrate_one(steps[rows], weights))
        self.pooled = guarantee.calibrate_one(steps, risks.weights)

    def levels(self, risks, keep_equal=False):
        out = np.full(len(risks.path_risk), NEVER)
        for part, rows in self._divided(risks):
            if part is not None:
                out[risks.rows(rows)] = part.levels(risks.take(rows), keep_equal)
        return out

    def thresholds(self, risks, level):
        out = np.full(len(risks), -np.inf)
        for part, rows in self._divided(risks):
            if part is not None:
                out[rows] = part.thresholds(risks.take(rows), level)
        return out

    def shortage(self, level):
        parts = zip(self.names, self.parts, strict=True)
        found = {name: part.shortage(level) for name, part in parts}
        short = {name: text for name, text in found.items() if text}
        if not short:
            return None
        shown = [f"group {name!r}: {text}" for name, text in list(short.items())[:5]]
        more = f" ({len(short) - 5} groups more)" if len(short) > 5 else ""
        return " ".join(shown) + more

    def keeps_nothing(self, level):
        return all(part.shortage(level) for part in self.parts)

    def _divided(self, risks):
        """Pairs (calibration or None, numbers of the problems that it is for)."""
        for name, rows in rows_of_groups(map(as_one, risks.groups)).items():
            yield self._part(name, risks, rows[0]), rows

    def _part(self, name, risks, i):
        if name in self.names:
            return self.parts[self.names.index(name)]
        if self.guarantee.unseen == "error":
            raise ValueError(
                f"{risks.names(i)} is of group {name!r}, of which no problem was among "
                f"those that calibrated (they were of {self.names[:10]}): nothing "
                'can be promised for it. unseen="empty" keeps nothing of such problems, '
                'and unseen="pool" gives them the threshold of all problems together'
            )
        return self.pooled if self.guarantee.unseen == "pool" else None


def rows_of_groups(groups):
    """The numbers of the problems of each group, in the order of the first of them."""
    places: dict = {}
    for i, group in enumerate(groups):
        places.setdefault(group, []).append(i)
    return {name: np.array(rows) for name, rows in places.items()}


class Overlapping(Calibration):
    """One quantile regression on the indicators of all groups.

    Parameters
    ----------
    guarantee : NoFalseClaim
    steps : Steps
    risks : PathRisks
        Groups of the calibration problems, a frozenset for each.
    """

    def __init__(self, guarantee: Any, steps: Steps, risks: PathRisks) -> None:
        groups = [as_set(group) for group in risks.groups]
        known = frozenset().union(*groups)
        self.names = sorted(known, key=str)
        self.position, self.n, self.guarantee = steps.position, steps.n, guarantee
        self.indicators = np.array([self._indicate(group) for group in groups])

    def _indicate(self, groups):
        return np.array([name in groups for name in self.names], dtype=bool)

    def levels(self, risks, keep_equal=False):
        raise ValueError(
            f"with groups that overlap (by={self.guarantee.by!r}) the smallest alpha of a "
            "claim is not known: thresholds are solved for, one alpha at a time, and need "
            "not be nested. Use predict(X, alpha) or masks(X, alphas)"
        )

    def thresholds(self, risks, level):
        out = np.full(len(risks), -np.inf)
        for groups, rows in rows_of_groups(risks.groups).items():
            groups = as_set(groups)
            known = self._known(groups, risks, rows[0])
            # Problems in no group are solved for as well. The threshold of all problems
            # together may be too high for them, and nobody would make up for it.
            if known or not groups:
                out[rows] = overlap_threshold(
                    self.position, self.indicators, self._indicate(known), level
                )
            elif known is not None:  # all unseen, and pooled: nothing is promised
                out[rows] = conformal_threshold(np.sort(self.position), level)
        return out

    def _known(self, groups, risks, i):
        unseen = sorted(groups - set(self.names), key=str)
        if unseen and self.guarantee.unseen == "error":
            raise ValueError(
                f"{risks.names(i)} is of group {unseen[0]!r}, of which no problem was "
                f"among those that calibrated (they were of {self.names[:10]}): nothing "
                'can be promised for it. unseen="empty" keeps nothing of such problems, '
                'and unseen="pool" looks at their other groups alone'
            )
        if unseen and self.guarantee.unseen == "empty":
            return None
        return groups - set(unseen)

    def keeps_nothing(self, level):
        return self.n < self.guarantee.problems_needed(level)

    def shortage(self, level):
        needed = self.guarantee.problems_needed(level)
        counts = zip(self.names, self.indicators.sum(axis=0), strict=True)
        short = [f"{name!r} ({n})" for name, n in counts if n < needed]
        if self.n < needed:
            return self.guarantee.needed(self.n, level)
        if not short:
            return None
        return (
            f"groups with too few calibration problems for alpha = {level:g}: "
            f"{', '.join(short[:5])}. Nothing can be kept in them; each needs at least "
            f"{needed}"
        )
