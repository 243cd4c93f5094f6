"""Coverage and retention of filters, observed and predicted by theory."""

import numpy as np

from ._checks import check_alpha, check_alphas
from ._report import FilterReport
from .estimators._validation import check_labels, check_problems
from .graphs._ragged import offsets_of
from .ops.conformal import (
    conformal_rank,
    conformal_threshold,
    leave_one_out_alpha,
)
from .ops.hard import nonconformity_scores, segment_min, segment_sum

__all__ = [
    "FilterReport",
    "coverage_band",
    "coverage_interval",
    "coverage_score",
    "evaluate_filter",
    "leave_one_out",
    "retention_score",
]


def coverage_score(y, kept):
    """Share of problems of which no false claim is kept.

    Parameters
    ----------
    y : sequence of 1-D 0/1 arrays, one per problem
        1 for a true claim. A flat array has one claim per problem.
    kept : sequence of boolean masks, as `predict` returns them

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from skdcf.metrics import coverage_score
    >>> coverage_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    0.5
    """
    labels, kept, offsets = _flat(y, kept)
    return float(np.mean(segment_sum(kept & ~labels, offsets) == 0))


def retention_score(y, kept, *, claims="true", unit="count"):
    """How many claims are kept.

    Parameters
    ----------
    y : sequence of 1-D 0/1 arrays, one per problem
    kept : sequence of boolean masks, as `predict` returns them
    claims : {"true", "all"}
        Which claims count.
    unit : {"count", "share"}
        "count" is the mean number per problem, "share" the share of all those claims.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdcf.metrics import retention_score
    >>> retention_score([[1, 0], [1, 1]], [[True, True], [True, False]])
    1.0
    """
    if claims not in ("true", "all"):
        raise ValueError(f'claims is {claims!r}: "true" or "all" expected')
    if unit not in ("count", "share"):
        raise ValueError(f'unit is {unit!r}: "count" or "share" expected')
    labels, kept, offsets = _flat(y, kept)
    counted = labels if claims == "true" else np.ones_like(labels)
    total = len(offsets) - 1 if unit == "count" else counted.sum()
    return float((kept & counted).sum() / total) if total else 0.0


def _flat(y, kept):
    if len(y) != len(kept):
        raise ValueError(f"y has {len(y)} problems but kept has {len(kept)}")
    if not len(y):
        raise ValueError("no problems: y is empty")
    sizes = np.array([np.size(row) for row in y])
    wrong = np.flatnonzero(sizes != [np.size(row) for row in kept])
    if wrong.size:
        i = wrong[0]
        raise ValueError(
            f"problem {i}: {sizes[i]} labels but {np.size(kept[i])} entries in kept"
        )
    labels = np.concatenate([np.ravel(row) for row in y])
    masks = np.concatenate([np.ravel(row) for row in kept])
    for name, values in (("y", labels), ("kept", masks)):
        if not np.isin(values, (0, 1)).all():
            raise ValueError(f"{name} holds values other than 0 and 1")
    return labels.astype(bool), masks.astype(bool), offsets_of(sizes)


def coverage_interval(n_covered, n_problems, *, confidence=0.95):
    """Clopper-Pearson interval of a coverage that was observed.

    Parameters
    ----------
    n_covered, n_problems : int
        ``n_covered`` of ``n_problems`` test problems had no false claim kept.
    confidence : float, default=0.95

    Returns
    -------
    (low, high) : tuple of float

    Examples
    --------
    >>> from skdcf.metrics import coverage_interval
    >>> low, high = coverage_interval(90, 100)
    >>> round(low, 3), round(high, 3)
    (0.824, 0.951)
    """
    if not 0 <= n_covered <= n_problems or n_problems < 1:
        raise ValueError(f"{n_covered} of {n_problems} problems covered: impossible")
    from scipy.stats import binomtest

    test = binomtest(int(n_covered), int(n_problems))
    interval = test.proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def coverage_band(n_calibration, alpha, *, confidence=0.95, n_test=None):
    """Band in which theory puts the coverage after one draw of calibration problems.

    The coverage given the calibration problems follows Beta(n + 1 - k, k), with k the
    conformal rank, where scores have no ties; ties, and problems without a false claim
    where they outnumber the rank, can only raise it.

    Parameters
    ----------
    n_calibration : int
        Number of calibration problems, n.
    alpha : float in (0, 1)
    confidence : float, default=0.95
    n_test : int, optional
        With a number of test problems, the band of what will be *observed* on them
        (beta-binomial); None is that of the coverage itself.

    Returns
    -------
    (low, high) : tuple of float; (1, 1) where nothing can be kept.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.

    Examples
    --------
    >>> from skdcf.metrics import coverage_band
    >>> low, high = coverage_band(99, 0.1)
    >>> round(low, 3), round(high, 3)
    (0.834, 0.95)
    """
    from scipy.stats import beta, betabinom

    k = conformal_rank(n_calibration, check_alpha(alpha))
    if k == 0:
        return 1.0, 1.0
    tail = (1 - confidence) / 2
    shape = (n_calibration + 1 - k, k)
    if n_test is None:
        low, high = beta.ppf([tail, 1 - tail], *shape)
    else:
        low, high = betabinom.ppf([tail, 1 - tail], n_test, *shape) / n_test
    return float(low), float(high)


def evaluate_filter(filter, X, y, alphas=(0.02, 0.05, 0.1, 0.2)):
    """Coverage and retention of a fitted filter on test problems.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one, or a search around one.
    X, y
        Test problems and their labels, as in the filter's `fit`.
    alphas : sequence of float in (0, 1)

    Returns
    -------
    FilterReport

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import evaluate_filter
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF().fit(graphs[:200], y[:200])
    >>> report = evaluate_filter(cf, graphs[200:], y[200:], alphas=[0.1, 0.2])
    >>> report.retention.shape, report.n_calibration
    ((2,), 200)
    """
    alphas = check_alphas(alphas)
    filter, X = unwrap(filter, X)
    batch, labels = _problems(filter, X, y)
    levels = np.concatenate(list(filter.predict_alpha(X)), axis=None)
    thresholds = [conformal_threshold(filter.nonconformity_scores_, a) for a in alphas]
    return _report(
        alphas, levels, labels, batch.offsets, thresholds, filter.n_calibration_
    )


def leave_one_out(filter, X, y, alphas=(0.02, 0.05, 0.1, 0.2)):
    """Exact leave-one-out evaluation of a fitted filter's scorer.

    Each problem is filtered with the threshold from all other problems of X, for all
    alphas at once in O(n log n). The problems must be new to the scorer; the filter's own
    calibration is not used.

    Parameters
    ----------
    filter : fitted filter
        With ``ties`` other than "include".
    X, y
        Problems and labels, at least two.
    alphas : sequence of float in (0, 1)

    Returns
    -------
    FilterReport
        ``threshold`` is that of all problems together.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.metrics import leave_one_out
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> leave_one_out(HardCF().fit(graphs, y), graphs, y, alphas=[0.1]).n_calibration
    199
    """
    alphas = check_alphas(alphas)
    filter, X = unwrap(filter, X)
    if filter.ties == "include":
        raise ValueError('leave-one-out evaluation needs ties="exclude" or "jitter"')
    batch, labels = _problems(filter, X, y)
    if len(batch) < 2:
        raise ValueError("leave-one-out evaluation needs at least two problems")
    risk = np.concatenate(list(filter.path_risk(X)), axis=None)
    scores = nonconformity_scores(risk, labels, batch.offsets)
    levels = leave_one_out_alpha(scores, risk, batch.problem_of)
    ordered = np.sort(scores)
    thresholds = [conformal_threshold(ordered, a) for a in alphas]
    return _report(alphas, levels, labels, batch.offsets, thresholds, len(batch) - 1)


def unwrap(filter, X):
    """The filter in a fitted pipeline or search, and X as that filter sees it."""
    while hasattr(filter, "best_estimator_") or hasattr(filter, "steps"):
        if hasattr(filter, "best_estimator_"):
            filter = filter.best_estimator_
        else:
            filter, X = filter[-1], filter[:-1].transform(X)
    return filter, X


def _problems(filter, X, y):
    batch, is_table = check_problems(filter, X, reset=False)
    return batch, check_labels(y, batch, is_table, filter._label_values)[0]


def _report(alphas, levels, labels, offsets, thresholds, n_calibration):
    n = len(offsets) - 1
    first_error = segment_min(np.where(labels, np.inf, levels), offsets)
    first_kept = segment_min(levels, offsets)
    covered = first_error > alphas[:, None]
    kept = np.stack([segment_sum(labels & (levels <= a), offsets) for a in alphas])
    spread = kept.std(axis=1, ddof=1) if n > 1 else np.full(len(alphas), np.nan)
    return FilterReport(
        alpha=alphas,
        coverage=covered.mean(axis=1),
        coverage_interval=np.array([coverage_interval(c.sum(), n) for c in covered]),
        coverage_band=np.array(
            [coverage_band(n_calibration, a, n_test=n) for a in alphas]
        ),
        retention=kept.mean(axis=1),
        retention_error=spread / np.sqrt(n),
        abstention=(first_kept > alphas[:, None]).mean(axis=1),
        threshold=np.array(thresholds),
        n_problems=n,
        n_calibration=n_calibration,
    )
