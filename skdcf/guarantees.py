"""Guarantees that a filter accepts as its ``guarantee`` parameter.

`NoFalseClaim` bounds a probability, while `ExpectedFalse` bounds an expectation. The parameter
``by`` defines groups of problems, in each of which the guarantee holds. To define your own
guarantee, write a subclass of `Guarantee`.

The loss of each calibration answer is a step function of the threshold. The mean of these
functions is a step function as well, and everything else follows from it. With R the path risk of
a claim and n the number of calibration answers,

    level(R) = (1 + sum of the jumps at or below R) / (n + 1),

and a claim is kept if and only if its level is at most alpha. If only some of the answers may
pass (``show``), n counts those that pass:

==========  =========================================================================
low_i       smallest path risk of calibration answer i
v           the cut: the k0-th smallest low_i, k0 = ceil(c (n + 1)); +inf if k0 > n
B           {i: low_i < v}, the calibration answers that pass
c           the share of the answers that may pass, ``show``
==========  =========================================================================

A new answer passes if its smallest path risk is below v. Given that the new answer passes, it is
exchangeable with the answers in B. To prove this, let A = {j: #{l != j: low_l <= low_j} < k0}.
The set A is a symmetric function of the n + 1 answers. The set A contains the new answer if and
only if this answer passes, and then A consists of B and the new answer. Calibration on B alone is
therefore valid for each passing answer. Because the cut depends only on the calibration answers,
new answers can be filtered one at a time.

The guarantee is selection-conditional coverage (Jin and Ren, arXiv:2403.03868) with the
taxonomy of Vovk (ACML 2012). `skdcf.choosing.release` bounds the error rate among the
shown texts of a batch (Gazin, Heller, Marandon and Roquain, arXiv:2403.12295).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import floor
from numbers import Integral
from typing import Any, Literal

import numpy as np

from ._arrays import segment_ids
from ._checks import check_alpha, counted, warn
from ._parameters import Settings, StrOptions, at_least, fraction, settings
from .exceptions import CalibrationWarning
from .graphs import GraphBatch
from .identity import group_numbers, read_groups
from .ops import conformal
from .ops.conformal import Jumps
from .ops.hard import Array, nonconformity_scores, segment_min, segment_sum

__all__ = ["ExpectedFalse", "Guarantee", "Jumps", "NoFalseClaim"]


@settings
class Guarantee(Settings, ABC):
    """Base class for guarantees.

    A user-defined guarantee must implement three methods: `jumps` returns how the loss of each
    problem grows with the threshold, `loss` returns the loss for the kept claims, and `describe`
    states the guarantee in words. If `jumps` and `loss` are consistent with each other, the mean
    loss on new problems is at most alpha. Guarantees are scikit-learn estimators, so ``__init__``
    must only store parameters.

    Parameters
    ----------
    by : str, callable or list of them, optional
        Definition of problem groups. The guarantee holds in each group, as in `NoFalseClaim`.
    show : float in (0, 1], or "auto", default=1
        Proportion of answers that may pass, as in `NoFalseClaim`.

    Attributes
    ----------
    is_probability : bool
        Whether all losses are 0 or 1, in which case the level is a probability.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import Guarantee, Jumps
    >>> class TrueConclusion(Guarantee):
    ...     def jumps(self, path_risk, labels, offsets):
    ...         last = offsets[1:] - 1
    ...         is_false = labels[last] != 1
    ...         return Jumps.of_scores(np.where(is_false, path_risk[last], np.inf))
    ...
    ...     def loss(self, labels, kept, offsets):
    ...         return (kept & (labels != 1))[offsets[1:] - 1]
    ...
    ...     def describe(self, level):
    ...         return f"at most {level:g} of the conclusions are false{self.scope}"
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = HardCF(guarantee=TrueConclusion()).fit(graphs, y)
    >>> cf.threshold_ >= HardCF().fit(graphs, y).threshold_
    True
    """

    _parameter_constraints = {
        "by": [None, str, list, tuple, callable],
        "show": [fraction("right"), StrOptions({"auto"})],
    }
    _: KW_ONLY
    by: str | Callable[..., Any] | Sequence[Any] | None = None
    show: float | Literal["auto"] = 1
    is_probability = True

    @property
    def delta(self) -> float | None:
        """Share of calibration sets for which the mean loss may exceed alpha."""
        return None

    @property
    def error(self) -> str | None:
        """What a text contains if it violates the guarantee, or None if it may contain anything."""
        return None

    @abstractmethod
    def jumps(self, path_risk: Array, labels: Array, offsets: Array) -> Jumps:
        """Compute the jumps in the loss of each problem as the threshold grows.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
            Path risk of each claim.
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown labels must be treated as the
            worst case.
        offsets : ndarray of shape (n_problems + 1,)
            Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.

        Returns
        -------
        jumps : Jumps
            The jumps in the losses of all problems.
        """

    @abstractmethod
    def loss(self, labels: Array, kept: Array, offsets: Array) -> Array:
        """Compute the loss of each problem, between 0 and 1.

        Parameters
        ----------
        labels : ndarray of shape (n_claims,)
            Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.
        kept : ndarray of bool of shape (n_claims,)
            Whether each claim is kept.
        offsets : ndarray of shape (n_problems + 1,)
            Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.

        Returns
        -------
        losses : ndarray of shape (n_problems,)
            The loss of each problem.
        """

    @abstractmethod
    def describe(self, level: float) -> str:
        """Return a sentence that states the guarantee.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence. With ``show``, it continues "of the answers that pass, ...".
        """

    def describe_after_removal(self, level: float) -> str:
        """Describe the guarantee for answers from which a person removed kept false claims.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence. This method returns the same sentence as `describe` if removing claims
            never increases the loss.
        """
        return self.describe(level)

    @property
    def scope(self) -> str:
        """Clause that names the population of new answers, for sentences about the guarantee."""
        if self.by is not None:
            return f", in every group by {self.by!r}"
        return ", for new answers that are sampled like the calibration answers"

    def path_risks(self, path_risk: Array, batch: GraphBatch) -> PathRisks:
        """Attach the groups of problems to their path risks.

        Parameters
        ----------
        path_risk : ndarray of shape (n_claims,)
            Path risk of each claim.
        batch : GraphBatch
            The problems.

        Returns
        -------
        risks : PathRisks
            The path risks, together with the groups of the problems.

        Raises
        ------
        ValueError
            If a problem has no group.
        """
        groups = None if self.by is None else read_groups(self.by, batch)
        return PathRisks(path_risk, batch.offsets, groups, batch.name_of)

    @property
    def entries(self) -> list[Any]:
        """The entries of ``by`` as a list."""
        return list(self.by) if isinstance(self.by, (list, tuple)) else [self.by]

    def level(self, alpha: float | None, own: float) -> float:
        """Return the level that the guarantee uses for the requested ``alpha``.

        Parameters
        ----------
        alpha : float or None
            The requested level. If None, the filter's alpha is used.
        own : float
            The filter's alpha.

        Returns
        -------
        level : float
            The level that the guarantee uses.

        Raises
        ------
        ValueError
            If the value is not a valid level for this guarantee.
        """
        return check_alpha(own if alpha is None else alpha)

    # ------------------------------------------------------------------- sample sizes

    @property
    def share(self) -> float:
        """The value of ``show`` for sample sizes, which is 0.25 in place of "auto"."""
        return 0.25 if self.show == "auto" else self.show

    def problems_needed(self, level: float) -> int:
        """Return the number of calibration questions required in each group to keep any claim.

        Several answers to the same question count as one (see `~skdcf.identity.question_groups`).
        With ``show``, more are needed if the smallest path risks of several answers are tied.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        n_questions : int
            The smallest number of questions.

        Examples
        --------
        >>> from skdcf.guarantees import NoFalseClaim
        >>> NoFalseClaim().problems_needed(0.1), NoFalseClaim(delta=0.05).problems_needed(0.1)
        (9, 29)
        >>> NoFalseClaim(show=0.5).problems_needed(0.1)
        18
        """
        self.validate()
        return conformal.problems_needed(check_alpha(level), self.delta, self.share)

    def fewest(self, n: int, level: float) -> int:
        """Return the smallest number of calibration problems with the same effect as n problems.

        Parameters
        ----------
        n : int
            Number of calibration problems.
        level : float
            The requested level.

        Returns
        -------
        fewest : int
            The smallest number of problems for which the rank of the threshold is the same, or n
            if losses are not 0 or 1, so the threshold has no rank.
        """
        if not self.is_probability:
            return n
        return conformal.fewest_of_rank(n, level, self.delta, self.share)

    def calibration_count(self, n: int, level: float) -> int:
        """Return the number of problems, out of n, to hold out for calibration.

        Parameters
        ----------
        n : int
            Number of problems.
        level : float
            The requested level.

        Returns
        -------
        n_calibration : int
            Number of problems to hold out.
        """
        # The rank for m problems is floor(alpha (m + 1)), so some problems may not affect the rank.
        # Hold out the smallest number of problems whose rank is two fifths of the rank of all
        # problems, and at least 2. If the rank of all problems is below 1, or if this number
        # exceeds 60 % of the problems, hold out 30 % of them instead (60 % with "auto"). Unless
        # "auto" is set, hold out at least as many problems as the level needs.
        auto = self.show == "auto"
        expected = level * self.share * n
        rank = max(2, round(0.4 * level * self.share * n))
        count = conformal.fewest_of_rank(n, level, share=self.share, rank=rank)
        if expected < 1 or count > 0.6 * n:
            count = max(1, floor(0.6 * n + 1e-9) if auto else round(0.3 * n))
        needed = self.problems_needed(level)
        return count if auto or needed > 0.6 * n else max(count, needed)


@settings
class NoFalseClaim(Guarantee):
    """Guarantee of at most ``max_false`` false claims with probability at least ``1 - alpha``.

    The probability refers to the kept claims of a single new problem. A filter with
    ``guarantee=None`` uses `NoFalseClaim` with its default parameters.

    Parameters
    ----------
    by : str, callable or list of them, optional
        Definition of problem groups. The guarantee holds in every group of problems. Groups can
        be defined by a metadata key, or by a function that accepts a GraphBatch and returns the
        group of each problem. If ``by`` is a list, such as ``["model", "kind"]``, the group of a
        problem is the tuple of the values. In a problem whose group has
        no calibration problems, no claim is kept, with a warning.
    show : float in (0, 1], or "auto", default=1
        Proportion of answers that may pass, or "auto". An answer passes if its smallest path risk
        is below a cut, which is the ``show``-quantile of the smallest path risks of the
        calibration answers. If an answer does not pass, none of its claims are kept, and the
        guarantee holds for each answer *given that it passes*. If ``show`` is 1, every answer
        passes, and the guarantee is an average over all answers, including empty ones. If
        ``show`` is "auto", the proportion is chosen on training problems. It is the largest for
        which at most about ``alpha`` of the passing answers contain a false claim below the cut,
        or the one with the fewest such answers. If that is more than ``alpha``, fewer answers are
        shown than pass. With "auto", problems are held out for calibration even if nothing learns.
        The default of every estimator is 1, as in the paper. The command ``skdcf fit`` uses
        "auto", because people read what it writes.
    max_false : int, default=0
        Maximum number of kept false claims per problem.
    delta : float in (0, 1), optional
        Maximum probability, over random calibration sets, that the coverage on future problems is
        below ``1 - alpha``. If ``delta`` is set, the problems must be drawn independently. If
        None, the coverage is at least ``1 - alpha`` on average over calibration sets.

    References
    ----------
    V. Vovk. Conditional validity of inductive conformal predictors. ACML 2012.
    Y. Jin, Z. Ren. Confidence on the focal: conformal prediction with selection-conditional
    coverage. arXiv:2403.03868.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import NoFalseClaim
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> for guarantee in NoFalseClaim(), NoFalseClaim(max_false=1), NoFalseClaim(delta=0.05):
    ...     cf = HardCF(alpha=0.1, guarantee=guarantee).fit(graphs[:200], y[:200])
    ...     print(guarantee, round(cf.score(graphs[200:], y[200:]), 2))
    NoFalseClaim() 1.26
    NoFalseClaim(max_false=1) 2.5
    NoFalseClaim(delta=0.05) 1.26
    """

    _parameter_constraints = Guarantee._parameter_constraints | {
        "max_false": [at_least(0, Integral)],
        "delta": [None, fraction()],
    }

    _: KW_ONLY
    max_false: int = 0
    delta: float | None = None

    def jumps(self, path_risk: Array, labels: Array, offsets: Array) -> Jumps:
        scores = nonconformity_scores(path_risk, labels, offsets, self.max_false)
        return Jumps.of_scores(scores)

    def loss(self, labels: Array, kept: Array, offsets: Array) -> Array:
        return segment_sum(kept & (labels != 1), offsets) > self.max_false

    @property
    def error(self) -> str:
        """What a text contains if it violates the guarantee."""
        if not self.max_false:
            return "a false claim"
        return f"more than {self.max_false} false claim{'s' * (self.max_false > 1)}"

    def describe(self, level: float) -> str:
        chance = f"with a probability of at least {1 - level:.6g}"
        sentence = f"{chance}, no false claim is kept"
        if self.max_false:
            verb = "is" if self.max_false == 1 else "are"
            sentence = (
                f"{chance}, at most {self.max_false} of the kept claims {verb} false"
            )
        if self.show != 1:
            sentence = f"at most {100 * level:.4g} % contain {self.error}"
        if self.delta is None:
            return f"{sentence}{self.scope}"
        sets = f"for {100 - 100 * self.delta:g} % of all calibration sets"
        if self.by is None:
            return f"{sentence}, {sets}{self.scope}"
        # The coverage varies between groups. If there are many groups, some are usually below the
        # target.
        return f"{sentence}, in each group by {self.by!r}, {sets} of that group"


@settings
class ExpectedFalse(Guarantee):
    """Upper bound on the expected proportion of false claims among the kept claims.

    The proportion is 0 if no claims are kept. It is not monotone in the threshold, so the guarantee
    controls the running maximum of the proportion.

    Parameters
    ----------
    by : str, callable or list of these, optional
        Definition of the problem groups, as in `NoFalseClaim`. The guarantee holds in every group
        of problems.
    show : float in (0, 1], default=1
        Proportion of answers that may pass, as in `NoFalseClaim`. If ``show`` is below 1, the
        expectation is taken over the passing answers.
    bound : float in (0, 1), optional
        Upper bound on the expected proportion. If None, the alpha of the filter is used.

    References
    ----------
    A. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster. Conformal Risk Control.
    ICLR 2024.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.guarantees import ExpectedFalse
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF(alpha=0.05, guarantee=ExpectedFalse()).fit(graphs[:200], y[:200])
    >>> cf.predict(graphs[200:]).shape
    (100,)
    """

    is_probability = False
    _parameter_constraints = Guarantee._parameter_constraints | {
        "bound": [None, fraction()]
    }

    _: KW_ONLY
    bound: float | None = None

    def level(self, alpha: float | None, own: float) -> float:
        return super().level(alpha, own if self.bound is None else self.bound)

    def describe(self, level: float) -> str:
        return (
            "the mean share of false claims among the kept claims is at most "
            f"{level:g}{self.scope}"
        )

    def describe_after_removal(self, level: float) -> str:
        # A person may also remove true claims. For example, removing true claims can raise the
        # share of false claims from 0.12 to 0.261.
        return (
            "the mean ratio of the remaining false claims to the claims kept before the "
            f"review is at most {level:g}{self.scope}"
        )

    def jumps(self, path_risk: Array, labels: Array, offsets: Array) -> Jumps:
        return conformal.share_jumps(path_risk, labels, offsets)

    def loss(self, labels: Array, kept: Array, offsets: Array) -> Array:
        false = segment_sum(kept & (labels != 1), offsets)
        # If no claim is kept, the proportion is 0.
        return false / np.maximum(segment_sum(kept, offsets), 1)


@dataclass(frozen=True)
class PathRisks:
    """Path risks and groups of problems.

    Parameters
    ----------
    path_risk : ndarray of shape (n_claims,)
        Path risk of each claim.
    offsets : ndarray of shape (n_problems + 1,)
        Claims ``offsets[i]:offsets[i + 1]`` belong to problem i.
    groups : list of length n_problems or None
        Group of each problem.
    names : callable, optional
        Function that returns the name of problem i for error messages.
    """

    path_risk: Array
    offsets: Array
    groups: list[Any] | None = None
    names: Callable[[int], str] = "problem {}".format

    @cached_property
    def group_of(self):
        """Number of each problem's group, in order of appearance."""
        return group_numbers(self.groups, len(self))

    @cached_property
    def lowest(self):
        """Smallest path risk of each problem, which is +inf if the problem has no claims."""
        return segment_min(self.path_risk, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Steps:
    """The step function of one group: the level of a claim, given its path risk.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee that defines the losses.
    part : CalibrationPart
        The calibration problems.
    name : object
        The group, or None if there are no groups.

    Attributes
    ----------
    n_all, n : int
        Number of calibration problems, and number of these that pass.
    cut : float
        Problems pass if their smallest path risk is below the cut, or if the cut is +inf.
    position : ndarray of shape (n_jumps,), sorted
        Positions of the jumps of the problems that pass.
    level_after : ndarray of shape (n_jumps + 1,), sorted
        Level of the claims after each number of jumps.
    lowest : ndarray of shape (n,)
        Smallest path risk of each problem that passes.
    is_count : bool
        Whether each loss is 0 or 1, so the levels are ranks.
    """

    def __init__(self, guarantee, part, name):
        self.name = name
        self.n_all = len(part)
        self.cut = np.inf
        if guarantee.show != 1:
            self.cut = conformal.passing_cut(part.lowered, guarantee.show)
            # As in `predict`, the exact values are compared with the cut, which was lowered for
            # rounding.
            part = part[(part.lowest < self.cut) | np.isposinf(self.cut)]
        self.lowest = part.lowest
        self.delta = guarantee.delta
        # A loss may be below 1 in new problems, even if it was 1 in all calibration problems.
        self.is_count = guarantee.is_probability and part.jumps.is_count
        self.position, totals = part.jumps.totals()
        self.level_after = _levels(guarantee, totals, len(part), self.is_count)

    @property
    def n(self):
        """Number of calibration problems that pass."""
        return len(self.lowest)

    def threshold(self, level):
        """Return the k-th position, where k counts the levels up to the given level."""
        n_included = np.searchsorted(self.level_after, level, side="right")
        if n_included > len(self.position):
            return np.inf
        return float(self.position[n_included - 1]) if n_included else -np.inf

    def rank(self, level):
        """Return the rank of the threshold among the scores, if all losses are 0 or 1."""
        return conformal.conformal_rank(self.n, level, self.delta)

    def keeps_nothing(self, level):
        """Return whether no claim can be kept at a level."""
        return self.level_after[0] > level

    def n_shown(self, level):
        """Return the number of calibration answers that have a kept claim."""
        return int(np.sum(self.lowest < self.threshold(level)))

    def n_wrong(self, level):
        """Return the number of calibration answers expected to be shown with a false claim."""
        # If there are ties, fewer scores are below the threshold than the rank of the threshold
        # suggests.
        n_below = np.searchsorted(self.position, self.threshold(level))
        rank = min(self.rank(level), 1 + n_below)
        return min(rank * self.n / (self.n + 1), self.n_shown(level))


def _levels(guarantee, totals, n, is_count):
    """Return the levels of claims from 1 plus the losses that are present."""
    if is_count:
        return conformal.claim_level(totals - 1, n, guarantee.delta)
    if guarantee.delta is not None:
        raise ValueError(
            f"delta must be None unless all losses are 0 or 1, got {guarantee!r}"
        )
    return conformal.mean_level(totals, n)


class Calibration:
    """Calibration of a guarantee, with a separate step function for each group of problems.

    Without ``by``, all problems are in the group None. In problems whose group has no calibration
    problems, nothing is kept (Mondrian conformal prediction).

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    part : CalibrationPart
        The calibration problems.

    Attributes
    ----------
    n : int
        Number of calibration problems.
    names : list
        The groups.
    steps : list of Steps
        The step function of each group.

    Raises
    ------
    ValueError
        If the guarantee has ``delta``, but not all losses are 0 or 1.
    """

    def __init__(self, guarantee, part):
        parts = {None: part} if part.groups is None else _split_groups(part)
        self.guarantee = guarantee
        self.steps = [Steps(guarantee, own, name) for name, own in parts.items()]

    @property
    def n(self):
        """Number of calibration problems."""
        return sum(steps.n_all for steps in self.steps)

    @property
    def names(self):
        """The groups."""
        return [steps.name for steps in self.steps]

    def passing_group(self, risks):
        """Return the index of each problem's group, or -1 if nothing of the problem is kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.

        Returns
        -------
        group_of : ndarray of int of shape (n_problems,)
            The indices of the groups in ``names``.
        """
        group_of = np.zeros(len(risks), int)
        if risks.groups is not None:
            number = {name: i for i, name in enumerate(self.names)}
            group_of[:] = [number.get(name, -1) for name in risks.groups]
            unseen = np.flatnonzero(group_of < 0)
            if len(unseen):
                warn(
                    f"nothing is kept in {counted(len(unseen), 'problem')}, such as "
                    f"{risks.names(unseen[0])}, whose group {risks.groups[unseen[0]]!r} is not "
                    f"one of the calibration groups {self.names[:10]}. Calibrate with problems "
                    "of this group",
                    CalibrationWarning,
                )
        if self.guarantee.show != 1:
            cut = np.array([steps.cut for steps in self.steps])[group_of]
            group_of[np.isfinite(cut) & (risks.lowest >= cut)] = -1
        return group_of

    def passes(self, risks):
        """Return which problems pass. If a problem does not pass, none of its claims are kept.

        Parameters
        ----------
        risks : PathRisks or CalibrationPart
            Smallest path risks and groups of the problems.

        Returns
        -------
        passes : ndarray of bool of shape (n_problems,)
            Whether each problem passes. All problems pass if the guarantee has ``show=1``.
        """
        return self.passing_group(risks) >= 0

    def thresholds(self, risks, level):
        """Return the threshold of each problem. Claims with smaller path risks are kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.
        level : float
            The requested level.

        Returns
        -------
        thresholds : ndarray of shape (n_problems,)
            The threshold of each problem, which is -inf if the problem does not pass.
        """
        values = [steps.threshold(level) for steps in self.steps]
        return np.array([*values, -np.inf])[self.passing_group(risks)]

    def levels(self, risks, keep_equal=False):
        """Return the smallest level at which each claim is kept.

        Parameters
        ----------
        risks : PathRisks
            Path risks of the problems, together with their groups.
        keep_equal : bool
            Whether to keep a claim if its path risk equals the threshold.

        Returns
        -------
        levels : ndarray of shape (n_claims,)
            The level of each claim, which is +inf if the problem does not pass.
        """
        side = "left" if keep_equal else "right"
        group_of = self.passing_group(risks)[segment_ids(risks.offsets)]
        levels = np.full(len(risks.path_risk), np.inf)
        for number, steps in enumerate(self.steps):
            claims = np.flatnonzero(group_of == number)
            place = steps.position.searchsorted(risks.path_risk[claims], side)
            levels[claims] = steps.level_after[place]
        return levels

    def threshold(self, level):
        """Return the threshold if there is a single group, otherwise NaN.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        threshold : float
            The threshold of all problems that pass, or NaN.
        """
        return self.steps[0].threshold(level) if self.names == [None] else np.nan

    def coverage_law(self, level):
        """Return the parameters (a, b) of the coverage's beta distribution if there are no ties.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        law : tuple of int or None
            The parameters of the beta distribution. If no claims are kept, b is 0. The result is
            None with several groups, or if the losses are not 0 or 1.
        """
        if self.names != [None] or not self.steps[0].is_count:
            return None
        rank = self.steps[0].rank(level)
        return self.steps[0].n + 1 - rank, rank

    def keeps_nothing(self, level):
        """Return whether the filter cannot keep any claims at a level.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        keeps_nothing : bool
            True if the filter cannot keep any claims at this level.
        """
        return all(steps.keeps_nothing(level) for steps in self.steps)

    def shortage(self, level):
        """Return a sentence that explains why no claim can be kept at a level in some group.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str or None
            The sentence, which also states what is required to keep claims, or None if claims can
            be kept.
        """
        lacking = [steps for steps in self.steps if steps.keeps_nothing(level)]
        short = [f"group {s.name!r}: {self._lacks(s, level)}" for s in lacking[:5]]
        return " ".join(short).removeprefix("group None: ") or None

    def _lacks(self, steps, level):
        """Return a sentence that states what a group needs to keep claims."""
        n = steps.n_all
        show, delta = float(self.guarantee.show), self.guarantee.delta
        needed = self.guarantee.problems_needed(level)
        if n >= needed:
            return (
                f"only {steps.n} of {n} calibration answers pass with show={show:g}, because "
                "many answers have the same smallest path risk. Nothing can be kept. Use a "
                'finer scorer, or ties="jitter"'
            )
        values = {"alpha": level, "delta": delta, "show": None if show == 1 else show}
        asked = [f"{name} = {value:g}" for name, value in values.items() if value]
        least = conformal.claim_level(0, conformal.passing_count(n, show), delta)
        return (
            f"{n} calibration problems are too few for {' and '.join(asked)}, so nothing can be "
            f"kept. At least {needed} are needed for calibration, or alpha >= {least:.4g}. All "
            "labelled problems can be used for calibration with a scorer that needs no training, "
            'such as a column. With scorer="linear" and calibration_size="all", n labelled answers '
            "keep claims at alpha >= 1 / (n + 1)"
        )

    # ------------------------------------------------------------------- for reports

    @property
    def passing(self):
        """Proportion of new answers that pass, which is 1 if the guarantee has ``show=1``."""
        # A new answer passes if its rank is among the lowest |B| + 1 of n + 1.
        passing = [
            steps.n_all * ((steps.n + 1) / (steps.n_all + 1)) for steps in self.steps
        ]
        return sum(passing) / self.n

    def shown(self, level):
        """Return the proportion of calibration answers that have a kept claim at a level.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        proportion : float
            The proportion.
        """
        return sum(steps.n_shown(level) for steps in self.steps) / self.n

    def false_among_shown(self, level):
        """Return the expected proportion of shown texts with a false claim.

        The proportion refers to new answers and is an average over calibration sets. In each
        group, it is at most k / ((n + 1) s). Here, s is the proportion of shown answers, and k is
        the smaller of the rank and 1 + #{scores below the threshold}.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        proportion : float or None
            The proportion, or None if nothing is shown, or if the guarantee does not count false
            claims.
        """
        n_shown = sum(steps.n_shown(level) for steps in self.steps)
        if not n_shown or self.guarantee.error is None:
            return None
        return sum(steps.n_wrong(level) for steps in self.steps) / n_shown

    def describe(self, level):
        """Return a sentence that states the guarantee at a level, for use in reports.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            A sentence that states the guarantee.
        """
        shortage = self.shortage(level)
        if self.keeps_nothing(level):
            return f"nothing is kept: {shortage}"
        sentence = self.guarantee.describe(level)
        if self.guarantee.show != 1:
            passing = f"about {100 * self.passing:.0f} % of all"
            sentence = f"of the answers that pass ({passing}), {sentence}"
        return f"{sentence}; {shortage}" if shortage else sentence

    def describe_shown(self, level):
        """Return a sentence that states the proportion of shown texts and their error rate.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence.
        """
        share = self.shown(level)
        if not share:
            return "At this level, nothing is shown for new answers"
        kept = f"At least one claim is kept in about {share:.0%} of new answers"
        rate = self.false_among_shown(level)
        if rate is None:
            return kept
        return f"{kept}, and about {rate:.0%} of the shown texts contain {self.guarantee.error}"


def _split_groups(part):
    names = dict.fromkeys(part.groups)
    group_of = part.group_of
    return {name: part[group_of == i] for i, name in enumerate(names)}


def leave_one_out(guarantee, jumps, risks):
    """Compute the level of each claim after calibration on all other problems of its group.

    The running time is O(n log n) for all levels and problems together. With ``show``, an answer
    passes if the smallest path risks of fewer than k0 = ceil(show n) other answers are at most as
    large as that of the answer. Only those of the other answers that pass are used
    for calibration.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    jumps : Jumps
        Jumps in the loss of each problem.
    risks : PathRisks
        Path risks and groups of the problems, in the order of the jumps.

    Returns
    -------
    levels : ndarray of shape (n_claims,)
        The smallest level at which each claim is kept, which is +inf if the answer does not pass.
    """
    levels = np.full(len(risks.path_risk), np.inf)
    problem_of = segment_ids(risks.offsets)
    for group in np.unique(risks.group_of):
        rows = np.flatnonzero(risks.group_of == group)
        lowest = risks.lowest[rows]
        k0 = conformal.passing_count(len(rows) - 1, guarantee.share) + 1
        n_others = np.searchsorted(np.sort(lowest), lowest, side="right") - 1
        passing = rows[n_others < k0]
        number = np.full(len(risks), -1)
        number[passing] = np.arange(len(passing))
        claims = np.flatnonzero(number[problem_of] >= 0)
        above = np.nextafter(risks.path_risk[claims], np.inf)
        part = jumps[passing]
        position, totals = part.totals()
        total = totals[np.searchsorted(position, above)]
        total -= part.losses(number[problem_of[claims]], above)
        is_count = guarantee.is_probability and part.is_count
        levels[claims] = _levels(guarantee, total, len(passing) - 1, is_count)
    return levels


def share_table(guarantee, risks, labels):
    """Count the training answers that pass, and those of them that are wrong, for each share.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee whose loss is used.
    risks : PathRisks
        Path risks of training problems, computed by scorers that were not trained on these
        problems. Each group has its own cut.
    labels : ndarray of shape (n_claims,)
        Claim labels (1 true, 0 false, -1 unknown). Unknown labels count as false.

    Returns
    -------
    table : ndarray of shape (n_shares, 3)
        The share, the number of answers whose smallest path risk is below the cut, and the number
        of these with a false claim below the cut, or the sum of their losses there.
    """
    jumps = guarantee.jumps(risks.path_risk, labels, risks.offsets)
    table = np.zeros((91, 3))
    table[:, 0] = np.arange(10, 101) / 100
    for group in np.unique(risks.group_of):
        own = np.flatnonzero(risks.group_of == group)
        safest = np.sort(risks.lowest[own])
        cuts = np.array([conformal.passing_cut(safest, share) for share in table[:, 0]])
        table[:, 1] += np.where(
            np.isposinf(cuts), len(own), np.searchsorted(safest, cuts)
        )
        position, totals = jumps[own].totals()
        table[:, 2] += totals[np.searchsorted(position, cuts)] - 1
    return table


def choose_share(table, level, delta, counts):
    """Choose the share of answers that may pass, without the labels of calibration answers.

    The rate of a share is (1 + wrong) / (1 + passing) on the training answers. The largest share
    is chosen whose rate is at most the level, or at most the smallest rate if no rate is. Shares
    at which no training answer passes are not considered, because of ties.

    Parameters
    ----------
    table : ndarray of shape (n_shares, 3)
        Result of `share_table`.
    level : float
        The guarantee level.
    delta : float or None
        Maximum proportion of calibration sets for which the coverage is too low.
    counts : sequence of int
        Number of calibration questions in each group. Only shares are considered at which every
        group has rank 1, apart from groups that are too small for any share.

    Returns
    -------
    share : float
        The chosen share, which is 1 if no share has rank 1.
    """
    needed = np.array(
        [conformal.problems_needed(level, delta, share) for share in table[:, 0]]
    )
    # The last share is 1, which needs the fewest questions.
    able = [n for n in counts if n >= needed[-1]]
    if not able:
        return 1.0
    shares, passing, wrong = table[(needed <= min(able)) & (table[:, 1] > 0)].T
    rate = (1 + wrong) / (1 + passing)
    return float(shares[rate <= max(level, rate.min())].max())
