"""What scorers say of problems they have not seen: no label of a fold is in it."""

import numpy as np
import pytest

from skdcf.datasets import make_reasoning_graphs
from skdcf.graphs import pack_labels
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FitTask,
    LinearModel,
    MLPModel,
    NeymanPearsonScorer,
    Scorer,
    StackingScorer,
    _scorer,
)
from skdcf.scorers._scorer import Folded
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
    """As a stack does it with a base scorer."""
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
    """Writes down which problem a stack has put into which fold."""

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
    "stack": StackingScorer({"a": Restless(), "b": ClassifierScorer()}, n_folds=2),
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


def test_what_the_last_step_sees_is_out_of_fold(monkeypatch):
    """Through the whole fit of the default, to the last bit."""
    seen = []

    def as_columns(self, batch, table):
        seen.append(table)
        return original(self, batch, table)

    original = StackingScorer._as_columns
    monkeypatch.setattr(StackingScorer, "_as_columns", as_columns)
    StackingScorer({"a": Folds()}).fit(BATCH, LABELS, tasks(0.1)[0])
    fold_of = Folds.seen.pop()
    seen.clear()
    StackingScorer().fit(BATCH, LABELS, tasks(0.1)[0])
    for fold in (0, 2):
        labels, rows = with_other_labels(fold, fold_of)
        StackingScorer().fit(BATCH, labels, tasks(0.1)[0])
        assert seen[-1].shape == (BATCH.n_claims, 2)
        np.testing.assert_array_equal(seen[-1][rows], seen[0][rows])
        assert (seen[-1] != seen[0]).any(axis=0).all()


@pytest.mark.long
def test_the_same_seed_gives_the_same_bits():
    for scorer in (NeymanPearsonScorer(), NeymanPearsonScorer(random_state=None)):
        found = [scorer.fit_folds(FOLDED, LABELS, tasks(0.1))[1] for _ in range(2)]
        np.testing.assert_array_equal(*found)
    several = [StackingScorer().fit(BATCH, LABELS, tasks(0.1)[0]) for _ in range(2)]
    np.testing.assert_array_equal(*[s.confidence(BATCH) for s in several])


def test_forests_of_the_folds_share_the_trees():
    [fitted], _ = NeymanPearsonScorer().fit_folds(FOLDED, LABELS, tasks(0.1))
    table = fitted.table_
    assert np.bincount(table.forest + 1).tolist() == [3 * 50, 15, 15, 15]
    assert table.doubt.tolist() == [0.05] * 3
    roots = [table.threshold[table.root[table.forest == k]] for k in range(3)]
    assert len({tuple(root) for root in roots}) == 3  # three seeds
