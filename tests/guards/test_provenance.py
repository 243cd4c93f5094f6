"""What made the problems is compared at every entry point; one answer per question calibrates."""

import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import FunctionTransformer

from skdcf import GraphBatch, HardCF, ReasoningGraph, load, save
from skdcf.datasets import make_reasoning_graphs
from skdcf.edges import chain_edges
from skdcf.evaluation import compare_filters, evaluate_filter
from skdcf.exceptions import (
    CalibrationWarning,
    GuaranteeWarning,
)
from skdcf.features import AgreementFeatures, GivenColumns, GraphFeatures
from skdcf.guarantees import NoFalseClaim
from skdcf.monitoring import CoverageMonitor
from skdcf.scorers import ClassifierScorer, Scorer
from skdcf.uses import seen

EDGES = {"given": [(0, 1)], "none": (), "unknown": None}


def problem(edges="given", seed=0, n_claims=2, **more):
    x = np.random.default_rng(seed).normal(size=(n_claims, 1))
    edges = EDGES[edges] if n_claims > 1 else None
    return ReasoningGraph(x, edges, **more)


def problems(n, edges="given", **more):
    return [problem(edges, seed, **more) for seed in range(n)], [[1, 1], [1, 0]] * (
        n // 2
    )


# --- edges


@pytest.mark.parametrize("calibrated", ["given", "none"])
def test_unknown_edges_are_refused(calibrated):
    cf = HardCF(0).fit(*problems(20, calibrated))
    others = [problem(calibrated, 50 + i) for i in range(999)]
    for method in (cf.predict, cf.path_risk, cf.confidence, cf.filter):
        for X in ([problem("unknown", 49)], [*others, problem("unknown", 49)]):
            with pytest.raises(ValueError, match=rf"edges of 1 of {len(X)} "):
                method(X)
        method([problem(used, 49) for used in ("given", "none")])


def with_edges(n, seed=0):
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (0, 3)]
    names = ["frequency-score", "other"]
    table = rng.normal(size=(n, 4, 2))
    return [ReasoningGraph(row, edges, feature_names=names) for row in table]


def stripped(graph):
    return ReasoningGraph(graph.features, None, feature_names=graph.feature_names)


def test_columns_read_edges_only_if_those_of_calibration_were_known():
    y = [np.arange(4) < 2 + i % 3 for i in range(80)]
    bare = [stripped(graph) for graph in with_edges(80)]
    cf = HardCF(features=GraphFeatures(), edges="none", random_state=0).fit(bare, y)
    cf.predict([stripped(graph) for graph in with_edges(30, seed=1)])
    with pytest.raises(ValueError, match="known edges"):
        cf.predict(with_edges(30, seed=1))


def test_a_mix_of_edges_cannot_calibrate():
    X, y = problems(20)
    with pytest.raises(ValueError, match=r"edges.*none"):
        HardCF(0).fit([*X, problem("unknown")], [*y, [1, 1]])
    HardCF(0).fit(
        [*X, problem("unknown", n_claims=1)], [*y, [1]]
    )  # one claim needs none


def test_who_reads_no_edges_needs_none():
    known, y = problems(20, claims=["a", "b"], feature_names=["frequency-score"])
    new = [problem("unknown", 99, claims=["a", "b"], feature_names=["frequency-score"])]
    for cf in (
        HardCF(0, edges="none"),
        HardCF(0, edges="none", features=GivenColumns(["frequency-score"])),
        HardCF(0, edges=chain_edges),
    ):
        assert len(cf.fit(known, y, groups=False).predict(new)[0]) == 2
    reads = HardCF(0, edges="none", features=GraphFeatures()).fit(
        known, y, groups=False
    )
    with pytest.raises(ValueError, match="edges"):
        reads.predict(new)


def test_columns_that_are_taken_away_read_edges_still():
    """After set_params the fitted columns are computed, and edges were not compared."""
    cf = HardCF(0, edges="none", features=GraphFeatures()).fit(*problems(20))
    masks = cf.predict([problem(seed=50)])
    for features in (None, GivenColumns(["frequency-score"])):
        cf.set_params(features=features)
        with pytest.raises(ValueError, match="known edges"):
            cf.predict([problem("unknown", 50)])
    cf.set_params(features=GraphFeatures())
    np.testing.assert_array_equal(cf.predict([problem(seed=50)])[0], masks[0])


@pytest.mark.parametrize("name", ["alternatives", "context"])
def test_what_is_there_has_to_stay_there(name):
    X, y = problems(20, **{name: ["another text"]})
    cf = HardCF(0).fit(X, y, groups=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # of another number of them
        cf.predict([problem(seed=50, **{name: ()})])
    with pytest.raises(ValueError, match=name):
        cf.predict([*X, problem(seed=50)])
    bare = HardCF(0).fit(*problems(20))
    with pytest.raises(ValueError, match=name):
        bare.predict(X[:1])


@pytest.mark.parametrize(("n_now", "warned"), [(1, True), (4, False), (9, True)])
def test_another_number_of_alternatives_is_told(n_now, warned, tmp_path):
    """With one where ten calibrated, .17 was missed for .1: one agrees with itself."""
    X = [problem(seed=i, alternatives=["another"] * (3 + i % 3)) for i in range(30)]
    cf = HardCF(0).fit(X, problems(30)[1], groups=False)
    cf = load(save(cf, tmp_path / "filter.skops"))
    new = [problem(seed=50 + i, alternatives=["another"] * n_now) for i in range(3)]
    blank = problem(seed=60, alternatives=["another", "a third", "a fourth", " "])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cf.predict([*new, blank])
    told = [str(w.message) for w in caught if "alternatives" in str(w.message)]
    assert len(told) == warned
    expected = f"alternatives.*3 of 4 problems.*{n_now}"
    assert all(re.search(expected, text) for text in told)
    # What is to calibrate sets the number.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        cf.calibrate(new, [[1, 0]] * 3, groups=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuaranteeWarning)
        warnings.simplefilter("ignore", CalibrationWarning)
        cf.predict(new)


# --- provenance


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [("model", "m", "n"), ("samples", 5, 4), ("edges_corrected", True, False)],
)
def test_a_value_that_calibration_did_not_have_is_refused(key, one, other):
    X, y = problems(20, provenance={key: one})
    new, labels = problems(20, provenance={key: other})
    cf = HardCF(0).fit(X, y)
    for act in (cf.predict, cf.path_risk, cf.filter):
        with pytest.raises(ValueError, match=rf"{key}.*{one!r}.*{other!r}"):
            act(new)
    cf.calibrate(new, labels).predict(new)
    assert cf.provenance_[key] == [other]
    with pytest.raises(ValueError, match=rf"{key}.*{other!r}.*{one!r}"):
        cf.predict(X)
    # The guarantee is for the mixture.
    HardCF(0).fit([*X, *new], [*y, *labels]).predict(new)


def test_only_calibration_problems_are_compared():
    X, y = problems(40, provenance={"model": "m"})
    others = [problem(seed=i, provenance={"model": "n"}) for i in range(40, 60)]
    labels = [[1, 1], [1, 0]] * 10
    cf = HardCF(ClassifierScorer(), calibration_size=0).fit(others, labels)
    cf.calibrate(X, y).predict(X)
    with pytest.raises(ValueError, match="model"):
        cf.predict(others)


def test_keys_of_labels_are_compared_only_with_labels():
    X, y = problems(20, provenance={"label_meaning": "true"})
    new, labels = problems(20, provenance={"label_meaning": "supported"})
    cf = HardCF(0).fit(X, y)
    cf.predict(new)
    with pytest.raises(ValueError, match="label_meaning"):
        cf.score(new, labels)


def test_a_key_of_one_side_gives_one_warning():
    X, y = problems(20, provenance={"model": "m", "prompt": "p"})
    cf = HardCF(0).fit(X, y)
    new = [problem(seed=i) for i in range(50, 60)]
    with pytest.warns(GuaranteeWarning, match=r"model.*prompt") as found:
        cf.predict(new)
    assert len(found) == 1
    with pytest.warns(GuaranteeWarning, match="model"):
        cf.predict([*X, *new])
    with pytest.warns(GuaranteeWarning, match="model"):
        HardCF(0).fit(*problems(20)).predict(X)
    some = [graph.replace(provenance=None) for graph in X[:10]] + X[10:]
    HardCF(0).fit(some, y).predict(X)  # a warning would be an error here


MIXED = {
    "provenance": lambda i: {"provenance": {"model": "mn"[i % 2]}},
    "context": lambda i: {"context": ["a passage"] if i % 2 else None},
}


@pytest.mark.parametrize("field", MIXED)
@pytest.mark.parametrize("protocol", ["folds", "leave-one-out"])
def test_mixtures_are_compared_with_mixtures(field, protocol):
    """A comparison fits filters that hold out one question, which has only one kind."""
    X = [problem(seed=i, **MIXED[field](i)) for i in range(60)]
    y = [[1, 1], [1, 0], [1, 1]] * 20
    run = {"protocol": protocol, "random_state": 0}
    run["cv"] = 3 if protocol == "folds" else 2
    filter = HardCF(ClassifierScorer(), random_state=0)
    assert len(compare_filters({"cf": filter}, X, y, [0.3], **run).rows) == 1


def test_labels_of_another_kind_do_not_evaluate_or_monitor():
    made = {"label_meaning": "true", "model": "m"}
    cf = HardCF(0, alpha=0.3).fit(*problems(20, provenance=made))
    for key in made:
        new = [problem(seed=i, provenance=made | {key: "x"}) for i in range(50, 60)]
        labels = [[1, 1], [1, 0]] * 5
        for act in (
            lambda new=new, labels=labels: evaluate_filter(cf, new, labels, [0.3]),
            lambda new=new, labels=labels: CoverageMonitor(cf).update(new, labels),
        ):
            with pytest.raises(ValueError, match=key):
                act()


def test_values_of_parts_are_united():
    parts = [problems(20, provenance={"model": name}) for name in ("m", "n")]
    cf = HardCF(0).fit(*problems(20, provenance={"model": "k"}))
    cf.calibrate_parts([cf.calibration_part(*part, groups=False) for part in parts])
    assert cf.provenance_["model"] == ["m", "n"]
    for X, _ in parts:
        cf.predict(X)


def test_edges_that_all_have_and_then_none_are_doubted():
    """Left out as known to be none, they cover .62 for .8, and nothing was said."""
    cf = HardCF(0).fit(*problems(20))
    with pytest.warns(GuaranteeWarning, match=r"20 problems.*100%"):
        cf.predict([problem("none", seed) for seed in range(20)])
    cf.predict([problem("none", seed) for seed in range(19)])
    cf.predict([problem("none" if seed else "given", seed) for seed in range(20)])
    half = [*problems(20)[0], *(problem("none", seed) for seed in range(20, 40))]
    cf = HardCF(0).fit(half, [[1, 1], [1, 0]] * 20)
    cf.predict([problem("none", seed) for seed in range(20)])


# --- what is left over


# --- seen problems


def asked(n, start=0):
    X = [
        ReasoningGraph([[i * 0.1]], claims=[f"claim {i}"], problem=f"question {i}")
        for i in range(start, start + n)
    ]
    return X, [[i % 3 > 0] for i in range(n)]


def test_problems_that_trained_do_not_calibrate():
    X, y = asked(40)
    cf = HardCF(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"train.*filter"):
        cf.calibrate(X, y)
    again = [ReasoningGraph([[9.0]], claims=["other"], problem=x.problem) for x in X]
    with pytest.raises(ValueError, match=r"train.*filter"):
        cf.calibrate(again, y)
    trained, calibrated = seen(cf, X)
    assert trained.sum() + calibrated.sum() == 40 and not (trained & calibrated).any()
    cf.calibrate(*asked(40, 100))
    assert seen(cf, asked(40, 100)[0])[1].sum() == cf.n_calibration_
    fixed = HardCF(0).fit(X, y)  # nothing learns, so nothing has trained
    assert fixed.calibrate(X, y).n_calibration_ == 39


# --- one answer per question, and ranks


def answers(n_questions, n_answers, seed, spread=0.1):
    """Near-copies: answers to a question share most of their risk and their truth."""
    rng = np.random.default_rng(seed)
    question = np.repeat(np.arange(n_questions), n_answers)
    common = rng.normal(size=n_questions)[question]
    x = common + spread * rng.normal(size=len(question))
    truth = common + spread * rng.normal(size=len(question)) > 0
    return x[:, None], truth, question


def test_the_answer_is_chosen_by_its_content_and_by_no_seed():
    X, y, groups = answers(30, 5, 0)
    first = HardCF(0, random_state=0).fit(X, y, groups=groups)
    order = np.random.default_rng(1).permutation(len(X))
    for other in (
        HardCF(0, random_state=7).fit(X, y, groups=groups),
        HardCF(0).fit(X[order], y[order], groups=groups[order]),
    ):
        found = other.nonconformity_scores_
        np.testing.assert_array_equal(found, first.nonconformity_scores_)
    assert first.n_calibration_ == 29  # of rank 3, like 30
    alone = HardCF(0).fit(X, y, groups=False)
    assert alone.n_calibration_ == 149


def test_one_answer_per_question_in_each_part_of_by():
    X, y, groups = answers(40, 4, 0)
    part = np.tile([0, 0, 1, 1], 40)
    cf = HardCF(0, alpha=0.2, guarantee=NoFalseClaim(by="part"))
    batch = GraphBatch.from_arrays(
        X,
        np.arange(161),
        metadata=[
            {"part": int(p), "group": int(g)} for p, g in zip(part, groups, strict=True)
        ],
    )
    cf.fit(batch, y.astype(int))
    assert [one.n for one in cf.calibration_.steps] == [39, 39]


def test_a_question_split_over_parts_counts_once():
    X, y, groups = answers(99, 3, 0)
    cf = HardCF(0).fit(*answers(20, 1, 5)[:2])
    rows = np.array_split(np.random.default_rng(0).permutation(297), 4)
    parts = [cf.calibration_part(X[r], y[r], groups[r]) for r in rows]
    found = cf.calibrate_parts(parts).nonconformity_scores_
    whole = HardCF(0).fit(X, y, groups=groups).nonconformity_scores_
    np.testing.assert_allclose(found, whole, rtol=1e-12)


@pytest.mark.parametrize("delta", [None, 0.1])
def test_the_fewest_with_the_same_rank_calibrate(delta):
    X, y, _ = answers(119, 1, 0)
    cf = HardCF(0, alpha=0.1, guarantee=NoFalseClaim(delta=delta)).fit(X, y)
    n, left = cf.n_calibration_, cf.unused_indices_
    assert n + len(left) == 119
    used = np.setdiff1d(np.arange(119), left)
    for few, same in ((used, True), (used[:-1], False)):
        sized = HardCF(
            0, guarantee=NoFalseClaim(delta=delta), calibration_size=len(few)
        )
        law = sized.fit(np.r_[X[few], X[:1]], np.r_[y[few], y[:1]]).calibration_
        assert (
            law.coverage_law(0.1)[1] == cf.calibration_.coverage_law(0.1)[1]
        ) == same


def test_all_of_10000_problems_calibrate_where_none_belong_together():
    """The rank is then so near to what is asked for that no draw is needed."""
    X = np.random.default_rng(0).uniform(size=(10_004, 1))
    y = X[:, 0] > 0.1
    assert HardCF(0, alpha=0.1).fit(X, y).n_calibration_ == 10_004
    assert HardCF(0, alpha=0.1).fit(X[6:], y[6:]).n_calibration_ == 9_989
    questions = [0, *range(10_003)]
    assert HardCF(0, alpha=0.1).fit(X, y, groups=questions).n_calibration_ == 9_999


# --- scorers that follow what they are fitted to


class Density(Scorer):
    def fit(self, batch, labels, task=None):
        self.density_ = KernelDensity(bandwidth=0.1).fit(batch.features)
        return self

    def confidence(self, batch):
        return -self.density_.score_samples(batch.features)


class Forest(Density):
    def fit(self, batch, labels, task=None):
        self.forest_ = IsolationForest(n_estimators=30, random_state=0).fit(
            batch.features
        )
        return self

    def confidence(self, batch):
        return self.forest_.score_samples(batch.features)


@pytest.mark.parametrize("n_draws", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_forest_that_trusts_what_is_usual_is_held_out(n_draws):
    """Each problem is of a kind of its own, and the forest cuts those off that it saw.

    They looked unusual, and .48 of new problems kept a false claim where .1 was promised.
    """
    rng, missed = np.random.default_rng(0), []
    for _ in range(n_draws):
        X, y = rng.permutation(np.eye(140)), rng.random(140) < 0.5
        cf = HardCF(Forest(), random_state=0).fit(X[:40], y[:40])
        assert cf.n_calibration_ == 19
        missed.append(np.mean(cf.predict(X[40:]) & ~y[40:]))
    deviation = np.std(missed) if n_draws > 1 else (0.1 * 0.9) ** 0.5
    assert np.mean(missed) < 0.1 + 4 * deviation / n_draws**0.5


class ColumnOfDensity(FunctionTransformer):
    """The parent's tag says that nothing is learnt; this `fit` is another one."""

    def fit(self, X, y=None):
        self.density_ = KernelDensity(bandwidth=0.1).fit(X)
        return self

    def transform(self, X):
        return -self.density_.score_samples(X)[:, None]


class GraphsOfDensity(AgreementFeatures):
    """Says ``requires_fit = False`` by its parent, of the parent's `fit`."""

    def fit(self, X, y=None):
        self.density_ = KernelDensity(bandwidth=0.1).fit(X.features)
        return self

    def transform(self, X):
        return X.replace_features(-self.density_.score_samples(X.features)[:, None])


@pytest.mark.parametrize("features", [ColumnOfDensity(), GraphsOfDensity()])
def test_columns_that_look_at_problems_are_held_out_too(features):
    rng, missed = np.random.default_rng(0), []
    for _ in range(20):
        X, y = rng.normal(size=(300, 5)), rng.random(300) < 0.5
        batch = GraphBatch.from_arrays(X, np.arange(301), ())
        cf = HardCF(0, features=features, random_state=0)
        assert cf.fit(batch[:100], y[:100].astype(int)).n_calibration_ == 39
        missed.append(np.mean(np.concatenate(cf.predict(batch[100:])) & ~y[100:]))
    assert np.mean(missed) < 0.1 + 4 * np.std(missed) / 20**0.5


def test_who_declares_to_learn_nothing_is_believed():
    class Declared(Density):
        requires_fit = False

    X = np.random.default_rng(0).normal(size=(59, 5))
    assert HardCF(Declared()).fit(X, X[:, 0] > 0).n_calibration_ == 59


# --- parts of another scorer


class Table:
    """A callable whose print says nothing of what it does."""

    def __init__(self, sign):
        self.sign = sign

    def __call__(self, batch):
        return self.sign * batch.features[:, 0]

    def __repr__(self):
        return "Table()"


def closure_over(array):
    return lambda batch: batch.features[:, 0] * array[2000]


@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
@pytest.mark.parametrize(
    "make",
    [Table, lambda sign: closure_over(np.r_[np.zeros(2000), sign, np.zeros(2000)])],
)
def test_parts_of_another_scorer_do_not_calibrate(make):
    X, y, _ = answers(50, 1, 0)
    one, other = (HardCF(make(sign)).fit(X, y) for sign in (1.0, -1.0))
    part = one.calibration_part(X, y)
    one.calibrate_parts([part])
    with pytest.raises(ValueError, match="scorer"):
        other.calibrate_parts([part])


# --- levels


def test_the_level_in_force_is_clear():
    X, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    fixed = HardCF("frequency-score").fit(X, y).set_params(alpha=0.3)
    assert fixed.threshold_ == fixed.threshold() == fixed.threshold(0.3)
    trained = HardCF("linear", random_state=0).fit(X, y)
    before = trained.threshold(0.3)
    trained.set_params(alpha=0.3)
    for act in (
        trained.threshold,
        lambda: trained.predict(X),
        lambda: trained.threshold_,
    ):
        with pytest.raises(ValueError, match=r"0\.1.*0\.3"):
            act()
    assert trained.threshold(0.3) == before


def test_weights_of_scores_are_checked():
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    cf = HardCF("frequency-score").fit(X, y)
    for bad in (-np.ones(60), np.full(60, np.nan), np.zeros(60), np.ones(59)):
        with pytest.raises(ValueError, match=r"[Ss]ample.weight|Negative|NaN"):
            cf.score(X, y, sample_weight=bad)


@pytest.mark.parametrize("wrong", [{"claims": ["a"]}, "a text"])
def test_a_dict_is_no_problem(wrong):
    with pytest.raises(ValueError, match=r"ReasoningGraph\.from_dict"):
        HardCF().fit([wrong], [[1]])
