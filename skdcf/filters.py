"""Filters that keep the claims of an answer whose path risk is below a calibrated threshold.

Read `ConformalFilter.fit` for how a filter is made, and `ConformalFilter._path_risks` and
`ConformalFilter._margin` for how it decides. Labels are 1 (true), 0 (false) or -1 (unjudged). A
problem is one answer to a question, and a question may have several answers.

* The risk of a claim is minus its confidence, which the scorer computes from the columns.
* The path risk of a claim is the largest risk among the claim and its ancestors.
* The nonconformity score of a problem is the smallest path risk among its false claims. It is the
  largest threshold at which no false claim is kept.
* The threshold at alpha is the score of rank floor(alpha (n + 1)) among those of n calibration
  problems, which are slightly lowered to allow for rounding. A claim is kept if its path risk is
  below the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import KW_ONLY, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from . import full, guards, online
from ._arrays import number_groups
from ._checks import Floats, Seed, check_alpha, check_choice, is_number
from ._parameters import (
    HasMethods,
    Settings,
    StrOptions,
    at_least,
    clone_parameters,
    fraction,
    reduced,
    settings,
)
from .columns import read_problems, transformer_for
from .features.columns import (
    apply_columns,
    carry_columns,
    columns_require_fit,
    fit_columns,
)
from .graphs import GraphBatch, Problems
from .guarantees import (
    Calibration,
    Guarantee,
    NoFalseClaim,
    choose_share,
    share_table,
)
from .guards import Record
from .identity import Groups, are_fine, canonical_order, hashes_of
from .jitter import noise_of
from .labels import Labels
from .ops.hard import path_risk, segment_max, segment_sum
from .parts import CalibrationPart, first_claims
from .scorers import (
    FitTask,
    as_scorer,
    confidence_of,
    out_of_fold_confidence,
    scorer_requires_fit,
)
from .training import splitting

Level: TypeAlias = float | None
#: Parameters that define the guarantee. The number of kept true claims can only be compared
#: between filters with the same guarantee.
PROMISED = ("alpha", "guarantee", "edges", "ties")


@contextmanager
def unchanged_on_error(estimator):
    """Restore all attributes of the estimator if an error occurs inside the ``with`` block."""
    state = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = state
        raise


@settings
class ConformalFilter(Settings):
    """Filter that keeps claims whose path risk is below a calibrated threshold.

    `CoherentConformalFilter`, `HardCF` and the presets are subclasses with different defaults.
    The parameters are documented in these subclasses.
    """

    scorer: Any = None
    _: KW_ONLY
    features: Any = "auto"
    alpha: float = 0.1
    edges: Literal["given", "none"] | Callable[..., Any] = "given"
    calibration_size: float | int | Literal["all"] | None = None
    ties: Literal["exclude", "include", "jitter"] = "exclude"
    guarantee: Guarantee | None = None
    online: bool = False
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0

    # Only `CoherentConformalFilter` has these parameters.
    relaxation = training = None

    # `fit` and `clone` replace these values.
    share_ = _labelled = _promised = None
    _record = None  # type: Any

    _parameter_constraints = {
        "features": [None, StrOptions({"auto"}), HasMethods(["fit", "transform"])],
        "edges": [StrOptions({"given", "none"}), callable],
        # "exclude" drops a claim whose path risk equals the threshold. "include" keeps it, as the
        # published code does, but invalidates the guarantee if scores are tied. "jitter" breaks
        # ties with a seeded hash of the problem.
        "ties": [StrOptions({"exclude", "include", "jitter"})],
        "guarantee": [None, Guarantee],
        "calibration_size": [
            None,
            fraction(),
            at_least(0, Integral),
            StrOptions({"all"}),
        ],
        "online": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    __reduce__ = reduced

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "scorer_" in state:
            guards.refuse_incomplete(state["_record"], self.n_features_in_)

    def __sklearn_clone__(self) -> Self:
        cloned = clone_parameters(self)
        # `fit` refuses a guarantee of another type.
        if isinstance(self._resolved_guarantee, Guarantee):
            cloned._promised = cloned._promises()
        return cloned

    def _promises(self):
        """Return the parameters that define the guarantee."""
        return self._settings | {"alpha": self.alpha, "online": None}

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid or would have no effect."""
        check_alpha(self.alpha)
        super().validate()
        if self.guarantee is not None:
            guards.refuse_without_theory(
                self.guarantee, ties=self.ties, online=self.online, edges=self.edges
            )

    # ---------------------------------------------------------------- fit and calibrate

    def fit(self, X: Problems, y: Labels | None = None, groups: Groups = None) -> Self:
        """Fit the columns and the scorer, then calibrate.

        If the columns or the scorer learn, if ``show="auto"``, or if ``calibration_size`` is a
        positive number, the answers to some questions are held out, and the filter is calibrated on
        these answers only. Otherwise, it is calibrated on all problems. With
        ``calibration_size="all"``, all labels are used both for training and for calibration. With
        ``calibration_size=0``, nothing is held out, and the filter is trained but not calibrated.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems. Each row of a 2-D array is a problem with a single claim.
        y : sequence of 1-D arrays, one per problem
            Claim labels (1 true, 0 false, -1 unlabelled). Unlabelled claims count as false in
            calibration and are not used for training. If X is a GraphBatch, y may also be a
            single flat array. If X is an array, y is a 1-D array that contains 0 and 1, booleans,
            words such as "yes" and "no", or any two numbers. If the numbers are not 0 and 1, the
            larger number means true. The pair -1 and 1 is rejected, because -1 could mean either
            false or unknown.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `~skdcf.identity.question_groups`. The
            answers to one question are never split between training and calibration. At most one
            answer to each question is used for calibration. If False, each answer belongs to a
            different question, and copies of an answer count as different answers. If the data
            contain answers several times, the coverage can then be 0.74 instead of 0.90.

        Returns
        -------
        self : object
            The fitted filter.

        Raises
        ------
        ValueError
            If the problems, labels or parameters are invalid, which is checked before the scorer
            is trained. After training, an error is raised if the scores or groups of problems
            depend on other problems, or if more than 5 % of the calibration answers are copies.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            For the reasons that `calibrate` lists.
        """
        self.validate()
        with unchanged_on_error(self):
            self._forget()
            problems = self._read_labelled(X, y, groups, reset=True)
            self._seed = check_random_state(self.random_state).randint(2**31 - 1)
            # Columns that do not need fitting are computed for all problems. Otherwise, the scorer
            # is created later, when the columns have been fitted.
            scorer = None
            if self.features_ is None or not columns_require_fit(self.features_):
                problems, scorer = self._make_columns(problems, problems.unlabelled())
            learns = scorer is None or scorer_requires_fit(scorer)
            if learns and self.calibration_size == "all":
                full.fit(self, problems, scorer)
                return self

            # All problems are used for calibration, unless something learns, a share is chosen or
            # a size is set. After a split, `candidates` are the hashes of all answers that could
            # have been used for training.
            calibration = np.arange(len(problems.batch))
            training = candidates = []
            held = problems
            is_split = learns or self._chooses_share or is_number(self.calibration_size)
            if is_split:
                order, rng = canonical_order(
                    problems.batch, problems.labels, problems.hashes, self._seed
                )
                training, calibration, candidates = self._split(
                    problems, learns, order, rng
                )
                held = problems.take(calibration)
            origin = self._guard_split(problems, held)

            # If the columns or the scorer learn, both are fitted on the training problems only.
            # Otherwise, the scorer is fitted on all problems, without their labels.
            train = problems.take(training) if learns else problems.unlabelled()
            if scorer is None:
                problems, scorer = self._make_columns(problems, train)
                train, held = problems.take(training), problems.take(calibration)
            task = self._task(problems, training, rng) if learns else None
            self.scorer_ = scorer.fit(train.columns, train.labels, task)
            # For each share, count the training answers that would pass, and those that are wrong.
            # This also needs training problems if nothing learns.
            if self._chooses_share:
                train = problems.take(training)
                self.share_table_ = self._count_passing(scorer, train, task)
            self._record = self._remember(problems, training, origin)

            # One answer to each question is used for calibration. Without a split, or if a share
            # is chosen, no more questions are used than the rank needs. Otherwise, all questions
            # that were held out are used.
            if len(calibration):
                fewest = self._chooses_share or not is_split
                left_over = self._calibrate_on(self._part(held), fewest, candidates)
                self.unused_indices_ = np.sort(calibration[left_over])
            return self

    def _forget(self):
        """Remove the fitted attributes and the record of an earlier call of `fit`."""
        for name in [*vars(self)]:
            if name.endswith("_") or name in ("_record", "_labelled"):
                delattr(self, name)

    def _remember(self, problems, training, origin):
        """Return the record of a filter that was trained on the given problems."""
        self._column_names = problems.columns.column_names
        trained = problems.hashes[training].to_store()
        seed = self._seed if self.ties == "jitter" else None
        state = self._settings, seed, trained["content"]
        return Record(
            trained=trained,
            calibrated=problems.hashes[:0].to_store(),
            scorer=guards.fingerprint(self.scorer_, self.features_, state),
            level=self._level() if self.scorer_.uses_alpha else None,
            origin=origin,
            settings=self._settings,
        )

    def _make_columns(self, problems, train):
        """Fit the columns on ``train``, and return the problems with columns and a new scorer."""
        if self.features_ is not None:
            self.features_: Any = fit_columns(self.features_, train.batch, train.labels)
        columns = self._with_columns(problems.batch)
        scorer = as_scorer(self._wanted_scorer(columns), columns)
        scorer.validate()
        return replace(problems, columns=columns), scorer

    def _split(self, problems, learns, order, rng):
        """Return indices of training and held-out problems in order, and hashes of candidates.

        If any answer is judged, candidates for training have a judged claim or no claims. If texts
        name the questions, copies of held-out answers are left out of training.
        """
        question = number_groups(problems.hashes.question[order])
        candidates = order
        held = order[:0]
        if self.calibration_size != 0:
            n_held = self._count_held_out(question, learns)
            rest, out = splitting.hold_out(len(order), n_held, question, rng)
            candidates, held = order[rest], order[out]
        if not (learns or self._chooses_share):
            return [], held, []
        batch = problems.batch
        n_judged = segment_sum(problems.labels >= 0, batch.offsets)[candidates]
        if n_judged.any():
            candidates = candidates[(n_judged > 0) | (batch.sizes[candidates] == 0)]
        hashes = problems.hashes[candidates]
        training = candidates[guards.not_held_out(hashes, problems.hashes[held])]
        if not len(training):
            raise ValueError(
                f"calibration_size={self.calibration_size!r} leaves no answer for training, "
                "because the answers that were not held out equal held-out answers. Pass "
                "groups= with equal values for copies, or groups=False if each answer has its "
                "own question"
            )
        return training, held, hashes.answer

    def _count_held_out(self, question, learns):
        """Return the number of questions to hold out."""
        size = self.calibration_size
        n = int(question.max()) + 1
        if not learns and size in (None, "all"):
            # Only the share is chosen, for which a fifth of the questions is used.
            size = n * 4 // 5
        elif size is None:
            size = self._resolved_guarantee.calibration_count(n, self._level())
        return splitting.holdout_count("calibration_size", size, n)

    def _guard_split(self, problems, held):
        """Check the split before anything is trained, and return how the problems were made."""
        if len(held.batch):
            guards.refuse_chosen_labels(problems.batch)
        guards.warn_of_reversed_edges(problems.batch)
        guards.warn_of_labels_among_columns(problems.batch, problems.labels)
        guards.warn_of_unjudged(held.batch, held.labels)
        origin = self._origin(held.batch, held.labels)
        if held is problems:
            return origin
        # The columns have read all problems, not only those that were held out. `calibrate`
        # replaces this record.
        seen = self._origin(problems.batch)
        return origin | {name: seen[name] for name in ("fields", "counts", "edges")}

    def _task(self, problems, training, rng):
        """Return the settings for fitting a scorer on the training problems."""
        level = self._level()
        # The level of a user's guarantee may be 1 or more. Below 1e-9, training would overflow.
        if level >= 1:
            level = self.alpha
        return FitTask(
            alpha=max(level, 1e-9),
            groups=number_groups(problems.hashes.question[training]),
            rng=rng,
            relaxation=self.relaxation,
            training=self.training,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _count_passing(self, scorer, train, task):
        """Return how many training answers pass and are wrong, for each share that may pass.

        If the scorer learns, it is refitted out of fold, but the columns are not.
        """
        confidence = None
        if scorer_requires_fit(scorer):
            confidence = out_of_fold_confidence(
                scorer, train.columns, train.labels, task
            )
        risks = self._path_risks(train, confidence)
        return share_table(self._resolved_guarantee, risks, train.labels)

    def calibrate(
        self, X: Problems, y: Labels | None = None, groups: Groups = None
    ) -> Self:
        """Recalibrate the filter on other problems, with the same columns and scorer.

        At most one answer per question is used for calibration. Questions that would not increase
        the rank of the threshold at ``alpha`` are left out. The calibration problems are chosen
        by a fixed hash of their content, and the indices of one answer to each question that was
        left out are stored in ``unused_indices_``.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems on which the filter was not trained.
        y : sequence of 1-D arrays, one per problem
            Claim labels, as in `fit`.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `fit`.

        Returns
        -------
        self : object
            The recalibrated filter.

        Raises
        ------
        ValueError
            If a question was used for training, or if more than 5 % of the answers equal training
            answers or each other.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        LabelWarning
            If a language model assigned more than 5 % of the labels, or if the proportion of
            problems without labels is too large for alpha.
        """
        if self._labelled is not None:
            with unchanged_on_error(self):
                full.calibrate(self, X, y, groups)
            return self
        return self.calibrate_parts([self.calibration_part(X, y, groups)])

    def calibration_part(
        self, X: Problems, y: Labels | None, groups: Groups = None
    ) -> CalibrationPart:
        """Return the calibration data of a subset of problems, for use in `calibrate_parts`.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems on which the filter was not trained.
        y : sequence of 1-D arrays, one per problem
            Claim labels, as in `fit`.
        groups : array-like of shape (n_problems,), or False, optional
            Question that each answer belongs to, as in `fit`.

        Returns
        -------
        part : CalibrationPart
            The calibration data, which require about 60 bytes per problem plus its first claim,
            and the hash of the scorer at the end of `fit`. Do not change the fitted scorer
            afterwards.
        """
        check_is_fitted(self, "scorer_")
        full.refuse(self, "calibration_part")
        problems, origin = self._read_calibration(X, y, groups)
        return replace(
            self._part(problems), origin=origin, settings=self._part_settings
        )

    def _read_calibration(self, X, y, groups):
        """Return labelled problems that can be used for calibration, and how they were made."""
        self.validate()
        problems = self._read_labelled(X, y, groups)
        batch = problems.batch
        guards.refuse_chosen_labels(batch)
        guards.refuse_seen("training", self._record.trained, batch, problems.hashes)
        guards.warn_of_unjudged(batch, problems.labels)
        origin = self._origin(batch, problems.labels)
        return replace(problems, columns=self._with_columns(batch)), origin

    def calibrate_parts(self, parts: Iterable[CalibrationPart]) -> Self:
        """Recalibrate the filter on parts that were scored separately, for example in parallel.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            Results of calling `calibration_part` on this filter, or on a copy with the same
            scorer.

        Returns
        -------
        self : object
            The recalibrated filter.

        Raises
        ------
        ValueError
            If there are no parts. A ValueError is also raised if the parts were computed for
            another guarantee, with other settings, or by a filter that was fitted separately.

        Warns
        -----
        CalibrationWarning
            If there are too few calibration problems for ``alpha``.
        """
        check_is_fitted(self, "scorer_")
        self.validate()
        parts = list(parts)
        if not parts:
            raise ValueError(
                "parts must contain at least one part returned by calibration_part, got none"
            )
        for part in parts:
            guards.refuse_changed(part.settings, self._part_settings)
        part = CalibrationPart.join(parts)
        rows = guards.not_trained(self._record, part)
        trained = self._record.trained["answer"]
        with unchanged_on_error(self):
            self._record = replace(
                self._record, origin=part.origin, settings=self._settings
            )
            left_over = self._calibrate_on(part[rows], True, trained)
            self.unused_indices_ = rows[left_over]
            return self

    def _part(self, problems):
        """Score labelled problems for calibration, before one answer to each question is chosen.

        The scores are lowered to allow for rounding errors only after the guards have checked the
        exact values. `_calibrate_on` lowers equal scores further.
        """
        batch = problems.batch
        confidence = self._confidence(problems)
        path = path_risk(self._risk(confidence, batch, steady=True), problems.columns)
        risks = self._resolved_guarantee.path_risks(path, batch)

        guards.warn_of_direction(confidence, problems.labels, batch.problem_of)
        if risks.groups is not None:
            guards.refuse_dependence(self._resolved_guarantee, batch, risks.groups)
        rounding = 0.0
        # If the filter computes no columns and the scores of a problem are bitwise equal in every
        # batch, there is no rounding error to measure.
        if not self.scorer_.batch_invariant or self.features_ is not None:
            rounding = guards.measure_rounding(self._score, batch, confidence)
        resolution = guards.resolution_of(self.scorer_, problems, confidence)
        part = CalibrationPart(
            jumps=self._resolved_guarantee.jumps(path, problems.labels, batch.offsets),
            largest=segment_max(path, batch.offsets),
            lowest=risks.lowest,
            lowered=risks.lowest,
            texts=first_claims(batch),
            hashes=problems.hashes,
            groups=risks.groups,
        )
        # With ties="include", scores are compared without modification, as in the published code.
        if self.ties == "include":
            return part
        return part.lowered_by(guards.lowered, resolution, rounding)

    def _calibrate_on(self, part, fewest, candidates):
        """Calibrate on one answer per question, and return the answers to questions left out.

        ``candidates`` are the hashes of the answers that could have been used for training.
        """
        level = self._level()
        # Copy the guarantee, because the caller may change the original.
        guarantee = deepcopy(self._resolved_guarantee)
        self.share_ = None
        if self._chooses_share:
            if not hasattr(self, "share_table_"):
                raise ValueError('show="auto" requires the training answers. Call fit')
            # The share is chosen for the number of questions in each group. Then the questions are
            # chosen again, because the share determines how many of them the rank needs.
            rows, _ = part.choose(guarantee, level, False)
            counts = np.bincount(part.group_of[rows])
            table = self.share_table_
            self.share_ = choose_share(table, level, guarantee.delta, counts)
            guarantee.show = self.share_
        chosen, left_over = part.choose(guarantee, level, fewest)
        # Monitors compare new answers with one answer to each question, whatever its groups.
        compared = chosen
        if part.groups is not None:
            compared, _ = part.choose(guarantee, level, fewest, in_groups=False)
        self.max_path_risks_ = np.sort(part.largest[compared])
        calibrated = part.hashes[np.append(chosen, compared)].to_store()
        self._record = replace(self._record, calibrated=calibrated)
        part = part[chosen]
        if self.ties != "include":
            part = part.lowered_by(guards.below_copies)
        self.calibration_ = Calibration(guarantee, part)
        self.nonconformity_scores_ = np.sort(part.scores)
        if guarantee.show != 1:
            part = part[self.calibration_.passes(part)]
        guards.check_copies(part, candidates, level)
        guards.warn_of_level(self.calibration_, level)
        return left_over

    # -------------------------------------------------- what the parameters stand for

    def _wanted_scorer(self, batch):
        """Return the value of ``scorer``, which presets compute from their own parameters."""
        return self.scorer

    @property
    def _chooses_share(self):
        """Whether the filter chooses the proportion of answers that may pass."""
        return self._resolved_guarantee.show == "auto"

    @property
    def _resolved_guarantee(self):
        return self.guarantee or NoFalseClaim()

    def _level(self, alpha=None):
        """Return the level, or raise ValueError if the scorer was trained for another level."""
        level = self._resolved_guarantee.level(alpha, self.alpha)
        if alpha is None and self._record and self._record.level not in (None, level):
            raise ValueError(
                f"the scorer was trained for the level {self._record.level:g}, but the filter's "
                f"alpha was changed to {level:g}. Fit again, or pass the level to use this scorer "
                f"anyway, for example predict(X, alpha={level:g}) or --alpha {level:g}"
            )
        return level

    @property
    def _settings(self):
        """Return the settings that must stay unchanged after calibration."""
        guarantee = self._resolved_guarantee
        settings = vars(guarantee) | {"guarantee": type(guarantee).__name__}
        settings |= {name: getattr(self, name) for name in ("edges", "online", "ties")}
        return {name: guards.comparable(value) for name, value in settings.items()}

    @property
    def _part_settings(self):
        return self._settings | {"scorer": self._record.scorer}

    def check_calibrated(self) -> None:
        """Raise NotFittedError if the filter is not fitted, or was fitted without calibration."""
        if not hasattr(self, "calibration_"):
            check_is_fitted(self, "scorer_")
            raise NotFittedError(
                "the filter was fitted with calibration_size=0. Call calibrate(X, y) with "
                "answers that were not used for training"
            )

    # -------------------------------------------------------- from problems to path risks

    def _classes(self):
        """Return the labels that mean false and true, which are False and True for graphs."""
        return getattr(self, "classes_", np.array([False, True]))

    def _read_labelled(self, X, y, groups, *, reset=False):
        """Read labelled problems and hash their questions, without computing columns."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None. Pass the claim labels of each problem as y"
            )
        problems = self._read(X, y, reset)
        hashes = hashes_of(problems.batch, groups, columns_are_fine=self._are_fine)
        return replace(problems, hashes=hashes)

    def _read(self, X, y, reset):
        """Read problems, and attach the columns of ``features`` that require no labels."""
        problems = read_problems(self, X, y, reset=reset)
        if reset:
            self.features_ = transformer_for(self, problems.batch)
            # Whether answers without texts are recognised by their columns.
            self._are_fine = are_fine(problems.batch)
        if self.features_ is None:
            return problems
        batch = carry_columns(self.features_, problems.batch)
        return replace(problems, batch=batch, columns=batch)

    def _look(self, X, y=None, skipped=("label_",)):
        """Check the problems to filter, and return them with their columns."""
        problems = read_problems(self, X, y, reset=False)
        guards.refuse_changed(self._record.settings, self._settings)
        skipped = skipped if y is None else ()
        guards.compare_origin(self._record, self._origin(problems.batch), skipped)
        return replace(problems, columns=self._with_columns(problems.batch))

    def _origin(self, batch, labels=None):
        """Return how problems were made."""
        return guards.origin_of(batch, labels, self.edges, self.features_)

    def _with_columns(self, batch):
        """Return the problems with the columns and edges that the scorer uses."""
        if self.features_ is not None:
            if batch.n_claims or not self._record:
                batch = apply_columns(self.features_, batch)
            else:
                # After fit, tables may have no rows, which scikit-learn's transformers refuse.
                names = self._column_names
                batch = batch.replace_features(np.empty((0, len(names))), names)
        return batch.replace_edges(()) if self.edges == "none" else batch

    def _with_columns_given(self, X):
        """Return a copy of the filter that reads the fitted columns, and the problems with them."""
        batch = self.transform_features(X)
        reader: Any = copy(self)
        reader.features = reader.features_ = None
        reader.n_features_in_ = batch.n_features
        reader.feature_names_in_ = np.array(batch.feature_names, object)
        return reader, batch

    def _confidence(self, problems):
        """Return the confidence in each claim, computed without later claims if online=True."""
        if self.online:
            return self._score(problems.batch)
        return confidence_of(self.scorer_.confidence, problems.columns)

    def _score(self, batch):
        """Compute the columns and confidences of a batch."""

        def score(batch):
            return confidence_of(self.scorer_.confidence, self._with_columns(batch))

        return online.on_prefixes(score, batch) if self.online else score(batch)

    def _risk(self, confidence, batch, steady=False):
        """Return the risk of each claim.

        In calibration (``steady``), risks are not raised for rounding, and noise that rounding
        could change is left out, because there the scores are lowered.
        """
        risk = -confidence
        if not (steady or batch.features is None or self.ties == "include"):
            risk = guards.raised(risk, batch)
        if self.ties == "jitter":
            noise = partial(noise_of, seed=self._seed, steady=steady)
            # In an online filter, later claims must not affect the noise.
            added = online.on_prefixes(noise, batch) if self.online else noise(batch)
            risk = risk + 1e-8 * (1 + np.abs(risk)) * added
        return risk

    def _path_risks(self, problems, confidence=None):
        """Return the path risks, with the groups in which the guarantee holds."""
        if self._labelled is not None:
            return full.path_risks(self, problems)
        if confidence is None:
            confidence = self._confidence(problems)
        risk = path_risk(self._risk(confidence, problems.batch), problems.columns)
        return self._resolved_guarantee.path_risks(risk, problems.batch)

    def transform_features(self, X: Problems) -> GraphBatch:
        """Return the problems with the columns and edges that the scorer uses.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.

        Returns
        -------
        X_new : GraphBatch
            The problems with the columns of ``features``, without edges if ``edges="none"``.
        """
        check_is_fitted(self, "scorer_")
        return self._look(X).columns

    def confidence(self, X: Problems) -> NDArray[Any]:
        """Return the scorer's confidence in each claim, where a higher value means a safer claim.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.

        Returns
        -------
        confidences : ndarray of shape (n_claims,)
            Claim confidences, concatenated over the problems.
        """
        check_is_fitted(self, "scorer_")
        return self._confidence(self._look(X))

    def path_risk(self, X: Problems) -> NDArray[Any]:
        """Return the path risk of each claim, the largest risk among the claim and its ancestors.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.

        Returns
        -------
        path_risks : ndarray of shape (n_problems,)
            Path risks, in the same format as in `predict_alpha`. If ``edges="none"``, the path
            risk of a claim is equal to the risk of the claim.
        """
        check_is_fitted(self, "scorer_")
        problems = self._look(X)
        return problems.shaped(self._path_risks(problems).path_risk)

    # ------------------------------------------------------- from path risks to decisions

    def _risks_of(self, X, y=None):
        """Return the path risks of problems, and the problems."""
        self.check_calibrated()
        problems = self._look(X, y)
        return self._path_risks(problems), problems

    def _margin(self, risks, level):
        """Return the threshold minus the path risk of each claim. Claims above 0 are kept."""
        threshold = self.calibration_.thresholds(risks, level)
        if self.ties == "include":
            above = np.nextafter(threshold, np.inf)
            threshold = np.where(np.isfinite(threshold), above, threshold)
        return np.repeat(threshold, np.diff(risks.offsets)) - risks.path_risk

    def _decide(self, X, *alphas, y=None):
        """Return the problems, and the margin of each claim at each level."""
        self.check_calibrated()
        levels = [self._level(alpha) for alpha in alphas]
        problems = self._look(X, y)
        risks = self._path_risks(problems)
        for level in levels:
            guards.warn_of_level(self.calibration_, level)
        return problems, *(self._margin(risks, level) for level in levels)

    def predict(
        self, X: Problems, alpha: Level | Sequence[Level] = None
    ) -> NDArray[Any]:
        """Predict which claims are kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.
        alpha : float in (0, 1), or sequence of float, optional
            Prediction level or levels. If None, the alpha of the filter is used. Every claim that
            is kept at some alpha is also kept at any larger alpha.

        Returns
        -------
        masks : ndarray of shape (n_problems,) or (n_levels, n_problems)
            An object array that contains one boolean mask per problem. Each mask is True for kept
            claims. If several levels are passed, the array has one row per level. If X is an
            array, the result contains class labels: ``classes_[1]`` for each kept claim and
            ``classes_[0]`` for each dropped claim.

        Warns
        -----
        GuaranteeWarning
            If X contains several answers to the same question. The guarantee applies to one
            answer per question.
        """
        problems, *margins = self._decide(X, *np.atleast_1d(np.array(alpha, object)))
        guards.warn_of_several_answers(
            guards.questions_in(self._record, problems.batch)
        )
        masks = [problems.shaped(margin > 0, as_classes=True) for margin in margins]
        if not masks:
            raise ValueError("alpha must contain at least one level, got []")
        return np.stack(masks) if np.ndim(alpha) else masks[0]  # type: ignore[arg-type]

    def predict_alpha(self, X: Problems) -> NDArray[Any]:
        """Return the smallest alpha at which each claim is kept.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.

        Returns
        -------
        levels : ndarray of shape (n_problems,)
            An object array that contains, for each problem, an array of the claims' levels. If X
            is an array, a float array of levels is returned. ``predict(X, alpha=a)`` is
            equivalent to ``predict_alpha(X) <= a``. If the level of a claim is 1 or more, the claim
            is never kept.
        """
        risks, problems = self._risks_of(X)
        levels = self.calibration_.levels(risks, self.ties == "include")
        return problems.shaped(levels)

    def decision_function(self, X: Problems, alpha: Level = None) -> NDArray[Any]:
        """Return the threshold minus the path risk, which is positive for kept claims.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.

        Returns
        -------
        margins : ndarray of shape (n_problems,)
            The differences, in the same format as in `predict_alpha`, or -inf for claims whose
            threshold is -inf.
        """
        problems, margin = self._decide(X, alpha)
        return problems.shaped(margin)

    def filter(
        self,
        X: Problems,
        alpha: Level = None,
        *,
        output: Literal["graphs", "text"] = "graphs",
    ) -> list[Any]:
        """Return the problems without the dropped claims.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.
        output : {"graphs", "text"}, default="graphs"
            Output format. "text" returns the kept claims of each problem as a string, with one
            claim per line. `skdcf.apps.text.kept_text` restores the layout of the answer.

        Returns
        -------
        problems : list of ReasoningGraph, or list of str
            The filtered problems, with one entry per problem. If none of a problem's claims are
            kept, its entry is empty.

        Raises
        ------
        ValueError
            If ``output="text"`` and the claims do not have texts.
        """
        check_choice("output", output, ("graphs", "text"))
        problems, margin = self._decide(X, alpha)
        batch = problems.batch
        guards.warn_of_several_answers(guards.questions_in(self._record, batch))
        masks = batch.split(margin > 0)
        kept = [graph.subgraph(mask) for graph, mask in zip(batch, masks, strict=True)]
        if output == "graphs":
            return kept
        if batch.claims is None and batch.n_claims:
            raise ValueError(
                "the claims must have texts for output='text', but they have none. Pass claims= "
                "to the graphs"
            )
        return ["\n".join(graph.claims or ()) for graph in kept]

    def score(self, X: Problems, y: Labels, alpha: Level = None) -> float:
        """Return the retention, which is the mean number of true claims kept per problem.

        Retentions are comparable only between filters with the same guarantee. A larger
        ``alpha``, ``ties="include"`` and ``edges="none"`` all increase the retention, but weaken
        the guarantee. A search over one of these parameters would therefore select the weakest
        guarantee. `skdcf.evaluation.CalibratedSearch` rejects such a search.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            The problems.
        y : sequence of 1-D arrays, one per problem
            Claim labels, as in `fit`. Unlabelled claims and claims marked as not stating a fact
            are not counted.
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.

        Returns
        -------
        retention : float
            Mean number of true claims kept per problem.

        Warns
        -----
        GuaranteeWarning
            If ``alpha``, ``guarantee``, ``ties`` or ``edges`` was set after the filter was cloned,
            as in a search over this parameter.
        """
        problems, margin = self._decide(X, alpha, y=y)
        guards.warn_of_search(self._promised not in (None, self._promises()))
        is_kept = (problems.labels == 1) & (margin > 0)
        return float(is_kept.sum() / len(problems.batch))

    def stream(
        self,
        claims: Iterable[dict[Any, Any]],
        alpha: Level = None,
        *,
        stop: bool = False,
        **about: Any,
    ) -> Iterator[bool]:
        """Decide whether to keep each claim of an answer before the next claim is read.

        Parameters
        ----------
        claims : iterable of dict
            The claims. Each claim is a dict with the keys ``text``, ``parents`` (indices of
            earlier claims) and ``features`` (the values that the filter uses).
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.
        stop : bool, default=False
            Whether to end after the first claim that is not kept, as an agent does.
        **about
            Data known before the answer is written, passed as the arguments ``problem``,
            ``context``, ``alternatives``, ``feature_names``, ``id``, ``provenance`` and
            ``metadata`` of `~skdcf.ReasoningGraph`.

        Returns
        -------
        decisions : iterator of bool
            Whether each claim is kept. The decisions are identical to those of `predict` for the
            complete answer.

        Raises
        ------
        ValueError
            If the filter was not fitted with ``online=True``, if a claim comes before one of its
            parents, or if `predict` would raise an error for the claims so far. For example, the
            columns of the first claims may contain only float16 numbers by chance.
        """
        self.check_calibrated()
        if not self.online:
            raise ValueError(
                "online must be True to decide while an answer is written, got False: fit with "
                "online=True (skdcf fit --online), so that risks depend only on earlier claims"
            )
        return online.decisions(self, claims, alpha, stop, about)

    # ------------------------------------------------------------ what the filter states

    def describe(self, alpha: Level = None) -> str:
        """Describe the guarantee, the source of the labels and the error rate among shown texts.

        Parameters
        ----------
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.

        Returns
        -------
        description : str
            The description. In the guarantee, an answer without kept claims counts as a success,
            so the proportion of shown texts with a false claim may exceed alpha. The second
            sentence of the description states the proportion of shown texts with a false claim.

        Examples
        --------
        >>> from skdcf import HardCF
        >>> from skdcf.datasets import make_reasoning_graphs
        >>> graphs, y = make_reasoning_graphs(100, random_state=0, return_X_y=True)
        >>> HardCF(0).fit(graphs, y).describe(0.2)
        'with a probability of at least 0.8, no false claim is kept, for new answers...'
        """
        level = self._level_now(alpha)
        sentence = self.calibration_.describe(level)
        origin = self._record.origin
        if origin["provenance"].get("label_meaning") == ["supported"]:
            sentence += ". A false claim is a claim that is unsupported by its context"
        share = max(origin["judges"].get("share", [0]))
        if share > 0:
            judges = ", ".join(origin["judges"]["names"])
            sentence += f". The judge {judges} assigned {share:.0%} of the labels"
        if self.calibration_.keeps_nothing(level):
            return sentence
        return f"{sentence}. {self.calibration_.describe_shown(level)}"

    def _level_now(self, alpha=None):
        """Return the level, or raise an error if the filter is not calibrated or was changed."""
        self.check_calibrated()
        guards.refuse_changed(self._record.settings, self._settings)
        return self._level(alpha)

    @property
    def threshold_(self) -> float:
        """Threshold at ``alpha``, or NaN if the threshold differs between problems."""
        full.refuse(self, "threshold_")
        return self.calibration_.threshold(self._level_now())

    def threshold(self, alpha: Level = None) -> float:
        """Return the conformal threshold. Claims with a smaller path risk are kept.

        If ``show`` of the guarantee is less than 1, claims are kept only in answers that pass.

        Parameters
        ----------
        alpha : float in (0, 1), optional
            If None, the alpha of the filter is used.

        Returns
        -------
        threshold : float
            The threshold. For the default ``guarantee``, the threshold is the floor(alpha (n +
            1))-th smallest nonconformity score among the n calibration problems. If the rank
            floor(alpha (n + 1)) is 0, the threshold is -inf and no claims are kept. If the number
            of calibration problems with a false claim is smaller than the rank, the threshold is
            +inf and all claims are kept.

        Raises
        ------
        ValueError
            If ``guarantee`` computes a separate threshold for each problem.

        Warns
        -----
        CalibrationWarning
            If the rank of the threshold is 0.
        ParameterWarning
            If alpha is greater than 0.5.
        """
        full.refuse(self, "threshold")
        level = self._level_now(alpha)
        guards.warn_of_level(self.calibration_, level)
        threshold = self.calibration_.threshold(level)
        if np.isnan(threshold):
            raise ValueError(
                "the filter must have a single threshold for all problems, but "
                f"guarantee={self.guarantee!r} computes one threshold per problem. Use "
                "decision_function or predict instead"
            )
        return threshold

    @property
    def n_calibration_(self) -> int:
        """Number of calibration problems, one for each question."""
        return self.calibration_.n if hasattr(self, "calibration_") else 0

    @property
    def provenance_(self) -> dict[str, list[Any]]:
        """Values of each provenance key in the calibration problems."""
        return self._record.origin["provenance"]

    @property
    def coef_(self) -> Floats:
        """Coefficients of a linear scorer for the original columns."""
        check_is_fitted(self, "scorer_")
        return self.scorer_.coef_

    @property
    def loss_curve_(self) -> list[float]:
        """Training objective per iteration."""
        check_is_fitted(self, "scorer_")
        return self.scorer_.loss_curve_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator
        tags.target_tags.required = True
        # The estimator type is not "classifier", because the classifier checks use the labels
        # {-1, 1}.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
