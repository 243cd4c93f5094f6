"""Monitoring of a filter in use, and selection of answers that need no review.

`CoverageMonitor` tests the guarantee with judged answers, and `ExchangeabilityTest` tests the
path risks without labels. `SlidingCalibration` adapts to changes. `release` selects whole
answers that need no review, by conformal selection (Jin and Candès 2023), and
`release_claims` bounds the error rate among the shown texts of a batch.
"""

from ._monitors import ODDS as ODDS
from ._monitors import CoverageMonitor, ExchangeabilityTest, SlidingCalibration
from ._release import release, release_claims

__all__ = [
    "CoverageMonitor",
    "ExchangeabilityTest",
    "SlidingCalibration",
    "release",
    "release_claims",
]
