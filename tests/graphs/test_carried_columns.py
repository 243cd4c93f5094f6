"""A batch carries columns that were computed for its problems, and slices their rows."""

import numpy as np

from skdcf import GraphBatch, HardCF
from skdcf.evaluation import compare_filters
from skdcf.features import GraphFeatures


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
