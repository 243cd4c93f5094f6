"""Monitor a filter in production.

`CoverageMonitor` tests the guarantee on judged answers, and `ExchangeabilityTest` tests the
exchangeability of path risks without labels.
"""

from ._monitors import CoverageMonitor, ExchangeabilityTest

__all__ = ["CoverageMonitor", "ExchangeabilityTest"]
