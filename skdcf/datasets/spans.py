"""Spans of OpenTelemetry (``gen_ai.*``): the messages of the agent that the run is of.

Every span of a model repeats the messages before it, so that one span holds the whole run.
Agents that the run's agent calls as tools have spans of their own, which may be longer.
"""

from __future__ import annotations

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
    "spans",
)
#: Beginnings of the keys of other conventions, by which their spans are known.
_OTHERS = {
    "langfuse.": "Langfuse",
    "llm.": "OpenInference",
    "openinference.": "OpenInference",
    "input.value": "OpenInference",
    "traceloop.": "OpenLLMetry",
    "gen_ai.prompt.": "OpenLLMetry",
    "gen_ai.completion.": "OpenLLMetry",
}


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
    own = agents + [
        span
        for span, owner in placed
        if not (_is_agent(span) or _is_tool(span))
        and (id(owner) in of_agent if agents else owner is None)
    ]
    _refuse_several(agents or [span for span in own if span.messages])
    longest: list[Any] = []
    for span in own:
        if len(span.messages) >= len(longest):
            longest = span.messages
    if not longest:
        raise ValueError(_nothing_found(own))
    tools = [
        span
        for span, owner in placed
        if _is_tool(span) and (owner is None or id(owner) in of_agent)
    ]
    _refuse_unseen_tools(tools, longest)
    _refuse_lost_calls(own, longest)
    return longest


def _flat(spans: Any) -> Iterator[Mapping[str, Any]]:
    """The spans of lists, and of whole files of OTLP."""
    if isinstance(spans, Mapping):
        inner = [spans[key] for key in _NESTED if key in spans]
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
    context = span.get("context") or {}
    ids = (span.get("span_id"), span.get("spanId"), context.get("span_id"))
    parents = (
        span.get("parent_id"),
        span.get("parentSpanId"),
        span.get("parent_span_id"),
    )
    messages: list[Any] = []
    for key in _MESSAGES:
        value = attributes.get(key) or []
        value = json.loads(value) if isinstance(value, str) else value
        if not isinstance(value, list):
            raise ValueError(f"{key} is a {type(value).__name__}, but must be a list")
        messages += value
    return _Span(
        id=_first(ids),
        parent=_first(parents),
        name=str(span.get("name") or ""),
        operation=str(attributes.get("gen_ai.operation.name") or ""),
        attributes=attributes,
        messages=messages,
    )


def _first(ids):
    """The first id that is there, without the prefix that some exporters write."""
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
        return content
    return None


def _is_agent(span):
    return span.operation == "invoke_agent" or span.name.startswith("invoke_agent")


def _is_tool(span):
    return span.operation == "execute_tool" or span.name.startswith("execute_tool")


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
    text = json.dumps(messages)
    for span in tools:
        id = span.attributes.get("gen_ai.tool.call.id")
        name = span.attributes.get("gen_ai.tool.name") or span.name.split(" ")[-1]
        known = id if id is not None else name
        if json.dumps(known) not in text:
            raise ValueError(
                f"the tool {name!r} ran (span {span.id}), but no message holds the call "
                f"{known!r}: the messages of the spans are not the whole run"
            )


def _refuse_lost_calls(spans, messages):
    """ValueError if a call that another span holds is in no message of the run."""
    known = {id for id, _ in _calls_in(messages)}
    for span in spans:
        for id, name in _calls_in(span.messages):
            if id not in known:
                raise ValueError(
                    f"span {span.id} calls the tool {name!r} ({id!r}), but the span with the most "
                    "messages does not hold this call: its messages are not the whole run"
                )


def _calls_in(messages):
    """The ids and names of the calls in messages of parts."""
    for message in messages:
        parts = message.get("parts") if isinstance(message, Mapping) else None
        calls = [p for p in parts or () if isinstance(p, Mapping) and "id" in p]
        for call in calls:
            if call.get("type") == "tool_call" and call["id"] is not None:
                yield str(call["id"]), call.get("name")


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
