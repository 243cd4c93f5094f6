"""Promises of a filter, and for whom: values for ``guarantee=`` of every filter.

`NoFalseClaim` and `ExpectedFalse` say what is promised; their ``by`` and ``weight`` for
whom. A guarantee of your own derives from `Guarantee`.
"""

from ._calibration import (
    Calibration,
    Controlled,
    OneThreshold,
    Overlapping,
    PathRisks,
    PerGroup,
)
from ._guarantees import ExpectedFalse, Guarantee, NoFalseClaim, problems_needed
from ._guarantees import refuse_dependence as refuse_dependence

__all__ = [
    "Calibration",
    "Controlled",
    "ExpectedFalse",
    "Guarantee",
    "NoFalseClaim",
    "OneThreshold",
    "Overlapping",
    "PathRisks",
    "PerGroup",
    "problems_needed",
]
