"""The field ``provenance`` of a problem: flat, carried along, and ignored by ==."""

import pytest

from skdcf import GraphBatch, ReasoningGraph


@pytest.mark.parametrize("value", [["a"], None])
def test_it_is_flat(value):
    with pytest.raises(
        ValueError, match=r"strings, numbers or booleans, got .* 'splitter'"
    ):
        ReasoningGraph([[0.1]], provenance={"splitter": value})
    with pytest.raises(ValueError, match="problem 1"):
        GraphBatch.from_arrays(
            [[0.1], [0.2]], [0, 1, 2], provenance=[None, {"splitter": value}]
        )


def test_a_model_must_have_a_name():
    with pytest.raises(ValueError, match="'model '"):
        ReasoningGraph([[0.1]], provenance={"label_source": "model "})
