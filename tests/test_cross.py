"""Cross-conformal calibration, and weights that a classifier estimates."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdcf import CoherentConformalFilter, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import ExpectedFalse, NoFalseClaim
from skdcf.metrics import evaluate_filter
from skdcf.reporting import write_report
from skdcf.scorers import ClassifierScorer
from skdcf.scorers.making import CrossScorer


@pytest.fixture(scope="module")
def data():
    return make_reasoning_graphs(300, random_state=1, return_X_y=True)


@pytest.mark.parametrize("grouped", [False, True])
def test_cross_counts_what_its_definition_says(data, grouped):
    graphs, y = data
    groups = np.arange(80) // 2 if grouped else None
    cf = HardCF(ClassifierScorer(), calibration_size="cross", random_state=0, alpha=0.2)
    cf.fit(graphs[:80], y[:80], groups)
    scorer, new = cf.scorer_, graphs[200:230]
    n = 40 if grouped else 80  # one answer to each question calibrates
    assert sum(map(len, scorer.scores)) == cf.n_calibration_ == n
    assert len(scorer.scorers) == 10
    below = np.zeros(new.n_claims)
    for one, scores in zip(scorer.scorers, scorer.scores, strict=True):
        risk = -one.confidence(new)
        for v in range(new.n_claims):
            lo, hi = new.closure[0][v : v + 2]
            path = risk[new.closure[1][lo:hi]].max()
            below[v] += sum(s <= path for s in scores)
    expected = (1 + below) / (n + 1)
    found = np.concatenate(list(cf.predict_alpha(new)))
    np.testing.assert_array_equal(found, expected)
    kept = np.concatenate(list(cf.predict(new)))
    np.testing.assert_array_equal(kept, expected <= 0.2)


def test_cross_scores_are_out_of_fold(data):
    """With a memorising classifier all training scores would be +inf."""
    from sklearn.neighbors import KNeighborsClassifier

    graphs, y = data
    noise = np.random.default_rng(0).normal(size=(graphs.n_claims, 3))
    blind = graphs.replace_features(noise)
    cf = HardCF(KNeighborsClassifier(1), calibration_size="cross", random_state=0)
    cf.fit(blind, y)
    finite = np.isfinite(np.concatenate(cf.scorer_.scores))
    assert finite.sum() == sum(not np.all(row) for row in y)
    again = HardCF(KNeighborsClassifier(1), calibration_size="cross", random_state=0)
    one, other = again.fit(blind, y).predict(blind), cf.predict(blind)
    assert all(map(np.array_equal, one, other))


def test_cross_levels_and_new_calibration(data):
    graphs, y = data
    cf = CoherentConformalFilter("linear", calibration_size="cross", random_state=0)
    levels = cf.fit_levels(graphs[:60], y[:60], [0.1, 0.3])
    kept = [np.concatenate(list(one.predict(graphs))).sum() for one in levels]
    assert kept[0] < kept[1]
    levels[0].calibrate(graphs[100:], y[100:])
    assert levels[0].n_calibration_ == 199  # of rank 20, like 200
    plain = HardCF("nx_reachability").fit(graphs, y)
    same = HardCF("nx_reachability", calibration_size="cross").fit(graphs, y)
    assert plain.threshold_ == same.threshold_  # nothing is trained


def test_cross_refuses_what_has_no_theory(data):
    cross = {"calibration_size": "cross", "random_state": 0}
    for guarantee in (
        NoFalseClaim(delta=0.1),
        NoFalseClaim(by="g"),
        ExpectedFalse(),
    ):
        with pytest.raises(ValueError, match="no theory"):
            HardCF(ClassifierScorer(), guarantee=guarantee, **cross).fit(*data)
    with pytest.raises(ValueError, match="has no use for"):
        HardCF(ClassifierScorer(), ties="jitter", **cross).fit(*data)
    with pytest.raises(ValueError, match="made by a filter"):
        HardCF(CrossScorer([], [])).fit(*data)
    HardCF(ClassifierScorer(), guarantee=NoFalseClaim(1), **cross).fit(*data)


def test_estimated_weights_restore_coverage():
    """Problems are longer in use: without weights coverage is lost, with them it is not."""
    rng = np.random.default_rng(0)
    n = 12_000
    x = rng.random(n)
    is_new = rng.random(n) < x**2
    score = rng.normal(size=n) - 3 * x  # riskier where x is large
    X = np.c_[-score, x]
    y = np.zeros(n)
    y[:2] = 1
    old, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    seen = np.r_[old[:1500], new[:1500]]
    model = LogisticRegression(C=1e6).fit(X[seen], np.repeat([0, 1], 1500))
    ratio = lambda batch: np.exp(model.decision_function(batch.features))  # noqa: E731
    true = lambda batch: batch.features[:, 1] ** 2 / (1 - batch.features[:, 1] ** 2)  # noqa: E731
    coverage = {}
    for name, weight in (("none", None), ("estimated", ratio), ("true", true)):
        cf = HardCF(0, alpha=0.1, guarantee=NoFalseClaim(weight=weight))
        cf.fit(X[old[1500:]], y[old[1500:]])
        coverage[name] = 1 - np.mean(cf.predict(X[new[1500:]])[y[new[1500:]] == 0])
    assert coverage["none"] < 0.8
    assert abs(coverage["true"] - 0.9) < 0.03
    assert abs(coverage["estimated"] - 0.9) < 0.04


def test_reports_say_what_is_proven(data, tmp_path):
    """1 - 2 alpha; they said 1 - alpha, beside a band that is that of split calibration."""
    graphs, y = data
    cf = HardCF(ClassifierScorer(), calibration_size="cross", random_state=0)
    cf.fit(graphs[:100], y[:100])
    new = graphs[100:], y[100:]
    for one in (cf, cf.with_alpha(0.05), pickle.loads(pickle.dumps(cf))):
        page = write_report(tmp_path / "r.html", one, *new).read_text("utf-8")
        # In exact fractions: the mean of K p-values is at most t with chance 2 t at most.
        n, k, alpha = one.n_calibration_, 10, Fraction(str(one.alpha))
        t = (alpha * (n + 1) + k - 1) / (n + k)
        assert f"at least {float(1 - 2 * t):.6g}, nothing false" in page
        assert "Theory expects" not in page
    assert np.isnan(evaluate_filter(cf, *new, [0.1]).coverage_band).all()
    cf.calibrate(*new)  # on problems that no scorer has seen
    page = write_report(tmp_path / "r.html", cf, *new).read_text("utf-8")
    assert "at least 0.9, nothing false" in page and "Theory expects" in page
