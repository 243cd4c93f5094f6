"""Every filter takes every scorer, trains it on other problems, and keeps what it fitted."""

import copy
import pickle

import numpy as np
import pytest
from assertions import assert_coherent
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    IndependentFactuality,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import GuaranteeWarning
from skdcf.labels import pack_labels
from skdcf.ops.hard import nonconformity_scores, path_risk
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FeatureScorer,
    FitTask,
    FrequencyScorer,
    FunctionScorer,
    MLPModel,
    Scorer,
    as_scorer,
)

N = 79  # (N + 1) / 10 is whole, so that none is left over
GRAPHS, Y = make_reasoning_graphs(N, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, GRAPHS)
FRESH, FRESH_Y = make_reasoning_graphs(30, random_state=1, return_X_y=True)
TRAINED = GaussianNB().fit(FRESH.features, np.concatenate(FRESH_Y))


def first_column(batch):
    return batch.features[:, 0]


class Centroid(Scorer):
    """A user's scorer that learns: towards the mean of the true claims."""

    requires_fit = True

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, batch, labels, task=None):
        true, false = (batch.features[labels == value].mean(axis=0) for value in (1, 0))
        self.weights_ = np.sign(true - false) * np.abs(true - false) ** self.power
        return self

    def confidence(self, batch):
        return batch.features @ self.weights_


class Levelled(Centroid):
    """A scorer that depends on alpha."""

    uses_alpha = True

    def fit(self, batch, labels, task=None):
        super().fit(batch, labels)
        self.weights_[0] += 10 * task.alpha
        return self


PIPELINE = make_pipeline(StandardScaler(), LogisticRegression())
# What is passed as ``scorer``, its class, and whether it learns.
SCORERS = [
    (None, FrequencyScorer, False),
    ("linear", ConfTrScorer, True),
    ("nx_reachability", FeatureScorer, False),
    (np.int64(3), FeatureScorer, False),
    (first_column, FunctionScorer, False),
    (PIPELINE, ClassifierScorer, True),
    (ClassifierScorer(GaussianNB(), target="coherent"), ClassifierScorer, True),
    (FrozenEstimator(TRAINED), ClassifierScorer, False),
    (Levelled(), Levelled, True),
]
OTHERS = (IndependentFactuality, CoherentConformalFilter, BoostedIndependentFactuality)
PAIRS = [(HardCF, *row) for row in SCORERS] + [(cls, *SCORERS[-1]) for cls in OTHERS]


def levels_of(filter):
    return np.concatenate(list(filter.predict_alpha(FRESH)))


@pytest.mark.parametrize(("cls", "scorer", "kind", "learns"), PAIRS)
def test_every_filter_takes_every_scorer(cls, scorer, kind, learns):
    before = pickle.dumps(scorer)
    fitted = cls(scorer, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    assert type(fitted.scorer_) is kind and fitted.scorer_ is not scorer
    assert fitted.n_calibration_ == (29 if learns else N)  # 0.2 * 30 is whole
    masks = fitted.predict(FRESH)
    if fitted.edges == "given":
        assert_coherent(masks, FRESH)
    assert 0 < fitted.score(FRESH, FRESH_Y) <= np.mean([sum(row) for row in FRESH_Y])
    for same in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(GRAPHS, Y)):
        np.testing.assert_array_equal(levels_of(same), levels_of(fitted))
    assert pickle.dumps(scorer) == before


class Spy(Scorer):
    """Writes down which problems it was trained on and asked about, and the task."""

    requires_fit = True
    calls = []

    def fit(self, batch, labels, task=None):
        self.calls.append(("fit", batch, labels, task))
        return self

    def confidence(self, batch):
        self.calls.append(("confidence", batch, None, None))
        return batch.features[:, 0]


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(Spy, "calls", [])
    return Spy.calls


NUMBERED = GRAPHS.replace_features(
    np.c_[GRAPHS.features[:, 0], GRAPHS.problem_of.astype(float)]
)


def numbers(batch):
    return set(batch.features[:, 1].astype(int).tolist())


def test_a_fit_is_split_fit_calibrate(calls):
    groups = np.arange(N) // 2
    filter = HardCF(Spy(), alpha=0.25, calibration_size=10, random_state=0)
    filter.fit(NUMBERED, Y, groups=groups)
    (kind, trained_on, labels, task), (_, calibrated_on, *_) = calls[:2]
    assert kind == "fit" and [call[0] for call in calls].count("fit") == 1
    assert len({*groups[[*numbers(calibrated_on)]]}) == filter.n_calibration_ == 10
    assert numbers(trained_on) | numbers(calibrated_on) == set(range(N))
    for _, batch, *_ in calls[1:]:
        assert numbers(batch).isdisjoint(numbers(trained_on))
    rows = [int(g.features[0, 1]) for g in trained_on]
    np.testing.assert_array_equal(labels, np.concatenate([Y[i] for i in rows]))
    assert task.alpha == 0.25
    held = sorted(numbers(calibrated_on))
    pairs = set(zip(task.groups, groups[rows], strict=True))
    assert len(pairs) == len(set(task.groups)) == len(set(groups[rows]))
    assert set(groups[rows]).isdisjoint(groups[held])
    risk = path_risk(-NUMBERED[held].features[:, 0], NUMBERED[held])
    truth = np.concatenate([Y[i] for i in held]) == 1
    scores = nonconformity_scores(risk, truth, NUMBERED[held].offsets)
    for found in filter.nonconformity_scores_:  # of one answer to each question
        assert found == np.inf or np.isclose(found, scores, atol=1e-9).any()


def test_equal_answers_are_chosen_anew_in_every_sample():
    """Otherwise, the same number of each kind would be used in every sample."""
    texts, n_false = ["No."] * 9 + ["Yes."] * 9, []
    for i in range(15):
        columns = np.random.default_rng(i).random((18, 1))
        X = GraphBatch.from_arrays(columns, range(19), (), claims=texts)
        one = HardCF(0).fit(X, np.arange(18) > 8)
        two = HardCF(0, calibration_size=9, random_state=0)
        two.fit(0 * columns, np.arange(18) > i)
        n_false.append([np.isinf(f.nonconformity_scores_).sum() for f in (one, two)])
    assert (np.diff(n_false, axis=0).max(axis=0) > 0).all()


@pytest.mark.parametrize("edges", ["given", "none"])
def test_edges_are_dropped_before_a_scorer_sees_them(calls, edges):
    HardCF(Spy(), edges=edges, random_state=0).fit(NUMBERED, Y).predict(NUMBERED)
    assert any(len(batch.edges) for _, batch, *_ in calls) == (edges == "given")


@pytest.mark.parametrize("scorer", [GaussianNB(), Levelled()])
def test_a_fitted_scorer_is_fitted_again(scorer):
    """It may have seen the calibration problems."""
    if isinstance(scorer, Scorer):
        fitted = clone(scorer).fit(GRAPHS, 1 - LABELS, FitTask(0.2))
    else:
        fitted = clone(scorer).fit(GRAPHS.features, 1 - LABELS)
    before = pickle.dumps(fitted)
    given = HardCF(fitted, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    fresh = HardCF(scorer, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    np.testing.assert_array_equal(levels_of(given), levels_of(fresh))
    assert pickle.dumps(fitted) == before


def test_a_method_of_a_fitted_scorer_may_know_these_problems():
    fitted = Centroid().fit(GRAPHS, LABELS)
    with pytest.warns(GuaranteeWarning, match=r"method.*Centroid"):
        HardCF(fitted.confidence).fit(GRAPHS, Y)
    HardCF(FeatureScorer(0).confidence).fit(GRAPHS, Y)  # nothing was learnt: no warning


@pytest.mark.parametrize(
    ("scorer", "changes"),
    [
        (PIPELINE, {"scorer__logisticregression__C": 9}),
        (Centroid(), {"scorer__power": 3.0}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_changed_parameters_change_no_fitted_filter(scorer, changes):
    """Neither through the filter, nor through what the caller still holds."""
    scorer = clone(scorer)
    filter = HardCF(scorer, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    before = levels_of(filter)
    other = HardCF(scorer).set_params(**changes)
    filter.set_params(**changes)
    np.testing.assert_array_equal(levels_of(filter), before)
    np.testing.assert_array_equal(levels_of(copy.deepcopy(filter)), before)
    assert other.scorer is scorer is filter.scorer
    assert (levels_of(filter.fit(GRAPHS, Y)) != before).any()


def test_a_feature_with_the_name_of_a_scorer_is_not_guessed_at():
    odd = GRAPHS.replace_features(GRAPHS.features[:, :2], ["linear", "b"])
    with pytest.raises(ValueError, match=r"FeatureScorer\('linear'\)"):
        HardCF("linear").fit(odd, Y)
    assert HardCF(FeatureScorer("linear")).fit(odd, Y).n_calibration_ == N
    unnamed = GRAPHS.replace_features(GRAPHS.features)
    assert type(as_scorer(None, unnamed)) is ClassifierScorer
    assert type(as_scorer(MLPModel((3,)), unnamed)) is ConfTrScorer


class LikeAClassifier(Centroid):
    def fit(self, X, y):
        return self


class PerProblem(Scorer):
    def confidence(self, batch):
        return [graph.features[:, 0] for graph in batch]


class Odd(Scorer):
    """Gives one claim no number."""

    def confidence(self, batch):
        return np.where(np.arange(batch.n_claims) == 1, np.nan, 0.5)


@pytest.mark.parametrize(
    ("scorer", "error", "message"),
    [
        (1.5, ValueError, r"'linear'.*1\.5"),
        (True, ValueError, r"'linear'.*True"),
        (Centroid, ValueError, r"'linear'.*Centroid"),
        (StandardScaler(), ValueError, r"estimator.*StandardScaler"),
        (HardCF(), ValueError, r"'linear'.*HardCF"),
        (LikeAClassifier(), TypeError, r"LikeAClassifier\.fit"),
        (PerProblem(), ValueError, "shape"),
        (Odd(), ValueError, r"finite.*nan.*problem 0, claim 1"),
    ],
)
def test_what_is_not_a_scorer(scorer, error, message):
    with pytest.raises(error, match=message):
        HardCF(scorer, alpha=0.2).fit(GRAPHS, Y)
