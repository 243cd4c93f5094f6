"""Label claims on a web page, record label provenance, and measure annotator agreement.

The command ``skdcf label FILE.jsonl`` opens the labelling page. `LabelStore` saves the verdicts.
"""

from ._agreement import agreement
from ._describe import describe_labels
from ._orders import FilterOrder, RandomOrder, next_to_label
from ._review import ReviewOrder
from ._server import LabelServer
from ._store import LabelStore
from .exchange import (
    LABEL_STUDIO_CONFIG,
    from_label_studio,
    read_csv,
    to_label_studio,
    write_csv,
)

__all__ = [
    "LABEL_STUDIO_CONFIG",
    "FilterOrder",
    "LabelServer",
    "LabelStore",
    "RandomOrder",
    "ReviewOrder",
    "agreement",
    "describe_labels",
    "from_label_studio",
    "next_to_label",
    "read_csv",
    "to_label_studio",
    "write_csv",
]
