"""Differentiable relaxations of calibration and prediction, which are used to train scorers.

`PathRelaxation` relaxes the closed-form calibration of `skdcf.ops.hard`. `GridRelaxation`
implements the relaxation of Hittesdorf, Salzetta and Cheng (arXiv:2604.20098). The relaxations
are used only during training.
"""

from ._grid import GridRelaxation
from ._path import PathRelaxation, Relaxation

__all__ = ["GridRelaxation", "PathRelaxation", "Relaxation"]
