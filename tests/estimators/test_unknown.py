"""Claims that nobody judged: false where that is careful, nowhere else anything at all."""

import numpy as np
import pytest
from one_claim import NO_EDGES, numbered
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
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
    CalibratedSearch,
    compare_filters,
    coverage_score,
    evaluate_filter,
    leave_one_out,
    retention_score,
)
from skdcf.exceptions import LabelWarning
from skdcf.labels import pack_labels
from skdcf.relaxation import GridRelaxation, PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    ConfTrScorer,
    FitTask,
    Scorer,
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
NOT_LEARNING = FILTERS[:4]


# --- calibration: unknown counts as false


@pytest.mark.filterwarnings("ignore:alpha of this clone was set")
@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_every_filter_takes_them(filter):
    few = forget(Y, 0.03)
    fitted = clone(filter).set_params(alpha=0.3).fit(GRAPHS, few)
    assert fitted.score(FRESH, FRESH_Y) > 0
    flat = clone(fitted).fit(GRAPHS, np.concatenate(few))
    assert flat.threshold_ == fitted.threshold_


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_calibration_is_that_of_false_claims(filter):
    fitted = clone(filter).set_params(alpha=0.2).fit(GRAPHS, UNKNOWN)
    before = fitted.calibrate(FRESH, forget(FRESH_Y)).nonconformity_scores_.copy()
    after = fitted.calibrate(FRESH, as_false(forget(FRESH_Y))).nonconformity_scores_
    np.testing.assert_array_equal(before, after)
    with_truth = fitted.calibrate(FRESH, FRESH_Y).nonconformity_scores_
    assert (before <= with_truth).all() and (before < with_truth).any()


@pytest.mark.parametrize("filter", NOT_LEARNING, ids=str)
def test_where_nothing_is_learnt_a_fit_is_that_of_false_claims(filter):
    one = clone(filter).fit(GRAPHS, UNKNOWN)
    other = clone(filter).fit(GRAPHS, as_false(UNKNOWN))
    np.testing.assert_array_equal(
        one.nonconformity_scores_, other.nonconformity_scores_
    )


def test_after_the_first_error_of_a_chain_labels_make_no_difference():
    """Every later claim has the error among its ancestors."""
    rng = np.random.default_rng(0)
    graphs, full, first_only = [], [], []
    for _ in range(60):
        graphs.append(
            ReasoningGraph(rng.normal(size=(6, 1)), [(v, v + 1) for v in range(5)])
        )
        y = (rng.random(6) > 0.15).astype(int)
        full.append(y)
        wrong = np.flatnonzero(y == 0)
        first_only.append(np.where(np.arange(6) > min(wrong, default=6), -1, y))
    assert any((row == -1).any() for row in first_only)
    one, other = (HardCF(0, alpha=0.2).fit(graphs, y) for y in (full, first_only))
    np.testing.assert_array_equal(
        one.nonconformity_scores_, other.nonconformity_scores_
    )


@UNJUDGED
def test_coverage_stays_at_the_target():
    """With a third of the calibration labels unknown, and the truth known at the end."""
    graphs, y = make_reasoning_graphs(
        1500, kind="felm", random_state=2, return_X_y=True
    )
    filter = HardCF("frequency-score", alpha=0.2)
    report = []
    for unknown in (y, forget(y, 0.3)):
        filter.fit(graphs[:500], unknown[:500])
        kept = filter.predict(graphs[500:])
        report.append((coverage_score(y[500:], kept), retention_score(y[500:], kept)))
    (coverage, retention), (careful, fewer) = report
    assert careful >= coverage >= 0.8 - 3 * np.sqrt(0.16 / 500)
    assert 0 < fewer < retention


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


def test_minus_one_on_a_table_is_unknown_next_to_0_and_refused_next_to_1():
    X = np.random.default_rng(0).normal(size=(60, 1))
    truth = X[:, 0] > 0
    assert (
        check(HardCF(0), X, np.where(truth, 0, -1))[1].tolist()
        == np.where(truth, 0, -1).tolist()
    )
    with pytest.raises(ValueError, match=r"labels.*-1"):
        check(HardCF(0), X, np.where(truth, 1, -1))
    with pytest.raises(ValueError, match=r"distinct values.*3"):
        check(HardCF(0), X, np.resize([-1, 1, 2], 60))


# --- training: left out


def test_classifiers_are_trained_on_the_judged_claims():
    labels = pack_labels(UNKNOWN, GRAPHS)
    known = labels >= 0
    own = ClassifierScorer(GaussianNB(), target="own").fit(GRAPHS, labels)
    expected = GaussianNB().fit(GRAPHS.features[known], labels[known])
    np.testing.assert_array_equal(own.estimator_.theta_, expected.theta_)


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


def test_a_claim_set_of_which_nothing_is_known_teaches_nothing():
    labels = np.full(GRAPHS.n_claims, -1)
    with pytest.warns(UserWarning, match=r"training.*claim"):
        ConfTrScorer().fit(GRAPHS, labels)
    assert ClassifierScorer().fit(GRAPHS, labels).estimator_ is None


# --- metrics and comparisons


def test_reports_count_them_as_false():
    filter = HardCF(alpha=0.2).fit(GRAPHS, Y)
    unknown = forget(FRESH_Y)
    for evaluate in (evaluate_filter, leave_one_out):
        one, other = (
            evaluate(filter, FRESH, y, [0.1, 0.2]) for y in (unknown, as_false(unknown))
        )
        assert str(one.rows) == str(other.rows)
    kept = filter.predict(FRESH)
    assert filter.score(FRESH, unknown) == pytest.approx(retention_score(unknown, kept))
    assert filter.score(FRESH, unknown) < filter.score(FRESH, FRESH_Y)


def test_comparisons_and_searches_take_them():
    filters = {"plain": HardCF(), "learnt": HardCF(GaussianNB())}
    run = {"alphas": [0.2], "cv": 3, "random_state": 0}
    report = compare_filters(filters, GRAPHS, UNKNOWN, **run)
    false = compare_filters(filters, GRAPHS, as_false(UNKNOWN), **run)
    assert str(report.rows[0]) == str(false.rows[0])
    np.testing.assert_array_equal(report.splits.true_claims, false.splits.true_claims)
    assert report.retention[1] != false.retention[1]
    search = GridSearchCV(SingleFeatureCF(alpha=0.2), {"beta_mix": [0.0, 1.0]}, cv=3)
    one, other = (
        CalibratedSearch(search, random_state=0).fit(GRAPHS, y)
        for y in (UNKNOWN, as_false(UNKNOWN))
    )
    assert one.threshold() == other.threshold()


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


def test_labels_that_are_missing_and_labels_that_are_unsure():
    """-1, nobody looked, teaches nothing; 0, nobody could call it true, is an error."""
    chains = [([1, 1], [(0, 1)]), ([1, 0], [(0, 1)]), ([0, 1], [(0, 1)])] * 20
    graphs = [ReasoningGraph(np.zeros((2, 1)), edges) for _, edges in chains]
    batch = GraphBatch.from_graphs(graphs)
    truth = np.concatenate([labels for labels, _ in chains])
    removed = np.random.default_rng(0).uniform(size=len(truth)) < 0.3

    def hazard_of(labels):
        return expit(ClassifierScorer().fit(batch, labels).hazard(batch)[0])

    for word in (-1, 0):
        labels = np.where(removed, word, truth)
        errors = looked_at = 0
        for first, second in labels.reshape(-1, 2):
            errors += first == 0
            looked_at += first >= 0
            if first == 1 and second >= 0:  # below an error nothing is asked
                errors += second == 0
                looked_at += 1
        assert hazard_of(labels) == pytest.approx(errors / looked_at, rel=0.03)
    assert hazard_of(np.where(removed, 0, truth)) > 1.3 * hazard_of(truth)
    assert hazard_of(np.where(removed, -1, truth)) == pytest.approx(
        hazard_of(truth), rel=0.15
    )


class Learning(Scorer):
    requires_fit = True

    def fit(self, batch, labels, task=None):
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


def test_answers_without_claims_are_none_that_nobody_judged():
    """One claim of all is unknown, and a quarter of the answers hold no claim."""
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(80) % 4, 2, 0)
    offsets = np.append(0, np.cumsum(sizes))
    X = GraphBatch.from_arrays(rng.random((offsets[-1], 1)), offsets, NO_EDGES)
    labels = (rng.random(offsets[-1]) < 0.7).astype(int)
    labels[0] = -1
    HardCF(0, alpha=0.1).fit(X, labels)  # a warning would be an error here


class Noting(Learning):
    """Notes what it is fitted to."""

    def fit(self, batch, labels, task=None):
        self.rows_ = batch.features[:, 1].astype(int)
        self.labels_ = np.array(labels)
        self.groups_ = task.groups
        return self


@UNJUDGED
def test_answers_that_nobody_judged_teach_nothing():
    X, y = numbered(90)
    y[::5] = [[-1]] * 18
    scorer = HardCF(Noting(), alpha=0.4, random_state=0).fit(X, y).scorer_
    assert len(scorer.labels_) > 20
    assert (scorer.labels_ >= 0).all()
