"""Extract agent messages from OpenTelemetry spans (``gen_ai.*``).

Every model span repeats the earlier messages, so one span contains the whole run. Agents that
are called as tools have their own spans, which may contain more messages.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
#: Keys that contain the spans in an OTLP file, from the outermost to the innermost.
_NESTED = (
    "resourceSpans",
    "resource_spans",
    "batches",
    "scopeSpans",
    "scope_spans",
    "instrumentationLibrarySpans",
    "spans",
)
#: Keys by which a span is recognised, and keys for the id of a span.
_OF_SPAN = ("attributes", "events", "name", "span_id", "spanId", "context")
_IDS = ("span_id", "spanId", "id")
_PARENTS = ("parent_id", "parentSpanId", "parent_span_id", "parentId")
#: Prefixes of the attributes in other tracing conventions.
_OTHERS = {
    "langfuse.": "Langfuse",
    "traceloop.": "OpenLLMetry",
    "gen_ai.prompt": "OpenLLMetry",
    "gen_ai.completion": "OpenLLMetry",
    **dict.fromkeys(
        ("gen_ai.user.message", "gen_ai.choice"),
        "older OpenTelemetry conventions "
        "(set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental)",
    ),
    "llm.": "OpenInference",
    "openinference.": "OpenInference",
    "input.value": "OpenInference",
    "pydantic_ai.": "pydantic-ai",
    "all_messages_events": "pydantic-ai",
    "langsmith.": "LangSmith",
    "mlflow.": "MLflow",
    "ai.": "the AI SDK of Vercel",
}


_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "mcp.tool.name", "ai.toolCall.name")
#: Attributes of tool spans in other tracing conventions.
_TOOL_KINDS = {
    "openinference.span.kind": "TOOL",
    "traceloop.span.kind": "tool",
    "langfuse.observation.type": "tool",
    "mcp.method.name": "tools/call",
}


class _Span(NamedTuple):
    """Span of a trace, with its position, its operation and its messages."""

    id: str | None
    parent: str | None
    name: str
    operation: str
    attributes: dict[str, Any]
    messages: list[Any]


def messages_of_spans(spans: Any) -> list[Any]:
    """Return the messages of the top-level agent, which calls all other agents.

    Parameters
    ----------
    spans : list of dict
        The spans as written by an exporter, or OTLP files (``resourceSpans``).

    Returns
    -------
    messages : list of dict
        The messages of the agent span that contains the most messages. If several spans have
        equally many messages, the last of these spans is used.

    Raises
    ------
    ValueError
        If no span contains messages, if no agent calls all other agents, or if a tool ran but no
        message contains its call.
    """
    spans = [_read(span) for span in _flat(spans)]
    if not any(span.messages for span in spans):
        raise ValueError(_nothing_found(spans))
    by_id = {span.id: span for span in spans if span.id is not None}
    owners = [_owner(span, by_id) for span in spans]
    placed = list(zip(spans, owners, strict=True))
    agents = [span for span, owner in placed if _is_agent(span) and owner is None]

    # The span of the agent may contain fewer messages than the spans of its model calls. Spans
    # below a tool or another agent do not belong to the run.
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
    """Return whether a run is an OTLP file or a part of an OTLP file.

    Parameters
    ----------
    run : dict
        The run to check.

    Returns
    -------
    is_otlp : bool
        True if the run has a key of an OTLP file.
    """
    return any(key in run for key in _NESTED)


def _flat(spans: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the spans in nested lists and OTLP files."""
    if isinstance(spans, Mapping):
        if "tags" in spans and "attributes" not in spans:
            raise ValueError(
                'each span must have "attributes", but one span has "tags", as in exports '
                "from Jaeger and Zipkin. Export the spans as OTLP"
            )
        inner = [spans[key] for key in _NESTED if key in spans]
        if not inner and not any(key in spans for key in _OF_SPAN):
            raise ValueError(
                'each span must have "attributes", and an OTLP file must have '
                f'"resourceSpans", got an object with the keys {list(spans)[:20]}'
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
            'spans must be a list of spans or an OTLP object with "resourceSpans", got '
            f"{type(spans).__name__}"
        )


def _read(span):
    """Convert a span of any exporter to a `_Span`."""
    try:
        span = _nested(span)
        attributes = _flattened(_values(span.get("attributes")))
        for event in span.get("events") or ():
            name = {str(event.get("name")): ""}
            of_event = name | _flattened(_values(event.get("attributes")))
            _refuse_other_messages(of_event, attributes)
            attributes = of_event | attributes
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            "the attributes of each span and event must be an object, or a list of "
            f"objects that each have a key and a value, got {span!r:.200}"
        ) from error
    messages: list[Any] = []
    for key in _MESSAGES:
        value = attributes.get(key) or []
        try:
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(
                f"{key} of span {span.get('name')!r} must contain complete JSON ({error}). "
                "Increase the attribute length limit in the program that exports the spans"
            ) from error
        if not isinstance(value, list):
            raise ValueError(f"{key} must be a list, got {type(value).__name__}")
        messages += value
    return _Span(
        id=_id_in(span, _IDS, ("context", "spanContext")),
        parent=_id_in(span, _PARENTS, ("parent", "parentSpanContext")),
        name=str(span.get("name") or ""),
        operation=str(attributes.get("gen_ai.operation.name") or ""),
        attributes=attributes,
        messages=messages,
    )


def _nested(span):
    """Convert a span with dotted keys, as in a data frame, to nested dictionaries."""
    nested = dict(span)
    for key, value in span.items():
        outer, dot, inner = str(key).partition(".")
        if dot and outer in ("attributes", "context") and value is not None:
            nested[outer] = {**(nested.get(outer) or {}), inner: value}
    return nested


def _flattened(attributes, prefix=""):
    """Convert nested attributes, which some exporters write, to attributes with dotted names."""
    flat = {}
    for key, value in attributes.items():
        name = f"{prefix}{key}"
        is_nested = isinstance(value, Mapping) and name not in _MESSAGES
        inner = _flattened(value, f"{name}.") if is_nested else {name: value}
        _refuse_other_messages(inner, flat)
        flat |= inner
    return flat


def _loaded(value):
    """Parse JSON, and return all other values unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _refuse_other_messages(added, attributes):
    """Raise ValueError if two sets of attributes contain different messages under the same name."""
    for key in _MESSAGES:
        given = [_loaded(held[key]) for held in (added, attributes) if key in held]
        if len(given) == 2 and given[0] != given[1]:
            raise ValueError(
                f"{key} must occur only once in a span, but one span contains it twice with "
                "different messages. Pass spans that each contain a single request"
            )


def _id_in(span, keys, contexts):
    """Return the id of a span or of its parent, without the prefix "0x"."""
    ids = [span.get(key) for key in keys]
    for context in map(span.get, contexts):
        if isinstance(context, Mapping):
            ids += [context.get(key) for key in _IDS]
    return next((str(id).removeprefix("0x") for id in ids if id), None)


def _values(attributes):
    """Return attributes as a dict, even if they are given as an OTLP list of keys and values."""
    if isinstance(attributes, list | tuple):
        return {entry["key"]: _value(entry.get("value")) for entry in attributes}
    if not isinstance(attributes or {}, Mapping):
        raise TypeError(f"attributes must be an object, got {attributes!r:.40}")
    return dict(attributes or {})


def _value(value):
    """Convert an OTLP value, which is stored under its type, to a plain value."""
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
        or any(span.attributes.get(key) == kind for key, kind in _TOOL_KINDS.items())
    )


def _owner(span, by_id):
    """Return the innermost agent or tool span that encloses a span, or None."""
    seen = set()
    above = by_id.get(span.parent)
    while above is not None and above.id not in seen:
        if _is_agent(above) or _is_tool(above):
            return above
        seen.add(above.id)
        above = by_id.get(above.parent)
    return None


def _refuse_several(agents):
    """Raise ValueError if the spans are from several agents or several questions."""
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
            f"the spans must belong to a single run, got several runs ({list(names)[:5]}) "
            "that do not call each other. Pass the spans of one agent, including the "
            "tools and agents that it calls"
        )


def _refuse_unseen_tools(tools, messages):
    """Raise ValueError if a tool ran but no message contains its call."""
    known = set(_names_in(messages))
    for span in tools:
        id = span.attributes.get(
            "gen_ai.tool.call.id", span.attributes.get("ai.toolCall.id")
        )
        names = [span.attributes[key] for key in _TOOL_NAMES if key in span.attributes]
        name = names[0] if names else span.name.split(" ")[-1].removesuffix(".tool")
        call = name if id is None else id
        if str(call) not in known:
            raise ValueError(
                "the spans must contain all messages of the run, but no message contains the "
                f"call {call!r} of the tool {name!r} in span {span.id}"
            )


def _names_in(value):
    """Yield all ids and names in messages, excluding texts and arguments."""
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
    """Raise ValueError if no message of the run contains a step of another span."""
    known = {step for step, _ in _steps_in(messages)}
    for span in spans:
        for step, said in _steps_in(span.messages):
            if step not in known:
                raise ValueError(
                    f"the spans must contain all messages of the run, but the step {said} of span "
                    f"{span.id} is missing from the span with the most messages"
                )


def _steps_in(messages):
    """Yield a key and a description of each text and each call of the agent."""
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
    """Return the error message for spans without messages."""
    keys = sorted({key for span in spans for key in span.attributes})
    starts = [
        tool
        for start, tool in _OTHERS.items()
        if any(k.startswith(start) for k in keys)
    ]
    hint = (
        f". They have the attributes of {starts[0]}, which are not supported. Pass the messages "
        'as "messages" instead'
        if starts
        else ". Enable the capture of message contents in the program that exports the "
        "spans"
    )
    return (
        f"the spans must have the attributes {_MESSAGES[0]} and {_MESSAGES[1]}, but the "
        f"{len(spans)} spans have {keys[:20]}{hint}"
    )
