"""How a filter is fitted: check, columns, split, scorer, calibration.

Filters that differ in their level alone are fitted together, and share what does not
depend on it. `fit_together` goes through the steps, and makes a `_Fit`, which holds what
they need to know of the problems.

Columns that learn wait for the split, so that they see training problems alone. All others
are computed before it, since whether problems are held out, and how many, may depend on the
scorer, which the columns decide.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._checks import warn
from ..exceptions import GuaranteeWarning, LabelWarning
from ..features.columns import columns_require_fit, fit_columns
from ..graphs.hashes import Hashes
from ..graphs.problems import hashes_of
from ..graphs.sources import read_sources
from ..guards import refuse_known_questions, warn_of_labels_among_columns
from ..scorers import FitTask, Scorer
from ..scorers.resolve import as_scorer, scorer_requires_fit
from ..training.splitting import hold_out, holdout_count, number_groups
from ._online import refuse_whole_answers
from ._origin import (
    compare_provenance,
    note_judges,
    provenance_of,
)
from ._people import divide, judged_by_people, without_verdicts_of_models
from ._validation import View, admit, flat_labels

# What ``metadata["sampling"]`` says where a filter chose what was judged.
NOT_BLIND = ("review", "audit")


@dataclass
class _Fit:
    """The problems of a fit, and what is to be done with them.

    All positions but ``places`` are among the problems of this fit.

    Attributes
    ----------
    view : View
        The problems, their labels, and the columns where these do not learn.
    hashes : Hashes
        They identify the problems and their questions.
    places : ndarray of int
        Positions of these problems among those that the caller passed.
    scorer : unfitted Scorer or None
        None where it cannot be told before the columns are learnt.
    learning : bool
        Whether columns or scorer learn, so that problems are held out for calibration.
    people : ndarray of bool, shape (n_problems,), or None
        The problems that people judged, which calibrate, where a model judged others.
    reviewed : ndarray of bool, shape (n_problems,), or None
        The problems of a review or an audit, which train and never calibrate.
    """

    view: View
    hashes: Hashes
    places: NDArray[np.int64]
    scorer: Scorer | None = None
    learning: bool = True
    people: NDArray[np.bool_] | None = None
    reviewed: NDArray[np.bool_] | None = None

    @cached_property
    def question_number(self) -> NDArray[np.int64]:
        """The number of the question of each problem."""
        question = self.hashes.question
        all_alone = (question < 0).all()
        return np.arange(len(question)) if all_alone else number_groups(question)

    @cached_property
    def blind_rows(self) -> NDArray[np.int64]:
        """Positions of the problems that may calibrate."""
        if self.reviewed is None:
            return np.arange(len(self.places))
        return np.flatnonzero(~self.reviewed)

    def question_number_of(self, rows):
        """The number of the question of some problems, without gaps."""
        if len(rows) == len(self.places):
            return self.question_number
        return number_groups(self.question_number[rows])

    def task(self, filter, rows, rng):
        """The task of a scorer for the problems in some rows."""
        no_groups = len(self.question_number) == self.question_number.max() + 1
        level = level_in_force(filter)
        # An expected number of false claims may be 1 or more, for which nothing can train.
        alpha = level if level < 1 else filter.alpha
        return FitTask(
            # Smaller levels could only overflow in training.
            alpha=max(alpha, 1e-9),
            groups=None if no_groups else self.question_number[rows],
            rng=rng,
            relaxation=filter.relaxation,
            training=filter.training,
            verbose=filter.verbose,
        )


def fit_together(filters, X, y, groups):
    """Fit filters that differ in their level alone.

    Those that hold out the same number of questions share the split, and as much of the
    training as does not depend on the level.
    """
    # The door leaves what it learns on the first filter; `_take_over` gives it to the others.
    first = filters[0]
    first.validate()
    batch, is_table = admit(first, X, reset=True)
    vars(first).pop("classes_", None)
    labels, classes = flat_labels(y, batch, is_table)
    if classes is not None:
        first.classes_ = classes
    vars(first).pop("provenance_", None)
    compare_provenance(first, provenance_of(first, batch, labelled=True), new=True)
    first._seed = int(check_random_state(first.random_state).randint(2**31 - 1))

    hashes = hashes_of(batch, groups)
    places, reviewed = rows_that_count(batch, labels, to_train=True)
    view = View(passed=batch, scored=batch, is_table=is_table, labels=labels)
    if len(places) < len(hashes.question):
        view = view.take(places)
        hashes = hashes[places]

    # Verdicts of a model among labels of people train, and do not calibrate.
    people = None
    if batch.metadata is not None:
        people = judged_by_people(view.passed)
    if people is not None:
        _refuse_size(first, people)
        assert view.labels is not None
        labels = without_verdicts_of_models(view.labels, view.passed, people)
        view = replace(view, labels=labels)
    fit = _Fit(view=view, hashes=hashes, places=places, people=people)
    if reviewed.any():
        fit.reviewed = reviewed
    # Columns that learn, and with them the scorer, wait for the split.
    if first.features is None or not columns_require_fit(first.features):
        _fit_columns(first, fit, _unlabelled(fit.view))
        fit.learning = fit.scorer is None or scorer_requires_fit(fit.scorer)
    _warn_of_no_errors(fit)
    warn_of_labels_among_columns(fit.view.passed, fit.view.labels)
    for filters_of_split in _share_split(filters, fit):
        _take_over(filters_of_split, first)
        _fit_split(filters_of_split, fit)


def level_in_force(filter):
    """The level that a filter calibrates at: its alpha, or the bound of its guarantee."""
    if filter.guarantee is None:
        return filter.alpha
    return filter.guarantee.level(None, filter.alpha)


def _unlabelled(view):
    """The problems as what learns nothing sees them: no label is known."""
    return replace(view, labels=np.full_like(view.labels, -1))


def _refuse_size(filter, people):
    """ValueError where a size is asked for, and who judged decides what calibrates."""
    if filter.calibration_size is not None:
        raise ValueError(
            f"people judged {int(people.sum())} of these answers and a model others: all of "
            "people's calibrate, and the model's train, so that no number of them can be "
            "held out. Leave calibration_size out of the filter. CalibratedSearch and "
            "compare_filters hold out answers themselves: pass them the answers that people "
            "judged, or those that the model judged"
        )


def _warn_of_no_errors(fit):
    n_true = int(np.sum(fit.view.labels == 1))
    if fit.learning and n_true and not (fit.view.labels == 0).any():
        warn(
            f"none of the {n_true} judged claims is labelled false, so that they tell "
            "nothing of how errors look. See that 1 stands for true and 0 for false",
            LabelWarning,
        )


def _share_split(filters, fit):
    """Lists of filters that hold out the same number of questions."""
    if not fit.learning or fit.people is not None:
        return [filters]
    together: dict[int, list[Any]] = {}
    for filter in filters:
        n_held = _n_held(filter, fit.question_number_of(fit.blind_rows))
        together.setdefault(n_held, []).append(filter)
    return list(together.values())


def _n_held(filter, question_number):
    """How many questions a filter holds out for calibration."""
    n_questions = int(question_number.max()) + 1
    if n_questions == 1 and len(question_number) > 1:
        raise ValueError("all problems are in one group: nothing can be held out")
    size = filter.calibration_size
    if size is None:
        size = filter._resolved().calibration_count(n_questions, level_in_force(filter))
    return holdout_count("calibration_size", size, n_questions)


def _take_over(filters, first):
    """Copy what all levels share from the first filter to the others."""
    of_door = ("n_features_in_", "feature_names_in_", "classes_", "_seed")
    names = (*of_door, "features_", "_columns_out")
    shared = {name: vars(first)[name] for name in names if name in vars(first)}
    for filter in filters:
        vars(filter).update(shared)
        filter.provenance_ = dict(first.provenance_)


def _fit_columns(filter, fit, train):
    """Learn the columns from some problems, compute them for all, and make the scorer.

    Changes ``fit``: its view holds the columns then, and its scorer is known.
    """
    filter.features_ = None
    if filter.features is not None:
        filter.features_ = fit_columns(filter.features, train.passed, train.labels)
    batch = fit.view.scored = filter._scored(fit.view.passed)
    filter._columns_out = batch.feature_names
    if batch.feature_names is None:
        filter._columns_out = tuple(f"x{i}" for i in range(batch.n_features or 0))
    fit.scorer = as_scorer(filter._wanted_scorer(batch), batch)
    _refuse_unused(filter, fit.scorer)
    refuse_known_questions(fit.scorer, fit.view.passed, fit.hashes)


def _fit_split(filters, fit):
    """Train on some problems and calibrate on others, or on all where nothing learns."""
    first = filters[0]  # of the filters that share this split
    rng = np.random.RandomState(first._seed)

    split = fit.learning or first.calibration_size is not None or fit.people is not None
    training_rows, calibration_rows = _divide(first, fit, rng, split=split)

    # What learns sees judged problems, with their labels.
    if fit.learning:
        training_rows = _judged(fit.view, training_rows)
        if columns_require_fit(first.features):
            _fit_columns(first, fit, fit.view.take(training_rows))
            _take_over(filters, first)
        _look_for_copies(fit, training_rows, calibration_rows)
        train = fit.view.take(training_rows)
        trained = fit.hashes[training_rows]
    else:
        # A scorer that learns nothing may look at these problems, which calibrate where
        # nothing was split off, but at no label. None of them counts as trained on.
        train = _unlabelled(fit.view.take(training_rows))
        trained = Hashes.unknown(0)
    hashes_of_trained = trained.kept()

    # After the columns, which may have been learnt just now.
    calibration_view = fit.view
    calibration_hashes = fit.hashes
    if len(calibration_rows) < len(fit.places):
        calibration_view = fit.view.take(calibration_rows)
        calibration_hashes = fit.hashes[calibration_rows]
    warn_of_labels(filters, calibration_view)

    # A scorer that uses no alpha is fitted once, by the first task. With one that does, each
    # level draws the random numbers that it would draw alone.
    tasks = [fit.task(filter, training_rows, rng) for filter in filters]
    if fit.scorer.uses_alpha:
        tasks = [replace(task, rng=deepcopy(rng)) for task in tasks]
    scorers = fit.scorer.fit_levels(train.scored, train.labels, tasks)

    # Levels that share a scorer are scored once: guarantees of two levels differ in their
    # level alone, which no score depends on.
    parts: dict[int, Any] = {}
    for filter, scorer in zip(filters, scorers, strict=True):
        filter._take_scorer(scorer, hashes_of_trained)
        if id(scorer) not in parts:
            parts[id(scorer)] = filter._part(
                calibration_view, calibration_hashes, fit.places[calibration_rows]
            )
        # Of what is held out no question is left over: their number suits the rank, was
        # asked for, or is that of the answers that people judged.
        filter._store(parts[id(scorer)], fewest=not split)


def _divide(filter, fit, rng, *, split):
    """Positions of the problems that train, and of those that calibrate, all drawn blindly.

    Questions are split, and all answers to one are on the same side. What was reviewed
    trains, unless its question calibrates. Where nothing is split off, all are on both sides.
    """
    if fit.reviewed is not None and not fit.learning:
        warn(
            f"{int(fit.reviewed.sum())} of these answers are those of a review or an audit, "
            "which do not calibrate, and nothing here learns from them: they are left out",
            LabelWarning,
        )
    if fit.people is not None:
        return divide(fit.people, fit.question_number, fit.learning)
    blind = fit.blind_rows
    if not split:
        return np.arange(len(fit.places)), blind
    question = fit.question_number_of(blind)
    rest, held = hold_out(len(blind), _n_held(filter, question), question, rng)
    if fit.reviewed is None:
        return rest, held
    calibrates = np.isin(fit.question_number, fit.question_number[blind[held]])
    trains = fit.reviewed & ~calibrates
    trains[blind[rest]] = True
    return np.flatnonzero(trains), blind[held]


def _look_for_copies(fit, training_rows, calibration_rows):
    """Notice exact copies on both sides that no question tells to be the same answer or not.

    ValueError where answers are likely to stand there twice, as a model and a person judged
    them or as they were reviewed; else a warning, if they are texts. To leave copies out of
    training is no way out: where they are other answers, what calibrates would be rarer
    than what is to come, and a scorer that trusts what is usual would keep too much.
    """
    batch = fit.view.passed
    content = fit.hashes.content
    hashes = fit.hashes[calibration_rows]
    is_empty = batch.sizes[calibration_rows] == 0
    unknown = (hashes.question < 0) & ~hashes.alone & ~hashes.asked & ~is_empty
    judged_twice = training_rows
    if fit.reviewed is not None:
        judged_twice = training_rows[fit.reviewed[training_rows]]
    if fit.people is not None or fit.reviewed is not None:
        n_copies = int(np.sum(unknown & np.isin(hashes.content, content[judged_twice])))
        if n_copies:
            raise ValueError(
                f"{n_copies} of {len(calibration_rows)} answers that calibrate are exact "
                "copies of answers that train, and have no question: judged twice, an answer "
                "cannot do both. Give each answer its question, or a group: the same for "
                "copies, and others for different answers"
            )
    n_copies = int(np.sum(unknown & np.isin(hashes.content, content[training_rows])))
    if n_copies and batch.claims is not None:
        warn(
            f"{n_copies} of {len(calibration_rows)} answers that calibrate are exact copies of "
            "answers that train, and have no question: if they are the same ones, the promise "
            "does not hold. Leave copies out, or pass groups, which are the same for copies",
            GuaranteeWarning,
        )


def _judged(view, rows):
    """The rows of problems with a judged claim, as others teach nothing, and of empty ones.

    All rows where nothing was judged.
    """
    train = view.take(rows)
    judged = judged_problems(train.passed, train.labels)
    empty = train.passed.sizes == 0
    if not judged.any() or (judged | empty).all():
        return rows
    return rows[judged | empty]


def refuse_without_theory(filter):
    """ValueError for settings with which a filter could promise nothing."""
    guarantee = filter.guarantee
    if guarantee is None:
        return
    guarantee.validate()
    if filter.online:
        refuse_whole_answers(guarantee, filter.edges)
    if filter.ties == "include":
        raise ValueError(
            f'ties="include" makes guarantee={guarantee!r} an empty promise where '
            'scores are tied: leave it at None, or choose ties="exclude" or "jitter"'
        )


def at_level(filter, alpha, copier=clone):
    """A clone, or what ``copier`` makes, for another alpha."""
    copied = copier(filter)
    copied.alpha = alpha
    if copied.guarantee is not None:
        copied.guarantee = copied.guarantee.for_level(alpha)
    return copied


def _refuse_unused(filter, scorer):
    """ValueError for a setting that the scorer would not look at."""
    for name in ("relaxation", "training"):
        setting = getattr(filter, name)
        if setting is None:
            continue
        if not scorer.uses_relaxation:
            raise ValueError(
                f"{name} is set, but {scorer!r} would ignore it. Leave {name} at None, or "
                'choose scorer="auto", "linear" or a model such as MLPModel()'
            )
        setting.validate()


def judged_problems(batch, labels):
    """Whether any claim of each problem was judged.

    Unsure counts as judged where the metadata say that a person looked at the claim: leaving
    hard claims out would make the error rate look too low.
    """
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    if batch.metadata is None:
        return judged
    for i in np.flatnonzero(~judged):
        sources = read_sources(batch.metadata[i], int(batch.sizes[i]))
        judged[i] = any(row and row["kind"] == "human" for row in sources)
    return judged


def rows_that_count(batch, labels, *, to_train=False):
    """Problems that count: all, or only the judged ones where these were drawn at random.

    The others say nothing then, and would count as false. Nor does an answer without claims
    count, unless judging in random order had come to it: beside few judged answers, all
    the empty ones would pass for answers without errors. With ``to_train`` those of a review
    count, too, and a mask says which they are.
    """
    sizes = batch.sizes
    rows = np.arange(len(sizes))
    if batch.metadata is None:
        return rows, np.zeros(len(sizes), dtype=bool)
    drawn = np.empty(len(sizes), dtype=object)
    drawn[:] = [(row or {}).get("sampling") for row in batch.metadata]
    reviewed = np.isin(drawn, NOT_BLIND)
    if reviewed.any() and (reviewed.all() or not to_train):
        raise ValueError(
            f"{int(reviewed.sum())} problems, {batch.name_of(int(np.argmax(reviewed)))} "
            "first, have the verdicts of a review or an audit, in which a filter chose what "
            "is asked about. What calibrates has to be drawn blindly: leave them out, or fit "
            "on them together with answers that were drawn so, so that they train"
        )
    judged = judged_problems(batch, labels) & ~reviewed
    has_claims = (sizes > 0) & ~reviewed
    partly_judged = judged.any() and not judged[has_claims].all()
    if partly_judged and (drawn[judged] == "random").all():
        reached = (sizes == 0) & (drawn == "reached")
        rows = rows[judged | reached | reviewed]
    return rows, reviewed[rows]


def warn_of_labels(filters, view):
    """Warn of labels that calibrate and are a model's, or missing in whole problems.

    Who judged becomes part of the origin of each filter.
    """
    batch = view.passed
    labels = view.labels
    note_judges(filters, batch, labels)
    if len(labels) == 0 or labels.min() >= 0:
        return
    level = min(level_in_force(filter) for filter in filters)
    n_judged_claims = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_unjudged = int(np.sum((n_judged_claims == 0) & (batch.sizes > 0)))
    if n_unjudged > level * (len(batch) + 1):
        warn(
            f"in {n_unjudged} of {len(batch)} calibration problems no claim was judged true "
            "or false. All their claims count as false, so that far less may be kept than "
            "the scores deserve. If the problems to label were drawn at random, leave out "
            "those that nobody has looked at",
            LabelWarning,
        )
