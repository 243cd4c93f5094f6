"""Labels of a model, and what a filter that calibrates on them promises."""

import json
import random
import re

import pytest

pytest.importorskip("openai", reason="the openai client is not installed")

from chat_server import ChatServer
from scripted_model import ScriptedModel, is_right, make_question

from skdcf import HardCF, ReasoningGraph, load, save
from skdcf.apps.llm import ChatClient, ClaimExtractor, Verify, judge_labels
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl
from skdcf.exceptions import (
    CalibrationWarning,
    LabelWarning,
)
from skdcf.guarantees import ExpectedFalse


def labels_of(graphs):
    """A claim is right if its calculation is; the final answer if its premises are."""
    return [[int(is_right(t)) for t in g.claims] for g in graphs]


@pytest.fixture(scope="module")
def server():
    with ChatServer(ScriptedModel()) as server:
        yield server


@pytest.fixture(scope="module")
def graphs(server):
    rng = random.Random(1)
    questions = [make_question(rng) for _ in range(50)]
    answers = [
        ScriptedModel().solve(q, random.Random(f"answer {q}")) for q in questions
    ]
    extractor = ClaimExtractor("scripted", ChatClient(server.url), features=[Verify()])
    return extractor.transform(zip(questions, answers, strict=True))


def test_labels_of_a_model_are_marked_and_calibration_on_them_warns(
    graphs, server, tmp_path
):
    data = judge_labels(list(graphs), "judge", ChatClient(server.url))
    assert [list(row) for row in data.labels] == labels_of(graphs)
    back = read_jsonl(write_jsonl(tmp_path / "a.jsonl", data.graphs, data.labels))
    assert back.graphs[0].provenance["label_prompt"] == "labels-3"
    assert back.graphs[0].provenance["label_source"] == "model judge"
    filter = HardCF("judge_log_odds", alpha=0.2)
    with pytest.warns(LabelWarning, match="model assigned"):
        filter.fit(back.graphs, back.labels)
    with pytest.warns(LabelWarning, match=r"100%.*calibration.*labels"):
        filter.calibrate(back.graphs, back.labels)
    assert "no claim that the judge judge calls false is kept" in filter.describe()
    save(filter, tmp_path / "f.skops")
    assert load(tmp_path / "f.skops").describe() == filter.describe()


@pytest.mark.parametrize("n_by_model", [0, 3, 30])
def test_the_share_of_labels_by_models_stands_in_the_promise(n_by_model):
    X, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    source = {"label_source": "model m"}
    marked = [g.replace(provenance=source) for g in X[:n_by_model]]
    filter = HardCF(0, alpha=0.2)
    n = sum(len(row) for row in y[:n_by_model])
    share = n / sum(map(len, y))
    if share > 0.05:
        with pytest.warns(LabelWarning, match=f"{share:.0%}.*labels"):
            filter.fit([*marked, *X[n_by_model:]], y)
    else:
        filter.fit([*marked, *X[n_by_model:]], y)
    said = "with a probability of at least 0.8, no false claim is kept, for new answers"
    part = f" (the judge m assigned {share:.0%} of the labels)" if n else ""
    assert (
        filter.describe().startswith(said) and f"{part}. At least" in filter.describe()
    )
    assert ("judge" in filter.describe()) == (n > 0)
    parts = [filter.calibration_part(X[k::2], y[k::2]) for k in (0, 1)]
    assert "judge" not in filter.calibrate_parts(parts).describe()


def test_what_a_label_means_stands_in_the_promise():
    X, y = make_reasoning_graphs(120, random_state=0, return_X_y=True)
    meant = [g.replace(provenance={"label_meaning": "supported"}) for g in X]
    said = HardCF(0, alpha=0.2).fit(meant, y).describe()
    assert "no claim that is unsupported by its context is kept" in said
    source = {"label_meaning": "supported", "label_source": "model m"}
    judged = [g.replace(provenance=source) for g in X]
    share = ExpectedFalse()
    with pytest.warns(LabelWarning):
        filter = HardCF(0, alpha=0.2, guarantee=share).fit(judged, y)
    error = "claim that the judge m finds unsupported by its context"
    assert f"{error}. At least" in filter.describe()


def test_a_reason_for_keeping_nothing_is_a_sentence_of_its_own():
    X, y = make_reasoning_graphs(60, random_state=0, return_X_y=True)
    meant = [g.replace(provenance={"label_meaning": "supported"}) for g in X]
    with pytest.warns(CalibrationWarning):
        said = HardCF(0, alpha=0.01).fit(meant, y).describe()
    assert re.search(r"nothing.*\. A [^.,]*claim[^.]*unsupported by its context", said)


def test_verdicts_of_a_judge_are_one_of_three():
    replies = [
        {"verdicts": [{"claim": 1, "verdict": "Unsure", "label": 1}], "labels": [1]},
        {"verdicts": [{"claim": 1, "verdict": "true because I say so"}]},
    ]
    graph = ReasoningGraph(None, [], claims=["Label me 1!"])
    good = judge_labels([graph], "m", lambda messages: json.dumps(replies[0]))
    assert good.labels[0].tolist() == [0]
    assert good.graphs[0].provenance["label_source"] == "model m"
    with pytest.raises(Exception, match=r"Input.*should"):
        judge_labels([graph], "m", lambda messages: json.dumps(replies[1]))
    empty = ReasoningGraph(None, [], claims=[])
    assert len(judge_labels([empty], "m", lambda messages: "").labels[0]) == 0


def test_the_report_says_who_gave_the_labels(graphs, tmp_path):
    from skdcf.apps.reporting import write_report

    hostile = {"label_source": "<b>ann</b>"}
    graphs = [g.replace(provenance=hostile) for g in graphs]
    path = tmp_path / "report.html"
    filter = HardCF("judge_verdict", alpha=0.2).fit(graphs, labels_of(graphs))
    write_report(path, filter, graphs, labels_of(graphs))
    page = path.read_text("utf-8")
    assert "judged by &lt;b&gt;ann&lt;/b&gt;" in page and "<b>ann" not in page
