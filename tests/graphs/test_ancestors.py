"""What is taken over ancestors, against ancestors found by walking, graph by graph."""

from itertools import combinations

import numpy as np
import pytest
from random_graphs import ancestors_by_walking, chain, random_edges

from skdcf import GraphBatch
from skdcf.ops.ancestors import (
    count_ancestors,
    count_descendants,
    find_highest,
    pass_on,
    sum_ancestors,
)


def random_tree(rng, n):
    """Each claim but some roots builds on one claim before it in a random order."""
    order = rng.permutation(n)
    return [
        (int(order[rng.randint(k)]), int(order[k]))
        for k in range(1, n)
        if rng.uniform() < 0.95
    ]


def graphs_of_all_kinds():
    """Pairs (n_claims, edges)."""
    rng = np.random.RandomState(0)
    for n in range(1, 41):
        yield n, random_edges(rng, n, rng.uniform() ** 2)
        yield n, random_tree(rng, n)
    yield from ((n, chain(n)) for n in (1, 2, 17, 70))
    yield 70, [(v + 1, v) for v in range(69)]
    yield 66, list(combinations(range(66), 2))
    yield 90, [(0, v) for v in range(1, 90)]
    yield 90, [(v, 89) for v in range(89)]
    yield 80, [(v, v + k) for k in (1, 2) for v in range(80 - k)]
    yield 75, []
    yield 251, [(v, v + k) for k in (1, 2) for v in range(251 - k)]
    yield 0, []


def pack(graphs):
    """A batch, and for each claim the row numbers of it and its ancestors."""
    offsets = np.cumsum([0, *[n for n, _ in graphs]])
    moved = [
        (u + a, v + a)
        for a, (_, edges) in zip(offsets, graphs, strict=False)
        for u, v in edges
    ]
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 0)), offsets, moved)
    sets = [
        [a + v, *(a + u for u in above)]
        for a, graph in zip(offsets, graphs, strict=False)
        for v, above in enumerate(ancestors_by_walking(*graph))
    ]
    return batch, sets


ALL = pack(list(graphs_of_all_kinds()))
# Parents before children throughout, which is worked on in another way.
FORWARD = pack([g for g in graphs_of_all_kinds() if all(u < v for u, v in g[1])])


@pytest.fixture(params=[ALL, FORWARD], ids=["any", "forward"])
def known(request):
    """A batch without what another test worked out, and the sets."""
    batch, sets = request.param
    return batch[np.arange(len(batch))], sets


def test_sums_and_counts_are_those_over_the_sets(known):
    batch, sets = known
    values = np.random.default_rng(1).normal(size=batch.n_claims)
    expected = [values[above].sum() for above in sets]
    np.testing.assert_allclose(sum_ancestors(values, batch), expected, rtol=1e-12)
    whole = np.arange(batch.n_claims)
    assert sum_ancestors(whole, batch).tolist() == [sum(above) for above in sets]
    assert count_ancestors(batch).tolist() == [len(above) - 1 for above in sets]
    below = np.bincount(np.concatenate(sets), minlength=batch.n_claims) - 1
    assert count_descendants(batch).tolist() == below.tolist()


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.bitwise_or])
def test_a_pass_is_the_reduction_over_the_sets(known, ufunc):
    batch, sets = known
    rng = np.random.default_rng(2)
    values = rng.integers(2**64, size=batch.n_claims, dtype=np.uint64)
    expected = [ufunc.reduce(values[above]) for above in sets]
    assert pass_on(ufunc, values, batch).tolist() == expected
    if ufunc is not np.bitwise_or:
        values = rng.normal(size=batch.n_claims)
        expected = [ufunc.reduce(values[above]) for above in sets]
        assert pass_on(ufunc, values, batch).tolist() == expected


@pytest.mark.parametrize("n_values", [5, 10**9])
def test_highest_is_one_with_the_maximum(known, n_values):
    batch, sets = known
    values = np.random.default_rng(3).integers(n_values, size=batch.n_claims)
    found = find_highest(values, batch)
    for v, above in enumerate(sets):
        best = max(values[above])
        assert found[v] == max(u for u in above if values[u] == best)


def test_closure_lists_the_sets(known):
    batch, sets = known
    indptr, indices = batch.closure
    assert np.diff(indptr).tolist() == list(map(len, sets))
    rows = np.split(indices, indptr[1:-1])
    assert [row.tolist() for row in rows] == [sorted(above) for above in sets]


def test_depth_is_the_longest_path(known):
    fresh, sets = known
    parents = np.split(
        fresh.edges[:, 0],
        np.searchsorted(fresh.edges[:, 1], np.arange(1, fresh.n_claims)),
    )
    expected = np.zeros(fresh.n_claims, dtype=int)
    for v in sorted(range(fresh.n_claims), key=lambda v: len(sets[v])):
        expected[v] = max((expected[u] + 1 for u in parents[v]), default=0)
    assert fresh.depth.tolist() == expected.tolist()


def test_a_problem_is_worth_the_same_in_any_company():
    values = np.random.default_rng(4).integers(2**40, size=ALL[0].n_claims)
    together = sum_ancestors(values, ALL[0][np.arange(len(ALL[0]))])
    for i in range(len(ALL[0])):
        a, b = ALL[0].offsets[i : i + 2]
        alone = sum_ancestors(values[a:b], ALL[0][[i]])
        assert alone.tolist() == together[a:b].tolist()


def test_a_chain_of_ten_thousand_is_refused_only_where_the_list_is_needed():
    n = 10_001
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    batch = GraphBatch.from_arrays(np.zeros((n, 1)), [0, n], edges, ids=["long"])
    assert count_ancestors(batch).tolist() == list(range(n))
    assert count_descendants(batch).tolist() == list(range(n))[::-1]
    with pytest.raises(ValueError, match=r'"long"\).* 10,000 claims .* 10,001'):
        _ = batch.closure
