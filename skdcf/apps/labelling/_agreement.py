"""Agreement between two annotators, or between a model and a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from ...evaluation import coverage_interval
from ...graphs import GraphBatch
from ...labels import Labels, pack_labels

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Agreement:
    """Agreement of the labels of a model, or of a person, with those of another person.

    Parameters
    ----------
    kappa : float
        Cohen's kappa, which is 1 for perfect agreement and 0 for agreement at chance level. Kappa
        is NaN if both annotators assigned the same label to all claims.
    kappa_interval : (float, float)
        The 95 % confidence interval, which accounts for dependence between claims in the same
        problem. Both bounds are NaN if there are fewer than two problems.
    agreement : float
        Proportion of claims to which both annotators assigned the same label.
    n_claims, n_problems : int
        Number of claims that both annotators judged, and number of problems in which the person
        judged at least one claim.
    overlooked : float
        Proportion of problems in which the model labels at least one false claim as true.
    overlooked_interval : (float, float)
        Clopper-Pearson interval of ``overlooked`` at a confidence level of 95 %. If a filter is
        calibrated on the labels of the model, the proportion of problems in which the filter
        keeps a false claim is at most alpha + ``overlooked``.
    """

    kappa: float
    kappa_interval: tuple[float, float]
    agreement: float
    n_claims: int
    n_problems: int
    overlooked: float
    overlooked_interval: tuple[float, float]

    def __str__(self):
        low, high = self.kappa_interval
        least, most = self.overlooked_interval
        return (
            f"kappa {self.kappa:.2f} (95 % interval: {low:.2f} to {high:.2f}). Equal labels of "
            f"{self.agreement:.0%} of {self.n_claims} claims\n"
            f"problems with an undetected false claim: {self.overlooked:.1%} of "
            f"{self.n_problems} ({least:.1%} to {most:.1%}). A filter calibrated on these labels "
            f"may keep a false claim in up to {most:.1%} more of the problems than alpha allows"
        )


def agreement(model: Labels, human: Labels) -> Agreement:
    """Compare the labels of a model with human labels, or compare the labels of two people.

    Parameters
    ----------
    model : sequence of arrays, one per problem
        Labels assigned by the model: 1 true, 0 false, -1 unknown. Unknown labels are treated as
        not true, as in calibration.
    human : sequence of arrays, one per problem
        Human labels of the same claims. Claims that were not judged by a person are excluded.

    Returns
    -------
    agreement : Agreement
        The agreement. Exchanging the two sets of labels does not change ``kappa``, but changes
        the other values.

    Raises
    ------
    ValueError
        If the two sets of labels differ in size, or if no claim was judged by both annotators.

    Notes
    -----
    Kappa is defined as in Cohen (1960). The interval is computed by the jackknife over problems
    with quantiles of Student's t distribution. The claims of an answer are judged together, so
    their errors are dependent. An interval for independent claims would be too narrow.

    Examples
    --------
    >>> from skdcf.apps.labelling import agreement
    >>> human = [[1, 1, 0], [1, 0], [1, 1], [0]]
    >>> model = [[1, 1, 0], [1, 1], [1, -1], [0]]
    >>> result = agreement(model, human)
    >>> result.overlooked, result.n_problems
    (0.25, 4)
    >>> round(result.kappa, 2)
    0.7
    """
    rows_of_model: Any = model
    rows_of_human: Any = human
    sizes = list(map(len, rows_of_model))
    human_sizes = list(map(len, rows_of_human))
    if sizes != human_sizes:
        raise ValueError(
            f"model and human must label the same claims, but model has {len(sizes)} problems "
            f"with {sum(sizes)} claims, and human has {len(human_sizes)} problems with "
            f"{sum(human_sizes)} claims"
        )
    offsets = np.cumsum([0, *sizes])
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    of_model = pack_labels(model, batch)
    truth = pack_labels(human, batch)
    problem = batch.problem_of
    both = (of_model >= 0) & (truth >= 0)
    if not both.any():
        raise ValueError("at least one claim must be judged by both annotators, got 0")
    _, rows = np.unique(problem[both], return_inverse=True)
    tables = np.zeros((rows.max() + 1, 2, 2))
    np.add.at(tables, (rows, of_model[both], truth[both]), 1)
    total = tables.sum(axis=0)
    kappa = float(_kappa(total))
    n_problems = len(np.unique(problem[truth >= 0]))
    n_overlooked = len(np.unique(problem[(truth == 0) & (of_model == 1)]))
    return Agreement(
        kappa=kappa,
        kappa_interval=_jackknife(kappa, _kappa(total - tables)),
        agreement=float(np.trace(total) / total.sum()),
        n_claims=int(total.sum()),
        n_problems=n_problems,
        overlooked=n_overlooked / n_problems,
        overlooked_interval=coverage_interval(n_overlooked, n_problems),
    )


def _kappa(tables):
    """Return kappa for one or more 2 x 2 tables, or NaN if the chance agreement is 1."""
    tables = tables / np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1)
    observed = np.trace(tables, axis1=-2, axis2=-1)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.round((observed - chance) / (1 - chance), 12)


def _jackknife(kappa, without):
    """Return the 95 % jackknife interval, given the leave-one-problem-out values of kappa."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return np.nan, np.nan
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    half = student.ppf((1 + _CONFIDENCE) / 2, n - 1) * error
    return float(max(kappa - half, -1.0)), float(min(kappa + half, 1.0))
