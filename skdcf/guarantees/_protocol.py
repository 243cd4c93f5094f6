"""What a guarantee is, and what a filter asks of it.

Groups and weights that look at the other problems of a batch are refused. A weight may be
the likelihood ratio of new problems against old ones, estimated by a classifier.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_alpha, warn
from .._parameters import Settings, StrOptions
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch, Problems, as_batch
from ..graphs.grouping import as_set, read_groups
from ..ops.conformal import problems_needed
from ..ops.hard import segment_min, segment_sum
from ..ops.holdout import whole_count
from ..ops.risk_control import Steps
from ._calibration import Calibration, Controlled, PathRisks, PerGroup


class Guarantee(Settings, metaclass=ABCMeta):
    """What a filter promises about the problems that it filters.

    A guarantee of your own says by `scores` how large the threshold of a problem may be,
    and by `loss` when the promise was broken. It has the promise that the mean loss of
    new problems is at most alpha. It is a scikit-learn estimator: ``__init__`` stores its
    parameters and does nothing else.

    Attributes
    ----------
    by, weight
        For whom the promise is made, see `NoFalseClaim`; None where it has no such
        parameter.
    unseen : {"error", "pool", "empty"}
        What happens to problems of a group that calibration has not seen.
    is_probability : bool
        Whether losses are 0 or 1, so that the level is a probability.
    combines_folds : bool
        Whether scores of several folds may be counted together.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import Guarantee
    >>> class TrueConclusion(Guarantee):
    ...     def scores(self, path_risk, labels, offsets):
    ...         last = offsets[1:] - 1
    ...         return np.where(labels[last] == 1, np.inf, path_risk[last])
    ...
    ...     def loss(self, labels, kept, offsets):
    ...         return (kept & (labels != 1))[offsets[1:] - 1]
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(guarantee=TrueConclusion()).fit(graphs, y)
    >>> cf.threshold_ >= HardCF().fit(graphs, y).threshold_
    True
    """

    _parameter_constraints = {
        "by": [None, str, list, tuple, callable],
        "weight": [None, callable],
        "unseen": [StrOptions({"error", "pool", "empty"})],
    }
    by: Any = None
    weight: Any = None
    unseen: Literal["error", "pool", "empty"] = "error"
    is_probability = True

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        super().validate()
        if self.by is None and self.unseen != "error":
            raise ValueError(
                f"unseen is {self.unseen!r}, but only groups can be unseen: set by as well"
            )

    @property
    def combines_folds(self) -> bool:
        """Whether scores of several folds may be counted together."""
        return False

    @abstractmethod
    def scores(
        self, path_risk: NDArray, labels: NDArray, offsets: NDArray
    ) -> NDArray[np.float64]:
        """Nonconformity score of each problem: the largest threshold that is safe.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
        labels : ndarray of shape (n_claims,)
            1 true, 0 false, -1 unknown, which has to be taken for the worse.
        offsets : ndarray of shape (n_problems + 1,)
            Claims of problem i are ``offsets[i]:offsets[i + 1]``.

        Returns
        -------
        ndarray of shape (n_problems,), +inf where every threshold is safe
        """

    @abstractmethod
    def loss(self, labels: NDArray, kept: NDArray, offsets: NDArray) -> NDArray:
        """What each problem lost: 1 where the promise is broken, 0 where it is kept.

        Parameters
        ----------
        labels : ndarray of shape (n_claims,)
        kept : ndarray of bool, shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        ndarray of shape (n_problems,)
        """

    def steps(self, path_risk: NDArray, labels: NDArray, offsets: NDArray) -> Steps:
        """Where the loss of each problem grows with the threshold, and by how much.

        Parameters
        ----------
        path_risk, labels, offsets
            As in `scores`.

        Returns
        -------
        Steps
        """
        return Steps.of_scores(self.scores(path_risk, labels, offsets))

    def level(self, alpha: float | None, own: float) -> float:
        """The level that is meant by ``alpha``.

        Parameters
        ----------
        alpha : float or None
            What was asked for; None is the filter's own.
        own : float
            The filter's alpha.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If it is no level of this guarantee.
        """
        return check_alpha(own if alpha is None else alpha)

    def for_level(self, alpha: float) -> Guarantee:
        """The same promise where alpha alone is to say the level.

        Parameters
        ----------
        alpha : float

        Returns
        -------
        Guarantee
        """
        return self

    def path_risks(self, path_risk: NDArray, batch: GraphBatch) -> PathRisks:
        """What calibration and prediction look at.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
        batch : GraphBatch

        Returns
        -------
        PathRisks

        Raises
        ------
        ValueError
            If a problem has no group, or a weight that is not finite and at least 0.
        """
        groups = None if self.by is None else read_groups(self.by, batch)[0]
        weights = None if self.weight is None else checked_weights(self.weight, batch)
        return PathRisks(path_risk, batch.offsets, weights, groups, batch.name_of)

    def refuse_dependence(self, batch: GraphBatch, risks: PathRisks) -> None:
        """Raise ValueError if groups or weights depend on the rest of the batch.

        Parameters
        ----------
        batch : GraphBatch
        risks : PathRisks
            Of this batch.
        """
        refuse_dependence(self, batch, risks)

    @property
    def functions(self) -> list:
        """Plain functions among by and weight, which are compared as objects."""
        return functions_of(self)

    def calibrate(self, steps: Steps, risks: PathRisks) -> Calibration:
        """What the calibration problems say.

        Parameters
        ----------
        steps : Steps
            Of the calibration problems.
        risks : PathRisks
            Weights and groups of the same problems.

        Returns
        -------
        Calibration
        """
        if risks.groups is None:
            return self.calibrate_one(steps, risks.weights)
        if any(isinstance(group, frozenset) for group in risks.groups):
            return self._overlapping(steps, risks)
        return PerGroup(self, steps, risks)

    def calibrate_one(self, steps: Steps, weights: NDArray | None) -> Calibration:
        """The calibration of problems that are all of one group.

        Parameters
        ----------
        steps : Steps
        weights : ndarray of shape (n_problems,) or None

        Returns
        -------
        Calibration
        """
        return Controlled(steps, weights, self)

    def _overlapping(self, steps, risks):
        raise ValueError(
            f"by={self.by!r} gives groups that overlap, for which {type(self).__name__} "
            "has no thresholds: let each problem be in one group"
        )

    def largest_loss(self, path_risk: NDArray, offsets: NDArray) -> NDArray | float:
        """The most that a new problem can lose where each of its claims is just kept.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
        offsets : ndarray of shape (n_problems + 1,)

        Returns
        -------
        float, or ndarray of shape (n_claims,)
        """
        return 1.0

    def leave_one_out(self, steps: Steps, risks: PathRisks) -> NDArray[np.float64]:
        """Level of each claim when all other problems calibrate it.

        Parameters
        ----------
        steps : Steps
        risks : PathRisks
            Of the same problems.

        Returns
        -------
        ndarray of shape (n_claims,)

        Raises
        ------
        ValueError
            Where that is not known in closed form.
        """
        raise ValueError(
            f"leave-one-out evaluation has no closed form for {self!r}: use folds, with "
            "evaluate_filter or compare_filters"
        )

    def describe(self, level: float) -> str:
        """The promise as a sentence, for reports.

        Parameters
        ----------
        level : float

        Returns
        -------
        str
        """
        return f"the mean loss of {self!r} is at most {level:g}{self.scope}"

    @property
    def scope(self) -> str:
        """For which new answers the promise is made, as the end of a sentence."""
        if self.by is not None:
            return f", in every group by {self.by!r}"
        if self.weight is not None:
            return ", for answers of the kind that the weights stand for"
        return ", for new answers that are drawn like those that calibrated"

    def needed(self, n: int, level: float) -> str:
        """What to tell about n calibration problems that are too few.

        Parameters
        ----------
        n : int
        level : float

        Returns
        -------
        str
        """
        return (
            f"{n} calibration problems are too few for alpha = {level:g}: nothing "
            f"can be kept. At least {self.problems_needed(level)} are needed, of those "
            f"that calibration_size holds out, or alpha >= {1 / (n + 1):.4g}."
        )

    def problems_needed(self, level: float) -> int:
        """The number of calibration problems, in each group, that it takes to keep any.

        Parameters
        ----------
        level : float

        Returns
        -------
        int
        """
        return problems_needed(level)

    def fewest(self, n: int, level: float) -> int:
        """The smallest number of calibration problems that does as well as n.

        Where the threshold is a score of some rank, it is the smallest with that rank.

        Parameters
        ----------
        n : int
            Number of calibration problems.
        level : float
            The level that is asked for.

        Returns
        -------
        int
            At most n; n itself where every problem is of use.
        """
        return n

    def calibration_count(self, n: int, alpha: float) -> int:
        """How many of n problems to hold out for calibration.

        Parameters
        ----------
        n : int
        alpha : float

        Returns
        -------
        int
        """
        count, needed = whole_count(n, alpha), self.problems_needed(alpha)
        return count if needed > 0.6 * n else max(count, needed)


LARGEST = 512  # problems that are looked at
TOLERATED = 1e-5  # of the largest weight


def refuse_dependence(guarantee, batch, risks):
    """ValueError if the group or weight of a problem is another in another batch.

    Parameters
    ----------
    guarantee : Guarantee
    batch : GraphBatch
    risks : PathRisks
        Of the whole batch.
    """
    rows = np.unique(
        np.linspace(0, len(batch) - 1, min(len(batch), LARGEST)).astype(int)
    )
    if guarantee.by is None and guarantee.weight is None:
        return
    for some in (rows[:1], rows[1:2], rows[2 : 2 + len(rows) // 3]):
        if 0 < len(some) < len(batch):
            part = batch[some]
            alone = guarantee.path_risks(np.zeros(part.n_claims), part)
            _compare_groups(guarantee.by, alone.groups, risks.groups, batch, some)
            _compare_weights(alone.weights, risks.weights, batch, some)


def _compare_groups(by, alone, together, batch, rows):
    for group, i in zip(alone or (), rows if alone else (), strict=True):
        if as_set(group) != as_set(together[i]):
            raise ValueError(
                f"{batch.name_of(int(i))} is of group {together[i]!r} by {by!r} among "
                f"all problems, and of {group!r} among others. A group has to be a "
                "function of each problem alone: no rank or quantile over the batch"
            )


def _compare_weights(alone, together, batch, rows):
    if alone is None:
        return
    differ = np.abs(alone - together[rows]) > TOLERATED * together.max()
    if differ.any():
        j = int(np.argmax(differ))
        raise ValueError(
            f"{batch.name_of(int(rows[j]))} has weight {together[rows[j]]:g} among all "
            f"problems, and {alone[j]:g} among others. A weight has to be a function of "
            "each problem alone: do not divide by a sum over the batch"
        )


def functions_of(guarantee):
    """The plain functions that say groups and weights; they are compared as objects."""
    found = []
    for value in (guarantee.by, guarantee.weight):
        several = value if isinstance(value, (list, tuple)) else [value]
        found += [one for one in several if isinstance(one, FunctionType)]
    return found


EXTREME = 1e100  # of a weight, either way
_WEIGHT_BOUND = 1e6  # odds beyond which a classifier is sure, and not informative


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
        odds = share / np.maximum(1 - share, 1 / _WEIGHT_BOUND)
        return np.clip(self.prior * odds, 1 / _WEIGHT_BOUND, _WEIGHT_BOUND)


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
    GuaranteeWarning
        Always: with a ratio that was estimated, the guarantee is approximate.

    Examples
    --------
    >>> import warnings
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.exceptions import GuaranteeWarning
    >>> from skdcf.guarantees import NoFalseClaim, estimate_ratio
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> new = graphs[graphs.sizes > 6]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GuaranteeWarning)
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
        "with it is approximate",
        GuaranteeWarning,
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
