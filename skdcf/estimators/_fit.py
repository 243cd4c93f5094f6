"""How a filter is fitted: check, split, columns, scorer, calibrate."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from .._checks import warn
from ..exceptions import LabelWarning
from ..features.columns import fit_columns, learns
from ..graphs.problems import question_hashes
from ..graphs.sources import read_sources
from ..scorers import PublicPrior
from ..scorers.making import Scorer, Task, as_scorer
from ..training.preparing import hold_out, holdout_count, number_groups
from ._door import View, admit, compare_origin, flat_labels, origin_of
from ._online import refuse_whole_answers
from ._parts import Seen, note_judges

SMALL = 200_000  # claims times features: below, threads only get in each other's way


@dataclass
class _Fit:
    """The parts of a fit that filters share which differ in their level alone.

    Attributes
    ----------
    view : View
        The problems, their labels, and the columns where these do not learn.
    seen : Seen
    rows : ndarray of int
        Positions of these problems among those that the caller passed.
    scorer : unfitted Scorer or None
        None where it cannot be told before the columns are learnt.
    """

    view: View
    seen: Seen
    rows: NDArray[np.int64]
    scorer: Scorer | None = None
    learning: bool = True

    @cached_property
    def code(self):
        """The number of the question of each problem."""
        question = self.seen.question
        alone = (question < 0).all()
        return np.arange(len(question)) if alone else number_groups(question)

    @cached_property
    def questions(self):
        """Hashes of the texts of the questions."""
        return question_hashes(self.view.passed)

    def task(self, filter, rows, rng):
        """The task of a scorer for the problems in some rows."""
        least = max(filter.alpha, 1e-9)  # below, training could only overflow
        alone = len(self.code) == self.code.max() + 1
        groups = None if alone else self.code[rows]
        settings = filter.relaxation, filter.training, filter.verbose
        return Task(least, groups, rng, *settings, self.questions)


def fit_together(filters, X, y, groups, accept_origin):
    """Fit filters that differ in their level alone.

    Those that hold out the same number of questions share the split, and as much of the
    training as does not depend on the level.
    """
    first = filters[0]
    for filter in filters:
        filter.validate()
    batch, is_table = admit(first, X, reset=True)
    if is_table:
        _refuse_learning_steps(first)
    labels, first._label_values = flat_labels(y, batch, is_table)
    vars(first).pop("origin_", None)
    compare_origin(first, origin_of(first, batch, True), accept_origin, new=True)
    first._seed = int(check_random_state(first.random_state).randint(2**31 - 1))
    seen = Seen.of(batch, groups)
    rows = rows_that_count(batch, labels)
    fit = _Fit(View(batch, batch, is_table, labels).take(rows), seen[rows], rows)
    with few_threads(batch):
        if first.features is None or not learns(first.features):
            _fit_columns(first, fit, fit.view)
            fit.learning = fit.scorer.does_learn()
        trusting = fit.learning or isinstance(fit.scorer, PublicPrior)
        if trusting and len(labels) and labels.min() == 1:
            warn(
                f"none of the {len(labels)} claims is labelled false, so that every claim of "
                "new answers may be kept. See that 1 stands for true and 0 for false",
                LabelWarning,
            )
        for several, own in _share_split(filters, fit):
            _take_over(several, first)
            _fit_split(several, own)


def _share_split(filters, fit):
    """Filters by the number of questions that they hold out, and how they are fitted."""
    if not fit.learning:
        return [(filters, fit)]
    together: dict[tuple, tuple] = {}
    for filter in filters:
        held = _n_held(filter, fit.code)
        own = _untrained(filter, fit, held)
        together.setdefault((held, id(own)), ([], own))[0].append(filter)
    return list(together.values())


def _untrained(filter, fit, held):
    """A fit that trains nothing, where labels allow no training; else the same fit."""
    needed = filter._resolved().problems_needed(filter.alpha)
    few = filter.calibration_size is None and held < needed <= fit.code.max() + 1
    scorer = fit.scorer if few else None
    scorer = scorer and scorer.without_training(fit.view.seen, filter.alpha)
    return replace(fit, scorer=scorer, learning=False) if scorer else fit


def _n_held(filter, code):
    """How many questions a filter holds out for calibration."""
    n = int(code.max()) + 1
    size = filter.calibration_size
    if n == 1 < len(code):
        raise ValueError("all problems are in one group: nothing can be held out")
    if size is None:
        size = filter._resolved().calibration_count(n, filter.alpha)
    return holdout_count("calibration_size", size, n)


def _take_over(filters, first):
    """Give the other filters what the door has left on the first one."""
    names = "n_features_in_", "feature_names_in_", "_label_values", "origin_", "_seed"
    names += "features_", "_columns_out"
    left = {name: vars(first)[name] for name in names if name in vars(first)}
    for filter in filters:
        vars(filter).update(left)


def _fit_columns(filter, fit, train):
    """Learn the columns from some problems, compute them for all, resolve the scorer."""
    filter.features_ = None
    if filter.features is not None:
        filter.features_ = fit_columns(filter.features, train.passed, train.labels)
    fit.view.seen = filter._seen(fit.view.passed)
    fit.scorer = as_scorer(filter._wanted_scorer(fit.view.seen), fit.view.seen)
    numbered = (f"x{i}" for i in range(fit.view.seen.n_features or 0))
    filter._columns_out = fit.view.seen.feature_names or tuple(numbered)
    _refuse_unused(filter, fit.scorer)


def _fit_split(filters, fit):
    """Train on some problems and calibrate on others, or on all where nothing learns."""
    first = filters[0]
    rng = np.random.RandomState(filters[0]._seed)
    rest = rows = np.arange(len(fit.rows))
    sized = first.calibration_size is not None
    if fit.learning or sized:
        code = fit.code
        rest, rows = hold_out(len(code), _n_held(first, code), code, rng)
    if fit.learning:
        rest, train = _judged(fit.view, rest)
        if learns(first.features):
            _fit_columns(first, fit, train)
            _take_over(filters, first)
        train = fit.view.take(rest)
        trained = fit.seen[rest]
    else:  # it may look at what calibrates, but not at what is true of it
        train = fit.view.take(rest)
        trained = Seen.alone(0)
        train = replace(train, labels=np.full_like(train.labels, -1))
    held = fit.view.take(rows)
    warn_of_labels(first, held)
    tasks = [fit.task(filter, rest, rng) for filter in filters]
    if fit.scorer.uses_alpha:  # so that each level draws what it would draw alone
        tasks = [replace(task, rng=deepcopy(rng)) for task in tasks]
    scorers = fit.scorer.fit_levels(train.seen, train.labels, tasks)
    parts: dict[int, Any] = {}  # by scorer: levels that share one are scored once
    for filter, scorer in zip(filters, scorers, strict=True):
        filter._take_scorer(scorer, trained)
        if id(scorer) not in parts:
            parts[id(scorer)] = filter._part(held, fit.seen[rows])
        filter._store(parts[id(scorer)], fewest=not (fit.learning or sized))
        if isinstance(scorer, PublicPrior):
            calibrating = np.delete(rows, filter.left_over_)
            apart = np.setdiff1d(np.arange(len(fit.rows)), calibrating)
            scorer.warn_of(fit.view.take(apart).seen, fit.questions)
        filter.left_over_ = fit.rows[rows[filter.left_over_]]


def _judged(view, rows):
    """The problems of which some claim was judged; the others have nothing to teach."""
    train = view.take(rows)
    judged = judged_problems(train.passed, train.labels)
    if judged.all() or not judged.any():
        return rows, train
    return rows[judged], view.take(rows[judged])


def refuse_without_theory(filter):
    """ValueError where nothing is known that a filter with these settings could promise."""
    guarantee = filter.guarantee
    if guarantee is not None:
        guarantee.validate()
        if filter.online:
            refuse_whole_answers(guarantee)
        if filter.ties == "include":
            raise ValueError(
                f'ties="include" makes guarantee={guarantee!r} an empty promise where '
                'scores are tied: leave it at None, or choose ties="exclude" or "jitter"'
            )


def at_level(filter, alpha, made=clone):
    """A clone, or what ``made`` makes, for another alpha."""
    other = made(filter).set_params(alpha=alpha)
    if other.guarantee is not None:
        other.guarantee = other.guarantee.for_level(alpha)
    return other


def _refuse_unused(filter, scorer):
    """ValueError for a setting that the scorer would not look at."""
    for name in ("relaxation", "training"):
        setting = getattr(filter, name)
        if setting is None:
            continue
        if not scorer.uses_relaxation:
            raise ValueError(
                f"{name} is set, but {scorer!r} would ignore it. Leave {name} at None, or "
                'choose scorer="auto", "linear" or a model such as MLPScorer()'
            )
        setting.validate()


def _refuse_learning_steps(filter):
    """ValueError where a Pipeline has fitted a transformer to what is to calibrate.

    A table does not tell what made it; the Pipeline that calls `fit` does.
    """
    frame = sys._getframe(1)
    while frame is not None:
        pipeline = frame.f_locals.get("self")
        if isinstance(pipeline, Pipeline) and pipeline.steps[-1][1] is filter:
            for name, step in pipeline.steps[:-1]:
                if learns(step):
                    raise ValueError(
                        f"the step {name!r} of the Pipeline, {step!r}, learns from the "
                        "problems that calibrate, which voids the guarantee. Pass it as "
                        f"{type(filter).__name__}(features=...), fitted to training problems only"
                    )
        frame = frame.f_back


_lock = Lock()
_limited: list = []  # an entry per fit under way: the limit that the first has set


@contextmanager
def few_threads(batch):
    """One thread for small problems, and all of them for large ones, while a filter is fitted.

    Boosted trees and small products wake a team of threads for each of thousands of tiny
    steps. Where another process has a core, every step waits for the slowest thread: a
    fit of half a second was seen to take half a minute. The limit of BLAS is one for the
    whole process: the first fit under way sets it, and the last one takes it back. That of
    OpenMP is one for each thread.
    """
    if max(batch.n_claims, np.size(batch.features)) > SMALL:
        yield
        return
    controller = _controller(len(sys.modules))
    with _lock:
        blas = controller.select(user_api="blas")
        _limited.append(_limited[0] if _limited else blas.limit(limits=1))
    try:
        with controller.select(user_api="openmp").limit(limits=1):
            yield
    finally:
        with _lock:
            limit = _limited.pop()
            # The end of a limit restores, and lets other threads set limits again.
            with nullcontext() if _limited else limit:
                pass


@lru_cache(1)
def _controller(n_modules):
    """The controller of loaded libraries; found anew when modules were imported."""
    return ThreadpoolController()


def judged_problems(batch, labels):
    """Whether a claim of each problem was judged, or there is none to judge.

    A person who was unsure has judged, too, where the metadata say who looked at a claim:
    without what people are unsure of, the rest would err too rarely.
    """
    judged = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch)) > 0
    judged |= batch.sizes == 0
    for i in np.flatnonzero(~judged) if batch.metadata is not None else ():
        sources = read_sources(batch.metadata[i], int(batch.sizes[i]))
        judged[i] = any(row and row["kind"] == "human" for row in sources)
    return judged


def rows_that_count(batch, labels):
    """Problems that calibrate: all, but where people judged some that were drawn blindly.

    What was not judged then says nothing, and would count as false.
    """
    rows = np.arange(len(batch))
    if batch.metadata is None or (labels >= 0).all():
        return rows
    judged = judged_problems(batch, labels)
    drawn = np.array([(row or {}).get("drawn") == "random" for row in batch.metadata])
    return rows[judged] if judged.any() and drawn[judged].all() else rows


def warn_of_labels(filter, view):
    """Warn of labels that calibrate and are a model's, or missing in whole problems."""
    batch = view.passed
    labels = view.labels
    note_judges(filter, batch, labels)
    if len(labels) == 0 or labels.min() >= 0:
        return
    level = filter._resolved().level(None, filter.alpha)
    known = np.bincount(batch.problem_of[labels >= 0], minlength=len(batch))
    n_unknown = int(np.sum((known == 0) & (batch.sizes > 0)))
    if n_unknown > level * (len(batch) + 1):
        warn(
            f"in {n_unknown} of {len(batch)} calibration problems no claim was judged true "
            "or false. All their claims count as false, so that far less may be kept than "
            "the scores deserve. If the problems to label were drawn at random, leave out "
            "those that nobody has looked at",
            LabelWarning,
        )
