"""Messages of an agent's run, in the forms in which logs have them, as those of a chat.

Messages of OpenAI's chats stay as they are. Those of LangChain have a type in place of a
role, and calls that are parsed. OpenAI's Responses, which its Agents SDK keeps, have an item
for each call. In spans of OpenTelemetry (``gen_ai.*``) a message consists of parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_ROLES = {"human": "user", "ai": "assistant"}
_OF_SPAN = ("gen_ai.input.messages", "gen_ai.output.messages")


def chat_messages(run: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages of a run as those of a chat.

    Parameters
    ----------
    run : dict
        With ``messages``, or with ``spans``, of which the one with most messages tells
        the whole run.

    Yields
    ------
    position : int
        Of the message in the run, of several items that are one message that of the first.
    message : dict
        With ``role``, ``content``, ``tool_calls`` and ``tool_call_id``.
    """
    messages = _messages_of_spans(run["spans"]) if "spans" in run else run["messages"]
    if not isinstance(messages, list | tuple):
        raise ValueError(
            f"messages is a {type(messages).__name__}, but must be a list of messages"
        )
    response: list[tuple[int, dict[str, Any]]] = []
    for position, message in enumerate(messages):
        with naming(position):
            kind = message.get("type")
            if kind == "reasoning":
                continue

            # Calls that follow each other were decided on together, with the text before them.
            if kind == "function_call":
                if not response:
                    response = [(position, {"role": "assistant", "tool_calls": []})]
                call = {"id": message["call_id"], "function": message}
                response[0][1].setdefault("tool_calls", []).append(call)
                continue
            yield from response
            response = []

            if kind == "message" and message.get("role") == "assistant":
                response = [(position, dict(message))]
            elif kind == "function_call_output":
                name, content = message["call_id"], message["output"]
                yield (
                    position,
                    {"role": "tool", "tool_call_id": name, "content": content},
                )
            elif "parts" in message:
                for part in _of_parts(message["role"], message["parts"]):
                    yield position, part
            else:
                role = message.get("role") or _ROLES.get(str(kind), kind)
                calls = [*map(_as_function, message.get("tool_calls") or ())]
                yield position, {**message, "role": role, "tool_calls": calls}
    yield from response


@contextmanager
def naming(position: int) -> Iterator[None]:
    """Name the message whose shape is another one than that of any known form.

    Parameters
    ----------
    position : int
        Of the message in the run.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"message {position} is not as any known log has it: a message is an object with "
            "a role and a content, which is a text or a list of parts, and calls have an id, "
            "a name and arguments"
        ) from error


def _as_function(call):
    """A call with the name and the arguments where a chat has them."""
    if "function" in call:
        return call
    function = {"name": call["name"], "arguments": call["args"]}
    return {"id": call.get("id"), "function": function}


def _of_parts(role, parts):
    """A message of parts: what it says and calls, and what tools answered."""
    content = []
    calls = []
    for part in parts:
        if part["type"] == "tool_call_response":
            answer = part.get("response", part.get("result"))
            text = answer if isinstance(answer, str) else json.dumps(answer)
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": text}
        elif part["type"] == "tool_call":
            calls.append({"id": part.get("id"), "function": part})
        elif part["type"] != "reasoning":
            content.append({"type": part["type"], "text": part.get("content")})
    if role != "tool":
        yield {"role": role, "content": content, "tool_calls": calls}


def _messages_of_spans(spans):
    """The messages of the span that has the most; of several such spans, the last."""
    longest = []
    for span in spans:
        attributes = span.get("attributes") or {}
        if isinstance(attributes, list):  # which is how OTLP writes them
            attributes = {
                entry["key"]: entry["value"].get("stringValue") for entry in attributes
            }
        messages = []
        for name in _OF_SPAN:
            value = attributes.get(name) or []
            messages += json.loads(value) if isinstance(value, str) else value
        if len(messages) >= len(longest):
            longest = messages
    if not longest:
        raise ValueError(
            f"no span has the attributes {_OF_SPAN[0]} and {_OF_SPAN[1]}: the content of "
            "messages has to be captured where the spans are made"
        )
    return longest
