"""Gradients of whole losses: where the reference has none, in large problems, in training."""

import numpy as np
import pytest
from autograd import value_and_grad
from random_graphs import Problems, chain, random_edges, random_problems
from test_relaxation import RELAXATIONS, loss_of, reference_loss
from theorem_limits import relaxation_at

from skdcf import GraphBatch
from skdcf.relaxation import PathRelaxation

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


# ---- a class that changes a part
