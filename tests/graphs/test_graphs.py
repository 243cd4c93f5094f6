"""Graphs alone and packed: structure, unknown labels, and what messages show."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import random_problems

from skdcf import GraphBatch, ReasoningGraph
from skdcf.labels import pack_labels
from skdcf.ops.hard import below_true_claims, coherent_labels, nonconformity_scores

CONTROL = "a\nb\x1b[31m\u202e"


def messages():
    """What is said about problems whose id, names and texts hold control characters."""
    one, batch = np.zeros((1, 1)), GraphBatch.from_arrays
    yield lambda: ReasoningGraph([[np.nan]], [], id=CONTROL)
    yield lambda: ReasoningGraph(np.array([[CONTROL]], dtype=object), [])
    yield lambda: ReasoningGraph(one, [], feature_names=[CONTROL] * 2)
    yield lambda: ReasoningGraph(one, [CONTROL])
    yield lambda: batch(one, [0, 1], [(0, 0)], ids=[CONTROL])
    yield lambda: batch(one, [0, 1], claims=[(CONTROL,)])
    yield lambda: pack_labels([[CONTROL]], batch(one, [0, 1]))


@pytest.mark.parametrize("make", list(messages()))
def test_messages_are_one_visible_line(make):
    with pytest.raises(ValueError) as info:
        make()
    assert str(info.value).isprintable()


def test_labels_of_many_kinds():
    batch = GraphBatch.from_arrays(np.zeros((4, 0)), [0, 1, 3, 4])
    unsigned = [np.array([1], np.uint8), np.array([True, False]), np.array([-1.0])]
    assert pack_labels(unsigned, batch).tolist() == [1, 1, 0, -1]
    for wrong in (np.array(1), np.array(["2020"], "M8[Y]")):
        with pytest.raises(ValueError, match="problem 0"):
            pack_labels([wrong, *unsigned[1:]], batch)
    with pytest.raises(ValueError, match=r"0.*255"):
        pack_labels(np.array([255, 0, 1, 1], np.uint8), batch)
    single = GraphBatch.from_arrays(np.zeros((3, 0)), [0, 1, 2, 3])
    for y in ([1, -1, 0], np.array([[1], [-1], [0]])):
        assert pack_labels(y, single).tolist() == [1, -1, 0]
    empty = GraphBatch.from_arrays(np.zeros((0, 1)), [0, 0, 0])
    assert pack_labels([[], []], empty).shape == (0,)


def test_unknown_labels_by_walking():
    problems = random_problems(1, n_problems=80)
    batch, rng = problems.batch, np.random.default_rng(0)
    labels = rng.choice(
        np.array([-1, 0, 1], np.int8), batch.n_claims, p=[0.2, 0.2, 0.6]
    )
    risk = rng.normal(size=batch.n_claims)
    coherent = batch.split(coherent_labels(labels, batch))
    below = batch.split(below_true_claims(labels, batch))
    scores = nonconformity_scores(risk, labels, batch.offsets)
    rows = zip(batch.split(labels), batch.split(risk), problems.ancestors, strict=True)
    for i, (y, r, walked) in enumerate(rows):
        above = [all(y[u] == 1 for u in found) for found in walked]
        assert below[i].tolist() == above
        assert coherent[i].tolist() == [
            a and k == 1 for a, k in zip(above, y, strict=True)
        ]
        unsafe = [r[v] for v in range(len(y)) if y[v] != 1]
        assert scores[i] == min(unsafe, default=np.inf)


@given(st.integers(2, 6), st.data())
def test_exactly_the_acyclic_graphs_are_accepted(n, data):
    """A message names a cycle, as a path along edges."""
    place = st.integers(-1, n)
    forward = st.sampled_from([*itertools.combinations(range(n), 2)])
    edges = data.draw(st.lists(forward) | st.lists(st.tuples(place, place)))
    digraph = nx.DiGraph(edges)
    if {*digraph.nodes} <= {*range(n)} and nx.is_directed_acyclic_graph(digraph):
        pairs = np.array(edges, int).reshape(-1, 2)
        graph = ReasoningGraph(np.zeros((n, 0)), pairs)
        pairs[:] = 0
        assert {*map(tuple, graph.edges.tolist())} == {*edges}
        return
    with pytest.raises(ValueError, match=r"out of range|cycle: ") as info:
        ReasoningGraph(np.zeros((n, 0)), edges)
    if "cycle" in str(info.value):
        path = [int(v) for v in str(info.value).split(": ")[1].split(" -> ")]
        assert path[0] == path[-1] and len({*path}) == len(path) - 1
        assert {*edges}.issuperset(itertools.pairwise(path))
