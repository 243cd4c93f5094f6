"""What scikit-learn is not given is refused in words of the package.

The page "With scikit-learn" has the table of these, and prints the errors.
"""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

from skdcf import HardCF
from skdcf.datasets import (
    make_reasoning_graphs,
)
from skdcf.exceptions import GuaranteeWarning
from skdcf.guarantees import NoFalseClaim

GRAPHS, LABELS = make_reasoning_graphs(60, random_state=0, return_X_y=True)
CF = HardCF("frequency-score", alpha=0.3).fit(GRAPHS, LABELS)
MASKS = CF.predict(GRAPHS)
ONES = np.ones(60)


NO_TABLE = "a GraphBatch cannot be converted to a numeric array"
ROWS = {
    "sample_weight": (
        lambda: CF.fit(GRAPHS, LABELS, sample_weight=ONES),
        "sample_weight",
    ),
    "sample_weight of a search": (
        lambda: GridSearchCV(CF, {"scorer": [0]}, cv=2, error_score="raise").fit(
            GRAPHS, LABELS, sample_weight=ONES
        ),
        "sample_weight",
    ),
    "StandardScaler": (
        lambda: make_pipeline(StandardScaler(), CF).fit(GRAPHS, LABELS),
        NO_TABLE,
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_is_refused_in_words_of_the_package(row):
    call, words = ROWS[row]
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def equal(one, other):
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("values", [LABELS, MASKS])
def test_labels_and_masks_are_sequences(values):
    plain = list(values)
    assert equal(values[5:9], plain[5:9])
    assert equal(values[[3, 1]], [plain[3], plain[1]])
    assert equal(values[np.arange(60) < 7], plain[:7])
    assert equal(pickle.loads(pickle.dumps(values)), plain)
    assert equal(np.array(values, dtype=object), plain)
    assert equal(pd.Series(values), plain)
    assert equal(resample(values, random_state=0), resample(plain, random_state=0))
    assert joblib.hash(values) == joblib.hash(pickle.loads(pickle.dumps(values)))
    halves = train_test_split(values, random_state=0)
    assert all(map(equal, halves, train_test_split(plain, random_state=0)))
    assert type(halves[0]) is type(values)


def test_labels_of_one_length_are_the_table_that_a_list_is():
    rows = LABELS[[0, 1]]
    rows[:] = [np.array([1, 0]), np.array([0, 1])]
    np.testing.assert_array_equal(np.asarray(rows), [[1, 0], [0, 1]])
    assert np.array(rows, dtype=object).shape == (2, 2)


def test_scores_of_lists_are_those_of_batches():
    scores = cross_val_score(CF, GRAPHS, LABELS, cv=KFold(2))
    np.testing.assert_array_equal(
        scores, cross_val_score(CF, list(GRAPHS), list(LABELS), cv=2)
    )
    masks = cross_val_predict(CF, GRAPHS, LABELS, cv=2)
    assert [len(row) for row in masks] == [len(row) for row in LABELS]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("alpha", [0.3, 0.4]),
        ("ties", ["include", "jitter"]),
        ("guarantee__max_false", [0, 1]),
        ("edges", ["none", "given"]),
    ],
)
def test_a_search_over_the_guarantee_is_warned_of(name, values):
    cf = HardCF("frequency-score", alpha=0.3)
    if name.startswith("guarantee"):
        cf.set_params(guarantee=NoFalseClaim())
    search = GridSearchCV(
        make_pipeline("passthrough", cf), {f"hardcf__{name}": values}, cv=2
    )
    with pytest.warns(GuaranteeWarning, match="score compares only filters"):
        search.fit(GRAPHS, LABELS)
    GridSearchCV(CF, {"scorer": ["frequency-score"]}, cv=2).fit(GRAPHS, LABELS)
