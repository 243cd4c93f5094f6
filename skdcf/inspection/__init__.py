"""Looking into filters: why a claim was dropped, what features do, how faithful training is."""

from ._ablation import single_feature_ablation
from ._contributions import Contributions
from ._explain import Explanation, explain
from ._permutation import permutation_importance
from ._pooled import pooled_shap_values
from ._retention import RetentionReport, retention_by
from ._separation import SeparationReport, score_separation
from ._shap import ImportanceReport, ShapReport, shap_values
from ._surrogate import SurrogateReport, surrogate_agreement

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
