"""What a fit shows to columns and scorer, what each level keeps of it, and what it says."""

import numpy as np
import pytest
from one_claim import one_claim_each

from skdcf import HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import LabelWarning
from skdcf.features import GraphFeatures
from skdcf.scorers import FeatureScorer, Scorer

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
