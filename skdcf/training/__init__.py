"""Settings of training through soft calibration; the training itself is in `skdcf.training.loop`.

Settings are separate so that filters can predict without importing autograd.
"""

from ._settings import LBFGS, Adam, SoftTraining
from .splitting import Standardizer as Standardizer

__all__ = ["LBFGS", "Adam", "SoftTraining"]

# A class that is stored in files of filters. Users do not need to create it.
__saved__: list[str] = ["Standardizer"]
