"""Promises of a filter and for whom they hold, as values for ``guarantee=``.

`NoFalseClaim` and `ExpectedFalse` say what is promised; their ``by`` and ``weight`` for
whom. A guarantee of your own derives from `Guarantee`.
"""

from ._calibration import Calibration
from ._calibration import Controlled as Controlled
from ._calibration import OneThreshold as OneThreshold
from ._calibration import Overlapping as Overlapping
from ._calibration import PathRisks as PathRisks
from ._calibration import PerGroup as PerGroup
from ._guarantees import ExpectedFalse, Guarantee, NoFalseClaim, problems_needed
from ._guarantees import refuse_dependence as refuse_dependence
from ._passing import Passing as Passing
from ._passing import choose_share as choose_share

__all__ = [
    "Calibration",
    "ExpectedFalse",
    "Guarantee",
    "NoFalseClaim",
    "problems_needed",
]

# Classes that files of filters hold, and that nobody has to make.
__saved__: list[str] = [
    "Controlled",
    "OneThreshold",
    "Overlapping",
    "Passing",
    "PathRisks",
    "PerGroup",
]
