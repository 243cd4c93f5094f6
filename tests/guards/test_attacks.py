"""Attempts to make a guarantee keep more than it may, or to mislead it unnoticed."""

import numpy as np
import pytest
from levels import thresholds, with_alpha
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.scorers import ClassifierScorer, Scorer
from skdcf.scorers.resolve import FunctionScorer
from skdcf.uses import flat_masks

TREE = ClassifierScorer(DecisionTreeClassifier(max_depth=4, random_state=0))
pytestmark = pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")


def long(batch):
    return np.where(batch.sizes > 4, "long", "short")


EVERY = {
    "none": None,
    "one": NoFalseClaim(max_false=1),
    "delta": NoFalseClaim(delta=0.1),
    "by": NoFalseClaim(by=long),
    "share": ExpectedFalse(),
    "share by": ExpectedFalse(by=long),
}


def flat(rows):
    return np.concatenate(list(rows))


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(300, "felm", random_state=3, return_X_y=True)


class Single(Scorer):
    """Computes in float32, with sums that depend on the size of the batch."""

    def fit(self, batch, labels, task):
        width = batch.features.shape[1]
        self.coef_ = np.random.default_rng(0).normal(size=width).astype(np.float32)
        return self

    def confidence(self, batch):
        rows = batch.features.astype(np.float32)
        if len(rows) > 100:  # another order of summation
            return (rows[:, ::-1].copy() @ self.coef_[::-1].copy()).astype(float)
        return np.array([sum(row * self.coef_) for row in rows], dtype=float)


# --- exact copies of one problem, in float32: nothing false may be kept


@pytest.mark.parametrize("ties", ["exclude", "jitter"])
@pytest.mark.parametrize("name", EVERY)
def test_copies_in_float32_keep_no_false_claim(name, ties):
    rng = np.random.default_rng(1)
    graph = ReasoningGraph(rng.normal(size=(4, 30)) * 3, [(0, 1), (1, 2), (2, 3)])
    labels = np.zeros(4, int)  # two false claims at least are in any prefix of two
    many = GraphBatch.from_graphs([graph] * 200)
    cf = HardCF(Single(), alpha=0.3, ties=ties, guarantee=EVERY[name], random_state=0)
    cf.fit(many, [labels] * 200)
    allowed = 1 if name == "one" else 0
    for X in (many, [graph], [graph] * 3, [graph] * 40):
        kept = cf.predict(X)
        assert max(map(np.sum, kept)) <= allowed


# --- one statement in several forms, after each way to get a filter


# --- nothing, and what nobody knows


# --- groups


def test_groups_that_look_at_the_batch_are_refused(data):
    graphs, y = data
    rank = lambda batch: batch.sizes > np.median(batch.sizes)  # noqa: E731
    for guarantee in (NoFalseClaim(by=rank), ExpectedFalse(by=rank)):
        with pytest.raises(ValueError, match="the group"):
            HardCF("frequency-score", guarantee=guarantee).fit(graphs, y)


# --- settings that change behind the filter's back


def test_another_function_of_the_same_name_is_noticed(data):
    graphs, y = data
    both = [lambda b: b.sizes > 4, lambda b: b.sizes <= 4]
    cf = HardCF("frequency-score", guarantee=NoFalseClaim(by=both[0]))
    before = thresholds(cf.fit(graphs, y), graphs)
    cf.set_params(guarantee__by=both[1])
    with pytest.raises(ValueError, match="guarantee"):
        cf.predict(graphs)
    cf.set_params(guarantee__by=both[0])
    np.testing.assert_array_equal(thresholds(cf, graphs), before)


def test_parts_are_for_the_guarantee_that_made_them(data):
    graphs, y = data
    cf = HardCF("frequency-score", guarantee=NoFalseClaim(max_false=2)).fit(graphs, y)
    generous = cf.calibration_part(graphs, y)
    for guarantee in (
        None,
        NoFalseClaim(max_false=1),
        NoFalseClaim(max_false=2, by=long),
        ExpectedFalse(),
    ):
        cf.set_params(guarantee=guarantee)
        with pytest.raises(ValueError, match="again"):
            cf.calibrate_parts([generous])
        with pytest.raises(ValueError, match="again"):
            cf.calibrate_parts([cf.calibration_part(graphs, y), generous])


def test_parts_are_for_the_fit_that_made_them(data):
    """Scores of one fit calibrated the next: 0.136 missed where 0.1 was promised."""
    graphs, y = data
    cf = HardCF(ClassifierScorer(), random_state=0).fit(graphs[:100], y[:100])
    new = graphs[100:], y[100:]
    part, threshold = cf.calibration_part(*new), cf.threshold_
    with_alpha(cf.fit(graphs[:100], y[:100]), 0.3).calibrate_parts(
        [part]
    )  # the same fit
    assert cf.threshold_ == threshold
    others = {
        "training": lambda: cf.fit(graphs[:99], y[:99]),
        "seed": lambda: cf.set_params(random_state=1).fit(graphs[:100], y[:100]),
        "scorer": lambda: cf.set_params(scorer=TREE).fit(graphs[:100], y[:100]),
        "HardCF": lambda: HardCF("frequency-score").fit(graphs, y),
    }
    for refit in others.values():
        other = refit()
        with pytest.raises(ValueError, match="again"):
            other.calibrate_parts([part])
        with pytest.raises(ValueError, match="again"):
            other.calibrate_parts([other.calibration_part(*new), part])
    drawn = HardCF("frequency-score", ties="jitter", random_state=0).fit(graphs, y)
    part = drawn.calibration_part(graphs, y)
    with pytest.raises(ValueError, match="random_state"):
        drawn.set_params(random_state=1).fit(graphs, y).calibrate_parts([part])


def larger_than(n):
    return lambda batch: batch.sizes > n


def test_parts_are_for_the_functions_that_made_them(data):
    """Of two lambdas, whatever they do: 0.19 missed in a group where 0.1 was promised."""
    graphs, y = data
    pairs = [
        (lambda b: b.sizes > 4, lambda b: b.sizes > 5),
        (larger_than(4), larger_than(5)),
        (lambda b, n=4: b.sizes > n, lambda b, n=5: b.sizes > n),
    ]
    for first, second in pairs:
        cf = HardCF("frequency-score", guarantee=NoFalseClaim(by=first)).fit(graphs, y)
        part = cf.calibration_part(graphs, y)
        cf.calibrate_parts([part]).set_params(guarantee__by=second)
        with pytest.raises(ValueError, match=r"by .*calibrat"):
            cf.calibrate_parts([part])
    one, other = FunctionScorer(lambda b: b.depth), FunctionScorer(lambda b: -b.depth)
    cf = HardCF(one).fit(graphs, y)
    part = cf.calibration_part(graphs, y)
    with pytest.raises(ValueError, match="scorer"):
        cf.set_params(scorer=other).fit(graphs, y).calibrate_parts([part])


# --- the company that a problem is in, and entries that look alike


# --- a level of the guarantee's own


# --- columns in another order


@pytest.mark.parametrize("of", ["by", "list"])
def test_columns_in_another_order_where_a_function_reads_them(data, of):
    """The scorer finds its column by its name, but a function of the batch does not."""
    graphs, y = data
    there = lambda b: np.add.reduceat(b.features[:, -3], b.offsets[:-1])  # noqa: E731
    guarantee = {
        "by": NoFalseClaim(by=lambda b: there(b) > 2),
        "list": NoFalseClaim(by=[lambda b: there(b) > 2, long]),
    }[of]
    backwards = graphs.replace_features(
        graphs.features[:, ::-1], graphs.feature_names[::-1]
    )
    plain = HardCF("frequency-score").fit(graphs, y)
    np.testing.assert_array_equal(
        flat_masks(plain, backwards, [0.1]), flat_masks(plain, graphs, [0.1])
    )
    cf = HardCF("frequency-score", guarantee=guarantee).fit(graphs, y)
    with pytest.raises(ValueError, match=r"feature.*names"):
        flat_masks(cf, backwards, [0.1])


# --- a scorer that learns, and does not say so


class Undeclared(Scorer):
    """Forgot ``requires_fit = True``."""

    def fit(self, batch, labels, task=None):
        self.tree_ = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
        self.tree_.fit(batch.features, labels == 1)
        return self

    def confidence(self, batch):
        return self.tree_.predict_proba(batch.features)[:, -1]


class Declared(Undeclared):
    requires_fit = True


@pytest.mark.parametrize("kind", [Undeclared, Declared])
def test_labels_that_calibrate_are_hidden_from_a_scorer(kind):
    """It was trained on what calibrated: 0.23 missed where 0.1 was promised."""
    rng, missed, kept = np.random.default_rng(0), [], 0

    def draw(n):
        y = rng.random(n) < 0.6
        return rng.normal(size=(n, 5)) + 0.7 * np.outer(y, [1, 0, 0, 0, 0]), y

    for _ in range(20):
        (X, y), (new, truth) = draw(300), draw(500)
        cf = HardCF(kind(), random_state=0).fit(X, y)
        missed.append((cf.predict(new) & ~truth).mean())
        own = HardCF(kind(), calibration_size=0.5, random_state=0).fit(X, y)
        kept += own.predict(new).sum()  # there it may see labels
    assert kept > 0
    assert np.mean(missed) < 0.1 + 4 * np.std(missed) / 20**0.5


def test_a_frozen_classifier_needs_no_labels(data):
    graphs, y = data
    trained = DecisionTreeClassifier(max_depth=3, random_state=0)
    trained.fit(graphs[:100].features, flat(y[:100]))
    cf = HardCF(FrozenEstimator(trained)).fit(graphs[100:], y[100:])
    alike = HardCF(FrozenEstimator(trained))
    alike.fit(graphs[100:200], [np.zeros_like(row) for row in y[100:200]])
    assert cf.n_calibration_ == 199
    np.testing.assert_array_equal(
        flat(alike.path_risk(graphs)), flat(cf.path_risk(graphs))
    )
