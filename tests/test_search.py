"""Searches that stay valid: what calibrates is new to whatever was chosen or fitted."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline

from skdcf import CoherentConformalFilter, HardCF, SingleFeatureCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import fit_search
from skdcf.exceptions import CalibrationWarning
from skdcf.ops.holdout import hold_out
from skdcf.scorers import Scorer
from skdcf.training import Adam, SoftTraining

N = 90
GRAPHS, Y = make_reasoning_graphs(N, kind="felm", random_state=0, return_X_y=True)
NUMBERED = GRAPHS.replace_features(
    np.c_[GRAPHS.features[:, :2], GRAPHS.problem_of.astype(float)], ["a", "b", "number"]
)


def numbers(batch):
    return set(batch.features[:, -1].astype(int).tolist())


class Seen:
    """What was looked at while the search ran, and afterwards."""

    trained, scored, after = set(), set(), []
    searching = False


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    for name, empty in (("trained", set()), ("scored", set()), ("after", [])):
        monkeypatch.setattr(Seen, name, empty)
    return Seen


class Spy(Scorer):
    """A scorer that writes down what it is trained on and asked about."""

    learns = True

    def __init__(self, weight=0.0):
        self.weight = weight

    def fit(self, batch, labels, task=None):
        Seen.trained |= numbers(batch)
        return self

    def confidence(self, batch):
        if Seen.searching:
            Seen.scored |= numbers(batch)
        else:
            Seen.after.append(numbers(batch))
        return batch.features[:, 0] + self.weight * batch.features[:, 1]


class Watched(GridSearchCV):
    """A search that says when it runs, and keeps what it was given."""

    def fit(self, X, y=None, **params):
        Seen.searching = True
        try:
            return super().fit(X, y, **params)
        finally:
            Seen.searching = False


class Step(TransformerMixin, BaseEstimator):
    """A step that learns something, and writes down on what."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None):
        self.names_ = X.feature_names
        Seen.trained |= numbers(X)
        return self

    def transform(self, X):
        features = X.features * [self.factor, 1.0, 1.0]
        return X.replace_features(features, self.names_)


def spying(**changes):
    return HardCF(Spy(), **{"alpha": 0.2, "random_state": 0} | changes)


SEARCHES = {
    "filter": Watched(spying(), {"scorer__weight": [0.0, 0.5]}, cv=3),
    "pipeline": Watched(
        Pipeline([("step", Step()), ("filter", spying())]),
        {"step__factor": [1.0, -1.0], "filter__scorer__weight": [0.0, 0.5]},
        cv=3,
    ),
}


def seen_by_filter(fitted):
    """The problems as the last step sees them."""
    return fitted[:-1].transform(NUMBERED) if hasattr(fitted, "steps") else NUMBERED


def last(fitted):
    return fitted[-1] if hasattr(fitted, "steps") else fitted


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("grouped", [False, True])
def test_what_calibrates_was_never_seen(seen, name, grouped):
    groups = np.arange(N) // 3 if grouped else None
    fitted = fit_search(
        SEARCHES[name], NUMBERED, Y, groups, calibration_size=30, random_state=0
    )
    filter = last(fitted)
    calibrating = set(range(N)) - (seen.trained | seen.scored)
    assert len(calibrating) == filter.n_calibration_ == 30
    # After the search, the last fit calibrates on one of its own, and then on these.
    assert any(calibrating <= asked for asked in seen.after)
    assert (
        all(asked <= calibrating or len(asked) == 1 for asked in seen.after) or grouped
    )
    if grouped:
        assert not {groups[i] for i in calibrating} & {
            groups[i] for i in seen.trained | seen.scored
        }
    rows = sorted(calibrating)
    X = NUMBERED[rows]
    if filter is not fitted:
        X = fitted[:-1].transform(X)
    again = copy.copy(filter).calibrate(X, [Y[i] for i in rows])
    np.testing.assert_array_equal(
        again.nonconformity_scores_, filter.nonconformity_scores_
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_labels_of_what_calibrates_change_the_threshold_alone(seen, name):
    fitted = fit_search(SEARCHES[name], NUMBERED, Y, random_state=0)
    held = set(range(N)) - (seen.trained | seen.scored)
    flipped = [1 - row if i in held else row for i, row in enumerate(Y)]
    other = fit_search(SEARCHES[name], NUMBERED, flipped, random_state=0)
    assert other.search_.best_params_ == fitted.search_.best_params_
    one, two = (
        np.concatenate(list(last(f).path_risk(seen_by_filter(f))))
        for f in (fitted, other)
    )
    np.testing.assert_array_equal(one, two)
    assert last(other).threshold_ != last(fitted).threshold_


def test_the_result_is_the_best_filter_trained_on_all_that_was_searched():
    grid = {"scorer__var_smoothing": [1e-9, 1.0]}
    search = GridSearchCV(HardCF(GaussianNB(), alpha=0.2, random_state=0), grid, cv=3)
    fitted = fit_search(search, GRAPHS, Y, calibration_size=0.4, random_state=0)
    assert not hasattr(search, "best_params_") and fitted.search_ is not search
    best = fitted.search_.best_params_
    assert fitted.get_params()["scorer__var_smoothing"] == best["scorer__var_smoothing"]
    scores = fitted.search_.cv_results_["mean_test_score"]
    assert scores[fitted.search_.best_index_] == scores.max()
    assert fitted.n_calibration_ == 36 and fitted.calibration_size == 0.4
    # One problem of the 54 that were searched calibrates the last fit, until the rest do.
    n_trained = fitted.scorer_.estimator_.class_count_.sum()
    sizes = np.sort(GRAPHS.sizes)
    assert sizes[:53].sum() <= n_trained <= sizes[-53:].sum()
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        np.concatenate(loaded.predict(GRAPHS)), np.concatenate(fitted.predict(GRAPHS))
    )
    assert clone(fitted).get_params().keys() == fitted.get_params().keys()


def test_the_same_random_state_draws_the_same_problems():
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=3)
    one, same, other = (
        fit_search(search, GRAPHS, Y, random_state=seed).nonconformity_scores_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("cv", [None, 3, 4])
def test_groups_stay_together_inside_the_search(cv, monkeypatch):
    groups = np.arange(N) // 2
    splits = []

    class Recorded(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                splits.append((set(groups[train]), set(groups[test])))
                yield train, test

    monkeypatch.setattr("skdcf.evaluation._fitting.GroupKFold", Recorded)
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=cv)
    fit_search(search, GRAPHS, Y, groups, random_state=0)
    assert len(splits) == (cv or 5)
    assert all(train.isdisjoint(test) for train, test in splits)


def test_a_splitter_of_ones_own_is_used():
    search = GridSearchCV(
        SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=KFold(7)
    )
    fitted = fit_search(search, GRAPHS, Y, random_state=0)
    assert fitted.search_.n_splits_ == 7
    groups = GridSearchCV(
        SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=GroupKFold(6)
    )
    fitted = fit_search(groups, GRAPHS, Y, np.arange(N) // 2, random_state=0)
    assert fitted.search_.n_splits_ == 6


def test_other_searches_and_nested_settings():
    space = {
        "training__optimizer__learning_rate": [0.01, 0.1],
        "training__loss": ["retention", "log-retention"],
    }
    filter = CoherentConformalFilter(
        "linear", alpha=0.2, training=SoftTraining(Adam(max_iter=3)), random_state=0
    )
    search = RandomizedSearchCV(filter, space, n_iter=2, cv=2, random_state=0)
    fitted = fit_search(search, GRAPHS, Y, random_state=0)
    best = fitted.search_.best_params_
    assert fitted.training.loss == best["training__loss"]
    assert fitted.n_calibration_ == 34 and fitted.n_iter_ == 3


# --- tables


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 1] + rng.normal(size=n) > 0


@pytest.mark.parametrize(
    ("false", "true"),
    [(0, 1), (False, True), ("no", "Yes"), ("false", "True"), (-3, 7)],
)
def test_tables_with_labels_of_any_kind(false, true):
    X, truth = table()
    y = np.array([true if flag else false for flag in truth])
    search = GridSearchCV(
        SingleFeatureCF(alpha=0.3), {"feature": [0, 1, 2]}, cv=StratifiedKFold(3)
    )
    fitted = fit_search(search, X, y, random_state=0)
    plain = fit_search(search, X, truth, random_state=0)
    assert fitted.feature == 1 and fitted.n_calibration_ == 46
    assert fitted.threshold_ == plain.threshold_
    assert fitted.score(X, y) == plain.score(X, truth)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))


def test_tables_with_named_columns_and_a_step_that_looks_at_labels():
    """The case that cannot be seen from inside a filter: the step saw the labels."""
    pandas = pytest.importorskip("pandas")
    from sklearn.feature_selection import SelectKBest

    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.6
    X = pandas.DataFrame(
        rng.normal(size=(200, 30)), columns=[f"c{j}" for j in range(30)]
    )
    y = pandas.Series(np.where(truth, "yes", "no"), index=np.arange(200)[::-1])
    pipe = make_pipeline(SelectKBest(), HardCF(GaussianNB(), alpha=0.3, random_state=0))
    search = GridSearchCV(pipe, {"selectkbest__k": [1, 3]}, cv=3)
    fitted = fit_search(search, X, y, random_state=0)
    assert fitted[-1].n_calibration_ == 79
    assert fitted.predict(X).shape == (200,)
    # The step chose its columns on the problems that do not calibrate.
    rest, _ = hold_out(200, 79, None, np.random.RandomState(0))
    on_rest, on_all = (
        clone(fitted[0]).fit(X.iloc[r], y.iloc[r]).scores_ for r in (rest, slice(None))
    )
    np.testing.assert_allclose(fitted[0].scores_, on_rest)
    assert not np.allclose(fitted[0].scores_, on_all)


# --- what is refused


def test_too_few_problems_and_bad_sizes():
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0]}, cv=2)
    for size in (0, 1.5, -1, "a", True, N):
        with pytest.raises(ValueError, match="calibration_size"):
            fit_search(search, GRAPHS, Y, calibration_size=size)
    with pytest.raises(ValueError, match="90 problems, but y has 89 entries"):
        fit_search(search, GRAPHS, Y[:-1])
    with pytest.raises(ValueError, match=r"groups has shape \(2,\)"):
        fit_search(search, GRAPHS, Y, [1, 2])
    with pytest.raises(ValueError, match="all problems are in one group"):
        fit_search(search, GRAPHS, Y, np.zeros(N))


def test_too_few_for_the_level_are_told():
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0]}, cv=2)
    with pytest.warns(CalibrationWarning, match="3 calibration problems are too few"):
        fitted = fit_search(search, GRAPHS, Y, calibration_size=3, random_state=0)
    assert fitted.threshold_ == -np.inf


# --- the guarantee


def test_coverage_of_a_search_over_noise():
    """Choosing and calibrating on the same problems keeps too much; this does not."""
    n_features, n, repeats = 15, 40, 30
    rng = np.random.default_rng(0)
    grid = {"scorer": list(range(n_features))}
    covered = {"searched and calibrated alike": [], "held apart": []}
    for repeat in range(repeats):
        X = rng.normal(size=(n + 600, n_features))
        y = rng.random(n + 600) < 0.5
        search = GridSearchCV(HardCF(alpha=0.2), grid, cv=2)
        plain = clone(search).fit(X[:n], y[:n]).best_estimator_
        apart = fit_search(
            search, X[:n], y[:n], calibration_size=19, random_state=repeat
        )
        for name, filter in zip(covered, (plain, apart), strict=True):
            kept = filter.predict(X[n:])
            covered[name].append(1 - np.mean(kept & ~y[n:]))
    mean = {name: np.mean(values) for name, values in covered.items()}
    error = {
        name: np.std(values, ddof=1) / np.sqrt(repeats)
        for name, values in covered.items()
    }
    good, bad = "held apart", "searched and calibrated alike"
    assert mean[good] > 0.8 - 3 * error[good]
    assert mean[bad] < 0.8 - 3 * error[bad]
