"""What is taken over ancestors, against networkx, graph by graph."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from random_graphs import chain, random_edges

from skdcf import GraphBatch, ReasoningGraph
from skdcf.graphs import pass_on
from skdcf.ops.ancestors import (
    count_ancestors,
    count_descendants,
    find_highest,
    sum_ancestors,
)


def graphs_of_all_kinds():
    """Pairs (n_claims, edges)."""
    rng = np.random.RandomState(0)
    for n in range(1, 41):
        yield n, random_edges(rng, n, rng.uniform() ** 2)
    yield from ((n, chain(n)) for n in (1, 2, 17, 70))
    yield 70, [(v + 1, v) for v in range(69)]
    yield 66, list(combinations(range(66), 2))
    yield 90, [(0, v) for v in range(1, 90)]
    yield 90, [(v, 89) for v in range(89)]
    yield 251, [(v, v + k) for k in (1, 2) for v in range(251 - k)]
    yield 75, []
    yield 0, []


def pack(graphs):
    """A batch, and for each claim the rows of it and its ancestors."""
    batch = GraphBatch.from_graphs(
        [ReasoningGraph(np.zeros((n, 0)), edges) for n, edges in graphs]
    )
    digraph = nx.DiGraph(batch.edges.tolist())
    digraph.add_nodes_from(range(batch.n_claims))
    return batch, [sorted({v, *nx.ancestors(digraph, v)}) for v in range(len(digraph))]


ALL = list(graphs_of_all_kinds())
# Parents before children throughout, and forests, which are worked on in other ways.
FORWARD = [graph for graph in ALL if all(u < v for u, v in graph[1])]
FORESTS = [(2, [(0, 1)]), (90, [(0, v) for v in range(1, 90)]), (70, chain(70))]
CASES = [pack(graphs) for graphs in (ALL, FORWARD, FORESTS)]


@pytest.fixture(params=CASES, ids=["any", "forward", "forests"])
def known(request):
    """A batch without what another test worked out, and the sets."""
    batch, sets = request.param
    return batch[np.arange(len(batch))], sets


def test_sums_and_counts_are_those_over_the_sets(known):
    batch, sets = known
    whole = np.arange(batch.n_claims)
    assert sum_ancestors(whole, batch).tolist() == [sum(above) for above in sets]
    assert count_ancestors(batch).tolist() == [len(above) - 1 for above in sets]
    below = np.bincount(np.concatenate(sets), minlength=batch.n_claims) - 1
    assert count_descendants(batch).tolist() == below.tolist()


def test_ancestors_of_one_claim(known):
    batch, sets = known
    for row, above in enumerate(sets):
        v = batch.position[row]
        found = batch[batch.problem_of[row]].ancestors(v) - v + row
        assert {*found, row} == {*above}


def test_passes_are_reductions_over_the_sets(known):
    batch, sets = known
    values = np.random.default_rng(2).integers(60, size=batch.n_claims)
    for ufunc in (np.maximum, np.minimum, np.bitwise_or):
        expected = [ufunc.reduce(values[above]) for above in sets]
        assert pass_on(ufunc, values, batch).tolist() == expected
    highest = [max(above, key=lambda u: (values[u], u)) for above in sets]
    assert find_highest(values, batch).tolist() == highest


def test_closure_and_depth(known):
    batch, sets = known
    indptr, rows = batch.closure
    assert [row.tolist() for row in np.split(rows, indptr[1:-1])] == sets
    parents = dict.fromkeys(range(batch.n_claims), ())
    for u, v in batch.edges.tolist():
        parents[v] = (*parents[v], u)
    expected = {}
    for v in sorted(parents, key=lambda v: len(sets[v])):
        expected[v] = max((expected[u] + 1 for u in parents[v]), default=0)
    assert batch.depth.tolist() == [expected[v] for v in range(batch.n_claims)]


def test_a_problem_is_worth_the_same_in_any_company():
    batch, _ = CASES[0]
    values = np.random.default_rng(4).integers(2**40, size=batch.n_claims)
    together = batch.split(sum_ancestors(values, batch))
    for i, own in enumerate(batch.split(values)):
        assert sum_ancestors(own, batch[[i]]).tolist() == together[i].tolist()


def test_a_long_chain_is_refused_only_where_the_list_is_needed():
    short = GraphBatch.from_arrays(np.zeros((3000, 1)), [0, 3000], chain(3000))
    assert short.closure[1].sum() == (3000**3 - 3000) // 6
    n = 40_001
    batch = GraphBatch.from_arrays(np.zeros((n, 1)), [0, n], chain(n), ids=["long"])
    assert count_ancestors(batch).tolist() == list(range(n))
    assert count_descendants(batch).tolist() == list(range(n))[::-1]
    assert len(batch[0].ancestors(n - 1)) == n - 1
    with pytest.raises(ValueError, match=r'"long"\).* 10,000 claims .* 40,001'):
        _ = batch.closure
