"""The lines of the guide that export the traces of a tool write one line for each trace."""

import json
import re
import textwrap
from types import SimpleNamespace as Namespace

import pandas as pd
import pytest

ROWS = [("t0", "Who?", "Ada. She left."), ("t1", "When?", "At nine.")]
ASKED = [{"messages": [{"role": "user", "content": q}]} for _, q, _ in ROWS]
SAID = [{"messages": [{"role": "assistant", "content": a}]} for *_, a in ROWS]


def langsmith():
    def list_runs(project_name, is_root):
        assert is_root
        for (name, *_), asked, said in zip(ROWS, ASKED, SAID, strict=True):
            yield Namespace(id=name, inputs=asked, outputs=said)

    return {"client": Namespace(list_runs=list_runs)}


def langfuse():
    traces = [
        Namespace(id=name, input=asked, output=said["messages"][0])
        for (name, *_), asked, said in zip(ROWS, ASKED, SAID, strict=True)
    ]
    trace = Namespace(list=lambda limit: Namespace(data=traces))
    return {"langfuse": Namespace(api=Namespace(trace=trace))}


def phoenix():
    """With one span for a tool, which is no answer."""
    names = ["context.trace_id", "attributes.input.value", "attributes.output.value"]
    spans = pd.DataFrame(ROWS, columns=names).assign(parent_id=None)
    tool = spans.iloc[[0]].assign(parent_id="s0", **{names[2]: "12"})
    table = pd.concat([spans, tool])
    read = Namespace(get_spans_dataframe=lambda project_identifier: table)
    return {"client": Namespace(spans=read)}


@pytest.mark.parametrize("make", [langsmith, langfuse, phoenix])
def test_one_line_for_each_trace(tmp_path, checkout, make):
    page = (checkout / "docs/guide/data.rst").read_text("utf-8")
    pattern = r"For (\w+):\n\n\.\. code-block:: py\n\n((?:   .*\n)+)"
    blocks = {name.lower(): text for name, text in re.findall(pattern, page)}
    path = tmp_path / "log.jsonl"
    with path.open("w") as log:
        exec(
            textwrap.dedent(blocks[make.__name__]), {"json": json, "log": log, **make()}
        )
    lines = map(json.loads, path.read_text().splitlines())
    assert [(x["id"], x["problem"], x["answer"]) for x in lines] == ROWS
