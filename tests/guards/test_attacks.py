"""Attempts to make a guarantee keep more than it may, or to mislead it unnoticed."""

import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from levels import fit_levels, thresholds, with_alpha
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.apps.reporting import write_report
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import CalibratedSearch, evaluate_filter, leave_one_out
from skdcf.exceptions import CalibrationWarning, LabelWarning
from skdcf.graphs import as_batch
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.inspection import explain
from skdcf.persistence import load_threshold, save_threshold
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


@pytest.mark.parametrize("name", EVERY)
def test_the_copies_would_be_kept_without_the_margin(name, monkeypatch):
    """So that the test above can fail."""
    if name in ("one", "share by", "by"):
        return
    rng = np.random.default_rng(1)
    graphs = [
        ReasoningGraph(rng.normal(size=(4, 30)) * 3, [(0, 1), (1, 2), (2, 3)])
        for _ in range(12)
    ]
    monkeypatch.setattr("skdcf.guards.lowered", lambda scores, *_: scores)
    monkeypatch.setattr("skdcf.guards.below_copies", lambda scores: scores)
    slipped = 0
    for graph in graphs:
        many = GraphBatch.from_graphs([graph] * 200)
        cf = HardCF(Single(), alpha=0.3, guarantee=EVERY[name], random_state=0)
        cf.fit(many, [np.zeros(4, int)] * 200)
        slipped += sum(map(np.sum, cf.predict([graph])))
    assert slipped > 0


# --- one statement in several forms, after each way to get a filter


def agree(cf, X, alphas=(0.05, 0.1, 0.3)):
    masks = flat_masks(cf, X, alphas)
    for mask, alpha in zip(masks, alphas, strict=True):
        np.testing.assert_array_equal(flat(cf.predict(X, alpha)), mask)
        risk, t = flat(cf.path_risk(X)), thresholds(cf, X, alpha)
        np.testing.assert_array_equal(risk < np.repeat(t, X.sizes), mask)
    levels = flat(cf.predict_alpha(X))
    np.testing.assert_array_equal(levels <= np.array(alphas)[:, None], masks)
    return masks


@pytest.mark.parametrize("name", EVERY)
def test_ways_to_the_same_filter(data, name, tmp_path):
    graphs, y = data
    known, new = graphs[:200], graphs[200:]
    cf = HardCF("frequency-score", ties="jitter", guarantee=EVERY[name], random_state=0)
    cf.fit(known, y[:200])
    masks = agree(cf, new)
    pairs = [(known[:70], y[:70]), (known[70:200], y[70:200])]
    np.testing.assert_array_equal(
        agree(cf.calibrate_parts([cf.calibration_part(*p) for p in pairs]), new), masks
    )
    parts = [flat(cf.predict(part, 0.1)) for part in (new[:9], new[9:])]
    np.testing.assert_array_equal(flat(parts), masks[1])
    np.testing.assert_array_equal(agree(pickle.loads(pickle.dumps(cf)), new), masks)
    for alpha, mask in zip((0.05, 0.1, 0.3), masks, strict=True):
        own = with_alpha(cf, alpha)
        np.testing.assert_array_equal(flat(own.predict(new)), mask)
    learnt = HardCF(ClassifierScorer(), guarantee=EVERY[name], random_state=0)
    together = fit_levels(learnt, known, y[:200], [0.1, 0.3])
    for one in together.values():
        alone = HardCF(ClassifierScorer(), guarantee=EVERY[name], random_state=0)
        alone.set_params(alpha=one.alpha).fit(known, y[:200])
        assert alone.n_calibration_ == one.n_calibration_
        a = agree(alone, new, (one.alpha,))
        np.testing.assert_array_equal(agree(one, new, (one.alpha,)), a)


@pytest.mark.parametrize("name", ["one", "by", "share"])
def test_what_a_search_found_is_calibrated_for_the_guarantee(data, name):
    graphs, y = data
    cf = HardCF("frequency-score", guarantee=EVERY[name])
    search = GridSearchCV(cf, {"scorer": ["frequency-score", "nx_reachability"]}, cv=2)
    best = CalibratedSearch(search, random_state=0).fit(graphs[:200], y[:200])
    best = best.best_estimator_
    masks = agree(best, graphs[200:])
    again = type(best.calibration_)
    own = HardCF(best.scorer, guarantee=EVERY[name]).fit(graphs[:200], y[:200])
    assert type(own.calibration_) is again and best.n_calibration_ < 200
    allowed = best.calibration_.guarantee.loss(
        flat(y[200:]), masks[2], graphs[200:].offsets
    )
    assert allowed.mean() < 0.3 + 4 * 0.46 * np.sqrt(1 / 100 + 1 / best.n_calibration_)


# --- nothing, and what nobody knows


@pytest.mark.filterwarnings("ignore:.*no claims judged")
@pytest.mark.parametrize("name", EVERY)
def test_problems_without_claims_unknown_labels_and_small_samples(data, name):
    graphs, y = data
    empty = graphs[0].subgraph(np.zeros(graphs[0].n_claims, bool))
    some = GraphBatch.from_graphs([*graphs[:60], empty])
    labels = [*y[:60], np.empty(0, int)]
    unknown = [np.where(row == 0, -1, row) for row in labels]
    cf = HardCF("frequency-score", guarantee=EVERY[name], alpha=0.2)
    false = agree(cf.fit(some, labels), some)
    np.testing.assert_array_equal(agree(cf.fit(some, unknown), some), false)
    nobody = [np.full(len(row), -1) for row in labels]
    if name != "one":
        worst = np.concatenate(nobody) != 1
        assert agree(cf.fit(some, nobody), some).sum() <= worst.sum()
    with pytest.warns(CalibrationWarning):  # k = 0
        cf.fit(graphs[:2], y[:2])
    assert not flat_masks(cf, graphs[:2], [0.2]).any()
    assert np.all(thresholds(cf, graphs[:2]) == -np.inf)


@pytest.mark.parametrize("names", [None, ["p", "q"]])
@pytest.mark.parametrize("ties", ["exclude", "jitter"])
def test_answers_without_claims_alone(data, names, ties):
    """They name no columns, as they do among others."""
    graphs, y = data
    known = as_batch(graphs[:60])
    known = known.replace_features(known.features[:, :2], names)
    cf = HardCF(0, ties=ties, alpha=0.2, random_state=0).fit(known, y[:60])
    empty = [ReasoningGraph(None, claims=[]) for _ in range(2)]
    for method in (cf.predict, cf.predict_alpha, cf.path_risk):
        assert [len(row) for row in method(empty)] == [0, 0]
    assert cf.confidence(empty).shape == (0,)
    assert cf.score([*empty], [[], []]) == 0
    mixed = cf.predict([known[0], empty[0]])
    np.testing.assert_array_equal(mixed[0], cf.predict(known[:1])[0])
    with pytest.raises(ValueError, match="X has 0 features"):
        cf.predict([ReasoningGraph(None, claims=["a claim"])])


def test_a_report_and_leave_one_out_of_unknown_labels(data):
    graphs, y = data
    nobody = [np.full(len(row), -1) for row in y]
    for guarantee in (None, NoFalseClaim(max_false=1), NoFalseClaim(by=long)):
        cf = HardCF("frequency-score", guarantee=guarantee, alpha=0.1).fit(graphs, y)
        report = evaluate_filter(cf, graphs, nobody, [0.1, 0.5])
        assert (report.retention == 0).all()
        with pytest.warns(LabelWarning, match="no claims judged"):
            held = leave_one_out(cf, graphs, nobody, [0.1])
        assert (held.coverage >= 0.9).all()


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


@pytest.mark.long
def test_parts_of_other_processes_are_known_again(data):
    """Sets have another order in each process, and what was sent is another object."""
    graphs, y = data
    by = lambda b: [n in {3, 4, 5} or "x" in {"a", "b", "c"} for n in b.sizes]  # noqa: E731
    cf = HardCF(ClassifierScorer(), guarantee=NoFalseClaim(by=by), random_state=0)
    cf.fit(graphs[:200], y[:200])
    pairs = [(graphs[200:240], y[200:240]), (graphs[240:], y[240:])]
    with parallel_config(backend="loky"):
        parts = Parallel(2)(delayed(cf.calibration_part)(*pair) for pair in pairs)
    assert cf.calibrate_parts(parts).n_calibration_ == 88


def at_least(batch, n):
    return batch.sizes > n


@pytest.mark.long
@pytest.mark.parametrize("kind", ["partial", "list"])
def test_other_sessions_take_functions_for_what_they_are(data, kind, tmp_path):
    """What is printed of a function says where it lies in memory."""
    graphs, y = data
    guarantee = {
        "partial": lambda: NoFalseClaim(by=partial(at_least, n=4)),
        "list": lambda: NoFalseClaim(by=[long, at_least_four]),
    }[kind]()
    cf = HardCF("frequency-score", guarantee=guarantee).fit(graphs, y)
    file = tmp_path / "filter.pickle"
    file.write_bytes(pickle.dumps((cf, graphs, thresholds(cf, graphs))))
    code = (
        "import pickle, sys, numpy as np; sys.path[:0] = sys.argv[2:];"
        "from levels import thresholds;"
        "cf, X, t = pickle.load(open(sys.argv[1], 'rb'));"
        "np.testing.assert_allclose(thresholds(cf, X), t)"
    )
    here = os.path.dirname(__file__)
    shared = os.path.dirname(here)
    run = [sys.executable, "-W", "ignore", "-c", code, str(file), here, shared]
    subprocess.run(run, check=True)


def at_least_four(batch):
    return batch.sizes >= 4


# --- the company that a problem is in, and entries that look alike


# --- a level of the guarantee's own


def test_the_level_of_a_guarantee_goes_with_the_filter(data, tmp_path):
    """A threshold in a file was that of alpha, where the promise was a smaller bound."""
    graphs, y = data
    bound = ExpectedFalse(bound=0.05)
    cf = HardCF("frequency-score", alpha=0.3, guarantee=bound).fit(graphs, y)
    for one in (cf, with_alpha(cf, 0.1), with_alpha(cf, 0.02)):
        value = load_threshold(save_threshold(one, tmp_path / "t.json"))
        assert value.threshold == one.threshold()
        kept = [value.keep(risk) for risk in one.path_risk(graphs)]
        np.testing.assert_array_equal(flat(kept), flat(one.predict(graphs)))
        assert one.calibration_.guarantee.level(None, one.alpha) == value.alpha
        assert explain(one, graphs[0]).alpha == value.alpha
    assert save_threshold(cf, tmp_path / "t.json", 0.3).exists()
    assert load_threshold(tmp_path / "t.json").threshold == cf.threshold(0.3)
    page = write_report(tmp_path / "r.html", cf, graphs, y).read_text("utf-8")
    assert "At alpha = 0.05" in page


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
