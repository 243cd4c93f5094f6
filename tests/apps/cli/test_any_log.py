"""From logs of three forms to filtered text, by the commands of the tutorial."""

import csv
import json

import numpy as np
import pytest

from skdcf import HardCF, ReasoningGraph
from skdcf.apps.cli import main
from skdcf.datasets import read_jsonl
from skdcf.datasets.paths import MISSING, paths_of, put_at, value_at

PASSAGES = ["The library opens at nine.", "A card costs four euros."]
ANSWER = "The library opens at nine. A card costs seven euros."


def flat(i, question, passages, answer):
    return {"question": question, "context": passages, "answer": answer, "turn": i}


def nested(i, question, passages, answer):
    hits = [{"text": text, "score": 0.5} for text in passages]
    return {
        "request": {"asked": question},
        "retrieval": {"hits": hits},
        "reply": {"text": answer, "model": "m"},
        "turn": i,
    }


def table_row(i, question, passages, answer):
    return {"question": question, "documents": json.dumps(passages), "said": answer}


FORMS = {
    "flat": (flat, []),
    "nested": (
        nested,
        [
            "--map",
            "reply.text=answer,retrieval.hits[].text=context",
            "--map",
            "request.asked=problem",
        ],
    ),
    "csv": (table_row, ["--map", "said=answer,documents=context"]),
}
TEXT_KEYS = {"flat": "answer", "nested": "reply.text", "csv": "said"}


def write_log(folder, form, turns):
    make, _ = FORMS[form]
    rows = [make(i, *turn) for i, turn in enumerate(turns)]
    if form != "csv":
        path = folder / f"{form}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return path
    path = folder / "log.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_log_is_split_alike(tmp_path, form):
    log = write_log(tmp_path, form, [("When?", PASSAGES, ANSWER)])
    out = tmp_path / "problems.jsonl"
    assert main(["split", str(log), "-o", str(out), *FORMS[form][1]]) == 0
    graph = read_jsonl(out).graphs[0]
    assert graph.problem == "When?" and graph.context == tuple(PASSAGES)
    assert graph.claims == ("The library opens at nine.", "A card costs seven euros.")


@pytest.mark.parametrize("mapped", ["retrieval.hits[].text", "retrieval.hits[].txt"])
def test_a_path_into_a_list_must_lead_to_a_value(tmp_path, capsys, mapped):
    record = nested(0, "When?", PASSAGES, ANSWER)
    for hit in record["retrieval"]["hits"]:
        hit["snippet"] = hit.pop("text")
    empty = nested(1, "Who?", [], ANSWER)
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [record, empty])))
    names = ["--map", f"reply.text=answer,request.asked=problem,{mapped}=context"]
    assert main(["split", str(log), "-o", "-", *names]) == 2
    error = capsys.readouterr().err
    assert mapped in error and "retrieval.hits[].snippet" in error


def test_an_answer_without_hits_has_an_empty_context(tmp_path):
    log = write_log(tmp_path, "nested", [("When?", [], ANSWER)])
    out = tmp_path / "out.jsonl"
    assert main(["split", str(log), "-o", str(out), *FORMS["nested"][1]]) == 0
    assert json.loads(out.read_text())["context"] == []


@pytest.mark.parametrize("column", ["said", "answer"])
def test_an_empty_cell_is_an_empty_answer(tmp_path, column):
    log = tmp_path / "log.csv"
    log.write_text(f"asked,{column},docs\nWhen?,It is so.,\nWho?,,\n")
    out = tmp_path / "out.jsonl"
    names = ["--map", "asked=problem,docs=context"]
    names += ["--map", "said=answer"] if column == "said" else []
    assert main(["split", str(log), "-o", str(out), *names]) == 0
    full, empty = map(json.loads, out.read_text().splitlines())
    assert full["claims"] == ["It is so."]
    assert empty["claims"] == [] and empty[column] == ""


def chat_line(**more):
    messages = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "It opens at nine. It is far."},
    ]
    return json.dumps({"n": 1, "reply": {"messages": messages}, **more}) + "\n"


@pytest.mark.parametrize(
    "key", ["reply.messages[].content", "reply.messages", "reply.messages[]"]
)
def test_a_list_of_messages_is_no_answer(tmp_path, capsys, key):
    log, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    log.write_text(chat_line())
    split = ["split", str(log), "-o", str(out)]
    assert main([*split, "--map", f"{key}=answer"]) == 2
    said = capsys.readouterr().err
    assert key in said
    last = "reply.messages[-1].content"
    assert f"--map {last}=answer" in said
    assert "from_messages" in said

    names = f"{last}=answer,reply.messages[0].content=problem"
    assert main([*split, "--map", names]) == 0
    problem = json.loads(out.read_text())
    assert problem["claims"] == ["It opens at nine.", "It is far."]
    assert problem["problem"] == "When?"


def test_a_missing_answer_is_sought_among_the_texts(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    log.write_text(chat_line(said={"text": "It is so."}))
    assert main(["split", str(log), "-o", "-"]) == 2
    said = capsys.readouterr().err
    assert "['said.text']" in said
    assert main(["split", str(log), "-o", "-", "--map", "said=answer"]) == 2
    assert "'text'" in capsys.readouterr().err


def test_one_entry_of_a_list_is_replaced():
    record = json.loads(chat_line(texts=["a", "b"]))
    for path in ("reply.messages[-1].content", "texts[0]"):
        put_at(record, path, "new")
        assert value_at(record, path) == "new"
    assert record["texts"] == ["new", "b"]
    assert value_at(record, "reply.messages[].content") == ["When?", "new"]
    for path in ("texts[2]", "texts[-3]", "n[0]", "reply.messages[5].content"):
        assert value_at(record, path) is MISSING


TABLE = "question,answer\nWho?,Dr. Ren\u00e9e came. She left.\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
def test_tables_in_the_encodings_of_spreadsheets(tmp_path, encoding, name):
    log, out = tmp_path / name, tmp_path / "out.jsonl"
    log.write_text(TABLE.replace(",", "," if name == "log.csv" else "\t"), encoding)
    assert main(["split", str(log), "-o", str(out)]) == 0
    assert json.loads(out.read_text())["claims"] == [
        "Dr. Ren\u00e9e came.",
        "She left.",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TABLE.encode("cp1252"), ["line 2", "0xe9", "UTF-8"]),
        (TABLE.encode("utf-16-le"), ["UTF-16", "UTF-8"]),
        (TABLE.encode("utf-32"), ["UTF-32", "UTF-8"]),
        (b"PK\x03\x04\0\0", ["workbook", "UTF-8"]),
        (b"question,answer\nWho?,It is so, as said.\n", ["row 2", "cell"]),
        (b'question,answer\nWho?,"It is so.\nWhen?,Now.\n', ["quotation"]),
    ],
)
def test_tables_that_are_not_read_are_named(tmp_path, capsys, content, said):
    log, out = tmp_path / "log.csv", tmp_path / "out.jsonl"
    log.write_bytes(content)
    assert main(["split", str(log), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in ["log.csv", *said])
    assert not out.exists()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_logs_in_encodings_without_a_mark_are_named(tmp_path, capsys, encoding):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b'{"question": "q", "answer": "a"}\n'.decode().encode(encoding))
    assert main(["split", str(log), "-o", "-"]) == 2
    error = capsys.readouterr().err
    assert "log.jsonl" in error and "UTF-16" in error and "UTF-8" in error


def test_paths_are_those_that_lead_to_values():
    record = nested(0, "q", PASSAGES, ANSWER)
    assert list(paths_of(record)) == [
        "request.asked",
        "retrieval.hits[].text",
        "retrieval.hits[].score",
        "reply.text",
        "reply.model",
        "turn",
    ]


@pytest.mark.parametrize("head", ["", "1,2,3\n", "answer,answer\n", "answer,\n"])
def test_a_table_without_names_is_refused_in_a_sentence(tmp_path, capsys, head):
    log = tmp_path / "log.csv"
    log.write_text(f"{head}a,b,c\n" if head else "")
    assert main(["split", str(log), "-o", "-"]) == 2
    error = capsys.readouterr().err
    assert "log.csv" in error and error.count("\n") == 1


def test_graphs_of_texts_need_no_features():
    graph = ReasoningGraph(claims=["a", "b"], context=["c"])
    assert graph.features is None and graph.n_claims == 2


def test_names_of_the_command_line_lead_to_objects():
    graphs = [ReasoningGraph([[0.1]], [])] * 9
    with pytest.raises(ValueError, match=r"ClassifierScorer\(\)"):
        HardCF("logistic").fit(graphs, [[1]] * 9)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_the_whole_way_from_a_log_to_text(tmp_path, form):
    """split, (judge), fit, evaluate, filter: no call fails, and the log's own keys stay."""
    rng = np.random.default_rng(0)

    def turns(n, first):
        for i in range(first, first + n):
            hours = rng.integers(6, 12, size=4)
            passages = [
                f"Branch {i} opens at {h} on day {d}." for d, h in enumerate(hours)
            ]
            wrong = rng.random(4) < 0.2
            said = [
                f"Branch {i} opens at {h + 7 * w} on day {d}."
                for d, (h, w) in enumerate(zip(hours, wrong, strict=True))
            ]
            yield (
                (f"When does branch {i} open?", passages, " ".join(["Sure.", *said])),
                wrong,
            )

    def run(*options):
        assert main(list(map(str, options))) == 0

    names = FORMS[form][1]
    judged, truth = zip(*turns(120, 0), strict=True)
    new, _ = zip(*turns(20, 1000), strict=True)
    folder = tmp_path / "old"
    folder.mkdir()
    run("split", write_log(folder, form, judged), "-o", tmp_path / "old.jsonl", *names)
    run("split", write_log(tmp_path, form, new), "-o", tmp_path / "new.jsonl", *names)
    lines = [
        json.loads(line) for line in (tmp_path / "old.jsonl").read_text().splitlines()
    ]
    for line, wrong in zip(lines, truth, strict=True):
        line["labels"] = [int(not w) for w in wrong]
        line["provenance"] = {"label_meaning": "supported"}
    (tmp_path / "judged.jsonl").write_text("\n".join(map(json.dumps, lines[:80])))
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, lines[80:])))
    filter = tmp_path / "filter.skops"
    run("fit", tmp_path / "judged.jsonl", "-o", filter, "--alpha", 0.2)
    page = tmp_path / "report.html"
    run("report", filter, tmp_path / "test.jsonl", "-o", page, "--alphas", 0.2)
    kept = tmp_path / "kept.jsonl"
    key = TEXT_KEYS[form]
    run("filter", filter, tmp_path / "new.jsonl", "-o", kept, "--text-key", key)
    texts = []
    for line, turn in zip(
        map(json.loads, kept.read_text().splitlines()), new, strict=True
    ):
        text = line["reply"]["text"] if form == "nested" else line[key]
        texts.append(text)
        assert {*text.split()} <= {*turn[2].split()}
        if form == "nested":
            assert line["request"] == {"asked": turn[0]}
    assert any(texts)
