"""Monitor a filter in production, and bound the error rate among the shown texts of a batch.

`CoverageMonitor` tests the guarantee on judged answers, and `ExchangeabilityTest` tests the
exchangeability of path risks without labels. `release` bounds the error rate among the shown texts
of a batch.
"""

from ._monitors import ODDS as ODDS
from ._monitors import CoverageMonitor, ExchangeabilityTest
from ._release import release

__all__ = [
    "CoverageMonitor",
    "ExchangeabilityTest",
    "release",
]
