"""Metrics of many graphs at once against networkx, graph by graph."""

from itertools import combinations

import numpy as np
import pytest
from random_graphs import chain
from reference_networkx import by_networkx

from skdcf import GraphBatch, ReasoningGraph
from skdcf.features import GraphFeatures
from skdcf.ops.graph_metrics import METRICS, compute_metrics


def graph_of(n, edges):
    return ReasoningGraph(np.zeros((n, 0)), edges)


def diamonds(n_rungs):
    """The number of shortest paths doubles with every rung."""
    edges = []
    for k in range(0, 3 * n_rungs, 3):
        edges += [(k, k + 1), (k, k + 2), (k + 1, k + 3), (k + 2, k + 3)]
    return graph_of(3 * n_rungs + 1, edges)


def random_graph(rng):
    """Of any density; a parent may come after its child."""
    n = int(rng.integers(25))
    name, share = rng.permutation(n), rng.random()
    edges = [(name[u], name[v]) for u, v in combinations(range(n), 2)]
    return graph_of(n, [edge for edge in edges if rng.random() < share])


def graphs_on(n):
    """All graphs of n claims whose parents come first."""
    edges = list(combinations(range(n), 2))
    for k in range(2 ** len(edges)):
        yield graph_of(n, [edge for i, edge in enumerate(edges) if k >> i & 1])


def odd_graphs():
    """Some 170 graphs, among them all of up to four claims."""
    rng = np.random.default_rng(0)
    star = [(0, v) for v in range(1, 20)]
    odd = [graph for n in range(5) for graph in graphs_on(n)]
    odd += [graph_of(20, star), graph_of(20, [(19 - v, 19 - u) for u, v in star])]
    odd += [
        graph_of(9, []),
        graph_of(190, list(combinations(range(190), 2))),
        diamonds(12),
        graph_of(150, chain(150)),
    ]
    odd += [graph_of(40, [((v - 1) // 2, v) for v in range(1, 40)])]
    return odd + [random_graph(rng) for _ in range(80)]


def test_odd_graphs_side_by_side():
    graphs = odd_graphs()
    found = compute_metrics(GraphBatch.from_graphs(graphs), METRICS)
    expected = np.concatenate([by_networkx(graph) for graph in graphs])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["nx_betweenness", "nx_closeness", "nx_clustering"])
def test_too_large_problems_are_named(name):
    large = GraphBatch.from_graphs([graph_of(n, chain(n)) for n in (3, 1501)])
    with pytest.raises(ValueError, match=rf"problem 1 .*1,500 .*{name}.* 1,501"):
        GraphFeatures(["nx_in_degree", name]).fit_transform(large)
    assert GraphFeatures(["nx_in_degree"]).fit_transform(large).n_features == 1
