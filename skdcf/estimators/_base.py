"""How a filter is fitted: check, resolve the scorer, split, fit the scorer, calibrate."""

from abc import ABCMeta
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._checks import check_alpha, check_groups
from .._parameters import Fraction, Number, StrOptions, positive
from ..graphs import Labels, Problems
from ..guarantees import Guarantee
from ..ops.holdout import hold_out, holdout_count, pick
from ..scorers import Task, as_scorer
from ._admit import unchanged_on_error
from ._calibrated import CalibratedFilter
from ._cross import CROSS, fit_cross
from ._labels import flat_labels, warn_of_labels
from ._scored_as import trained_on
from ._threads import few_threads
from ._ties import TIES


class BaseFilter(CalibratedFilter, metaclass=ABCMeta):
    """Fit a scorer on some problems, calibrate it on others, filter new ones."""

    scorer: Any
    calibration_size: float | int | Literal["cross"] | None
    random_state: int | np.random.RandomState | None

    _parameter_constraints = {
        "coherent": ["boolean"],
        "ties": [StrOptions(set(TIES))],
        "guarantee": [None, Guarantee],
        "calibration_size": [
            None,
            Number(Fraction, 0, 1, closed="neither"),
            positive(Integral),
            StrOptions({CROSS}),
        ],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _wanted_scorer(self, batch):
        """What is to be scored with; presets make it of their own parameters."""
        return self.scorer

    def _task(self, groups, rng):
        return Task(self.alpha, groups, rng)

    def validate(self) -> None:
        """Raise ValueError unless all parameters are as declared, and of use."""
        check_alpha(self.alpha)
        super().validate()
        if self.guarantee is not None:
            self.guarantee.validate()
            self._refuse_ties()
        if self.calibration_size == CROSS:
            self._refuse_cross()

    def _refuse_ties(self):
        if TIES[self.ties].keep_equal:
            raise ValueError(
                f'ties="{self.ties}" has no guarantee where scores are tied, so that '
                f"guarantee={self.guarantee!r} would be an empty promise: leave guarantee "
                'at None, or choose ties="exclude" or "jitter"'
            )

    def _refuse_cross(self):
        if self.ties != "exclude":
            raise ValueError(
                f'calibration_size="{CROSS}" counts problems, and has no use for '
                f"ties={self.ties!r}: leave ties at its default"
            )
        if not self._promise().crosses:
            raise ValueError(
                f'calibration_size="{CROSS}" has no theory for guarantee='
                f"{self.guarantee!r}: choose NoFalseClaim(max_false) alone, or a share or "
                "number of problems for calibration_size"
            )

    def fit(self, X: Problems, y: Labels, groups: ArrayLike | None = None) -> Self:
        """Train the scorer if it learns, then calibrate on problems held out of that.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Rows of an array are problems with one claim each.
        y : sequence of 1-D arrays, one per problem
            1 for a true claim, 0 for a false one, -1 for one that nobody judged: it
            counts as false in calibration and is left out of training. For a GraphBatch
            also one flat array; for an array X a 1-D array of two label values, of which
            the larger means true.
        groups : array-like of shape (n_problems,), optional
            Problems of one group (say, of the same question) are held out together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On bad problems, labels or parameters, before anything is computed.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            As in `calibrate`.
        """
        with unchanged_on_error(self):
            self._fit_together([self], X, y, groups)
            return self

    def fit_levels(
        self,
        X: Problems,
        y: Labels,
        alphas: Iterable[float],
        groups: ArrayLike | None = None,
    ) -> list[Self]:
        """Fit copies of this filter for several levels.

        Levels that hold out the same number of problems share the split, and as much of
        the training as does not depend on alpha.

        Parameters
        ----------
        X, y
            As in `fit`.
        alphas : sequence of float in (0, 1)
        groups : array-like of shape (n_problems,), optional
            As in `fit`.

        Returns
        -------
        list of fitted filters, one per alpha
        """
        filters = [_at_level(self, check_alpha(a)) for a in alphas]
        batch, together = self.check(X), {}
        learns = as_scorer(self._wanted_scorer(batch), batch).learns
        for filter in filters:
            size = filter._calibration_size(len(batch)) if learns else None
            together.setdefault(size, []).append(filter)
        for several in together.values():
            several[0]._fit_together(several, X, y, groups)
        return filters

    def _calibration_size(self, n):
        if self.calibration_size is None:
            return self._promise().calibration_count(n, self.alpha)
        return self.calibration_size

    def _fit_together(self, filters, X, y, groups):
        for filter in filters:
            filter.validate()
        batch, is_table = self._admit(X, reset=True)
        labels, values = flat_labels(y, batch, is_table)
        groups = check_groups(groups, len(batch))
        scorer = as_scorer(self._wanted_scorer(batch), batch)
        _refuse_unused(self._task(groups, None), scorer)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.RandomState(seed)
        if scorer.learns and self.calibration_size == CROSS:
            warn_of_labels(batch, labels, self._level(None))
            trained = trained_on(batch, labels, seed)
            pairs = fit_cross(filters, scorer, batch, labels, groups, rng, _judged)
            for filter, (fitted, part) in zip(filters, pairs, strict=True):
                filter._take_over(self, fitted, seed, values, trained)
                filter._store(part).calibration_.proven = 2.0
            return
        held = batch, labels
        if scorer.learns or self.calibration_size not in (None, CROSS):
            size = self._calibration_size(len(batch))
            count = holdout_count("calibration_size", size, len(batch))
            rest, rows = hold_out(len(batch), count, groups, rng)
            groups = None if groups is None else groups[rest]
            held = pick(batch, labels, rows)
            batch, labels, groups = _judged(*pick(batch, labels, rest), groups)
        else:  # it may look at what calibrates, but not at what is true of it
            labels = np.full_like(labels, -1)
        warn_of_labels(*held, self._level(None))
        trained = trained_on(batch, labels, seed) if scorer.learns else None
        tasks = [filter._task(groups, rng) for filter in filters]
        if scorer.uses_alpha:  # so that each level draws what it would draw alone
            tasks = [replace(task, rng=deepcopy(rng)) for task in tasks]
        with few_threads(batch):
            scorers = scorer.fit_levels(batch, labels, tasks)
        seen = {}  # what calibrates, by scorer: levels that share one are calibrated once
        for filter, fitted in zip(filters, scorers, strict=True):
            filter._take_over(self, fitted, seed, values, trained)
            if id(fitted) not in seen:
                seen[id(fitted)] = filter._part(*held)
            filter._store(seen[id(fitted)])

    def _take_over(self, other, scorer, seed, values, trained):
        """What a fit leaves behind, apart from the calibration."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        self.scorer_, self._seed, self._label_values = scorer, seed, values
        self._trained_on = (trained, self.alpha if scorer.uses_alpha else None)


def _at_level(filter, alpha):
    """A clone for another alpha."""
    other = clone(filter).set_params(alpha=alpha)
    if other.guarantee is not None:
        other.guarantee = other.guarantee.for_level(alpha)
    return other


def _judged(batch, labels, groups):
    """The problems of which some claim was judged; the others have nothing to teach."""
    if (labels >= 0).all():
        return batch, labels, groups
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    judged |= batch.sizes == 0
    if judged.all() or not judged.any():
        return batch, labels, groups
    rows = np.flatnonzero(judged)
    return *pick(batch, labels, rows), None if groups is None else groups[rows]


def _refuse_unused(task, scorer):
    """ValueError for a setting that the scorer would not look at."""
    for name in ("relaxation", "training"):
        setting = getattr(task, name)
        if setting is None:
            continue
        if not scorer.uses_relaxation:
            raise ValueError(
                f"{name} is set, but {scorer!r} is not trained through calibration and "
                f'would ignore it. Leave {name} at None, or choose scorer="auto", '
                '"linear" or a differentiable model such as MLPScorer()'
            )
        setting.validate()
