"""Label claims on a web page, record label provenance, and measure annotator agreement.

The command ``skdcf label FILE.jsonl`` opens the labelling page. `LabelStore` saves the verdicts.
"""

from ._judging import Disagreements, FilterOrder, RandomOrder, agreement, next_to_label
from ._review import (
    AuditOrder,
    BudgetOrder,
    Check,
    ReviewOrder,
    review_curve,
    strictest,
)
from ._server import LabelServer
from .exchange import from_label_studio, to_label_studio
from .sources import LabelSource, LabelStore, describe_labels, describe_unfinished

__all__ = [
    "AuditOrder",
    "BudgetOrder",
    "Check",
    "Disagreements",
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
    "review_curve",
    "strictest",
    "to_label_studio",
]
