"""How far two people, or a model and people, agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from ..graphs import GraphBatch, Labels, pack_labels
from ..metrics import coverage_interval

_LEVEL = 0.95


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa with its interval.

    Parameters
    ----------
    kappa : float
        1 where all labels agree, 0 where they agree as often as by chance. NaN where
        that is not defined, as all claims have the same label for both.
    low, high : float
        95 % interval, which takes claims of one problem for dependent. NaN where there
        are fewer than two problems.
    agreement : float
        Share of the claims with the same label.
    n_claims, n_problems : int
        Claims that both have judged, and the problems that they belong to.
    n_unknown : int
        Claims that at least one of them has not judged; they are left out.
    """

    kappa: float
    low: float
    high: float
    agreement: float
    n_claims: int
    n_problems: int
    n_unknown: int

    def __str__(self):
        return (
            f"kappa {self.kappa:.2f} (95 %: {self.low:.2f} to {self.high:.2f}), "
            f"{self.agreement:.0%} of {self.n_claims} claims in {self.n_problems} problems "
            f"agree, {self.n_unknown} not judged by both"
        )


def _cohen_kappa(a, b, problem):
    """Cohen's kappa with the jackknife over problems, as `agreement` describes it."""
    both = (a >= 0) & (b >= 0)
    if not both.any():
        raise ValueError("no claim was judged by both")
    codes, problem = np.unique(problem[both], return_inverse=True)
    tables = np.zeros((len(codes), 2, 2))
    np.add.at(tables, (problem, a[both], b[both]), 1)
    total = tables.sum(axis=0)
    kappa = float(_kappa(total))
    low, high = _jackknife(kappa, _kappa(total - tables))
    agree, n = float(np.trace(total) / total.sum()), int(total.sum())
    return Kappa(kappa, low, high, agree, n, len(codes), int((~both).sum()))


def _kappa(tables):
    """Kappa of one or several 2 x 2 tables; NaN where chance explains everything."""
    tables = tables / np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1)
    observed = np.trace(tables, axis1=-2, axis2=-1)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.round((observed - chance) / (1 - chance), 12)


def _jackknife(kappa, without):
    """95 % interval from the values without each of the problems."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return np.nan, np.nan
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    half = student.ppf((1 + _LEVEL) / 2, n - 1) * error
    return float(max(kappa - half, -1.0)), float(min(kappa + half, 1.0))


@dataclass(frozen=True)
class ModelAgreement:
    """How far a model's labels can be trusted, measured on claims that people judged.

    Parameters
    ----------
    kappa : Kappa
        Agreement beyond chance.
    found : float
        Share of the false claims that the model calls false.
    found_interval : (float, float)
        Clopper-Pearson, 95 %.
    alarms : float
        Share of the true claims that the model calls false.
    alarms_interval : (float, float)
    n_false, n_true : int
        Claims that people call false, and true.
    overlooked : float
        Share of the problems in which the model calls a claim true that is false.
    overlooked_interval : (float, float)
        A filter that calibrates on the model's labels keeps a false claim in at most
        alpha plus this share of problems.
    n_problems : int
    """

    kappa: Kappa
    found: float
    found_interval: tuple[float, float]
    alarms: float
    alarms_interval: tuple[float, float]
    n_false: int
    n_true: int
    overlooked: float
    overlooked_interval: tuple[float, float]
    n_problems: int

    def __str__(self):
        (a, b), (c, d) = self.found_interval, self.alarms_interval
        e, f = self.overlooked_interval
        return (
            f"{self.kappa}\n"
            f"false claims that the model finds: {self.found:.0%} of {self.n_false} "
            f"({a:.0%} to {b:.0%})\n"
            f"true claims that it calls false:   {self.alarms:.0%} of {self.n_true} "
            f"({c:.0%} to {d:.0%})\n"
            f"problems with an error that it overlooks: {self.overlooked:.1%} of "
            f"{self.n_problems} ({e:.1%} to {f:.1%}); calibrated on its labels, a filter "
            f"may keep a false claim in up to {f:.1%} more of the problems than alpha says"
        )


def agreement(model: Labels, human: Labels) -> ModelAgreement:
    """Compare labels of a model with those of people, or those of two people.

    Parameters
    ----------
    model : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown. A claim of which the model is unsure counts as not
        called true, as in calibration.
    human : sequence of arrays, one per problem
        Labels of the same claims. Claims that no person judged are left out.

    Returns
    -------
    ModelAgreement
        With ``kappa``, Cohen's kappa and its interval, in which the two are alike.

    Raises
    ------
    ValueError
        If the labels do not belong to the same claims, or none is judged by both.

    Notes
    -----
    Kappa is that of Cohen (1960). Its interval is that of the jackknife over problems, with
    the quantile of Student's t: claims of one answer are judged together and err together,
    so that a formula for independent claims would be too narrow.

    Examples
    --------
    >>> from skdcf.labelling import agreement
    >>> human = [[1, 1, 0], [1, 0], [1, 1], [0]]
    >>> model = [[1, 1, 0], [1, 1], [1, -1], [0]]
    >>> result = agreement(model, human)
    >>> result.overlooked, result.n_problems
    (0.25, 4)
    >>> round(result.kappa.kappa, 2)
    0.7
    """
    m, h, problem = _side_by_side(model, human)
    false, true, n = int((h == 0).sum()), int((h == 1).sum()), len({*problem[h >= 0]})
    return ModelAgreement(  # type: ignore[call-arg]
        _cohen_kappa(m, h, problem),
        *_share(int(((h == 0) & (m != 1)).sum()), false),
        *_share(int(((h == 1) & (m == 0)).sum()), true),
        false,
        true,
        *_share(len(np.unique(problem[(h == 0) & (m == 1)])), n),
        n,
    )


def _share(k, n):
    """A share with its interval."""
    if not n:
        return float("nan"), (0.0, 1.0)
    return k / n, tuple(map(float, coverage_interval(k, n)))


def _side_by_side(first, second):
    """Two sets of labels as flat arrays, and the problem of each claim."""
    first, second = list(first), list(second)
    sizes, others = list(map(len, first)), list(map(len, second))
    if sizes != others:
        raise ValueError(
            f"labels of {len(sizes)} problems with {sum(sizes)} claims, but of "
            f"{len(others)} with {sum(others)}: they must belong to the same claims"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    return pack_labels(first, batch), pack_labels(second, batch), batch.problem_of
