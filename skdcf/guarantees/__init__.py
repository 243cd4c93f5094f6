"""Guarantees that a filter accepts as its parameter ``guarantee``.

`NoFalseClaim` bounds a probability, while `ExpectedFalse` bounds an expectation. The parameter
``by`` defines groups of problems, in each of which the guarantee holds. To define your own
guarantee, write a subclass of `Guarantee`.
"""

from ._calibration import Calibration
from ._calibration import Controlled as Controlled
from ._calibration import OneThreshold as OneThreshold
from ._calibration import PathRisks as PathRisks
from ._calibration import PerGroup as PerGroup
from ._calibration import rows_of_groups as rows_of_groups
from ._guarantees import ExpectedFalse, Guarantee, NoFalseClaim, problems_needed
from ._guarantees import refuse_dependence as refuse_dependence
from ._passing import Passing as Passing
from ._passing import choose_share as choose_share
from ._passing import share_table as share_table

__all__ = [
    "Calibration",
    "ExpectedFalse",
    "Guarantee",
    "NoFalseClaim",
    "problems_needed",
]

# Classes that saved filters may contain, but that users need not instantiate.
__saved__: list[str] = [
    "Controlled",
    "OneThreshold",
    "Passing",
    "PathRisks",
    "PerGroup",
]
