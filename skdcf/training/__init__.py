"""Layer 4, training: a scorer's parameters from problems with labels. Pure functions."""

from ._standardize import Standardizer
from ._train import PAPER, TrainingResult, train

__all__ = ["PAPER", "Standardizer", "TrainingResult", "train"]
