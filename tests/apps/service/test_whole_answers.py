"""The service splits whole answers as the calibration answers were, and returns the log's keys."""

import json

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")

from serving import Serving, call

import skdcf
from skdcf import HardCF
from skdcf.apps.cli import main
from skdcf.apps.llm import AnswerSplitter
from skdcf.apps.service import create_app
from skdcf.datasets import read_jsonl
from skdcf.features import reasoning_features

MAP = {
    "request.asked": "problem",
    "reply.text": "answer",
    "retrieval.hits[].text": "context",
}
AS_OPTION = ",".join(f"{theirs}={ours}" for theirs, ours in MAP.items())


def make_log(n, seed=0):
    """Nested lines, in whose answers some prices are not those of the passage."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        price, hour = rng.integers(2, 90, size=2)
        said = price + int(rng.uniform() < 0.2)
        text = (
            f"Sure. House {i} opens at {hour}. A card of house {i} costs {said} euros."
        )
        passage = f"House {i} opens at {hour}. A card of house {i} costs {price} euros."
        lines.append(
            {
                "turn": i,
                "request": {"asked": f"When does house {i} open?"},
                "retrieval": {"hits": [{"text": passage, "score": 0.5}]},
                "reply": {"text": text, "model": "m"},
            }
        )
    return lines


def write(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


LINES = make_log(150)
NEW = make_log(20, seed=1)
for line in NEW:
    line["request"]["asked"] += " Today?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


def fit(folder, *options):
    log = write(folder / "log.jsonl", LINES)
    out = str(folder / "split.jsonl")
    assert main(["split", log, "-o", out, "--map", AS_OPTION, *options]) == 0
    graphs = read_jsonl(out).graphs
    labels = [
        [int(claim in graph.context[0]) for claim in graph.claims] for graph in graphs
    ]
    cf = HardCF("context_longest_run", features=reasoning_features(), alpha=0.1)
    return cf.fit(graphs, labels)


@pytest.fixture(scope="module")
def fitted(folder):
    return fit(folder)


def ask(app, line, **more):
    return call(app, "/v1/filter", json.dumps(line | more).encode())[:2]


def test_a_whole_answer_is_filtered_as_the_commands_do(fitted, folder, capsys):
    skdcf.save(fitted, folder / "m.skops")
    log = write(folder / "new.jsonl", NEW)
    split, out = (str(folder / name) for name in ("new-split.jsonl", "out.jsonl"))
    assert main(["split", log, "-o", split, "--map", AS_OPTION]) == 0
    command = ["filter", str(folder / "m.skops"), split, "-o", out]
    assert main([*command, "--text-key", "reply.text"]) == 0
    expected = [
        json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()
    ]
    app = create_app(fitted, rename=MAP)
    for line, other in zip(NEW, expected, strict=True):
        status, reply = ask(app, line)
        assert status == 200, reply
        assert reply["mask"] == other["mask"]
        assert reply["claims"] == other["claims"]
        assert reply["text"] == other["reply"]["text"]
        assert reply["log_line"] == {key: other[key] for key in line}
        assert reply["origin"] == "as calibrated"
        assert reply["text_guarantee"] == "claims"
    assert {sum(ask(app, line)[1]["mask"]) for line in NEW} == {1, 2}
    # A line that was split already keeps the keys of the log, with the same values.
    lines = (folder / "new-split.jsonl").read_text().splitlines()
    for line, other in zip(lines, expected, strict=True):
        status, reply = ask(app, json.loads(line))
        assert status == 200, reply
        assert reply["mask"] == other["mask"]


@pytest.mark.filterwarnings("ignore::skdcf.exceptions.GuaranteeWarning")
def test_the_usual_key_needs_no_names(fitted):
    app = create_app(fitted)
    line = {
        "question": "When?",
        "context": [{"text": "House 7 opens at 9."}],
        "answer": "Sure. House 7 opens at 9.",
        "turn": 4,
    }
    status, reply = ask(app, line, alpha=0.2)
    assert status == 200
    assert reply["mask"] == [True]
    assert reply["log_line"] == line  # "Sure." stays next to a kept claim
    status, reply = ask(app, line, claims=["House 7 opens at 9."])
    assert status == 200
    assert reply["log_line"] is None and reply["claims"] is None


def test_the_splitter_is_that_of_the_calibration_answers(folder, fitted):
    own = folder / "own.txt"
    own.write_text("House \\d+ opens.*\n")
    chained = fit(folder, "--edges", "chain", "--no-claim", str(own))
    status, reply = ask(create_app(chained, rename=MAP), NEW[0])
    assert status == 400 and "--no-claim" in reply["error"]
    app = create_app(chained, rename=MAP, no_claim=own)
    _, reply = ask(app, NEW[0])
    assert len(reply["claims"]) == 2
    assert reply["claims"][0] == "Sure."
    with pytest.raises(ValueError, match="no-claim"):
        create_app(fitted, no_claim=own)
    made = AnswerSplitter.from_filter(fitted).provenance
    assert made["edges"] == "none" and made["language"] == "en"


@pytest.mark.long
def test_the_command_takes_names_of_keys(fitted, folder):
    skdcf.save(fitted, folder / "served.skops")
    with Serving(folder / "served.skops", "--map", AS_OPTION) as service:
        status, content = service.ask("POST", "/v1/filter", NEW[0])
    assert status == 200
    reply = json.loads(content)
    assert reply["log_line"]["turn"] == 0
    assert reply["log_line"]["reply"]["text"] == reply["text"] != ""


def test_a_raw_line_of_a_log_gets_the_names_of_the_keys(fitted):
    status, reply = ask(create_app(fitted), NEW[0])
    assert status == 400
    for name in ('"answer"', "--map", '"context"', "retrieval.hits[].text"):
        assert name in reply["error"]
    assert "rename=" not in reply["error"]
    status, reply = ask(
        create_app(fitted), {"answer": "It is so.", "context": [{"body": "It is so."}]}
    )
    assert status == 400
    for key in ("text", "page_content", "content"):
        assert key in reply["error"].partition("body")[2]


def test_the_root_leads_to_the_page_of_routes(fitted):
    status, _, headers = call(create_app(fitted, token="t"), "/", method="GET")[:3]
    assert status == 307 and headers["location"] == "docs"


def test_other_filters_refuse_whole_answers(fitted):
    graphs = read_graphs_without_origin(fitted)
    status, reply = ask(create_app(graphs), {"question": "q", "answer": "It is so."})
    assert status == 400
    assert "claims" in reply["error"] and "answer" in reply["error"]


def read_graphs_without_origin(fitted):
    rng = np.random.default_rng(0)
    graphs = [
        skdcf.ReasoningGraph(rng.uniform(size=(2, 1)), (), claims=[f"a {i}", f"b {i}"])
        for i in range(60)
    ]
    return HardCF(0).fit(graphs, [[1, 1]] * 60, groups=False)
