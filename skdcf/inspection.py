"""Explain a filter's decisions, and compute feature importances.

For many answers, features are ranked by their Shapley values if the scorer is linear, or by the
loss in retention when a feature is permuted, for any scorer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isinf
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from . import guards
from ._arrays import optional_rows, slices
from ._checks import Seed, check_count
from ._html import Table
from .evaluation import CalibratedSearch, leave_one_out
from .filters import ConformalFilter
from .graphs import Problems, ReasoningGraph, pass_on
from .labels import Labels
from .uses import check

__all__ = ["explain", "permutation_importance", "shap_values"]


def explain(
    filter: ConformalFilter | CalibratedSearch,
    X: ReasoningGraph | Problems,
    y: Labels | None = None,
    *,
    alpha: float | None = None,
) -> Any:
    """Explain why a filter keeps or drops each claim.

    Each problem is scored only once. The explained decisions are the same as those of `predict`.

    Parameters
    ----------
    filter : fitted filter
        The filter whose decisions are explained, or a fitted
        `skdcf.evaluation.CalibratedSearch`.
    X : ReasoningGraph, or problems as in the filter's `predict`
        One answer, or several answers.
    y : labels of X, optional
        Labels, in the format of the filter's `fit`, or the labels of a single graph. The labels
        are only displayed and do not affect the decisions.
    alpha : float in (0, 1), optional
        Level at which the decisions are made. If None, the filter's alpha is used.

    Returns
    -------
    explanations : Table, or list of Table
        One table for a ReasoningGraph, otherwise one per problem, with one row per claim. Claims
        are numbered from 1. ``confidence`` is the scorer's confidence in the claim alone,
        ``path_risk`` the largest risk (negated confidence) of the claim and its ancestors, and
        ``decided_by`` the claim that has it. The claim is kept if its path risk is below
        ``threshold``. ``smallest_alpha`` is the smallest level at which it is kept, or infinity.
        ``reasons`` contains a sentence for each dropped claim, keyed by its index. The other
        attributes are ``graph``, ``kept``, ``labels``, ``alpha``, ``passes`` (whether the answer
        passes) and ``group`` (its calibration group).

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import explain
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    >>> explained = explain(cf, graphs[207])
    >>> explained.heading
    '1 of 4 claims kept at alpha = 0.1'
    >>> print(explained.reasons[1])
    Claim 2 was dropped: its risk -2 is not below the threshold -3; it is kept if alpha...
    """
    single = isinstance(X, ReasoningGraph)
    problems: Any = [X] if single else X
    level = filter._level_now(alpha)
    calibration = filter.calibration_
    guarantee = calibration.guarantee
    guards.warn_of_level(calibration, level)
    read = filter._look(problems)
    batch = read.columns
    if y is None:
        guards.warn_of_several_answers(guards.questions_in(filter._record, batch))
    confidence = filter._confidence(read)
    risks = filter._path_risks(read, confidence)
    is_kept = filter._margin(risks, level) > 0
    passes = np.ones(len(batch), bool)
    if guarantee.show != 1:
        passes = calibration.passes(risks)
    labels = None if y is None else check(filter, problems, [y] if single else y)[1]
    smallest = calibration.levels(risks, filter.ties == "include")
    never = smallest >= 1 if guarantee.is_probability else np.isinf(smallest)
    columns = {
        "claim": batch.position + 1,
        "kept": is_kept,
        "confidence": confidence,
        "path_risk": risks.path_risk,
        "decided_by": batch.position[_deciding_row(risks.path_risk, batch)] + 1,
        "threshold": calibration.thresholds(risks, level)[batch.problem_of],
        "smallest_alpha": np.where(never, np.inf, smallest),
    }
    rows_of_all = [
        dict(zip(columns, values, strict=True))
        for values in zip(*map(np.ndarray.tolist, columns.values()), strict=True)
    ]
    out = []
    for i, (graph, place) in enumerate(zip(batch, slices(batch.offsets), strict=True)):
        rows = rows_of_all[place]
        reasons = {}
        for v, row in enumerate(rows):
            row["reason"] = ""
            if not row["kept"]:
                reasons[v] = row["reason"] = _reason(
                    row, passes[i], risks.lowest[i], level, filter
                )
        out.append(
            Table(
                rows,
                {
                    "claim": "{claim:d}",
                    "kept": "{kept}",
                    "confidence": "{confidence:.4g}",
                    "path risk": "{path_risk:.4g}",
                    "decided by": "{decided_by:d}",
                    "threshold": "{threshold:.4g}",
                    "kept if alpha >=": "{smallest_alpha:.4g}",
                    "reason": "{reason}",
                },
                f"{len(rows) - len(reasons)} of {len(rows)} claims kept at alpha = {level:g}",
                graph=graph,
                labels=optional_rows(labels, place),
                reasons=reasons,
                alpha=level,
                passes=bool(passes[i]),
                group=risks.groups and risks.groups[i],
                # If there are no claims, the rows do not name the columns.
                **{name: column[place] for name, column in columns.items()},
            )
        )
    return out[0] if single else out


def _deciding_row(path_risk, batch):
    """Return the row index of the claim or ancestor that determines each path risk.

    If several claims have this path risk, the first of them in topological order decides.
    """
    order = np.lexsort((-batch.depth, path_risk))
    return order[pass_on(np.maximum, np.argsort(order), batch)]


def _reason(row, passes, lowest, alpha, filter):
    """Return a sentence that says why a claim was dropped."""
    start = f"Claim {row['claim']} was dropped"
    risk = row["path_risk"]
    if not passes:
        return (
            f"{start}: the answer does not pass, because even its safest claim has the "
            f"path risk {lowest:.4g}."
        )
    if row["threshold"] == -np.inf:
        start += (
            f": {filter.n_calibration_} calibration problems are too few to keep anything at "
            f"alpha = {alpha:g}"
        )
    elif row["decided_by"] == row["claim"]:
        start += f": its {compare(risk, row['threshold'])}"
    else:
        start += (
            f" because it depends on claim {row['decided_by']}, whose "
            f"{compare(risk, row['threshold'])}"
        )
    if isinf(row["smallest_alpha"]):
        return f"{start}, and it is dropped at every alpha."
    # Round up, so the claim is kept at the value of alpha in the sentence.
    level = ceil(row["smallest_alpha"] * 1e4) / 1e4
    return f"{start}; it is kept if alpha is at least {level:g}."


def compare(risk: float, threshold: float) -> str:
    """Return the end of a sentence that compares a risk with a threshold."""
    if isinf(risk):
        return "risk is infinite, for example because a verdict is missing"
    for form in ("z.4g", "z.6g", "z.9g"):
        shown = f"{risk:{form}}"
        shown_threshold = f"{threshold:{form}}"
        if shown != shown_threshold:
            return f"risk {shown} is not below the threshold {shown_threshold}"
    return f"risk {risk:z.4g} equals the threshold; only claims below it are kept"


def _importance(names, importances, heading, **details):
    """Return the features in decreasing order of mean importance."""
    mean = importances.mean(axis=0)
    deviation = importances.std(axis=0)
    rows = [
        {
            "rank": rank,
            "feature": names[j],
            "mean": float(mean[j]),
            "deviation": float(deviation[j]),
        }
        for rank, j in enumerate(np.argsort(-mean, kind="stable"), start=1)
    ]
    columns = {
        "rank": "{rank:d}",
        "feature": "{feature}",
        "mean": "{mean:z.3f}",
        "deviation": "{deviation:.3f}",
    }
    return Table(rows, columns, heading, **details)


def shap_values(
    filter: ConformalFilter | Sequence[ConformalFilter], X: Problems
) -> Table:
    """Compute feature importances from the Shapley values of the confidence in each claim.

    The Shapley values are exact and require no sampling. For a linear score, the Shapley value is
    the weight times the difference between the feature value and its mean over the problems. For
    other scorers, use `permutation_importance`.

    Parameters
    ----------
    filter : fitted filter, or sequence of fitted filters
        One filter, or several filters with the same columns. The values of several filters are
        pooled.
    X : problems, as in the filter's `predict`
        Problems whose claims are explained.

    Returns
    -------
    report : Table
        One row per feature, in decreasing order of ``mean``, the mean absolute Shapley value.
        ``deviation`` is its standard deviation. ``report.values`` contains the signed values, of
        shape (n_claims, n_features), and ``report.feature_names`` the names of their columns.

    Raises
    ------
    ValueError
        If the scorer is not linear.

    References
    ----------
    S. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model Predictions. NeurIPS 2017.
    Hittesdorf, Salzetta and Cheng (arXiv:2604.20098), appendix on SHAP, pool the values of 40
    models (eight levels by five splits). They sample coalitions (Kernel SHAP), whereas the
    values of a linear model are exact here.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import shap_values
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> fitted = [
    ...     CoherentConformalFilter(alpha=alpha, random_state=0).fit(graphs[:200], y[:200])
    ...     for alpha in (0.1, 0.2)
    ... ]
    >>> report = shap_values(fitted[0], graphs[200:])
    >>> report.values.shape == (graphs[200:].n_claims, len(fitted[0].coef_))
    True
    >>> pooled = shap_values(fitted, graphs[200:])
    >>> len(pooled.values) == 2 * len(report.values)
    True
    """
    filters = filter if isinstance(filter, Sequence) else [filter]
    of_filters = []
    for fitted in filters:
        terms = fitted.scorer_.linear_terms(fitted.transform_features(X))
        if terms is None:
            raise ValueError(
                f"exact Shapley values require a linear scorer, got {fitted.scorer_!r}. Use "
                "skdcf.inspection.permutation_importance instead"
            )
        names, weights, values = terms
        of_filters.append(weights * (values - values.mean(axis=0)))
    values = np.concatenate(of_filters)
    return _importance(
        names,
        np.abs(values),
        f"mean |SHAP| over {len(values)} values per feature",
        values=values,
        feature_names=names,
    )


def permutation_importance(
    filter: ConformalFilter,
    X: Problems,
    y: Labels,
    *,
    alpha: float | None = None,
    n_repeats: int = 5,
    random_state: Seed = None,
) -> Table:
    """Compute the loss in retention when a feature's values are permuted among the claims.

    For each permutation, the threshold is recomputed from all other problems in X
    (`skdcf.evaluation.leave_one_out`). The guarantee is therefore the same with and without the
    feature, and only retention changes. If the filter has ``features``, the columns that it
    computes are permuted. If a feature of the graph is permuted, a scorer that uses the graph
    itself can still use the same information.

    Parameters
    ----------
    filter : fitted filter
        The filter whose features are permuted.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        Problems that were not used to train the scorer.
    y : sequence of 1-D arrays, one per problem
        Claim labels of the problems.
    alpha : float in (0, 1), optional
        Level at which retention is measured. If None, the filter's alpha is used.
    n_repeats : int, default=5
        Number of permutations per feature.
    random_state : int, RandomState or None, default=None
        Seed for the permutations.

    Returns
    -------
    report : Table
        One row per feature, in decreasing order of ``mean``, the decrease in the number of true
        claims kept per problem. ``deviation`` is the standard deviation over the repetitions.
        An importance is negative if the permutation increased retention.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.inspection import permutation_importance
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", ties="jitter", random_state=0)
    >>> cf = cf.fit(graphs[:150], y[:150])
    >>> report = permutation_importance(cf, graphs[150:], y[150:], n_repeats=2, random_state=0)
    >>> print(report.feature[0])
    frequency-score
    """
    check_count("n_repeats", n_repeats, 1)
    batch, labels = check(filter, X, y)
    level = filter._level_now(alpha)
    if filter.features_ is not None:
        filter, batch = filter._with_columns_given(batch)
    rng = check_random_state(random_state)

    def retention(problems):
        return leave_one_out(filter, problems, labels, [level]).retention[0]

    baseline = retention(batch)
    lost = np.empty((n_repeats, batch.n_features))
    for j in range(batch.n_features):
        for repeat in range(n_repeats):
            features = batch.features.copy()
            features[:, j] = rng.permutation(features[:, j])
            shuffled = batch.replace_features(features, batch.feature_names)
            lost[repeat, j] = baseline - retention(shuffled)
    return _importance(
        batch.column_names,
        lost,
        f"true claims per problem lost without the feature, of {baseline:.3f} kept at "
        f"alpha = {level:g}; {n_repeats} shuffles",
    )
