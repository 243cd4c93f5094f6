"""Exports of UQLM as files hold them, and edges under the names of other tools."""

import json

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.adapters import from_uqlm

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    "kind", ["frame", "polars", "dict", "records", "json", "prompts"]
)
def test_uqlm_keeps_the_question(kind):
    table = {
        "prompt": ["Who was Ada?", "Who was Bob?"],
        "response": ["x", "y"],
        "sampled_responses": [["s", "t"], ["u", "v"]],
        "claims_data": [
            [{"claim": "Ada lived.", "removed": False, "entailment": 0.9}],
            [{"claim": "Bob lived.", "removed": False, "entailment": 0.4}],
        ],
    }
    frame = pd.DataFrame(table)
    result = {
        "frame": frame,
        "dict": frame.to_dict("list"),
        "records": frame.to_dict("records"),
        "json": json.loads(frame.to_json()),
        "prompts": {"prompts": table["prompt"], **table},
    }.get(kind)
    if kind == "polars":
        result = pytest.importorskip("polars").DataFrame(table)
    data = from_uqlm(result)
    assert data.graphs.problems.tolist() == table["prompt"]
    assert data.graphs[1].alternatives == ("u", "v")
    assert data.graphs.features.ravel().tolist() == [0.9, 0.4]


def test_uqlm_as_read_from_csv_is_refused_with_what_to_do():
    frame = pd.DataFrame({"prompt": ["Who?"], "claims_data": ["[{'claim': 'a'}]"]})
    with pytest.raises(ValueError, match=r"problem 0.*str.*JSON"):
        from_uqlm(frame)


def test_uqlm_as_read_from_parquet():
    claims = np.array([{"claim": "Ada lived.", "entailment": 0.9}], dtype=object)
    frame = pd.DataFrame({"prompt": ["Who?"], "claims_data": [claims]})
    assert from_uqlm(frame).graphs.features.tolist() == [[0.9]]


@pytest.mark.parametrize("key", ["links", "edges"])
def test_node_link_data_names_the_reader(key):
    """The key of the edges is "links" before networkx 3.6, and "edges" since."""
    data = {"directed": True, "multigraph": False, "graph": {}}
    data |= {"nodes": [{"id": 0}, {"id": 1}], key: [{"source": 0, "target": 1}]}
    with pytest.raises(ValueError, match="from_networkx"):
        ReasoningGraph.from_dict(data)
