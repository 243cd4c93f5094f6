"""A log under keys of its own: passages are never dropped without a word."""

import json
import re

import pytest

from skdcf.apps.cli import main
from skdcf.datasets import make_reasoning_graphs, read_jsonl, write_jsonl

PASSAGES = [
    "The bridge in Sydney was opened in March 1932 after nine years of work.",
    "Trams crossed it on two tracks until 1958, when these became lanes for cars.",
]
CLAIMS = ["It was opened in 1932.", "Trams crossed it."]


def write(folder, **more):
    """A file with one answer, whose passages stand under a key of the caller's."""
    record = {"problem": "When was it opened?", "claims": CLAIMS} | more
    path = folder / "log.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def test_labels_of_support_without_a_context_are_refused(tmp_path, capsys):
    supported = {"labels": [1, 0], "provenance": {"label_meaning": "supported"}}
    path = write(tmp_path, **supported)
    out = tmp_path / "model.skops"
    assert main(["fit", str(path), "-o", str(out)]) == 2
    assert "no line has a context" in capsys.readouterr().err
    assert not out.exists()


def write_lines(path, records):
    """A file with these records, one a line."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(text, encoding="utf-8")
    return path


def instructions(n, **more):
    """Answers to one instruction over passages, of which two answers share each."""
    for i in range(n):
        passage = f"Report {i // 2}: the bridge number {i // 2} was opened in {1900 + i // 2}."
        yield {
            "id": f"a{i}",
            "problem": "Summarise the passage.",
            "ticket": i // 4,
            "context": [passage],
            "claims": [f"It was opened in {1900 + i}.", "Trams crossed it."],
            "edges": [],
            "labels": [1, i % 3 > 0],
            **more,
        }


@pytest.mark.parametrize(
    ("by", "n_questions"),
    [
        ("context", 30),
        ("none", 60),
        pytest.param("ticket", 15, marks=pytest.mark.long),
        pytest.param("id", 60, marks=pytest.mark.long),
    ],
)
def test_an_instruction_is_fitted_by_what_names_the_question(
    tmp_path, capsys, by, n_questions
):
    path = str(write_lines(tmp_path / "log.jsonl", instructions(60)))
    model = str(tmp_path / "m.skops")
    fit = ["fit", path, "-o", model, "--scorer", "context_trigrams", "--alpha", "0.2"]
    fit += ["--features", "built-in", "--show", "1"]
    assert main(fit) == 1
    assert "60 problems of 1 question" in capsys.readouterr().err
    assert main([*fit, "--group-by", by]) == 0
    said = capsys.readouterr().err
    assert f"60 problems of {n_questions} questions" in said

    # What calibrated is known again in another file, and what did not is not.
    new = write_lines(tmp_path / "new.jsonl", list(instructions(90))[60:])
    page = str(tmp_path / "report.html")
    assert main(["report", model, str(new), "-o", page, "--group-by", by]) == 0
    assert "used for calibration" not in capsys.readouterr().err
    kept = tmp_path / "kept.jsonl"
    shown = [
        "--guarantee",
        "shown",
        "--alpha",
        "0.3",
        "--one-per-question",
        "--group-by",
        by,
    ]
    assert main(["filter", model, str(new), "-o", str(kept), *shown]) == 0
    assert main(["filter", model, path, "-o", str(kept), *shown]) == 2
    assert "used for calibration" in capsys.readouterr().err


LOG = [
    {"asked": f"Question {i}?", "said": f"It opened in {1900 + i}. Trams crossed it."}
    | {"docs": [f"The bridge {i} was opened in {1900 + i}, after nine years of work."]}
    | {"shift": i}
    for i in range(30)
]
NAMES = ["--map", "asked=problem,said=answer", "--map", "docs=context"]


def test_a_log_of_whole_answers_to_filtered_text(tmp_path, capsys):
    """The keys of the log come back, with the text that is left where the answer stood."""
    log = write_lines(tmp_path / "log.jsonl", LOG)
    new = tmp_path / "new.jsonl"
    assert main(["split", str(log), "-o", str(new), *NAMES]) == 0
    said = capsys.readouterr().err
    assert re.search(r"30 answers .* 60 sentences.* question: 30, .*: 30\b", said)
    data = read_jsonl(new)
    assert list(data.graphs[3].claims) == ["It opened in 1903.", "Trams crossed it."]
    assert data.graphs.edges_known.all() and data.metadata[3]["said"] == LOG[3]["said"]

    labels = [[1, 0] if i % 2 else [1, 1] for i in range(30)]
    judged = write_lines(
        tmp_path / "judged.jsonl",
        [
            json.loads(line) | {"labels": row}
            for line, row in zip(
                new.read_text("utf-8").splitlines(), labels, strict=True
            )
        ],
    )
    model, kept = str(tmp_path / "m.skops"), tmp_path / "kept.jsonl"
    fit = ["fit", str(judged), "-o", model, "--alpha", "0.2", "--features", "built-in"]
    fit += ["--show", "1"]
    assert main([*fit, "--scorer", "context_trigrams"]) == 0
    filter = ["filter", model, str(new), "-o", str(kept)]
    assert main([*filter, "--text-key", "said", "--empty", "-"]) == 0
    for line, before in zip(kept.read_text("utf-8").splitlines(), LOG, strict=True):
        row = json.loads(line)
        claims = before["said"].replace(". ", ".|").split("|")
        left = [c for c, keep in zip(claims, row["mask"], strict=True) if keep]
        assert row["said"] == (" ".join(left) or "-")
        same = [row["asked"], row["docs"], row["shift"]]
        assert same == [before["asked"], before["docs"], before["shift"]]
        assert set(row["metadata"]) == {"filtered", "layout"}
        assert (
            row["provenance"].items()
            >= {"splitter": "sentencex", "language": "en"}.items()
        )

    # A file under its own keys: they come back, and the text as well.
    renamed = {"problem": "asked", "context": "docs", "claims": "sentences"}
    lines = map(json.loads, new.read_text("utf-8").splitlines())
    own = [
        {renamed.get(k, k): v for k, v in line.items() if k != "metadata"}
        for line in lines
    ]
    path = write_lines(tmp_path / "own.jsonl", own)
    names = ["--map", "asked=problem,docs=context,sentences=claims"]
    filter[2] = str(path)
    assert main([*filter, *names, "--text-key", "said", "--group-by", "shift"]) == 0
    for line, before in zip(kept.read_text("utf-8").splitlines(), own, strict=True):
        row = json.loads(line)
        same = {k: v for k, v in row.items() if k not in ("said", "mask", "metadata")}
        assert same == {k: v for k, v in before.items() if k != "said"}
    for key in ("sad", "shift", "mask", "filtered"):
        kept.unlink(missing_ok=True)
        assert main([*filter, *names, "--text-key", key]) == 2
        assert f"--text-key {key}: each line must contain" in capsys.readouterr().err
        assert not kept.exists()


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        (
            LOG[0],
            [],
            "\"answer\", but only the keys ['asked', 'said'",
        ),
        (LOG[0] | {"claims": ["a"]}, NAMES, '"claims" or an answer'),
        (LOG[0] | {"said": None}, NAMES, 'answer "said" must be a string, got None'),
    ],
)
def test_what_cannot_be_split_is_refused(tmp_path, capsys, record, options, message):
    log = write_lines(tmp_path / "log.jsonl", [record])
    new = tmp_path / "new.jsonl"
    assert main(["split", str(log), "-o", str(new), *options]) == 2
    said = capsys.readouterr().err
    assert message in said and "line 1" in said and not new.exists()


def test_split_takes_usual_names_and_chains(tmp_path, capsys):
    text = "It is two. So it is three."
    row = {"response": text, "question": "?", "context": PASSAGES}
    log = write_lines(tmp_path / "log.jsonl", [row, {"answer": "One.", "id": "b"}])
    new = tmp_path / "new.jsonl"
    assert main(["split", str(log), "-o", str(new), "--edges", "chain"]) == 0
    first, second = read_jsonl(new).graphs
    assert first.edges.tolist() == [[0, 1]] and first.problem == "?"
    assert list(first.context) == PASSAGES and list(second.claims) == ["One."]
    write_lines(log, [row] * 30)
    split = ["split", str(log), "-o", str(new)]
    assert main([*split, "--group-by", "context"]) == 0
    assert len(set(read_jsonl(new).groups)) == 1
    write_lines(log, [{"answer": "One.", "asked": "?"}])
    capsys.readouterr()
    assert main(["split", str(log), "-o", str(new)]) == 0
    said = capsys.readouterr().err
    assert "no line has a question" in said and "--map KEY=context" in said


def test_every_value_of_a_repeated_flag_counts(tmp_path, capsys):
    for name, seed in (("old", 0), ("new", 1)):
        graphs, labels = make_reasoning_graphs(40, random_state=seed, return_X_y=True)
        write_jsonl(tmp_path / f"{name}.jsonl", graphs, labels)
    model = str(tmp_path / "model.skops")
    fit = ["fit", str(tmp_path / "old.jsonl"), "-o", model, "--features", "given"]
    assert main([*fit, "--scorer", "frequency-score"]) == 0
    capsys.readouterr()
    page = str(tmp_path / "report.html")
    command = ["report", model, str(tmp_path / "new.jsonl"), "-o", page]
    assert main([*command, "--alphas", "0.1", "0.2", "--alphas", "0.3"]) == 0
    levels = re.findall(r"^0\.\d+", capsys.readouterr().out, re.MULTILINE)
    assert levels == ["0.100", "0.200", "0.300"]


def test_of_two_single_values_none_is_chosen_silently(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["fit", "a.jsonl", "-o", "m", "--alpha", "0.1", "--alpha", "0.2"])
    assert ended.value.code == 2
    assert "error: --alpha " in capsys.readouterr().err


def columns(n, **keys):
    record = {"claims": ["a is b."] * n, "edges": [], "labels": [1] * n}
    if n:
        record |= {"features": [[0.5, 0.1]] * n, "feature_names": ["p", "q"]}
    return record | keys


def test_the_last_answers_of_a_file_may_all_be_without_claims(tmp_path, capsys):
    """They are decided about 500 at a time, and those after the 500th name no columns."""
    labelled = [
        columns(2, features=[[i / 40, 0], [i / 80, 0]], problem=f"q {i}")
        for i in range(40)
    ]
    judged = write_lines(tmp_path / "judged.jsonl", labelled)
    model, kept = str(tmp_path / "m.skops"), tmp_path / "kept.jsonl"
    assert (
        main(["fit", str(judged), "-o", model, "--scorer", "p", "--alpha", "0.2"]) == 0
    )
    rows = [columns(i < 500, problem=f"new {i}") for i in range(503)]
    path = write_lines(tmp_path / "new.jsonl", rows)
    assert main(["filter", model, str(path), "-o", str(kept)]) == 0
    # Nothing was removed from answers without claims.
    assert "All claims of 0 problems" in capsys.readouterr().err
    assert [len(mask) for mask in read_jsonl(kept).masks] == 500 * [1] + 3 * [0]


def test_an_error_of_filter_names_the_problem_of_the_file(tmp_path, capsys):
    labelled = [
        columns(2, features=[[i / 40, 0], [i / 80, 0]], problem=f"q {i}")
        for i in range(40)
    ]
    judged = write_lines(tmp_path / "judged.jsonl", labelled)
    model = str(tmp_path / "m.skops")
    assert (
        main(["fit", str(judged), "-o", model, "--scorer", "p", "--alpha", "0.2"]) == 0
    )
    new = [columns(1, problem=f"new {i}") for i in range(503)]
    new[502]["feature_names"] = ["p", "r"]
    path = write_lines(tmp_path / "new.jsonl", new)
    capsys.readouterr()
    assert main(["filter", model, str(path), "-o", str(tmp_path / "kept.jsonl")]) == 2
    assert "problem 503" in capsys.readouterr().err
