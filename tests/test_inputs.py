"""Small inputs of real shapes, which lie next to the data, and what is right for each."""

import json
import os
import re
from pathlib import Path

import networkx as nx
import pytest

from skdcf import ReasoningGraph
from skdcf.apps.cli import main
from skdcf.apps.text import split_sentences
from skdcf.datasets import from_frame, from_messages, from_uqlm, read_jsonl
from skdcf.exceptions import ParameterWarning
from skdcf.features import AgreementFeatures, ContextFeatures, TextFeatures


@pytest.fixture
def inputs():
    folder = Path(os.environ.get("SKDCF_DATA", "none")).parent / "inputs"
    if not folder.is_dir():
        pytest.skip("no inputs: SKDCF_DATA has no folder inputs beside it")
    return folder


@pytest.fixture
def read(inputs):
    return lambda name: json.loads((inputs / name).read_text("utf-8"))


def test_every_file_is_read(inputs):
    source = Path(__file__).read_text("utf-8")
    assert [p.name for p in inputs.glob("*_*") if p.stem not in source] == []


def column(transformer, graph, name):
    batch = transformer.fit_transform([graph])
    return batch.features[:, list(batch.feature_names).index(name)].tolist()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a02_call_under_metadata", "metadata"),
        ("a06_call_under_info", "info"),
        ("a07_think_tags_in_a_step", ("I pay.",)),
        ("a15_citations_split_a_sentence", ("The bill is 900 EUR and due today.",)),
        ("a16_message_of_thoughts_only", ('pay({"eur": 900})',)),
    ],
)
def test_messages_of_agents(read, name, found):
    runs = [read(f"{name}.json")]
    if isinstance(found, tuple):
        assert from_messages(runs).graphs[0].claims == found
    else:
        with pytest.raises(ValueError, match=f"unknown key '{found}'"):
            from_messages(runs)


def test_graphs_of_networkx(read):
    with pytest.raises(ValueError, match=r"'links', .*from_networkx"):
        ReasoningGraph.from_dict(read("f08_node_link.json"))
    given = read("g01_networkx_numbered_nodes.json")
    digraph = nx.DiGraph()
    digraph.add_nodes_from(given["nodes"])
    digraph.add_edges_from(given["edges"])
    with pytest.warns(ParameterWarning, match=r"order \[2, 0, 1\].*Add the nodes"):
        ReasoningGraph.from_networkx(digraph, claims=["two", "zero", "one"])


def test_words_and_numbers(read):
    given = read("c01_composed_and_decomposed.json")
    graph = ReasoningGraph(
        None, [], claims=[given["claim"]], context=[given["context"]]
    )
    assert column(ContextFeatures(), graph, "context_words") == [1]
    given = read("n08_hexadecimal.json")
    graph = ReasoningGraph(None, [], claims=[given["claim"]])
    assert column(TextFeatures(), graph, "arithmetic_wrong") == [0]


def test_final_answers(read):
    for kind in read("n_answers_hand_over.json").values():
        for claim, other in kind["pairs"]:
            graph = ReasoningGraph(None, [], claims=[claim], alternatives=[other])
            found = column(AgreementFeatures(), graph, "answer_agreement")
            assert found == [kind["agree"]], (claim, other)


def test_sentences(read):
    for case in read("t_sentences_hand_over.json").values():
        assert split_sentences(case["text"]) == case["right"]


def test_tables(inputs, read):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(inputs / "f02_columns_in_another_order.csv")
    assert ReasoningGraph(frame[["a_s", "a_t"]], []).feature_names == ("a_s", "a_t")
    names = {"claim": "text", "answer": "problem", "label": "label"}
    frame = pd.read_csv(inputs / "f04_label_blank.csv")
    labels = from_frame(frame, **names).labels
    assert [row.tolist() for row in labels] == [[1, -1], [1]]
    frame = pd.read_csv(inputs / "v02_two_annotators_long.csv")
    with pytest.raises(ValueError, match=r"'annotator'.*frame.drop_duplicates"):
        from_frame(frame, **names)
    for result in (
        read("v03_uqlm_to_df.json"),
        pd.DataFrame(read("v03_uqlm_to_df.json")),
    ):
        [graph] = from_uqlm(result).graphs
        assert (graph.problem, graph.claims) == ("Who was Ada?", ("Ada was.",))


@pytest.mark.parametrize(
    ("name", "names", "claims", "told"),
    [
        ("f06_abbreviations", "question=problem", 3, ""),
        ("s01_think_in_the_answer", "", 1, "thoughts.* in 1 answer"),
        ("s04_end_token", "", 1, "thoughts.* in 1 answer"),
        ("s05_last_message_is_the_users", "messages[-1].content=answer", None, "user"),
        (
            "s07_cut_off_answer",
            "response.body.choices[0].message.content=answer",
            1,
            "finish_reason.* in 1 answer",
        ),
        ("s09_list_in_a_list", "resps[0][0]=answer,doc.question=problem", 2, ""),
    ],
)
def test_logs(inputs, tmp_path, capsys, name, names, claims, told):
    out = tmp_path / "out.jsonl"
    options = ["--map", names] if names else []
    status = main(["split", str(inputs / f"{name}.jsonl"), "-o", str(out), *options])
    assert status == (2 if claims is None else 0)
    assert re.search(told, capsys.readouterr().err)
    assert claims is None or read_jsonl(out).graphs.n_claims == claims


def test_a_log_that_breaks_the_guarantee(inputs, tmp_path, capsys):
    log = inputs / "o01_each_answer_under_two_questions.jsonl"
    options = ["-o", str(tmp_path / "m.skops"), "--map", "question=problem"]
    assert main(["fit", str(log), *options]) == 2
    assert re.search(r"6 of 9.*groups=.*groups=False", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("l01_label_studio_renamed.json", 'control "verdict"'),
        ("l03_label_studio_same_person_twice.json", "twice"),
        ("l05_sheet_utf16_tabs.csv", None),
    ],
)
def test_labels(inputs, tmp_path, capsys, name, told):
    line = {
        "id": "p1",
        "problem": "q",
        "claims": ["2 + 2 = 5", "so it is odd"],
        "edges": [],
    }
    problems, out = tmp_path / "p.jsonl", tmp_path / "out.jsonl"
    problems.write_text(json.dumps(line))
    options = ["--no-page", "--annotator", "ann", "--import", str(inputs / name)]
    status = main(["label", str(problems), "-o", str(out), *options])
    assert status == (2 if told else 0)
    assert not told or told in capsys.readouterr().err
    assert told or read_jsonl(out).labels[0].tolist() == [0, 0]


ANSWERS = ["The first is 1.", "The second is 2.", "The third is 3."]
CLAIMS = {"claims": [{"span": "is", "text": "It is so."}]}


def extract(model, script):
    from skdcf.apps.llm import ClaimExtractor

    server, client = model(script, in_flight=1)
    extractor = ClaimExtractor("m", client, graph=lambda claims, problem: [])
    batch = extractor.transform([("What is it?", answer) for answer in ANSWERS])
    return server, [graph.claims for graph in batch]


def test_json_in_a_tool_call(read, model):
    from chat_server import Raw, Say, completion

    message = read("m07_json_in_tool_call.json")["reply"]
    message["tool_calls"][0]["function"]["arguments"] = json.dumps(CLAIMS)
    reply = completion(Say(""))
    reply["choices"][0]["message"] = message
    _, claims = extract(model, lambda *_: Raw(json.dumps(reply).encode()))
    assert claims == [("It is so.",)] * 3


@pytest.mark.parametrize(
    "name",
    [
        "m10_wrapped_in_the_name_of_the_schema.json",
        "m12_json_in_a_string.json",
        "m14_unicode_escaped_twice.json",
    ],
)
def test_replies_in_other_wrappings(read, model, name):
    reply = read(name)["reply"]
    text = reply if isinstance(reply, str) else json.dumps(reply)
    text = text.replace("[]", '["café"]').replace("[...]", r"[\"café\"]")
    _, claims = extract(model, lambda *_: text)
    assert claims == [("café",)] * 3


def test_no_premises(read, model):
    from skdcf.apps.llm import DeduceGraph

    reply = read("m15_no_premises_as_null_or_0.json")["reply"]
    server, client = model(lambda *_: json.dumps(reply))
    edges = DeduceGraph().apply([ANSWERS[:2]], [None], model="m", client=client)
    assert edges == [[]]
    assert len(server.requests) == 1


@pytest.mark.filterwarnings("ignore:.*answers have no claims")
@pytest.mark.parametrize(
    "name",
    [
        "m02_403_moderation_of_one_input.json",
        "m03_400_json_validate_failed.json",
        "m05_400_that_echoes_the_input.json",
    ],
)
def test_errors_of_servers(read, model, name):
    from chat_server import Status

    given = read(name)
    fault = Status(given["status"], body=json.dumps(given["reply"]))
    n_asked = []

    def script(request, n):
        n_asked.append(n)
        fails = "second" in json.dumps(request)
        if "fourth" in given["when"]:
            fails = len(n_asked) % 4 == 2
        return fault if fails else json.dumps(CLAIMS)

    server, claims = extract(model, script)
    so = ("It is so.",)
    assert claims == [so, () if "second" in given["when"] else so, so]
    bodies = [body for *_, body in server.requests]
    later = [body for body in bodies if "third" in json.dumps(body)]
    assert later[0].keys() == bodies[0].keys()
