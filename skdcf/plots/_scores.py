"""Scores: soft against hard ones, and those of true against those of false claims."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from ..metrics import unwrap
from ._style import FALSE, TRUE, one_axes, several_axes

GRID = 400


class SoftHardDisplay:
    """Soft against hard nonconformity scores, one dot per problem with an error.

    Parameters
    ----------
    report : SurrogateReport

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

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

    def __init__(self, report: Any) -> None:
        self.report = report

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None) -> Self:
        """Draw an agreement that is at hand.

        Parameters
        ----------
        report : SurrogateReport
            From `skdcf.inspection.surrogate_agreement`.
        ax : matplotlib Axes, optional

        Returns
        -------
        SoftHardDisplay
        """
        return cls(report).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        filter: Any,
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
        filter, X, y, alphas, relaxation
            As in `skdcf.inspection.surrogate_agreement`.
        ax : matplotlib Axes, optional

        Returns
        -------
        SoftHardDisplay
        """
        from ..inspection import surrogate_agreement

        report = surrogate_agreement(filter, X, y, alphas, relaxation=relaxation)
        return cls.from_report(report, ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        self.ax_ = ax = one_axes(ax, (4.6, 4.2))
        hard, soft = self.report.hard_scores, self.report.soft_scores
        both = np.concatenate([hard, soft])
        ends = [both.min(), both.max()]
        ax.plot(ends, ends, color="k", lw=0.9, label="the same")
        ax.plot(hard, soft, "o", color=TRUE, alpha=0.6, ms=4, mec="none")
        r, mae = self.report.score_pearson, self.report.score_mae
        ax.set_title(f"r = {r:.3f}, mean difference {mae:.3f}", fontsize="medium")
        ax.set(xlabel="hard score", ylabel="soft score")
        ax.legend(frameon=False)
        self.figure_ = ax.figure
        return self


class ScoreDistributionDisplay:
    """Densities of the scores of true and of false claims, one panel per filter.

    Parameters
    ----------
    report : SeparationReport
    alpha : float, optional
        One of the report's; None is its first.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> from skdcf.plots import ScoreDistributionDisplay
    >>> labels = [1, 1, 1, 0, 0, 0]
    >>> display = ScoreDistributionDisplay.from_predictions(
    ...     labels, {"frequency": [5, 4, 2, 3, 1, 0]}
    ... )
    >>> display.axes_[0].get_title()
    "frequency: Cohen's d 1.53, overlap 0.52"
    """

    def __init__(self, report: Any, *, alpha: float | None = None) -> None:
        self.report = report
        self.alpha = alpha

    @classmethod
    def from_report(
        cls, report: Any, *, alpha: float | None = None, axes: Any = None
    ) -> Self:
        """Draw scores that are at hand.

        Parameters
        ----------
        report : SeparationReport
            From `skdcf.inspection.score_separation`.
        alpha : float, optional
            One of the report's; None is its first.
        axes : sequence of matplotlib Axes, optional
            One per filter.

        Returns
        -------
        ScoreDistributionDisplay
        """
        return cls(report, alpha=alpha).plot(axes=axes)

    @classmethod
    def from_predictions(cls, labels: Any, scores: Any, *, axes: Any = None) -> Self:
        """Draw scores of claims by their labels.

        Parameters
        ----------
        labels : array-like of shape (n_claims,)
            1 true, 0 false.
        scores : dict of str to array-like of shape (n_claims,)
        axes : sequence of matplotlib Axes, optional

        Returns
        -------
        ScoreDistributionDisplay
        """
        from ..inspection import SeparationReport

        return cls(SeparationReport.from_scores(scores, labels)).plot(axes=axes)

    @classmethod
    def from_estimator(cls, filter: Any, X: Any, y: Any, *, axes: Any = None) -> Self:
        """Draw the confidences that fitted filters give to problems.

        Parameters
        ----------
        filter : fitted filter, or dict of str to fitted filter
        X, y
            Problems that are new to the scorers, and labels.
        axes : sequence of matplotlib Axes, optional

        Returns
        -------
        ScoreDistributionDisplay
        """
        filters = filter if isinstance(filter, dict) else {"": filter}
        scores = {name: _confidences(fitted, X) for name, fitted in filters.items()}
        inner, seen = unwrap(next(iter(filters.values())), X)
        labels = inner.check(seen, y)[1]
        return cls.from_predictions(labels, scores, axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional

        Returns
        -------
        self
        """
        report, j = self.report, self._column()
        n = len(report.names)
        self.axes_ = several_axes(axes, n, (4.4 * n, 3.4))
        for i, (name, ax) in enumerate(zip(report.names, self.axes_, strict=True)):
            row = report.scores[j][i]
            _draw_density(ax, row[report.true], TRUE, "-", "true claims")
            _draw_density(ax, row[~report.true], FALSE, "--", "false claims")
            d, common = report.cohens_d[i, j], report.overlap[i, j]
            said = f"Cohen's d {d:.2f}, overlap {common:.2f}"
            title = f"{name}: {said}" if name else said
            ax.set_title(title, fontsize="medium")
            ax.set(xlabel="score (pooled z-score)", ylabel="density", ylim=(0, None))
        self.axes_[0].legend(frameon=False)
        self.figure_ = self.axes_[0].figure
        return self

    def _column(self):
        alphas = self.report.alpha
        if self.alpha is None:
            return 0
        found = np.flatnonzero(alphas == self.alpha)
        if not len(found):
            raise ValueError(
                f"alpha is {self.alpha!r}, but there are {alphas.tolist()}"
            )
        return int(found[0])


def _confidences(fitted, X):
    fitted, seen = unwrap(fitted, X)
    return fitted.confidence(seen)


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
