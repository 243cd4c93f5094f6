"""What scorers say of problems they have not seen: no label of a fold is in it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.ops.hard import below_true_claims
from skdcf.ops.neyman_pearson import log_price
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FitTask,
    LinearModel,
    MixtureScorer,
    MLPModel,
    NeymanPearsonScorer,
    Scorer,
    _hazards,
    _scorer,
)
from skdcf.scorers._scorer import Folded
from skdcf.scorers._tree_tables import as_table, join
from skdcf.training import LBFGS, SoftTraining

BATCH, Y = make_reasoning_graphs(90, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, BATCH)
FOLD_OF = np.random.RandomState(3).permutation(90) % 3
FOLDED = Folded(BATCH, FOLD_OF)


def tasks(*alphas):
    few_steps = SoftTraining(LBFGS(max_iter=4))
    return [
        FitTask(alpha, rng=np.random.RandomState(0), training=few_steps)
        for alpha in alphas
    ]


def fit_folds(scorer, labels, tasks):
    """As a mixture does it with a member."""
    if isinstance(scorer, NeymanPearsonScorer):
        return scorer.fit_folds(FOLDED, labels, tasks)
    return _scorer.fit_folds(scorer, FOLDED, labels, tasks)


def with_other_labels(fold, fold_of, seed=0):
    """The labels, those of one fold in another order."""
    rows = np.flatnonzero(fold_of[BATCH.problem_of] == fold)
    labels = LABELS.copy()
    labels[rows] = np.random.RandomState(seed).permutation(labels[rows])
    assert (labels != LABELS).any()
    return labels, rows


class Restless(Scorer):
    """Takes as many random numbers as the labels say, and adds the last to its scores."""

    requires_fit = True

    def fit(self, batch, labels, task=None):
        count = 1 + int(np.flatnonzero(labels == 1).sum()) % 50
        self.numbers_ = task.rng.uniform(size=count)
        return self

    def confidence(self, batch):
        return batch.features[:, 0] + self.numbers_[-1]


class Folds(NeymanPearsonScorer):
    """Writes down which problem a mixture has put into which fold."""

    seen = []

    def fit_folds(self, folded, labels, tasks):
        self.seen.append(folded.fold_of)
        return super().fit_folds(folded, labels, tasks)


SCORERS = {
    "linear": ConfTrScorer(LinearModel(spread=0.0)),
    "perceptron": ConfTrScorer(MLPModel((3,))),
    "hazards": NeymanPearsonScorer(),
    "hazards, randomness of the filter": NeymanPearsonScorer(random_state=None),
    "classifier": ClassifierScorer(),
    "restless": Restless(),
    "mixture": MixtureScorer({"a": Restless(), "b": ClassifierScorer()}, n_folds=2),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name == "perceptron" else ())
        for name in SCORERS
    ],
)
def test_no_label_of_a_fold_is_in_what_is_said_of_it(name):
    alphas = 0.1, 0.2
    _, before = fit_folds(SCORERS[name], LABELS, tasks(*alphas))
    assert before.shape == (2, BATCH.n_claims)
    for fold in (0, 2):
        labels, rows = with_other_labels(fold, FOLD_OF)
        _, after = fit_folds(SCORERS[name], labels, tasks(*alphas))
        np.testing.assert_array_equal(after[:, rows], before[:, rows])
        others = np.delete(np.arange(BATCH.n_claims), rows)
        assert (after[:, others] != before[:, others]).any()


def test_what_the_mixture_weighs_is_out_of_fold(monkeypatch):
    """Through the whole fit of the default, to the last bit."""
    seen = []

    def weigh(self, confidences, *rest, **options):
        seen.append(confidences)
        return original(self, confidences, *rest, **options)

    original = MixtureScorer._weigh
    monkeypatch.setattr(MixtureScorer, "_weigh", weigh)
    MixtureScorer({"a": Folds()}).fit(BATCH, LABELS, tasks(0.1)[0])
    fold_of = Folds.seen.pop()
    seen.clear()
    MixtureScorer().fit(BATCH, LABELS, tasks(0.1)[0])
    for fold in (0, 2):
        labels, rows = with_other_labels(fold, fold_of)
        MixtureScorer().fit(BATCH, labels, tasks(0.1)[0])
        assert seen[-1].shape == (3, BATCH.n_claims)
        np.testing.assert_array_equal(seen[-1][:, rows], seen[0][:, rows])
        assert (seen[-1] != seen[0]).any(axis=1).all()


def test_a_problem_may_be_asked_about_alone():
    """What is said of a held-out problem does not hang on what is held out with it."""
    scorer = NeymanPearsonScorer()
    _, [unseen] = scorer.fit_folds(FOLDED, LABELS, tasks(0.1))
    [fitted], _ = fit_folds(ConfTrScorer(), LABELS, tasks(0.1))
    rest = FOLD_OF != 0
    rows = rest[BATCH.problem_of]
    alone = ConfTrScorer().fit(BATCH[rest], LABELS[rows], tasks(0.1)[0])
    _, [by_folds] = fit_folds(ConfTrScorer(), LABELS, tasks(0.1))
    first = np.flatnonzero(~rest)[0]
    own = BATCH.problem_of == first
    np.testing.assert_allclose(alone.confidence(BATCH[[first]]), by_folds[own])
    assert np.isfinite(unseen).all() and (fitted.confidence(BATCH) != by_folds).any()


def by_hand(rows, asked):
    """Log odds of ``asked`` and share of true claims after an error, from ``rows``."""
    X = BATCH.features - BATCH.features.mean(axis=0)
    X = np.clip(X / np.where(X.std(axis=0) > 0, X.std(axis=0), np.inf), -3, 3)
    at_risk = below_true_claims(LABELS, BATCH)
    model = LogisticRegression(C=0.3, max_iter=1000)
    model.fit(X[rows & at_risk], LABELS[rows & at_risk] == 0)
    after = LABELS[rows & ~at_risk]
    return model.decision_function(X[asked]), after.sum() / (len(after) + 5)


def test_hazards_of_the_folds_are_averaged(monkeypatch):
    def one(X, false, n_features, random_state, **forest):
        model = LogisticRegression(C=0.3, max_iter=1000)
        table = as_table(model.fit(X[:, :n_features], false))
        return join([table], X.shape[1])

    monkeypatch.setattr(_hazards, "learn_hazards", one)
    scorer = NeymanPearsonScorer(gain=1)
    [fitted], [unseen] = scorer.fit_folds(FOLDED, LABELS, tasks(0.1))
    everything = np.ones(BATCH.n_claims, dtype=bool)
    log_odds = []
    for fold in range(3):
        held = FOLD_OF[BATCH.problem_of] == fold
        odds, share = by_hand(~held, held)
        price = log_price(odds, BATCH[fold == FOLD_OF], 0.5 * share)
        np.testing.assert_allclose(unseen[held], -price, rtol=1e-6, atol=1e-8)
        log_odds.append(by_hand(~held, everything)[0])
    expected = np.mean(log_odds, axis=0)
    np.testing.assert_allclose(fitted.hazard(BATCH), expected, rtol=1e-6, atol=1e-8)
    after = LABELS[~below_true_claims(LABELS, BATCH)]
    share = after.sum() / (len(after) + 5)
    assert fitted.true_after_error_ == pytest.approx(share)
    np.testing.assert_allclose(
        fitted.confidence(BATCH), -log_price(expected, BATCH, 0.5 * share), rtol=1e-6
    )


def test_a_fold_that_holds_all_errors():
    """The others teach no hazard: what is said of it is the same of every claim."""
    first = np.minimum.reduceat(LABELS, BATCH.offsets[:-1]) == 0
    fold_of = np.where(first, 0, 1 + np.arange(90) % 2)
    [fitted], [unseen] = NeymanPearsonScorer().fit_folds(
        Folded(BATCH, fold_of), LABELS, tasks(0.1)
    )
    assert fitted.table_.n_hazards == 8  # of the two folds that leave out no error
    assert np.isfinite(unseen).all() and np.isfinite(fitted.confidence(BATCH)).all()


@pytest.mark.long
def test_the_same_seed_gives_the_same_bits():
    for scorer in (NeymanPearsonScorer(), NeymanPearsonScorer(random_state=None)):
        found = [scorer.fit_folds(FOLDED, LABELS, tasks(0.1))[1] for _ in range(2)]
        np.testing.assert_array_equal(*found)
    several = [MixtureScorer().fit(BATCH, LABELS, tasks(0.1)[0]) for _ in range(2)]
    np.testing.assert_array_equal(*[s.confidence(BATCH) for s in several])


def test_forests_of_the_folds_share_the_trees():
    [fitted], _ = NeymanPearsonScorer().fit_folds(FOLDED, LABELS, tasks(0.1))
    table = fitted.table_
    assert np.bincount(table.forest + 1).tolist() == [3 * 50, 15, 15, 15]
    assert table.doubt.tolist() == [0.05] * 3
    roots = [table.threshold[table.root[table.forest == k]] for k in range(3)]
    assert len({tuple(root) for root in roots}) == 3  # three seeds
