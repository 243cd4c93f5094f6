"""Gradients by hand equal to those that autograd finds, and used only where they hold."""

import numpy as np
import pytest
from autograd import value_and_grad
from random_graphs import Problems, chain, random_edges, random_problems
from test_relaxation import RELAXATIONS, reference_loss, with_unknown
from theorem_limits import relaxation_at

from skdcf import GraphBatch
from skdcf.ops.soft import (
    neural_sort,
    neural_sort_and_gradient,
    quantile_root,
    smooth_quantile,
)
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import LinearModel, MLPModel
from skdcf.training.loop import (
    LOSSES,
    Objective,
    forward,
    own,
    risk_loss,
    standardised,
)

LIMITS = {f"grid, T = {T}": relaxation_at(T) for T in (1e-1, 1e-2, 1e-4, 1e-8)}
BY_HAND = {
    name: relaxation
    for name, relaxation in (RELAXATIONS | LIMITS).items()
    if not getattr(relaxation, "max_temperature", 0)
}
ORDER = np.random.RandomState(0).permutation(12)
HALVES = {
    "all": (None, None),
    "halves": (ORDER[:5], ORDER[5:]),
    "calibration": (ORDER[:7], None),
    "prediction": (None, ORDER[:7]),
    "one twice": (ORDER[[0, 1, 1, 2]], ORDER[[3, 3, 4]]),
}


@pytest.fixture(params=BY_HAND)
def relaxation(request):
    return BY_HAND[request.param]


def assert_same(relaxation, plan, risk, halves=(None, None), alpha=0.3):
    """Twice, as buffers and the last threshold are used again."""
    traced = value_and_grad(lambda r: relaxation.loss(r, plan, alpha, *halves))
    step = relaxation.value_and_grad(plan, alpha)
    for at in (risk, risk[::-1].copy(), risk):
        value, gradient = step(at, *halves)
        expected, slope = traced(at)
        scale = max(1.0, np.abs(slope).max())
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_traced_version(relaxation, seed, halves):
    problems = random_problems(seed, n_problems=12)
    risk = np.random.RandomState(seed).normal(size=problems.batch.n_claims)
    plan = relaxation.plan(problems.batch, problems.labels)
    assert_same(relaxation, plan, risk, HALVES[halves])


@pytest.mark.parametrize("alpha", [1e-4, 0.05, 0.9])
def test_equal_at_other_levels(relaxation, alpha):
    problems = random_problems(5, n_problems=12)
    risk = np.random.RandomState(5).normal(size=problems.batch.n_claims)
    plan = relaxation.plan(problems.batch, problems.labels)
    assert_same(relaxation, plan, risk, alpha=alpha)


def test_equal_at_ties_and_far_away(relaxation):
    problems = random_problems(6, n_problems=12)
    risk = np.random.RandomState(6).normal(size=problems.batch.n_claims)
    plan = relaxation.plan(problems.batch, problems.labels)
    for tied in (np.round(risk), np.zeros_like(risk), np.round(2 * risk) / 2):
        assert_same(relaxation, plan, tied)
    assert_same(relaxation, plan, 1e4 * risk)


def test_equal_without_edges_and_for_single_claims(relaxation):
    problems = random_problems(7, n_problems=12)
    risk = np.random.RandomState(7).normal(size=problems.batch.n_claims)
    flat = problems.batch.without_edges()
    assert_same(relaxation, relaxation.plan(flat, problems.labels), risk)
    single = Problems(np.random.RandomState(0), [[]] * 12, [1] * 12)
    plan = relaxation.plan(single.batch, single.labels)
    assert_same(relaxation, plan, np.random.RandomState(1).normal(size=12))


@pytest.mark.parametrize("value", [0, 1, -1, None])
def test_equal_with_one_label_and_with_unknown_ones(relaxation, value):
    problems = random_problems(8, n_problems=12)
    labels, _ = with_unknown(problems)
    if value is not None:
        labels = np.full(len(labels), value)
    risk = np.random.RandomState(8).normal(size=problems.batch.n_claims)
    assert_same(relaxation, relaxation.plan(problems.batch, labels), risk)


def test_a_risk_that_is_no_number_gives_no_number(relaxation):
    problems = random_problems(9)
    plan = relaxation.plan(problems.batch, problems.labels)
    value, gradient = relaxation.value_and_grad(plan, 0.3)(
        np.full(len(problems.labels), np.nan)
    )
    assert np.isnan(value) and np.isnan(gradient).all()


def test_neither_risk_nor_plan_is_changed(relaxation):
    problems = random_problems(10)
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    before = risk.copy(), relaxation.loss(risk, plan, 0.3)
    relaxation.value_and_grad(plan, 0.3)(risk)
    np.testing.assert_array_equal(risk, before[0])
    assert relaxation.loss(risk, plan, 0.3) == before[1]


@pytest.mark.parametrize("start", [-50.0, -1.0, 0.2, 3.0, 1e9, np.nan])
@pytest.mark.parametrize("temperature", [1e-6, 0.05, 0.3, 10.0])
def test_the_root_does_not_depend_on_where_the_search_starts(start, temperature):
    scores = np.random.RandomState(3).normal(size=40)
    for count in (0.4, 7.5, 39.6):
        found = quantile_root(scores, count, temperature, start)
        expected = smooth_quantile(scores, count, temperature)
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("start", [-0.5, 0.1, 0.9, 1.7, np.nan])
@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 0.02, 0.05])
def test_a_whole_count_between_far_scores_is_reached_in_their_middle(
    start, temperature
):
    scores = np.array([-1.0, 0.0, 1.0, 2.0])
    for count in (1, 2, 3):
        found = quantile_root(scores, count, temperature, start)
        assert found == pytest.approx(count - 1.5, abs=1e-6 * temperature)


def test_neural_sort_and_gradient_is_the_primitive():
    for scores in (np.random.RandomState(0).normal(size=9), np.repeat([0.0, 2.0], 4)):
        value, gradient = neural_sort_and_gradient(scores, 3, 2.0)
        expected, slope = value_and_grad(neural_sort)(scores, 3, 2.0)
        assert value == expected and (gradient == slope).all()


def large_and_small():
    """Problems of 1 to 90 claims: some above the size to which ancestors are listed."""
    rng = np.random.RandomState(4)
    sizes = [3, 90, 1, 70, 5, 80]
    edges = [random_edges(rng, n, 0.1 if n > 64 else 0.5) for n in sizes]
    return Problems(rng, edges, sizes, share_false=0.1)


@pytest.mark.parametrize("temperature", [0.3, 0.02])
def test_large_problems_equal_a_loop_over_claims(temperature):
    problems = large_and_small()
    relaxation = PathRelaxation(keep_temperature=temperature)
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.random.RandomState(5).normal(size=problems.batch.n_claims)
    assert_same(relaxation, plan, risk)
    expected, slope = value_and_grad(reference_loss(relaxation, problems, 0.3))(risk)
    value, gradient = relaxation.value_and_grad(plan, 0.3)(risk)
    assert value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-9)
    assert "closure" not in vars(problems.batch)


def test_a_chain_of_which_no_list_can_be_made():
    n = 30_000
    batch = GraphBatch.from_arrays(np.zeros((n, 1)), [0, n], chain(n))
    labels = np.ones(n)
    labels[20_000] = 0
    risk = np.random.RandomState(0).normal(size=n)
    relaxation = PathRelaxation()
    plan = relaxation.plan(batch, labels)
    value, gradient = relaxation.value_and_grad(plan, 0.3)(risk)
    expected, slope = value_and_grad(relaxation.loss)(risk, plan, 0.3)
    assert value == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(gradient, slope, atol=1e-9)
    path_risk = np.maximum.accumulate(risk)
    np.testing.assert_array_equal(relaxation.state(risk, plan), path_risk)
    np.testing.assert_array_equal(relaxation.soft_scores(risk, plan), path_risk[20_000])
    with pytest.raises(ValueError, match="too large for a list of all ancestors"):
        PathRelaxation(max_temperature=0.1).loss(risk, plan, 0.3)


# ---- the whole objective


def traced_objective(model, relaxation, plan, loss, unit_variance, mu, start, X):
    """The same formula for autograd, with nothing by hand."""
    import autograd.numpy as anp

    def objective(params, *halves):
        z = model(params, X)
        u = (z - anp.mean(z)) / anp.std(z)
        value = relaxation.loss(-u if unit_variance else -z, plan, 0.2, *halves)
        value = -anp.log(-value) if loss == "log-retention" else value
        return value + mu * (1 - anp.dot(u, start) / len(X))

    return objective


@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("unit_variance", [True, False])
@pytest.mark.parametrize("mu", [0.0, 0.7])
@pytest.mark.parametrize("halves", ["all", "halves"])
@pytest.mark.parametrize("model", [LinearModel(), MLPModel((3,))], ids=str)
def test_objective(model, relaxation, loss, unit_variance, mu, halves):
    from autograd.misc import flatten

    problems = random_problems(1, n_problems=12)
    X, rng = problems.batch.features, np.random.RandomState(2)
    flat, unflatten = flatten(model.init(X.shape[1], rng))
    plan = relaxation.plan(problems.batch, problems.labels)
    start, _ = standardised(rng.normal(size=len(X)))
    objective = Objective(
        forward(model, unflatten, X),
        risk_loss(relaxation, plan, 0.2),
        LOSSES[loss],
        unit_variance,
        mu,
        start,
    )
    found, gradient = objective(flat, *HALVES[halves])
    traced = traced_objective(
        model, relaxation, plan, loss, unit_variance, mu, start, X
    )
    expected, slope = value_and_grad(lambda x: traced(unflatten(x), *HALVES[halves]))(
        flat
    )
    assert found == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-11)


# ---- where it holds


class OtherThreshold(PathRelaxation):
    def soft_threshold(self, scores, alpha):
        return super().soft_threshold(scores, alpha) - 1.0


class Mixin:
    def kept(self, state, threshold, plan):
        return 0.5 * super().kept(state, threshold, plan)


class Halved(Mixin, GridRelaxation):
    pass


class SquaredScorer(LinearModel):
    def __call__(self, params, X):
        return X**2 @ params


@pytest.mark.parametrize("kind", [OtherThreshold, Halved])
def test_a_changed_relaxation_is_trained_for_what_it_does(kind):
    problems, relaxation = random_problems(2), kind()
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.random.RandomState(2).normal(size=problems.batch.n_claims)
    value, gradient = risk_loss(relaxation, plan, 0.3)(risk)
    expected, slope = value_and_grad(relaxation.loss)(risk, plan, 0.3)
    assert value == expected and (gradient == slope).all()
    plain = GridRelaxation() if kind is Halved else PathRelaxation()
    assert value != risk_loss(plain, plan, 0.3)(risk)[0]


def test_a_changed_model_is_trained_for_what_it_does():
    X, weights = np.random.RandomState(0).normal(size=(5, 2)), np.array([1.0, -2.0])
    scores, back = forward(SquaredScorer(), lambda x: x, X)(weights)
    np.testing.assert_allclose(scores, X**2 @ weights)
    np.testing.assert_allclose(back(scores), (X**2).T @ scores)


def test_what_is_by_hand():
    procedure = ("state", "scores", "soft_threshold", "kept", "retention", "loss")
    assert own(PathRelaxation(), "value_and_grad", procedure) is not None
    assert own(GridRelaxation(), "value_and_grad", procedure) is not None
    assert own(OtherThreshold(), "value_and_grad", procedure) is None
    assert own(Halved(), "value_and_grad", procedure) is None
    assert own(LinearModel(), "vjp", ["__call__"]) is not None
    assert own(SquaredScorer(), "vjp", ["__call__"]) is None
    assert own(MLPModel(), "vjp", ["__call__"]) is None
    plan = PathRelaxation().plan(random_problems(0).batch, random_problems(0).labels)
    assert PathRelaxation(max_temperature=0.1).value_and_grad(plan, 0.3) is None
