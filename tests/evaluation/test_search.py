"""Searches that stay valid: what calibrates is new to whatever was chosen or fitted."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
)
from sklearn.naive_bayes import GaussianNB

from skdcf import HardCF, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import CalibratedSearch, compare_filters
from skdcf.features import GraphFeatures
from skdcf.graphs import as_batch
from skdcf.guarantees import NoFalseClaim
from skdcf.inspection import explain
from skdcf.scorers import Scorer
from skdcf.uses import check, seen

N = 90
GRAPHS, Y = make_reasoning_graphs(N, kind="felm", random_state=0, return_X_y=True)
NUMBERED = GRAPHS.replace_features(
    np.c_[GRAPHS.features[:, :2], GRAPHS.problem_of.astype(float)], ["a", "b", "number"]
)


def numbers(batch):
    return set(batch.features[:, -1].astype(int).tolist())


class Seen:
    """What was looked at while the search ran."""

    trained, scored = set(), set()
    searching = False


@pytest.fixture(autouse=True, name="seen")
def forget_what_was_seen(monkeypatch):
    for name in ("trained", "scored"):
        monkeypatch.setattr(Seen, name, set())
    return Seen


class Spy(Scorer):
    """A scorer that writes down what it is trained on and asked about."""

    requires_fit = True

    def __init__(self, weight=0.0):
        self.weight = weight

    def fit(self, batch, labels, task=None):
        Seen.trained |= numbers(batch)
        return self

    def confidence(self, batch):
        if Seen.searching:
            Seen.scored |= numbers(batch)
        return batch.features[:, 0] + self.weight * batch.features[:, 1]


class Watched(GridSearchCV):
    """A search that says when it runs."""

    def fit(self, X, y=None, **params):
        Seen.searching = True
        try:
            return super().fit(X, y, **params)
        finally:
            Seen.searching = False


class Columns(TransformerMixin, BaseEstimator):
    """Columns that learn something, and write down on what."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None):
        Seen.trained |= set(X[:, -1].astype(int).tolist())
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X * [self.factor, 1.0, 1.0]

    def get_feature_names_out(self, input_features=None):
        return np.array(["a", "b", "number"], dtype=object)


def spying(**changes):
    return HardCF(Spy(), **{"alpha": 0.2, "random_state": 0} | changes)


SEARCHES = {
    "scorer": Watched(spying(), {"scorer__weight": [0.0, 0.5]}, cv=3),
    "columns": Watched(
        spying(features=Columns()),
        {"features__factor": [1.0, -1.0], "scorer__weight": [0.0, 0.5]},
        cv=3,
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_calibrates_was_never_seen(seen, name, grouped):
    groups = np.arange(N) // 3 if grouped else None
    size = 10 if grouped else 29  # questions, and 29 have the rank of 30 at .2 and more
    search = clone(SEARCHES[name]).set_params(estimator__calibration_size=size)
    search = CalibratedSearch(search, random_state=0)
    filter = search.fit(NUMBERED, Y, groups).best_estimator_
    calibrating = set(range(N)) - (seen.trained | seen.scored)
    assert len(calibrating) == (30 if grouped else 29)
    assert filter.n_calibration_ == (9 if grouped else 29)  # the ranks of 10 and of 29
    if grouped:
        assert not {groups[i] for i in calibrating} & {
            groups[i] for i in seen.trained | seen.scored
        }
    rows = sorted(calibrating)
    scores = filter.nonconformity_scores_
    part = None if groups is None else groups[rows]
    filter.calibrate(NUMBERED[rows], [Y[i] for i in rows], part)
    np.testing.assert_array_equal(filter.nonconformity_scores_, scores)


def test_the_result_is_the_best_filter_trained_on_all_that_was_searched():
    grid = {"scorer__var_smoothing": [1e-9, 1.0]}
    search = GridSearchCV(HardCF(GaussianNB(), alpha=0.2, random_state=0), grid, cv=3)
    fitted = CalibratedSearch(search, random_state=0).fit(GRAPHS, Y)
    best = fitted.best_estimator_
    assert not hasattr(search, "best_params_")
    assert fitted.best_params_.items() <= best.get_params().items()
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        np.concatenate(loaded.predict(GRAPHS)), np.concatenate(fitted.predict(GRAPHS))
    )
    assert fitted.score(GRAPHS, Y) == best.score(GRAPHS, Y)
    [kept] = explain(fitted, GRAPHS[:1])
    np.testing.assert_array_equal(kept.kept, fitted.predict(GRAPHS)[0])
    fresh = clone(fitted)
    assert not hasattr(fresh, "best_estimator_")
    assert fresh.get_params()["search__estimator__alpha"] == 0.2


def test_problems_that_chose_settings_count_as_trained():
    """Even of a filter in which nothing learns."""
    groups = np.arange(N) // 2
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=3)
    fitted = CalibratedSearch(search, random_state=0).fit(GRAPHS, Y, groups)
    trained, calibrated = seen(fitted.best_estimator_, GRAPHS, groups)
    assert not (trained & calibrated).any() and trained.sum() > N / 3
    with pytest.raises(ValueError, match=r"used.*train"):
        fitted.calibrate(GRAPHS, Y, groups)


@pytest.mark.parametrize("cv", [None, 3, GroupKFold(4)])
def test_answers_to_a_question_stay_together_inside_the_search(cv):
    groups = np.arange(N) // 2
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=cv)
    fitted = CalibratedSearch(search, random_state=0).fit(GRAPHS, Y, groups)
    splits = fitted.search_.cv
    assert len(splits) == {None: 5, 3: 3}.get(cv, 4)
    used = sorted(np.concatenate([test for _, test in splits]))
    assert len(used) % 2 == 0 and used == list(range(len(used)))
    for train, test in splits:  # two answers to each question, one after the other
        assert set(np.array(train) // 2).isdisjoint(np.array(test) // 2)


# --- what is refused


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("alpha", [0.1, 0.2]),
        ("guarantee__max_false", [0, 3]),
        ("ties", ["exclude", "include"]),
        ("estimator__alpha", [0.1, 0.2]),
        ("calibration_size", [0.3, 0.5]),
    ],
)
def test_a_search_over_the_guarantee_is_refused(key, values):
    # A scorer may have a setting of the same name.
    grid = {"scorer__alpha": [1], key: values}
    search = GridSearchCV(HardCF(guarantee=NoFalseClaim()), [grid])
    with pytest.raises(ValueError, match=f"'{key}'"):
        CalibratedSearch(search).fit(GRAPHS, Y)


def test_bad_input_is_refused():
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0]}, cv=2)
    with pytest.raises(ValueError, match=r"1 of 1 questions.*groups"):
        CalibratedSearch(search).fit(GRAPHS, Y, np.zeros(N))
    with pytest.raises(ValueError, match=r"search.*HardCF"):
        CalibratedSearch(HardCF()).fit(GRAPHS, Y)


# --- columns


class Counting(GraphFeatures):
    """Columns of ours that learn nothing, and count the rows that they compute."""

    rows = 0
    __module__ = "skdcf.features"  # so that it counts as ours

    def transform(self, X):
        Counting.rows += as_batch(X).n_claims
        return super().transform(X)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")  # of threads
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_columns_that_learn_nothing_are_computed_once(n_jobs, monkeypatch):
    monkeypatch.setattr(Counting, "rows", 0)
    filters = {
        "one": HardCF(GaussianNB(), features=Counting(), alpha=0.3),
        "two": HardCF("claim_index", features=Counting(), alpha=0.3),
        "three": SingleFeatureCF("claim_index", alpha=0.3),
    }
    grid = {"scorer__var_smoothing": np.logspace(-9, 0, 4)}
    with parallel_config(backend="threading"):
        run = {"cv": 3, "n_jobs": n_jobs, "random_state": 0}
        compare_filters(filters, GRAPHS, Y, [0.3], **run)
        assert Counting.rows == GRAPHS.n_claims
        monkeypatch.setattr(Counting, "rows", 0)
        search = GridSearchCV(filters["one"], grid, cv=3, n_jobs=n_jobs)
        fitted = CalibratedSearch(search, random_state=0).fit(GRAPHS, Y)
        assert Counting.rows == GRAPHS.n_claims
    fitted.predict(GRAPHS[:5])
    assert Counting.rows == GRAPHS.n_claims + GRAPHS[:5].n_claims


def test_carried_columns_stay_at_home():
    """Where a batch goes, another function may have the name that made them."""
    batch = check(HardCF(0, features=GraphFeatures()), GRAPHS)
    assert len(batch.tables) == 1
    sent = pickle.loads(pickle.dumps(batch[:20]))
    assert sent.tables is None
    np.testing.assert_array_equal(sent.features, batch[:20].features)
