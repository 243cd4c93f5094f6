"""Columns that a filter computes by itself: what learns them sees, and what a scorer sees."""

import sys
from types import ModuleType

import numpy as np
import pytest
from one_claim import one_claim_each
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import GraphBatch, HardCF
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.exceptions import GuaranteeWarning
from skdcf.features import (
    AgreementFeatures,
    GraphFeatures,
    TextFeatures,
    reasoning_features,
)
from skdcf.uses import check, seen


@pytest.fixture(scope="module")
def numbers():
    return make_reasoning_graphs(300, random_state=0, return_X_y=True)


@pytest.fixture(scope="module")
def words():
    return make_word_problems(250, random_state=0, return_X_y=True)


class Watched(TransformerMixin, BaseEstimator):
    """Writes down what it is fitted to."""

    calls = []

    def fit(self, X, y):
        self.calls.append((X.copy(), np.asarray(y)))
        return self

    def transform(self, X):
        return X[:, :2]


def test_what_the_transformer_returns_is_what_the_scorer_sees(numbers):
    X, y = numbers
    cf = HardCF(features=PCA(3), random_state=0).fit(X[:200], y[:200])
    table = cf.features_.transform(X[200:].features)
    np.testing.assert_array_equal(cf.transform_features(X[200:]).features, table)
    assert list(cf.get_feature_names_out()) == ["pca0", "pca1", "pca2"]
    assert cf.n_features_in_ == X.n_features
    assert list(cf.feature_names_in_) == list(X.feature_names)
    found = cf.scorer_.confidence(cf.transform_features(X[200:]))
    np.testing.assert_array_equal(cf.confidence(X[200:]), found)


def test_transformers_of_graphs_keep_the_own_columns_in_front(words):
    X, y = words
    X = X.replace_features(np.arange(X.n_claims)[:, None] * 0.01, ["own"])
    cf = HardCF(features=GraphFeatures(["nx_out_degree"]), random_state=0)
    cf.fit(X[:200], y[:200])
    assert list(cf.get_feature_names_out()) == ["own", "nx_out_degree"]
    alone = HardCF("nx_out_degree", features=GraphFeatures(["nx_out_degree"]))
    assert alone.fit(X, y).n_calibration_ == 249  # nothing learns: all of rank 25


def test_pipelines_go_step_by_step(words):
    X, y = words
    steps = make_pipeline(reasoning_features(), StandardScaler(), PCA(4))
    cf = HardCF(features=steps, random_state=0).fit(X[:200], y[:200])
    seen = cf.features_[0].transform(X[200:])
    table = cf.features_[2].transform(cf.features_[1].transform(seen.features))
    np.testing.assert_allclose(
        cf.transform_features(X[200:]).features, table, rtol=1e-9
    )


def test_columns_that_learn_see_judged_claims_of_training_problems_only(numbers):
    X, y = numbers
    y = [np.where(np.arange(len(row)) == 0, -1, row) for row in y]
    Watched.calls.clear()
    cf = HardCF(0, features=Watched(), random_state=0).fit(X, y)
    ((table, labels),) = Watched.calls
    assert set(labels.tolist()) == {0, 1}
    judged = X.features[np.concatenate(y) >= 0]
    rows = {row.tobytes() for row in table}
    assert len(rows) < len(judged) and rows <= {row.tobytes() for row in judged}
    trained, calibrated = seen(cf, X)
    assert not (trained & calibrated).any()
    assert calibrated.sum() == cf.n_calibration_
    inside = np.concatenate(
        [np.full(len(row), t) for row, t in zip(y, trained, strict=True)]
    )
    assert rows == {r.tobytes() for r in X.features[inside & (np.concatenate(y) >= 0)]}


class Learning(TextFeatures):
    """Columns that say that they are fitted."""

    requires_fit = True


def test_a_step_in_front_of_graphs_that_learns_is_refused(words):
    with pytest.raises(ValueError, match="features="):
        make_pipeline(Learning(), HardCF()).fit(*words)


class Counting(GraphFeatures):
    """Counts the rows that it computes."""

    __module__ = "skdcf.features.counting"  # as one of the package's own
    rows = 0

    def own_columns(self, batch):
        type(self).rows += batch.n_claims
        return super().own_columns(batch)


def test_columns_that_learn_nothing_are_computed_once(numbers):
    X, y = numbers
    Counting.rows = 0
    filters = [HardCF(s, features=Counting(), random_state=0) for s in (0, None)]
    batch = check(filters[0], X)
    for rows in np.array_split(np.arange(300), 3):
        for cf in filters:
            cf.fit(batch[rows], [y[i] for i in rows]).predict(batch)
    assert Counting.rows == X.n_claims


@pytest.mark.parametrize("kind", ["function", "instance"])
def test_columns_do_not_outlive_what_made_them(words, kind, monkeypatch):
    """A cell of a notebook that runs again makes another thing of the same name."""
    X, y = words
    notebook = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    conclusions = ("'all agree'", "text[-9:]")
    cells = {
        "function": "def answer(text):\n    return {}",
        "instance": "class Reader:\n    def __call__(self, text):\n        return {}\n"
        "answer = Reader()",
    }
    for conclusion in conclusions:
        exec(cells[kind].format(conclusion), vars(notebook))
        columns = AgreementFeatures(answer=notebook.answer)
        cf = HardCF("answer_agreement", features=columns).fit(X, y)
        agreement = cf.transform_features(X).features[:, 0]
        assert (agreement == 1).all() == (conclusion == conclusions[0])
        X = check(cf, X)


def test_rule_of_edges_is_applied_at_every_door(words):
    from skdcf.edges import chain_edges

    X, y = words
    bare = GraphBatch.from_arrays(
        X.features,
        X.offsets,
        None,
        claims=X.claims,
        problems=X.problems,
        alternatives=X.alternatives,
    )
    columns = GraphFeatures()
    ruled = HardCF(features=columns, edges=chain_edges, random_state=0)
    ruled.fit(bare[:200], y[:200], groups=False)
    assert (
        ruled.transform_features(bare[200:]).depth
        == ruled.transform_features(X[200:]).depth
    ).all()
    for mask in ruled.predict(bare[200:]):
        assert (np.diff(mask.astype(int)) <= 0).all()  # a chain keeps a beginning


def test_columns_are_found_by_name_where_nothing_goes_by_their_place():
    rng = np.random.default_rng(0)
    table = rng.random((40, 2))
    y = (rng.random((40, 1)) < 0.6).astype(int).tolist()
    X = one_claim_each(table, feature_names=["a", "b"])
    turned = one_claim_each(table[:, ::-1], feature_names=["b", "a"])
    cf = HardCF("a", alpha=0.2).fit(X, y)
    for mask, other in zip(cf.predict(X), cf.predict(turned), strict=True):
        np.testing.assert_array_equal(mask, other)
    by_place = HardCF("a", alpha=0.2, ties="jitter", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"feature.*names"):
        by_place.predict(turned)


@pytest.mark.parametrize("place", ["X but not in fit", "fit but not in X"])
def test_columns_that_are_named_at_one_entry_point_alone_are_doubted(place):
    table, y = np.random.default_rng(0).random((40, 2)), [[1], [0]] * 20
    named = one_claim_each(table, feature_names=["a", "b"])
    plain = one_claim_each(table)
    first, second = (plain, named) if place.startswith("X") else (named, plain)
    cf = HardCF(0, alpha=0.2).fit(first, y)
    with pytest.warns(GuaranteeWarning, match=f"features.*names.*{place}"):
        cf.predict(second)
