"""Any problem, packed, cut, sent away and converted, is what it was before."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdcf import GraphBatch, ReasoningGraph
from skdcf.exceptions import ParameterWarning
from skdcf.graphs import ROWS

TEXTS = st.text(max_size=4)


@st.composite
def problems(draw, width=None):
    """A graph with any fields, whose claims stand in any order."""
    n = draw(st.integers(0, 8))
    order = draw(st.permutations(range(n)))
    pairs = [(order[i], order[j]) for j in range(n) for i in range(j)]
    edges = draw(st.none() | st.lists(st.sampled_from(pairs)) if pairs else st.none())
    number = st.floats(-5, 5)
    rows = st.lists(
        st.lists(number, min_size=width, max_size=width), min_size=n, max_size=n
    )
    return ReasoningGraph(
        None if width is None else np.array(draw(rows)).reshape(n, width),
        edges,
        claims=draw(st.lists(TEXTS, min_size=n, max_size=n)),
        problem=draw(st.none() | TEXTS),
        alternatives=draw(st.none() | st.lists(TEXTS, max_size=2)),
        context=draw(st.none() | st.lists(TEXTS, max_size=2)),
        feature_names=None if width is None else [f"x{k}" for k in range(width)],
        id=draw(st.none() | st.integers()),
        provenance=draw(st.none() | st.dictionaries(TEXTS, st.booleans(), max_size=2)),
        metadata=draw(st.none() | st.dictionaries(TEXTS, st.integers(), max_size=2)),
    )


MANY = st.sampled_from([None, 2]).flatmap(
    lambda width: st.lists(problems(width), min_size=1, max_size=5)
)


def fields(graph):
    """All fields, also those that == ignores."""
    values = {name: getattr(graph, name) for name in ReasoningGraph.__slots__}
    values["claims"] = graph.claims or None  # an answer without claims has no texts
    for name in ("features", "edges"):
        if values[name] is not None:
            values[name] = (values[name].shape, values[name].tolist())
    return values


def digraph_of(graph):
    digraph = nx.empty_graph(graph.n_claims, nx.DiGraph)
    digraph.add_edges_from(reversed(graph.edges.tolist()))
    return digraph


@given(MANY)
def test_problems_are_what_they_were(graphs):
    batch = GraphBatch.from_graphs(graphs)
    for form in (graphs, batch, pickle.loads(pickle.dumps(batch))):
        for graph, expected in zip(form, graphs, strict=True):
            assert fields(graph) == fields(expected) and graph == expected
    for graph in graphs:
        for form in (
            pickle.loads(pickle.dumps(graph)),
            ReasoningGraph.from_dict(graph.to_dict()),
            graph.replace(id=graph.id),
            graph.subgraph(np.ones(graph.n_claims, dtype=bool)),
        ):
            assert fields(form) == fields(graph) and hash(form) == hash(graph)
    empty = ReasoningGraph(np.empty((0, 1)), ())
    assert empty == (same := empty.replace(claims=[])) and hash(empty) == hash(same)


@given(problems())
def test_structures_are_converted_and_back(graph):
    matrix = np.zeros((graph.n_claims,) * 2)
    matrix[graph.edges[:, 1], graph.edges[:, 0]] = 1
    edges = graph.edges.tolist()
    for made in (
        ReasoningGraph.from_networkx(graph.to_networkx(), claims=graph.claims),
        ReasoningGraph.from_networkx(digraph_of(graph), claims=graph.claims),
        ReasoningGraph.from_adjacency(matrix, claims=graph.claims),
    ):
        assert made.edges.tolist() == edges


@given(MANY, st.data())
@settings(max_examples=40)
def test_parts_of_a_batch_are_the_parts_of_the_list(graphs, data):
    batch = GraphBatch.from_graphs(graphs)
    n = len(graphs)
    _ = batch.depth  # goes along
    rows = data.draw(st.lists(st.integers(-n, n - 1)))
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    start, step = data.draw(st.integers(0, n)), data.draw(st.sampled_from([1, -1, 2]))
    for key in (rows, np.array(mask), slice(start, None, step)):
        part = batch[key]
        chosen = [graphs[i] for i in np.arange(n)[key].tolist()]
        assert [*map(fields, part)] == [*map(fields, chosen)]
        if chosen:
            fresh = GraphBatch.from_graphs(chosen)
            assert part.edge_offsets.tolist() == fresh.edge_offsets.tolist()
            assert part.depth.tolist() == fresh.depth.tolist()
    bare = batch.replace_edges(())
    assert [*bare] == [graph.replace(edges=()) for graph in graphs]
    assert not bare.depth.any() and bare.edges_known.all()


@given(MANY)
@settings(max_examples=40)
def test_arrays_make_the_same_batch(graphs):
    batch = GraphBatch.from_graphs(graphs)
    again = GraphBatch.from_arrays(
        batch.features,
        batch.offsets,
        batch.edges[::-1],
        edges_known=batch.edges_known,
        feature_names=batch.feature_names,
        claims=batch.claims,
        **{name: getattr(batch, name) for name in ROWS},
    )
    assert [*map(fields, again)] == [*map(fields, batch)]


@given(problems(1), st.data())
def test_a_subgraph_is_the_induced_one(graph, data):
    n = graph.n_claims
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    part = graph.subgraph(mask)
    kept = np.flatnonzero(mask)
    induced = digraph_of(graph).subgraph(kept.tolist()).edges
    assert {(kept[u], kept[v]) for u, v in part.edges} == {*induced}
    assert (part.claims or ()) == tuple(graph.claims[v] for v in kept)
    assert part.features.tolist() == graph.features[mask].tolist()
    assert part.metadata is None or part.metadata is not graph.metadata
    rest = {"features", "edges", "claims", "n_claims"}
    assert {k: v for k, v in fields(part).items() if k not in rest} == {
        k: v for k, v in fields(graph).items() if k not in rest
    }


@pytest.mark.parametrize("other", [nx.Graph([(0, 1)]), nx.DiGraph([("a", "b")])])
def test_other_graphs_and_matrices_are_refused(other):
    with pytest.raises(ValueError, match="digraph"):
        ReasoningGraph.from_networkx(other, claims=["a", "b"])
    with pytest.raises(ValueError, match=r"matrix.*\(1, 2\)"):
        ReasoningGraph.from_adjacency([[0, 1]], claims=["a", "b"])


def test_graphs_whose_nodes_are_not_in_the_order_of_their_numbers():
    with pytest.warns(ParameterWarning, match=r"order \[1, 0\].*add_nodes_from"):
        ReasoningGraph.from_networkx(nx.DiGraph([(1, 0)]), claims=["a", "b"])
    with pytest.raises(ValueError, match=r"'nodes'\] are unknown.*from_networkx"):
        ReasoningGraph.from_dict({"nodes": []})
