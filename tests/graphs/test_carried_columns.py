"""A batch carries columns that were computed for its problems, and slices their rows."""

import numpy as np

from skdcf import GraphBatch, HardCF
from skdcf.evaluation import compare_filters
from skdcf.features import GraphFeatures

BATCH = GraphBatch.from_arrays(
    [[1.0], [2.0], [3.0], [4.0]], [0, 1, 3, 4], [(1, 2)], feature_names=["own"]
)


def test_all_tables_are_carried_and_sliced_beside_the_features():
    first = np.arange(8.0).reshape(4, 2)
    second = -np.arange(4.0)[:, None]
    one = BATCH.carry_table(b"first", first, ("a", "b"))
    both = one.carry_table(b"second", second, None)
    assert BATCH.tables is None and list(one.tables) == [b"first"]
    np.testing.assert_array_equal(both.features, BATCH.features)
    assert both.feature_names == ("own",) and list(both) == list(BATCH)
    for rows, claims in (([1], [1, 2]), ([2, 0], [3, 0]), ([0, 1, 2], range(4))):
        part = both[np.array(rows)]
        assert list(part.tables) == [b"first", b"second"]
        for key, table, names in (
            (b"first", first, ("a", "b")),
            (b"second", second, None),
        ):
            np.testing.assert_array_equal(part.tables[key][0], table[list(claims)])
            assert part.tables[key][1] == names


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
