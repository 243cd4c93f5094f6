"""The stack: its columns, its last step, what it shares, what it leaves alone."""

import pickle
import subprocess
import sys

import autograd.numpy as anp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.hard import below_true_claims
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FeatureScorer,
    FitTask,
    MLPModel,
    NeymanPearsonScorer,
    Scorer,
    StackingScorer,
)
from skdcf.training import LBFGS, SoftTraining

PLAIN = {"first": FeatureScorer(0), "second": FeatureScorer(1)}


def problems(n, seed=0, kind="math"):
    batch, y = make_reasoning_graphs(n, kind, random_state=seed, return_X_y=True)
    return batch, pack_labels(y, batch) == 1


def fit(batch, labels, alphas, seed=0, scorer=None, groups=None, **setting):
    """One stack per level; each task has the random numbers that a filter gives it."""
    tasks = [FitTask(a, groups, np.random.RandomState(seed), **setting) for a in alphas]
    return (scorer or StackingScorer()).fit_levels(batch, labels, tasks)


@pytest.mark.parametrize("gain", [1, 0.75, 0, lambda x: anp.log1p(2 * x)])
def test_weights_minimise_the_loss_of_the_formula(gain):
    """Base scorers that learn nothing, so that the columns are known."""
    batch, labels = problems(80)
    alpha, shrinkage = 0.1, 30.0
    training = SoftTraining(LBFGS(max_iter=200), shrinkage=shrinkage)
    [stack] = fit(
        batch,
        labels,
        [alpha],
        scorer=StackingScorer(PLAIN, gain=gain),
        training=training,
    )
    columns = batch.features[:, :2] / batch.features[:, :2].std(axis=0)
    relaxation = PathRelaxation()
    plan = relaxation.plan(batch, labels)
    worth = {
        1: lambda kept: kept,
        0.75: lambda kept: (kept + 0.001) ** 0.75,
        0: np.log1p,
    }.get(gain, lambda kept: np.log1p(2 * (kept + 0.001)))
    begin = columns.sum(axis=1)

    def loss(angle):
        scores = columns @ np.array([np.cos(angle[0]), np.sin(angle[0])])
        unit = (scores - scores.mean()) / scores.std()
        kept = relaxation.true_claims(-unit, plan, alpha)
        pull = shrinkage / (alpha * 80) ** 2 * (1 - np.corrcoef(scores, begin)[0, 1])
        return -np.log(np.mean(worth(kept))) + pull

    best = minimize(loss, [np.pi / 4], method="Nelder-Mead", options={"xatol": 1e-6})
    expected = np.array([np.cos(best.x[0]), np.sin(best.x[0])])
    found = stack.selection_.weights
    np.testing.assert_allclose(found, expected / np.abs(expected).sum(), atol=5e-3)
    assert stack.loss_curve_[-1] == pytest.approx(best.fun, abs=1e-5)


def test_confidence_is_the_weighted_sum_of_the_base_scorers():
    batch, labels = problems(120)
    fresh, _ = problems(40, 1)
    for stack in fit(batch, labels, [0.05, 0.2]):
        parts = [
            s.confidence(fresh) / d
            for s, d in zip(stack.scorers_.values(), stack._scale, strict=True)
        ]
        expected = stack.selection_.weights @ np.array(parts)
        found = stack.confidence(fresh)
        assert np.corrcoef(found, expected)[0, 1] == pytest.approx(1)
        assert stack.final_.standardizer_.clip == np.inf  # far prices are not cut off


def test_shrinkage_holds_the_first_weights():
    batch, labels = problems(120)
    training = SoftTraining(shrinkage=1e9)
    [stack] = fit(batch, labels, [0.1], training=training)
    np.testing.assert_allclose(
        stack.selection_.weights, np.array([np.e, 1]) / (np.e + 1), atol=1e-3
    )
    [own] = fit(batch, labels, [0.1], scorer=StackingScorer(PLAIN), training=training)
    np.testing.assert_allclose(own.selection_.weights, [0.5, 0.5], atol=1e-3)


def test_relaxation_and_training_of_the_filter_act_on_the_default():
    batch, labels = problems(150)
    y = batch.split(labels)
    plain = CoherentConformalFilter(random_state=0).fit(batch, y)
    grid = CoherentConformalFilter(relaxation=GridRelaxation(), random_state=0)
    grid = grid.fit(batch, y)
    short = CoherentConformalFilter(
        training=SoftTraining(LBFGS(max_iter=1)), random_state=0
    ).fit(batch, y)
    assert len(short.loss_curve_) == 1 < len(plain.loss_curve_)
    weights = [cf.scorer_.selection_.weights for cf in (plain, grid)]
    assert np.abs(weights[0] - weights[1]).max() > 1e-3


@pytest.mark.parametrize(
    ("training", "message"),
    [
        (SoftTraining(init="coherent"), "init.*'coherent'"),
        (SoftTraining(init="random"), "init.*'random'"),
        (SoftTraining(gain=1), "gain.*1"),
    ],
)
def test_what_the_stack_settles_itself_is_refused(training, message):
    batch, labels = problems(30)
    with pytest.raises(ValueError, match=message):
        CoherentConformalFilter(training=training).fit(batch, batch.split(labels))


def test_a_gain_without_a_gradient_is_refused():
    batch, labels = problems(30)

    def by_hand(kept):
        return np.array([float(x) ** 0.5 for x in kept])

    with pytest.raises(ValueError, match=r"gain.*by_hand.*autograd\.numpy"):
        fit(batch, labels, [0.1], scorer=StackingScorer(gain=by_hand))


def test_a_gain_of_infinite_slope_at_zero():
    """The square root is the power 1/2, and names stand for powers."""
    batch, labels = problems(60)
    several = {str(column): FeatureScorer(column) for column in range(6)}
    found = [
        fit(
            batch,
            labels,
            [0.1],
            scorer=StackingScorer(several, gain=gain),
            training=SoftTraining(shrinkage=0.0),
        )[0]
        for gain in (anp.sqrt, 0.5, "claims", 1, "answers", 0)
    ]
    weights = [stack.selection_.weights for stack in found]
    for one, other in ((0, 1), (2, 3), (4, 5)):
        np.testing.assert_allclose(weights[one], weights[other], atol=1e-6)
    assert np.abs(weights[1] - weights[3]).max() > 1e-3


def test_another_last_step():
    batch, labels = problems(120)
    [plain] = fit(
        batch, labels, [0.1], scorer=StackingScorer(PLAIN, final=ClassifierScorer())
    )
    expected = ClassifierScorer().fit(
        batch.replace_features(batch.features[:, :2]), labels
    )
    table = batch.replace_features(batch.features[:, :2])
    found = np.corrcoef(plain.confidence(batch), expected.confidence(table))[0, 1]
    assert found == pytest.approx(1)
    assert np.isnan(plain.selection_.weights).all()
    network = StackingScorer(PLAIN, final=ConfTrScorer(MLPModel((2,))))
    [deep] = fit(batch, labels, [0.1], scorer=network)
    assert len(deep.final_.params_) == 2 and deep.loss_curve_


class Recording(Scorer):
    """A base scorer that writes down what it is trained on, and scores with a constant."""

    requires_fit = True
    seen = []

    def fit(self, batch, labels, task=None):
        self.seen.append((batch.features[:, 0].copy(), labels.copy(), task.groups))
        return self

    def confidence(self, batch):
        return np.zeros(batch.n_claims)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_each_fold_is_scored_by_base_scorers_that_have_not_seen_it(monkeypatch):
    monkeypatch.setattr(Recording, "seen", [])
    batch, labels = problems(31)
    number = batch.replace_features(batch.problem_of[:, None].astype(float))
    groups = np.arange(31) // 2
    [scorer] = fit(
        number,
        labels,
        [0.1],
        scorer=StackingScorer({"a": Recording()}, n_folds=4),
        groups=groups,
    )
    *parts, whole = Recording.seen
    assert set(whole[0]) == set(range(31)) and len(parts) == 4
    truth = batch.split(labels)
    left_out = []
    for seen, known, of_groups in parts:
        rows = np.unique(seen).astype(int)
        np.testing.assert_array_equal(known, np.concatenate([truth[i] for i in rows]))
        np.testing.assert_array_equal(of_groups, groups[rows])
        rest = set(range(31)) - set(rows.tolist())
        assert {groups[i] for i in rest}.isdisjoint(groups[rows])
        left_out += rest
    assert sorted(left_out) == list(range(31))
    assert scorer.selection_.n_folds == 4


def test_a_base_scorer_that_gives_one_value_changes_nothing():
    batch, labels = problems(60)
    scorer = StackingScorer({"constant": Recording(), "first": FeatureScorer(0)})
    [stack] = fit(batch, labels, [0.1], scorer=scorer)
    assert stack.selection_.weights.tolist() == [0, 1]
    found = stack.confidence(batch), batch.features[:, 0]
    assert np.corrcoef(found)[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("scorers", [{"constant": Recording()}])
def test_base_scorers_that_tell_nothing_are_warned_of(scorers):
    batch, labels = problems(60)
    with pytest.warns(ConvergenceWarning, match=r"initial.*score"):
        fit(batch, labels, [0.1], scorer=StackingScorer(scorers))


class Shifted(Scorer):
    """Knows alpha, and writes down for which it was fitted."""

    requires_fit = uses_alpha = True
    fitted_for = []

    def fit(self, batch, labels, task=None):
        self.alpha_ = task.alpha
        self.fitted_for.append(task.alpha)
        return self

    def confidence(self, batch):
        return batch.features[:, 0] + self.alpha_ * batch.features[:, 1]


def test_base_scorers_that_know_alpha_are_fitted_for_each(monkeypatch):
    monkeypatch.setattr(Shifted, "fitted_for", [])
    batch, labels = problems(60)
    scorers = {"shifted": Shifted(), "plain": ClassifierScorer()}
    several = fit(batch, labels, [0.1, 0.3], scorer=StackingScorer(scorers, n_folds=2))
    assert Shifted.fitted_for == [0.1, 0.3] * 3
    assert [s.scorers_["shifted"].alpha_ for s in several] == [0.1, 0.3]
    assert several[0].scorers_["plain"] is several[1].scorers_["plain"]


def test_a_stack_trains_through_a_relaxation_if_a_part_does():
    assert StackingScorer().uses_relaxation
    assert StackingScorer(PLAIN).uses_relaxation
    untrained = StackingScorer(PLAIN, final=ClassifierScorer())
    assert not untrained.uses_relaxation
    linear = {"linear": ConfTrScorer(), **PLAIN}
    assert StackingScorer(linear, final=ClassifierScorer()).uses_relaxation
    # A stack is a scorer, and may be a base scorer.
    assert StackingScorer({"inner": StackingScorer()}).uses_relaxation


def test_a_stack_of_stacks():
    batch, labels = problems(60)
    inner = StackingScorer(PLAIN, n_folds=2)
    [scorer] = fit(batch, labels, [0.2], scorer=StackingScorer({"one": inner}))
    found = scorer.scorers_["one"].confidence(batch)
    assert np.corrcoef(scorer.confidence(batch), found)[0, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (StackingScorer({}), r"scorers .*\{\}"),
        (StackingScorer({"a": "linear"}), r"scorers\['a'.*'linear'"),
        (StackingScorer([ClassifierScorer()]), "'scorers' parameter of StackingScorer"),
        (StackingScorer(final="linear"), "'final' parameter of StackingScorer"),
        (StackingScorer(n_folds=1), r"'n_folds' .* \[2, inf\)"),
        (StackingScorer(n_folds=2.5), r"'n_folds' .* Got 2.5"),
        (StackingScorer(gain=2), "gain .*2"),
        (StackingScorer({"a": ClassifierScorer(target="x")}), "'target' parameter"),
    ],
)
def test_settings_that_make_no_sense(stack, message):
    batch, labels = problems(10)
    with pytest.raises(ValueError, match=message):
        HardCF(stack).fit(batch, batch.split(labels))


def test_what_is_passed_stays_unfitted():
    batch, labels = problems(60)
    scorers = {"plain": ClassifierScorer(), "linear": ConfTrScorer()}
    stack = StackingScorer(scorers, final=ConfTrScorer(), n_folds=2)
    before = clone(stack)
    cf = HardCF(stack, random_state=0).fit(batch, batch.split(labels))
    assert vars(stack).keys() == vars(before).keys()
    parts = [*scorers.values(), stack.final]
    assert not any(name.endswith("_") for part in parts for name in vars(part))
    assert cf.scorer_.scorers_["plain"] is not scorers["plain"]


class Memory(Scorer):
    """Knows the labels of the claims that it has seen, and nothing else."""

    requires_fit = True

    def fit(self, batch, labels, task=None):
        self.known_ = dict(zip(batch.features[:, 0].tolist(), labels, strict=True))
        return self

    def confidence(self, batch):
        return np.array(
            [self.known_.get(x, 0.5) for x in batch.features[:, 0].tolist()]
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_last_step_does_not_see_what_base_scorers_remember():
    batch, labels = problems(60, 4)
    noise = np.random.RandomState(0).normal(size=(batch.n_claims, 2))
    noise = batch.replace_features(noise)
    scorers = {"memory": Memory(), "plain": FeatureScorer(1)}
    [stack] = fit(noise, labels, [0.1], scorer=StackingScorer(scorers))
    assert stack.selection_.weights.tolist() == [0, 1]
    # Copies of a question in another fold would be remembered.
    twice = noise[np.tile(np.arange(60), 2)]
    labels, groups = np.tile(labels, 2), np.tile(np.arange(60), 2)
    stack = StackingScorer(scorers)
    [apart] = fit(twice, labels, [0.1], scorer=stack, groups=groups)
    [mixed] = fit(twice, labels, [0.1], scorer=stack)
    assert apart.selection_.weights[0] == 0 < mixed.selection_.weights[0]


def test_levels_share_what_knows_no_alpha():
    batch, labels = problems(100)
    several = fit(batch, labels, [0.05, 0.2])
    assert len({id(s.scorers_["neyman-pearson"]) for s in several}) == 1
    assert [s.selection_.alpha for s in several] == [0.05, 0.2]
    for alpha, scorer in zip([0.05, 0.2], several, strict=True):
        alone = fit(batch, labels, [alpha])[0]
        assert np.array_equal(alone.confidence(batch), scorer.confidence(batch))


class Folds(NeymanPearsonScorer):
    """Writes down which problem the stack has put into which fold."""

    folds = []

    def fit_folds(self, folded, labels, tasks):
        self.folds.append(folded.fold_of)
        return super().fit_folds(folded, labels, tasks)


def folds_of(n, groups):
    batch, labels = problems(n)
    stack = StackingScorer({"a": Folds()}, n_folds=5)
    fit(batch, labels, [0.1], scorer=stack, groups=groups)
    return Folds.folds.pop()


def test_groups_share_a_fold():
    groups = np.repeat(np.arange(23), [1, 2, 3, 4, 5] * 4 + [6, 7, 8])
    fold = folds_of(len(groups), groups)
    assert sorted(set(fold)) == [0, 1, 2, 3, 4]
    for i in range(23):
        assert len(set(fold[groups == i])) == 1
    single = folds_of(40, None)
    assert np.bincount(single).tolist() == [8] * 5


def test_keeps_about_as_much_as_its_base_scorers_and_more_than_the_linear_one():
    batch, labels = problems(350, 10)
    fresh, truth = problems(600, 11)
    kept = {}
    for name in ("stack", "linear", "neyman-pearson", ClassifierScorer()):
        cf = CoherentConformalFilter(name, alpha=0.1, random_state=0)
        cf = cf.fit(batch, batch.split(labels))
        kept[str(name)] = cf.score(fresh, fresh.split(truth))
    assert kept["stack"] > kept["linear"]
    assert kept["stack"] > 0.95 * max(kept.values())


def test_without_edges():
    batch, labels = problems(80)
    apart = GraphBatch.from_arrays(batch.features, batch.offsets)
    free = fit(batch.without_edges(), labels, [0.1])[0]
    bare = fit(apart, labels, [0.1])[0]
    assert np.array_equal(free.confidence(apart), bare.confidence(apart))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [1, 3, 12])
def test_few_problems(n):
    batch, labels = problems(n, 8)
    for scorer in fit(batch, labels, [0.02, 0.5]):
        assert np.isfinite(scorer.confidence(batch)).all()
        assert np.isfinite(scorer.selection_.weights).all()
        assert scorer.selection_.n_folds == (0 if n == 1 else min(n, 3))


def test_a_single_base_scorer():
    batch, labels = problems(60)
    [stack] = fit(
        batch, labels, [0.1], scorer=StackingScorer({"one": FeatureScorer(0)})
    )
    assert stack.selection_.weights.tolist() == [1]
    found = stack.confidence(batch), batch.features[:, 0]
    assert np.corrcoef(found)[0, 1] == pytest.approx(1)


def test_one_group_only():
    batch, labels = problems(40)
    [stack] = fit(batch, labels, [0.1], groups=np.zeros(40, dtype=int))
    assert stack.selection_.n_folds == 0
    assert np.isfinite(stack.confidence(batch)).all()


@pytest.mark.parametrize("truth", [1, 0, -1])
def test_one_kind_of_label(truth):
    batch, labels = problems(20)
    with pytest.warns(ConvergenceWarning, match=r"training.*claim"):
        scorer = fit(batch, np.full(len(labels), truth), [0.1])[0]
    assert np.isfinite(scorer.confidence(batch)).all()
    assert np.isfinite(scorer.selection_.weights).all()


def test_no_claim_below_an_error_was_judged():
    """As in answers of which people marked the first error: none of these counts as true."""
    batch, labels = problems(60)
    labels = labels.astype(int)
    below_an_error = ~below_true_claims(labels != 0, batch)
    labels = np.where(below_an_error, -1, labels)
    assert below_an_error.any()
    scorer = fit(batch, labels, [0.1])[0]
    prices = scorer.scorers_["neyman-pearson"]
    assert prices.true_after_error_ == 0
    assert np.isfinite(scorer.confidence(batch)).all()


def test_bad_arguments():
    batch, labels = problems(10)
    with pytest.raises(ValueError, match=r"alpha .*1\.5"):
        fit(batch, labels, [0.1, 1.5])
    with pytest.raises(ValueError, match=r"problems.*features"):
        fit(batch.replace_features(None), labels, [0.1])


@pytest.mark.long
def test_a_loaded_scorer_needs_no_gradients(tmp_path):
    """Prediction in a fresh process, from a pickle, without autograd."""
    batch, labels = problems(30)
    scorer = fit(batch, labels, [0.1])[0]
    path = tmp_path / "scorer.pkl"
    path.write_bytes(pickle.dumps((scorer, batch, scorer.confidence(batch))))
    code = (
        "import pickle, sys, numpy as np\n"
        f"scorer, batch, expected = pickle.load(open({str(path)!r}, 'rb'))\n"
        "assert np.array_equal(scorer.confidence(batch), expected)\n"
        "assert 'autograd' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
