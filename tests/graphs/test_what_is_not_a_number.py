"""No other object is converted to a number."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from skdcf import GraphBatch, HardCF, ReasoningGraph
from skdcf.features import GraphFeatures
from skdcf.graphs import as_batch
from skdcf.labels import pack_labels

RNG = np.random.default_rng(0)
TRUTH = [RNG.random(3) < 0.7 for _ in range(60)]


GRAPHS = [
    ReasoningGraph((truth + RNG.normal(size=3))[:, None], [(0, 1), (1, 2)])
    for truth in TRUTH
]


class Number:
    def __float__(self):
        return 1.0


@pytest.mark.parametrize(
    "row",
    [[Number()], ["1.5"], [b"1.5"], {0: 1.5}, {1.5}, Number(), [nx.DiGraph([(0, 1)])]],
)
def test_other_objects_are_refused(row):
    named = rf"{type(row).__name__}|Number|1\.5|DiGraph|type|dim 3|shape|sequence"
    for call in (
        lambda X: HardCF(0).fit(X, [1, 0] * 20),
        as_batch,
        ReasoningGraph,
        lambda X: GraphBatch.from_arrays(X, np.arange(41)),
    ):
        with pytest.raises((ValueError, TypeError), match=named):
            call([row] * 40)
    if isinstance(row, list):
        table = np.empty((40, 1), dtype=object)
        table[:, 0] = row * 40
        for X in (table, pd.DataFrame(table)):
            with pytest.raises((ValueError, TypeError), match=named):
                HardCF(0).fit(X, [1, 0] * 20)


@pytest.mark.parametrize(
    "lazy", [iter, lambda rows: (row for row in rows), lambda r: map(id, r)]
)
def test_what_can_be_read_once_names_list(lazy):
    graphs = GRAPHS
    X = RNG.normal(size=(60, 1))
    y = (X[:, 0] > 0).tolist()
    cf = HardCF(0, alpha=0.3)
    for call, argument in (
        (lambda: cf.fit(lazy(graphs), TRUTH), "X"),
        (lambda: cf.fit(graphs, lazy(TRUTH)), "y"),
        (lambda: cf.fit(lazy(X), y), "X"),
        (lambda: as_batch(lazy(graphs)), "X"),
        (lambda: pack_labels(lazy(TRUTH), graphs), "y"),
        (lambda: GraphFeatures().fit(lazy(graphs)), "X"),
    ):
        with pytest.raises(ValueError, match=rf"{argument} .*list\({argument}\)"):
            call()
