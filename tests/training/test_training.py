"""Training: starts, optimisers, curves, reproducibility, and what cannot be learnt."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

from skdcf import GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.labels import pack_labels
from skdcf.ops.hard import coherent_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import LinearModel, MLPModel
from skdcf.training import LBFGS, Adam, SoftTraining
from skdcf.training.loop import START, fit_logistic, train
from skdcf.training.splitting import Standardizer, noise_columns

RELAXATIONS = [PathRelaxation(), PathRelaxation(max_temperature=0.1), GridRelaxation()]


def confidence_of(result, model, features):
    return model(result.params, result.columns.own(features)) / result.scale


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch) == 1


BATCH, LABELS = problems(80)


def run(
    training=None,
    model=None,
    relaxation=None,
    batch=BATCH,
    labels=LABELS,
    alpha=0.1,
    seed=0,
    **more,
):
    """The one result of training for one level."""
    return train(
        LinearModel() if model is None else model,
        PathRelaxation() if relaxation is None else relaxation,
        SoftTraining() if training is None else training,
        batch,
        labels,
        alpha,
        **({"rng": np.random.RandomState(seed)} | more),
    )


def lbfgs_of(max_iter, **settings):
    return SoftTraining(LBFGS(max_iter), **settings)


def paper(**changes):
    """The paper's training without validation problems, with changes."""
    changes = {"optimizer__validation_size": None} | changes
    return SoftTraining.from_paper().set_params(**changes)


class Spy(PathRelaxation):
    """Writes down what it is asked; the lists are the caller's."""

    plans, halves = [], []

    def plan(self, batch, labels):
        self.plans.append((batch, labels))
        return super().plan(batch, labels)

    def true_claims(self, risk, plan, alpha, calibration=None, prediction=None):
        if calibration is not None:
            self.halves.append((calibration, prediction))
        return super().true_claims(risk, plan, alpha, calibration, prediction)


@pytest.fixture
def spy(monkeypatch):
    monkeypatch.setattr(Spy, "plans", [])
    monkeypatch.setattr(Spy, "halves", [])
    return Spy()


def same(a, b):
    """Bit for bit, for arrays and nested lists of them."""
    if isinstance(a, np.ndarray):
        return a.tobytes() == b.tobytes()
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


# ---- the two optimisers


def quadratic(x, step=None):
    return 0.5 * x @ (np.arange(1, 4) * x), np.arange(1, 4) * x


@pytest.mark.parametrize("optimizer", [LBFGS, Adam])
def test_optimisers_find_a_minimum(optimizer):
    more = {"learning_rate": 0.1} if optimizer is Adam else {}
    found = optimizer(max_iter=300, **more)
    x, finite = found.minimize(quadratic, np.ones(3), lambda *_: False)
    assert finite
    np.testing.assert_allclose(x, 0, atol=1e-3)


def test_first_step_of_adam_has_the_length_of_the_rate():
    x, _ = Adam(0.015, max_iter=1).minimize(quadratic, np.ones(3), lambda *_: False)
    np.testing.assert_allclose(1 - x, 0.015, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [LBFGS, Adam])
def test_watching_may_stop_a_run(optimizer):
    steps = []
    optimizer(max_iter=50).minimize(
        quadratic, np.ones(3), lambda step, *_: steps.append(step) or step == 1
    )
    assert steps == [0, 1]


# ---- standardised features and the start


def test_standardizer():
    X = np.array([[0.0, 5.0, 1e9 + 0.1], [2.0, 5.0, 1e9 + 0.1], [40.0, 5.0, 1e9 + 0.1]])
    standard = Standardizer.fit(X)
    assert standard(X)[:, 1:].tolist() == [[0, 0]] * 3
    np.testing.assert_allclose(standard(X)[:, 0], (X[:, 0] - 14) / X[:, 0].std())
    assert standard(np.array([[1e4, -1e4, 1e9]])).tolist() == [[3, 0, 0]]  # constants


def test_a_constant_column_is_left_out_in_spite_of_rounding():
    X = np.full((300, 1), np.log(5.0))
    assert np.std(X) > 1e-16 and np.isinf(Standardizer.fit(X).scale).all()


def test_raw_weights_give_the_same_differences_inside_the_clip():
    result = run()
    raw = result.params / result.columns.own.scale / result.scale
    standard = (BATCH.features - result.columns.own.mean) / result.columns.own.scale
    inside = (np.abs(standard) <= 3).all(axis=1)
    assert 10 < inside.sum() < len(inside)
    confidence = confidence_of(result, LinearModel(), BATCH.features)[inside]
    linear = (BATCH.features @ raw)[inside]
    np.testing.assert_allclose(
        confidence - confidence[0], linear - linear[0], atol=1e-9
    )


def test_columns_of_rounding_errors_are_left_out():
    """In unit deviation they would decide, and they differ from batch to batch."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(50, 4)) * [1.0, 1e-9, 1.0, 1e-14] + [0.0, 0.0, 3.0, 0.0]
    X[:, 2] = 3.0
    assert noise_columns(X).tolist() == [3]
    standard = Standardizer.fit(X)
    np.testing.assert_allclose(standard(X)[:, [0, 1]].std(axis=0), 1.0, atol=0.05)
    assert not standard(X)[:, [2, 3]].any()  # trees would look at any difference
    assert 1 / standard.scale[3] == 0
    assert noise_columns(1e-30 * X).tolist() == [3]  # whatever the units of the table
    assert noise_columns(X[:, [3]]).tolist() == []  # nothing to be small beside
    assert noise_columns(X[:, [2]]).tolist() == []


def test_start_is_penalised_logistic_regression():
    X = Standardizer.fit(BATCH.features)(BATCH.features)
    target = coherent_labels(LABELS, BATCH)
    begin = np.ones(X.shape[1])
    start = fit_logistic(LinearModel(), X, target, begin, lambda x: x, C=0.3)
    other = LogisticRegression(C=0.3, tol=1e-10, max_iter=5000).fit(X, target)
    np.testing.assert_allclose(start[:-1], other.coef_[0], atol=1e-4)
    np.testing.assert_allclose(start[-1], -other.intercept_[0], atol=1e-4)


def test_start_without_edges_learns_the_own_label():
    strong = lbfgs_of(1, shrinkage=1e9, init="coherent")
    own = np.random.RandomState(0).uniform(size=len(LABELS)) > 0.2
    for batch, target in (
        (BATCH, coherent_labels(own, BATCH)),
        (BATCH.without_edges(), own),
    ):
        result = run(strong, batch=batch, labels=own)
        X = result.columns.own(BATCH.features)
        other = LogisticRegression(C=0.3, tol=1e-10).fit(X, target)
        scores = other.decision_function(X)
        assert np.corrcoef(X @ result.params, scores)[0, 1] > 0.9999
    assert (own != coherent_labels(own, BATCH)).any()


def test_start_leaves_out_what_is_not_known():
    """A claim counts where it is true with all ancestors, or a false one is among these."""
    labels = LABELS.astype(int)
    labels[np.random.RandomState(0).uniform(size=len(labels)) < 0.3] = -1
    known, target = [], []
    for i, own in enumerate(BATCH.split(labels)):
        graph = BATCH[i]
        for v in range(graph.n_claims):
            seen = own[[*graph.ancestors(v), v]]
            known.append((seen == 0).any() or (seen == 1).all())
            target.append((seen == 1).all())
    known, target = np.array(known), np.array(target)
    assert 0 < known.sum() < len(known)
    found, judged, _ = START["coherent"](BATCH, labels)
    np.testing.assert_array_equal(judged, known)
    np.testing.assert_array_equal(found[judged], target[known])


def test_the_start_is_the_hazard_regression():
    """What is above an error is all true; unknown labels teach nothing."""
    labels = LABELS.astype(int)
    labels[np.random.RandomState(0).uniform(size=len(labels)) < 0.1] = -1
    at_risk = []
    for i, own in enumerate(BATCH.split(labels)):
        graph = BATCH[i]
        at_risk += [
            own[v] >= 0 and all(own[u] == 1 for u in graph.ancestors(v))
            for v in range(graph.n_claims)
        ]
    at_risk = np.array(at_risk)
    result = run(lbfgs_of(1, shrinkage=1e9), labels=labels)
    X = result.columns.own(BATCH.features)
    other = LogisticRegression(C=0.03, tol=1e-10, max_iter=5000)
    scores = other.fit(X[at_risk], labels[at_risk]).decision_function(X)
    assert np.corrcoef(X @ result.params, scores)[0, 1] > 0.9999


@pytest.mark.parametrize("seed", [1, 2])
def test_a_network_starts_from_scores_that_differ(seed):
    # With the full penalty all weights of so small a network go to 0 on so few problems.
    batch, y = make_reasoning_graphs(60, random_state=seed, return_X_y=True)
    setting = MLPModel((2, 2)), PathRelaxation(), SoftTraining()
    rng = np.random.RandomState(seed)
    result = train(*setting, batch, pack_labels(y, batch), 0.1, rng=rng)
    assert result.converged and not result.message
    assert result.scale > 0.1
    assert result.loss_curve[-1] < result.loss_curve[0]


@pytest.mark.parametrize("init", ["hazard", "coherent", np.arange(31.0)], ids=str)
def test_shrinkage_pulls_towards_the_start(init):
    weak, strong = (
        run(SoftTraining(init=init, shrinkage=s)).params for s in (0.0, 1e7)
    )
    X = Standardizer.fit(BATCH.features)(BATCH.features)
    start = run(lbfgs_of(1, init=init, shrinkage=1e12)).params
    near = [np.corrcoef(X @ start, X @ w)[0, 1] for w in (weak, strong)]
    assert near[0] < 0.99 and near[1] > 0.9999


def test_shrinkage_counts_questions():
    """With two answers to each question, n is half as large, and the penalty four times."""
    pairs = np.arange(len(BATCH)) // 2
    by_question = run(SoftTraining(shrinkage=100.0), groups=pairs).params
    assert np.array_equal(by_question, run(SoftTraining(shrinkage=400.0)).params)
    assert not np.array_equal(by_question, run(SoftTraining(shrinkage=100.0)).params)


# ---- whole runs


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("model", [LinearModel(), MLPModel((3,))], ids=str)
@pytest.mark.parametrize("kind", ["lbfgs", "adam"])
def test_training_retains_more_than_its_start(model, relaxation, kind):
    plan = relaxation.plan(BATCH, LABELS)

    def retention(result):
        risk = -confidence_of(result, model, BATCH.features)
        return relaxation.retention(risk, plan, 0.1)

    if kind == "adam":
        optimizer = Adam(max_iter=20, validation_size=None)
        standing = Adam(learning_rate=1e-9, max_iter=1, validation_size=None)
    else:
        optimizer = LBFGS(max_iter=20)
    result = run(SoftTraining(optimizer, shrinkage=0.0), model, relaxation)
    assert result.converged and result.message == ""
    assert result.n_iter == len(result.loss_curve) <= 20
    if kind == "adam":
        begin = run(SoftTraining(standing, shrinkage=0.0), model, relaxation)
        assert retention(begin) < retention(result)
    else:
        assert result.loss_curve[-1] < result.loss_curve[0]
        assert -np.log(retention(result)) == pytest.approx(result.loss_curve[-1])


def test_the_loss_is_the_one_that_is_set():
    plain = run(SoftTraining(loss="retention", shrinkage=0.0))
    log = run(SoftTraining(loss="log-retention", shrinkage=0.0))
    relaxation = PathRelaxation()
    plan = relaxation.plan(BATCH, LABELS)
    for result, loss in ((plain, lambda x: -x), (log, lambda x: -np.log(x))):
        risk = -confidence_of(result, LinearModel(), BATCH.features)
        kept = relaxation.retention(risk, plan, 0.1)
        assert loss(kept) == pytest.approx(result.loss_curve[-1])


def test_steps_of_lbfgs_never_raise_the_loss():
    curve = run().loss_curve
    assert all(a >= b for a, b in pairwise(curve))


def test_confidence_has_unit_deviation():
    for model in (LinearModel(), MLPModel()):
        result = run(model=model)
        assert confidence_of(result, model, BATCH.features).std() == pytest.approx(1)
    assert run(SoftTraining(unit_variance=False)).scale == 1


def test_shrinkage_keeps_scores_near_the_start():
    X = Standardizer.fit(BATCH.features)(BATCH.features)
    target = coherent_labels(LABELS, BATCH)
    w = fit_logistic(LinearModel(), X, target, np.zeros(31), lambda x: x, C=0.3)[:-1]
    kept = [
        np.corrcoef(
            X @ w,
            X @ run(SoftTraining(init="coherent", shrinkage=strength)).params,
        )[0, 1]
        for strength in (0.0, 100.0, 1e6)
    ]
    assert kept == sorted(kept) and kept[0] < 0.99 < kept[2]


@pytest.mark.parametrize(
    "training",
    [
        lbfgs_of(8),
        SoftTraining(Adam(max_iter=8)),
        paper(optimizer__max_iter=8),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [LinearModel(), MLPModel((2,))], ids=str)
def test_same_seed_same_bits(training, model):
    first, second = (run(training, model) for _ in range(2))
    assert same(first.params, second.params)
    assert first.loss_curve == second.loss_curve
    assert not same(first.params, run(training, model, seed=1).params)


def test_a_generator_is_as_good_as_a_random_state():
    generators = (np.random.default_rng(5) for _ in range(2))
    first, second = (run(paper(optimizer__max_iter=5), rng=g) for g in generators)
    assert same(first.params, second.params)


def test_nothing_that_is_passed_is_changed():
    training, model, relaxation = SoftTraining(Adam()), MLPModel(), GridRelaxation()
    before = [repr(clone(x).get_params()) for x in (training, model, relaxation)]
    run(training.set_params(optimizer__max_iter=2), model, relaxation)
    training.set_params(optimizer__max_iter=100)
    after = [repr(x.get_params()) for x in (training, model, relaxation)]
    assert after == before


def test_the_number_of_problems_and_their_order_do_not_enter_otherwise():
    order = np.random.RandomState(0).permutation(len(BATCH))
    labels = np.concatenate([BATCH.split(LABELS)[i] for i in order])
    mixed = run(lbfgs_of(3), batch=BATCH[order], labels=labels)
    np.testing.assert_allclose(mixed.params, run(lbfgs_of(3)).params, rtol=1e-5)


# ---- the paper's procedure


def test_the_best_epoch_on_validation_problems_is_kept(spy):
    training = SoftTraining.from_paper().set_params(optimizer__patience=3)
    result = run(training, relaxation=spy)
    curve = result.validation_curve
    assert len(curve) == result.n_iter
    best = int(np.argmax(curve))
    assert result.n_iter in (100, best + 4)
    _, (held, labels) = spy.plans
    relaxation = PathRelaxation()
    risk = -confidence_of(result, LinearModel(), held.features)
    value = relaxation.retention(risk, relaxation.plan(held, labels), 0.1)
    assert value == pytest.approx(curve[best])


@pytest.mark.parametrize(("size", "n_held"), [(0.2, 16), (25, 25), (0.5, 40)])
def test_validation_problems_are_apart_from_training(spy, size, n_held):
    """They enter neither the plan, nor the mean and deviation of the features."""
    result = run(paper(optimizer__validation_size=size), relaxation=spy)
    (rest, _), (held, labels) = spy.plans
    assert (len(rest), len(held)) == (80 - n_held, n_held)
    ids = [{problem.features.tobytes() for problem in part} for part in (rest, held)]
    assert ids[0].isdisjoint(ids[1])
    assert ids[0] | ids[1] == {problem.features.tobytes() for problem in BATCH}
    truth = {
        problem.features.tobytes(): own.tolist()
        for problem, own in zip(BATCH, BATCH.split(LABELS), strict=True)
    }
    for problem, own in zip(held, held.split(labels), strict=True):
        assert truth[problem.features.tobytes()] == own.tolist()
    np.testing.assert_array_equal(result.columns.own.mean, rest.features.mean(axis=0))


def test_a_group_is_not_divided_by_validation(spy):
    groups = np.arange(80) // 8
    number = np.column_stack([BATCH.features[:, :2], groups[BATCH.problem_of]])
    run(
        paper(optimizer__validation_size=3, optimizer__max_iter=2),
        relaxation=spy,
        batch=BATCH.replace_features(number),
        groups=groups,
    )
    seen = [set(part.features[:, 2]) for part, _ in spy.plans]
    assert seen[0].isdisjoint(seen[1]) and len(seen[0] | seen[1]) == 10
    assert len(seen[1]) == 3  # whole groups are held out


def test_without_validation_problems_all_epochs_are_run():
    result = run(paper(optimizer__max_iter=23))
    assert result.n_iter == 23 and result.validation_curve == []


def test_each_epoch_has_halves_of_its_own(spy):
    run(paper(optimizer__max_iter=4), relaxation=spy)
    assert len(spy.halves) == 4
    for calibration, prediction in spy.halves:
        both = np.concatenate([calibration, prediction])
        assert sorted(both) == list(range(80)) and len(calibration) == 40
    assert len({tuple(sorted(c)) for c, _ in spy.halves}) == 4


def test_lbfgs_has_no_halves_and_no_validation(spy):
    result = run(relaxation=spy)
    assert spy.halves == [] and len(spy.plans) == 1 and result.validation_curve == []


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
@pytest.mark.parametrize("optimizer", [LBFGS(), Adam(0.03, validation_size=None)])
def test_a_loss_that_is_no_number_ends_training(optimizer):
    result = run(SoftTraining(optimizer, init="random", shrinkage=0.0), Breaking())
    assert not result.converged and "not finite after" in result.message
    assert np.isfinite(result.params).all() and np.isfinite(result.loss_curve).all()
    assert np.abs(result.params).max() < 0.1


def test_a_start_from_which_no_step_goes_down_is_kept():
    """The loss jumps where the order of two prices changes."""
    start = np.array([0.3, -0.2])
    steps = []

    def jumping(x):
        return float(np.any(x != start)), np.ones(2)

    x, finite = LBFGS().minimize(jumping, start, lambda *step: steps.append(step))
    assert finite and not steps and np.array_equal(x, start)


FEW_EPOCHS = SoftTraining(Adam(max_iter=5, validation_size=None))


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("training", [SoftTraining(), FEW_EPOCHS], ids=str)
@pytest.mark.parametrize("value", [1, 0, -1])
def test_one_label_only_teaches_nothing(relaxation, training, value):
    labels = np.full(len(LABELS), value)
    result = run(training, relaxation=relaxation, labels=labels)
    word = "true" if value == 0 else "false"
    assert f"no training claim is {word}" in result.message and result.converged
    assert result.params.tolist() == [0.0] * BATCH.n_features and result.scale == 1


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
def test_constant_features_teach_nothing(relaxation):
    batch = BATCH.replace_features(np.full((BATCH.n_claims, 2), 7.0))
    result = run(relaxation=relaxation, batch=batch)
    assert "features may be constant" in result.message
    assert np.ptp(confidence_of(result, LinearModel(), batch.features)) == 0


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("training", [SoftTraining(), FEW_EPOCHS, paper()], ids=str)
def test_little_data(relaxation, training):
    one = BATCH.replace_features(BATCH.features[:, :1])
    assert np.isfinite(run(training, relaxation=relaxation, batch=one).params).all()
    two = GraphBatch.from_arrays(
        [[0.3], [0.1], [0.9], [0.2]], [0, 2, 4], [(0, 1), (2, 3)]
    )
    labels = np.array([True, False, True, True])
    result = run(training, relaxation=relaxation, batch=two, labels=labels)
    assert result.converged and np.isfinite(result.params).all()
    alone = run(training, relaxation=relaxation, batch=two[:1], labels=labels[:2])
    assert alone.converged and np.isfinite(alone.params).all()


@pytest.mark.parametrize("alpha", [1e-4, 0.9])
@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
def test_levels_that_the_errors_cannot_resolve(relaxation, alpha):
    result = run(relaxation=relaxation, alpha=alpha)
    assert result.converged and np.isfinite(result.params).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": SoftTraining(LBFGS(0))}, "'max_iter' parameter of LBFGS"),
        ({"training": SoftTraining(loss="hinge")}, "'loss' parameter of SoftTraining"),
        ({"relaxation": GridRelaxation(sharpness=100.0)}, "sharpness"),
        ({"relaxation": PathRelaxation(max_temperature=-1)}, "'max_temperature'"),
        ({"alpha": 0.0}, r"alpha .*0\.0"),
        ({"training": SoftTraining(Adam(validation_size=80))}, "at least 1 sample"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        run(**change)


def test_progress_is_shown(capsys):
    run(lbfgs_of(3), verbose=True)
    shown = capsys.readouterr().err
    assert "3/3" in shown and "loss=" in shown and "retention=" in shown
    run(lbfgs_of(3))
    assert capsys.readouterr().err == ""
