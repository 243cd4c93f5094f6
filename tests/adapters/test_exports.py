"""Exports of UQLM as files hold them, and edges under the names of other tools."""

import json

import numpy as np
import pytest

from skdcf import ReasoningGraph
from skdcf.adapters import from_uqlm
from skdcf.datasets import read_jsonl

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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("links", [[0, 1]]),
        ("links", [{"source": 0, "target": 1}]),
        ("depends_on", [[0, 1]]),
        ("adjacency", [[0, 1]]),
        ("edge_list", [[0, 1]]),
        ("premises", [[], [0]]),
        ("deps", [[], [0]]),
    ],
)
def test_other_names_for_edges_are_refused(tmp_path, key, value):
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"claims": ["a", "b"], key: value}) + "\n")
    ours = "edges" if len(value) == 1 else "parents"
    with pytest.raises(ValueError, match=rf'"{key}".*edges.*"{ours}"'):
        read_jsonl(path)
    if not isinstance(value[0], dict):
        renamed = read_jsonl(path, rename={key: ours})
        assert renamed.graphs[0].edges.tolist() == [[0, 1]]
    assert read_jsonl(path, own=[key]).metadata[0][key] == value
    known = {"claims": ["a", "b"], "edges": [[0, 1]], key: value}
    path.write_text(json.dumps(known) + "\n")
    assert read_jsonl(path).graphs[0].edges.tolist() == [[0, 1]]
