"""Base class for guarantees, a guarantee on a probability, and a guarantee on an expectation."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY
from math import floor
from numbers import Integral
from typing import Any, Literal

import numpy as np

from .._checks import check_alpha
from .._parameters import Settings, StrOptions, at_least, fraction, settings
from ..graphs import GraphBatch
from ..identity import read_groups
from ..ops import conformal
from ..ops.conformal import Jumps
from ..ops.hard import Array, nonconformity_scores, segment_sum
from ._calibration import PathRisks


@settings
class Guarantee(Settings, metaclass=ABCMeta):
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
        """Collect the path risks and groups of problems.

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

    def with_share(self, share: float) -> Guarantee:
        """Return a copy of the guarantee with another ``show``.

        Parameters
        ----------
        share : float in (0, 1]
            The share of the answers that may pass.

        Returns
        -------
        copy : Guarantee
            A copy of the guarantee, with the share.
        """
        chosen = copy(self)
        chosen.show = share
        return chosen

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
        # The smallest number that gives the rank of about two fifths of the problems is used.
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
