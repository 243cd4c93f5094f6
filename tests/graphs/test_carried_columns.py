"""A batch carries columns that were computed for its problems, and slices their rows."""

import numpy as np
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.evaluation import compare_filters
from skdcf.features import AgreementFeatures, GraphFeatures


def test_a_comparison_computes_columns_once(monkeypatch):
    counted = []
    transform = GraphFeatures.transform

    def counting(self, X):
        counted.append(len(X))
        return transform(self, X)

    monkeypatch.setattr(GraphFeatures, "transform", counting)
    rng = np.random.default_rng(0)
    batch = GraphBatch.from_arrays(rng.random((120, 1)), np.arange(0, 121, 3), ())
    y = np.split((rng.random(120) < 0.7).astype(int), 40)
    cf = HardCF(0, features=GraphFeatures())
    compare_filters({"cf": cf}, batch, y, [0.4], cv=3, random_state=0)
    assert counted == [40]


def test_a_filter_without_any_columns_is_refused():
    graphs = [ReasoningGraph(None, (), claims=["1 + 1 = 2"]) for _ in range(40)]
    cf = HardCF(features=AgreementFeatures(optional=True))
    with pytest.raises(ValueError, match="features"):
        cf.fit(graphs, [[1]] * 40)
