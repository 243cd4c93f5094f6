"""One scorer protocol: every filter takes every scorer, and keeps what it fitted."""

import copy
import pickle

import numpy as np
import pytest
from assertions import assert_coherent
from levels import fit_levels
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
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
    LinearModel,
    MLPModel,
    Scorer,
)
from skdcf.scorers.resolve import FunctionScorer, as_scorer

N = 79  # (N + 1) / 10 is whole, so that none is left over
GRAPHS, Y = make_reasoning_graphs(N, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, GRAPHS)
FRESH, FRESH_Y = make_reasoning_graphs(30, random_state=1, return_X_y=True)
TRAINED = GaussianNB().fit(FRESH.features, np.concatenate(FRESH_Y))


def first_column(batch):
    return batch.features[:, 0]


class Centroid(Scorer):
    """A scorer of one's own that learns: towards the mean of the true claims."""

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
    """And one that another alpha makes another one."""

    uses_alpha = True

    def fit(self, batch, labels, task=None):
        super().fit(batch, labels)
        self.weights_[0] += 10 * task.alpha
        return self


# By name: what is written for ``scorer=``, and whether it learns.
SCORERS = {
    "none": (None, False),
    "linear": ("linear", True),
    "name": ("nx_reachability", False),
    "number": (3, False),
    "feature": (FeatureScorer(-1), False),
    "frequency": (FrequencyScorer(0.5), False),
    "function": (first_column, False),
    "function scorer": (FunctionScorer(first_column), False),
    "classifier": (LogisticRegression(max_iter=2000), True),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), True),
    "classifier scorer": (ClassifierScorer(GaussianNB(), target="coherent"), True),
    "frozen": (FrozenEstimator(TRAINED), False),
    "linear model": (LinearModel(), True),
    "perceptron": (MLPModel((3,)), True),
    "conformal": (ConfTrScorer(MLPModel(())), True),
    "without a price": (ConfTrScorer(gain=None), True),
    "own": (Centroid(2.0), True),
    "own, for alpha": (Levelled(), True),
}

FILTERS = {
    cls.__name__: cls
    for cls in (
        HardCF,
        IndependentFactuality,
        CoherentConformalFilter,
        BoostedIndependentFactuality,
    )
}


# Filters differ in what they do with a score, so that one of them meets those that train long.
TRAIN_LONG = ("linear", "linear model", "perceptron", "conformal")
EVERY_PAIR = [
    pytest.param(
        cls,
        name,
        id=f"{cls.__name__}-{name}",
        marks=pytest.mark.long if cls is not HardCF and name in TRAIN_LONG else (),
    )
    for cls in FILTERS.values()
    for name in SCORERS
]


def flat(rows):
    return np.concatenate(list(rows))


def levels_of(filter):
    return flat(filter.predict_alpha(FRESH))


@pytest.fixture(params=FILTERS)
def cls(request):
    return FILTERS[request.param]


# --- the matrix


@pytest.mark.parametrize(("cls", "name"), EVERY_PAIR)
def test_every_filter_takes_every_scorer(cls, name):
    scorer, learns = SCORERS[name]
    before = pickle.dumps(scorer)
    filter = cls(scorer, alpha=0.2, random_state=0)
    fitted = clone(filter).fit(GRAPHS, Y)
    assert isinstance(fitted.scorer_, Scorer)
    # None is a model that is trained
    learns |= cls is BoostedIndependentFactuality and scorer is None
    assert fitted.scorer_.requires_fit == learns
    assert fitted.n_calibration_ == (29 if learns else N)  # 0.2 * 30 is whole
    masks = fitted.predict(FRESH)
    assert [len(mask) for mask in masks] == FRESH.sizes.tolist()
    if fitted.edges == "given":
        assert_coherent(masks, FRESH)
    assert 0 <= fitted.score(FRESH, FRESH_Y) <= np.mean([sum(row) for row in FRESH_Y])
    for same in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(GRAPHS, Y)):
        np.testing.assert_array_equal(levels_of(same), levels_of(fitted))
    assert repr(clone(fitted)) == repr(filter)
    assert pickle.dumps(scorer) == before


# --- the order of a fit


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
    assert len(calibrated_on) == 20 and filter.n_calibration_ == 10
    assert numbers(trained_on) | numbers(calibrated_on) == set(range(N))
    assert all(
        numbers(batch).isdisjoint(numbers(trained_on)) for _, batch, *_ in calls[1:]
    )
    rows = sorted(numbers(trained_on))
    np.testing.assert_array_equal(labels, np.concatenate([Y[i] for i in rows]))
    assert task.alpha == 0.25
    assert len(task.groups) == N - 20
    assert len(set(task.groups) & set(groups[sorted(numbers(calibrated_on))])) == 0
    held = sorted(numbers(calibrated_on))
    risk = path_risk(-NUMBERED[held].features[:, 0], NUMBERED[held])
    truth = np.concatenate([Y[i] for i in held]) == 1
    scores = nonconformity_scores(risk, truth, NUMBERED[held].offsets)
    for found in filter.nonconformity_scores_:  # of one answer to each question
        assert found == np.inf or np.isclose(found, scores, atol=1e-9).any()


def test_edges_are_dropped_before_a_scorer_sees_them(calls):
    cut = HardCF(Spy(), edges="none", random_state=0).fit(NUMBERED, Y)
    cut.predict(NUMBERED)
    assert len(calls) > 3 and all(len(batch.edges) == 0 for _, batch, *_ in calls)
    calls.clear()
    HardCF(Spy(), random_state=0).fit(NUMBERED, Y).predict(NUMBERED)
    assert any(len(batch.edges) for _, batch, *_ in calls)


def test_a_scorer_that_does_not_learn_needs_only_its_confidence():
    class Early(Scorer):
        def confidence(self, batch):
            return -batch.depth

    filter = HardCF(Early(), alpha=0.2).fit(GRAPHS, Y)
    assert filter.n_calibration_ == N
    held = HardCF(Early(), calibration_size=30, random_state=0).fit(GRAPHS, Y)
    assert held.n_calibration_ == 30  # what is asked for is done all the same
    with pytest.raises(TypeError, match="confidence"):
        type("Nothing", (Scorer,), {})()


# --- levels


def test_a_scorer_that_knows_alpha_is_fitted_for_each():
    for make in (HardCF, CoherentConformalFilter):
        given = {"calibration_size": 24, "random_state": 0}
        several = fit_levels(make(Levelled(), **given), GRAPHS, Y, [0.1, 0.3])
        for alpha, filter in several.items():
            alone = make(Levelled(), alpha=alpha, **given).fit(GRAPHS, Y)
            np.testing.assert_array_equal(
                filter.scorer_.weights_, alone.scorer_.weights_
            )
            assert filter.threshold_ == alone.threshold_
        first, second = (cf.scorer_.weights_[0] for cf in several.values())
        assert second - first == pytest.approx(2.0)


# --- what a filter holds is its own


def corrupted():
    """The training problems with the opposite labels."""
    return GRAPHS, 1 - LABELS


@pytest.mark.parametrize(
    "scorer",
    [
        ClassifierScorer(GaussianNB()),
        ConfTrScorer(),
        Centroid(),
        Levelled(),
    ],
    ids=lambda scorer: type(scorer).__name__,
)
@pytest.mark.parametrize("cls", [HardCF, CoherentConformalFilter])
def test_a_fitted_scorer_is_fitted_afresh(cls, scorer):
    """It may have seen the problems that calibrate: its own fit counts for nothing."""
    fitted = clone(scorer).fit(*corrupted(), FitTask(0.2))
    before = fitted.confidence(FRESH)
    given = cls(fitted, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    fresh = cls(clone(scorer), alpha=0.2, random_state=0).fit(GRAPHS, Y)
    assert given.n_calibration_ == 29 and given.scorer_ is not fitted
    np.testing.assert_array_equal(levels_of(given), levels_of(fresh))
    np.testing.assert_array_equal(fitted.confidence(FRESH), before)


def test_a_fitted_classifier_is_fitted_afresh_unless_it_is_frozen():
    classifier = GaussianNB().fit(GRAPHS.features, 1 - LABELS)
    means = classifier.theta_.copy()
    given = HardCF(classifier, random_state=0).fit(GRAPHS, Y)
    fresh = HardCF(GaussianNB(), random_state=0).fit(GRAPHS, Y)
    np.testing.assert_array_equal(levels_of(given), levels_of(fresh))
    np.testing.assert_array_equal(classifier.theta_, means)
    frozen = ClassifierScorer(FrozenEstimator(TRAINED), gain=None)
    frozen = HardCF(frozen).fit(GRAPHS, Y)
    assert frozen.n_calibration_ == N
    expected = TRAINED.predict_proba(FRESH.features)[:, 1]
    np.testing.assert_array_equal(frozen.scorer_.confidence(FRESH), expected)


def test_a_method_of_a_fitted_scorer_may_know_these_problems():
    """Nothing is trained then, and nothing held out: that is told."""
    fitted = Centroid().fit(GRAPHS, LABELS)
    with pytest.warns(GuaranteeWarning, match=r"method.*Centroid"):
        filter = HardCF(fitted.confidence).fit(GRAPHS, Y)
    assert filter.n_calibration_ == N
    HardCF(FeatureScorer(0).confidence).fit(GRAPHS, Y)  # nothing was learnt: in silence


CHANGES = [
    (FeatureScorer(0), {"scorer__feature": 3}),
    (
        make_pipeline(StandardScaler(), LogisticRegression()),
        {
            "scorer__standardscaler__with_mean": False,
            "scorer__logisticregression__C": 9,
        },
    ),
    (
        ClassifierScorer(LogisticRegression(max_iter=2000)),
        {"scorer__estimator__C": 1e-6, "scorer__estimator__intercept_scaling": 7.0},
    ),
    (LinearModel(), {"scorer__spread": 5.0}),
    (ConfTrScorer(MLPModel((3,))), {"scorer__model": LinearModel()}),
    (Centroid(), {"scorer__power": 3.0}),
]


@pytest.mark.parametrize(
    ("scorer", "changes"), CHANGES, ids=[type(s).__name__ for s, _ in CHANGES]
)
def test_changed_parameters_change_no_fitted_filter(scorer, changes):
    """Neither through the filter, nor through what the caller still holds."""
    scorer = clone(scorer)
    filter = HardCF(scorer, alpha=0.2, random_state=0).fit(GRAPHS, Y)
    given = {"calibration_size": 24, "random_state": 0}
    few, many = fit_levels(HardCF(scorer, **given), GRAPHS, Y, [0.2, 0.4]).values()
    before = [levels_of(each) for each in (filter, few, many)]
    other = HardCF(scorer).set_params(**changes)
    few.set_params(**changes)
    filter.set_params(**changes)
    for each, expected in zip((filter, few, many), before, strict=True):
        np.testing.assert_array_equal(levels_of(each), expected)
        np.testing.assert_array_equal(levels_of(copy.deepcopy(each)), expected)
        each.calibrate(FRESH, FRESH_Y)
    assert other.scorer is scorer is filter.scorer
    # Copies for several levels hold scorers of their own.
    assert few.scorer is not many.scorer is not scorer
    again = filter.fit(GRAPHS, Y)
    if "scorer__spread" not in changes:  # which decides about a random start alone
        assert (levels_of(again) != before[0]).any()


# --- what may be written for scorer=


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (None, FrequencyScorer),
        ("linear", ConfTrScorer),
        ("nx_reachability", FeatureScorer),
        (np.int64(3), FeatureScorer),
        (np.str_("nx_reachability"), FeatureScorer),
        (GaussianNB(), ClassifierScorer),
        (first_column, FunctionScorer),
        (lambda batch: batch.depth, FunctionScorer),
        (MLPModel(), ConfTrScorer),
        (Centroid(), Centroid),
    ],
)
def test_as_scorer(given, kind):
    made = as_scorer(given, GRAPHS)
    assert type(made) is kind and made is not given
    again = as_scorer(made, GRAPHS)
    assert type(again) is kind and again is not made
    assert repr(again) == repr(made)


def test_nothing_said_is_a_classifier_where_there_is_no_frequency():
    unnamed = GRAPHS.replace_features(GRAPHS.features)
    assert type(as_scorer(None, unnamed)) is ClassifierScorer


def test_a_feature_of_a_scorers_name_is_not_guessed_at():
    odd = GRAPHS.replace_features(GRAPHS.features[:, :2], ["linear", "b"])
    with pytest.raises(ValueError, match=r"Pass FeatureScorer\('linear'\)"):
        HardCF("linear").fit(odd, Y)
    assert HardCF(FeatureScorer("linear")).fit(odd, Y).n_calibration_ == N


@pytest.mark.parametrize(
    "wrong",
    [1.5, True, [0], {}, b"name", Centroid, MLPModel, StandardScaler(), object()],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_scorer(cls, wrong):
    match = r"None.*'linear'.*feature"
    with pytest.raises(ValueError, match=match):
        cls(wrong).fit(GRAPHS, Y)


def test_scores_are_numbers_one_for_each_claim():
    class Wrong(Scorer):
        def __init__(self, out):
            self.out = out

        def confidence(self, batch):
            return {"short": [0.0], "nan": np.full(batch.n_claims, np.nan)}[self.out]

    with pytest.raises(ValueError, match=r"must return .* \(1,\)"):
        HardCF(Wrong("short")).fit(GRAPHS, Y)
    with pytest.raises(ValueError, match=r"finite confidences.*nan.*claim 0"):
        HardCF(Wrong("nan")).fit(GRAPHS, Y)


# --- the entry point that evaluation shares


def test_a_scorer_that_is_written_as_a_classifier_is_told_how_to_be_one():
    class LikeAClassifier(Scorer):
        def fit(self, X, y):
            return self

        def confidence(self, batch):
            return batch.features[:, 0]

    class PerProblem(Scorer):
        def confidence(self, batch):
            return [graph.features[:, 0] for graph in batch]

    graphs, y = make_reasoning_graphs(30, random_state=0, return_X_y=True)
    with pytest.raises(TypeError, match=r"LikeAClassifier"):
        HardCF(LikeAClassifier(), alpha=0.2).fit(graphs, y)
    with pytest.raises(ValueError, match=r"number .*claim"):
        HardCF(PerProblem(), alpha=0.2).fit(graphs, y)
