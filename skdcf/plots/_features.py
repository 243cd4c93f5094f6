"""Features by what they do: bars of importance, swarms of Shapley values."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from .._checks import check_choice
from ..inspection import permutation_importance, shap_values
from ._style import TRUE, Display

POINTS = 1000  # drawn per feature; more cannot be told apart
BINS = 60
THICK = 0.8  # of a swarm, in rows


class ImportanceDisplay(Display):
    """Bars of mean importance, the largest on top, with deviations.

    Parameters
    ----------
    report : ImportanceReport
        From `skdcf.inspection.permutation_importance` or `shap_values`.
    max_features : int, default=10
        Number of features to show.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import ImportanceDisplay
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(ties="jitter").fit(graphs[:100], y[:100])
    >>> display = ImportanceDisplay.from_estimator(
    ...     cf, graphs[100:], y[100:], n_repeats=2, max_features=5
    ... )
    >>> len(display.ax_.patches)
    5
    """

    def __init__(self, report: Any, *, max_features: int = 10) -> None:
        self.report = report
        self.max_features = max_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        max_features: int = 10,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the permutation importance of retention.

        Parameters
        ----------
        estimator : fitted filter
            The filter whose features are shuffled.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems that are new to the scorer.
        y : sequence of 1-D arrays, one per problem
            Their labels.
        max_features : int, default=10
            Number of features to show.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.
        **options
            Options of `skdcf.inspection.permutation_importance`.

        Returns
        -------
        ImportanceDisplay
        """
        report = permutation_importance(estimator, X, y, **options)
        return cls.from_report(report, max_features=max_features, ax=ax)

    @property
    def _shown(self):
        return self.report.ranking[: self.max_features]

    @property
    def _size(self):
        return 6.5, 1.1 + 0.3 * len(self._shown)

    def _draw(self, axes):
        (ax,), report, shown = axes, self.report, self._shown
        style = {"color": TRUE, "ecolor": "0.35", "capsize": 2, "height": 0.65}
        rows, error = np.arange(len(shown)), report.deviation[shown]
        ax.barh(rows, report.mean[shown], xerr=error, **style)
        _name_rows(ax, report, shown)
        ax.axvline(0, color="k", lw=0.8)
        ax.set_xlabel(report.what.replace(", of", ",\nof"))


class ShapDisplay(ImportanceDisplay):
    """Shapley values: bars of their mean size, or a swarm with one dot per claim.

    Parameters
    ----------
    report : ShapReport
        From `skdcf.inspection.shap_values` or `pooled_shap_values`.
    kind : {"swarm", "bar"}, default="swarm"
        What to draw.
    max_features : int, default=10
        Number of features to show.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import ShapDisplay
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0).fit(graphs, y)
    >>> display = ShapDisplay.from_estimator(dcf, graphs[:50], max_features=4)
    >>> len(display.ax_.collections)
    4
    """

    def __init__(
        self,
        report: Any,
        *,
        kind: Literal["swarm", "bar"] = "swarm",
        max_features: int = 10,
    ) -> None:
        super().__init__(report, max_features=max_features)
        self.kind = kind

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls,
        estimator: Any,
        X: Any,
        *,
        background: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw the Shapley values of a fitted filter.

        Parameters
        ----------
        estimator : fitted filter
            A filter with a linear scorer, or xgboost's trees.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems whose claims are looked at.
        background : problems, optional
            As in `skdcf.inspection.shap_values`.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.
        **settings
            ``kind`` and ``max_features``.

        Returns
        -------
        ShapDisplay
        """
        report = shap_values(estimator, X, background=background)
        return cls.from_report(report, ax=ax, **settings)

    @property
    def _size(self):
        if self.kind == "bar":
            return super()._size
        return 7.5, 1.2 + 0.42 * len(self._shown)

    def plot(self, *, ax: Any = None) -> Self:
        check_choice("kind", self.kind, ("swarm", "bar"))
        return super().plot(ax=ax)

    plot.__doc__ = Display.plot.__doc__

    def _draw(self, axes):
        if self.kind == "bar":
            super()._draw(axes)
            return
        (ax,), report, shown = axes, self.report, self._shown
        rng = np.random.default_rng(0)
        some = rng.permutation(len(report.values))[:POINTS]
        style = {"cmap": "cividis", "vmin": 0, "vmax": 1, "s": 7, "linewidths": 0}
        for row, j in enumerate(shown):
            at, shade = report.values[some, j], _shades(report.features[some, j])
            dots = ax.scatter(at, row + _swarm(at), c=shade, **style)
        _name_rows(ax, report, shown)
        ax.axvline(0, color="k", lw=0.8, zorder=0)
        ax.set_xlabel("Shapley value: what the feature adds to the confidence")
        if len(shown):
            bar = ax.figure.colorbar(dots, ax=ax, ticks=[0, 1], aspect=30)
            bar.set_ticklabels(["low", "high"])
            bar.set_label("value of the feature", labelpad=-12)


def _name_rows(ax, report, shown):
    ax.set_yticks(np.arange(len(shown)), [report.feature_names[j] for j in shown])
    ax.set_ylim(len(shown) - 0.45, -0.55)


def _shades(values):
    """Numbers from 0 for the lowest to 1 for the highest; what lies far off is clipped."""
    low, high = np.percentile(values, [2, 98])
    if high == low:
        low, high = values.min(), values.max()
    return np.clip((values - low) / ((high - low) or 1.0), 0, 1)


def _swarm(values):
    """Vertical places: dots of one bin stand side by side, the fullest bin is the widest."""
    low, spread = values.min(initial=0), np.ptp(values) or 1.0
    bins = np.floor((values - low) / spread * (BINS - 1)).astype(int)
    count = np.bincount(bins, minlength=BINS)
    place = np.empty(len(values))
    for b in np.flatnonzero(count):
        inside = np.flatnonzero(bins == b)
        steps = np.arange(len(inside))
        place[inside] = (steps + 1) // 2 * np.where(steps % 2, 1, -1)
    return THICK * place / max(count.max(), 12)
