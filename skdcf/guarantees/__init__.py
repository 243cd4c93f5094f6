"""What a filter promises, and for whom: values for ``guarantee=`` of every filter.

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
from ._no_false_claim import ExpectedFalse, NoFalseClaim, problems_needed
from ._protocol import Guarantee, LikelihoodRatio, describe_problems, estimate_ratio

__all__ = [
    "Calibration",
    "Controlled",
    "ExpectedFalse",
    "Guarantee",
    "LikelihoodRatio",
    "NoFalseClaim",
    "OneThreshold",
    "Overlapping",
    "PathRisks",
    "PerGroup",
    "describe_problems",
    "estimate_ratio",
    "problems_needed",
]
