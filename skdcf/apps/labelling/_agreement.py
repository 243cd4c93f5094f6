"""Agreement between two annotators, or between a model and a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from ...evaluation import coverage_interval
from ...graphs import GraphBatch
from ...labels import Labels, pack_labels


@dataclass(frozen=True)
class Agreement:
    """Agreement of the labels of a model, or of a person, with those of another person.

    Parameters
    ----------
    kappa : float
        Cohen's kappa, which is 1 for perfect agreement and 0 for agreement at chance level. Kappa
        is NaN if both annotators assigned the same label to all claims.
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
    agreement: float
    n_claims: int
    n_problems: int
    overlooked: float
    overlooked_interval: tuple[float, float]

    def __str__(self):
        least, most = self.overlooked_interval
        return (
            f"kappa {self.kappa:.2f}. Equal labels of {self.agreement:.0%} of "
            f"{self.n_claims} claims\n"
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
    Kappa is defined as in Cohen (1960). The claims of an answer are judged together, so their
    errors are dependent, and an interval for independent claims would be too narrow.

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
    rows: Any = model
    offsets = np.cumsum([0, *map(len, rows)])
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    of_model = pack_labels(model, batch)
    truth = pack_labels(human, batch)
    both = (of_model >= 0) & (truth >= 0)
    if not both.any():
        raise ValueError("at least one claim must be judged by both annotators, got 0")
    n_problems = len(np.unique(batch.problem_of[truth >= 0]))
    n_overlooked = len(np.unique(batch.problem_of[(truth == 0) & (of_model == 1)]))
    pair = of_model[both], truth[both]
    one_label = len(np.unique(pair)) == 1
    return Agreement(
        kappa=np.nan if one_label else float(cohen_kappa_score(*pair)),
        agreement=float(np.mean(pair[0] == pair[1])),
        n_claims=int(both.sum()),
        n_problems=n_problems,
        overlooked=n_overlooked / n_problems,
        overlooked_interval=coverage_interval(n_overlooked, n_problems),
    )
