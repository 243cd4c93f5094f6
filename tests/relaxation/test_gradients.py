"""Gradients of whole losses: where the reference has none, in large problems, in training."""

import numpy as np
import pytest
from autograd import value_and_grad
from autograd.test_util import check_grads
from random_graphs import Problems, chain, random_edges, random_problems
from test_relaxation import RELAXATIONS, loss_of, reference_loss, with_unknown
from theorem_limits import relaxation_at

from skdcf import GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import LinearModel, MLPModel
from skdcf.training import LBFGS, SoftTraining
from skdcf.training.loop import standardised_risk, train

LIMITS = {f"grid, T = {T}": relaxation_at(T) for T in (1e-1, 1e-2)}
EVERY = RELAXATIONS | LIMITS


@pytest.fixture(params=EVERY)
def relaxation(request):
    return EVERY[request.param]


def assert_same(relaxation, problems, risk, labels=None, coherent=True):
    """Value and gradient are those of the loops over claims."""
    batch = problems.batch if coherent else problems.batch.replace_edges(())
    plan = relaxation.plan(batch, problems.labels if labels is None else labels)
    value, gradient = value_and_grad(loss_of(relaxation, plan, 0.3))(risk)
    loss = reference_loss(relaxation, problems, 0.3, coherent)
    expected, slope = value_and_grad(loss)(risk)
    scale = max(1.0, np.abs(slope).max())
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", range(2))
def test_towards_the_limit(relaxation, seed):
    problems = random_problems(seed, n_problems=12)
    risk = np.random.RandomState(seed).normal(size=problems.batch.n_claims)
    assert_same(relaxation, problems, risk)


@pytest.mark.parametrize("T", [1e-4, 1e-8])
def test_at_the_limit_gradients_are_finite(T):
    """The reference takes the logarithm of 0 there."""
    problems = random_problems(0, n_problems=12)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    relaxation = relaxation_at(T)
    plan = relaxation.plan(problems.batch, problems.labels)
    value, gradient = value_and_grad(loss_of(relaxation, plan, 0.3))(risk)
    with np.errstate(divide="ignore"):
        expected = reference_loss(relaxation, problems, 0.3)(risk)
    assert value == pytest.approx(expected, abs=1e-9)
    assert np.isfinite(gradient).all()


def test_ties(relaxation):
    problems = random_problems(6, n_problems=12)
    risk = np.random.RandomState(6).normal(size=problems.batch.n_claims)
    plan = relaxation.plan(problems.batch, problems.labels)
    for tied in (np.round(risk), np.zeros_like(risk)):
        value, gradient = value_and_grad(loss_of(relaxation, plan, 0.3))(tied)
        expected = reference_loss(relaxation, problems, 0.3)(tied)
        assert value == pytest.approx(expected, abs=1e-9)
        assert np.isfinite(gradient).all()


def test_without_edges_and_for_single_claims(relaxation):
    problems = random_problems(7, n_problems=12)
    risk = np.random.RandomState(7).normal(size=problems.batch.n_claims)
    assert_same(relaxation, problems, risk, coherent=False)
    single = Problems(np.random.RandomState(0), [[]] * 12, [1] * 12)
    assert_same(relaxation, single, np.random.RandomState(1).normal(size=12))


def test_unknown_labels_have_a_gradient(relaxation):
    problems = random_problems(8, n_problems=12)
    labels, _ = with_unknown(problems)
    risk = np.random.RandomState(8).normal(size=problems.batch.n_claims)
    plan = relaxation.plan(problems.batch, labels)
    loss = loss_of(relaxation, plan, 0.3)
    if relaxation in RELAXATIONS.values():
        check_grads(loss, modes=["rev"], order=1)(risk)
    assert np.isfinite(value_and_grad(loss)(risk)[1]).all()


def test_a_risk_that_is_not_a_number_gives_no_number(relaxation):
    problems = random_problems(9)
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.full(len(problems.labels), np.nan)
    assert np.isnan(loss_of(relaxation, plan, 0.3)(risk))


def test_neither_risk_nor_plan_is_changed(relaxation):
    problems = random_problems(10)
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    before = risk.copy()
    loss = loss_of(relaxation, plan, 0.3)
    first, second = value_and_grad(loss)(risk), value_and_grad(loss)(risk)
    np.testing.assert_array_equal(risk, before)
    assert first[0] == second[0] and (first[1] == second[1]).all()


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
    expected, slope = value_and_grad(reference_loss(relaxation, problems, 0.3))(risk)
    value, gradient = value_and_grad(loss_of(relaxation, plan, 0.3))(risk)
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
    value, gradient = value_and_grad(loss_of(relaxation, plan, 0.3))(risk)
    path_risk = np.maximum.accumulate(risk)
    threshold = relaxation.soft_threshold(path_risk[[20_000]], 0.3)
    kept = 1 / (1 + np.exp((path_risk - threshold) / 0.3))
    assert value == pytest.approx(-kept[labels == 1].sum())
    # A common shift changes nothing; the score moves with the risk that decides it.
    assert gradient.sum() == pytest.approx(0, abs=1e-9 * np.abs(gradient).max())
    deciding = np.argmax(risk[:20_001])
    assert gradient[deciding] == gradient.min() < 0
    np.testing.assert_array_equal(relaxation.state(risk, plan), path_risk)
    np.testing.assert_array_equal(relaxation.soft_scores(risk, plan), path_risk[20_000])


# ---- the whole objective


class Watched(LBFGS):
    """Hands the objective out instead of minimising it."""

    def minimize(self, fun, x, callback):
        Watched.fun, Watched.x = staticmethod(fun), x
        return x, True


@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()], ids=str)
@pytest.mark.parametrize("loss", ["log-retention", "retention"])
@pytest.mark.parametrize("unit_variance", [True, False])
@pytest.mark.parametrize("shrinkage", [0.0, 70.0])
@pytest.mark.parametrize("model", [LinearModel(), MLPModel((3,))], ids=str)
def test_objective_is_the_formula(model, relaxation, loss, unit_variance, shrinkage):
    batch, y = make_reasoning_graphs(40, random_state=1, return_X_y=True)
    labels = pack_labels(y, batch)
    training = SoftTraining(
        Watched(), loss=loss, shrinkage=shrinkage, unit_variance=unit_variance
    )
    rng = np.random.RandomState(0)
    result = train(model, relaxation, training, batch, labels, 0.2, rng=rng)
    X = result.columns(batch)
    first = -standardised_risk(model(result.params, X))

    def expected(flat):
        params = unflatten(flat[:-1])  # without a price, the intercept has no effect
        z = model(params, X)
        u = (z - z.mean()) / z.std()
        plan = relaxation.plan(batch, labels)
        kept = relaxation.retention(-u if unit_variance else -z, plan, 0.2)
        value = -np.log(kept) if loss == "log-retention" else -kept
        return value + shrinkage / (0.2 * 40) ** 2 * (1 - np.corrcoef(u, first)[0, 1])

    from autograd.misc import flatten

    _, unflatten = flatten(result.params)
    for x in (Watched.x, Watched.x + rng.normal(size=len(Watched.x)) / 5):
        assert Watched.fun(x)[0] == pytest.approx(expected(x), abs=1e-12)
    steps = 1e-6 * np.eye(len(x))
    slope = [(expected(x + h) - expected(x - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(Watched.fun(x)[1], slope, rtol=1e-4, atol=1e-5)


# ---- a class that changes a part


class OtherThreshold(PathRelaxation):
    def soft_threshold(self, scores, alpha):
        return super().soft_threshold(scores, alpha) - 1.0


class Mixin:
    def kept(self, state, threshold, plan):
        return 0.5 * super().kept(state, threshold, plan)


class Halved(Mixin, GridRelaxation):
    pass


@pytest.mark.parametrize("kind", [OtherThreshold, Halved])
def test_a_changed_relaxation_is_trained_for_what_it_does(kind):
    problems, relaxation = random_problems(2), kind()
    plan = relaxation.plan(problems.batch, problems.labels)
    risk = np.random.RandomState(2).normal(size=problems.batch.n_claims)
    loss = loss_of(relaxation, plan, 0.3)
    check_grads(loss, modes=["rev"], order=1)(risk)
    plain = GridRelaxation() if kind is Halved else PathRelaxation()
    assert loss(risk) != loss_of(plain, plan, 0.3)(risk)
