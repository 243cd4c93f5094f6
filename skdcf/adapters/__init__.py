"""Convert the output of other tools to graphs and labels, without importing the tools.

Every adapter returns a Bunch with ``graphs`` and ``labels``. If a feature is used on its own,
higher values must mean more confidence. Every adapter therefore documents the direction of its
scores.
"""

from ._frame import from_frame, to_frame
from ._runs import from_runs
from ._tools import from_lm_polygraph, from_uqlm
from ._verdicts import from_verdicts

__all__ = [
    "from_frame",
    "from_lm_polygraph",
    "from_runs",
    "from_uqlm",
    "from_verdicts",
    "to_frame",
]
