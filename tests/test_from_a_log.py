"""From a log to filtered text by the commands, on the kinds of logs that people have."""

import csv
import json
import re
import textwrap
from types import SimpleNamespace

import pandas as pd
import pytest

from skdcf.apps.cli import main
from skdcf.datasets import from_frame, make_word_problems, read_jsonl, write_jsonl

DATA = make_word_problems(160, random_state=0)
ROWS = [
    (f"t{i}", graph.problem, " ".join(graph.claims))
    for i, graph in enumerate(DATA.graphs)
]
TRUTH = {
    (graph.problem, claim): int(y)
    for graph, labels in zip(DATA.graphs, DATA.labels, strict=True)
    for claim, y in zip(graph.claims, labels, strict=True)
}


def run(*arguments):
    assert main(list(map(str, arguments))) == 0


def spreadsheet(folder, checkout):
    """A table as a spreadsheet saves it, in UTF-16 and with tabs."""
    path = folder / "log.csv"
    with path.open("w", encoding="utf-16", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["ticket", "Question", "Reply"])
        table.writerows(ROWS)
    return path, ["--map", "Question=problem,Reply=answer"]


def chat(folder, checkout):
    path = folder / "log.jsonl"
    lines = []
    for _, question, answer in ROWS:
        asked = {"role": "user", "content": question}
        said = {"role": "assistant", "content": answer}
        lines.append(json.dumps({"messages": [asked, said], "ms": 7}))
    path.write_text("\n".join(lines))
    names = "messages[0].content=problem,messages[-1].content=answer"
    return path, ["--map", names]


def clients():
    """What the clients of LangSmith, Langfuse and Phoenix return, with one span for a tool."""
    asked = [{"messages": [{"role": "user", "content": q}]} for _, q, _ in ROWS]
    said = [{"role": "assistant", "content": a} for _, _, a in ROWS]
    runs = [
        SimpleNamespace(id=row[0], inputs=x, outputs={"messages": [y]})
        for row, x, y in zip(ROWS, asked, said, strict=True)
    ]
    traces = [
        SimpleNamespace(id=row[0], input=x, output=y)
        for row, x, y in zip(ROWS, asked, said, strict=True)
    ]
    names = ["context.trace_id", "attributes.input.value", "attributes.output.value"]
    spans = pd.DataFrame(ROWS, columns=names).assign(parent_id=None)
    tool = spans.iloc[[0]].assign(parent_id="s0", **{names[2]: "12"})
    table = pd.concat([spans, tool])
    langsmith = SimpleNamespace(
        list_runs=lambda project_name, is_root: runs if is_root else None
    )
    phoenix = SimpleNamespace(get_spans_dataframe=lambda project_identifier: table)
    api = SimpleNamespace(
        trace=SimpleNamespace(list=lambda limit: SimpleNamespace(data=traces))
    )
    return {
        "LangSmith": {"client": langsmith},
        "Langfuse": {"langfuse": SimpleNamespace(api=api)},
        "Phoenix": {"client": SimpleNamespace(spans=phoenix)},
    }


def join_spans(folder, checkout, tool):
    """Run the lines of the guide for a tool."""
    page = (checkout / "docs/guide/data.rst").read_text("utf-8")
    section = page.partition("\nFrom a tracing tool\n")[2].partition("\nJSON Lines\n")[
        0
    ]
    blocks = re.findall(
        r"For (\w+):\n\n\.\. code-block:: py\n\n((?:   .*\n)+)", section
    )
    path = folder / f"{tool}.jsonl"
    with path.open("w") as log:
        names = {"json": json, "log": log, **clients()[tool]}
        exec(textwrap.dedent(dict(blocks)[tool]), names)
    return path


@pytest.mark.parametrize("tool", ["LangSmith", "Langfuse", "Phoenix"])
def test_the_lines_of_the_guide_write_one_line_for_each_trace(tmp_path, checkout, tool):
    lines = join_spans(tmp_path, checkout, tool).read_text().splitlines()
    keys = ("id", "problem", "answer")
    assert [tuple(json.loads(line)[key] for key in keys) for line in lines] == ROWS


def spans(folder, checkout):
    return join_spans(folder, checkout, "Phoenix"), []


def table(folder, checkout):
    """Claims in pandas, which need no splitting."""
    rows = [
        (i, graph.problem, claim)
        for i, graph in enumerate(DATA.graphs)
        for claim in graph.claims
    ]
    frame = pd.DataFrame(rows, columns=["id", "question", "text"])
    data = from_frame(frame, claim="text", answer="id", question="question")
    return write_jsonl(folder / "log.jsonl", data.graphs), None


@pytest.mark.parametrize("make", [spreadsheet, chat, spans, table])
def test_from_a_log_to_filtered_text(tmp_path, checkout, capsys, make):
    problems, names = make(tmp_path, checkout)
    if names is not None:
        log, problems = problems, tmp_path / "problems.jsonl"
        run("split", log, "-o", problems, *names)
    graphs = read_jsonl(problems).graphs
    assert len(graphs) == len(ROWS)
    assert graphs[5].claims == DATA.graphs[5].claims

    # People fill in the column of labels in a spreadsheet.
    sheet, labelled = tmp_path / "sheet.csv", tmp_path / "labelled.jsonl"
    label = ["label", problems, "-o", labelled, "--no-page", "--annotator", "ann"]
    run(*label, "--csv", sheet)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = TRUTH[row["problem"], row["claim"]]
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    run(*label, "--import", sheet)
    lines = labelled.read_text().splitlines(keepends=True)
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("".join(lines[:120]))
    new.write_text("".join(lines[120:]))

    model, kept = tmp_path / "model.skops", tmp_path / "kept"
    options = ["--features", "built-in", "--alpha", "0.3", "--show", "1"]
    if names is None:
        options.append("--no-edges")
    run("fit", old, "-o", model, *options)
    capsys.readouterr()
    run("filter", model, new, "-o", kept)
    assert len(kept.read_text().splitlines()) == 40
    assert re.search(r"\b[1-9]\d* of \d+ claims", capsys.readouterr().err)
    run("report", model, new, "-o", tmp_path / "report.html")
    assert (tmp_path / "report.html").exists()
