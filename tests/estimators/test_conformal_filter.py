"""CoherentConformalFilter: training on some problems, calibrating on others."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    ReasoningGraph,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import leave_one_out
from skdcf.exceptions import LabelWarning
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer, LinearModel, MLPModel, Scorer
from skdcf.training import LBFGS, Adam, SoftTraining
from skdcf.training.splitting import hold_out
from skdcf.uses import check


@pytest.fixture(scope="module")
def data():
    graphs, labels = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    return graphs, labels


def linear(**parameters):
    """The default filter with a fixed seed."""
    return CoherentConformalFilter(**{"random_state": 0} | parameters)


FEW_STEPS = SoftTraining(LBFGS(max_iter=5))
PAPER = CoherentConformalFilter.from_paper(
    "math",
    0.1,
    training=SoftTraining.from_paper().set_params(optimizer__max_iter=5),
    random_state=0,
)


@pytest.mark.parametrize(
    "filter",
    [
        linear(),
        CoherentConformalFilter(
            LinearModel(), training=SoftTraining(Adam()), random_state=0
        ),
        CoherentConformalFilter(MLPModel((2,)), random_state=0, training=FEW_STEPS),
        pytest.param(
            CoherentConformalFilter(
                relaxation=GridRelaxation(), random_state=0, training=FEW_STEPS
            ),
            marks=pytest.mark.long,
        ),
        linear(edges="none"),
        PAPER,
        BoostedIndependentFactuality(random_state=0),
    ],
)
def test_bit_reproducible_and_cloneable(filter, data):
    graphs, y = data
    first, again = clone(filter).fit(graphs, y), clone(filter).fit(graphs, y)
    a, b = (np.concatenate(f.path_risk(graphs)) for f in (first, again))
    np.testing.assert_array_equal(a, b)
    assert first.loss_curve_ == again.loss_curve_
    assert first.n_iter_ == len(first.loss_curve_)
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(np.concatenate(restored.path_risk(graphs)), a)
    assert vars(clone(first)).keys() == vars(clone(filter)).keys()


@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_training_never_sees_calibration_problems(data):
    """Changing the held-out labels changes the scores, not the scorer."""
    graphs, y = data
    filter = linear().fit(graphs, y)
    rng = np.random.RandomState(filter._seed)
    _, held = hold_out(len(graphs), 119, None, rng)
    assert filter.n_calibration_ == 119
    flipped = [1 - row if i in set(held) else row for i, row in enumerate(y)]
    other = linear().fit(graphs, flipped)
    np.testing.assert_array_equal(filter.coef_, other.coef_)
    assert (filter.nonconformity_scores_ != other.nonconformity_scores_).any()
    moved = np.array(graphs.features)
    moved[np.isin(graphs.problem_of, held)] += 100.0
    shifted = graphs.replace_features(moved, graphs.feature_names)
    other = linear().fit(shifted, y)
    np.testing.assert_array_equal(filter.coef_, other.coef_)


def test_coef_is_in_the_units_of_the_features():
    rng = np.random.default_rng(0)
    graphs, y = [], []
    for _ in range(200):
        x = rng.uniform(-1.5, 1.5, (4, 2))  # within 3 deviations: nothing is clipped
        graphs.append(ReasoningGraph(x * [1.0, 1000.0] + [5.0, 0.0], [(0, 1), (1, 2)]))
        y.append((x[:, 0] + x[:, 1] + rng.normal(size=4) > -2).astype(int))
    filter = linear(scorer=ConfTrScorer(gain=None)).fit(graphs, y)
    assert filter.coef_[0] / filter.coef_[1] == pytest.approx(1000, rel=0.5)
    risk = -filter.scorer_.confidence(GraphBatch.from_graphs(graphs))
    weighted = -np.concatenate([g.features for g in graphs]) @ filter.coef_
    np.testing.assert_allclose(np.diff(risk), np.diff(weighted), atol=1e-9)


def test_it_learns_what_the_graph_needs():
    """More true claims than logistic regression, and than training without the graph."""
    graphs, y = make_reasoning_graphs(2500, random_state=3, return_X_y=True)
    train, test = (graphs[:600], y[:600]), (graphs[600:], y[600:])
    kept = {}
    for name, filter in {
        "conformal": linear(),
        "logistic": HardCF(ClassifierScorer(), random_state=0),
        "paper": CoherentConformalFilter.from_paper("math", 0.1, random_state=0),
    }.items():
        report = leave_one_out(filter.fit(*train), *test, [0.1])
        kept[name] = report.retention[0]
        assert report.coverage[0] == pytest.approx(0.9, abs=0.01)
    assert kept["conformal"] > 1.02 * kept["logistic"]
    assert kept["conformal"] > kept["paper"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_the_relaxation(data):
    graphs, y = data
    grid = {
        "relaxation__ancestor_weight": [1.0, 4.0],
        "relaxation__violation_weight": [1.05, 1.5],
    }
    three = SoftTraining(LBFGS(max_iter=3))
    filter = linear(relaxation=GridRelaxation(), training=three, alpha=0.2)
    search = GridSearchCV(filter, grid, cv=2, n_jobs=2).fit(graphs, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.relaxation.ancestor_weight in (1.0, 4.0)
    nested = GridSearchCV(
        CoherentConformalFilter(MLPModel(), random_state=0, training=three, alpha=0.2),
        {"scorer__hidden_layer_sizes": [(3,), (4, 2)]},
        cv=2,
    ).fit(graphs, y)
    assert nested.best_params_["scorer__hidden_layer_sizes"] in [(3,), (4, 2)]


def test_in_a_pipeline(data):
    graphs, y = data
    first_ten = FunctionTransformer(
        lambda b: b.replace_features(b.features[:, :10], b.feature_names[:10])
    )
    pipe = make_pipeline(first_ten, linear())
    pipe.fit(graphs, y)
    assert pipe[-1].coef_.shape == (21,)  # ten columns, their means, log n_claims
    assert len(pipe.predict(graphs)) == 300
    assert np.isfinite(pipe.score(graphs, y))


def test_a_failed_fit_leaves_the_old_filter_as_it_was(data):
    graphs, y = data

    class Breaks(LinearModel):
        def __call__(self, params, X):
            return X @ params + (np.nan if not hasattr(X @ params, "_value") else 0.0)

    filter = linear().fit(graphs, y)
    before = np.concatenate(filter.predict_alpha(graphs))
    filter.set_params(scorer=Breaks())
    with (
        pytest.warns(ConvergenceWarning),
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="finite confidences"),
    ):
        filter.fit(graphs, y)
    np.testing.assert_array_equal(np.concatenate(filter.predict_alpha(graphs)), before)


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scorer", ["linear", ClassifierScorer()], ids=str)
def test_one_label_fits(data, scorer):
    graphs, _ = data
    true = [np.ones(g.n_claims, int) for g in graphs[:40]]
    filter = CoherentConformalFilter(scorer, random_state=0)
    with pytest.warns(LabelWarning, match="labelled false"):
        filter.fit(graphs[:40], true)
    assert filter.threshold_ == np.inf
    assert np.concatenate(filter.predict(graphs[:40])).all()
    filter.fit(graphs[:40], [1 - row for row in true])
    assert np.isfinite(filter.nonconformity_scores_).all()


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.CalibrationWarning")
@pytest.mark.parametrize("optimizer", [LBFGS(max_iter=3), Adam(max_iter=3)], ids=str)
@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()], ids=str)
def test_difficult_problems_fit_or_say_why_not(data, optimizer, relaxation):
    graphs, y = data
    filter = linear(
        scorer=ConfTrScorer(gain=None),
        training=SoftTraining(optimizer),
        relaxation=relaxation,
    )
    cases = {
        "two problems": (graphs[:2], y[:2]),
        "all true": (graphs[:40], [np.ones_like(row) for row in y[:40]]),
        "all false": (graphs[:40], [np.zeros_like(row) for row in y[:40]]),
        "features may be constant": (
            graphs[:40].replace_features(np.ones((graphs[:40].n_claims, 2))),
            y[:40],
        ),
        "one feature": (
            graphs[:40].replace_features(graphs[:40].features[:, :1]),
            y[:40],
        ),
    }
    for name, (X, labels) in cases.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                filter.fit(X, labels)
            except ValueError as error:
                assert name == "two problems", error
                assert "at least 1 sample" in str(error)
                continue
            kept = np.concatenate(filter.predict(X))
        told = " ".join(str(w.message) for w in caught)
        if name == "all true":
            assert "no training claim is false" in told
            assert kept.all()
        if name == "all false":
            assert "no training claim is true" in told
            assert not kept.any()
        if name == "features may be constant":
            assert "same initial score" in told
            assert not kept.any()


def test_features_are_needed():
    texts = [ReasoningGraph(None, [], claims=["a", f"b {i}"]) for i in range(4)]
    with pytest.raises(ValueError, match=r"problems.*features"):
        CoherentConformalFilter(features=None).fit(texts, [[1, 0]] * 4)


def test_verbose_shows_loss_and_retention(data, capsys):
    graphs, y = data
    linear(verbose=1, training=SoftTraining(LBFGS(max_iter=2))).fit(graphs[:80], y[:80])
    shown = capsys.readouterr().err
    assert "2/2" in shown and "loss=" in shown and "retention=" in shown
    linear().fit(graphs, y)
    assert capsys.readouterr().err == ""


def test_a_non_finite_loss_stops_with_the_last_good_parameters(data):
    graphs, y = data

    class Explodes(LinearModel):
        def __call__(self, params, X):
            import autograd.numpy as anp

            return X @ params + 0 * anp.sum(anp.log(0.5 - anp.abs(params)))

    training = SoftTraining(Adam(learning_rate=0.2), init="random", shrinkage=0.0)
    filter = CoherentConformalFilter(Explodes(), training=training, random_state=0)
    with (
        pytest.warns(ConvergenceWarning, match="not finite"),
        np.errstate(invalid="ignore"),
    ):
        filter.fit(graphs, y)
    assert np.isfinite(np.concatenate(filter.path_risk(graphs))).all()


def test_a_model_of_ones_own_in_ten_lines(data):
    graphs, y = data

    class Quadratic(LinearModel):
        def init(self, n_features, rng):
            return rng.normal(scale=0.1, size=(2, n_features))

        def __call__(self, params, X):
            return X @ params[0] + X**2 @ params[1]

    filter = CoherentConformalFilter(Quadratic(), random_state=0).fit(graphs, y)
    assert filter.scorer_.params_.shape == (2, 2 * graphs.n_features + 1)
    assert not hasattr(filter, "coef_")


@pytest.mark.long
def test_no_autograd_at_predict(data, tmp_path):
    graphs, y = data
    filter = linear().fit(graphs, y)
    path = tmp_path / "filter.pickle"
    path.write_bytes(pickle.dumps((filter, graphs[:5])))
    code = (
        "import pickle, sys\n"
        f"filter, graphs = pickle.loads(open({str(path)!r}, 'rb').read())\n"
        "filter.predict(graphs); filter.filter(graphs)\n"
        "assert 'autograd' not in sys.modules, 'autograd was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Odd(Scorer):
    """Gives one claim no number."""

    def confidence(self, batch):
        return np.where(batch.features[:, 0] > 0.9, np.nan, 0.5)


def test_a_look_at_problems_leaves_nothing_on_a_filter_before_its_fit():
    cf = HardCF(0)
    before = dict(vars(cf))
    check(cf, one_claim_each([0.1, 0.9]))
    assert vars(cf) == before


def test_a_fit_that_fails_leaves_nothing_behind():
    cf = HardCF(Odd(), alpha=0.2)
    before = dict(vars(cf))
    with pytest.raises(ValueError, match="finite"):
        cf.fit(one_claim_each([0.1, 0.95, 0.3]), [[0]] * 3)
    assert vars(cf) == before
