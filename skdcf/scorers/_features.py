"""Scorers that learn nothing: a feature, a frequency, a function."""

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import warn
from .._parameters import Number, StrOptions
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch
from ..graphs.ragged import offsets_of
from ._form import LinearForm
from ._protocol import Scorer, Task, does_learn

FREQUENCY = "frequency-score"


class FeatureScorer(Scorer):
    """One feature as the confidence.

    Parameters
    ----------
    feature : str or int
        Name or column number.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FeatureScorer
    >>> batch = GraphBatch.from_arrays([[0.9, 3], [0.8, 5]], [0, 2])
    >>> FeatureScorer(1).confidence(batch)
    array([3., 5.])
    """

    learns = False
    exact = True

    def __init__(self, feature: str | int) -> None:
        self.feature = feature

    def columns_read(self) -> tuple[str, ...] | None:
        """The feature, where it is given by name.

        Returns
        -------
        tuple of str or None
        """
        return (self.feature,) if isinstance(self.feature, str) else None

    def fit(
        self, batch: GraphBatch, labels: NDArray | None = None, task: Task | None = None
    ) -> Self:
        """Check that the feature is there.

        Parameters
        ----------
        batch : GraphBatch
        labels, task : ignored

        Returns
        -------
        self
        """
        column_of(self.feature, batch)
        return self

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return batch.features[:, column_of(self.feature, batch)]

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """Weight 1 for the feature and 0 for all others.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        LinearForm
        """
        column = column_of(self.feature, batch)
        return LinearForm.unbounded(np.eye(batch.n_features)[column])


class FrequencyScorer(FeatureScorer):
    """Self-consistency frequency, mixed with that of the claims that build on it.

    The confidence of claim v is ``(1 - beta_mix) f_v + beta_mix m_v``, where m_v is the
    median frequency of the claims below v in the graph, each with its own, unmixed
    value. A claim on which nothing builds keeps f_v.

    Parameters
    ----------
    beta_mix : float, default=0.0
        Weight of the claims below, in [0, 1].
    over : {"descendants", "children"}, default="descendants"
        "descendants" is the published formula. "children" is what the code of its
        authors does: direct children only, and the upper median of their *risks*,
        hence the lower one of their frequencies. At ``beta_mix=0`` the claims below
        weigh nothing, and both are the same.
    feature : str or int, default="frequency-score"
        Name or column number of the frequency.

    References
    ----------
    Rubin-Toles et al., Conformal Language Model Reasoning with Coherent Factuality,
    ICLR 2025.

    Examples
    --------
    >>> from skdcf import GraphBatch
    >>> from skdcf.scorers import FrequencyScorer
    >>> batch = GraphBatch.from_arrays([[1.0], [5.0], [3.0]], [0, 3], [(0, 1), (0, 2)])
    >>> FrequencyScorer(0.5, feature=0).confidence(batch)
    array([2.5, 5. , 3. ])
    """

    _parameter_constraints = {
        "beta_mix": [Number(Real, 0, 1, closed="both")],
        "over": [StrOptions({"descendants", "children"})],
    }

    def __init__(
        self,
        beta_mix: float = 0.0,
        over: Literal["descendants", "children"] = "descendants",
        *,
        feature: str | int = FREQUENCY,
    ) -> None:
        self.beta_mix = beta_mix
        self.over = over
        self.feature = feature

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        own = batch.features[:, column_of(self.feature, batch)]
        if self.beta_mix == 0:
            return own
        if self.over == "children":
            parent, child = batch.edges.T
        else:
            indptr, parent = batch.closure
            child = np.repeat(np.arange(batch.n_claims), np.diff(indptr))
            parent, child = parent[parent != child], child[parent != child]
        lower, upper = _medians(own[child], parent, batch.n_claims)
        below = lower if self.over == "children" else (lower + upper) / 2
        mixed = (1 - self.beta_mix) * own + self.beta_mix * below
        return np.where(np.isnan(below), own, mixed)

    def linear_form(self, batch: GraphBatch) -> LinearForm | None:
        """As of `FeatureScorer`, where no other claim enters.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        LinearForm, or None with ``beta_mix`` above 0
        """
        return super().linear_form(batch) if self.beta_mix == 0 else None


class FunctionScorer(Scorer):
    """A function of a `GraphBatch` as the scorer.

    Parameters
    ----------
    function : callable
        From a GraphBatch to an array of shape (n_claims,), higher meaning more
        trustworthy. It must look at each problem by itself: ranks or scales taken over
        the batch void the guarantee, and are refused where they are noticed.

    Attributes
    ----------
    function_ : callable
        The function; a copy of it where it is an object with a state of its own.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> HardCF(lambda batch: -batch.depth).fit(graphs, y).scorer_
    FunctionScorer(function=<function <lambda> at ...>)
    """

    learns = False

    def __init__(self, function: Callable[[GraphBatch], ArrayLike]) -> None:
        self.function = function

    def fit(
        self, batch: GraphBatch, labels: NDArray | None = None, task: Task | None = None
    ) -> Self:
        """Keep a copy of the function; nothing is learnt.

        Parameters
        ----------
        batch, labels, task : ignored

        Returns
        -------
        self

        Warns
        -----
        GuaranteeWarning
            If the function is a method of a scorer that was trained before.
        """
        owner = getattr(self.function, "__self__", None)
        if isinstance(owner, Scorer) and does_learn(owner):
            warn(
                f"the function is a method of a fitted {type(owner).__name__}: the "
                "guarantee needs problems here that it was not trained on. Pass the "
                "scorer itself to have it trained on other problems",
                GuaranteeWarning,
            )
        self.function_ = deepcopy(self.function)
        return self

    def confidence(self, batch: GraphBatch) -> NDArray[np.float64]:
        return np.asarray(self.function_(batch))


def column_of(feature, batch):
    """Column number of a feature given by name or number, or ValueError."""
    if batch.features is None:
        raise ValueError(
            f"feature {feature!r} is wanted, but the problems have no features yet: "
            "add some with skdcf.features"
        )
    names = batch.feature_names
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"feature {feature!r} is wanted by name, but the features are not named"
            )
        if feature not in names:
            raise ValueError(f"no feature {feature!r}; there are {list(names)}")
        return names.index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise ValueError(f"feature is {feature!r}: a name or a column number")
    if not -batch.n_features <= feature < batch.n_features:
        raise ValueError(f"feature {feature} but only {batch.n_features} features")
    return int(feature)


def _medians(values, owner, n):
    """Lower and upper median of the values of each owner, NaN for none."""
    ordered = values[np.lexsort((values, owner))]
    count = np.bincount(owner, minlength=n)
    start = offsets_of(count)[:-1]
    padded = np.append(ordered, np.nan)
    lower = padded[np.where(count, start + (count - 1) // 2, len(ordered))]
    upper = padded[np.where(count, start + count // 2, len(ordered))]
    return lower, upper
