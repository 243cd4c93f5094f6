"""A data frame of features brings its column names, and a filter compares them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdcf import ReasoningGraph

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


def test_columns_without_names_stay_without():
    assert ReasoningGraph(pd.DataFrame([[1.0, 2.0]])).feature_names is None
    assert ReasoningGraph(np.ones((1, 2))).feature_names is None
    with pytest.raises(ValueError, match=r"strings.*0"):
        ReasoningGraph(pd.DataFrame({"s": [1.0], 0: [2.0]}))
    with pytest.raises(ValueError, match=r"'s'.*repeated"):
        ReasoningGraph(pd.DataFrame([[1.0, 2.0]], columns=["s", "s"]))
