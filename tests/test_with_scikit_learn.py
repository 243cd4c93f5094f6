"""What a person who knows scikit-learn tries: it works, or the error says what does."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

from skdcf import CoherentConformalFilter, HardCF, IndependentFactuality
from skdcf.datasets import make_reasoning_graphs
from skdcf.exceptions import GuaranteeWarning
from skdcf.features import GraphFeatures, TextFeatures
from skdcf.guarantees import NoFalseClaim

GRAPHS, LABELS = make_reasoning_graphs(60, random_state=0, return_X_y=True)
CF = HardCF("frequency-score", alpha=0.3).fit(GRAPHS, LABELS)
MASKS = CF.predict(GRAPHS)


def test_a_feature_union_of_graph_transformers_names_the_pipeline():
    union = FeatureUnion([("a", GraphFeatures()), ("b", TextFeatures())])
    with pytest.raises(ValueError, match=r"FeatureUnion.*make_pipeline\(Graph"):
        HardCF(features=union).fit(GRAPHS, LABELS)


def test_a_transformer_of_tables_says_that_problems_are_none():
    with pytest.raises(TypeError, match="a GraphBatch cannot") as caught:
        make_pipeline(StandardScaler(), CF).fit(GRAPHS, LABELS)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "filter", [HardCF(0), IndependentFactuality(), CoherentConformalFilter()]
)
def test_missing_labels_are_named_with_the_class(filter):
    for method in ("fit", "calibrate"):
        with pytest.raises(ValueError, match=f"{type(filter).__name__}.*y"):
            getattr(clone(filter), method)(GRAPHS)


def test_a_single_graph_is_told_from_a_list():
    with pytest.raises(ValueError, match=r"single ReasoningGraph.*\[graph\]"):
        HardCF(0).fit(GRAPHS[0], LABELS[:1])


def equal(one, other):
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("values", [LABELS, MASKS])
def test_labels_and_masks_are_sequences(values):
    plain = list(values)
    assert equal(values[5:9], plain[5:9])
    assert equal(values[[3, 1]], [plain[3], plain[1]])
    assert equal(values[np.arange(60) < 7], plain[:7])
    assert equal(np.array(values, dtype=object), plain)
    assert equal(pd.Series(values), plain)
    assert equal(resample(values, random_state=0), resample(plain, random_state=0))
    assert joblib.hash(values) == joblib.hash(pickle.loads(pickle.dumps(values)))
    halves = train_test_split(values, random_state=0)
    assert all(map(equal, halves, train_test_split(plain, random_state=0)))


def test_labels_of_one_length_are_the_table_that_a_list_is():
    rows = LABELS[[0, 1]]
    rows[:] = [np.array([1, 0]), np.array([0, 1])]
    np.testing.assert_array_equal(np.asarray(rows), [[1, 0], [0, 1]])
    assert np.array(rows, dtype=object).shape == (2, 2)


def test_scores_of_lists_are_those_of_batches():
    scores = cross_val_score(CF, GRAPHS, LABELS, cv=KFold(2))
    of_lists = cross_val_score(CF, list(GRAPHS), list(LABELS), cv=2)
    np.testing.assert_array_equal(scores, of_lists)
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
    guarantee = NoFalseClaim() if name.startswith("guarantee") else None
    cf = clone(CF).set_params(guarantee=guarantee)
    pipeline = make_pipeline("passthrough", cf)
    search = GridSearchCV(pipeline, {f"hardcf__{name}": values}, cv=2)
    with pytest.warns(GuaranteeWarning, match="score compares only filters"):
        search.fit(GRAPHS, LABELS)
    GridSearchCV(CF, {"alpha": [np.float64(CF.alpha)]}, cv=2).fit(GRAPHS, LABELS)
