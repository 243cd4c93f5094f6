"""Turn what other tools write into graphs and labels, without importing the tools.

Every adapter returns a Bunch with ``graphs`` and ``labels`` and says which way its
scores point: a feature that is used alone must be higher for more confident claims.
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
