# What editors and type checkers read in place of the lazy imports of __init__.py.
from . import (
    apps as apps,
)
from . import (
    choosing as choosing,
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
    guarantees as guarantees,
)
from . import (
    inspection as inspection,
)
from . import (
    monitoring as monitoring,
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
from .graphs import GraphBatch as GraphBatch
from .graphs import ReasoningGraph as ReasoningGraph
from .parts import CalibrationPart as CalibrationPart
from .parts import problems_needed as problems_needed
from .persistence import load as load
from .persistence import load_threshold as load_threshold
from .persistence import save as save
from .persistence import save_threshold as save_threshold
from .presets import BoostedIndependentFactuality as BoostedIndependentFactuality
from .presets import CoherentConformalFilter as CoherentConformalFilter
from .presets import HardCF as HardCF
from .presets import IndependentFactuality as IndependentFactuality
from .presets import SingleFeatureCF as SingleFeatureCF
from .presets import XGBoostCF as XGBoostCF

__all__ = [
    "BoostedIndependentFactuality",
    "CalibrationPart",
    "CoherentConformalFilter",
    "GraphBatch",
    "HardCF",
    "IndependentFactuality",
    "ReasoningGraph",
    "SingleFeatureCF",
    "XGBoostCF",
    "load",
    "load_threshold",
    "problems_needed",
    "save",
    "save_threshold",
]
