"""From a fitted filter and answers to what it did to each claim, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..graphs import ReasoningGraph
from ..metrics import unwrap
from ._explanation import Explanation

if TYPE_CHECKING:
    from ..graphs import Labels, Problems


def explain(
    filter: Any,
    X: ReasoningGraph | Problems,
    y: Labels | None = None,
    *,
    alpha: float | None = None,
) -> Any:
    """Say for each claim why it was kept or dropped.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one, or a search around one.
    X : ReasoningGraph, or problems as in the filter's `predict`
    y : labels of X, optional
        As in the filter's `fit`; of a single graph, its labels. They change nothing but
        what is shown.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    Explanation, or list of Explanation
        One for a ReasoningGraph, else one per problem.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import explain
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    >>> explained = explain(cf, graphs[207])
    >>> explained
    1 of 4 claims kept at alpha = 0.1
    Claim 1 was dropped: its risk -2 is not below the threshold -3; it would be kept from...
    Claim 2 was dropped: its risk -3 is not below the threshold -3; it would be kept from...
    Claim 3 was dropped because it builds on claim 2, whose risk -3 is not below the...
    >>> explained.contributions(3).total
    3.0
    """
    single = isinstance(X, ReasoningGraph)
    problems: Any = [X] if single else X
    if single and y is not None:
        y = [y]
    filter, seen = unwrap(filter, problems)
    if alpha is not None:
        filter = filter.with_alpha(alpha)
    explained = _explain_all(filter, seen, y)
    return explained[0] if single else explained


def _explain_all(filter, X, y):
    batch = filter.check(X)
    labels = None if y is None else filter.check(X, y)[1]
    margin = _flat(filter.decision_function(batch))  # warns if nothing can be kept
    risk, levels = _flat(filter.path_risk(batch)), _levels(filter, batch)
    seen, confidence = filter.columns(batch), filter.confidence(batch)
    promise = filter.calibration_.guarantee
    never = levels >= 1 if promise.is_probability else np.isinf(levels)
    columns = {
        "kept": margin > 0,
        "confidence": confidence,
        "path_risk": risk,
        "decided_by": _deciding_row(risk, seen) - batch.offsets[:-1][batch.problem_of],
        "threshold": margin + risk,
        "kept_from": np.where(never, np.inf, levels),
        "labels": labels,
    }
    parts = {
        name: [None] * len(batch) if values is None else batch.split(values)
        for name, values in columns.items()
    }
    common = {
        "alpha": promise.level(None, filter.alpha),
        "n_calibration": filter.n_calibration_,
        "form": filter.scorer_.linear_form(seen),
    }
    return [
        Explanation(graph, **{name: part[i] for name, part in parts.items()}, **common)
        for i, graph in enumerate(batch)
    ]


def _levels(filter, batch):
    """The smallest alpha of each claim; NaN where the guarantee knows none."""
    try:
        return _flat(filter.predict_alpha(batch))
    except ValueError:  # of groups that overlap; problems were checked before
        return np.full(batch.n_claims, np.nan)


def _flat(values):
    return np.concatenate(list(values), axis=None) if len(values) else np.empty(0)


def _deciding_row(path_risk, batch):
    """Row of the claim or ancestor whose own risk is the path risk of each claim.

    Where the path risk of a parent is that of the claim, the parent's cause is the
    claim's; else the claim itself is the cause.
    """
    cause = np.arange(batch.n_claims)
    for parents, children, starts in batch.levels:
        below = np.repeat(children, np.diff(np.append(starts, len(parents))))
        same = path_risk[parents] == path_risk[below]
        cause[below[same]] = cause[parents[same]]
    return cause
