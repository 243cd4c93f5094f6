"""Settings of training through soft calibration, which `skdcf.training.loop` does.

The settings load no autograd, so that a filter that holds some predicts without it.
"""

from ._settings import LBFGS, Adam, SoftTraining
from .splitting import Standardizer as Standardizer

__all__ = ["LBFGS", "Adam", "SoftTraining"]

# A class that files of filters hold, and that nobody has to make.
__saved__: list[str] = ["Standardizer"]
