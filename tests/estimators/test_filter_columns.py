"""Columns that a filter computes: what learns them sees, and what a scorer sees."""

import numpy as np
import pytest
from one_claim import numbered, one_claim_each
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs, make_word_problems
from skdcf.edges import chain_edges
from skdcf.exceptions import GuaranteeWarning, LabelWarning
from skdcf.features import (
    AgreementFeatures,
    GraphFeatures,
    TextFeatures,
    reasoning_features,
)
from skdcf.scorers import FeatureScorer, Scorer
from skdcf.uses import check, seen

NUMBERS = make_reasoning_graphs(300, random_state=0, return_X_y=True)
WORDS = make_word_problems(250, random_state=0, return_X_y=True)


def test_the_scorer_sees_what_the_transformer_returns():
    X, y = NUMBERS
    cf = HardCF(features=PCA(3), random_state=0).fit(X[:200], y[:200])
    table = cf.features_.transform(X[200:].features)
    np.testing.assert_array_equal(cf.transform_features(X[200:]).features, table)
    assert cf.transform_features(X).feature_names == ("pca0", "pca1", "pca2")
    assert list(cf.feature_names_in_) == list(X.feature_names)
    assert cf.n_features_in_ == X.n_features
    found = cf.scorer_.confidence(cf.transform_features(X[200:]))
    np.testing.assert_array_equal(cf.confidence(X[200:]), found)


def test_pipelines_go_step_by_step_and_keep_the_own_columns_in_front():
    X, y = WORDS
    X = X.replace_features(np.arange(X.n_claims)[:, None] * 0.01, ["own"])
    cf = HardCF(features=GraphFeatures(["nx_out_degree"]), random_state=0)
    cf.fit(X[:200], y[:200])
    assert cf.transform_features(X).feature_names == ("own", "nx_out_degree")
    steps = make_pipeline(reasoning_features(), StandardScaler(), PCA(4))
    cf = HardCF(features=steps, random_state=0).fit(X[:200], y[:200])
    graphs, scale, components = cf.features_
    table = components.transform(scale.transform(graphs.transform(X[200:]).features))
    found = cf.transform_features(X[200:]).features
    np.testing.assert_allclose(found, table, rtol=1e-9)


class Watched(TransformerMixin, BaseEstimator):
    """Writes down what it is fitted to."""

    calls = []

    def fit(self, X, y):
        self.calls.append((X.copy(), np.asarray(y)))
        return self

    def transform(self, X):
        return X[:, :2]


def test_columns_that_learn_see_judged_claims_of_training_problems_only():
    X, y = NUMBERS
    y = [np.where(np.arange(len(row)) == 0, -1, row) for row in y]
    Watched.calls.clear()
    cf = HardCF(0, features=Watched(), random_state=0).fit(X, y)
    ((table, labels),) = Watched.calls
    assert set(labels.tolist()) == {0, 1}
    trained, calibrated = seen(cf, X)
    assert not (trained & calibrated).any()
    assert calibrated.sum() == cf.n_calibration_
    is_used = trained[X.problem_of] & (np.concatenate(y) >= 0)
    # The order of the training problems is not that of the rows.
    np.testing.assert_array_equal(np.sort(table, 0), np.sort(X.features[is_used], 0))


@pytest.mark.parametrize("declared", [False, True])
def test_columns_that_declare_to_learn_nothing_see_no_label(declared):
    class Peeps(GraphFeatures):
        requires_fit = declared
        labels = []

        def fit(self, X, y=None):
            self.labels.append(np.array(y))
            return super().fit(X, y)

    cf = HardCF(FeatureScorer("frequency-score"), features=Peeps(), alpha=0.2)
    cf.fit(*NUMBERS)
    [labels] = Peeps.labels
    assert (labels >= 0).all() if declared else (labels == -1).all()


class Peeping(Scorer):
    """Notes the labels that it is given."""

    def __init__(self, requires_fit=False):
        self.requires_fit = requires_fit

    def fit(self, batch, labels, task=None):
        self.labels_ = np.array(labels)
        return self

    def confidence(self, batch):
        return batch.features[:, 0]


@pytest.mark.parametrize("calibration_size", [None, 0.5])
def test_scorers_that_declare_to_learn_nothing_see_no_label(calibration_size):
    X, y = numbered(60)
    cf = HardCF(Peeping(), alpha=0.2, calibration_size=calibration_size).fit(X, y)
    assert (cf.scorer_.labels_ == -1).all() and len(cf.scorer_.labels_) == 60


def test_empty_answers_do_not_count_as_judged():
    """If nothing was judged, all problems train, not only the empty ones."""
    empty = ReasoningGraph(np.empty((0, 1)), ())
    graphs = [*[ReasoningGraph([[i / 40]], ()) for i in range(40)], *[empty] * 10]
    y = [*[[-1]] * 40, *[[]] * 10]
    with pytest.warns(LabelWarning, match=r"no claim.*judged"):
        cf = HardCF(Peeping(True), alpha=0.2, random_state=0).fit(graphs, y)
    assert len(cf.scorer_.labels_) > 10


class Learning(TextFeatures):
    requires_fit = True


def test_a_step_before_the_filter_that_learns_from_graphs_is_refused():
    with pytest.raises(ValueError, match="features="):
        make_pipeline(Learning(), HardCF()).fit(*WORDS)


class Counting(GraphFeatures):
    """Counts the rows that it computes."""

    __module__ = "skdcf.features.counting"  # as one of the package's own
    rows = 0

    def own_columns(self, batch):
        type(self).rows += batch.n_claims
        return super().own_columns(batch)


def test_columns_that_learn_nothing_are_computed_once():
    X, y = NUMBERS
    filters = [HardCF(s, features=Counting(), random_state=0) for s in (0, None)]
    batch = check(filters[0], X)
    for rows in np.array_split(np.arange(300), 3):
        for cf in filters:
            cf.fit(batch[rows], [y[i] for i in rows]).predict(batch)
    assert Counting.rows == X.n_claims


def test_a_rule_of_edges_is_applied_in_every_method():
    X, y = WORDS
    names = ("claims", "problems", "alternatives")
    texts = {name: getattr(X, name) for name in names}
    bare = GraphBatch.from_arrays(X.features, X.offsets, None, **texts)
    ruled = HardCF(features=GraphFeatures(), edges=chain_edges, random_state=0)
    ruled.fit(bare[:200], y[:200], groups=False)
    depths = [ruled.transform_features(batch[200:]).depth for batch in (bare, X)]
    np.testing.assert_array_equal(*depths)
    for mask in ruled.predict(bare[200:]):
        assert (np.diff(mask.astype(int)) <= 0).all()  # a chain keeps a beginning


def test_columns_are_found_by_name_if_nothing_depends_on_their_order():
    X, y = numbered(40)
    named = X.replace_features(X.features, ["a", "b"])
    turned = X.replace_features(X.features[:, ::-1], ["b", "a"])
    cf = HardCF("a", alpha=0.2).fit(named, y)
    np.testing.assert_array_equal(
        *map(np.concatenate, map(cf.predict, (named, turned)))
    )
    with pytest.raises(ValueError, match=r"'a'.*\['b'\]"):
        cf.predict(one_claim_each([1.0], feature_names=["b"]))
    by_place = HardCF("a", alpha=0.2, ties="jitter", random_state=0).fit(named, y)
    with pytest.raises(ValueError, match=r"\['a', 'b'\].*\['b', 'a'\]"):
        by_place.predict(turned)
    plain = HardCF(0, alpha=0.2).fit(X, y)
    with pytest.warns(GuaranteeWarning, match="X but not in fit"):
        plain.predict(named)
    with pytest.warns(GuaranteeWarning, match="fit but not in X"):
        HardCF(0, alpha=0.2).fit(named, y).predict(X)


def test_answers_without_claims_need_no_features():
    table, y = np.arange(30.0)[:, None], [1, 0] * 15
    cf = HardCF(0, features=StandardScaler()).fit(table, y)
    assert cf.predict([ReasoningGraph(claims=[])])[0].shape == (0,)
    # Nor are they scored alone when rounding is measured.
    cf.calibrate(GraphBatch.from_arrays(table + 0.5, [0, *range(31)], ()), y)


def test_a_filter_without_any_columns_is_refused():
    graphs = [ReasoningGraph(None, (), claims=["1 + 1 = 2"]) for _ in range(40)]
    cf = HardCF(features=AgreementFeatures(optional=True))
    with pytest.raises(ValueError, match="features"):
        cf.fit(graphs, [[1]] * 40)


class OfTexts(Scorer):
    """Reads no column, so none is computed."""

    def columns_read(self):
        return ()

    def confidence(self, batch):
        return np.array([float(len(text)) for text in batch.claims])


def test_columns_that_nothing_reads_are_not_computed():
    graphs = [ReasoningGraph(claims=["a" * (i % 7)], edges=()) for i in range(30)]
    cf = HardCF(OfTexts(), alpha=0.2).fit(graphs, [[i % 2] for i in range(30)], False)
    assert cf.features_ is None


class FirstColumn(FeatureScorer):
    """The parent reads its column by name."""

    def confidence(self, batch):
        return batch.features[:, 0]


def test_a_subclass_does_not_inherit_which_columns_are_read():
    table = np.random.default_rng(0).normal(size=(40, 2))
    X = GraphBatch.from_arrays(table, range(41), (), feature_names=["a", "b"])
    cf = HardCF(FirstColumn("a"), alpha=0.2).fit(X, [1, 0] * 20)
    with pytest.raises(ValueError, match=r"same order.*'a', 'b'"):
        cf.predict(X.replace_features(table[:, ::-1], ["b", "a"]))
