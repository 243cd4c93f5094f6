"""Layer 4, training: a scorer's parameters from problems with labels. Pure functions."""

from ._train import PAPER, TrainingResult, check_options, train

__all__ = ["PAPER", "TrainingResult", "check_options", "train"]
