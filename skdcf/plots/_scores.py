"""Scores and features: soft against hard, true against false, and what adds to a score.

Features are shown by bars of importance, or by swarms of Shapley values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._checks import check_choice
from ..inspection import (
    RetentionReport,
    SeparationReport,
    permutation_importance,
    retention_by,
    shap_values,
    surrogate_agreement,
)
from ._reports import FALSE, TRUE, Display, by_name, line_style

GRID = 400


class SoftHardDisplay(Display):
    """Soft against hard nonconformity scores, one dot per problem with an error.

    Parameters
    ----------
    report : SurrogateReport
        From `skdcf.inspection.surrogate_agreement`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import SoftHardDisplay
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0).fit(X[:200], y[:200])
    >>> display = SoftHardDisplay.from_estimator(dcf, X[200:], y[200:], [0.1])
    >>> display.ax_.get_xlabel()
    'hard score'
    """

    _size = (4.6, 4.2)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        alphas: Iterable[float] = (0.05, 0.1),
        *,
        relaxation: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw how faithful a relaxation is to the procedure that it stands for.

        Parameters
        ----------
        estimator : fitted filter
            The filter whose scorer gives the risks.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems, as in `skdcf.inspection.surrogate_agreement`.
        y : sequence of 1-D arrays, one per problem
            Their labels.
        alphas : sequence of float in (0, 1)
            The levels.
        relaxation : PathRelaxation or GridRelaxation, optional
            None is the filter's own.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.

        Returns
        -------
        SoftHardDisplay
        """
        report = surrogate_agreement(estimator, X, y, alphas, relaxation=relaxation)
        return cls.from_report(report, ax=ax)

    def _draw(self, axes):
        (ax,), report = axes, self.report
        hard, soft = report.hard_scores, report.soft_scores
        both = np.concatenate([hard, soft])
        ends = [both.min(), both.max()]
        ax.plot(ends, ends, color="k", lw=0.9, label="the same")
        ax.plot(hard, soft, "o", color=TRUE, alpha=0.6, ms=4, mec="none")
        title = (
            f"r = {report.score_pearson:.3f}, mean difference {report.score_mae:.3f}"
        )
        ax.set_title(title, fontsize="medium")
        ax.set(xlabel="hard score", ylabel="soft score")
        ax.legend(frameon=False)


class ScoreDistributionDisplay(Display):
    """Densities of the scores of true and of false claims, one panel per filter.

    Parameters
    ----------
    report : SeparationReport
        From `skdcf.inspection.score_separation`.
    alpha : float, optional
        One of the report's; None is its first.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> from skdcf.plots import ScoreDistributionDisplay
    >>> labels = [1, 1, 1, 0, 0, 0]
    >>> display = ScoreDistributionDisplay.from_predictions(
    ...     labels, {"frequency": [5, 4, 2, 3, 1, 0]}
    ... )
    >>> display.ax_.get_title()
    "frequency: Cohen's d 1.53, overlap 0.52"
    """

    def __init__(self, report: Any, *, alpha: float | None = None) -> None:
        self.report = report
        self.alpha = alpha

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, scores: Mapping[str, ArrayLike], *, ax: Any = None
    ) -> Self:
        """Draw scores of claims by their labels.

        Parameters
        ----------
        y : array-like of shape (n_claims,)
            1 true, 0 false; other claims are left out.
        scores : dict of str to array-like of shape (n_claims,)
            By the name of the panel.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.

        Returns
        -------
        ScoreDistributionDisplay
        """
        return cls.from_report(SeparationReport.from_scores(scores, y), ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Draw the confidences that fitted filters give to problems.

        Parameters
        ----------
        estimator : fitted filter, or dict of str to fitted filter
            By the name of the panel.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems that are new to the scorers.
        y : sequence of 1-D arrays, one per problem
            Their labels.
        ax : matplotlib Axes, or a sequence of one per panel, optional
            Where to draw; None is a new figure.

        Returns
        -------
        ScoreDistributionDisplay
        """
        filters = by_name(estimator)
        labels = next(iter(filters.values())).check(X, y)[1]
        scores = {name: one.confidence(X) for name, one in filters.items()}
        return cls.from_predictions(labels, scores, ax=ax)

    @property
    def _panels(self):
        return len(self.report.names)

    @property
    def _size(self):
        return 4.4 * self._panels, 3.4

    def _draw(self, axes):
        report, j = self.report, self._column()
        for i, (name, ax) in enumerate(zip(report.names, axes, strict=True)):
            row = report.scores[j][i]
            _draw_density(ax, row[report.true], TRUE, "-", "true claims")
            _draw_density(ax, row[~report.true], FALSE, "--", "false claims")
            d, common = report.cohens_d[i, j], report.overlap[i, j]
            said = f"Cohen's d {d:.2f}, overlap {common:.2f}"
            ax.set_title(f"{name}: {said}" if name else said, fontsize="medium")
            ax.set(xlabel="score (pooled z-score)", ylabel="density", ylim=(0, None))
        axes[0].legend(frameon=False)

    def _column(self):
        alphas = self.report.alpha.tolist()
        if self.alpha is None:
            return 0
        if self.alpha not in alphas:
            raise ValueError(f"alpha is {self.alpha!r}, but there are {alphas}")
        return alphas.index(self.alpha)


def _draw_density(ax, scores, colour, dash, label):
    from scipy.stats import gaussian_kde

    style = {"color": colour, "ls": dash, "label": f"{len(scores)} {label}"}
    if len(scores) < 2 or np.ptp(scores) == 0:
        ax.axvline(scores[0] if len(scores) else np.nan, **style)
        return
    margin = 0.2 * np.ptp(scores)
    at = np.linspace(scores.min() - margin, scores.max() + margin, GRID)
    height = gaussian_kde(scores)(at)
    ax.plot(at, height, lw=1.6, **style)
    ax.fill_between(at, height, color=colour, alpha=0.15, lw=0)


class TrainingCurveDisplay(Display):
    """The training objective, step by step, one line per filter.

    Parameters
    ----------
    report : dict of str to sequence of float
        The values of the objective, by the name that the legend shows.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import TrainingCurveDisplay
    >>> X, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter("linear", random_state=0).fit(X, y)
    >>> display = TrainingCurveDisplay.from_estimator(dcf)
    >>> len(display.ax_.lines[0].get_xdata()) == dcf.n_iter_
    True
    """

    _size = (5.5, 3.6)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the loss curve of fitted filters.

        Parameters
        ----------
        estimator : fitted filter, or dict of str to fitted filter
            With a scorer that was trained step by step.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.

        Returns
        -------
        TrainingCurveDisplay

        Raises
        ------
        ValueError
            If a filter was not trained step by step.
        """
        curves = {name: _curve(one) for name, one in by_name(estimator).items()}
        return cls.from_report(curves, ax=ax)

    def _draw(self, axes):
        (ax,) = axes
        for i, (name, curve) in enumerate(self.report.items()):
            at = np.arange(1, len(curve) + 1)
            ax.plot(at, curve, label=name, ms=3.5, **line_style(i))
        ax.set(xlabel="step", ylabel="training objective")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if any(self.report):
            ax.legend(frameon=False)


def _curve(filter):
    curve = getattr(filter, "loss_curve_", None)
    if curve is None:
        raise ValueError(
            f"{filter!r} was not trained step by step: it has no loss curve"
        )
    return curve


class RetentionDisplay(Display):
    """Share of the true claims that is kept, for each kind of claim.

    Parameters
    ----------
    report : RetentionReport
        From `skdcf.inspection.retention_by`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        Bars with standard errors; beside them the numbers of true claims, and of false
        claims that are kept.
    axes_ : ndarray of one matplotlib Axes

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.plots import RetentionDisplay
    >>> X, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(X[:150], y[:150])
    >>> display = RetentionDisplay.from_estimator(cf, X[150:], y[150:], "depth")
    >>> display.ax_.get_ylabel()
    'depth'
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        by: Any,
        *,
        alpha: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Filter problems, and draw what is kept of each kind of claim.

        Parameters
        ----------
        estimator : fitted filter
            The filter that says what is kept.
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Test problems.
        y : sequence of 1-D arrays, one per problem
            Their labels.
        by : str, or array-like of shape (n_claims,) or (n_problems,)
            As in `skdcf.inspection.retention_by`.
        alpha : float in (0, 1), optional
            None is the filter's own.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.

        Returns
        -------
        RetentionDisplay
        """
        return cls.from_report(retention_by(estimator, X, y, by, alpha=alpha), ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y: Sequence[ArrayLike] | ArrayLike,
        kept: Sequence[ArrayLike] | ArrayLike,
        by: ArrayLike,
        *,
        ax: Any = None,
    ) -> Self:
        """Draw what masks keep of each kind of claim, whatever made them.

        Parameters
        ----------
        y : sequence of 1-D arrays, one per problem
            Labels: 1 true, 0 false, -1 unknown.
        kept : sequence of boolean masks
            As `predict` returns them.
        by : array-like of shape (n_claims,) or (n_problems,)
            The kind of each claim, or of each problem.
        ax : matplotlib Axes, optional
            Where to draw; None is a new figure.

        Returns
        -------
        RetentionDisplay
        """
        return cls.from_report(RetentionReport.from_predictions(y, kept, by), ax=ax)

    @property
    def _size(self):
        return 6.4, 1.1 + 0.3 * len(self.report.kind)

    def _draw(self, axes):
        (ax,), report = axes, self.report
        rows, style = np.arange(len(report.kind)), {"color": TRUE, "ecolor": "0.35"}
        share, error = np.nan_to_num(report.share), np.nan_to_num(report.error)
        ax.barh(rows, share, xerr=error, capsize=2, height=0.7, **style)
        for row, n, wrong in zip(rows, report.n_true, report.kept_false, strict=True):
            said = f"of {n}" + (f", {wrong} false" if wrong else "")
            ax.text(1.01, row, said, va="center", fontsize="small")
        ax.set_yticks(rows, report.kind)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set(xlim=(0, 1.3), ylabel=report.by)
        at = "" if np.isnan(report.alpha) else f" at alpha = {report.alpha:g}"
        ax.set_xlabel(f"share of true claims kept{at}")
        ax.set_xticks(np.arange(6) / 5)


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
