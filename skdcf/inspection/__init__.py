"""Explain decisions of filters, and rank features by importance."""

from ._explain import (
    Contributions,
    Explanation,
    ImportanceReport,
    explain,
    permutation_importance,
    shap_values,
)

__all__ = [
    "Contributions",
    "Explanation",
    "ImportanceReport",
    "explain",
    "permutation_importance",
    "shap_values",
]
