"""Features by what they do: bars of importance, swarms of Shapley values."""

from typing import Any, Literal, Self

import numpy as np

from .._checks import check_choice
from ._style import TRUE, one_axes

POINTS = 1000  # drawn per feature; more cannot be told apart
BINS = 60
THICK = 0.8  # of a swarm, in rows


class ImportanceDisplay:
    """Bars of mean importance, the largest on top, with deviations.

    Parameters
    ----------
    report : ImportanceReport
        From `skdcf.inspection.permutation_importance` or `shap_values`.
    max_features : int, default=10

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

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
    def from_report(
        cls, report: Any, *, max_features: int = 10, ax: Any = None
    ) -> Self:
        """Draw importances that are at hand.

        Parameters
        ----------
        report : ImportanceReport
        max_features : int, default=10
        ax : matplotlib Axes, optional

        Returns
        -------
        ImportanceDisplay
        """
        return cls(report, max_features=max_features).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
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
        filter : fitted filter
        X, y
            Problems that are new to the scorer, with their labels.
        max_features : int, default=10
        ax : matplotlib Axes, optional
        **options
            Of `skdcf.inspection.permutation_importance`.

        Returns
        -------
        ImportanceDisplay
        """
        from ..inspection import permutation_importance

        report = permutation_importance(filter, X, y, **options)
        return cls.from_report(report, max_features=max_features, ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        shown = self.report.ranking[: self.max_features]
        self.ax_ = one_axes(ax, (6.5, 1.1 + 0.3 * len(shown)))
        self.ax_.barh(
            np.arange(len(shown)),
            self.report.mean[shown],
            xerr=self.report.deviation[shown],
            color=TRUE,
            ecolor="0.35",
            capsize=2,
            height=0.65,
        )
        _name_rows(self.ax_, self.report, shown)
        self.ax_.axvline(0, color="k", lw=0.8)
        self.ax_.set_xlabel(self.report.what.replace(", of", ",\nof"))
        self.figure_ = self.ax_.figure
        return self


class ShapDisplay:
    """Shapley values: bars of their mean size, or a swarm with one dot per claim.

    Parameters
    ----------
    report : ShapReport
    kind : {"swarm", "bar"}, default="swarm"
    max_features : int, default=10

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

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
        self.report = report
        self.kind = kind
        self.max_features = max_features

    @classmethod
    def from_report(
        cls,
        report: Any,
        *,
        kind: Literal["swarm", "bar"] = "swarm",
        max_features: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw Shapley values that are at hand.

        Parameters
        ----------
        report : ShapReport
            Of `skdcf.inspection.shap_values` or `pooled_shap_values`.
        kind : {"swarm", "bar"}, default="swarm"
        max_features : int, default=10
        ax : matplotlib Axes, optional

        Returns
        -------
        ShapDisplay
        """
        return cls(report, kind=kind, max_features=max_features).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
        X: Any,
        *,
        background: Any = None,
        kind: Literal["swarm", "bar"] = "swarm",
        max_features: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw the Shapley values of a fitted filter.

        Parameters
        ----------
        filter : fitted filter
            With a linear scorer, or xgboost's trees.
        X, background
            As in `skdcf.inspection.shap_values`.
        kind, max_features, ax
            As in `from_report`.

        Returns
        -------
        ShapDisplay
        """
        from ..inspection import shap_values

        report = shap_values(filter, X, background=background)
        return cls.from_report(report, kind=kind, max_features=max_features, ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        check_choice("kind", self.kind, ("swarm", "bar"))
        if self.kind == "bar":
            bars = ImportanceDisplay(self.report, max_features=self.max_features)
            self.ax_ = bars.plot(ax=ax).ax_
        else:
            self.ax_ = self._plot_swarm(ax)
        self.figure_ = self.ax_.figure
        return self

    def _plot_swarm(self, ax):
        shown = self.report.ranking[: self.max_features]
        ax = one_axes(ax, (7.5, 1.2 + 0.42 * len(shown)))
        rng = np.random.default_rng(0)
        some = rng.permutation(len(self.report.values))[:POINTS]
        for row, j in enumerate(shown):
            at = self.report.values[some, j]
            dots = ax.scatter(
                at,
                row + _swarm(at),
                c=_shades(self.report.features[some, j]),
                cmap="cividis",
                vmin=0,
                vmax=1,
                s=7,
                linewidths=0,
            )
        _name_rows(ax, self.report, shown)
        ax.axvline(0, color="k", lw=0.8, zorder=0)
        ax.set_xlabel("Shapley value: what the feature adds to the confidence")
        if len(shown):
            bar = ax.figure.colorbar(dots, ax=ax, ticks=[0, 1], aspect=30)
            bar.set_ticklabels(["low", "high"])
            bar.set_label("value of the feature", labelpad=-12)
        return ax


def _name_rows(ax, report, shown):
    ax.set_yticks(np.arange(len(shown)), [report.feature_names[j] for j in shown])
    ax.set_ylim(len(shown) - 0.45, -0.55)


def _shades(values):
    """From 0 for the lowest to 1 for the highest, whatever lies far off."""
    low, high = np.percentile(values, [2, 98])
    if high == low:
        low, high = values.min(), values.max()
    return np.clip((values - low) / ((high - low) or 1.0), 0, 1)


def _swarm(values):
    """Vertical places: dots of one bin side by side, the fullest bin the widest."""
    low, spread = values.min(initial=0), np.ptp(values) or 1.0
    bins = np.floor((values - low) / spread * (BINS - 1)).astype(int)
    count = np.bincount(bins, minlength=BINS)
    place = np.empty(len(values))
    for b in np.flatnonzero(count):
        inside = np.flatnonzero(bins == b)
        steps = np.arange(len(inside))
        place[inside] = (steps + 1) // 2 * np.where(steps % 2, 1, -1)
    return THICK * place / max(count.max(), 12)
