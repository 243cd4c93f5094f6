"""Transformers of graphs: metrics, unions, given columns, domains, lifting."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    StandardScaler,
)

from skdcf import GraphBatch, ReasoningGraph
from skdcf.datasets import make_reasoning_graphs
from skdcf.features import (
    AgreementFeatures,
    DomainIndicators,
    GraphFeatures,
    GraphUnion,
    TextFeatures,
    paper_features,
    reasoning_features,
)


def test_case_study_of_the_paper():
    """Figure and table of the case study: claim 8 of 12."""
    edges = [(0, 1), (0, 2), (1, 4), (2, 4), (3, 4), (4, 6), (5, 6), (6, 8), (7, 8)]
    edges += [(8, 9), (9, 10), (10, 11)]
    graph = ReasoningGraph(np.empty((12, 0)), edges)
    names = ["nx_reachability", "nx_in_degree", "nx_out_degree", "nx_betweenness"]
    values = GraphFeatures(names).fit_transform([graph]).features[8]
    np.testing.assert_array_equal(values.round(2), [3.0, 2.0, 1.0, 0.22])


def test_unknown_metric_is_named():
    batch = GraphBatch.from_arrays([[1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"nx_in_degree.*nx_degree"):
        GraphFeatures(["nx_degree"]).fit(batch)


@pytest.fixture
def graphs():
    texts = ["3 + 4 = 7", "7 * 2 = 14", "so 15"]
    first = ReasoningGraph(
        [[5.0, 1.0], [3.0, 0.0], [1.0, 1.0]],
        [(0, 1), (1, 2)],
        claims=texts,
        problem="What is (3 + 4) * 2?",
        feature_names=["frequency-score", "problem_relevance"],
        alternatives=["3 + 4 = 7, 7 * 2 = 14"],
        id="a",
    )
    return [first, first.replace(id="b", edges=[(0, 2)])]


def test_columns_are_appended_and_the_rest_passes_through(graphs):
    batch = GraphFeatures(["nx_in_degree"]).fit_transform(graphs)
    names = ("frequency-score", "problem_relevance", "nx_in_degree")
    assert batch.feature_names == names
    for graph, before in zip(batch, graphs, strict=True):
        np.testing.assert_array_equal(graph.features[:, :2], before.features)
        assert graph.claims == before.claims and graph.id == before.id
        np.testing.assert_array_equal(graph.edges, before.edges)


@pytest.mark.parametrize(
    "transformer",
    [
        GraphFeatures(),
        TextFeatures(),
        AgreementFeatures(),
        reasoning_features(),
    ],
    ids=lambda t: type(t).__name__,
)
def test_names_idempotent_pickle_clone(transformer, graphs):
    fitted = clone(transformer).fit(graphs)
    batch = fitted.transform(graphs)
    assert tuple(fitted.get_feature_names_out()) == batch.feature_names
    again = clone(transformer).fit_transform(batch)
    assert set(again.feature_names) == set(batch.feature_names)
    order = [again.feature_names.index(name) for name in batch.feature_names]
    np.testing.assert_array_equal(again.features[:, order], batch.features)
    loaded = pickle.loads(pickle.dumps(fitted)).transform(graphs)
    np.testing.assert_array_equal(loaded.features, batch.features)


def test_other_columns_than_in_fit_are_refused(graphs):
    fitted = GraphFeatures().fit(graphs)
    with pytest.raises(ValueError, match=r"columns.*fit.*frequency-score"):
        fitted.transform(
            [graph.replace(features=None, feature_names=None) for graph in graphs]
        )


def test_tables_of_pandas_are_not_asked_for(graphs):
    """What users set for all of scikit-learn leaves graphs as they are."""
    steps = TextFeatures(), reasoning_features()
    expected = make_pipeline(*steps).fit_transform(graphs)
    with config_context(transform_output="pandas"):
        found = make_pipeline(*map(clone, steps)).fit_transform(graphs)
    assert isinstance(found, GraphBatch)
    np.testing.assert_array_equal(found.features, expected.features)


def test_missing_columns_are_named_with_those_there(graphs):
    with pytest.raises(ValueError, match=r"'coherent_to_ancestors'.*got"):
        paper_features("felm-7").fit(graphs)
    with pytest.raises(ValueError, match=r"feature.*columns"):
        paper_features().fit([ReasoningGraph(None, [], claims=["a"])])


@pytest.mark.parametrize(
    "name, kind, width",
    [("math", "math", 31), ("felm-7", "felm", 7), ("felm-20", "felm", 20)],
)
def test_paper_features(name, kind, width):
    data = make_reasoning_graphs(20, kind, random_state=0)
    batch = paper_features(name).fit_transform(data.graphs)
    assert batch.n_features == width
    before = {n: data.graphs.features[:, j] for j, n in enumerate(data.feature_names)}
    for column, feature in enumerate(batch.feature_names):
        np.testing.assert_allclose(
            batch.features[:, column], before[feature], atol=1e-9
        )


@pytest.mark.parametrize(
    "question, topic",
    [
        ("Solve the system of equations x + y = 3, x - y = 1.", "linear_equations"),
        ("Find the discriminant of x^2 + 3x + 1.", "quadratic_equations"),
        ("Factor the polynomial.", "polynomial_algebra"),
        ("Simplify $\\frac{x + 1}{x - 1}$.", "rational_expressions"),
        ("What is $\\log_2 8$?", "exponents_logarithms"),
        ("Solve $6 - x > -9$.", "inequalities"),
        ("Find the tenth term of the arithmetic sequence.", "sequences_series"),
        ("Let $f(x) = 3x$. What is the inverse of f?", "functions"),
        ("How many miles did she walk?", "word_problems"),
        ("What is the midpoint of the segment?", "coordinate_geometry"),
        ("What is the multiplicative inverse modulo 7?", "abstract_algebra"),
        ("Find the imaginary part.", "complex_numbers"),
    ],
)
def test_lexicon(question, topic):
    for text in (question, question.upper(), question.replace(" ", "\n\n")):
        graph = ReasoningGraph(None, [], claims=["a", "b"], problem=text)
        flags = DomainIndicators(domains=[topic]).fit_transform([graph]).features
        np.testing.assert_array_equal(flags, [[1.0], [1.0]])
    plain = graph.replace(problem="Was it raining?")
    assert not DomainIndicators().fit_transform([plain]).features.any()


def test_domains_need_something_to_go_by(graphs):
    with pytest.raises(ValueError, match=r"domain.*'history'"):
        DomainIndicators(["history"]).fit(graphs)
    with pytest.raises(ValueError, match=r"problem 0.*None"):
        DomainIndicators().fit([graphs[0].replace(problem=None)])


def test_a_bare_transformer_of_scikit_learn_says_what_to_do():

    graphs = GraphBatch.from_arrays([[1.0], [2.0]], [0, 1, 2])
    with pytest.raises(TypeError, match=r"features=StandardScaler\(\)"):
        StandardScaler().fit(graphs)
    assert np.asarray(graphs, dtype=object).tolist() == list(graphs)


def test_union(graphs):
    members = [GraphFeatures(["nx_in_degree"]), TextFeatures()]
    batch = GraphUnion(members).fit_transform(graphs)
    assert batch.feature_names[:3] == (*graphs[0].feature_names, "nx_in_degree")
    own = GraphUnion(members, keep_input=False).fit_transform(graphs)
    assert own.feature_names == batch.feature_names[2:]
    np.testing.assert_array_equal(own.features, batch.features[:, 2:])


class Learning(GraphFeatures):
    def fit(self, X, y=None):
        return super().fit(X)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([GraphFeatures(), GraphFeatures()], "nx_in_degree"),
        ([TextFeatures(), ("a", TextFeatures())], r"transformers .*'a'"),
        ("ab", "transformers.*'ab'"),
        ([Learning()], "calibration problems.*features="),
    ],
)
def test_what_a_union_cannot_contain(graphs, members, said):
    with pytest.raises(ValueError, match=said):
        GraphUnion(members).fit_transform(graphs)
