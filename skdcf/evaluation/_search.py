"""Search for settings, and calibrate the best filter on held-out problems.

This module also fits filters, and searches over filters, at one or several levels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import GroupKFold, PredefinedSplit, check_cv
from sklearn.utils import check_random_state, get_tags

from .._parameters import settings
from .._sklearn import take_rows
from ..exceptions import CalibrationWarning
from ..filters import PROMISED
from ..graphs import Problems, pack_graphs
from ..guarantees import NoFalseClaim
from ..identity import hashes_of, question_groups
from ..labels import Labels
from ..training.splitting import (
    hold_out,
    holdout_count,
    number_groups,
)
from ..uses import at_level, check

GRIDS = ("param_grid", "param_distributions", "search_spaces")
WRAPPERS = ("estimator", "search")


@settings
class CalibratedSearch(BaseEstimator):
    """Search for settings, and calibrate the best filter on held-out problems.

    A filter selected by ``search.fit(X, y)`` alone has no guarantee, because the same problems are
    used to select the settings and to calibrate the filter. With few problems and many settings,
    filters that were selected and calibrated on the same problems kept a false claim in 13 to 16 %
    of problems at alpha = 0.1 (``tests/attacks/edge_cases.py``). `CalibratedSearch` first splits
    the problems by question into a search part and a calibration part. The search part is used to
    select the settings and to train the best filter. The calibration part is used to calibrate the
    best filter.

    Parameters
    ----------
    search : GridSearchCV or another search from scikit-learn
        A search over the settings of a filter. A clone of the search is fitted. If the ``cv`` of
        the search is an integer, all answers to a question are assigned to the same fold. If the
        ``cv`` of the search is a PredefinedSplit or a list of splits, the splits must refer to
        all problems, and the calibration problems are removed from them.
    calibration_size : float or int, optional
        Proportion or number of questions used for calibration. If None, the filter's own
        ``calibration_size`` is used.
    random_state : int, RandomState or None, default=None
        Seed for splitting the questions into search and calibration questions.
    n_jobs : int, optional
        Number of fits that the search runs in parallel, as in scikit-learn. If None, the
        setting of ``search`` is used.

    Attributes
    ----------
    best_estimator_ : fitted filter
        The filter with the best settings, trained on all problems in the search and calibrated on
        the other problems. All other attributes, and all methods except `fit`, are delegated to
        ``best_estimator_``.
    best_params_ : dict
        The best settings.
    search_ : fitted search
        The fitted search, whose ``cv_results_`` compare the settings.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdcf import SingleFeatureCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.evaluation import CalibratedSearch
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> search = GridSearchCV(SingleFeatureCF(), {"beta_mix": [0.0, 0.5]}, cv=3)
    >>> cf = CalibratedSearch(search, random_state=0).fit(graphs, y)
    >>> cf.best_estimator_.n_calibration_, len(cf.predict(graphs))
    (119, 300)
    """

    __metadata_request__fit = {"groups": True}

    search: Any
    _: KW_ONLY
    calibration_size: float | int | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def fit(
        self, X: Problems, y: Labels, groups: ArrayLike | Literal[False] | None = None
    ) -> Self:
        """Search for settings on one part of the problems, and calibrate on the other part.

        Parameters
        ----------
        X : {problems}
            Problems, in the format of the filter's `fit`.
        y : {labels}
            Labels, in the format of the filter's `fit`.
        groups : array-like of shape (n_problems,), or False, optional
            The question that each answer belongs to, as in the filter's `fit`.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        ValueError
            If problems or labels are invalid, if there are too few problems, or if the search or
            its scoring is invalid.
        """
        check_search(self.search)
        estimator = self.search.estimator
        batch, labels = check(estimator, X, y)
        questions = question_groups(batch, groups)
        rest, held_rows = self._divide(questions, estimator)
        packed = (batch, batch.split(labels)) if pack_graphs(X) else (X, y)
        searched, new = (
            [take_rows(d, part) for d in packed] for part in (rest, held_rows)
        )
        asked = (_taken(groups, rest), _taken(groups, held_rows))
        with warnings.catch_warnings():
            # Warnings about thresholds are ignored, because other thresholds are computed below.
            warnings.simplefilter("ignore", CalibrationWarning)
            search = clone(self.search)
            if self.n_jobs is not None:
                search.set_params(n_jobs=self.n_jobs)
            best, search = choose(
                search,
                searched[0],
                searched[1],
                questions=questions[rest],
                rows=rest,
                n_problems=len(batch),
            )
            best.set_params(calibration_size=1).fit(*searched, asked[0])
        # The problems that chose the settings count as training problems.
        trained = hashes_of(check(best, searched[0]), asked[0]).to_store()
        best._record = replace(best._record, trained=trained)
        best.calibrate(*new, asked[1])
        self.best_estimator_ = best
        self.search_ = search
        self.best_params_ = search.best_params_
        return self

    def _divide(self, questions, estimator):
        """Split the problems by question into a search part and a calibration part."""
        codes = number_groups(questions)
        n = codes.max() + 1
        size = self.calibration_size
        if size is None:
            guarantee = estimator.guarantee or NoFalseClaim()
            size = guarantee.calibration_count(
                n, guarantee.level(None, estimator.alpha)
            )
        count = holdout_count("calibration_size", size, n)
        rng = check_random_state(self.random_state)
        is_held = np.isin(codes, hold_out(n, count, None, rng)[1])
        return np.flatnonzero(~is_held), np.flatnonzero(is_held)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the best filter, or of the unfitted filter before `fit`."""
        if name.startswith("_") or "search" not in vars(self):
            raise AttributeError(name)
        best = vars(self).get("best_estimator_")
        return getattr(self.search.estimator if best is None else best, name)

    def __sklearn_tags__(self):
        return get_tags(self.search.estimator)


def as_groups(questions):
    """Return question indices as ``groups``, or False if each question has one answer."""
    return questions if len(np.unique(questions)) < len(questions) else False


def search_in(model):
    """Return the scikit-learn search of a model, or None if the model does not contain a search."""
    if isinstance(model, CalibratedSearch):
        return model.search
    return model if hasattr(model, "estimator") and hasattr(model, "cv") else None


def check_search(search):
    """Raise ValueError if the search or its scoring is invalid."""
    if search_in(search) is not search or not hasattr(
        search.estimator, "calibrate_parts"
    ):
        raise ValueError(
            "search must be a scikit-learn search over a filter, such as "
            f"GridSearchCV(HardCF(...), {{...}}), got {search!r}"
        )
    for key in sorted(set(_keys(search))):
        words = key.split("__")
        while words[0] in WRAPPERS and len(words) > 1:
            words = words[1:]
        if words[0] in PROMISED:
            raise ValueError(
                f"{key!r} must not be a parameter of the search, because filters with "
                f"different values of {words[0]} have different guarantees and cannot be "
                f"compared by the number of true claims that they keep. Set {words[0]} in the "
                "filter instead"
            )
        if words[0] == "calibration_size":
            raise ValueError(
                f"{key!r} must not be a parameter of the search. Set this parameter in "
                "CalibratedSearch instead"
            )
    _check_scoring(search.scoring)
    many_scores = isinstance(search.scoring, (Mapping, list, tuple, set))
    if many_scores and search.refit is True:
        raise ValueError(
            "refit must name the score to optimise if scoring contains several scores, "
            f'got {list(search.scoring)}. Select one of them with refit="<name>"'
        )


def _keys(search):
    for name in GRIDS:
        grids = getattr(search, name, None) or ()
        for grid in [grids] if isinstance(grids, Mapping) else grids:
            yield from grid


def _check_scoring(scoring):
    """Raise ValueError for scikit-learn's scorers, which compare flat arrays of classes."""
    if isinstance(scoring, Mapping):
        scoring = list(scoring.values())
    for score in scoring if isinstance(scoring, (list, tuple, set)) else [scoring]:
        if isinstance(score, str) or hasattr(score, "_score_func"):
            raise ValueError(
                f"scoring must be None or a function of (filter, X, y), got {score!r}. "
                "Standard scikit-learn scorers cannot count kept claims, because they "
                "compare one class per row. Use None to count the kept true claims"
            )


def choose(search, X, y, questions, rows=None, n_problems=None):
    """Return an unfitted filter with the best settings, and the fitted search.

    Parameters
    ----------
    search : search of scikit-learn
        The search, which is cloned.
    X, y : problems and labels
        The problems of the search, and their labels.
    questions : ndarray of int of shape (n_problems,)
        The question that each answer belongs to.
    rows, n_problems : ndarray of int, and int
        Positions of the given problems among all problems that ``search.cv`` splits, and the
        number of all these problems.
    """
    check_search(search)
    estimator = search.estimator
    search = clone(search)
    cv = search.cv
    groups = as_groups(questions)
    has_groups = groups is not False
    if has_groups and (cv is None or isinstance(cv, Integral)):
        cv = GroupKFold(cv or 5)
    if isinstance(cv, (PredefinedSplit, list, tuple)):
        rows = np.arange(len(questions)) if rows is None else rows
        search.cv = _predefined(cv, rows, n_problems or len(rows))
    else:
        cv = check_cv(cv, y, classifier=is_classifier(estimator))
        search.cv = [*cv.split(X, y, *([questions] if has_groups else []))]
    if search.refit is True:
        search.refit = False
    # The filters in the search require metadata routing.
    with config_context(enable_metadata_routing=True):
        search.estimator.set_fit_request(groups=True)
        search.fit(X, y, groups=groups)
    return clone(estimator).set_params(**search.best_params_), search


def _predefined(cv, rows, n_problems):
    """Restrict splits of all problems to the given rows."""
    if isinstance(cv, PredefinedSplit):
        if len(cv.test_fold) != n_problems:
            raise ValueError(
                f"cv must be a PredefinedSplit with an entry for each of the {n_problems} "
                f"problems, got one with {len(cv.test_fold)} entries"
            )
        cv = cv.split()
    position = np.full(n_problems, -1)
    position[rows] = np.arange(len(rows))
    splits = []
    for split in cv:
        train, test = (position[part][position[part] >= 0] for part in split)
        if not (len(train) and len(test)):
            raise ValueError(
                "each split in cv must contain training and test problems after the "
                "calibration problems are removed, but one of these two parts is empty. Use "
                "larger folds, or another random_state"
            )
        splits.append((train, test))
    return splits


def _taken(groups, rows):
    return groups if groups is None or groups is False else np.asarray(groups)[rows]


def fit_each(filter, X, y, alphas, groups=None, **changes):
    """Yield each fitted filter, the positions of its alphas, and the selected settings.

    For a search, ``groups`` must be numbers or False. ``changes`` contains filter parameters,
    which are set before the filter is fitted. A search is replaced by the filter that it selects,
    separately for each alpha.
    """
    if not isinstance(filter, Mapping) and search_in(filter) is None:
        changed = clone(filter).set_params(**changes)
        first = at_level(changed, alphas[0]).fit(X, y, groups)
        # The levels share a fit, unless training or the share of passing answers depends on them.
        if not first.scorer_.uses_alpha and first.share_ is None:
            yield first, range(len(alphas)), {}
            return
        yield first, [0], {}
        for i, alpha in enumerate(alphas[1:], start=1):
            yield at_level(changed, alpha).fit(X, y, groups), [i], {}
        return
    for i, alpha in enumerate(alphas):
        if isinstance(filter, Mapping):
            best = at_level(filter[alpha], alpha)
            chosen = {}
        else:
            search = clone(search_in(filter))
            search.estimator = at_level(search.estimator, alpha)
            questions = -1 - np.arange(len(X)) if groups is False else groups
            best, fitted_search = choose(search, X, y, questions)
            chosen = fitted_search.best_params_
        yield best.set_params(**changes).fit(X, y, groups), [i], chosen
