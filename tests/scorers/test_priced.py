"""Scorers with a price: their columns, their training, and confidences equal to the bit."""

import autograd.numpy as anp
import numpy as np
import pytest
from assertions import assert_coherent, reorder_claims
from autograd import value_and_grad
from one_claim import one_claim_each
from random_graphs import chain
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.guarantees import NoFalseClaim
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import ClassifierScorer, ConfTrScorer, FitTask, LinearModel, MLPModel
from skdcf.training import LBFGS, SoftTraining

GRAPHS, Y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, GRAPHS)
SCORERS = [
    ConfTrScorer(),
    ConfTrScorer(MLPModel((3,))),
    ClassifierScorer(),
    ClassifierScorer(RandomForestClassifier(20, random_state=0)),
]


def task():
    few_steps = SoftTraining(LBFGS(max_iter=5))
    return FitTask(rng=np.random.RandomState(0), training=few_steps)


@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()])
def test_loss_and_gradient_against_a_plain_spelling(relaxation):
    """One level of training, through price, path risk, calibration and prediction."""
    from skdcf.ops.soft_price import log_price
    from skdcf.training.loop import train
    from skdcf.training.splitting import weight_below_errors

    class Caught(LBFGS):
        def minimize(self, fun, x, callback):
            self.fun, self.x = fun, x
            return x, True

    batch = GRAPHS[:40]
    labels = LABELS[: batch.n_claims]
    caught = Caught()
    training = SoftTraining(caught, shrinkage=50.0)
    task = FitTask(alpha=0.2, relaxation=relaxation, training=training)
    result = train(LinearModel(), batch, labels, task, gain=0.5)
    X = result.columns(batch)
    q = weight_below_errors(labels, batch)
    plan = relaxation.plan(batch, labels)
    start = -log_price(caught.x[-1] - X @ caught.x[:-1], batch, q, 0.5)

    def plain(flat):
        confidence = -log_price(flat[-1] - X @ flat[:-1], batch, q, 0.5)
        unit = (confidence - anp.mean(confidence)) / anp.std(confidence)
        kept = relaxation.true_claims(-unit, plan, 0.2)
        loss = -anp.log(anp.mean((kept + 0.001) ** 0.5))
        before = (start - start.mean()) / start.std()
        return loss + 50 / (0.2 * 40) ** 2 * (1 - anp.mean(unit * before))

    x = caught.x + np.random.RandomState(1).normal(0, 0.05, len(caught.x))
    value, gradient = caught.fun(x)
    expected, slope = value_and_grad(plain)(x)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scorer", SCORERS, ids=str)
def test_confidences_are_equal_to_the_bit(scorer):
    """Alone, in a slice, in the batch, and for every storage order of the claims."""
    fitted = clone(scorer).fit(GRAPHS, LABELS, task())
    rng = np.random.default_rng(0)
    whole = GRAPHS.split(fitted.confidence(GRAPHS))
    part = GRAPHS[30:60].split(fitted.confidence(GRAPHS[30:60]))
    for i in range(30, 60):
        assert np.array_equal(part[i - 30], whole[i])
        graph = GRAPHS[i]
        order = rng.permutation(graph.n_claims)
        mixed = GraphBatch.from_graphs([reorder_claims(graph, order)])
        found = fitted.confidence(mixed)
        assert np.array_equal(found, whole[i][order])


def test_weight_of_true_claims_below_a_false_one():
    false_so_far = []
    for graph, y in zip(GRAPHS, Y, strict=True):
        for v in range(graph.n_claims):
            above = graph.ancestors(v)
            if any(y[u] == 0 for u in above if u != v):
                false_so_far.append(y[v])
    scorer = ClassifierScorer().fit(GRAPHS, LABELS)
    expected = 0.5 * sum(false_so_far) / (len(false_so_far) + 5)
    assert scorer.weight_below_errors_ == pytest.approx(expected)


def test_mlp_by_hand():
    scorer, X = MLPModel((2,)), np.array([[1.0, -2.0]])
    (w, b), (v, c) = scorer.init(2, np.random.RandomState(1))
    hidden = [np.tanh(X[0] @ w[:, j] + b[j]) for j in range(2)]
    expected = hidden[0] * v[0, 0] + hidden[1] * v[1, 0] + c[0]
    assert scorer([(w, b), (v, c)], X)[0] == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(2, -1), (1.5,), None])
def test_mlp_with_impossible_layers(sizes):
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        MLPModel(sizes).init(3, np.random.RandomState(0))


def flat(n_problems, size, edges=(), hazard=0.1, seed=0):
    """Answers of one size with columns, and labels that are false with a given probability."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n_problems, size, 3))
    wrong = rng.rand(n_problems, size) < hazard
    wrong |= X[:, :, 0] < -2.5
    return [ReasoningGraph(x, edges) for x in X], list((~wrong).astype(int))


def with_columns(change):
    graphs, labels = flat(60, 5, [(0, 2), (1, 2)])
    changed = [change(g.features, y) for g, y in zip(graphs, labels, strict=True)]
    return [ReasoningGraph(x, [(0, 2), (1, 2)]) for x in changed], labels


BAD = {
    "no error": lambda: flat(60, 5, hazard=-1.0),
    "one error": lambda: (
        flat(60, 5)[0],
        [np.arange(5) != 5 - (i == 3) for i in range(60)],
    ),
    "all false": lambda: flat(60, 5, hazard=1.0),
    "nothing is known": lambda: (flat(60, 5)[0], np.full((60, 5), -1)),
    "constant columns": lambda: with_columns(lambda X, y: X * 0 + 7),
    "no columns": lambda: with_columns(lambda X, y: X[:, :0]),
    "more columns than claims": lambda: with_columns(
        lambda X, y: np.random.RandomState(int(1e6 * abs(X[0, 0]))).normal(
            size=(5, 400)
        )
    ),
    "70 claims": lambda: flat(60, 70, [(0, v) for v in range(1, 70)], hazard=0.01),
    "chain of 40, hazards near 1": lambda: flat(60, 40, chain(40), hazard=0.97),
    "hazards of 0 and 1": lambda: with_columns(lambda X, y: 1e6 * (y[:, None] - 0.5)),
    "no answer has a claim": lambda: (
        [ReasoningGraph(np.zeros((0, 3)), [])] * 60,
        [np.zeros(0)] * 60,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    ("scorer", "show"), [(ConfTrScorer(), 1), (ClassifierScorer(), "auto")], ids=str
)
def test_bad_data_give_a_valid_filter(scorer, name, show):
    graphs, labels = BAD[name]()
    guarantee = NoFalseClaim(show=show)
    cf = HardCF(scorer, alpha=0.2, guarantee=guarantee, random_state=0)
    cf.fit(graphs[:50], labels[:50])
    new = GraphBatch.from_graphs(graphs[50:])
    numbers = [*cf.path_risk(new), *cf.predict_alpha(new), *cf.scorer_.hazard(new)]
    assert not np.isnan(np.concatenate(numbers, axis=None)).any()
    assert not np.isnan(cf.threshold_)
    masks = cf.predict(new)
    assert_coherent(masks, new)
    if name in ("all false", "nothing is known"):
        assert not np.concatenate(masks).any()
    assert isinstance(cf.describe(), str)


@pytest.mark.parametrize("gain", [0.001, 1.5, True])
def test_gains_without_a_price_are_refused(gain):
    with pytest.raises(ValueError, match=r"gain.*0\.01"):
        HardCF(ClassifierScorer(gain=gain)).fit(GRAPHS, Y)


def test_hazards_of_xgboost_are_not_rounded_to_probabilities():
    """A probability of 1 - 1e-8 is 1 in float32."""
    xgboost = pytest.importorskip("xgboost")
    X = np.arange(40.0)[:, None]
    labels = (X[:, 0] > 5).astype(int)
    batch = one_claim_each(X)
    trees = xgboost.XGBClassifier(
        n_estimators=60, learning_rate=1.0, reg_lambda=0.0, min_child_weight=0.0
    )
    scorer = ClassifierScorer(trees).fit(batch, labels)
    hazard = scorer.hazard(batch)
    chance = scorer.estimator_.predict_proba(X)[:, 0].astype(float)
    assert chance.min() == 0 and np.isfinite(hazard).all() and hazard.min() < -16
    between = (chance > 1e-3) & (chance < 0.999)
    log_odds = np.log(chance[between] / (1 - chance[between]))
    np.testing.assert_allclose(hazard[between], log_odds, rtol=1e-3)
