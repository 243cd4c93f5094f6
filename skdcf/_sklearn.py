"""The private names of scikit-learn that this package uses, for which there is no public one.

No other module imports a private name of scikit-learn. A test imports all of them with the
nightly version, and so it tells first what has moved.
"""

from sklearn.utils import _safe_indexing as take_rows  # noqa: F401
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import RealNotInt as RealNotInt
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.metaestimators import _BaseComposition as Composition  # noqa: F401

#: Where files of filters find the classes that they may hold, by private modules.
KEPT_IN_FILES = {
    "sklearn.metrics._scorer": ("_PassthroughScorer",),
    "sklearn.utils._metadata_requests": (
        "MetadataRequest",
        "MetadataRouter",
        "MethodMapping",
        "MethodMetadataRequest",
        "MethodPair",
        "RouterMappingPair",
    ),
}
