"""Looking into filters: why a claim was dropped, what features do, how faithful training is."""

from ._explain import Contributions, Explanation, explain
from ._retention import (
    RetentionReport,
    SurrogateReport,
    retention_by,
    surrogate_agreement,
)
from ._separation import SeparationReport, score_separation, single_feature_ablation
from ._shap import (
    ImportanceReport,
    ShapReport,
    permutation_importance,
    pooled_shap_values,
    shap_values,
)

__all__ = [
    "Contributions",
    "Explanation",
    "ImportanceReport",
    "RetentionReport",
    "SeparationReport",
    "ShapReport",
    "SurrogateReport",
    "explain",
    "permutation_importance",
    "pooled_shap_values",
    "retention_by",
    "score_separation",
    "shap_values",
    "single_feature_ablation",
    "surrogate_agreement",
]
