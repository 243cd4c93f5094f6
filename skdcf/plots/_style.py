"""What all pictures share: lines that differ in grey too, and axes to draw on."""

import numpy as np

# Okabe and Ito (2008), without the yellow that white paper swallows.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
TRUE, FALSE = "#0072b2", "#d55e00"


def line_style(i):
    """Colour, marker and dash of line i."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
    }


def one_axes(ax, figsize):
    """The axes given, or those of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def several_axes(axes, n, figsize):
    """The axes given, which have to be n, or those of a new figure, side by side."""
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(1, n, figsize=figsize, layout="constrained", squeeze=False)[
            1
        ]
    axes = np.asarray(axes, dtype=object).ravel()
    if len(axes) != n:
        raise ValueError(f"{len(axes)} axes were given, but {n} are drawn on")
    return axes


def shifts(alpha, n):
    """How far the marks of each of n lines are moved, so that none hides another."""
    gap = np.diff(np.sort(alpha)).min(initial=0.1) / (3 * max(n, 1))
    return gap * (np.arange(n) - (n - 1) / 2)


def alpha_ticks(ax, alpha):
    """Ticks at the levels, and nowhere else."""
    alpha = np.unique(alpha)
    close = np.diff(alpha).min(initial=np.inf) < 0.09 * np.ptp(alpha)
    labels = [f"{a:g}" for a in alpha]
    ax.set_xticks(alpha, labels, rotation=90 if close else 0, minor=False)
    ax.set_xlabel("alpha")
