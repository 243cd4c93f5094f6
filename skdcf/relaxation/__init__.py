"""Differentiable versions of calibration and prediction, through which scorers are trained.

`PathRelaxation` softens the closed form of `skdcf.ops.hard`. `GridRelaxation` is the relaxation of
Hittesdorf, Salzetta and Cheng (arXiv:2604.20098). Both are only used in training.
"""

from ._grid import GridRelaxation
from ._path import PathRelaxation, Relaxation

__all__ = ["GridRelaxation", "PathRelaxation", "Relaxation"]
