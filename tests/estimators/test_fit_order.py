"""What a fit shows to columns and scorer, what each level keeps of it, and what it says."""

import numpy as np
import pytest
from one_claim import numbered, one_claim_each

from skdcf import HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import LabelWarning
from skdcf.features import GraphFeatures
from skdcf.scorers import ClassifierScorer, FeatureScorer, Scorer

GRAPHS, Y = make_reasoning_graphs(120, random_state=0, return_X_y=True)


@pytest.mark.parametrize("declared", [False, True])
def test_columns_that_declare_to_learn_nothing_see_no_label(declared):
    class Peeps(GraphFeatures):
        requires_fit = declared
        labels = []

        def fit(self, X, y=None):
            self.labels.append(np.array(y))
            return super().fit(X, y)

    cf = HardCF(FeatureScorer("frequency-score"), features=Peeps(), alpha=0.2)
    cf.fit(GRAPHS, Y)
    [labels] = Peeps.labels
    assert (labels >= 0).all() if declared else (labels == -1).all()


class Remembers(Scorer):
    """Writes down how many claims it was trained on."""

    requires_fit = True
    n_claims = []

    def fit(self, batch, labels, task=None):
        self.n_claims.append(batch.n_claims)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


def test_empty_answers_do_not_pass_for_judged_ones():
    """Where nothing was judged, all problems train, and not the empty ones alone."""
    empty = ReasoningGraph(np.empty((0, 1)), ())
    graphs = [*[ReasoningGraph([[i / 40]], ()) for i in range(40)], *[empty] * 10]
    y = [*[[-1]] * 40, *[[]] * 10]
    with pytest.warns(LabelWarning, match=r"no claim.*judged"):
        HardCF(Remembers(), alpha=0.2, random_state=0).fit(graphs, y)
    assert Remembers.n_claims[-1] > 10


def test_no_false_claim_among_the_judged_ones_is_told():
    unjudged = np.arange(len(Y)) % 20 == 0
    y = [
        np.where(skip, -1, 1) * np.ones_like(r)
        for skip, r in zip(unjudged, Y, strict=True)
    ]
    unjudged, errors = "no claims judged", "labelled false"
    with (
        pytest.warns(LabelWarning, match=unjudged),
        pytest.warns(LabelWarning, match=errors),
    ):
        HardCF(ClassifierScorer(), alpha=0.3, random_state=0).fit(GRAPHS, y)


class Learning(Scorer):
    requires_fit = True

    def fit(self, batch, labels, task=None):
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


class Peeping(Scorer):
    """Says that it learns nothing, and looks at the labels that it is given."""

    requires_fit = False

    def fit(self, batch, labels, task=None):
        self.labels_ = np.array(labels)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.parametrize("calibration_size", [None, 0.5])
def test_labels_are_hidden_from_who_says_that_it_learns_nothing(calibration_size):
    rng = np.random.default_rng(0)
    X = one_claim_each(rng.random(60))
    y = (rng.random((60, 1)) < 0.6).astype(int).tolist()
    cf = HardCF(Peeping(), alpha=0.2, calibration_size=calibration_size).fit(X, y)
    assert (cf.scorer_.labels_ == -1).all()


class Noting(Learning):
    """Notes what it is fitted to."""

    def fit(self, batch, labels, task=None):
        self.rows_ = batch.features[:, 1].astype(int)
        self.labels_ = np.array(labels)
        self.groups_ = task.groups
        return self


def test_a_scorer_is_told_which_answers_belong_together():
    X, y = numbered(60)
    names = np.arange(60) // 2
    scorer = HardCF(Noting(), alpha=0.2, random_state=0).fit(X, y, groups=names).scorer_
    pairs = set(zip(scorer.groups_, names[scorer.rows_], strict=True))
    assert len(pairs) == len(set(scorer.groups_)) == len(set(names[scorer.rows_]))
    assert len(pairs) < len(scorer.rows_)
    alone = HardCF(Noting(), alpha=0.2, random_state=0).fit(X, y).scorer_
    assert alone.groups_ is None


@pytest.mark.parametrize(("calibration_size", "n"), [(None, 60), (0.5, 60)])
def test_what_is_held_out_is_hidden_from_who_learns_nothing(calibration_size, n):
    X, y = numbered(60)
    cf = HardCF(Peeping(), alpha=0.2, calibration_size=calibration_size).fit(X, y)
    assert len(cf.scorer_.labels_) == n


def test_equal_texts_with_different_columns_are_selected_in_any_row_order():
    rng = np.random.default_rng(0)
    columns = rng.permutation(50)[:9]
    graphs = [
        ReasoningGraph([[float(x)]], [], claims=["x"], feature_names=["a"])
        for x in columns
    ]
    labels = [[int(x % 2)] for x in columns]
    thresholds = set()
    for _ in range(20):
        order = rng.permutation(len(graphs))
        filter = HardCF(0, alpha=0.25)
        filter.fit([graphs[i] for i in order], [labels[i] for i in order], False)
        thresholds.add(filter.threshold_)
    assert len(thresholds) == 1
