"""Settings for training through soft calibration, which is implemented in `skdcf.training.loop`.

The settings are in a separate module, so filters can predict without importing autograd.
"""

from ._settings import LBFGS, Adam, SoftTraining

__all__ = ["LBFGS", "Adam", "SoftTraining"]
