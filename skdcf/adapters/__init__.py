"""Convert the output of other tools to graphs and labels without importing these tools.

Every adapter returns a Bunch with ``graphs`` and ``labels``. If a feature is used directly as the
confidence, higher values must mean more confidence. The documentation of each adapter therefore
states whether higher scores mean more confidence.
"""

from ._frame import from_frame
from ._tools import from_lm_polygraph, from_uqlm

__all__ = [
    "from_frame",
    "from_lm_polygraph",
    "from_uqlm",
]
