"""Training: starts, optimizers, curves, reproducibility, and what cannot be learnt."""

from itertools import pairwise

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skdcf.datasets import make_reasoning_graphs
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import FitTask, LinearModel, MLPModel
from skdcf.training import LBFGS, Adam, SoftTraining
from skdcf.training.loop import fit_logistic, train
from skdcf.training.splitting import Columns, noise_columns

RELAXATIONS = [PathRelaxation(), GridRelaxation()]
BATCH, Y = make_reasoning_graphs(80, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, BATCH)
X = Columns.fit(BATCH)(BATCH)


def run(training=None, model=None, relaxation=None, batch=BATCH, labels=LABELS, **more):
    """The result of training, with a fixed seed."""
    rng = np.random.RandomState(0)
    settings = {"relaxation": relaxation, "training": training, "rng": rng} | more
    return train(model or LinearModel(), batch, labels, FitTask(**settings))


def paper(**changes):
    """The paper's training without validation problems, with changes."""
    changes = {"optimizer__validation_size": None} | changes
    return SoftTraining.from_paper().set_params(**changes)


def risk_of(result, model=None, batch=BATCH):
    model = model or LinearModel()
    return -model(result.params, result.columns(batch)) / result.scale


def correlation(a, b):
    return np.corrcoef(X @ a, X @ b)[0, 1]


class Spy(PathRelaxation):
    """Records the problems and halves that it is given."""

    def plan(self, batch, labels):
        self.plans = [*getattr(self, "plans", []), (batch, labels)]
        return super().plan(batch, labels)

    def true_claims(self, risk, plan, alpha, calibration=None, prediction=None):
        if calibration is not None:
            self.halves = [*getattr(self, "halves", []), (calibration, prediction)]
        return super().true_claims(risk, plan, alpha, calibration, prediction)


# ---- optimizers


def quadratic(x):
    return 0.5 * x @ (np.arange(1, 4) * x), np.arange(1, 4) * x


@pytest.mark.parametrize("optimizer", [LBFGS(300), Adam(0.1, max_iter=300)], ids=str)
def test_optimizers_find_a_minimum_and_stop_when_asked(optimizer):
    x, finite = optimizer.minimize(quadratic, np.ones(3), lambda *_: False)
    assert finite
    np.testing.assert_allclose(x, 0, atol=1e-3)
    steps = []
    optimizer.minimize(
        quadratic, np.ones(3), lambda step, *_: steps.append(step) or step == 1
    )
    assert steps == [0, 1]


# ---- columns and start


def test_columns_are_standardised_and_clipped():
    values = np.array([[0.0, 5.0, 1e9 + 0.1], [2, 5, 1e9 + 0.1], [40, 5, 1e9 + 0.1]])
    columns = Columns.fit(one_claim_each(values))
    np.testing.assert_allclose(
        columns(one_claim_each(values))[:, 0], (values[:, 0] - 14) / values[:, 0].std()
    )
    assert not columns(one_claim_each(values))[:, 1:].any()
    assert columns(one_claim_each([[1e4, -1e4, 1e9]])).tolist() == [[3, 0, 0]]
    rounded = np.full((300, 1), np.log(5.0))
    assert np.std(rounded) > 1e-16
    assert np.isinf(Columns.fit(one_claim_each(rounded)).scale).all()


def test_columns_of_the_whole_problem_are_its_means_and_log_size():
    columns = Columns.fit(BATCH, with_means=True)
    n = BATCH.n_features
    raw = columns.raw(BATCH.features, BATCH.sizes)
    for rows, size in zip(BATCH.split(raw), BATCH.sizes, strict=True):
        np.testing.assert_allclose(
            rows[:, n:-1].T - rows[:, :n].mean(0)[:, None], 0, atol=1e-6
        )
        np.testing.assert_allclose(rows[:, -1], np.log(size))
    expected = (raw - columns.mean) / columns.scale
    inside = np.abs(expected) < columns.bound
    np.testing.assert_allclose(columns(BATCH)[inside], expected[inside])
    assert 0 < inside.mean() < 1
    deviation = columns(BATCH)[:, -1].std()
    assert deviation == pytest.approx(3**-0.5, rel=0.05)


def test_columns_of_rounding_errors_are_left_out():
    """Standardised, they would decide, and they differ between batches."""
    rng = np.random.RandomState(0)
    values = rng.normal(size=(50, 4)) * [1.0, 1e-9, 1.0, 1e-14] + [0.0, 0.0, 3.0, 0.0]
    values[:, 2] = 3.0
    assert noise_columns(values).tolist() == [3]
    found = Columns.fit(one_claim_each(values))(one_claim_each(values))
    np.testing.assert_allclose(found[:, [0, 1]].std(axis=0), 1.0, atol=0.05)
    assert not found[:, [2, 3]].any()
    assert noise_columns(1e-30 * values).tolist() == [3]
    assert noise_columns(values[:, [3]]).tolist() == []


@pytest.mark.parametrize("init", ["hazard", "coherent"])
def test_the_start_is_a_logistic_regression(init):
    """On claims below true ones, or on coherent labels, where these are known."""
    labels = np.where(np.random.RandomState(0).uniform(size=len(X)) < 0.1, -1, LABELS)
    known, target = [], []
    for graph, own in zip(BATCH, BATCH.split(labels), strict=True):
        for v in range(graph.n_claims):
            above = own[graph.ancestors(v)]
            seen = np.append(above, own[v])
            known.append(
                own[v] >= 0 and (above == 1).all()
                if init == "hazard"
                else (seen == 0).any() or (seen == 1).all()
            )
            target.append(own[v] == 1 if init == "hazard" else (seen == 1).all())
    known, target = np.array(known), np.array(target)
    strong = SoftTraining(LBFGS(1), init=init, shrinkage=1e9)
    C = {"hazard": 0.03, "coherent": 0.3}[init]
    other = LogisticRegression(C=C, tol=1e-10, max_iter=5000)
    other.fit(X[known], target[known])
    result = run(strong, labels=labels)
    assert correlation(result.params, other.coef_[0]) > 0.9999
    start = fit_logistic(
        LinearModel(), X[known], target[known], np.ones(X.shape[1]), lambda x: x, C
    )
    np.testing.assert_allclose(start[:-1], other.coef_[0], atol=1e-4)
    np.testing.assert_allclose(start[-1], -other.intercept_[0], atol=1e-4)


def test_the_shrinkage_counts_questions():
    """One question for all answers, or one for each, with the strength that is the same."""
    groups = np.arange(80) // 2
    once = run(SoftTraining(shrinkage=400.0))
    twice = run(SoftTraining(shrinkage=100.0), groups=groups)
    np.testing.assert_array_equal(once.params, twice.params)


# ---- whole runs


@pytest.mark.parametrize(
    ("model", "relaxation", "loss"),
    [
        (LinearModel(), PathRelaxation(), "retention"),
        (MLPModel((3,)), PathRelaxation(), "log-retention"),
        (LinearModel(), GridRelaxation(), "log-retention"),
    ],
)
def test_training_raises_the_retention_that_the_loss_measures(model, relaxation, loss):
    result = run(SoftTraining(LBFGS(10), loss=loss, shrinkage=0.0), model, relaxation)
    assert not result.message and len(result.loss_curve) <= 10
    assert all(a >= b for a, b in pairwise(result.loss_curve))
    assert result.loss_curve[0] > result.loss_curve[-1]
    risk = risk_of(result, model)
    assert risk.std() == pytest.approx(1)
    kept = relaxation.true_claims(risk, relaxation.plan(BATCH, LABELS), 0.1).mean()
    expected = -kept if loss == "retention" else -np.log(kept)
    assert expected == pytest.approx(result.loss_curve[-1])


# ---- the paper's procedure


def test_the_best_epoch_on_validation_problems_is_kept():
    spy = Spy()
    training = SoftTraining.from_paper().set_params(
        optimizer__patience=3, optimizer__max_iter=200
    )
    result = run(training, relaxation=spy)
    (rest, _), (held, labels) = spy.plans
    assert (len(rest), len(held)) == (64, 16)
    np.testing.assert_allclose(result.columns.mean, rest.features.mean(axis=0))
    plan = PathRelaxation().plan(held, labels)
    kept = PathRelaxation().true_claims(risk_of(result, batch=held), plan, 0.1).mean()
    epochs = len(result.loss_curve)
    assert 4 <= epochs < 200
    # Stopped after as many epochs as the best has, training returns the same parameters.
    again = run(training.set_params(optimizer__max_iter=epochs - 3))
    np.testing.assert_array_equal(again.params, result.params)
    last = run(training.set_params(optimizer__max_iter=epochs - 4), relaxation=spy)
    risk = risk_of(last, batch=held)
    assert PathRelaxation().true_claims(risk, plan, 0.1).mean() < kept


def test_a_group_is_not_divided_by_validation():
    groups = np.arange(80) // 8
    spy = Spy()
    run(
        paper(optimizer__validation_size=3, optimizer__max_iter=2),
        relaxation=spy,
        batch=BATCH.replace_features(groups[BATCH.problem_of][:, None] * 1.0),
        groups=groups,
    )
    seen = [set(part.features[:, 0]) for part, _ in spy.plans]
    assert seen[0].isdisjoint(seen[1])
    assert (len(seen[0]), len(seen[1])) == (7, 3)
    for part, labels in spy.plans:
        expected = [y for i, y in enumerate(Y) if i // 8 in set(part.features[:, 0])]
        np.testing.assert_array_equal(labels, np.concatenate(expected))


# ---- what cannot go well


class Breaking(BaseEstimator):
    """Weights above a bound give a score that is not a number."""

    def init(self, n_features, rng):
        return np.zeros(n_features) + 0.01

    def __call__(self, params, X):
        import autograd.numpy as np

        with np.errstate(invalid="ignore"):
            return X @ params + 0 * np.sqrt(0.1 - np.max(np.abs(params)))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("optimizer", [LBFGS(), Adam(0.03, validation_size=None)])
def test_a_loss_that_is_not_finite_ends_training(optimizer):
    result = run(SoftTraining(optimizer, init="random"), Breaking())
    assert f"after {len(result.loss_curve)} iterations" in result.message
    assert np.isfinite(result.loss_curve).all()
    assert np.abs(result.params).max() < 0.1


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
def test_constant_features_teach_nothing(relaxation):
    batch = BATCH.replace_features(np.full((BATCH.n_claims, 2), 7.0))
    result = run(relaxation=relaxation, batch=batch)
    assert "constant" in result.message and np.ptp(risk_of(result, batch=batch)) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": SoftTraining(LBFGS(0))}, "max_iter"),
        (
            {"training": SoftTraining(init="random", shrinkage=1.0)},
            r"shrinkage.*random.*1\.0",
        ),
        (
            {"training": SoftTraining(Adam(validation_size=None, patience=3))},
            "patience.*effect without validation.*3",
        ),
        ({"relaxation": PathRelaxation(keep_temperature=-1)}, "-1"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        run(**change)
