"""Reject agent messages that contain unknown keys.

Each key of an agent message, of its parts and of its tool calls must either be read or be known
to contain only metadata. All other keys raise an error, because an unknown key may contain part
of the step.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

#: Pattern for snake-case keys that describe a message but are not part of its step.
_ABOUT = re.compile(
    r"(.*_)?(ids?|idx|uuid|index|hash|fingerprint|version|tier|metadata|meta|usage|info|"
    r"information|logprobs|ratings|tokens|signatures?|timestamp|metrics|timings|effort)|"
    r"(reasoning|thinking|thoughts?)(_(content|text|details?|blocks?|summary|meta|recap))?|"
    r"(stop|finish|incomplete|done)_(reason|sequence|details)|done|end_turn|turn_complete|"
    r"((created|updated|started|completed|expires|sent|received|retrieved)(_at)?)|date|time|"
    r"(model|agent|author|display|server)(_name)?|name|models_usage|source(_agent)?|target_agent|"
    r"provider(_(data|details|name|options|specific_fields|executed|url))?|system|object|"
    r"annotations|citations|parsed(_arguments)?|extras?|internal|container|context_management|caller|"
    r"cache_(control|creation)|tool_choice|tool_kind|tool_type|server_label|execution|view|"
    r"(content|prompt)_filter_results|create_time|chunk_position|channel|phase|status|state|level|lang|language|user_type|cwd|git_branch|slug|entrypoint"
)
#: Pattern for snake-case keys whose numeric or boolean values describe a message.
_QUANTITY = re.compile(
    r"(n|num|is|has|from)_.*|(.*_)?(durations?|latency|cost|price|count|score|number|turn|step|"
    r"seconds|ms|rank|weight|priority|format)|refusal|add_to_agent_memory|stop_after_tool_call|cached|hidden|example|prefix|streaming|closed|redacted|lc"
)
#: Keys of calls. Tool calls within a description are ignored.
CALLS = (
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_chunks",
    "tool_invocations",
    "function_call",
)


class UnreadError(Exception):
    """Raised if a message or one of its parts cannot be read completely."""


def refuse_unread(holder: Mapping[str, Any], what: str, read: Collection[str]) -> None:
    """Raise UnreadError if an object has a key that is neither read nor known to be metadata.

    Parameters
    ----------
    holder : dict
        The object.
    what : str
        Name of the object, for error messages.
    read : collection of str
        Keys that the caller reads.
    """
    unknown = [
        str(key)
        for key, value in holder.items()
        if key not in read and not is_blank(value) and not _describes(key, value)
    ]
    if unknown:
        raise UnreadError(
            f"{what} has the unknown keys {unknown}. Remove these keys if they are not part "
            f"of the step. {keys_of(holder)}"
        )


def is_blank(value: Any) -> bool:
    """Return whether a value is empty, false or zero, or contains only such values.

    Parameters
    ----------
    value : object
        A JSON value.

    Returns
    -------
    is_blank : bool
        True if the value is empty.
    """
    if isinstance(value, Mapping | list | tuple):
        values = value.values() if isinstance(value, Mapping) else value
        return all(map(is_blank, values))
    return not (value.strip() if isinstance(value, str) else value)


def snake(name: Any) -> str:
    """Convert a name such as toolCallId, tool-call-id or tool.call.id to tool_call_id.

    Parameters
    ----------
    name : object
        The name, which is converted to a str.

    Returns
    -------
    snake_name : str
        The name in snake case.
    """
    return re.sub(r"[-.]", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name))).lower()


def keys_of(value: Mapping[str, Any]) -> str:
    """Return a description of the type and the keys of an unrecognised object.

    Parameters
    ----------
    value : dict
        The object.

    Returns
    -------
    description : str
        Description of the type and the keys.
    """
    kind = value.get("type") or value.get("part_kind") or value.get("kind")
    of_type = f"The type is {kind!r}, and the" if kind else "The"
    return f"{of_type} keys are {[str(key) for key in value]}"


def _describes(key, value):
    """Return whether a key is known to be metadata and its value contains no tool call."""
    name = snake(key).strip("_")
    if isinstance(value, Mapping | list | tuple) and _has_call(value):
        return False
    is_number = isinstance(value, int | float)
    return bool(_ABOUT.fullmatch(name) or (is_number and _QUANTITY.fullmatch(name)))


def _has_call(value):
    """Return whether a value contains tool calls at any depth."""
    if isinstance(value, Mapping):
        if any(not is_blank(value.get(key)) for key in CALLS):
            return True
        value = list(value.values())
    return isinstance(value, list | tuple) and any(map(_has_call, value))
