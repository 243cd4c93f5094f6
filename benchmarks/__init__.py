"""Programs that measure the package. Run them from the checkout.

For example, run ``python -m benchmarks.speed.compare_speed``. The programs in ``speed`` measure
time and memory. The programs in ``retention`` measure how many claims are kept, and those in
``guarantees`` compare the guarantees with observed error rates. The programs in ``pages`` write
pages of the documentation. This folder contains shared modules, and ``results`` contains the
saved results.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
GUIDE = ROOT / "docs" / "guide"
REFEREES = ROOT / "docs" / "referees"
