"""From what other tools write to graphs and labels, importing none of the tools.

Every adapter returns a Bunch with ``graphs`` and ``labels`` and says which way its
scores point: a feature that is used alone must be higher for more confident claims.
"""

from ._frame import from_frame, to_frame
from ._json import from_coherent_factuality_json, from_conformal_factuality_json
from ._lm_polygraph import from_lm_polygraph
from ._networkx import from_networkx
from ._uqlm import from_uqlm
from ._verdicts import from_verdicts

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
