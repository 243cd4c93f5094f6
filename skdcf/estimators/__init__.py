"""Layer 5, estimators: the scikit-learn face."""

from ._hard import HardCF
from .baselines import IndependentFactuality, SingleFeatureCF

__all__ = ["HardCF", "IndependentFactuality", "SingleFeatureCF"]
