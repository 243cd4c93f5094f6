"""Label claims on a web page, record label provenance, and measure annotator agreement.

The command ``skdcf label FILE.jsonl`` opens the labelling page. `LabelStore` saves the verdicts.
"""

from ._agreement import agreement
from ._describe import describe_labels
from ._orders import FilterOrder as FilterOrder
from ._orders import RandomOrder as RandomOrder
from ._review import ReviewOrder as ReviewOrder
from ._server import LabelServer as LabelServer
from ._store import LabelStore
from .exchange import LABEL_STUDIO_CONFIG

__all__ = [
    "LABEL_STUDIO_CONFIG",
    "LabelStore",
    "agreement",
    "describe_labels",
]
