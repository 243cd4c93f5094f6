"""From logs of several forms to filtered text, by the commands of the tutorial."""

import csv
import io
import json
import re
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest

from skdcf.apps.cli import main
from skdcf.apps.labelling import LabelStore
from skdcf.apps.labelling.exchange import write_csv
from skdcf.apps.text import kept_text, split_sentences
from skdcf.datasets import from_messages, read_jsonl


def run(*arguments):
    return main([str(argument) for argument in arguments])


def write_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def write_table(path, rows):
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter=";")
        table.writeheader()
        table.writerows(rows)
    return path


def spreadsheet(folder, turns, _):
    rows = [
        {"question": asked, "documents": json.dumps(passages), "said": answer}
        for asked, passages, answer in turns
    ]
    return write_table(folder / "log.csv", rows)


def chat(folder, turns, _):
    rows = [
        {
            "messages": [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": answer},
            ],
            "hits": [{"text": text, "score": 0.5} for text in passages],
        }
        for asked, passages, answer in turns
    ]
    return write_lines(folder / "log.jsonl", rows)


def spans(folder, turns, checkout):
    """An export of LangSmith, through the five lines of the guide."""
    guide = (checkout / "docs/guide/data.rst").read_text("utf-8")
    code = re.search(r"For LangSmith:\n\n.*?::? py\n\n(.*?)\nFor", guide, re.S)[1]
    runs = [
        SimpleNamespace(
            id=i,
            inputs={"messages": [{"content": asked}]},
            outputs={"messages": [{"content": answer}]},
        )
        for i, (asked, _, answer) in enumerate(turns)
    ]
    client = SimpleNamespace(list_runs=lambda **_: runs)
    log = io.StringIO()
    exec(textwrap.dedent(code), {"client": client, "json": json, "log": log})
    lines = zip(log.getvalue().splitlines(), turns, strict=True)
    rows = [
        json.loads(line) | {"context": passages} for line, (_, passages, _) in lines
    ]
    return write_lines(folder / "log.jsonl", rows)


def frame(folder, turns, _):
    pandas = pytest.importorskip("pandas")
    columns = ["problem", "context", "answer"]
    path = folder / "log.jsonl"
    pandas.DataFrame(turns, columns=columns).to_json(path, orient="records", lines=True)
    return path


FORMS = {
    spreadsheet: ("said", "question=problem,said=answer,documents=context"),
    chat: (
        "messages[-1].content",
        "messages[0].content=problem,messages[-1].content=answer,hits[].text=context",
    ),
    spans: ("answer", None),
    frame: ("answer", None),
}


def make_turns(n, first, rng):
    """Turns whose answers contradict their passages here and there, and which do."""
    turns = []
    truth = []
    for i in range(first, first + n):
        hours = rng.integers(6, 12, size=4)
        wrong = rng.random(4) < 0.2
        passages = [f"Branch {i} opens at {h} on day {d}." for d, h in enumerate(hours)]
        said = [
            f"Branch {i} opens at {h + 7 * w} on day {d}."
            for d, (h, w) in enumerate(zip(hours, wrong, strict=True))
        ]
        turns.append((f"When is {i} open?", passages, " ".join(["Sure.", *said])))
        truth.append(["false" if w else "true" for w in wrong])
    return turns, truth


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_way_from_a_log_to_text(checkout, tmp_path, form):
    """split, label, fit, filter, report: no call fails, and the log's own keys stay."""
    rng = np.random.default_rng(0)
    key, names = FORMS[form]
    options = [] if names is None else ["--map", names]
    problems = {}
    for name, n, first in (("old", 80, 0), ("test", 40, 100), ("new", 10, 200)):
        turns, truth = make_turns(n, first, rng)
        problems[name] = tmp_path / f"{name}.jsonl"
        log = form(tmp_path, turns, checkout)
        assert run("split", log, "-o", problems[name], *options) == 0
        graphs = read_jsonl(problems[name]).graphs
        assert graphs.n_claims == 4 * n and graphs[0].problem == turns[0][0]
        if name == "new":
            break
        store = LabelStore(graphs, tmp_path / f"{name}.journal")
        for i, row in enumerate(truth):
            for v, word in enumerate(row):
                store.label(i, v, word, by="ann")
        write_csv(tmp_path / "sheet.csv", store, "ann")
        label = ("label", problems[name], "--no-page", "--annotator", "ann")
        judged = tmp_path / f"{name}-judged.jsonl"
        sheet = tmp_path / "sheet.csv"
        assert run(*label, "--import", sheet, "-o", judged) == 0
        problems[name] = judged
    model = tmp_path / "m.skops"
    assert run("fit", problems["old"], "-o", model, "--alpha", 0.2) == 0
    assert run("report", model, problems["test"], "-o", tmp_path / "r.html") == 0
    kept = tmp_path / "kept.jsonl"
    filter = ("filter", model, problems["new"], "-o", kept)
    if form is not chat:
        assert run(*filter, "--text-key", key) == 0
        rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
        texts = [row[key] for row in rows]
        assert form is not spreadsheet or rows[0]["question"] == turns[0][0]
    else:
        assert run(*filter, "--json") == 0
        rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
        texts = [row["metadata"]["filtered"]["text"] for row in rows]
    assert any(texts)
    for text, (_, _, answer) in zip(texts, turns, strict=True):
        assert {*text.split()} <= {*answer.split()}
    assert run(*filter) == 0
    assert kept.read_text("utf-8").splitlines() == texts


def split(tmp_path, log, *options):
    out = tmp_path / "out.jsonl"
    assert run("split", log, "-o", out, *options) == 0
    return read_jsonl(out).graphs


TABLE = "question,answer\nWho?,Dr. Ren\u00e9e came. She left.\nWhen?,\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ";"), ("tsv", "\t")])
def test_tables_as_spreadsheets_write_them(tmp_path, encoding, suffix, delimiter):
    log = tmp_path / f"log.{suffix}"
    log.write_text(TABLE.replace(",", delimiter), encoding)
    full, empty = split(tmp_path, log)
    assert full.claims == ("Dr. Ren\u00e9e came.", "She left.")
    assert empty.claims == () and empty.problem == "When?"


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (TABLE.encode("cp1252"), "line 2.*UTF-8"),
        (TABLE.encode("utf-32"), "UTF-32"),
        (b"PK\x03\x04\0\0", "workbook"),
        (b"question,answer\nWho?,It is so, as said.\n", "row 2"),
        (b'question,answer\nWho?,"It is so.\n', "quotation"),
        (b"", "row 1"),
        (b"1,2\na,b\n", "row 1.*'1', '2'"),
        (b"answer,answer\na,b\n", "row 1.*answer"),
        (b"question,text\nWho?,a\n", "log.csv, line 2.*answer"),
    ],
)
def test_the_place_of_a_fault_in_a_table_is_named(tmp_path, capsys, content, match):
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    assert run("split", log, "-o", tmp_path / "out") == 2
    line = capsys.readouterr().err
    assert re.search(match, line) and line.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (
            "reply.messages[].content",
            r"must be a string.*--map reply.messages\[-1\].content",
        ),
        ("reply.text", "reply.text.*reply.messages"),
        ("reply.messages[0].content", "assistant"),
    ],
)
def test_a_wrong_path_is_refused_with_the_right_one(tmp_path, capsys, names, match):
    messages = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "At nine. It is far."},
    ]
    log = write_lines(tmp_path / "log.jsonl", [{"reply": {"messages": messages}}])
    assert run("split", log, "-o", "-", "--map", f"{names}=answer") == 2
    assert re.search(match, capsys.readouterr().err)


def test_answers_with_and_without_logprobs_are_not_mixed(tmp_path, capsys):
    token = {"token": "Yes.", "logprob": -0.1}
    rows = [{"answer": "Yes.", "logprobs": [token]}, {"answer": "Yes."}]
    log = write_lines(tmp_path / "log.jsonl", rows)
    assert run("split", log, "-o", "-") == 2
    assert re.search(r"log\.jsonl.*answer 2", capsys.readouterr().err)
    graph = split(tmp_path, write_lines(log, rows[:1]))[0]
    assert graph.features.shape == (1, len(graph.feature_names))


@pytest.mark.parametrize(
    ("by", "n_questions"), [(None, 1), ("context", 3), ("none", 4), ("shift.n", 2)]
)
def test_answers_are_grouped_by_a_key(tmp_path, capsys, by, n_questions):
    passages = ["a", "a", "b", "c"]
    rows = [
        {"problem": "Sum up.", "context": p, "claims": [f"{p} {i % 2}"], "labels": [1]}
        | {"shift": {"n": i // 2}, "id": i}
        for i, p in enumerate(passages)
    ]
    path = write_lines(tmp_path / "p.jsonl", rows)
    options = [] if by is None else ["--group-by", by]
    run("fit", path, "-o", tmp_path / "m", "--features", "built-in", *options)
    text = capsys.readouterr().err
    fit = ("fit", path, "-o", tmp_path / "m", "--scorer", "context_trigrams")
    run(*fit, "--features", "built-in", "--show", 1, "--force", *options)
    text = capsys.readouterr().err
    assert f"4 answers to {n_questions} question" in text


TOLD = "The tower is tall. It is iron."
THOUGHTS = [
    f"<think>\nIt may be red. Is it?\n</think>\n\n{TOLD}",
    f"It may be red.</think>{TOLD}",
    f"[THINK]It may be red.[/THINK]{TOLD}",
    f"<|channel|>analysis<|message|>Red?<|end|><|channel|>final<|message|>{TOLD}<|return|>",
    f"{TOLD}<|im_end|>\n<|im_start|>user\nIs it red?",
    f"<s>{TOLD}</s>",
    f"{TOLD}<think>It may be red.",
    f"<think>Red?</think><answer>{TOLD}</answer><|END_OF_TURN_TOKEN|>",
    f"<|begin_of_thought|>Red?<|end_of_thought|>{TOLD}<|end_of_solution|>",
    [{"type": "reasoning", "text": "It may be red."}, {"type": "text", "text": TOLD}],
]


def test_thoughts_and_control_tokens_are_no_claims(tmp_path, capsys):
    log = write_lines(tmp_path / "log.jsonl", [{"answer": said} for said in THOUGHTS])
    for graph in split(tmp_path, log):
        assert " ".join(graph.claims) == TOLD
        assert kept_text(graph, [True, True]) == TOLD
    assert f"in {len(THOUGHTS)} answers" in capsys.readouterr().err
    plain = "The tag `<think>` begins, and `</think>` ends a thought, as <s>here</s> it does."
    assert split_sentences(plain) == [plain]
    for text in THOUGHTS[:-1]:
        assert split_sentences(text) == split_sentences(TOLD)
        assert from_messages(
            [{"task": 1, "messages": [{"role": "assistant", "content": text}]}]
        ).graphs[0].claims == (TOLD,)


@pytest.mark.parametrize(
    "end",
    [
        {"finish_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"status": "incomplete"},
    ],
)
def test_the_last_sentence_of_a_cut_off_answer_is_no_claim(tmp_path, capsys, end):
    said = {"message": {"content": f"{TOLD}\n- It was built in 18"}}
    for line in ({"choices": [said | end]}, {"choices": [said]} | end):
        log = write_lines(tmp_path / "log.jsonl", [line])
        names = "choices[0].message.content=answer"
        [graph] = split(tmp_path, log, "--map", names)
        assert kept_text(graph, [True, True]) == TOLD
        assert "finish_reason, in 1 answer" in capsys.readouterr().err
