"""Filters with calibration_size="all", against a brute-force implementation of the theorem."""

import warnings
from copy import deepcopy

import brute_force
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import skdcf
from skdcf import CoherentConformalFilter, HardCF, ReasoningGraph, full, save_threshold
from skdcf.choosing import choose, release
from skdcf.evaluation import CalibratedSearch, compare_filters, leave_one_out
from skdcf.exceptions import CalibrationWarning, GuaranteeWarning
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.monitoring import CoverageMonitor, ExchangeabilityTest
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import ClassifierScorer


def answers(seed, n, dag=False, n_columns=3, size=None):
    """Graphs and labels, in which the first column tells true claims from false ones."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for _ in range(n):
        n_claims = int(rng.integers(0, 6)) if size is None else size
        X = rng.normal(size=(n_claims, n_columns)).round(rng.integers(1, 9))
        edges = [(v - 1, v) for v in range(1, n_claims)]
        if dag:
            edges = [(int(rng.integers(v)), v) for v in range(1, n_claims)]
            edges += [(int(rng.integers(v)), v) for v in range(2, n_claims)]
        y = (rng.random(n_claims) < 1 / (1 + np.exp(-2 - X[:, 0]))).astype(int)
        y[1:][rng.random(max(n_claims - 1, 0)) < 0.1] = -1
        graphs.append(ReasoningGraph(X, edges))
        labels.append(y)
    return graphs, labels


def plain(graph, labels=()):
    """An answer as the brute force reads it."""
    parents = [[] for _ in range(graph.n_claims)]
    for parent, child in graph.edges:
        parents[child].append(parent)
    return graph.features, parents, labels


def expected(cf, graphs, labels, new, training=(), **settings):
    """Levels of a new answer by brute force, with the calibration answers of a fitted filter."""
    known = [plain(g, y) for g, y in zip(graphs, labels, strict=True)]
    unused = set(cf.unused_indices_.tolist())
    calibrating = [known[i] for i in range(len(known)) if i not in unused]
    training = [*training, *(known[i] for i in sorted(unused))]
    return brute_force.levels(calibrating, training, plain(new), **settings)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 15), st.booleans(), st.integers(0, 1))
def test_levels_are_those_of_the_theorem(seed, n, dag, max_false):
    graphs, labels = answers(seed, n + 1, dag)
    new = graphs.pop()
    y = [np.where(np.arange(len(row)) == 0, abs(row), row) for row in labels[:-1]]
    cf = CoherentConformalFilter(
        calibration_size="all", alpha=0.3, guarantee=NoFalseClaim(max_false=max_false)
    ).fit(graphs, y, groups=False)
    levels = cf.predict_alpha([new])[0]
    wanted = expected(cf, graphs, y, new, max_false=max_false)
    np.testing.assert_allclose(levels, wanted, rtol=1e-12)
    for alpha in (0.1, 0.3, 0.5):
        np.testing.assert_array_equal(cf.predict([new], alpha)[0], levels <= alpha)
        kept = cf.decision_function([new], alpha)[0] > 0
        np.testing.assert_array_equal(kept, levels <= alpha)


@pytest.fixture(scope="module")
def data():
    return answers(3, 27, size=4)


@pytest.fixture(scope="module")
def new():
    return answers(4, 8, size=4)[0]


@pytest.fixture
def cf(data):
    return CoherentConformalFilter(calibration_size="all").fit(*data)


def test_only_answers_that_raise_the_rank_calibrate(cf, data, new):
    assert cf.n_calibration_ == 19
    assert len(cf.unused_indices_) == 8
    np.testing.assert_allclose(
        cf.predict_alpha(new[:1])[0], expected(cf, *data, new[0]), rtol=1e-12
    )
    same = HardCF(ClassifierScorer(gain=0.5), calibration_size="all").fit(*data)
    assert_equal(same.predict_alpha(new), cf.predict_alpha(new))


def assert_equal(several, others):
    for one, other in zip(several, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_row_order_changes_nothing(cf, data, new):
    graphs, labels = data
    order = np.argsort([row.sum() for row in labels], kind="stable")
    again = CoherentConformalFilter(calibration_size="all").fit(
        [graphs[i] for i in order], [labels[i] for i in order]
    )
    assert set(order[again.unused_indices_]) == set(cf.unused_indices_)
    assert_equal(again.predict_alpha(new), cf.predict_alpha(new))


def test_ranks_are_the_same_whichever_answer_is_new():
    # Every score is +inf or belongs to a single claim, so the levels of the false claims,
    # each of which is new once, are all ranks.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, 40)) * (rng.random((18, 40)) < 0.1) + np.eye(18, 40)
    y = (np.arange(18) < 11).astype(int)
    found = []
    for i in np.flatnonzero(y == 0):
        rest = np.delete(np.arange(18), i)
        cf = HardCF(ClassifierScorer(), calibration_size="all", alpha=0.5)
        found.append(cf.fit(X[rest], y[rest], groups=False).predict_alpha(X[[i]])[0])
    np.testing.assert_allclose(np.sort(found), np.arange(1, 8) / 18)


@pytest.mark.parametrize("rounds", [1, full.ROUNDS])
def test_fit_is_the_same_function_of_all_answers(monkeypatch, rounds):
    monkeypatch.setattr(full, "ROUNDS", rounds)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(4, 6, 5)), np.ones((4, 6, 1))], axis=2)
    error = [2, 5, 0, 3]
    fits = []
    for i in range(4):
        others = [k for k in range(4) if k != i]
        used = np.vstack([rows[k][: error[k] + 1] for k in others])
        false = np.concatenate([np.arange(error[k] + 1) == error[k] for k in others])
        fits.append(full.fit_each(used, false * 1.0, rows[i], np.zeros(6))[error[i]])
    np.testing.assert_allclose(fits, np.tile(fits[0], (4, 1)), rtol=0, atol=1e-9)


def test_groups_have_their_own_ranks(new):
    graphs, labels = answers(5, 40, size=3)
    kinds = ["ab"[i % 4 == 0] for i in range(40)]
    graphs = [
        g.replace(metadata={"kind": k}) for g, k in zip(graphs, kinds, strict=True)
    ]
    cf = CoherentConformalFilter(
        calibration_size="all", guarantee=NoFalseClaim(by="kind")
    ).fit(graphs, labels)
    own = [i for i in range(40) if i not in set(cf.unused_indices_)]
    ranked = [k for k, i in enumerate(own) if kinds[i] == "b"]
    assert len(ranked) == 9
    graph = new[0].replace(metadata={"kind": "b"})
    wanted = expected(cf, graphs, labels, graph, ranked=ranked)
    np.testing.assert_allclose(cf.predict_alpha([graph])[0], wanted, rtol=1e-12)
    with pytest.warns(CalibrationWarning, match="'c'"):
        assert not cf.predict([new[0].replace(metadata={"kind": "c"})])[0].any()


def test_other_answers_to_a_question_and_copies_are_in_no_fit():
    bare, labels = answers(6, 60, size=2)
    texts = [[f"step {i}", f"so {i}"] for i in range(60)]
    cf = CoherentConformalFilter(calibration_size="all", alpha=0.02)
    found = set()
    for i in range(10):
        graphs = [g.replace(claims=t) for g, t in zip(bare, texts, strict=True)]
        graphs[59] = graphs[59].replace(claims=texts[i])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)
            cf.fit(graphs, labels)
        n_calibrating = len({i, 59} - set(cf.unused_indices_.tolist()))
        # A copy of a calibrating answer does not train.
        assert cf.calibration_.n_labelled == 60 - (n_calibrating == 1)
        found.add(n_calibrating)
    assert found >= {1, 2}
    groups = np.append(np.arange(40), np.arange(20))
    cf.set_params(alpha=0.05).fit(bare, labels, groups)
    calibrating = groups[np.setdiff1d(np.arange(60), cf.unused_indices_)]
    assert cf.n_calibration_ == len(set(calibrating)) == 39
    n_training = np.sum(~np.isin(groups, calibrating))
    assert cf.calibration_.n_labelled == 39 + n_training


def test_calibrate_keeps_the_old_labels_for_training(cf, data, new):
    known = [plain(g, y) for g, y in zip(*data, strict=True)]
    graphs, labels = answers(8, 12, size=3)
    cf.set_params(alpha=0.2).calibrate(graphs, labels)
    assert cf.n_calibration_ == 9
    wanted = expected(cf, graphs, labels, new[0], known)
    np.testing.assert_allclose(cf.predict_alpha(new[:1])[0], wanted, rtol=1e-12)
    named = [g.replace(problem=f"q{i}") for i, g in enumerate(graphs)]
    other = CoherentConformalFilter(calibration_size="all").fit(named, labels)
    assert len(other.unused_indices_)
    for graph, y in zip(named, labels, strict=True):
        with pytest.raises(ValueError, match="used for training"):
            other.calibrate([graph], [y])


def test_a_stream_decides_as_predict_does(data, new):
    cf = CoherentConformalFilter(calibration_size="all", online=True).fit(*data)
    for graph in new:
        claims = [
            {"parents": [v - 1] if v else [], "features": list(row)}
            for v, row in enumerate(graph.features)
        ]
        for alpha in (0.1, 0.3):
            kept = cf.predict([graph], alpha)[0]
            assert list(cf.stream(claims, alpha)) == kept.tolist()
    assert cf.predict([ReasoningGraph(np.zeros((0, 3)), ())])[0].tolist() == []
    with pytest.raises(ValueError, match="all 19 answers"):
        cf.fit(*(rows[:19] for rows in data))


@pytest.mark.filterwarnings("ignore:.*Did you mean")
def test_online_ranks_are_the_same_whichever_answer_is_new():
    """The scale is that of older answers, so an exchange changes no rank of the false claims."""
    graphs, labels = answers(9, 30, size=3)
    older, labels_of_older = answers(10, 20, size=3)
    fitted = CoherentConformalFilter(calibration_size="all", online=True)
    fitted.fit(older, labels_of_older).set_params(alpha=0.967)
    found = []
    for i in range(30):
        rest = [k for k in range(30) if k != i]
        cf = deepcopy(fitted)
        cf.calibrate([graphs[k] for k in rest], [labels[k] for k in rest])
        assert cf.n_calibration_ == 29
        false = np.flatnonzero(labels[i] != 1)
        if len(false):
            found.append(cf.predict_alpha([graphs[i]])[0][false].min())
    # A level may exceed the rank of the answer, but never falls below it.
    assert (np.sort(found) >= np.arange(1, len(found) + 1) / 30 - 1e-9).all()


def test_texts_are_not_saved(data, new, tmp_path):
    graphs = [g.replace(claims=["PRIVATE"] + ["x"] * 3) for g in data[0]]
    cf = HardCF(ClassifierScorer(), calibration_size="all")
    path = skdcf.save(cf.fit(graphs, data[1], groups=False), tmp_path / "f.skops")
    assert b"PRIVATE" not in path.read_bytes()
    new = [g.replace(claims=["x"] * 4) for g in new]
    assert_equal(skdcf.load(path).predict_alpha(new), cf.predict_alpha(new))


def test_counts_are_described_and_too_few_answers_named(cf, data):
    assert "All 27 labelled answers" in cf.describe()
    assert "19 of them" in cf.describe()
    assert cf.calibration_.coverage_law(0.1) is None
    column = HardCF(0, calibration_size="all", alpha=0.037).fit(*data)
    assert column.n_calibration_ == 27  # Nothing learns.
    with pytest.warns(CalibrationWarning, match=r'too few.*calibration_size="all"'):
        CoherentConformalFilter(alpha=0.05).fit(*data)
    with pytest.warns(CalibrationWarning, match="27 calibration problems"):
        CoherentConformalFilter(alpha=0.02, calibration_size="all").fit(*data)


REFUSED = {
    "delta": {"guarantee": NoFalseClaim(delta=0.1)},
    "ExpectedFalse": {"guarantee": ExpectedFalse()},
    "show": {"guarantee": NoFalseClaim(show=0.5)},
    "'auto'": {"guarantee": NoFalseClaim(show="auto")},
    "ties": {"ties": "include"},
    "relaxation": {"relaxation": PathRelaxation()},
    "refitted": {"scorer": ClassifierScorer(gain=None)},
    "no parent": {"edges": "none"},
}


@pytest.mark.parametrize("word", REFUSED)
def test_settings_without_a_theorem_are_refused(data, word):
    cf = CoherentConformalFilter(calibration_size="all", **REFUSED[word])
    with pytest.raises(ValueError, match=word):
        cf.fit(*data)


def test_answers_without_a_theorem_are_refused(cf, data):
    graphs, labels = data
    late = ReasoningGraph(np.zeros((2, 3)), [(1, 0)])
    with pytest.raises(ValueError, match="claim 0 comes before"):
        cf.predict([late])
    with pytest.raises(ValueError, match="problem 0 is"):
        cf.fit(graphs, [np.full(4, -1), *labels[1:]])
    cf.set_params(features=StandardScaler())
    with pytest.raises(ValueError, match="StandardScaler"):
        cf.fit(graphs, labels)


@pytest.mark.parametrize(
    "use",
    [
        lambda cf, X, y: cf.threshold_,
        lambda cf, X, y: cf.calibration_part(X, y),
        lambda cf, X, y: save_threshold(cf, "unused"),
        lambda cf, X, y: leave_one_out(cf, X, y),
        lambda cf, X, y: choose(cf, X),
        lambda cf, X, y: release(cf, X, 0.2),
        lambda cf, X, y: ExchangeabilityTest().fit(cf),
        lambda cf, X, y: CoverageMonitor().fit(cf),
        lambda cf, X, y: compare_filters({"all": cf}, X, y),
        lambda cf, X, y: CalibratedSearch(GridSearchCV(cf, {"alpha": [0.1]})).fit(X, y),
    ],
)
def test_uses_that_need_one_scorer_are_refused(cf, data, use):
    with pytest.raises(ValueError, match='calibration_size="all"'):
        use(cf, *data)
