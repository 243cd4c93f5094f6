"""Monitor a filter in production, and select answers that require no review.

`CoverageMonitor` tests the guarantee on judged answers, and `ExchangeabilityTest` tests the
exchangeability of path risks without labels. `release` uses conformal selection (Jin and Candès
2023) to select whole answers that require no review. `release_claims` bounds the error rate among
the shown texts of a batch.
"""

from ._monitors import ODDS as ODDS
from ._monitors import CoverageMonitor, ExchangeabilityTest
from ._release import release, release_claims

__all__ = [
    "CoverageMonitor",
    "ExchangeabilityTest",
    "release",
    "release_claims",
]
