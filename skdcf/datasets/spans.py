"""Spans of OpenTelemetry (``gen_ai.*``): the messages of the agent that the run is of.

Every span of a model repeats the messages before it, so that one span holds the whole run.
Agents that the run's agent calls as tools have spans of their own, which may be longer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
#: Where an OTLP file holds its spans, from the outside to the inside.
_NESTED = (
    "resourceSpans",
    "resource_spans",
    "batches",
    "scopeSpans",
    "scope_spans",
    "instrumentationLibrarySpans",
    "spans",
)
#: Keys of a span, by at least one of which it is known, and where it has its ids.
_OF_SPAN = ("attributes", "events", "name", "span_id", "spanId", "context")
_IDS = ("span_id", "spanId", "id")
_PARENTS = ("parent_id", "parentSpanId", "parent_span_id", "parentId")
#: Beginnings of the keys of other conventions, by which their spans are known.
_OTHERS = {
    "langfuse.": "Langfuse",
    "llm.": "OpenInference",
    "openinference.": "OpenInference",
    "input.value": "OpenInference",
    "traceloop.": "OpenLLMetry",
    "gen_ai.prompt.": "OpenLLMetry",
    "gen_ai.completion.": "OpenLLMetry",
    "langsmith.": "LangSmith",
    "mlflow.": "MLflow",
    "ai.": "the AI SDK of Vercel",
}


_TOOL_NAMES = ("gen_ai.tool.name", "tool.name")


class _Span(NamedTuple):
    """A span: its place in the trace, what it does, and the messages that it holds."""

    id: str | None
    parent: str | None
    name: str
    operation: str
    attributes: dict[str, Any]
    messages: list[Any]


def messages_of_spans(spans: Any) -> list[Any]:
    """The messages of the agent that calls all others.

    Parameters
    ----------
    spans : list of dict
        Spans as an exporter writes them, or files in the form of OTLP (``resourceSpans``).

    Returns
    -------
    list of dict
        Those of its span that has the most; of several such spans, the last.

    Raises
    ------
    ValueError
        If no span holds messages, if there are several agents and none calls the others,
        or if a tool ran that no message calls.
    """
    spans = [_read(span) for span in _flat(spans)]
    if not any(span.messages for span in spans):
        raise ValueError(_nothing_found(spans))
    by_id = {span.id: span for span in spans if span.id is not None}
    owners = [_owner(span, by_id) for span in spans]
    placed = list(zip(spans, owners, strict=True))
    agents = [span for span, owner in placed if _is_agent(span) and owner is None]

    # The span of the agent itself may hold less than those of its calls of the model. What
    # lies below a tool or below another agent belongs to somebody else.
    of_agent = {id(agent) for agent in agents}
    model_spans = agents + [
        span
        for span, owner in placed
        if not (_is_agent(span) or _is_tool(span))
        and (id(owner) in of_agent if agents else owner is None)
    ]
    _refuse_several(agents or [span for span in model_spans if span.messages])
    longest: list[Any] = []
    for span in model_spans:
        if len(span.messages) >= len(longest):
            longest = span.messages
    if not longest:
        raise ValueError(_nothing_found(model_spans))
    tools = [
        span
        for span, owner in placed
        if _is_tool(span) and (owner is None or id(owner) in of_agent)
    ]
    _refuse_unseen_tools(tools, longest)
    _refuse_lost_steps(model_spans, longest)
    return longest


def is_otlp(run: Mapping[str, Any]) -> bool:
    """Whether a run is a file of OTLP, or a part of one.

    Parameters
    ----------
    run : dict

    Returns
    -------
    bool
    """
    return any(key in run for key in _NESTED)


def _flat(spans: Any) -> Iterator[Mapping[str, Any]]:
    """The spans of lists, and of whole files of OTLP."""
    if isinstance(spans, Mapping):
        inner = [spans[key] for key in _NESTED if key in spans]
        if not inner and not any(key in spans for key in _OF_SPAN):
            raise ValueError(
                f"an object among the spans has the keys {list(spans)[:20]}, but a span has "
                '"attributes", and an OTLP file "resourceSpans"'
            )
        if not inner:
            yield spans
        for value in inner:
            yield from _flat(value)
    elif isinstance(spans, list | tuple):
        for span in spans:
            yield from _flat(span)
    else:
        raise ValueError(
            f"spans holds a {type(spans).__name__}, but must be a list of spans, or an OTLP "
            'file as an object with "resourceSpans"'
        )


def _read(span):
    """A span, whichever exporter wrote it."""
    attributes = _values(span.get("attributes"))
    for event in span.get("events") or ():
        attributes = _values(event.get("attributes")) | attributes
    messages: list[Any] = []
    for key in _MESSAGES:
        value = attributes.get(key) or []
        try:
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(
                f"{key} of the span {span.get('name')!r} is no whole JSON ({error}): raise the "
                "limit for the length of attributes where the spans are made"
            ) from error
        if not isinstance(value, list):
            raise ValueError(f"{key} is a {type(value).__name__}, but must be a list")
        messages += value
    return _Span(
        id=_id_in(span, _IDS, ("context", "spanContext")),
        parent=_id_in(span, _PARENTS, ("parent", "parentSpanContext")),
        name=str(span.get("name") or ""),
        operation=str(attributes.get("gen_ai.operation.name") or ""),
        attributes=attributes,
        messages=messages,
    )


def _id_in(span, keys, contexts):
    """The id under one of the keys, or in a context; without the prefix that some write."""
    ids = [span.get(key) for key in keys]
    for context in map(span.get, contexts):
        if isinstance(context, Mapping):
            ids += [context.get(key) for key in _IDS]
    return next((str(id).removeprefix("0x") for id in ids if id), None)


def _values(attributes):
    """Attributes as a dict; OTLP has a list of keys and of values with their types."""
    if isinstance(attributes, list | tuple):
        return {entry["key"]: _value(entry.get("value")) for entry in attributes}
    return dict(attributes or {})


def _value(value):
    """A value of OTLP, which is an object with its type as the one key."""
    if not isinstance(value, Mapping):
        return value
    for kind, content in value.items():
        kind = kind.replace("_", "").lower()
        if kind == "arrayvalue":
            return [_value(item) for item in (content or {}).get("values") or ()]
        if kind == "kvlistvalue":
            return _values((content or {}).get("values") or [])
        if kind == "intvalue":
            return int(content)
        if kind == "bytesvalue":
            return base64.b64decode(content).decode("utf-8", "replace")
        return content
    return None


def _is_agent(span):
    return span.operation == "invoke_agent" or span.name.startswith(
        ("invoke_agent", "agent run")
    )


def _is_tool(span):
    return (
        span.operation == "execute_tool"
        or span.name.startswith("execute_tool")
        or any(key in span.attributes for key in _TOOL_NAMES)
    )


def _owner(span, by_id):
    """The nearest span above of an agent or of a tool, or None."""
    seen = set()
    above = by_id.get(span.parent)
    while above is not None and above.id not in seen:
        if _is_agent(above) or _is_tool(above):
            return above
        seen.add(above.id)
        above = by_id.get(above.parent)
    return None


def _refuse_several(agents):
    """ValueError if the spans are those of several agents, or of several questions."""
    names = {str(a.attributes.get("gen_ai.agent.name") or a.name): None for a in agents}
    questions = {}
    for agent in agents:
        asked = [m for m in agent.messages if isinstance(m, Mapping)]
        asked = [
            m.get("parts", m.get("content")) for m in asked if m.get("role") == "user"
        ]
        questions.update({json.dumps(part): None for part in asked[:1]})
    of_agents = any(map(_is_agent, agents))
    if (of_agents and len(names) > 1) or len(questions) > 1:
        raise ValueError(
            f"the spans are those of several runs, {list(names)[:5]}, and none of them calls "
            "the others: pass the spans of one agent, with those of the tools and agents "
            "that it calls"
        )


def _refuse_unseen_tools(tools, messages):
    """ValueError if a tool ran whose call is in no message."""
    known = set(_names_in(messages))
    for span in tools:
        id = span.attributes.get("gen_ai.tool.call.id")
        names = [span.attributes[key] for key in _TOOL_NAMES if key in span.attributes]
        name = names[0] if names else span.name.split(" ")[-1]
        call = name if id is None else id
        if str(call) not in known:
            raise ValueError(
                f"the tool {name!r} ran (span {span.id}), but no message holds the call "
                f"{call!r}: the messages of the spans are not the whole run"
            )


def _names_in(value):
    """Yield ids and names anywhere in messages: what is neither a text nor an argument."""
    if isinstance(value, Mapping):
        for key, held in value.items():
            is_text = isinstance(held, str) and key in ("content", "text")
            if not is_text and key != "arguments":
                yield from _names_in(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _names_in(held)
    elif isinstance(value, str | int):
        yield str(value)


def _refuse_lost_steps(spans, messages):
    """ValueError if a step that another span holds is in no message of the run."""
    known = {step for step, _ in _steps_in(messages)}
    for span in spans:
        for step, said in _steps_in(span.messages):
            if step not in known:
                raise ValueError(
                    f"span {span.id} holds the step {said}, but the span with the most "
                    "messages does not hold it: its messages are not the whole run"
                )


def _steps_in(messages):
    """Yield what the agent says and calls in messages, each with its description."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        said = message.get("parts") or message.get("content") or []
        parts = [{"type": "text", "content": said}] if isinstance(said, str) else said
        calls = [
            call
            for call in message.get("tool_calls") or ()
            if isinstance(call, Mapping)
        ]
        for part in [*parts, *({**call, "type": "tool_call"} for call in calls)]:
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "tool_call" and part.get("id") is not None:
                yield (
                    ("call", str(part["id"])),
                    f"{part.get('name')!r} ({part['id']!r})",
                )
            text = part.get("content")
            is_said = part.get("type") == "text" and message.get("role") == "assistant"
            if is_said and isinstance(text, str):
                yield ("text", " ".join(text.split())), f"{text!r:.60}"


def _nothing_found(spans):
    """What to do if no span holds messages."""
    keys = sorted({key for span in spans for key in span.attributes})
    starts = [
        tool
        for start, tool in _OTHERS.items()
        if any(k.startswith(start) for k in keys)
    ]
    hint = (
        f". They are in the form of {starts[0]}, which is not read: pass its messages as "
        '"messages" instead'
        if starts
        else ": the content of messages has to be captured where the spans are made"
    )
    return (
        f"no span has the attributes {_MESSAGES[0]} and {_MESSAGES[1]}, but {len(spans)} spans "
        f"have {keys[:20]}{hint}"
    )
