"""Label claims on a web page, record label provenance, and measure annotator agreement.

The command ``skdcf label FILE.jsonl`` opens the labelling page. `LabelStore` saves the verdicts.
"""

from ._judging import FilterOrder, RandomOrder, agreement, next_to_label
from ._review import Check, ReviewOrder
from ._server import LabelServer
from .exchange import from_label_studio, to_label_studio
from .sources import LabelSource, LabelStore, describe_labels, describe_unfinished

__all__ = [
    "Check",
    "FilterOrder",
    "LabelServer",
    "LabelSource",
    "LabelStore",
    "RandomOrder",
    "ReviewOrder",
    "agreement",
    "describe_labels",
    "describe_unfinished",
    "from_label_studio",
    "next_to_label",
    "to_label_studio",
]
