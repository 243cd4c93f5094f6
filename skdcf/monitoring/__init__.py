"""A filter in use: does the guarantee still hold, what follows change, who needs review.

`CoverageMonitor` watches the coverage by judged answers, `ExchangeabilityTest` the path
risks without labels. `SlidingCalibration` follows what changes. `release` chooses whole
answers that need no review.
"""

from ._adapt import SlidingCalibration, release
from ._coverage import CoverageMonitor
from ._exchangeability import ExchangeabilityTest

__all__ = [
    "CoverageMonitor",
    "ExchangeabilityTest",
    "SlidingCalibration",
    "release",
]
