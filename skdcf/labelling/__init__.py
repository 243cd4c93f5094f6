"""Labels: a page to give them, who gave them, how far they agree, and what to judge next.

``skdcf label FILE.jsonl`` opens the page. `LabelStore` keeps what is said on it.
"""

from ._agreement import (
    Kappa,
    ModelAgreement,
    agreement,
    cohen_kappa,
    list_disagreements,
)
from ._export import label_studio_config, to_label_studio
from ._next import NextProblem, next_to_label
from ._server import LabelServer
from ._sources import (
    LabelSource,
    describe_labels,
    get_label_sources,
    set_label_sources,
)
from ._store import LabelStore

__all__ = [
    "Kappa",
    "LabelServer",
    "LabelSource",
    "LabelStore",
    "ModelAgreement",
    "NextProblem",
    "agreement",
    "cohen_kappa",
    "describe_labels",
    "get_label_sources",
    "label_studio_config",
    "list_disagreements",
    "next_to_label",
    "set_label_sources",
    "to_label_studio",
]
