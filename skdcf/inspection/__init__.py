"""Explain decisions on claims, and measure the importance of features."""

from ._explain import explain, permutation_importance, shap_values

__all__ = ["explain", "permutation_importance", "shap_values"]
