"""Private scikit-learn names that this package uses because there are no public equivalents.

No other module imports private names of scikit-learn. A test imports these names from the nightly
build of scikit-learn, so changes are noticed early.
"""

from sklearn.base import _clone_parametrized as clone_parameters  # noqa: F401
from sklearn.utils import _safe_indexing as take_rows  # noqa: F401
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import Options as Options
from sklearn.utils._param_validation import RealNotInt as RealNotInt
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.metaestimators import _BaseComposition as Composition  # noqa: F401
from sklearn.utils.validation import _check_sample_weight as read_weights  # noqa: F401
