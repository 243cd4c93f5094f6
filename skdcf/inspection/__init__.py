"""Explain decisions of filters, rank features by importance, and measure the relaxation error."""

from ._explain import (
    Contributions,
    Explanation,
    ImportanceReport,
    explain,
    permutation_importance,
    shap_values,
)
from ._paper import (
    SeparationReport,
    SurrogateReport,
    score_separation,
    single_feature_ablation,
    surrogate_agreement,
)

__all__ = [
    "Contributions",
    "Explanation",
    "ImportanceReport",
    "SeparationReport",
    "SurrogateReport",
    "explain",
    "permutation_importance",
    "score_separation",
    "shap_values",
    "single_feature_ablation",
    "surrogate_agreement",
]
