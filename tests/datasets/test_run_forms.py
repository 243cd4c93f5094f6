"""Runs as many tools write them: read completely, or refused with the keys that were seen."""

import base64
import json

import pytest

from skdcf.adapters import from_runs
from skdcf.apps.cli import main

ASKED = "Who mended the lamp in room 4?"
USER = {"role": "user", "content": ASKED}
ORDER = {"room": 4, "item": "lamp"}
TEXT = json.dumps(ORDER)
FOUND = {"by": "Inga Okoro", "day": 3}


def read(*messages, **more):
    return from_runs([{"task": 0, "messages": list(messages)}], **more).graphs[0]


def says(**more):
    return {"role": "assistant", "content": None, **more}


#: A question, a text with a call, its answer, and the last text, in the form of each tool.
FORMS = {
    "LangChain, messages_to_dict": [
        {"type": "human", "data": {"content": ASKED, "type": "human"}},
        {"type": "ai", "data": {
            "content": "I look.", "type": "ai", "invalid_tool_calls": [],
            "tool_calls": [{"id": "t", "name": "log", "args": ORDER}]}},
        {"type": "tool", "data": {
            "content": json.dumps(FOUND), "tool_call_id": "t", "type": "tool"}},
        {"type": "ai", "data": {"content": "Inga Okoro.", "type": "ai"}},
    ],
    "LangChain, dumpd": [
        {"lc": 1, "type": "constructor",
         "id": ["langchain", "schema", "messages", "HumanMessage"],
         "kwargs": {"content": ASKED, "type": "human"}},
        {"lc": 1, "type": "constructor",
         "id": ["langchain", "schema", "messages", "AIMessageChunk"],
         "kwargs": {"content": "I look.", "type": "AIMessageChunk",
                    "tool_calls": [{"id": "t", "name": "log", "args": ORDER}]}},
        {"lc": 1, "type": "constructor",
         "id": ["langchain", "schema", "messages", "ToolMessage"],
         "kwargs": {"content": json.dumps(FOUND), "tool_call_id": "t"}},
        {"lc": 1, "type": "constructor",
         "id": ["langchain", "schema", "messages", "AIMessage"],
         "kwargs": {"content": "Inga Okoro."}},
    ],
    "LangChain with Anthropic's blocks beside its calls": [
        {"type": "human", "content": ASKED},
        {"type": "ai", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "I look.", "index": 0},
            {"type": "tool_use", "id": "t", "name": "log", "input": ORDER}],
         "tool_calls": [{"id": "t", "name": "log", "args": ORDER}],
         "additional_kwargs": {}, "response_metadata": {"usage": {"input_tokens": 3}}},
        {"type": "tool", "content": json.dumps(FOUND), "tool_call_id": "t"},
        {"type": "ai", "content": "Inga Okoro."},
    ],
    "LangChain, a call that was not parsed": [
        {"type": "human", "content": ASKED},
        {"type": "ai", "content": "I look.", "tool_calls": [], "invalid_tool_calls": [
            {"id": "t", "name": "log", "args": TEXT, "error": "bad", "type": "x"}]},
        {"type": "tool", "content": json.dumps(FOUND), "tool_call_id": "t"},
        {"type": "ai", "content": "Inga Okoro."},
    ],
    "LangChain, the call among additional_kwargs": [
        {"type": "human", "content": ASKED},
        {"type": "ai", "content": "I look.", "additional_kwargs": {
            "function_call": {"name": "log", "arguments": TEXT}}},
        {"type": "function", "name": "log", "content": json.dumps(FOUND)},
        {"type": "ai", "content": "Inga Okoro."},
    ],
    "OpenAI, function_call": [
        USER,
        says(content="I look.", function_call={"name": "log", "arguments": TEXT}),
        {"role": "function", "name": "log", "content": json.dumps(FOUND)},
        says(content="Inga Okoro."),
    ],
    "OpenAI, spoken": [
        USER,
        says(audio={"id": "x", "transcript": "I look.", "data": "UklG"}, tool_calls=[
            {"id": "t", "type": "function",
             "function": {"name": "log", "arguments": TEXT}}]),
        {"role": "tool", "tool_call_id": "t", "content": FOUND},
        says(text="Inga Okoro."),
    ],
    "Anthropic": [
        USER,
        says(content=[{"type": "redacted_thinking", "data": "x"},
                      {"type": "text", "text": "I look."},
                      {"type": "tool_use", "id": "t", "name": "log", "input": ORDER}],
             stop_reason="tool_use", usage={"output_tokens": 9}),
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t",
             "content": [{"type": "text", "text": json.dumps(FOUND)}]}]},
        says(content=[{"type": "text", "text": "Inga Okoro."}]),
    ],
    "Anthropic, a tool of the server": [
        USER,
        says(content=[
            {"type": "text", "text": "I look."},
            {"type": "server_tool_use", "id": "t", "name": "log", "input": ORDER},
            {"type": "web_search_tool_result", "tool_use_id": "t", "content": [
                {"type": "web_search_result", "title": "Inga Okoro", "url": "u"}]}]),
        says(content=[{"type": "text", "text": "Inga Okoro."}]),
    ],
    "Inspect": [
        {"id": "1", "source": "input", **USER},
        {"id": "2", "content": "I look.", "source": "generate", "role": "assistant",
         "tool_calls": [{"id": "t", "function": "log", "arguments": ORDER, "view": None,
                         "parse_error": None, "type": "function"}], "model": "m/m"},
        {"id": "3", "role": "tool", "tool_call_id": "t", "function": "log",
         "content": [{"type": "text", "text": json.dumps(FOUND)}], "error": None},
        {"id": "4", "role": "assistant", "content": [
            {"type": "reasoning", "reasoning": "hm", "signature": None},
            {"type": "text", "text": "Inga Okoro."}], "tool_calls": None},
    ],
    "pydantic-ai": [
        {"kind": "request", "instructions": None, "parts": [
            {"part_kind": "system-prompt", "content": "Be short."},
            {"part_kind": "user-prompt", "content": [ASKED]}]},
        {"kind": "response", "usage": {"input_tokens": 3}, "model_name": "m", "parts": [
            {"part_kind": "thinking", "content": "hm"},
            {"part_kind": "text", "content": "I look."},
            {"part_kind": "tool-call", "tool_name": "log", "args": TEXT,
             "tool_call_id": "t"}]},
        {"kind": "request", "parts": [
            {"part_kind": "tool-return", "tool_name": "log", "content": FOUND,
             "tool_call_id": "t"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Inga Okoro."}]},
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": True}, {"text": "I look."},
            {"functionCall": {"name": "log", "args": ORDER}, "thoughtSignature": "x"}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "log", "response": FOUND}}]},
        {"role": "model", "parts": [{"text": "Inga Okoro."}]},
    ],
    "Bedrock": [
        {"role": "user", "content": [{"text": ASKED}]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "I look."},
            {"toolUse": {"toolUseId": "t", "name": "log", "input": ORDER}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "t", "content": [{"json": FOUND}]}}]},
        {"role": "assistant", "content": [{"text": "Inga Okoro."}]},
    ],
    "Vercel": [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool-call", "toolCallId": "t", "toolName": "log", "input": ORDER}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "t", "toolName": "log",
             "output": {"type": "json", "value": FOUND}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Inga Okoro."}]},
    ],
    "Vercel, a page": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
        {"id": "2", "role": "assistant", "metadata": {"model": "m"}, "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "state": "done"},
            {"type": "text", "text": "I look.", "state": "done"},
            {"type": "tool-log", "toolCallId": "t", "state": "output-available",
             "input": ORDER, "output": FOUND}]},
        {"id": "3", "role": "assistant", "parts": [
            {"type": "source-url", "sourceId": "s", "url": "u", "title": "Lamps"},
            {"type": "text", "text": "Inga Okoro."}]},
    ],
    "Vercel, a page of version 4": [
        USER,
        {"id": "2", "role": "assistant", "content": "I look.", "createdAt": "2026",
         "toolInvocations": [{"state": "result", "step": 1, "toolCallId": "t",
                              "toolName": "log", "args": ORDER, "result": FOUND}],
         "parts": [
            {"type": "tool-invocation", "toolInvocation": {
                "state": "result", "step": 1, "toolCallId": "t", "toolName": "log",
                "args": ORDER, "result": FOUND}},
            {"type": "text", "text": "I look."}]},
        says(content="Inga Okoro."),
    ],
    "Agents SDK, items of a result": [
        USER,
        {"type": "message_output_item", "agent": {"name": "a"}, "raw_item": {
            "type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}]}},
        {"type": "tool_call_item", "agent": {"name": "a"}, "raw_item": {
            "type": "function_call", "call_id": "t", "name": "log", "arguments": TEXT}},
        {"type": "tool_call_output_item", "agent": {"name": "a"}, "output": FOUND,
         "raw_item": {"type": "function_call_output", "call_id": "t",
                      "output": json.dumps(FOUND)}},
        {"type": "message_output_item", "agent": {"name": "a"}, "raw_item": {
            "type": "message", "role": "assistant", "content": "Inga Okoro."}},
    ],
    "LlamaIndex": [
        {"role": "user", "additional_kwargs": {}, "blocks": [
            {"block_type": "text", "text": ASKED}]},
        {"role": "assistant", "additional_kwargs": {}, "blocks": [
            {"block_type": "thinking", "content": "hm", "num_tokens": 3},
            {"block_type": "text", "text": "I look."},
            {"block_type": "tool_call", "tool_call_id": "t", "tool_name": "log",
             "tool_kwargs": ORDER}]},
        {"role": "tool", "additional_kwargs": {"tool_call_id": "t", "name": "log"},
         "blocks": [{"block_type": "text", "text": json.dumps(FOUND)}]},
        {"role": "assistant", "blocks": [{"block_type": "text", "text": "Inga Okoro."}]},
    ],
    "Microsoft.Extensions.AI": [
        {"role": "user", "contents": [{"$type": "text", "text": ASKED}]},
        {"role": "assistant", "contents": [
            {"$type": "reasoning", "text": "hm"}, {"$type": "text", "text": "I look."},
            {"$type": "functionCall", "callId": "t", "name": "log", "arguments": ORDER}]},
        {"role": "tool", "contents": [
            {"$type": "functionResult", "callId": "t", "result": FOUND}]},
        {"role": "assistant", "contents": [{"$type": "text", "text": "Inga Okoro."}]},
    ],
    "Cohere": [
        USER,
        says(tool_plan="I look.", tool_calls=[
            {"id": "t", "type": "function", "function": {"name": "log", "arguments": TEXT}}]),
        {"role": "tool", "tool_call_id": "t", "content": [
            {"type": "document", "document": {"data": json.dumps(FOUND)}}]},
        says(content=[{"type": "text", "text": "Inga Okoro."}],
             citations=[{"start": 0, "end": 4, "text": "Inga", "sources": []}]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_same_run_in_the_form_of_each_tool(form):
    graph = read(*FORMS[form], edges="data")
    assert graph.problem == ASKED
    assert graph.claims == (f"I look.\nlog({TEXT})", "Inga Okoro.")
    assert graph.features[:, graph.feature_names.index("n_calls")].tolist() == [1, 0]


@pytest.mark.parametrize("form", FORMS)
def test_what_a_tool_answers_is_read(form):
    """An argument that stands in an answer makes an edge, and only then."""
    more = [
        says(tool_calls=[{"id": "u", "function": {"name": "thank", "arguments": text}}])
        for text in (
            json.dumps({"who": "Inga Okoro"}),
            json.dumps({"who": "Ada Byron"}),
        )
    ]
    answered = [*FORMS[form][:-1], more[0]]
    assert read(*answered, edges="data").edges.tolist() == [[0, 1]]
    assert read(*FORMS[form][:-1], more[1], edges="data").edges.tolist() == []


REFUSED = {
    "OpenAI": says(refusal="I cannot do that."),
    "LangChain": {"type": "ai", "content": "", "additional_kwargs": {
        "refusal": "I cannot do that."}},
    "a part": says(content=[{"type": "refusal", "refusal": "I cannot do that."}]),
    "Responses": {"type": "message", "role": "assistant", "content": [
        {"type": "refusal", "refusal": "I cannot do that."}]},
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_a_refusal_is_what_the_agent_says(form):
    assert read(USER, REFUSED[form]).claims == ("I cannot do that.",)


#: Items of OpenAI's Responses that are calls, and what the step reads.
HOSTED = [
    ({"type": "web_search_call", "status": "completed",
      "action": {"type": "search", "query": "lamps"}},
     'web_search({"action": {"type": "search", "query": "lamps"}})'),
    ({"type": "file_search_call", "queries": ["lamps"], "results": [{"text": "x y z"}]},
     'file_search({"queries": ["lamps"]})'),
    ({"type": "code_interpreter_call", "code": "1 + 1", "container_id": "c",
      "outputs": [{"type": "logs", "logs": "2"}]},
     'code_interpreter({"code": "1 + 1"})'),
    ({"type": "computer_call", "call_id": "k", "action": {"type": "wait"}},
     'computer({"action": {"type": "wait"}})'),
    ({"type": "image_generation_call", "result": "aGk="}, "image_generation()"),
    ({"type": "local_shell_call", "call_id": "k", "action": {"command": ["ls"]}},
     'local_shell({"action": {"command": ["ls"]}})'),
    ({"type": "shell_call", "call_id": "k", "action": {"commands": ["ls"]}},
     'shell({"action": {"commands": ["ls"]}})'),
    ({"type": "apply_patch_call", "call_id": "k", "operation": {"path": "a.py"}},
     'apply_patch({"operation": {"path": "a.py"}})'),
    ({"type": "mcp_call", "name": "log", "arguments": TEXT, "server_label": "s",
      "output": "done"}, f"log({TEXT})"),
    ({"type": "custom_tool_call", "call_id": "k", "name": "sql", "input": "select 1"},
     "sql(select 1)"),
    ({"type": "mcp_approval_request", "name": "log", "arguments": TEXT,
      "server_label": "s"}, f"log({TEXT})"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "step"), HOSTED)
def test_hosted_calls_are_steps(item, step):
    message = {"type": "message", "role": "assistant", "content": "Done."}
    graph = read(USER, {"id": "i"} | item, message)
    assert graph.claims == (step, "Done.")
    assert graph.metadata["messages"] == [1, 2]
    if "call_id" in item:
        output = {"type": f"{item['type']}_output", "call_id": "k", "output": FOUND}
        after = {"type": "function_call", "call_id": "l", "name": "f", "arguments":
                 '{"who": "Inga Okoro"}'}  # fmt: skip
        graph = read(USER, {"id": "i"} | item, output, after, edges="data")
        assert graph.edges.tolist() == [[0, 1]]


def test_what_a_hosted_call_returned_is_its_observation():
    first = {
        "type": "mcp_call",
        "id": "i",
        "name": "a",
        "arguments": "{}",
        "output": "Okoro",
    }
    then = {"type": "mcp_call", "id": "j", "name": "b", "arguments": '{"who": "Okoro"}'}
    between = {"type": "message", "role": "assistant", "content": "Next."}
    graph = read(USER, first, between, then, edges="data")
    assert graph.claims == ("a({})", 'Next.\nb({"who": "Okoro"})')
    assert graph.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("call", "step"),
    [
        ({"type": "custom", "custom": {"name": "sql", "input": "drop"}}, "sql(drop)"),
        ({"type": "mcp", "mcp": {"name": "sql", "input": "drop"}}, "sql(drop)"),
        ({"function": "sql", "arguments": {"x": 1}}, 'sql({"x": 1})'),
        ({"name": "sql", "args": {"x": 1}}, 'sql({"x": 1})'),
        ({"tool_name": "sql", "statement": "drop"}, 'sql({"statement": "drop"})'),
        ({"function": {"name": "sql", "payload": "drop"}}, 'sql({"payload": "drop"})'),
    ],
)
def test_calls_of_other_types_and_with_other_keys(call, step):
    assert read(USER, says(tool_calls=[{"id": "a", **call}])).claims == (step,)


def test_two_calls_with_one_id_are_two_calls():
    one, two = (
        {"id": "a", "function": {"name": "pay", "arguments": json.dumps({"sum": n})}}
        for n in (1, 2)
    )
    assert read(USER, says(tool_calls=[one, two])).claims == (
        'pay({"sum": 1})\npay({"sum": 2})',
    )
    block = {"type": "tool_use", "id": "a", "name": "pay", "input": {"sum": 2}}
    assert read(USER, says(content=[block], tool_calls=[one])).claims == (
        'pay({"sum": 2})\npay({"sum": 1})',
    )


def test_an_item_that_was_logged_twice_is_one_call():
    """Handoffs are streamed as a call of a tool and as a handoff."""
    call = {"type": "function_call", "call_id": "k", "name": "pay", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "k", "output": "done"}
    assert read(USER, call, dict(call), output).claims == ("pay({})",)
    nameless = {"functionCall": {"name": "pay", "args": {"sum": 5}}}
    twice = {"role": "model", "parts": [nameless, nameless]}
    assert read(USER, twice).claims == ('pay({"sum": 5})\npay({"sum": 5})',)


def test_thoughts_alone_are_no_step():
    thought = says(content=[{"type": "thinking", "thinking": "hm"}])
    assert read(USER, thought, says(content="Done.")).claims == ("Done.",)


#: What no reader knows, and the key that the error has to name.
UNREAD = [
    (says(), "content"),
    (says(content=""), "content"),
    (says(content=[]), "content"),
    ({"role": "assistant", "content": None, "payload": {"pay": 1}}, "payload"),
    ({"role": "assistant", "body": "I pay."}, "body"),
    ({"type": "ai", "value": {"content": "I pay."}}, "value"),
    (says(content=[{"type": "widget", "code": "pay()"}]), "widget.*code"),
    (says(content=[{"type": "text", "txt": "pay()"}]), "txt"),
    (says(content=[{"type": "image", "data": "x"}]), "image.*data"),
    (says(content="I look.", actions=[{"name": "pay"}]), "actions"),
    (says(content="I look.", steps_taken=[{"name": "pay"}]), "steps_taken"),
    (says(content="I look.", toolRequests=[{"name": "pay"}]), "toolRequests"),
    (says(content="I look.", tool_code="pay()"), "tool_code"),
    (says(tool_calls=[{"id": "a", "payload": {"name": "pay"}}]), "payload"),
    (says(tool_calls="pay()"), "tool_calls"),
    ({"type": "weird_item", "id": "x", "stuff": 1}, "weird_item.*stuff"),
    (
        {"kind": "response", "parts": [{"part_kind": "file", "content": {}}]},
        "part_kind",
    ),
    ({"thinking": "hm", "action": {"pay": 1}}, "action"),
    (
        {"type": "ai", "tool_uses": [{"name": "pay"}], "data": {"content": "Hi."}},
        "tool_uses",
    ),
    (says(content=[{"thinking": "hm", "move": "pay()"}]), "move"),
    (says(content=[{"thinking": "hm", "text": "Hi.", "move": ["pay"]}]), "move"),
    (says(content=[{"text": "Hi.", "functionCall": {"name": "pay"}}]), "functionCall"),
    (says(content=[{"type": "text", "text": "Hi.", "then": {"name": "pay"}}]), "then"),
    ({"role": "user", "payload": "Pay."}, "payload"),
    (
        says(
            content="I look.",
            tool_calls=[{"id": "a", "name": "pay", "args": [], "kwargs": {"sum": 5}}],
        ),
        "kwargs",
    ),
    (says(content="I look.", closing="So I pay all of it."), "closing"),
    (says(tool_calls=[{"id": "a", "name": "look"}], message="I pay."), "message"),
    (
        {
            "type": "ai",
            "data": {
                "content": "Hi.",
                "additional_kwargs": {"toolUses": [{"name": "pay"}]},
            },
        },
        "additional_kwargs.*toolUses",
    ),
    (
        {
            "role": "user",
            "content": [{"type": "tool_use", "id": "t", "name": "pay", "input": {}}],
        },
        "pay",
    ),
    (
        {"role": "system", "content": "Go.", "function_call": {"name": "pay"}},
        "function_call",
    ),
    (
        {
            "role": "tool",
            "tool_call_id": "t",
            "content": "3",
            "tool_calls": [{"id": "u", "name": "pay"}],
        },
        "tool_calls",
    ),
    ({"role": "tool", "tool_call_id": "t"}, "tool_call_id"),
    ({"choices": [{"message": says(content="a")}] * 2}, "choices.*2"),
    ({"choices": [{"message": says(content="a")}], "then": "pay"}, "then"),
    ({"object": "response", "output": [{"type": "widget", "code": 1}]}, "widget.*code"),
    ({"object": "response", "text": "pay", "output": [{"x": 1}]}, "x"),
    ({"output": {"message": says(content="a"), "then": "pay"}}, "then"),
    (says(toolCalls=[{"id": "a", "name": "f"}], tool_calls=[{"id": "b", "name": "g"}]),
     "toolCalls"),
    (says(content=[{"type": "tool-approval-request", "toolCallId": "t", "to": "pay"}]),
     "to"),
    (says(parts=[{"type": "tool-pay", "toolCallId": "t", "state": "x", "input": {},
                  "approval": {"to": "all"}}]), "to"),
    (says(content=[{"type": "tool-approval-request", "toolCallId": "t", "reason": "pay"}]),
     "reason"),
    (says(content="I look.", sdk_http_response={"body": "pay"}), "sdk_http_response"),
    (says(content=[{"type": "data-pay", "data": {"sum": 5}, "to": "all"}]), "to"),
    ({"from": "gpt", "value": "I pay."}, "Remove.*from.*value"),
]  # fmt: skip


#: Keys next to a known form, of which the value would be approved without being read.
BESIDE = {
    "text": ["say", "next", "cmd", "decision", "recipient", "action_name", "handoff_to",
             "html", "final", "completion", "url", "error", "Text", "transcript"],
    "number": ["amount", "transfer"],
    "flag": ["approved", "execute"],
    "call": ["reasoning_tool_calls", "metadata", "response_metadata", "meta"],
}  # fmt: skip
VALUES = {"text": "pay", "number": 500, "flag": True,
          "call": {"tool_calls": [{"name": "pay", "args": {}}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"), [(k, VALUES[kind]) for kind in BESIDE for k in BESIDE[kind]]
)
def test_a_key_next_to_a_text_is_refused_unless_it_describes_the_message(key, value):
    with pytest.raises(ValueError, match=rf"message 1 .*{key}"):
        read(USER, says(content="I look.", **{key: value}))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "I look.", "content": "pay"},
        {"type": "text", "text": "I look.", "refusal": "No."},
        {"type": "thinking", "thinking": "hm", "tool_call": {"name": "pay"}},
        {"thought": True, "text": "hm", "move": "pay"},
        {"type": "step-start", "move": "pay"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "to": "pay"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "amount": 500},
    ],
)
def test_a_key_next_to_those_of_a_part_is_refused(part):
    with pytest.raises(ValueError, match=rf"message 1 .*{list(part)[-1]}"):
        read(USER, says(content=[{"type": "text", "text": "Hi."}, part]))


def test_a_thought_that_is_an_item_is_refused_if_it_acts():
    item = {
        "type": "reasoning",
        "id": "r",
        "summary": [],
        "tool_calls": [{"name": "f"}],
    }
    with pytest.raises(ValueError, match=r"message 1 .*tool_calls"):
        read(USER, item, says(content="Done."))


@pytest.mark.parametrize(
    "call",
    [
        {"function": {"name": "pay", "arguments": "{}"}, "arguments": {"sum": 500}},
        {"type": "custom", "input": "a", "custom": {"name": "pay", "input": "b"}},
    ],
)
def test_arguments_that_are_written_twice_must_be_equal(call):
    with pytest.raises(ValueError, match=r"message 1 .*(arguments|input)"):
        read(USER, says(tool_calls=[{"id": "t"} | call]))


def test_a_run_in_two_forms_is_refused():
    with pytest.raises(ValueError, match=r"messages.*spans"):
        spans = [span("a", input=SHORT, output=LAST)]
        from_runs([{"task": 1, "messages": [USER, says(content="a")], "spans": spans}])


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (says(content=42), "42"),
        (says(content=[["Hi."]]), "Hi."),
        ({"role": "bot", "content": "Hi.", "move": 1}, "bot.*move"),
        ({"role": "tool", "content": "3", "tool_responses": [1]}, "tool_responses"),
    ],
)
def test_what_cannot_be_read_at_all_is_shown(message, shown):
    with pytest.raises(ValueError, match=rf"message 1 .*{shown}"):
        read(USER, message)


@pytest.mark.parametrize(("message", "key"), UNREAD)
def test_what_is_not_read_is_refused_by_its_keys(message, key):
    with pytest.raises(ValueError, match=rf"message 1 .*{key}"):
        read(USER, message, says(content="Done."))


@pytest.mark.parametrize("message", [m for m, _ in UNREAD[:8]])
def test_the_command_writes_no_file_of_what_is_not_read(tmp_path, capsys, message):
    source, new = tmp_path / "log.jsonl", tmp_path / "new.jsonl"
    source.write_text(json.dumps({"task": 1, "messages": [USER, message]}) + "\n")
    assert main(["split", "--runs", str(source), "-o", str(new)]) == 2
    assert "message 1" in capsys.readouterr().err
    assert not new.exists()


@pytest.mark.parametrize(
    "more",
    [
        {"usage": {"tokens": 3}, "reasoning_content": "hm", "logprobs": [1.0]},
        {"model": "m", "stop_reason": "end", "name": "payer", "id": "call_output_3"},
        {
            "n_calls": 2,
            "output_tokens": 5,
            "tools": [],
            "actions": None,
            "content": "Hi.",
        },
        {"response_metadata": {"model": "m"}, "provider_specific_fields": {"a": 1}},
        {
            "content": [
                {
                    "type": "text",
                    "text": "Hi.",
                    "annotations": [{"url": "u"}],
                    "cache_control": {"type": "x"},
                    "id": "m",
                    "index": 0,
                }
            ]
        },
    ],
)
def test_what_only_describes_a_message_is_left_out(more):
    assert read(USER, says(content="Hi.") | more).claims == ("Hi.",)


#: A call of `pay` or a text in a form that stands next to one of FORMS, and its step.
NEXT_TO = {
    "chunks of LangChain that were joined": (
        {"type": "AIMessageChunk", "content": "",
         "tool_calls": [{"name": "pay", "args": {"sum": 5}, "id": "t"}],
         "tool_call_chunks": [{"name": "pay", "args": '{"sum": 5}', "id": "t", "index": 0}]},
        'pay({"sum": 5})'),
    "chunks of LangChain alone": (
        {"type": "AIMessageChunk", "content": "",
         "tool_call_chunks": [{"name": "pay", "args": '{"sum": 5}', "id": "t"}]},
        'pay({"sum": 5})'),
    "a block of which the JSON was streamed": (
        {"type": "ai", "content": [{"type": "tool_use", "id": "t", "name": "pay", "input": {},
                                    "partial_json": '{"sum": 5}', "index": 1}]},
        'pay({"sum": 5})'),
    "hosted tools among additional_kwargs": (
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_outputs": [
            {"type": "web_search_call", "id": "w", "action": {"query": "lamps"}}]}}},
        'web_search({"action": {"query": "lamps"}})'),
    "a generation of LangSmith": (
        {"text": "I pay.", "type": "ChatGeneration", "message": {
            "lc": 1, "type": "constructor", "id": ["langchain", "schema", "AIMessage"],
            "kwargs": {"content": "I pay."}}},
        "I pay."),
    "the blocks that LangChain stores": (
        {"type": "ai", "data": {"content": [], "content_blocks": [
            {"type": "text", "text": "I pay."},
            {"type": "tool_call", "name": "pay", "args": {}, "id": "t"}]}},
        "I pay.\npay({})"),
    "a choice of a reply": (
        {"index": 0, "finish_reason": "stop", "message": says(content="I pay.")}, "I pay."),
    "an item of a result of the Agents SDK": (
        {"type": "tool_call_item", "raw_item": {
            "type": "function_call", "call_id": "k", "name": "pay", "arguments": "{}"}},
        "pay({})"),
    "two kinds of arguments": (
        says(tool_calls=[{"id": "t", "name": "pay", "args": {"a": 1}, "input": {"sum": 5}}]),
        'pay({"args": {"a": 1}, "input": {"sum": 5}})'),
    "a call that Inspect could not parse": (
        says(tool_calls=[{"id": "t", "function": "pay", "arguments": {},
                          "parse_error": "no JSON: sum=5", "type": "function"}]),
        "pay(no JSON: sum=5)"),
    "a tool of the provider in Inspect": (
        says(content=[{"type": "tool_use", "tool_type": "web_search", "id": "w",
                       "name": "find", "arguments": "lamps", "result": "r", "error": None},
                      {"type": "text", "text": "Hi.", "internal": {"phase": "x"}}]),
        "Hi.\nfind(lamps)"),
    "code that Gemini runs": (
        {"role": "model", "parts": [
            {"executableCode": {"language": "PYTHON", "code": "2 + 2"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
            {"text": "Four."}]},
        'Four.\nexecutable_code({"language": "PYTHON", "code": "2 + 2"})'),
    "Bedrock with citations": (
        says(content=[{"citationsContent": {
            "content": [{"text": "I pay."}], "citations": [{"title": "t"}]}}]), "I pay."),
    "a call in a namespace": (
        says(tool_calls=[{"id": "t", "namespace": "bank", "name": "pay", "args": {}}]),
        "bank.pay({})"),
    "a tool that is called by another": (
        says(tool_calls=[{"id": "t", "name": "run", "tool_name": "pay", "args": {}}]),
        "run.pay({})"),
    "what the agent wrote as an instruction": (
        says(content=[{"type": "instruction", "text": "I pay."}]), "I pay."),
    "an event of Google's ADK": (
        {"content": {"role": "model", "parts": [{"text": "I pay."}]}, "author": "a",
         "invocationId": "e", "actions": {"stateDelta": {}, "artifactDelta": {}}},
        "I pay."),
    "Mastra, version 2": (
        {"role": "assistant", "content": {"format": 2, "content": "I pay.", "parts": [
            {"type": "text", "text": "I pay."}], "toolInvocations": [
            {"state": "call", "toolCallId": "t", "toolName": "pay", "args": {"a": 1}}]}},
        'I pay.\npay({"a": 1})'),
    "a tool that Mistral runs": (
        {"object": "entry", "type": "tool.execution", "name": "find", "arguments": "{}",
         "info": {}, "id": "x", "created_at": "2026"},
        "find({})"),
    "a whole completion": (
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": {},
         "choices": [{"index": 0, "finish_reason": "tool_calls", "message": says(
             content="I pay.", tool_calls=[{"id": "t", "type": "function", "function": {
                 "name": "pay", "arguments": "{}"}}])}]},
        "I pay.\npay({})"),
    "a whole response": (
        {"id": "x", "object": "response", "text": {"format": {"type": "text"}},
         "tools": [{"type": "web_search"}], "instructions": "Be short.", "output": [
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "message", "role": "assistant", "id": "m", "content": [
                {"type": "output_text", "text": "I pay.", "annotations": []}]},
            {"type": "function_call", "call_id": "t", "name": "pay", "arguments": "{}"}]},
        "I pay.\npay({})"),
    "a whole reply of Gemini": (
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "I pay."}]},
                         "finishReason": "STOP", "index": 0}],
         "usageMetadata": {"totalTokenCount": 3}, "modelVersion": "m"},
        "I pay."),
    "a reply of Gemini without a role": (
        {"candidates": [{"content": {"parts": [{"text": "I pay."}]}}], "createTime": "2026",
         "sdkHttpResponse": {"headers": {"a": "b"}}},
        "I pay."),
    "a completion of Azure": (
        {"choices": [{"message": says(content="I pay."), "content_filter_results": {
            "hate": {"filtered": False, "severity": "safe"}}}],
         "prompt_filter_results": [{"prompt_index": 0}]},
        "I pay."),
    "a whole reply of Bedrock": (
        {"output": {"message": says(content=[{"text": "I pay."}])}, "usage": {},
         "stopReason": "end_turn", "metrics": {"latencyMs": 1},
         "ResponseMetadata": {"HTTPStatusCode": 200}},
        "I pay."),
    "calls under toolCalls": (
        says(content="I pay.", toolCalls=[
            {"id": "t", "type": "function", "function": {"name": "pay", "arguments": "{}"}}]),
        "I pay.\npay({})"),
    "the protocol A2A": (
        {"kind": "message", "role": "agent", "messageId": "2", "parts": [
            {"kind": "text", "text": "I pay."}, {"kind": "data", "data": {"sum": 5}}]},
        'I pay.\n{"sum": 5}'),
    "A2A as protocol buffers write it": (
        {"role": "ROLE_AGENT", "content": [{"text": "I pay."}]}, "I pay."),
    "a call that a person approved": (
        {"role": "assistant", "parts": [
            {"type": "tool-pay", "toolCallId": "t", "state": "approval-responded",
             "input": {"sum": 5}, "approval": {"id": "a", "approved": True}}]},
        'pay({"sum": 5})'),
    "a call that a person must approve": (
        says(content=[
            {"type": "tool-call", "toolCallId": "t", "toolName": "pay", "input": {}},
            {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "t"}]),
        "pay({})"),
    "a message of Agno": (
        says(content="I pay.", from_history=False, stop_after_tool_call=True,
             add_to_agent_memory=True, created_at=1),
        "I pay."),
    "the end of a stream of LangChain": (
        {"type": "AIMessageChunk", "content": "I pay.", "chunk_position": "last"}, "I pay."),
    "a refusal that Inspect marks": (
        says(content=[{"type": "text", "text": "I do not pay.", "refusal": True}]),
        "I do not pay."),
    "the provider of pydantic-ai": (
        {"kind": "response", "provider_url": "https://a.example", "parts": [
            {"part_kind": "text", "content": "I pay."}]},
        "I pay."),
    "points of caches": (
        says(content=[{"text": "I pay."}, {"cachePoint": {"type": "default"}}]), "I pay."),
    "a container of Anthropic": (
        says(content=[{"type": "text", "text": "I pay."}], container={"id": "c"},
             context_management={"applied_edits": []}, stop_details=None),
        "I pay."),
    "a summary of thoughts": (
        says(content=[{"type": "reasoning_summary", "content": "hm"},
                      {"type": "text", "text": "I pay."}]),
        "I pay."),
}  # fmt: skip


@pytest.mark.parametrize("form", NEXT_TO)
def test_forms_next_to_those(form):
    message, step = NEXT_TO[form]
    assert read(USER, message).claims == (step,)


def test_tools_that_are_answered_by_their_names():
    call = says(tool_calls=[{"function": {"index": 0, "name": "log", "arguments": {}}}])
    answer = {"role": "tool", "tool_name": "log", "content": "Okoro"}
    then = says(tool_calls=[{"id": "u", "name": "thank", "args": {"who": "Okoro"}}])
    assert read(USER, call, answer, then, edges="data").edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "tool", "toolCallId": "t", "id": "m", "content": "Okoro"},
        {"role": "tool", "tool_call_id": "t", "content": "", "error": {"text": "Okoro"}},
        {"role": "tool", "tool_call_id": "t", "error": "Okoro"},
        {"role": "tool", "content": [{"type": "tool-error", "toolCallId": "t",
                                      "toolName": "log", "input": {}, "error": "Okoro"}]},
    ],
)  # fmt: skip
def test_answers_that_are_errors_or_have_other_names(answer):
    call = says(toolCalls=[{"id": "t", "name": "log", "args": {}}])
    then = says(tool_calls=[{"id": "u", "name": "thank", "args": {"who": "Okoro"}}])
    assert read(USER, call, answer, then, edges="data").edges.tolist() == [[0, 1]]


def test_messages_of_others_that_hold_no_text():
    """A failed check of pydantic-ai, the start of a session and a person's approval."""
    retry = {"part_kind": "retry-prompt", "tool_name": None, "content": [
        {"type": "missing", "loc": ["a"], "msg": "Field required", "input": {}}]}  # fmt: skip
    start = {"type": "system", "subtype": "init", "tools": ["Bash"], "cwd": "/x"}
    call = {"type": "tool-call", "toolCallId": "t", "toolName": "pay", "input": {}}
    approval = {"type": "tool-approval-response", "approvalId": "a", "approved": True}
    messages = [start, USER, says(content=[call]), {"role": "tool", "content": [approval]},
                {"kind": "request", "parts": [retry]}, says(content="Done.")]  # fmt: skip
    assert read(*messages).claims == ("pay({})", "Done.")


def test_lists_of_tools_that_were_found_are_no_step():
    search = {"type": "tool_search_call", "id": "s", "arguments": {"goal": "pay"}}
    found = {"type": "tool_search_output", "id": "o", "tools": [{"name": "pay"}]}
    said = {"type": "message", "role": "assistant", "content": "Done."}
    assert read(USER, search, found, said).claims == (
        'tool_search({"goal": "pay"})',
        "Done.",
    )


def test_a_run_without_messages_names_its_keys():
    with pytest.raises(ValueError, match=r"messages.*trajectory"):
        from_runs([{"task": 1, "trajectory": [USER]}])
    with pytest.raises(ValueError, match=r"str.*json\.loads"):
        from_runs([{"task": 1, "messages": "[]"}])


# ------------------------------------------------------------------------ spans


def part(role, text, **more):
    return {"role": role, "parts": [{"type": "text", "content": text, **more}]}


def span(id, parent=None, operation="chat", name="", input=(), output=(), **more):
    attributes = {"gen_ai.operation.name": operation, **more}
    if input or output:
        attributes["gen_ai.input.messages"] = json.dumps(input)
        attributes["gen_ai.output.messages"] = json.dumps(output)
    name = name or operation
    return {"name": name, "span_id": id, "parent_id": parent, "attributes": attributes}


def otlp(value):
    """A value as OTLP writes it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [entry(k, v) for k, v in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp(item) for item in value]}}
    return {} if value is None else {"stringValue": value}


def entry(key, value):
    return {"key": key, "value": otlp(value)}


SHORT = [part("user", ASKED)]
CALL = {"role": "assistant", "parts": [
    {"type": "thinking", "content": "hm"},
    {"type": "tool_call", "id": "t", "name": "log", "arguments": ORDER}]}  # fmt: skip
ANSWER = {"role": "tool", "parts": [
    {"type": "tool_call_response", "id": "t", "response": FOUND}]}  # fmt: skip
LAST = [part("assistant", "Inga Okoro.")]
STEPS = (f"log({TEXT})", "Inga Okoro.")
TOOL = {"gen_ai.tool.name": "log", "gen_ai.tool.call.id": "t"}


def claims_of(spans, **more):
    return (
        from_runs([{"task": 1, "spans": spans, **more}], edges="data").graphs[0].claims
    )


def test_the_run_is_that_of_the_agent_that_calls_the_others():
    """Below its tool runs an agent with twice as many messages."""
    below = [
        part("user", "Read it."),
        *[part("assistant", f"page {k}") for k in range(9)],
    ]
    spans = [
        span("a", name="invoke_agent porter", operation="invoke_agent"),
        span("b", "a", input=SHORT, output=[CALL]),
        span("c", "a", "execute_tool", **TOOL),
        span("d", "c", "invoke_agent", input=below, output=LAST),
        span("e", "d", input=below, output=LAST),
        span("f", "a", input=[*SHORT, CALL, ANSWER], output=LAST),
    ]
    assert claims_of(spans) == STEPS
    assert claims_of(spans[::-1]) == STEPS
    without_agents = [s | {"parent_id": None} for s in (spans[1], spans[5])]
    tool = [spans[2] | {"parent_id": None}]
    assert claims_of([*without_agents, *tool]) == STEPS
    # The model of an agent that was called as a tool, without a span of the agent.
    called = span("g", "c", input=below, output=LAST)
    assert claims_of([*without_agents, *tool, called]) == STEPS


def test_several_agents_of_which_none_calls_the_others_are_named():
    both = [
        span(
            "a",
            operation="invoke_agent",
            name="invoke_agent porter",
            input=SHORT,
            output=LAST,
        ),
        span(
            "b",
            operation="invoke_agent",
            name="invoke_agent cook",
            input=SHORT,
            output=LAST,
        ),
    ]
    with pytest.raises(ValueError, match=r"porter.*cook"):
        claims_of(both)
    other = [part("user", "Something else?")]
    chats = [span("a", input=SHORT, output=LAST), span("b", input=other, output=LAST)]
    with pytest.raises(ValueError, match="several runs"):
        claims_of(chats)


def test_a_tool_that_ran_without_a_call_is_named():
    spans = [
        span("a", operation="invoke_agent", input=SHORT, output=LAST),
        span("c", "a", "execute_tool", **TOOL),
    ]
    with pytest.raises(ValueError, match=r"'t'.*'log'"):
        claims_of(spans)
    nameless = span("c", "a", "execute_tool", **{"gen_ai.tool.name": "log"})
    with pytest.raises(ValueError, match="'log'"):
        claims_of([spans[0], nameless])


def test_a_call_that_only_another_span_holds_is_named():
    """Some instrumentations leave calls out of the input of the next request."""
    spans = [span("a", input=SHORT, output=[CALL]), span("b", input=SHORT, output=LAST)]
    with pytest.raises(ValueError, match=r"'t'.*'log'|'log'.*'t'"):
        claims_of(spans)


@pytest.mark.parametrize("shorter", ["before", "after", "in another trace"])
def test_a_text_that_only_another_span_holds_is_named(shorter):
    """History may be cut or summarized between two requests."""
    more = [*SHORT, part("assistant", "I look."), part("user", "And?")]
    spans = [span("a", input=SHORT, output=[part("assistant", "It was Ada.")]),
             span("b", input=more, output=LAST)]  # fmt: skip
    if shorter == "after":
        spans.reverse()
    if shorter == "in another trace":
        spans = [s | {"span_id": "a", "trace_id": str(i)} for i, s in enumerate(spans)]
    with pytest.raises(ValueError, match="It was Ada"):
        claims_of(spans)


@pytest.mark.parametrize(
    "lost",
    [
        {"content": "It was Ada."},
        {"content": None, "tool_calls": [{"id": "Ada", "function": {"name": "log"}}]},
    ],
)
def test_steps_that_are_lost_in_messages_of_other_forms(lost):
    """The input of the second request holds the user's message alone."""
    asked, said = {"role": "user", "content": ASKED}, {"role": "assistant"}
    first = span("a", input=[asked], output=[said | lost])
    second = span("b", input=[asked], output=[said | {"content": "Inga."}])
    with pytest.raises(ValueError, match="Ada"):
        claims_of([first, second])
    second = span("b", input=[asked, said | lost], output=[said | {"content": "I."}])
    assert len(claims_of([first, second])) == 2


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        (
            "tools/call log",
            {"gen_ai.tool.name": "log", "mcp.method.name": "tools/call"},
        ),
        ("running tool", {"gen_ai.tool.name": "log", "tool_arguments": "{}"}),
        ("log", {"openinference.span.kind": "TOOL", "tool.name": "log"}),
        ("log.tool", {"traceloop.span.kind": "tool"}),
        ("log", {"langfuse.observation.type": "tool"}),
        ("ai.toolCall", {"ai.toolCall.name": "log", "ai.toolCall.id": "t"}),
        ("tools/call log", {"mcp.method.name": "tools/call"}),
    ],
)
@pytest.mark.parametrize("said", ["Inga Okoro.", "log", '"log"'])
def test_tools_of_other_names_need_their_calls(name, attributes, said):
    tool = {"name": name, "span_id": "t", "parent_id": "a", "attributes": attributes}
    agent = span("a", input=SHORT, output=[part("assistant", said)])
    with pytest.raises(ValueError, match="'log'"):
        claims_of([agent, tool])
    called = span("a", input=[*SHORT, CALL, ANSWER], output=LAST)
    assert claims_of([called, tool]) == STEPS


@pytest.mark.parametrize("form", ["parentSpanContext", "parent", "parentId"])
def test_the_parents_of_other_exporters(form):
    below = [part("user", ASKED), *[part("assistant", f"page {k}") for k in range(9)]]
    agent = span(
        "a", operation="invoke_agent", name="invoke_agent a", input=SHORT, output=LAST
    )
    other = span(
        "b", operation="invoke_agent", name="invoke_agent b", input=below, output=LAST
    )
    other[form] = {"parentSpanContext": {"spanId": "a"}, "parent": {"span_id": "0xa"},
                   "parentId": "a"}[form]  # fmt: skip
    agent["id"] = agent.pop("span_id")
    assert claims_of([other, agent]) == ("Inga Okoro.",)


def test_the_agents_of_older_names():
    below = [
        part("user", "Read it."),
        *[part("assistant", f"page {k}") for k in range(9)],
    ]
    spans = [
        span("a", name="agent run"),
        span("b", "a", input=SHORT, output=[CALL]),
        span("c", "a", name="running tool", **TOOL),
        span("d", "c", name="agent run"),
        span("e", "d", input=below, output=LAST),
        span("f", "a", input=[*SHORT, CALL, ANSWER], output=LAST),
    ]
    assert claims_of(spans) == STEPS


def test_messages_that_the_exporter_cut_are_named():
    one = span("a", input=SHORT, output=LAST)
    cut = one["attributes"]["gen_ai.input.messages"][:-9]
    one["attributes"]["gen_ai.input.messages"] = cut
    with pytest.raises(ValueError, match=r"gen_ai\.input\.messages.*limit"):
        claims_of([one])


@pytest.mark.parametrize("wrapping", ["trace", "data", "resourceLogs"])
def test_what_is_no_span_is_refused_by_its_keys(wrapping):
    with pytest.raises(ValueError, match=wrapping):
        claims_of({wrapping: [span("a", input=SHORT, output=LAST)]})


def test_tools_below_the_spans_of_the_model():
    """The agent's own span may hold no messages, and its tools may lie below its model."""
    spans = [
        span("i", operation="invocation"),
        span("a", "i", "invoke_agent"),
        span("c", "a", "call_llm"),
        span("g", "c", "generate_content", input=SHORT, output=[CALL]),
        span("t", "g", "execute_tool", **TOOL),
        span("h", "c", "generate_content", input=[*SHORT, CALL, ANSWER], output=LAST),
    ]
    assert claims_of(spans) == STEPS


def test_answers_of_which_the_call_was_stripped_are_refused():
    """Parts of tools that became text name no call."""
    answer = json.dumps([{"type": "tool-result", "toolCallId": "t", "output": "7"}])
    messages = [*SHORT, part("assistant", "I look."), part("tool", answer)]
    with pytest.raises(ValueError, match="message 2"):
        claims_of([span("a", input=messages, output=LAST)])


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    "kind",
    ["file", "list of files", "the run itself", "scopes", "a scope", "old", "bytes"],
)
def test_whole_files_of_otlp(structured, kind):
    messages = {
        "gen_ai.input.messages": [*SHORT, CALL, ANSWER],
        "gen_ai.output.messages": LAST,
    }
    if not structured:
        messages = {key: json.dumps(value) for key, value in messages.items()}
    attributes = [entry(k, v) for k, v in messages.items()]
    attributes += [entry("gen_ai.usage.input_tokens", 3), entry("streams", True)]
    if kind == "bytes" and not structured:
        for held in attributes[:2]:
            text = held["value"].pop("stringValue").encode()
            held["value"]["bytesValue"] = base64.b64encode(text).decode()
    one = {"traceId": "x", "spanId": "a", "name": "chat", "attributes": attributes}
    scopes = [{"scope": {}, "spans": [one]}]
    file = {"resourceSpans": [{"resource": {}, "scopeSpans": scopes}]}
    run = {
        "file": {"spans": file},
        "list of files": {"spans": [file]},
        "scopes": {"spans": {"scopeSpans": scopes}},
        "the run itself": file,
        "a scope": {"scopeSpans": scopes},
        "old": {"resource_spans": [{"instrumentationLibrarySpans": scopes}]},
        "bytes": {"spans": file},
    }[kind]
    assert from_runs([{"task": 1, **run}], edges="data").graphs[0].claims == STEPS


def test_messages_in_an_event_of_a_span():
    attributes = {"gen_ai.input.messages": SHORT, "gen_ai.output.messages": LAST}
    events = [
        {"name": "gen_ai.client.inference.operation.details", "attributes": attributes}
    ]
    assert claims_of([{"name": "chat", "events": events}]) == ("Inga Okoro.",)


@pytest.mark.parametrize(
    ("key", "tool"),
    [
        ("langfuse.observation.input", "Langfuse"),
        ("llm.input_messages.0.message.content", "OpenInference"),
        ("gen_ai.prompt.0.content", "OpenLLMetry"),
        ("gen_ai.prompt", "OpenLLMetry"),
        ("pydantic_ai.all_messages", "pydantic-ai"),
        ("traceloop.entity.input", "OpenLLMetry"),
        ("langsmith.span.kind", "LangSmith"),
        ("mlflow.spanInputs", "MLflow"),
        ("ai.prompt.messages", "Vercel"),
        ("gen_ai.choice", "older"),
        ("my.own.key", "capture of message"),
    ],
)
def test_spans_in_other_forms_are_named(key, tool):
    with pytest.raises(ValueError, match=rf"{key}.*{tool}"):
        claims_of([{"name": "x", "attributes": {key: "Pay."}}])


def test_attributes_as_nested_objects_and_as_columns():
    inner = {"input": {"messages": SHORT}, "output": {"messages": LAST}}
    nested = {"name": "chat", "attributes": {"gen_ai": inner}}
    assert claims_of([nested]) == ("Inga Okoro.",)
    columns = {"name": "chat", "context.span_id": "a", "attributes.gen_ai": inner,
               "attributes.output.value": None}  # fmt: skip
    tool = {"name": "log", "parent_id": "a", "attributes.gen_ai.tool.name": "log",
            "context.span_id": "b"}  # fmt: skip
    assert claims_of([columns]) == ("Inga Okoro.",)
    with pytest.raises(ValueError, match="'log'"):
        claims_of([columns, tool])
    for span_ in ({"attributes": {"llm": {"input_messages": [USER]}}},
                  {"attributes.llm.input_messages": [USER]}):  # fmt: skip
        with pytest.raises(ValueError, match=r"llm\.input_messages.*OpenInference"):
            claims_of([{"name": "x", **span_}])
    inner["output"] = {"messages": LAST[0]}
    with pytest.raises(ValueError, match=r"gen_ai\.output\.messages.*dict"):
        claims_of([nested])


def test_other_messages_in_the_same_span_are_refused():
    """Both are what the agent said, so none may win."""
    other = [part("assistant", "It was Ada.")]
    nested = {"gen_ai": {"output": {"messages": other}}, "gen_ai.output.messages": LAST}
    events = [
        {"attributes": {"gen_ai.output.messages": said}} for said in (LAST, other)
    ]
    last = {"gen_ai.output.messages": json.dumps(LAST)}
    both = {"attributes": last, "events": events[1:]}
    for more in ({"attributes": nested}, {"events": events}, both):
        with pytest.raises(ValueError, match=r"gen_ai\.output\.messages.*twice"):
            claims_of([{"name": "chat", **more}])
    same = {"name": "chat", "attributes": last, "events": events[:1] * 2}
    assert claims_of([same]) == ("Inga Okoro.",)


@pytest.mark.parametrize(
    "more",
    [{"attributes": "{}"}, {"attributes": [1]}, {"attributes": [{"value": 1}]},
     {"events": "[]"}, {"events": ["x"]}, {"context": "a", "context.span_id": "a"}],
)  # fmt: skip
def test_spans_of_another_form_are_shown(more):
    with pytest.raises(ValueError, match=r"attributes of each span.*chat"):
        claims_of([{"name": "chat", "attributes": {}} | more])


def test_messages_as_events_of_older_conventions_are_named():
    events = [{"name": "gen_ai.user.message", "attributes": {"content": ASKED}},
              {"name": "gen_ai.choice", "attributes": {"message": "Inga Okoro."}}]  # fmt: skip
    with pytest.raises(ValueError, match=r"gen_ai\.choice.*OTEL_SEMCONV"):
        claims_of([{"name": "chat", "attributes": {}, "events": events}])


def test_spans_of_jaeger_and_zipkin_are_refused_by_their_keys():
    tags = {"gen_ai.input.messages": "[]", "gen_ai.output.messages": "[]"}
    with pytest.raises(ValueError, match=r"tags.*OTLP"):
        claims_of([{"id": "a", "name": "chat", "tags": tags}])


@pytest.mark.parametrize("spans", [3, "spans", [3], None])
def test_spans_are_objects(spans):
    with pytest.raises(ValueError, match="spans"):
        claims_of(spans)
