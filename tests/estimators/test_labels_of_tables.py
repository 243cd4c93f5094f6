"""On a table a filter predicts values of y, as a classifier of scikit-learn does."""

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.exceptions import LabelWarning

RNG = np.random.default_rng(0)
IS_TRUE = RNG.random(400) < 0.5
X = np.c_[IS_TRUE + 0.5 * RNG.normal(size=400), RNG.normal(size=400)]
CODINGS = {
    "0 and 1": (0, 1),
    "1 and 2": (1, 2),
    "other numbers": (-3.0, 7.0),
    "booleans": (False, True),
    "words": ("no", "yes"),
    "words whose order in the alphabet is the other": ("incorrect", "correct"),
}


def coded(coding, is_true=IS_TRUE):
    return np.where(is_true, *reversed(CODINGS[coding]))


@pytest.mark.parametrize("coding", CODINGS)
def test_predictions_are_values_of_y(coding):
    y = coded(coding)
    cf = HardCF(0, alpha=0.1).fit(X, y)
    predicted = cf.predict(X)
    assert predicted.dtype == y.dtype == cf.classes_.dtype
    assert cf.classes_.tolist() == list(CODINGS[coding])
    kept = cf.decision_function(X) > 0
    np.testing.assert_array_equal(predicted, coded(coding, kept))
    assert 0.2 < kept.mean() < 0.9
    kept = cf.decision_function(X, alpha=0.2) > 0
    np.testing.assert_array_equal(cf.predict(X, alpha=0.2), coded(coding, kept))


@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_minus_one_and_one_is_refused_with_both_readings():
    y = np.where(IS_TRUE, 1, -1)
    with pytest.raises(ValueError, match=r"-1.*false.*unknown.*y"):
        HardCF(0).fit(X, y)
    cf = HardCF(0, alpha=0.1).fit(X, y == 1)
    assert set(cf.predict(X)) == {False, True}
    # Next to 0 and 1, and on graphs, it can only mean that nobody judged the claim.
    some_unknown = np.where(np.arange(400) < 20, -1, IS_TRUE)
    assert HardCF(0, alpha=0.1).fit(X, some_unknown).classes_.tolist() == [0, 1]
    graphs = [ReasoningGraph(row[None], []) for row in X]
    per_problem = [[label] for label in y.astype(int)]
    with pytest.warns(LabelWarning, match="no claims judged"):
        HardCF(0, alpha=0.1).fit(graphs, per_problem)


@pytest.mark.parametrize(
    ("only", "classes"),
    [(1.0, [0.0, 1.0]), (0, [0, 1]), (False, [False, True])],
)
def test_one_class_is_enough_where_its_meaning_is_known(only, classes):
    cf = HardCF(0, alpha=0.1).fit(X, np.full(400, only))
    assert cf.classes_.tolist() == classes
    kept = cf.decision_function(X) > 0
    assert cf.predict(X).tolist() == [classes[int(keep)] for keep in kept]
    if classes[1] == only:
        assert kept.all()
    for value in (5, "yes"):
        with pytest.raises(ValueError, match=rf"y .*{value}"):
            HardCF(0).fit(X, np.full(400, value))


def test_other_labels_in_use_are_refused():
    cf = HardCF(0, alpha=0.1).fit(X, coded("1 and 2"))
    with pytest.raises(ValueError, match=r"\[1, 2\].*\[0, 1\]"):
        cf.calibrate(X, coded("0 and 1"))
