"""What all displays share: how they are made, and lines that differ in grey too."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

# Okabe and Ito (2008), without the yellow that white paper swallows.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
TRUE, FALSE = "#0072b2", "#d55e00"
CHANCE = {"color": "0.55", "alpha": 0.3, "lw": 0}


class Display:
    """A report as a picture; a subclass says how to draw it.

    A subclass defines ``_draw(axes)``, which gets an array of ``_panels`` axes, and
    ``_size``, the inches of a new figure; both may depend on the report.
    """

    _panels = 1
    _size = (6.0, 4.0)

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None, **settings: Any) -> Self:
        """Draw a report that is at hand.

        Parameters
        ----------
        report : object
            As the class takes it.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.
        **settings
            Further parameters of the class.

        Returns
        -------
        Display
            Of this class, drawn.
        """
        return cls(report, **settings).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.

        Returns
        -------
        self
        """
        self.axes_ = axes = axes_of(ax, self._panels, self._size)
        self._draw(axes)
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return self

    def _draw(self, axes):
        raise NotImplementedError


def axes_of(ax, n, figsize):
    """The n axes that were given, or those of a new figure, side by side."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(1, n, figsize=figsize, layout="constrained")
    axes = np.asarray(ax, dtype=object).ravel()
    if len(axes) != n:
        raise ValueError(f"{len(axes)} axes were given, but {n} are drawn on")
    return axes


def by_name(one):
    """A dict by name as it is, and anything else as one without a name."""
    return one if isinstance(one, dict) else {"": one}


def line_style(i):
    """Colour, marker and dash of line i."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
    }


def draw_bars(ax, i, name, at, height, error):
    """Points with error bars, joined by a line."""
    style = {"capsize": 2, "ms": 5, "lw": 1.2, "label": name or "observed"}
    ax.errorbar(at, height, yerr=error, **style, **line_style(i))


class Places:
    """Where the marks of n lines stand around the levels, so that none hides another.

    What was promised and what theory expects is drawn as wide as all of them, flat, so
    that a mark beside its level stays inside the band that it belongs to.

    Parameters
    ----------
    levels : array-like
    n : int
        Number of lines.
    """

    def __init__(self, levels, n):
        self.levels = np.unique(levels)
        gap = np.diff(self.levels).min(initial=0.1) / (3 * max(n, 1))
        self.shifts = gap * (np.arange(n) - (n - 1) / 2)
        self.half = gap * max(n, 2) / 2

    def draw_promise(self, ax, coverage):
        """A flat line at each level."""
        ends = self.levels - self.half, self.levels + self.half
        label = {"label": "promised: 1 - alpha"}
        ax.hlines(coverage, *ends, color="k", lw=1.2, zorder=1, **label)

    def draw_band(self, ax, levels, band, i=None):
        """A box around each level, or around the marks of line i alone."""
        n = len(self.shifts)
        shift, half = (0, self.half) if i is None else (self.shifts[i], self.half / n)
        at, gap = np.asarray(levels) + shift, np.full(len(levels), np.nan)
        ends = np.column_stack([at - half, at + half, gap]).ravel()
        low, high = np.repeat(np.asarray(band).T, 3, axis=1)
        label = None if i else "95 % band of theory"
        ax.fill_between(ends, low, high, label=label, zorder=0, **CHANCE)

    def name(self, ax, label="alpha"):
        """Ticks at the levels, and nowhere else."""
        close = np.diff(self.levels).min(initial=np.inf) < 0.09 * np.ptp(self.levels)
        names = [f"{level:g}" for level in self.levels]
        ax.set_xticks(self.levels, names, rotation=90 if close else 0, minor=False)
        ax.set_xlabel(label)
