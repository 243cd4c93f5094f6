"""How training went."""

from typing import Any, Self

import numpy as np

from ._style import line_style, one_axes


class TrainingCurveDisplay:
    """The training objective, step by step, one line per filter.

    Parameters
    ----------
    curves : dict of str to sequence of float

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

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

    def __init__(self, curves: Any) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(cls, filter: Any, *, ax: Any = None) -> Self:
        """Draw the loss curve of fitted filters.

        Parameters
        ----------
        filter : fitted filter, or dict of str to fitted filter
            With a scorer that was trained step by step; of a pipeline, its last step.
        ax : matplotlib Axes, optional

        Returns
        -------
        TrainingCurveDisplay

        Raises
        ------
        ValueError
            If a filter was not trained step by step.
        """
        filters = filter if isinstance(filter, dict) else {"": filter}
        return cls({name: _curve(f) for name, f in filters.items()}).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        self.ax_ = ax = one_axes(ax, (5.5, 3.6))
        for i, (name, curve) in enumerate(self.curves.items()):
            at = np.arange(1, len(curve) + 1)
            ax.plot(at, curve, label=name, ms=3.5, **line_style(i))
        ax.set(xlabel="step", ylabel="training objective")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if any(self.curves):
            ax.legend(frameon=False)
        self.figure_ = ax.figure
        return self


def _curve(filter):
    scorer = getattr(filter, "steps", [(None, filter)])[-1][1].scorer_
    curve = getattr(scorer, "loss_curve_", None)
    if curve is None:
        raise ValueError(
            f"{scorer!r} was not trained step by step: it has no loss curve"
        )
    return curve
