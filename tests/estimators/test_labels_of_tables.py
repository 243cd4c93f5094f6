"""On a table a filter predicts values of y, as a classifier of scikit-learn does."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, cross_val_score

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
    "bytes": (b"no", b"yes"),
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


@pytest.mark.parametrize("coding", [name for name in CODINGS if name != "bytes"])
def test_accuracy_does_not_depend_on_the_coding(coding):
    def accuracy(y):
        return cross_val_score(FILTERS[0], X, y, cv=3, scoring="accuracy").tolist()

    by_hand = np.mean(cross_val_predict(FILTERS[0], X, IS_TRUE, cv=3) == IS_TRUE)
    assert by_hand > 0.75
    assert np.mean(accuracy(coded(coding))) == pytest.approx(by_hand, abs=0.01)
    assert accuracy(coded(coding)) == accuracy(IS_TRUE)


@pytest.mark.parametrize("box", [list, pd.Series, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("coding", ["0 and 1", "booleans", "words"])
def test_labels_in_other_boxes(coding, box):
    y = coded(coding)
    cf = clone(FILTERS[0]).fit(X, box(y.tolist()))
    assert set(cf.predict(X).tolist()) == set(CODINGS[coding])
    if coding == "words" or box in (
        list,
        pd.Series,
    ):  # no metric takes numbers as objects
        accuracy = cross_val_score(cf, X, box(y.tolist()), cv=3, scoring="accuracy")
        assert accuracy.mean() > 0.75


@pytest.mark.parametrize("coding", ["0 and 1", "1 and 2", "booleans", "words"])
def test_meta_estimators_of_scikit_learn(coding):
    y = coded(coding)
    cf = HardCF(LogisticRegression(), alpha=0.1, random_state=0)
    bagged = BaggingClassifier(cf, 5, random_state=0).fit(X, y)
    assert 0.3 < np.mean(bagged.predict(X) == CODINGS[coding][1]) < 0.8
    assert bagged.score(X, y) > 0.7
    margin = cross_val_predict(cf, X, y, method="decision_function")
    assert np.mean((margin > 0) == IS_TRUE) > 0.75


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="older versions calibrate only what is a classifier",
)
@pytest.mark.parametrize("coding", ["0 and 1", "1 and 2", "booleans", "words"])
def test_probabilities_of_scikit_learn(coding):
    y = coded(coding)
    cf = HardCF(LogisticRegression(), alpha=0.1, random_state=0)
    calibrated = CalibratedClassifierCV(cf, cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.8
    assert calibrated.classes_.tolist() == list(CODINGS[coding])


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
        ("yes", ["no", "yes"]),
        ("Correct", ["Incorrect", "Correct"]),
        ("REFUTED", ["REFUTED", "SUPPORTED"]),
        (b"true", [b"false", b"true"]),
    ],
)
def test_one_class_is_enough_where_its_meaning_is_known(only, classes):
    cf = HardCF(0, alpha=0.1).fit(X, np.full(400, only))
    assert cf.classes_.tolist() == classes
    kept = cf.decision_function(X) > 0
    assert cf.predict(X).tolist() == [classes[int(keep)] for keep in kept]
    if classes[1] == only:
        assert kept.all()
    with pytest.raises(ValueError, match=r"y .*got only 5"):
        HardCF(0).fit(X, np.full(400, 5))


@pytest.mark.filterwarnings("ignore:.*no claims judged")
def test_of_many_words_the_usual_ones_are_predicted():
    words = np.where(IS_TRUE, "supported", "refuted").astype(object)
    words[np.flatnonzero(~IS_TRUE)[:10]] = "hallucinated"
    words[:3] = "unknown"
    cf = HardCF(0, alpha=0.1).fit(X, words)
    assert cf.classes_.tolist() == ["refuted", "supported"]


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
    cf = HardCF(0, alpha=0.1).fit(X, coded("words"))
    again = clone(cf).fit(X, coded("words")).calibrate(X, coded("0 and 1"))
    assert again.threshold_ == cf.threshold_
    assert set(again.predict(X)) == {"no", "yes"}


def test_a_table_takes_labels_in_one_array_per_problem():
    table = np.random.default_rng(0).random((40, 2))
    flat = np.tile([1, 0], 20)
    arrays = np.empty(40, dtype=object)
    arrays[:] = [np.array([label]) for label in flat]
    expected = HardCF(0, alpha=0.2).fit(table, flat).threshold_
    for y in (arrays, [*arrays], flat.reshape(-1, 1).tolist()):
        assert HardCF(0, alpha=0.2).fit(table, y).threshold_ == expected
