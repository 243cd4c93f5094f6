"""Settings of all figures: the same picture from the same numbers."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

matplotlib.rcParams |= {
    "svg.hashsalt": "skdcf",
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

__all__ = ["plt"]
