"""CoherentConformalFilter: training on some problems, calibrating on others."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skdcf import CoherentConformalFilter, GraphBatch
from skdcf.datasets import make_reasoning_graphs
from skdcf.relaxation import GridRelaxation
from skdcf.scorers import ConfTrScorer, LinearModel
from skdcf.training import SoftTraining
from skdcf.uses import seen


@pytest.fixture(scope="module")
def data():
    graphs, labels = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    return graphs, labels


def linear(**parameters):
    """The default filter with a fixed seed."""
    return CoherentConformalFilter(**{"random_state": 0} | parameters)


PAPER = linear(
    scorer=ConfTrScorer(gain=None),
    relaxation=GridRelaxation.from_paper("math", 0.1),
    training=SoftTraining.from_paper().set_params(optimizer__max_iter=5),
)


@pytest.mark.parametrize(
    "filter",
    [
        linear(),
        PAPER,
    ],
)
def test_bit_reproducible_and_cloneable(filter, data):
    graphs, y = data
    first, again = clone(filter).fit(graphs, y), clone(filter).fit(graphs, y)
    a, b = (np.concatenate(f.path_risk(graphs)) for f in (first, again))
    np.testing.assert_array_equal(a, b)
    assert first.loss_curve_ == again.loss_curve_
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(np.concatenate(restored.path_risk(graphs)), a)
    assert vars(clone(first)).keys() == vars(clone(filter)).keys()


@pytest.mark.filterwarnings("ignore:the score may have the wrong sign")
def test_training_never_sees_calibration_problems(data):
    """Changing the held-out labels changes the scores, not the scorer."""
    graphs, y = data
    # Without texts, the split would depend on the columns.
    graphs = GraphBatch.from_graphs(
        g.replace(problem=f"question {i}") for i, g in enumerate(graphs)
    )
    filter = linear().fit(graphs, y)
    held = seen(filter, graphs)[1]
    assert filter.n_calibration_ == held.sum() == 119
    flipped = [1 - row if held[i] else row for i, row in enumerate(y)]
    other = linear().fit(graphs, flipped)
    np.testing.assert_array_equal(filter.coef_, other.coef_)
    assert (filter.nonconformity_scores_ != other.nonconformity_scores_).any()
    moved = np.array(graphs.features)
    moved[held[graphs.problem_of]] += 100.0
    shifted = graphs.replace_features(moved, graphs.feature_names)
    other = linear().fit(shifted, y)
    np.testing.assert_array_equal(filter.coef_, other.coef_)


def test_a_failed_fit_leaves_the_old_filter_as_it_was(data):
    graphs, y = data

    class Breaks(LinearModel):
        def __call__(self, params, X):
            return X @ params + (np.nan if not hasattr(X @ params, "_value") else 0.0)

    filter = linear().fit(graphs, y)
    before = np.concatenate(filter.predict_alpha(graphs))
    filter.set_params(scorer=Breaks())
    with (
        pytest.warns(ConvergenceWarning),
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="finite confidences"),
    ):
        filter.fit(graphs, y)
    np.testing.assert_array_equal(np.concatenate(filter.predict_alpha(graphs)), before)
