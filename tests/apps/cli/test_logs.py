"""From logs of several forms to filtered text, by the commands of the tutorial."""

import json
import re

import pytest
from command_line import run

from skdcf.apps.text import kept_text, split_sentences
from skdcf.datasets import from_messages, read_jsonl


def write_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


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
    fit = ("fit", path, "-o", tmp_path / "m", "--scorer", "context_trigrams")
    run(*fit, "--features", "built-in", "--show", 1, *options)
    text = capsys.readouterr().err
    assert f"4 answers to {n_questions} question" in text


TOLD = "The tower is tall. It is iron"
THOUGHTS = [
    f"<think>\nIt may be red. Is it?\n</think>\n\n{TOLD}",
    f"It may be red.</think>{TOLD}",
    f"[THINK]It may be red.[/THINK]{TOLD}",
    f"<|channel|>analysis<|message|>Red?<|end|><|channel|>final<|message|>{TOLD}<|return|>",
    f"{TOLD}<|im_end|>\n<|im_start|>user\nIs it red?",
    f"<s>{TOLD}</s>",
    f"{TOLD} <think>\nIt may be red.",
    f"{TOLD} <|begin_of_thought|>It may be red.",
    f"<think>Red?</think><answer>{TOLD}</answer><|END_OF_TURN_TOKEN|>",
    f"<|begin_of_thought|>Red?<|end_of_thought|>{TOLD}<|end_of_solution|>",
    f"<|START_THINKING|>Red?<|END_THINKING|><|START_RESPONSE|>{TOLD}<|END_RESPONSE|>",
    [{"type": "reasoning", "text": "It may be red."}, {"type": "text", "text": TOLD}],
    [{"text": "It may be red.", "thought": True}, {"text": TOLD}],
]


def test_thoughts_and_control_tokens_are_no_claims(tmp_path, capsys):
    log = write_lines(tmp_path / "log.jsonl", [{"answer": said} for said in THOUGHTS])
    for graph in split(tmp_path, log):
        assert " ".join(graph.claims) == TOLD
        assert kept_text(graph, [True, True]) == TOLD
    assert f"in {len(THOUGHTS)} answers" in capsys.readouterr().err
    plain = "A `</think>` ends a thought, as <s>here</s> it does, after a <think> tag."
    assert split_sentences(plain) == [plain]
    assert split_sentences(f"{plain}\n<think>\nRed?") == [plain]
    for text in THOUGHTS[:-2]:
        assert split_sentences(text) == split_sentences(TOLD)
        assert from_messages(
            [{"task": 1, "messages": [{"role": "assistant", "content": text}]}]
        ).graphs[0].claims == (TOLD,)


@pytest.mark.parametrize(
    "end",
    [
        {"finish_reasons": ["length", "length"]},
        {"meta_info": {"finish_reason": {"type": "length"}}},
        {"stopReason": "Reason.MAX_TOKENS"},
        {"response_metadata": {"status": "incomplete"}},
    ],
)
def test_the_last_sentence_of_a_cut_off_answer_is_no_claim(tmp_path, capsys, end):
    said = {"message": {"content": f"{TOLD}\n- It was built in 18"}}
    said |= {
        "status": "ok",
        "finish_reason": "nan",
        "metadata": {"status": "incomplete"},
    }
    lines = (
        {"choices": [said | end]},
        {"choices": [said]} | end,
        {"choices": [said, end]},
        {"choices": [said | {"finish_reason": "stop"}]} | end,
        {"choices": [said]},
    )
    for i, line in enumerate(lines):
        log = write_lines(tmp_path / "log.jsonl", [line])
        [graph] = split(tmp_path, log, "--map", "choices[0].message.content=answer")
        assert (" ".join(graph.claims) == TOLD) == (i < 2)
        assert ("finish_reason, in 1 answer" in capsys.readouterr().err) == (i < 2)
