"""Claims that nobody judged: false where that is careful, nowhere else anything at all."""

import numpy as np
import pytest
from one_claim import NO_EDGES
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skdcf import (
    BoostedIndependentFactuality,
    CoherentConformalFilter,
    GraphBatch,
    HardCF,
    IndependentFactuality,
    ReasoningGraph,
    SingleFeatureCF,
    XGBoostCF,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.evaluation import (
    coverage_score,
)
from skdcf.exceptions import LabelWarning
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    FitTask,
)
from skdcf.training import Adam, SoftTraining
from skdcf.uses import check

UNJUDGED = pytest.mark.filterwarnings("ignore:.*no claims judged")
N = 120
GRAPHS, Y = make_reasoning_graphs(N, random_state=0, return_X_y=True)
FRESH, FRESH_Y = make_reasoning_graphs(60, random_state=1, return_X_y=True)


def forget(y, share=0.25, seed=0):
    """Some of the labels, at random, are unknown."""
    rng = np.random.default_rng(seed)
    return [np.where(rng.random(len(row)) < share, -1, row) for row in y]


def as_false(y):
    return [np.maximum(row, 0) for row in y]


UNKNOWN = forget(Y)
FILTERS = [
    HardCF(),
    IndependentFactuality(),
    SingleFeatureCF(beta_mix=0.5),
    HardCF("frequency-score", ties="jitter", random_state=0),
    XGBoostCF(random_state=0),
    HardCF(ClassifierScorer(GaussianNB(), target="coherent"), random_state=0),
    CoherentConformalFilter(random_state=0),
    CoherentConformalFilter(
        "linear", training=SoftTraining(Adam(max_iter=5)), random_state=0
    ),
    BoostedIndependentFactuality(random_state=0),
]


# --- calibration: unknown counts as false


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_calibration_is_that_of_false_claims(filter):
    fitted = clone(filter).set_params(alpha=0.2).fit(GRAPHS, UNKNOWN)
    before = fitted.calibrate(FRESH, forget(FRESH_Y)).nonconformity_scores_.copy()
    after = fitted.calibrate(FRESH, as_false(forget(FRESH_Y))).nonconformity_scores_
    np.testing.assert_array_equal(before, after)
    with_truth = fitted.calibrate(FRESH, FRESH_Y).nonconformity_scores_
    assert (before <= with_truth).all() and (before < with_truth).any()


# --- tables


@UNJUDGED
def test_tables_with_unknown_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, 0)
    y[rng.random(200) < 0.3] = -1
    one = HardCF(0, alpha=0.3).fit(X, y)
    other = HardCF(0, alpha=0.3).fit(X, np.maximum(y, 0))
    assert one.threshold_ == other.threshold_
    assert check(one, X, y)[1].tolist() == y.tolist()
    learnt = HardCF(LogisticRegression(), alpha=0.3, random_state=0).fit(X, y)
    problems = [ReasoningGraph(row[None], []) for row in X]
    same = clone(learnt).fit(problems, [[label] for label in y])
    assert learnt.threshold_ == same.threshold_
    assert learnt.score(X, y) == same.score(problems, [[label] for label in y])


# --- training: left out


def test_coherent_targets_need_all_above_or_one_error():
    labels = pack_labels(UNKNOWN, GRAPHS)
    known, target = [], []
    for i, row in enumerate(UNKNOWN):
        graph = GRAPHS[i]
        for v in range(graph.n_claims):
            seen = row[[*graph.ancestors(v), v]]
            known.append((seen == 0).any() or (seen == 1).all())
            target.append((seen == 1).all())
    known, target = np.array(known), np.array(target)
    assert known.any() and not known.all() and (known != (labels >= 0)).any()
    scorer = ClassifierScorer(GaussianNB(), target="coherent").fit(GRAPHS, labels)
    expected = GaussianNB().fit(GRAPHS.features[known], target[known])
    np.testing.assert_array_equal(scorer.estimator_.theta_, expected.theta_)
    np.testing.assert_array_equal(scorer.estimator_.class_count_, expected.class_count_)


@pytest.mark.parametrize(
    "scorer",
    [
        ClassifierScorer(GaussianNB()),
        ClassifierScorer(GaussianNB(), target="coherent"),
        ClassifierScorer(),
    ],
    ids=str,
)
def test_classifiers_do_not_see_what_is_unknown(scorer):
    """Whatever the labels would have been: the fit is that of the problems judged."""
    rows = np.arange(N) % 2 == 0
    labels = pack_labels(Y, GRAPHS)
    of = rows[GRAPHS.problem_of]
    unknown = np.where(of, labels, -1)
    found = clone(scorer).fit(GRAPHS, unknown, FitTask()).confidence(FRESH)
    expected = clone(scorer).fit(GRAPHS[rows], labels[of], FitTask()).confidence(FRESH)
    as_wrong = (
        clone(scorer).fit(GRAPHS, np.where(of, labels, 0), FitTask()).confidence(FRESH)
    )
    np.testing.assert_array_equal(found, expected)
    assert np.corrcoef(found, as_wrong)[0, 1] < 0.95


@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()], ids=str)
def test_soft_training_gains_nothing_by_keeping_unknown_claims(relaxation):
    """Neither by keeping nor by dropping: the loss has no slope there of its own."""
    labels = pack_labels(UNKNOWN, GRAPHS)
    hopeful = np.where(labels < 0, 1, labels)
    risk = np.random.RandomState(0).normal(size=len(labels))
    scores = [
        relaxation.soft_scores(risk, relaxation.plan(GRAPHS, y))
        for y in (labels, hopeful)
    ]
    np.testing.assert_array_equal(*scores)
    plan = relaxation.plan(GRAPHS, labels)
    assert plan.labels.tolist() == (labels == 1).astype(float).tolist()


# --- metrics and comparisons


@UNJUDGED
def test_batches_of_nothing_but_unknown_claims():
    """As careful as can be: nothing is known to be true, so little can be kept."""
    batch = GraphBatch.from_arrays(np.arange(40.0)[:, None], np.arange(0, 41, 2), ())
    filter = HardCF(0, alpha=0.2).fit(batch, np.full(40, -1))
    assert filter.score(batch, np.full(40, -1)) == 0
    assert coverage_score([[-1, -1]] * 20, filter.predict(batch)) >= 0.8


def test_problems_that_nobody_judged_are_told_of():
    some = [np.full(len(row), -1) if i < 9 else row for i, row in enumerate(Y)]
    filter = HardCF("frequency-score", ties="jitter", random_state=0).fit(GRAPHS, Y)
    with pytest.warns(LabelWarning, match="9 of the 120"):
        lowered = clone(filter).fit(GRAPHS, some)
    assert lowered.threshold_ < filter.threshold_
    with pytest.warns(LabelWarning, match="9 of the 120"):
        filter.calibrate(GRAPHS, some)


def test_answers_without_claims_are_none_that_nobody_judged():
    """One claim of all is unknown, and a quarter of the answers hold no claim."""
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(80) % 4, 2, 0)
    offsets = np.append(0, np.cumsum(sizes))
    X = GraphBatch.from_arrays(rng.random((offsets[-1], 1)), offsets, NO_EDGES)
    labels = (rng.random(offsets[-1]) < 0.7).astype(int)
    labels[0] = -1
    HardCF(0, alpha=0.1).fit(X, labels)  # a warning would be an error here
