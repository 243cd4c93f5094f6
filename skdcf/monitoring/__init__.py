"""A filter in use: does the promise still hold, what follows change, who needs review.

`CoverageMonitor` watches the coverage by judged answers, `ExchangeabilityTest` the path
risks without labels. `SlidingCalibration` and `AdaptiveAlpha` follow what changes.
`release` chooses whole answers that need no review.
"""

from ._adapt import AdaptiveAlpha, SlidingCalibration, answer_p_values, release
from ._coverage import CoverageMonitor
from ._exchangeability import ExchangeabilityTest

__all__ = [
    "AdaptiveAlpha",
    "CoverageMonitor",
    "ExchangeabilityTest",
    "SlidingCalibration",
    "answer_p_values",
    "release",
]
