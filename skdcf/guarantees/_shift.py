"""The likelihood ratio of new problems against old ones, estimated by a classifier."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import warn
from ..graphs import GraphBatch, Problems, as_batch
from ..ops.hard import segment_min, segment_sum

EXTREME = 1e100  # of a weight, either way
LARGEST = 1e6  # odds beyond which a classifier is sure, and not informative


@dataclass(frozen=True)
class LikelihoodRatio:
    """How much more likely each problem is among new problems than among old ones.

    Made by `estimate_ratio`; for ``weight=`` of a guarantee.

    Parameters
    ----------
    classifier : fitted classifier
        Tells new problems from old ones by ``describe``.
    describe : callable
        ``describe(batch)`` gives a table with one row per problem.
    prior : float
        Number of old problems per new one that it was fitted to.
    """

    classifier: Any
    describe: Callable
    prior: float

    def __call__(self, batch: GraphBatch) -> NDArray[np.float64]:
        """The ratio of each problem.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_problems,)
        """
        share = self.classifier.predict_proba(self.describe(batch))[:, 1]
        odds = share / np.maximum(1 - share, 1 / LARGEST)
        return np.clip(self.prior * odds, 1 / LARGEST, LARGEST)


def estimate_ratio(
    old: Problems,
    new: Problems,
    *,
    classifier: Any = None,
    describe: Callable | None = None,
) -> LikelihoodRatio:
    """Estimate how the problems to be filtered differ from those that calibrate.

    Parameters
    ----------
    old : sequence of ReasoningGraph or GraphBatch
        Of the kind that calibrates. They should not calibrate themselves, nor be labelled.
    new : sequence of ReasoningGraph or GraphBatch
        Of the kind that is going to be filtered; no labels are needed.
    classifier : scikit-learn classifier with ``predict_proba``, optional
        None is logistic regression on standardised columns.
    describe : callable, optional
        A function of a GraphBatch that gives a table with one row per problem. None takes
        the number of claims and edges, and mean, minimum and maximum of each feature.

    Returns
    -------
    LikelihoodRatio

    Warns
    -----
    UserWarning
        Always: with a ratio that was estimated, the guarantee is approximate.

    Examples
    --------
    >>> import warnings
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import NoFalseClaim, estimate_ratio
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> new = graphs[graphs.sizes > 6]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UserWarning)
    ...     ratio = estimate_ratio(graphs[:200], new)
    >>> cf = HardCF(guarantee=NoFalseClaim(weight=ratio)).fit(graphs[200:], y[200:])
    >>> cf.thresholds(new).shape == (len(new),)
    True
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    describe = describe_problems if describe is None else describe
    if classifier is None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    tables = [np.asarray(describe(as_batch(some)), float) for some in (old, new)]
    kind = np.repeat([0, 1], [len(table) for table in tables])
    fitted = clone(classifier).fit(np.concatenate(tables), kind)
    warn(
        "the likelihood ratio is estimated, and not known: a guarantee that is weighted "
        "with it is approximate"
    )
    return LikelihoodRatio(fitted, describe, len(tables[0]) / len(tables[1]))


def describe_problems(batch: GraphBatch) -> NDArray[np.float64]:
    """Size, number of edges, and mean, minimum and maximum of each feature.

    Parameters
    ----------
    batch : GraphBatch

    Returns
    -------
    ndarray of shape (n_problems, 2 + 3 n_features)
    """
    columns = [batch.sizes, np.diff(batch.edge_offsets)]
    for column in () if batch.features is None else batch.features.T:
        total = segment_sum(column, batch.offsets)
        columns.append(total / np.maximum(batch.sizes, 1))
        ends = segment_min(column, batch.offsets), -segment_min(-column, batch.offsets)
        columns += [np.where(batch.sizes > 0, end, 0.0) for end in ends]
    return np.column_stack(columns).astype(np.float64)


def checked_weights(weight, batch):
    """What ``weight`` gives for each problem, or ValueError."""
    values = np.asarray(weight(batch), dtype=np.float64)
    if values.shape != (len(batch),):
        raise ValueError(
            f"weight={weight!r} gave shape {values.shape} for {len(batch)} problems: one "
            "number per problem is needed"
        )
    # Sums of numbers beyond these would overflow, and products lose their last bits.
    usual = (values == 0) | ((values >= 1 / EXTREME) & (values <= EXTREME))
    if not usual.all():
        i = int(np.argmin(usual))
        raise ValueError(
            f"{batch.name_of(i)}: its weight is {values[i]}, but a likelihood ratio is "
            f"finite and at least 0 (here: 0, or between {1 / EXTREME:g} and {EXTREME:g})"
        )
    return values
