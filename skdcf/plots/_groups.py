"""Coverage within groups of problems."""

from typing import Any, Self

import numpy as np

from .._checks import printable


class GroupCoverageDisplay:
    """Coverage of each group with its 95 % interval, against what was promised.

    Parameters
    ----------
    reports : dict of str to FilterReport
        By the name that the legend shows; each from ``evaluate_filter(..., by=...)``.
    index : int, default=0
        Which of the levels of the reports.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : matplotlib Axes

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import evaluate_filter
    >>> from skdcf.plots import GroupCoverageDisplay
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:150], y[:150])
    >>> report = evaluate_filter(
    ...     cf, graphs[150:], y[150:], [0.1], by=lambda batch: batch.sizes > 7
    ... )
    >>> display = GroupCoverageDisplay.from_reports(report)
    >>> [label.get_text() for label in display.axes_.get_yticklabels()]
    ['all (150)', 'True (58)', 'False (92)']
    """

    def __init__(self, reports: Any, index: int = 0) -> None:
        self.reports = reports
        self.index = index

    @classmethod
    def from_reports(cls, reports: Any, *, index: int = 0, ax: Any = None) -> Self:
        """Draw reports.

        Parameters
        ----------
        reports : FilterReport, or dict of str to FilterReport
            Of the same groups.
        index : int, default=0
            Which of the levels.
        ax : matplotlib Axes, optional

        Returns
        -------
        GroupCoverageDisplay
        """
        if not isinstance(reports, dict):
            reports = {"": reports}
        return cls(reports, index).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a report has no groups.
        """
        import matplotlib.pyplot as plt

        first = next(iter(self.reports.values()))
        if not all(report.groups for report in self.reports.values()):
            raise ValueError("there are no groups: pass by= to evaluate_filter")
        names = ["all", *first.groups]
        if ax is None:
            size = (6.5, 1.2 + 0.35 * len(names))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        shifts = np.linspace(-0.15, 0.15, len(self.reports)) if self.reports else []
        if len(self.reports) == 1:
            shifts = [0.0]
        for (label, report), shift, marker in zip(
            self.reports.items(), shifts, "osD^v" * len(self.reports), strict=False
        ):
            self._draw(ax, label, report, names, shift, marker)
        ax.axvline(
            1 - first.alpha[self.index], color="k", ls="--", lw=1, label="promised"
        )
        counts = [first.n_problems, *(one.n_problems for one in first.groups.values())]
        pairs = zip(names, counts, strict=True)
        ax.set_yticks(range(len(names)), [f"{printable(g)} ({n})" for g, n in pairs])
        ax.invert_yaxis()
        ax.set(xlabel="coverage, with its 95 % interval")
        ax.legend(frameon=False)
        self.axes_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax, label, report, names, shift, marker):
        rows = [report, *(report.groups.get(name) for name in names[1:])]
        known = [(i, one) for i, one in enumerate(rows) if one is not None]
        place = np.array([i for i, _ in known]) + shift
        coverage = np.array([one.coverage[self.index] for _, one in known])
        ends = np.array([one.coverage_interval[self.index] for _, one in known]).T
        error = np.abs(ends - coverage)
        ax.errorbar(
            coverage, place, xerr=error, fmt=marker, capsize=3, label=label or "seen"
        )
