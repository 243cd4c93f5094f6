"""Guarantees that a filter accepts as its ``guarantee`` parameter.

`NoFalseClaim` bounds a probability, while `ExpectedFalse` bounds an expectation. The parameter
``by`` defines groups of problems, in each of which the guarantee holds. To define your own
guarantee, write a subclass of `Guarantee`.
"""

from ..ops.conformal import Jumps
from ._calibration import Calibration as Calibration
from ._calibration import PathRisks as PathRisks
from ._calibration import Steps as Steps
from ._calibration import leave_one_out as leave_one_out
from ._guarantees import ExpectedFalse, Guarantee, NoFalseClaim
from ._passing import choose_share as choose_share
from ._passing import share_table as share_table

__all__ = ["ExpectedFalse", "Guarantee", "Jumps", "NoFalseClaim"]
