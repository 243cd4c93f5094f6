"""Whole losses against per-problem references, numerical gradients and limits."""

import json

import autograd.numpy as anp
import numpy as np
import pytest
import reference_grid
import reference_path
from autograd import value_and_grad
from autograd.test_util import check_grads
from random_graphs import Problems, random_edges, random_problems
from theorem_limits import relaxation_at

from skdcf.relaxation import GridRelaxation, PathRelaxation

SOFT = {
    "keep_temperature": 0.4,
    "ancestor_weight": 1.7,
    "violation_temperature": 0.6,
    "sharpness": 3.0,
    "gate_temperature": 0.2,
    "quantile_strength": 1.5,
    "margin": 0.8,
}
RELAXATIONS = {
    "grid": GridRelaxation(),
    "grid, soft": GridRelaxation(**SOFT),
    "grid, m = 0": GridRelaxation(margin=0.0),
    "grid, math": GridRelaxation.from_paper("math", 0.05),
    "grid, T = .01": relaxation_at(1e-2),
    "path": PathRelaxation(),
    "path, sharp": PathRelaxation(keep_temperature=0.05, quantile_temperature=0.02),
}
LETTERS = {
    "T_p": "keep_temperature",
    "gamma": "ancestor_weight",
    "lambda": "violation_weight",
    "tau_s": "violation_temperature",
    "beta": "sharpness",
    "tau_z": "gate_temperature",
    "rho": "quantile_strength",
    "m": "margin",
    "keep_shift": "keep_shift",
    "gate_shift": "gate_shift",
    "T_s": "quantile_temperature",
    "T_q": "keep_temperature",
}


def reference_loss(relaxation, problems, alpha, coherent=True, **halves):
    """The loss as a function of the flat risk, by loops that share no code."""
    setting = {
        letter: getattr(relaxation, name)
        for letter, name in LETTERS.items()
        if hasattr(relaxation, name)
    }
    ancestors = problems.ancestors
    if not coherent:
        ancestors = [[[] for _ in above] for above in ancestors]
    n = len(halves.get("calibration", ancestors))
    if isinstance(relaxation, PathRelaxation):
        module, level = reference_path, alpha
    else:
        module, level = reference_grid, max(int(alpha * (n + 1) + 1e-9), 1)

    def loss(risk):
        lists = problems.lists(risk)
        labels = problems.label_lists
        return module.loss(lists, ancestors, labels, level, setting, **halves)

    return loss


@pytest.fixture(params=RELAXATIONS)
def relaxation(request):
    return RELAXATIONS[request.param]


def loss_of(relaxation, plan, alpha, **halves):
    """Minus the soft number of true claims kept per problem, as a function of the risk."""
    return lambda risk: -anp.mean(relaxation.true_claims(risk, plan, alpha, **halves))


def both(relaxation, problems, risk, alpha, coherent=True, **halves):
    batch = problems.batch if coherent else problems.batch.replace_edges(())
    plan = relaxation.plan(batch, problems.labels)
    return value_and_grad(loss_of(relaxation, plan, alpha, **halves))(risk)


def assert_equal_to_reference(relaxation, problems, risk, *args, **halves):
    value, gradient = both(relaxation, problems, risk, *args, **halves)
    loss = reference_loss(relaxation, problems, *args, **halves)
    expected, slope = value_and_grad(loss)(risk)
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("coherent", [True, False])
def test_equal_to_the_reference(relaxation, coherent):
    problems = random_problems(0)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    assert_equal_to_reference(relaxation, problems, risk, 0.3, coherent)


ORDER = np.random.RandomState(0).permutation(12)
HALVES = {
    "halves": {"calibration": ORDER[:5], "prediction": ORDER[5:]},
    "prediction": {"prediction": ORDER[:7]},
    "one twice": {"calibration": ORDER[[0, 1, 1, 2]]},
}


@pytest.mark.parametrize("halves", HALVES)
def test_halves_equal_to_the_reference(relaxation, halves):
    problems = random_problems(11, n_problems=12)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    assert_equal_to_reference(relaxation, problems, risk, 0.2, **HALVES[halves])


def with_empty_problems(seed):
    """Problems of which the first, two in the middle and the last have no claims."""
    rng = np.random.RandomState(seed)
    sizes = [0, 3, 1, 5, 0, 0, 4, 2, 6, 0]
    return Problems(rng, [random_edges(rng, n, 0.4) for n in sizes], sizes)


def test_problems_without_claims(relaxation):
    """They count, keep nothing, and no gradient is lost on them."""
    halves = {"calibration": np.array([0, 2, 3]), "prediction": np.array([4, 6])}
    problems = with_empty_problems(3)
    risk = np.random.RandomState(3).normal(size=problems.batch.n_claims)
    assert_equal_to_reference(relaxation, problems, risk, 0.3, **halves)
    plan = relaxation.plan(problems.batch, problems.labels)
    check_grads(loss_of(relaxation, plan, 0.3, **halves), modes=["rev"], order=1)(risk)
    assert (relaxation.true_claims(risk, plan, 0.3)[[0, 4, 5, 9]] == 0).all()


def test_extremely_spread_risks_give_no_infinities(relaxation):
    problems = random_problems(8)
    risk = 1e4 * np.random.RandomState(8).normal(size=problems.batch.n_claims)
    value, gradient = both(relaxation, problems, risk, 0.3)
    assert np.isfinite(value) and np.isfinite(gradient).all()


def with_unknown(problems, seed=0, share=0.3):
    """Labels of which some are unknown, and which."""
    unknown = np.random.RandomState(seed).uniform(size=len(problems.labels)) < share
    return np.where(unknown, -1, problems.labels), unknown


def test_unknown_claims_are_neither_true_nor_false(relaxation):
    """Scores are those of unknown claims as true ones, retention leaves them out."""
    problems = random_problems(12, n_problems=10)
    batch, (labels, unknown) = problems.batch, with_unknown(problems)
    risk = np.random.RandomState(12).normal(size=batch.n_claims)
    plan = relaxation.plan(batch, labels)
    hopeful = relaxation.plan(batch, np.where(unknown, 1, labels))
    scores = relaxation.soft_scores(risk, plan)
    np.testing.assert_array_equal(scores, relaxation.soft_scores(risk, hopeful))
    kept = relaxation.kept(
        relaxation.state(risk, plan), relaxation.soft_threshold(scores, 0.3), plan
    )
    found = relaxation.true_claims(risk, plan, 0.3).mean()
    assert found == pytest.approx(kept[labels == 1].sum() / 10)
    as_true = relaxation.true_claims(risk, hopeful, 0.3).mean()
    assert as_true - found == pytest.approx(kept[unknown].sum() / 10)
    assert unknown.any() and as_true > found


def test_a_gate_that_would_not_close_is_refused():
    with pytest.raises(ValueError, match=r"20 \* 0\.05 = 1.*gradient"):
        GridRelaxation(gate_temperature=0.05).validate()


def test_settings_of_the_paper(data_home):
    path = data_home.parent / "paper" / "tables.json"
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    tables = json.loads(path.read_text("utf-8"))
    felm, math = tables["hyperparameters_felm"], tables["hyperparameters_math"]
    for name, table in (("felm", felm), ("math", math)):
        for row in table["rows"]:
            printed = dict(zip(table["columns"], row, strict=True))
            printed |= table.get("shared", {})
            relaxation = GridRelaxation.from_paper(name, printed.pop("alpha"))
            relaxation.validate()
            del printed["lr"]
            for letter, value in printed.items():
                assert getattr(relaxation, LETTERS[letter]) == value
    for letter, value in tables["hyperparameters_validation"].items():
        assert (
            getattr(GridRelaxation.from_paper("validation"), LETTERS[letter]) == value
        )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("math", 0.2), r"alpha.*0\.03.*0\.2"),
        (("nq", 0.05), "dataset .*'nq'"),
        (("validation", 0.05), r"alpha.*None.*0\.05"),
    ],
)
def test_settings_that_are_not_in_the_paper(args, message):
    with pytest.raises(ValueError, match=message):
        GridRelaxation.from_paper(*args)


def test_at_the_limit_gradients_are_finite():
    """The reference takes the logarithm of 0 there."""
    T = 1e-8
    problems = random_problems(0, n_problems=12)
    risk = np.random.RandomState(0).normal(size=problems.batch.n_claims)
    value, gradient = both(relaxation_at(T), problems, risk, 0.3)
    with np.errstate(divide="ignore"):
        expected = reference_loss(relaxation_at(T), problems, 0.3)(risk)
    assert value == pytest.approx(expected, abs=1e-9)
    assert np.isfinite(gradient).all()
