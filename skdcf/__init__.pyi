# What editors and type checkers read in place of the lazy imports of __init__.py.
from . import (
    adapters as adapters,
)
from . import (
    apps as apps,
)
from . import (
    datasets as datasets,
)
from . import (
    edges as edges,
)
from . import (
    evaluation as evaluation,
)
from . import (
    exceptions as exceptions,
)
from . import (
    features as features,
)
from . import (
    graphs as graphs,
)
from . import (
    guarantees as guarantees,
)
from . import (
    inspection as inspection,
)
from . import (
    metrics as metrics,
)
from . import (
    monitoring as monitoring,
)
from . import (
    persistence as persistence,
)
from . import (
    plots as plots,
)
from . import (
    relaxation as relaxation,
)
from . import (
    scorers as scorers,
)
from . import (
    training as training,
)
from ._version import __version__ as __version__
from .filters import BoostedIndependentFactuality as BoostedIndependentFactuality
from .filters import CoherentConformalFilter as CoherentConformalFilter
from .filters import HardCF as HardCF
from .filters import IndependentFactuality as IndependentFactuality
from .filters import SingleFeatureCF as SingleFeatureCF
from .filters import XGBoostCF as XGBoostCF
from .graphs import GraphBatch as GraphBatch
from .graphs import ReasoningGraph as ReasoningGraph
from .persistence import load as load
from .persistence import save as save

__all__ = [
    "BoostedIndependentFactuality",
    "CoherentConformalFilter",
    "GraphBatch",
    "HardCF",
    "IndependentFactuality",
    "ReasoningGraph",
    "SingleFeatureCF",
    "XGBoostCF",
    "load",
    "save",
]
