"""What a filter promises, and for whom: values for ``guarantee=`` of every filter.

`NoFalseClaim` and `ExpectedFalse` say what is promised; their ``by`` and ``weight`` for
whom. A guarantee of your own derives from `Guarantee`.
"""

from ._calibration import Calibration, Claims, Controlled, OneThreshold
from ._expected_false import ExpectedFalse
from ._groups import PerGroup
from ._needed import problems_needed
from ._no_false_claim import NoFalseClaim
from ._overlap import Overlapping
from ._protocol import Guarantee
from ._shift import LikelihoodRatio, describe_problems, estimate_ratio

__all__ = [
    "Calibration",
    "Claims",
    "Controlled",
    "ExpectedFalse",
    "Guarantee",
    "LikelihoodRatio",
    "NoFalseClaim",
    "OneThreshold",
    "Overlapping",
    "PerGroup",
    "describe_problems",
    "estimate_ratio",
    "problems_needed",
]
