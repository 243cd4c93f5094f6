"""Runs of agents, recorded as messages of the Chat Completions API, become steps."""

import numpy as np
import pytest

from skdcf.datasets import from_messages

USER = {"role": "user", "content": "Where was the founder of Acme born?"}


def call(name, arguments, id="a"):
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asks(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answers(content, id="a"):
    return {"role": "tool", "tool_call_id": id, "content": content}


def says(content, **more):
    return {"role": "assistant", "content": content, **more}


def read(*messages):
    return from_messages([{"task": 0, "messages": list(messages)}]).graphs[0]


RUN = (
    {"role": "system", "content": "Be brief."},
    USER,
    asks(call("search", '{"query": "Acme"}')),
    answers("Acme was founded by Ada Byron."),
    asks(call("search", '{"query": "Ada"}', "b"), call("now", "", "c"), content="Her."),
    answers("Monday", "c"),
    answers([{"type": "text", "text": "She was born in London."}], "b"),
    says("London"),
)


def test_each_message_of_the_assistant_is_a_step():
    graph = read(*RUN)
    assert graph.problem == USER["content"] and graph.context is None
    assert graph.claims == (
        'search({"query": "Acme"})',
        'Her.\nsearch({"query": "Ada"})\nnow()',
        "London",
    )
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.metadata["messages"] == [2, 4, 7]
    assert graph.feature_names == ("position", "log_length", "n_calls")
    lengths = [np.log1p(len(claim)) for claim in graph.claims]
    expected = np.column_stack([[0, 1, 2], lengths, [1, 2, 0]])
    assert graph.features == pytest.approx(expected)


def test_a_run_that_is_cut_has_the_same_steps_and_columns():
    whole = read(*RUN)
    for v, position in enumerate(whole.metadata["messages"]):
        part = read(*RUN[: position + 1])
        assert part.claims == whole.claims[: v + 1]
        assert np.array_equal(part.features, whole.features[: v + 1])


def test_labels_and_tasks():
    run = {"task": 3, "messages": list(RUN), "id": "mine", "metadata": {"kind": "a"}}
    others = [run | {"labels": [1, -1, 0]}, run | {"id": "other", "task": 4}]
    data = from_messages(others)
    assert [y.tolist() for y in data.labels] == [[1, -1, 0], [-1] * 3]
    assert data.groups.tolist() == ["3", "4"]
    assert data.graphs[0].id == "mine"
    assert data.graphs[0].metadata.items() >= {"kind": "a", "group": "3"}.items()
    with pytest.raises(ValueError, match=r"labels.*3.*got 2"):
        from_messages([run | {"labels": [1, 0]}])


def test_the_forms_of_a_call():
    custom = {"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
    legacy = says(None, function_call={"name": "f", "arguments": "{}"})
    result = {"role": "function", "name": "f", "content": "1"}
    graph = read(USER, asks(call("g", {"x": "é"}), custom), legacy, result, says("1"))
    assert graph.claims == ('g({"x": "é"})\nsh(ls -l)', "f({})", "1")


def test_the_forms_of_a_text():
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    what = {"type": "text", "text": "What is it? "}
    parts = [
        {"type": "text", "text": "The bill is "},
        {"type": "text", "text": "900", "citations": [{"cited_text": "900"}]},
        {"type": "text", "text": " EUR."},
    ]
    graph = read(
        {"role": "user", "content": [what, image]},
        says(parts, annotations=[{"type": "url_citation"}], name="bot"),
        says(None, refusal="I cannot."),
        says([{"type": "refusal", "refusal": "No."}]),
        says(None, audio={"id": "x", "transcript": "Yes."}),
    )
    assert graph.problem == "What is it? [image_url]"
    assert graph.claims == ("The bill is 900 EUR.", "I cannot.", "No.", "Yes.")


def test_reasoning_and_what_was_cut_off_are_dropped_and_counted():
    messages = [
        USER,
        says(None, reasoning_content="hm", parsed=None, extra={}, files=[], note=""),
        says("<think>Should I pay? No.</think>I wait.", reasoning=""),
        says("I pay.", reasoning="pay"),
        {"type": "reasoning", "summary": ["Then"], "status": "incomplete"},
        says("It", finish_reason="length"),
        says([{"type": "output_text", "text": "I go."}], status="completed"),
        says("", status="completed"),
    ]
    run = {"task": 0, "messages": messages, "status": "incomplete"}
    [graph] = from_messages([run]).graphs
    assert graph.claims == ("I wait.", "I pay.", "I go.")
    assert (graph.metadata["n_reasoning"], graph.metadata["n_cut_off"]) == (4, 3)
    for labels, said in ([1], r"3 in all.*got 1\b.*cut off"), (5, "list, got 5"):
        with pytest.raises(ValueError, match=said):
            from_messages([run | {"labels": labels}])


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (says("x", metadata={"toolCalls": [1]}), "'metadata'"),
        (says("x", type="ai"), "'ai'"),
        (says("x", type="reasoning"), "'role'"),
        (says([{"type": "text", "text": "x", "tool": 1}]), "'tool'"),
        (says([{"type": "image_url", "image_url": {"url": "x"}}]), "'image_url'"),
        (says(["x"]), "'str'"),
        (says(""), "none"),
        (says(None, audio={"id": "x"}), "transcript"),
        (asks(call("f", "{}") | {"index": 1}), "'index'"),
        (asks(call("f", "{}") | {"custom": {"name": "g"}}), "either"),
        (asks({"id": "a", "function": {"name": "f", "args": "{}"}}), "'args'"),
        (asks({"function": {"name": "f"}}), "id .*None"),
        (asks(call("f", "{}")) | {"role": "user"}, "'user'"),
        ({"role": "function", "name": "f", "content": "x"}, "'f'"),
        ({"role": "bot", "content": "x"}, "'bot'"),
    ],
)
def test_what_cannot_be_read_is_named(message, said):
    with pytest.raises(ValueError, match=f'problem "run/0": message 2: .*{said}'):
        read(USER, says("first"), message, says("last"))


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"task": 1, "messages": [USER, says("x")]}, r"list of dicts.*\[run\]"),
        ([["task"]], "list of dicts"),
        ([{"messages": [USER, says("x")]}], "task .*None"),
        ([{"task": True, "messages": [USER, says("x")]}], "task .*True"),
        ([{"task": 1, "messages": [USER]}], "step"),
        ([{"task": 1, "messages": "hello"}], "messages .*str"),
    ],
)
def test_broken_runs_are_named(runs, said):
    with pytest.raises(ValueError, match=said):
        from_messages(runs)
