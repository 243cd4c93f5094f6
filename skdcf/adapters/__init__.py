"""From what other tools write to graphs and labels, importing none of the tools.

Every adapter returns a Bunch with ``graphs`` and ``labels`` and says which way its
scores point: a feature that is used alone must be higher for more confident claims.
"""

from ._frame import from_frame, to_frame
from ._lm_polygraph import from_lm_polygraph, from_uqlm, from_verdicts
from ._networkx import (
    from_coherent_factuality_json,
    from_conformal_factuality_json,
    from_networkx,
)

__all__ = [
    "from_coherent_factuality_json",
    "from_conformal_factuality_json",
    "from_frame",
    "from_lm_polygraph",
    "from_networkx",
    "from_uqlm",
    "from_verdicts",
    "to_frame",
]
