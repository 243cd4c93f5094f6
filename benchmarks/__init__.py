"""Programs that measure the package, run from the checkout.

For instance ``python -m benchmarks.speed.text_speed``. ``speed`` has time and memory,
``retention`` what filters keep, ``guarantees`` what is promised against what came out, and
``pages`` what writes the pages of the documentation. Modules that several of them share stand
here, and what they saved stands in ``results``.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
GUIDE = ROOT / "docs" / "guide"
REFEREES = ROOT / "docs" / "referees"
