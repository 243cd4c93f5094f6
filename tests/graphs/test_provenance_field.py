"""The field ``provenance`` of a problem: flat, carried along, and ignored by ==."""

import pytest

from skdcf import GraphBatch, ReasoningGraph
from skdcf.datasets import read_jsonl, write_jsonl

MADE = {"model": "m", "temperature": 0.7, "edges_corrected": True}


def answers():
    made = [MADE, None, {"model": "n"}]
    return [
        ReasoningGraph([[0.1], [0.2]], [(0, 1)], claims=["a", "b"], provenance=row)
        for row in made
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_a_key_of_a_line(packed, tmp_path):
    graphs = answers()
    file = tmp_path / "answers.jsonl"
    write_jsonl(file, GraphBatch.from_graphs(graphs) if packed else graphs)
    read = read_jsonl(file).graphs
    assert [graph.provenance for graph in read] == [MADE, None, {"model": "n"}]
    assert all("provenance" not in (graph.metadata or {}) for graph in read)


def test_it_is_ignored_by_comparisons_of_graphs():
    graph = answers()[0]
    assert graph == graph.replace(provenance={"model": "other"})


def test_it_is_copied():
    made = dict(MADE)
    graph = ReasoningGraph([[0.1]], provenance=made)
    made["model"] = "changed"
    assert graph.provenance == MADE


@pytest.mark.parametrize("value", [["a"], {"a": 1}, None])
def test_it_is_flat(value):
    with pytest.raises(
        ValueError, match=r"strings, numbers or booleans, got .* 'splitter'"
    ):
        ReasoningGraph([[0.1]], provenance={"splitter": value})
    with pytest.raises(ValueError, match="problem 1"):
        GraphBatch.from_arrays(
            [[0.1], [0.2]], [0, 1, 2], provenance=[None, {"splitter": value}]
        )


def test_it_is_a_dict_without_nan():
    with pytest.raises(ValueError, match="provenance must be a dict"):
        ReasoningGraph([[0.1]], provenance="model")
    with pytest.raises(ValueError, match="got nan"):
        ReasoningGraph([[0.1]], provenance={"temperature": float("nan")})
