"""A data frame of features brings its column names, and a filter compares them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.evaluation import coverage_score

ROWS = {"s": [0.5, 0.25], "t": [1.0, 2.0]}
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


def test_a_graph_takes_the_names_of_the_columns(frame):
    graph = ReasoningGraph(frame(ROWS), [(0, 1)])
    assert graph.feature_names == ("s", "t")
    np.testing.assert_array_equal(graph.features, [[0.5, 1], [0.25, 2]])
    assert ReasoningGraph.from_parents([[], [0]], frame(ROWS)) == graph
    assert ReasoningGraph.from_dict(graph.to_dict()) == graph


def test_a_batch_takes_the_names_of_the_columns(frame):
    batch = GraphBatch.from_arrays(frame(ROWS), [0, 1, 2])
    assert batch.feature_names == ("s", "t")
    swapped = frame({"t": ROWS["t"], "s": ROWS["s"]})
    assert batch.replace_features(swapped).feature_names == ("t", "s")
    graph = ReasoningGraph([[1, 2], [3, 4]], feature_names=["a", "b"])
    assert graph.replace(features=swapped).feature_names == ("t", "s")
    assert graph.replace(features=[[1, 2], [3, 4]]).feature_names == ("a", "b")


def test_names_that_contradict_the_columns_are_refused(frame):
    same = ReasoningGraph(frame(ROWS), feature_names=["s", "t"])
    assert same.feature_names == ("s", "t")
    for names in (["t", "s"], ["a", "b"]):
        with pytest.raises(ValueError, match=r"feature_names.*'s', 't'"):
            ReasoningGraph(frame(ROWS), feature_names=names)
        with pytest.raises(ValueError, match=r"feature_names.*'s', 't'"):
            GraphBatch.from_arrays(frame(ROWS), [0, 1, 2], feature_names=names)


def test_columns_without_names_stay_without():
    assert ReasoningGraph(pd.DataFrame([[1.0, 2.0]])).feature_names is None
    assert ReasoningGraph(np.ones((1, 2))).feature_names is None
    with pytest.raises(ValueError, match=r"strings.*0"):
        ReasoningGraph(pd.DataFrame({"s": [1.0], 0: [2.0]}))
    with pytest.raises(ValueError, match=r"'s'.*repeated"):
        ReasoningGraph(pd.DataFrame([[1.0, 2.0]], columns=["s", "s"]))


def problems_of(frame, rng, n, order):
    """Problems of four claims in a data frame, where s is informative and t is not."""
    graphs, labels = [], []
    for _ in range(n):
        y = rng.random(4) < 0.7
        columns = {"s": y + rng.normal(size=4), "t": rng.normal(size=4)}
        graphs.append(
            ReasoningGraph(frame({name: columns[name] for name in order}), [])
        )
        labels.append(y.astype(int))
    return graphs, labels


def test_columns_in_another_order_are_refused_by_a_filter(frame):
    rng = np.random.default_rng(0)
    graphs, y = problems_of(frame, rng, 200, ["s", "t"])
    cf = HardCF("s", alpha=0.1).fit(graphs, y)
    by_position = HardCF(0, alpha=0.1).fit(graphs, y)
    assert by_position.feature_names_in_.tolist() == ["s", "t"]
    swapped, y_new = problems_of(frame, rng, 600, ["t", "s"])
    with pytest.raises(ValueError, match=r"order.*'s', 't'"):
        by_position.predict(swapped)
    # A scorer that reads one column by its name finds it wherever it stands.
    assert coverage_score(y_new, cf.predict(swapped)) > 0.87
