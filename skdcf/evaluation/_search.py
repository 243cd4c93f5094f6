"""Search for settings, and calibrate the best filter on held-out problems."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_random_state, get_tags

from .. import full
from .._arrays import number_groups
from .._checks import Seed
from .._parameters import settings, take_rows
from ..exceptions import CalibrationWarning
from ..filters import PROMISED
from ..graphs import Problems, pack_graphs
from ..identity import Groups, hashes_of, question_groups
from ..labels import Labels
from ..training.splitting import hold_out
from ..uses import check


@settings
class CalibratedSearch(BaseEstimator):
    """Search for settings, and calibrate the best filter on held-out problems.

    A filter selected by ``search.fit(X, y)`` alone has no guarantee, because the same problems are
    used to select the settings and to calibrate the filter. With few problems and many settings,
    filters that were selected and calibrated on the same problems kept a false claim in 13 to 16 %
    of problems at alpha = 0.1. `CalibratedSearch` first splits
    the problems by question into a search part and a calibration part. The search part is used to
    select the settings and to train the best filter. The calibration part is used to calibrate the
    best filter.

    Parameters
    ----------
    search : GridSearchCV or another search from scikit-learn
        A search over the settings of a filter. A clone of the search is fitted. If the ``cv`` of
        the search is an integer, all answers to a question are assigned to the same fold. The
        filter's ``calibration_size`` is the part that calibrates.
    random_state : int, RandomState or None, default=None
        Seed for splitting the questions into search and calibration questions. As in
        scikit-learn, this split and the folds depend on the order of the rows.

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
    random_state: Seed = None

    def fit(self, X: Problems, y: Labels, groups: Groups = None) -> Self:
        """Search for settings on one part of the problems, and calibrate on the other part.

        Parameters
        ----------
        X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
            Problems, in the format of the filter's `fit`.
        y : sequence of 1-D arrays, one per problem
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
        codes = number_groups(questions)
        # As many as `fit` holds out if the filter is trained.
        n_held = estimator._count_held_out(codes, learns=True)
        rng = check_random_state(self.random_state)
        rest, held_rows = hold_out(len(batch), n_held, codes, rng)
        if pack_graphs(X):
            X, y = batch, batch.split(labels)
        searched, held = (
            [
                values if values is None or values is False else take_rows(values, rows)
                for values in (X, y, groups)
            ]
            for rows in (rest, held_rows)
        )
        search = clone(self.search)
        if search.refit is True:
            search.refit = False
        # Answers to one question are in the same fold.
        folds = as_groups(questions[rest])
        has_groups = folds is not False
        cv = search.cv
        if has_groups and (cv is None or isinstance(cv, Integral)):
            cv = GroupKFold(cv or 5)
        X_search, y_search, groups_search = searched
        search.cv = [
            *check_cv(cv).split(X_search, y_search, folds if has_groups else None)
        ]
        with warnings.catch_warnings():
            # Warnings about thresholds are ignored, because other thresholds are computed below.
            warnings.simplefilter("ignore", CalibrationWarning)
            # The filters in the search require metadata routing.
            with config_context(enable_metadata_routing=True):
                search.estimator.set_fit_request(groups=True)
                search.fit(X_search, y_search, groups=folds)
            best = clone(estimator).set_params(**search.best_params_)
            best.set_params(calibration_size=1).fit(*searched)
        # The problems used to choose the settings count as training problems.
        hashes = hashes_of(
            check(best, X_search), groups_search, columns_are_fine=best._are_fine
        )
        best._record = replace(best._record, trained=hashes.to_store())
        best.calibrate(*held)
        self.best_estimator_ = best
        self.search_ = search
        self.best_params_ = search.best_params_
        return self

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the best filter, or of the unfitted filter before `fit`."""
        if name.startswith("__") or "search" not in vars(self):
            raise AttributeError(name)
        best = vars(self).get("best_estimator_")
        return getattr(self.search.estimator if best is None else best, name)

    def __sklearn_tags__(self):
        return get_tags(self.search.estimator)


def as_groups(questions):
    """Return question indices as ``groups``, or False if each question has one answer."""
    return questions if len(np.unique(questions)) < len(questions) else False


def check_search(search):
    """Raise ValueError if the search or its scoring is invalid."""
    inner = getattr(search, "estimator", None)
    if not hasattr(search, "cv") or not hasattr(inner, "calibrate_parts"):
        raise ValueError(
            "search must be a scikit-learn search over a filter, such as "
            f"GridSearchCV(HardCF(...), {{...}}), got {search!r}"
        )
    full.refuse(inner, "a search")
    for key in _keys(search):
        name = next(
            (w for w in key.split("__") if w not in ("estimator", "search")), None
        )
        if name in (*PROMISED, "calibration_size"):
            raise ValueError(
                f"{key!r} must not be a parameter of the search, because filters with "
                f"different values of {name} cannot be compared by the number of true "
                f"claims that they keep. Set {name} in the filter instead"
            )


def _keys(search):
    for name in ("param_grid", "param_distributions", "search_spaces"):
        grids = getattr(search, name, None) or ()
        for grid in [grids] if isinstance(grids, Mapping) else grids:
            yield from grid
