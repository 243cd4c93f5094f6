"""On a table a filter predicts values of y, as a classifier of scikit-learn does."""

import numpy as np
import pytest
from sklearn.base import clone

from skdcf import CoherentConformalFilter, HardCF, IndependentFactuality, ReasoningGraph
from skdcf.evaluation import coverage_score
from skdcf.exceptions import LabelWarning
from skdcf.uses import flat_masks

RNG = np.random.default_rng(0)
IS_TRUE = RNG.random(400) < 0.5
X = np.c_[IS_TRUE + 0.5 * RNG.normal(size=400), RNG.normal(size=400)]
CODINGS = {
    "0 and 1": (0, 1),
    "1 and 2": (1, 2),
    "floats": (0.0, 1.0),
    "other numbers": (-3, 7),
    "booleans": (False, True),
    "words": ("no", "yes"),
    "words whose order in the alphabet is the other": ("incorrect", "correct"),
}
FILTERS = [
    HardCF(0, alpha=0.1),
    IndependentFactuality(alpha=0.1, random_state=0),
    CoherentConformalFilter("linear", alpha=0.1, random_state=0),
]


def coded(coding, is_true=IS_TRUE):
    return np.where(is_true, *reversed(CODINGS[coding]))


@pytest.mark.parametrize(
    ("filter", "coding"),
    [
        *[(FILTERS[0], coding) for coding in CODINGS],
        *[(filter, "1 and 2") for filter in FILTERS[1:]],
    ],
)
def test_predictions_are_values_of_y(filter, coding):
    y = coded(coding)
    cf = clone(filter).fit(X, y)
    predicted = cf.predict(X)
    assert predicted.dtype == y.dtype == cf.classes_.dtype
    assert cf.classes_.tolist() == list(CODINGS[coding])
    kept = cf.decision_function(X) > 0
    np.testing.assert_array_equal(predicted, coded(coding, kept))
    assert 0.2 < kept.mean() < 0.9
    np.testing.assert_array_equal(
        cf.predict(X, alpha=0.2), coded(coding, flat_masks(cf, X, [0.2])[0])
    )


def test_what_is_predicted_as_true_keeps_the_guarantee():
    y = coded("1 and 2")
    cf = HardCF(0, alpha=0.1).fit(X[:200], y[:200])
    kept = X[200:, 0] > -cf.threshold_
    assert cf.predict(X[200:]).tolist() == (kept + 1).tolist()
    assert coverage_score(IS_TRUE[200:].astype(int), kept) > 0.85


@pytest.mark.parametrize("minus", [-1, -1.0])
@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_minus_one_and_one_is_refused_with_both_readings(minus):
    y = np.where(IS_TRUE, 1, minus)
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
    [
        (1, [0, 1]),
        (1.0, [0.0, 1.0]),
        (True, [False, True]),
        (0, [0, 1]),
        (False, [False, True]),
    ],
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


@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_a_column_has_one_word_for_each_class():
    words = np.where(IS_TRUE, "supported", "refuted").astype(object)
    words[:3] = "unknown"
    cf = HardCF(0, alpha=0.1).fit(X, words)
    assert cf.classes_.tolist() == ["refuted", "supported"]
    words[np.flatnonzero(~IS_TRUE)[:10]] = "hallucinated"
    with pytest.raises(ValueError, match=r"y .*hallucinated.*refuted"):
        HardCF(0).fit(X, words)


def test_graphs_keep_masks_and_have_no_classes():
    graphs = [ReasoningGraph(row[None], []) for row in X]
    y = coded("0 and 1")
    cf = HardCF(0, alpha=0.1).fit(X, y)
    kept = cf.predict(X) == 1
    masks = cf.predict(graphs)
    assert masks[0].dtype == bool
    np.testing.assert_array_equal(np.concatenate(masks), kept)
    cf.fit(graphs, y[:, None])
    assert not hasattr(cf, "classes_")
    # No labels of a table were seen, so there are none to predict.
    np.testing.assert_array_equal(cf.predict(X), kept)
    assert cf.predict(X).dtype == bool


def test_other_labels_in_use_are_refused_and_words_are_read():
    cf = HardCF(0, alpha=0.1).fit(X, coded("1 and 2"))
    assert cf.score(X, coded("1 and 2")) == cf.score(X, coded("words"))
    with pytest.raises(ValueError, match=r"\[1, 2\].*\[0, 1\]"):
        cf.calibrate(X, coded("0 and 1"))


def test_a_table_takes_labels_in_one_array_per_problem():
    table = np.random.default_rng(0).random((40, 2))
    flat = np.tile([1, 0], 20)
    arrays = np.empty(40, dtype=object)
    arrays[:] = [np.array([label]) for label in flat]
    expected = HardCF(0, alpha=0.2).fit(table, flat).threshold_
    for y in (arrays, [*arrays], flat.reshape(-1, 1).tolist()):
        assert HardCF(0, alpha=0.2).fit(table, y).threshold_ == expected
