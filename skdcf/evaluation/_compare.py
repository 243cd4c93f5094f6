"""The comparison itself: which splits, which filters, and one split after another."""

import time
import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._version import version
from ..estimators._validation import check_labels
from ..exceptions import CalibrationWarning
from ..graphs import as_batch, is_graphs
from ..metrics import evaluate_filter, leave_one_out
from ..ops.conformal import check_alpha, problems_needed
from ._levels import is_search, train
from ._report import METRICS, ComparisonReport
from ._resume import ResumeFile, fingerprint
from ._splits import LEAVE_ONE_OUT, SHARES, make_splits
