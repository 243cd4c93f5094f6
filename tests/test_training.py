"""Training: starts, optimisers, curves, reproducibility, and what cannot be learnt."""

from itertools import pairwise

import numpy as np
import pytest
from skdcf.scorers._standardize import Standardizer
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skdcf import GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.hard import coherent_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import LinearScorer, MLPScorer
from skdcf.training import PAPER, train
from skdcf.training._optimizers import adam, lbfgs
from skdcf.training._start import logistic_start

RELAXATIONS = [PathRelaxation(), PathRelaxation(max_temperature=0.1), GridRelaxation()]


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch)


BATCH, LABELS = problems(80)


def run(scorer=None, relaxation=None, batch=BATCH, labels=LABELS, seed=0, **more):
    return train(
        LinearScorer() if scorer is None else scorer,
        PathRelaxation() if relaxation is None else relaxation,
        batch,
        labels,
        **({"alpha": 0.1, "rng": np.random.RandomState(seed)} | more),
    )


def same(a, b):
    """Bit for bit, for arrays and nested lists of them."""
    if isinstance(a, np.ndarray):
        return a.tobytes() == b.tobytes()
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


# ---- the two optimisers


def quadratic(x, step=None):
    return 0.5 * x @ (np.arange(1, 4) * x), np.arange(1, 4) * x


@pytest.mark.parametrize("optimizer", [lbfgs, adam])
def test_optimisers_find_a_minimum(optimizer):
    more = {"learning_rate": 0.1} if optimizer is adam else {}
    x, finite = optimizer(quadratic, np.ones(3), 300, lambda *_: False, **more)
    assert finite
    np.testing.assert_allclose(x, 0, atol=1e-3)


def test_first_step_of_adam_has_the_length_of_the_rate():
    x, _ = adam(quadratic, np.ones(3), 1, lambda *_: False, learning_rate=0.015)
    np.testing.assert_allclose(1 - x, 0.015, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [lbfgs, adam])
def test_watching_may_stop_a_run(optimizer):
    steps = []
    optimizer(
        quadratic, np.ones(3), 50, lambda step, *_: steps.append(step) or step == 1
    )
    assert steps == [0, 1]


# ---- standardised features and the start


def test_standardizer():
    X = np.array([[0.0, 5.0, 1e9 + 0.1], [2.0, 5.0, 1e9 + 0.1], [40.0, 5.0, 1e9 + 0.1]])
    standard = Standardizer.fit(X)
    assert standard(X)[:, 1:].tolist() == [[0, 0]] * 3
    np.testing.assert_allclose(standard(X)[:, 0], (X[:, 0] - 14) / X[:, 0].std())
    assert standard(np.array([[1e4, -1e4, 1e9]])).tolist()[0][:2] == [3, -3]


def test_raw_weights_give_the_same_differences_inside_the_clip():
    result = run()
    raw = result.standardizer.raw_weights(result.params) / result.scale
    standard = (BATCH.features - result.standardizer.mean) / result.standardizer.scale
    inside = (np.abs(standard) <= 3).all(axis=1)
    assert 10 < inside.sum() < len(inside)
    confidence = result.confidence(LinearScorer(), BATCH.features)[inside]
    linear = (BATCH.features @ raw)[inside]
    np.testing.assert_allclose(
        confidence - confidence[0], linear - linear[0], atol=1e-9
    )


def test_start_is_penalised_logistic_regression():
    X = Standardizer.fit(BATCH.features)(BATCH.features)
    target = coherent_labels(LABELS, BATCH)
    start = logistic_start(LinearScorer(), X, target, np.ones(X.shape[1]), lambda x: x)
    other = LogisticRegression(C=0.3, tol=1e-10, max_iter=5000).fit(X, target)
    np.testing.assert_allclose(start, other.coef_[0], atol=1e-4)


def test_start_without_coherence_learns_the_own_label():
    strong = {"shrinkage": 1e9, "max_iter": 1}
    for coherent, target in ((True, coherent_labels(LABELS, BATCH)), (False, LABELS)):
        result = run(coherent=coherent, **strong)
        X = result.standardizer(BATCH.features)
        other = LogisticRegression(C=0.3, tol=1e-10).fit(X, target)
        scores = other.decision_function(X)
        assert np.corrcoef(X @ result.params, scores)[0, 1] > 0.9999


# ---- whole runs


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("scorer", [LinearScorer(), MLPScorer((3,))], ids=str)
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_training_retains_more_than_its_start(scorer, relaxation, optimizer):
    more = {"optimizer": optimizer, "shrinkage": 0.0}
    result = run(scorer, relaxation, max_iter=40, **more)
    assert result.converged and result.message == ""
    assert result.n_iter == len(result.loss_curve) <= 40
    plan = relaxation.plan(BATCH, LABELS)

    def retention(result):
        risk = -result.confidence(scorer, BATCH.features)
        return relaxation.retention(risk, plan, 0.1)

    begin = run(scorer, relaxation, max_iter=1, learning_rate=1e-9, **more)
    if optimizer == "adam":
        assert retention(begin) < retention(result)
    else:
        assert result.loss_curve[-1] < result.loss_curve[0]
        assert -np.log(retention(result)) == pytest.approx(result.loss_curve[-1])


def test_steps_of_lbfgs_never_raise_the_loss():
    curve = run().loss_curve
    assert all(a >= b for a, b in pairwise(curve))


def test_confidence_has_unit_deviation():
    for scorer in (LinearScorer(), MLPScorer()):
        result = run(scorer)
        assert result.confidence(scorer, BATCH.features).std() == pytest.approx(1)
    assert run(unit_variance=False).scale == 1


def test_shrinkage_keeps_scores_near_the_start():
    X = Standardizer.fit(BATCH.features)(BATCH.features)
    target = coherent_labels(LABELS, BATCH)
    w = logistic_start(LinearScorer(), X, target, np.zeros(X.shape[1]), lambda x: x)
    kept = [
        np.corrcoef(X @ w, X @ run(shrinkage=strength).params)[0, 1]
        for strength in (0.0, 100.0, 1e6)
    ]
    assert kept == sorted(kept) and kept[0] < 0.99 < kept[2]


@pytest.mark.parametrize("kind", [{}, {"optimizer": "adam"}, PAPER], ids=str)
@pytest.mark.parametrize("scorer", [LinearScorer(), MLPScorer()], ids=str)
def test_same_seed_same_bits(kind, scorer):
    first, second = (run(scorer, max_iter=8, **kind) for _ in range(2))
    assert same(first.params, second.params)
    assert first.loss_curve == second.loss_curve
    assert not same(first.params, run(scorer, seed=1, max_iter=8, **kind).params)


def test_a_generator_is_as_good_as_a_random_state():
    generators = (np.random.default_rng(5) for _ in range(2))
    first, second = (run(rng=g, max_iter=5, **PAPER) for g in generators)
    assert same(first.params, second.params)


def test_training_goes_on_from_given_parameters():
    first = run(shrinkage=0.0, max_iter=5)
    second = run(shrinkage=0.0, max_iter=25, start=first.params)
    assert second.loss_curve[0] <= first.loss_curve[-1]
    assert not same(first.params, second.params)


def test_the_number_of_problems_and_their_order_do_not_enter_otherwise():
    order = np.random.RandomState(0).permutation(len(BATCH))
    labels = np.concatenate([BATCH.split(LABELS)[i] for i in order])
    mixed = run(batch=BATCH[order], labels=labels, max_iter=3)
    np.testing.assert_allclose(mixed.params, run(max_iter=3).params, rtol=1e-5)


# ---- the paper's procedure


def test_the_best_epoch_on_validation_problems_is_kept():
    held = problems(30, seed=1)
    result = run(**PAPER, validation=held, patience=3)
    curve = result.validation_curve
    assert len(curve) == result.n_iter
    best = int(np.argmax(curve))
    assert result.n_iter in (100, best + 4)
    relaxation = PathRelaxation()
    risk = -result.confidence(LinearScorer(), held[0].features)
    value = relaxation.retention(risk, relaxation.plan(*held), 0.1)
    assert value == pytest.approx(curve[best])


def test_without_validation_problems_all_epochs_are_run():
    result = run(**PAPER, max_iter=23)
    assert result.n_iter == 23 and result.validation_curve == []


def test_validation_problems_are_standardised_like_training_problems():
    held, held_labels = problems(30, seed=1)
    moved = held.replace_features(held.features + 100.0)
    result = run(**PAPER, validation=(moved, held_labels), max_iter=3)
    np.testing.assert_array_equal(result.standardizer.mean, BATCH.features.mean(axis=0))


def test_each_epoch_has_halves_of_its_own():
    seen = []

    class Spy(PathRelaxation):
        def retention(self, risk, plan, alpha, calibration=None, prediction=None):
            seen.append((calibration, prediction))
            return super().retention(risk, plan, alpha, calibration, prediction)

    run(relaxation=Spy(), max_iter=4, **PAPER)
    assert len(seen) == 4
    for calibration, prediction in seen:
        both = np.concatenate([calibration, prediction])
        assert sorted(both) == list(range(80)) and len(calibration) == 40
    assert len({tuple(sorted(c)) for c, _ in seen}) == 4


# ---- what cannot go well


class Breaking(BaseEstimator):
    """Weights above a bound give no number."""

    def init(self, n_features, rng):
        return np.zeros(n_features) + 0.01

    def __call__(self, params, X):
        import autograd.numpy as np

        with np.errstate(invalid="ignore"):
            return X @ params + 0 * np.sqrt(0.1 - np.max(np.abs(params)))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_loss_that_is_no_number_ends_training(optimizer):
    result = run(Breaking(), start="random", optimizer=optimizer, learning_rate=0.03)
    assert not result.converged and "not finite after" in result.message
    assert np.isfinite(result.params).all() and np.isfinite(result.loss_curve).all()
    assert np.abs(result.params).max() < 0.1


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("kind", [{}, {"optimizer": "adam", "max_iter": 5}], ids=str)
@pytest.mark.parametrize("value", [True, False])
def test_one_label_only_teaches_nothing(relaxation, kind, value):
    labels = np.full(len(LABELS), value)
    result = run(relaxation=relaxation, labels=labels, **kind)
    word = "false" if value else "true"
    assert f"no training claim is {word}" in result.message and result.converged
    assert result.params.tolist() == [0.0] * BATCH.n_features and result.scale == 1


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
def test_constant_features_teach_nothing(relaxation):
    batch = BATCH.replace_features(np.full((BATCH.n_claims, 2), 7.0))
    result = run(relaxation=relaxation, batch=batch)
    assert "constant features" in result.message
    assert np.ptp(result.confidence(LinearScorer(), batch.features)) == 0


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize(
    "kind", [{}, {"optimizer": "adam", "max_iter": 5}, PAPER], ids=str
)
def test_little_data(relaxation, kind):
    one = BATCH.replace_features(BATCH.features[:, :1])
    assert np.isfinite(run(relaxation=relaxation, batch=one, **kind).params).all()
    two = GraphBatch.from_arrays(
        [[0.3], [0.1], [0.9], [0.2]], [0, 2, 4], [(0, 1), (2, 3)]
    )
    labels = np.array([True, False, True, True])
    result = run(relaxation=relaxation, batch=two, labels=labels, **kind)
    assert result.converged and np.isfinite(result.params).all()
    alone = run(relaxation=relaxation, batch=two[:1], labels=labels[:2], **kind)
    assert alone.converged and np.isfinite(alone.params).all()


@pytest.mark.parametrize("alpha", [1e-4, 0.9])
@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
def test_levels_that_the_errors_cannot_resolve(relaxation, alpha):
    result = run(relaxation=relaxation, alpha=alpha)
    assert result.converged and np.isfinite(result.params).all()


def test_wrong_arguments():
    cases = {
        "optimizer": ("sgd", "optimizer is 'sgd'"),
        "loss": ("hinge", "loss is 'hinge'"),
        "start": ("zero", "start is 'zero'"),
        "shrinkage": (-1.0, "shrinkage is -1.0"),
        "alpha": (0.0, "alpha is 0.0"),
        "validation": ((BATCH, LABELS), "adam"),
        "max_iter": (0, "max_iter is 0"),
        "learning_rate": (0.0, "learning_rate is 0.0"),
        "patience": (0, "patience is 0"),
        "relaxation": (GridRelaxation(sharpness=100.0), "sharpness"),
    }
    for name, (value, message) in cases.items():
        with pytest.raises(ValueError, match=message):
            run(**{name: value})


def test_progress_is_printed(capsys):
    run(verbose=True, max_iter=3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("step 1: loss ") and "retention" in lines[0]
    run(max_iter=3)
    assert capsys.readouterr().out == ""
