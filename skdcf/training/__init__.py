"""Training through soft calibration: its settings. What trains is `skdcf.training.loop`.

The settings load no autograd, so that a filter that holds some predicts without it.
"""

from ._settings import LBFGS, Adam, SoftTraining
from .preparing import Standardizer as Standardizer

__all__ = ["LBFGS", "Adam", "SoftTraining"]

# A class that files of filters hold, and that nobody has to make.
__saved__: list[str] = ["Standardizer"]
