"""Differentiable versions of calibration and prediction, to train a scorer through.

`PathRelaxation` softens the closed form of `skdcf.ops.hard`; `GridRelaxation` is the
relaxation of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098). Neither is used to predict.
"""

from ._grid import GridRelaxation
from ._path import PathRelaxation, Relaxation

__all__ = ["GridRelaxation", "PathRelaxation", "Relaxation"]
