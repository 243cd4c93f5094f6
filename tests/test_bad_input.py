"""Each error names the problem, the value and the bound, before any work."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from skdcf import (
    GraphBatch,
    HardCF,
    ReasoningGraph,
    SingleFeatureCF,
)
from skdcf.exceptions import ParameterWarning
from skdcf.graphs import as_batch
from skdcf.labels import pack_labels

ONE = np.zeros((3, 1))


def like(words):
    """Return a regex of words, in which .* stands for any text."""
    return re.escape(words).replace(r"\.\*", ".*")


@pytest.fixture
def problems():
    rng = np.random.default_rng(0)
    graphs = [
        ReasoningGraph(
            rng.normal(size=(3, 2)), [(0, 1)], feature_names=["a", "b"], id=f"id-{i}"
        )
        for i in range(20)
    ]
    return graphs, [rng.integers(0, 2, 3) for _ in graphs]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ONE, [(0, 1), (1, 2), (2, 0)]), "cycle: 0 -> 1 -> 2 -> 0"),
        ((ONE, [(1, 1)]), "self-loop or a cycle: 1 -> 1"),
        ((ONE, [(0, 3)]), "edge (0, 3) is out of range"),
        (([[0.0], [np.nan]], []), r"claim 1, feature 0.*nan"),
        (
            ([0.0, 1.0], []),
            "features must have shape (n_claims, n_features).*(2,)",
        ),
        ((np.ma.array(ONE, mask=[[1], [0], [0]]), []), r"features.*masked entries"),
        ((ONE, [(0.5, 1)]), "pairs of integers"),
        ((None, []), r"features.*claims.*None"),
    ],
)
def test_bad_graph(arguments, message):
    with pytest.raises(ValueError, match=like(message)):
        ReasoningGraph(*arguments)
    with pytest.raises(ValueError, match=re.escape('problem "x": ')):
        ReasoningGraph(*arguments, id="x")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"claims": ["a"]}, r"claims.*3 entries.*1"),
        ({"feature_names": ["a", "b"]}, r"1 features.*2"),
        ({"feature_names": ["a", "a"]}, "['a'] are repeated"),
    ],
)
def test_bad_graph_fields(fields, message):
    with pytest.raises(ValueError, match=like(message)):
        ReasoningGraph(ONE, [], **fields)
    with pytest.raises(ValueError, match=r"claims|feature.names"):
        GraphBatch.from_arrays(ONE, [0, 3], **fields)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [(0, 1), (2, 3), (3, 4), (4, 2)],
            'problem 1 ("q"): .*cycle: 0 -> 1 -> 2 -> 0',
        ),
        ([(1, 2)], r"edge (1, 2.*problem.*0"),
    ],
)
def test_bad_flat_edges(edges, message):
    with pytest.raises(ValueError, match=like(message)):
        GraphBatch.from_arrays(np.zeros((5, 1)), [0, 2, 5], edges, ids=["p", "q"])


@pytest.mark.parametrize(
    ("features", "offsets", "message"),
    [
        ([[0.0], [np.nan]], [0, 1, 2], r"problem 1, claim 0, feature.*nan"),
        (np.ma.masked_equal([[0], [1]], 1), [0, 1, 2], r"features.*masked entries"),
        ([[0.0]], [0, 2], "n_claims = 2"),
        ([[0.0]], [1, 1], "offsets must start"),
        ([[0.0]], [0, 2, 1], "decrease"),
    ],
)
def test_bad_flat_arrays(features, offsets, message):
    with pytest.raises(ValueError, match=like(message)):
        GraphBatch.from_arrays(features, offsets)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"claims": ["a", 3, "c"]}, r'1 ("q".*0.*3'),
        (
            {"claims": ["a", "b", None]},
            r'problem 1 ("q"), claim.*str.*None',
        ),
        (
            {"problems": ["Why?", 3]},
            r'problem 1 ("q".*question.*str.*3',
        ),
        ({"ids": {"p", "q"}}, r"ids.*list.*set"),
    ],
)
def test_bad_flat_texts(fields, message):
    with pytest.raises(ValueError, match=like(message)):
        GraphBatch.from_arrays(ONE, [0, 1, 3], **{"ids": ["p", "q"]} | fields)


@pytest.mark.parametrize(
    ("X", "found"),
    [
        (["some", "texts"], r"X.*list.*str"),
        ([[1.0], [1.0, 2.0]], r"X.*list"),
        (pl.LazyFrame({"a": [1.0]}), r"X.*LazyFrame"),
        (scipy.sparse.eye(3).tocsr(), "X"),
    ],
)
def test_what_is_no_problem_is_named(X, found):
    with pytest.raises(ValueError, match=like(found)):
        as_batch(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ma.masked_equal(np.eye(2), 1), r"features.*masked entries"),
        (pd.DataFrame({"a": [1, pd.NA]}), r"problem 1, claim 0, feature.*nan"),
        (np.empty((0, 2)), r"X.*empty"),
    ],
)
def test_bad_tables(X, message):
    with pytest.raises(ValueError, match=like(message)):
        as_batch(X)


@pytest.mark.parametrize("bad", ["maybe", pd.NA, -2, 0.5])
@pytest.mark.parametrize("form", ["list", "array", "flat"])
def test_the_wrong_label_is_named(bad, form):
    graphs = [ReasoningGraph([[1.0], [2.0]], []) for _ in range(30)]
    labels = [[1, 0] for _ in graphs]
    labels[20] = [1, bad]
    if form == "array":
        labels = [np.array(row, dtype=object) for row in labels]
    elif form == "flat":
        labels = [value for row in labels for value in row]
    with pytest.raises(ValueError, match=r"problem 20, claim 1.*label"):
        pack_labels(labels, as_batch(graphs))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y.*None"),
        ("110", r"y.*str"),
        (iter([[1], [1, 0]]), "y must .*, got a list_iterator"),
        (
            pd.DataFrame({"label": [1, 1, 0], "sure": [1, 1, 1]}),
            r"y.*DataFrame",
        ),
        ([[1], [0]], r"problem 1.*2 claims"),
        ([[1]], r"y.*2 problems.*1"),
        (np.ones(4), r"y.*3 claims.*4"),
    ],
)
def test_bad_label_sequences(y, message):
    with pytest.raises(ValueError, match=like(message)):
        pack_labels(y, GraphBatch.from_arrays(ONE, [0, 1, 3]))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_groups_are_named(problems, missing):
    graphs, y = problems
    groups = [*range(7), missing, *range(8, 20)]
    with pytest.raises(ValueError, match=r"problem 7.*group"):
        HardCF("a").fit(graphs, y, groups=groups)


def test_graphs_that_disagree():
    with pytest.raises(ValueError, match=r"problem 1.*\(2,\).*\(1,\)"):
        GraphBatch.from_graphs(
            [ReasoningGraph(ONE, []), ReasoningGraph(np.zeros((1, 2)), [])]
        )
    graphs = [ReasoningGraph(ONE, []), ReasoningGraph(None, [], claims=["a"])]
    with pytest.raises(ValueError, match=r"problem 1 .*features"):
        GraphBatch.from_graphs(graphs)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (HardCF("c"), r"feature 'c'.*features.*'a', 'b'"),
        (HardCF(2), r"feature.*2"),
        (HardCF(True), r"scorer.*None.*True"),
        (HardCF(get_scorer("accuracy")), r"scorer.*make_scorer(accuracy_score"),
        (HardCF(StandardScaler()), "'estimator' parameter.*'decision_function'"),
        (SingleFeatureCF(1.5), r"feature.*name.*column number.*1.5"),
        (HardCF(calibration_size=20), "least 1 sample"),
        (
            HardCF(lambda b: np.zeros(3)),
            "shape (60,).*(3,)",
        ),
        (
            HardCF(lambda b: np.full(b.n_claims, np.nan)),
            r'nan.*problem 0 ("id-0"), claim',
        ),
    ],
)
def test_bad_parameters(problems, filter, message):
    with pytest.raises(ValueError, match=like(message)):
        filter.fit(*problems)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_features_that_differ_from_fit(problems):
    graphs, y = problems
    fitted = HardCF("a").fit(graphs, y)
    swapped = [g.replace(feature_names=["b", "a"]) for g in graphs]
    by_number = HardCF(0).fit(graphs, y)
    with pytest.raises(ValueError, match=r"feature.*names"):
        by_number.predict(swapped)
    renamed = [g.replace(feature_names=["a", "c"]) for g in graphs]
    with pytest.raises(ValueError, match=r"'a', 'b'.*'a', 'c'"):
        by_number.predict(renamed)
    with pytest.raises(ValueError, match=r"X.*1.*HardCF.*2"):
        by_number.predict([ReasoningGraph(ONE, [])])
    with pytest.raises(ValueError, match="X has 3 features"):
        by_number.predict(np.zeros((2, 3)))
    lost = [g.replace(feature_names=["c", "b"]) for g in graphs]
    with pytest.raises(ValueError, match=re.escape("feature 'a'")):
        fitted.predict(lost)
    with pytest.raises(ValueError, match=r"unknown.*because"):
        fitted.fit([g.replace(feature_names=None) for g in graphs], y)
    with pytest.raises(ValueError, match="features"):
        HardCF("a").fit([ReasoningGraph(None, [], claims=["t"])], [[1]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2] * 7, r"two classes.*2"),
        (["yes", "maybe"] * 10 + ["no"], "two classes.*'maybe'"),
        ([0, 1], "21.*2"),
        (
            np.ma.array([0, 1, 0] * 7, mask=[0, 0, 1] * 7),
            "label 2 is masked",
        ),
    ],
)
def test_bad_labels_of_a_table(y, message):
    with pytest.raises(ValueError, match=message):
        HardCF(0).fit(np.zeros((21, 2)), y)


@pytest.mark.parametrize("method", ["fit", "threshold", "predict"])
def test_alpha_that_was_meant_the_other_way_round(problems, method):
    """At 0.9 almost everything is kept, and nobody wants that."""
    graphs, y = problems
    match = r"alpha = 0\.9.*90%.*0\.1\?"
    if method == "fit":
        with pytest.warns(ParameterWarning, match=match) as caught:
            HardCF(0, alpha=0.9).fit(graphs, y)
    else:
        fitted = HardCF(0, alpha=0.5).fit(graphs, y)  # in silence
        arguments = () if method == "threshold" else (graphs,)
        with pytest.warns(ParameterWarning, match=match) as caught:
            getattr(fitted, method)(*arguments, alpha=0.9)
    assert [w.filename for w in caught] == [__file__]


def test_a_level_is_checked_before_problems_are_read(problems):
    with pytest.raises(ValueError, match=r"alpha must be .*2"):
        HardCF(0, alpha=np.array(0.1)).fit(*problems).predict([], 2)


def test_groups(problems):
    graphs, y = problems
    with pytest.raises(ValueError, match=r"groups .*shape \(3,\)"):
        HardCF(GaussianNB()).fit(graphs, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"1 of 1 questions.*groups"):
        HardCF(GaussianNB()).fit(graphs, y, groups=np.zeros(20))
