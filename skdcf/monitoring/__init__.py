"""Monitors of a filter in use: whether its guarantee still holds, and what needs review.

`CoverageMonitor` watches the coverage by judged answers, `ExchangeabilityTest` the path
risks without labels. `SlidingCalibration` follows what changes. `release` chooses whole
answers that need no review, by conformal selection (Jin and Candès 2023), and
`release_claims` what is kept of each answer so that the texts that are shown can be trusted.
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
