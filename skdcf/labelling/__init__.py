"""Labels: a page to give them, who gave them, how far they agree, and what to judge next.

``skdcf label FILE.jsonl`` opens the page. `LabelStore` keeps what is said on it.
"""

from ._agreement import (
    LabelSource,
    agreement,
    cohen_kappa,
    describe_labels,
    get_label_sources,
    list_disagreements,
    set_label_sources,
)
from ._exchange import (
    from_label_studio,
    label_studio_config,
    read_csv,
    to_label_studio,
    write_csv,
)
from ._next import Disagreements, FilterOrder, RandomOrder, next_to_label
from ._server import LabelServer
from ._store import LabelStore

__all__ = [
    "Disagreements",
    "FilterOrder",
    "LabelServer",
    "LabelSource",
    "LabelStore",
    "RandomOrder",
    "agreement",
    "cohen_kappa",
    "describe_labels",
    "from_label_studio",
    "get_label_sources",
    "label_studio_config",
    "list_disagreements",
    "next_to_label",
    "read_csv",
    "set_label_sources",
    "to_label_studio",
    "write_csv",
]
