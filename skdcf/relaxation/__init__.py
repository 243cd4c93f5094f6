"""Differentiable relaxations of calibration and prediction, through which scorers are trained.

`PathRelaxation` relaxes the closed form of `skdcf.ops.hard`. `GridRelaxation` is the relaxation of
Hittesdorf, Salzetta and Cheng (arXiv:2604.20098). The relaxations are used only in training.
"""

from ._grid import GridRelaxation
from ._path import PathRelaxation, Relaxation

__all__ = ["GridRelaxation", "PathRelaxation", "Relaxation"]
