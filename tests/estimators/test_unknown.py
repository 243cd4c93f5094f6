"""Claims that nobody judged count as false in calibration, and are left out of training."""

import numpy as np
import pytest
from one_claim import NO_EDGES
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from skdcf import CoherentConformalFilter, GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import LabelWarning
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import ClassifierScorer

N = 120
GRAPHS, Y = make_reasoning_graphs(N, random_state=0, return_X_y=True)
LABELS = pack_labels(Y, GRAPHS)
FRESH, FRESH_Y = make_reasoning_graphs(60, random_state=1, return_X_y=True)


def forget(labels):
    return np.where(np.random.default_rng(0).random(len(labels)) < 0.25, -1, labels)


UNKNOWN = forget(LABELS)


@pytest.mark.parametrize(
    "filter",
    [
        HardCF("frequency-score", ties="jitter", random_state=0, alpha=0.2),
        CoherentConformalFilter(random_state=0, alpha=0.2),
    ],
    ids=str,
)
def test_calibration_is_that_of_false_claims(filter):
    fitted = clone(filter).fit(GRAPHS, UNKNOWN)
    unknown = forget(pack_labels(FRESH_Y, FRESH))
    before = fitted.calibrate(FRESH, unknown).nonconformity_scores_
    after = fitted.calibrate(FRESH, np.maximum(unknown, 0)).nonconformity_scores_
    np.testing.assert_array_equal(before, after)
    with_truth = fitted.calibrate(FRESH, FRESH_Y).nonconformity_scores_
    assert (before <= with_truth).all() and (before < with_truth).any()


def test_coherent_targets_need_all_ancestors_or_one_error():
    known, target = [], []
    for graph, row in zip(GRAPHS, GRAPHS.split(UNKNOWN), strict=True):
        for v in range(graph.n_claims):
            above = row[[*graph.ancestors(v), v]]
            known.append((above == 0).any() or (above == 1).all())
            target.append((above == 1).all())
    known, target = np.array(known), np.array(target)
    scorer = ClassifierScorer(GaussianNB(), target="coherent").fit(GRAPHS, UNKNOWN)
    expected = GaussianNB().fit(GRAPHS.features[known], target[known])
    np.testing.assert_array_equal(scorer.estimator_.theta_, expected.theta_)
    np.testing.assert_array_equal(scorer.estimator_.class_count_, expected.class_count_)


@pytest.mark.parametrize("target", ["own", "coherent", "hazard"])
def test_classifiers_do_not_see_unknown_claims(target):
    rows = np.arange(N) % 2 == 0
    is_known = rows[GRAPHS.problem_of]
    scorer = ClassifierScorer(target=target)
    unknown = np.where(is_known, LABELS, -1)
    found = clone(scorer).fit(GRAPHS, unknown).confidence(FRESH)
    expected = clone(scorer).fit(GRAPHS[rows], LABELS[is_known]).confidence(FRESH)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("relaxation", [PathRelaxation(), GridRelaxation()], ids=str)
def test_soft_training_gains_nothing_by_keeping_unknown_claims(relaxation):
    risk = np.random.RandomState(0).normal(size=len(UNKNOWN))
    plans = [relaxation.plan(GRAPHS, y) for y in (UNKNOWN, np.abs(UNKNOWN))]
    np.testing.assert_array_equal(*(relaxation.soft_scores(risk, p) for p in plans))
    assert plans[0].labels.tolist() == (UNKNOWN == 1).astype(float).tolist()


def test_unjudged_answers_are_counted_in_a_warning_and_empty_ones_are_not():
    some = np.where(GRAPHS.problem_of < 9, -1, LABELS)
    filter = HardCF("frequency-score").fit(GRAPHS, Y)
    with pytest.warns(LabelWarning, match="9 of the 120"):
        assert clone(filter).fit(GRAPHS, some).threshold_ < filter.threshold_
    with pytest.warns(LabelWarning, match="9 of the 120"):
        filter.calibrate(GRAPHS, some)
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(np.where(np.arange(80) % 4, 2, 0)))
    X = GraphBatch.from_arrays(rng.random((offsets[-1], 1)), offsets, NO_EDGES)
    labels = (rng.random(offsets[-1]) < 0.7).astype(int)
    labels[0] = -1
    HardCF(0, alpha=0.1).fit(X, labels)  # a warning would be an error here


def test_unjudged_answers_do_not_train_and_may_calibrate():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    cf = HardCF(ClassifierScorer(), alpha=0.2, calibration_size=0)
    cf.fit(X, np.r_[y[:30], np.full(30, -1)], groups=np.arange(60))
    cf.calibrate(X[30:], y[30:], groups=np.arange(30, 60))
    with pytest.raises(ValueError, match="training"):
        cf.calibrate(X[29:], y[29:], groups=np.arange(29, 60))
