"""Convert the messages of an agent run from the formats of various tools to `Message` objects.

Tools wrap messages differently, store text and calls in different places, and use different key
names. The type of a message part determines whether the part is a text, a tool call, a tool
result, or a thought. Thoughts are ignored. Any other part and any unknown key raise an error that
lists the keys, because a step must not be judged by only part of its content.

The supported formats are the OpenAI Chat Completions and Responses APIs, the OpenAI Agents SDK,
Anthropic, Gemini, Bedrock, LangChain (also as written by ``messages_to_dict`` and ``dumpd``),
pydantic-ai, Inspect, the Vercel AI SDK, A2A, and OpenTelemetry spans. A message may also be a
complete API response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ._unread import CALLS, UnreadError, is_blank, keys_of, refuse_unread, snake
from .spans import is_otlp, messages_of_spans

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "request": "user",
    "response": "assistant",
    "agent": "assistant",
}
_KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool")

#: Patterns for the snake-case types of message parts and items.
_CALL = re.compile(
    r"(^|_)(call|tool_use|approval_request|tool_invocation|tool_execution|executable_code)$"
)
_ANSWER = re.compile(
    r"(^|_)(call_output|call_response|tool_result|tool_return|function_response|"
    r"function_result|call_result|approval_response|code_execution_result|tool_error)$"
)
_THOUGHT = re.compile(
    r"(^|_)((thinking|reasoning|thought)(_text|_content|_summary|_details?)?|compaction|"
    r"mcp_list_tools|tool_search_output|step_start|cache_point|source_url|source_document)$"
)
#: Keys of reasoning parts and other ignored parts.
_OF_THOUGHTS = {
    "thinking",
    "reasoning",
    "thought",
    "text",
    "content",
    "summary",
    "data",
}
_OF_THOUGHTS |= {"encrypted_content", "tools", "url", "title", "cachePoint"}
_OF_THOUGHTS |= {"reasoningContent", "redactedContent", "reasoningText"}
_MEDIUM = re.compile(
    r"(^|_)(image|audio|video|file|document|media|binary|blob|uri|resource|inline)(_|$)"
)
# Gemini executes code parts. Code parts and their results do not have ids.
_CODE = "executable_code"
# In the Vercel AI SDK, an approval request refers to a tool call by the id of the call.
_APPROVAL = re.compile(r"^tool_approval_(request|response)$")
_OF_APPROVALS = {"id", "approvalId", "toolCallId", "approved", "reason", "isAutomatic"}
# Request parts that pydantic-ai treats as instructions.
_INSTRUCTION = ("system_prompt", "instruction")

_IDS = ("call_id", "tool_call_id", "tool_use_id", "approval_request_id", "id")
_TYPES = ("type", "part_kind", "kind", "block_type", "content_type", "$type")
_NAMES = ("namespace", "name", "tool_name", "function")
_ARGUMENTS = (
    *("arguments", "args", "input", "parameters", "tool_kwargs", "partial_json"),
    "parse_error",
)
_ANSWERS = ("content", "output", "response", "result")
_ERRORS = ("error", "error_text")  # keys for the error message of a failed tool
_RESULTS = ("output", "outputs", "result", "results", "error_text")
#: Keys of a call that do not describe what the call does.
_NOT_ARGUMENTS = {*_IDS, *_NAMES, *_RESULTS, *_TYPES, "custom", "status", "state"}
_NOT_ARGUMENTS |= {
    "error",
    "index",
    "container_id",
    "metadata",
    "server_label",
    "execution",
}
_NOT_ARGUMENTS |= {
    "tool_kind",
    "tool_type",
    "provider_name",
    "provider_details",
    "agent",
}
_NOT_ARGUMENTS |= {"source_agent", "target_agent", "signature", "thought_signature"}
_NOT_ARGUMENTS |= {"created_by", "caller", "cache_control", "role", "view"}

_CONTENTS = (
    "content",
    "parts",
    "text",
    "refusal",
    "audio",
    "tool_plan",
    "tool_outputs",
    "content_blocks",
)
_SAME_AS_CONTENT = ("blocks", "contents", "items")
# LangChain stores values for which it has no field under "additional_kwargs".
_LANGCHAIN = "additional_kwargs"
_WRAPPINGS = ("data", "raw_item", "message")
#: Keys under which a response lists its messages, and keys of response settings.
_LISTED = ("choices", "candidates")
_SETTINGS = {
    "background",
    "billing",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
}
_SETTINGS |= {"max_tool_calls", "output", "parallel_tool_calls", "prompt"}
_SETTINGS |= {
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
}
_SETTINGS |= {"safety_identifier", "store", "temperature", "tools", "top_logprobs"}
_SETTINGS |= {"top_p", "truncation", "user", "conversation", "moderation"}
_OF_WRAPPED = {
    "role",
    "parts",
    "toolInvocations",
}  # keys under which a message stores its content
_OF_MESSAGES = {*_CONTENTS, *CALLS, *_TYPES, _LANGCHAIN, "role"}


class Call(NamedTuple):
    """An agent's tool call.

    Parameters
    ----------
    id : str or int
        Id of the call, or the tool name if the call has no id.
    name : str
        Tool name.
    arguments : str, dict or list
        Arguments of the call, either as a string or already parsed.
    """

    id: str | int
    name: str
    arguments: Any


class Message(NamedTuple):
    """A message in an agent run.

    Parameters
    ----------
    role : {"system", "developer", "user", "assistant", "tool"}
        Role of the message.
    text : str
        Message text.
    calls : list of Call
        Tool calls of the message.
    answers : str, int or None
        For a message with the role "tool", the id of the call that returned the result.
    """

    role: str
    text: str
    calls: list[Call]
    answers: str | int | None = None


def chat_messages(run: Mapping[str, Any]) -> Iterator[tuple[int, Message]]:
    """Yield the position and the `Message` of each message of a run.

    Parameters
    ----------
    run : dict
        An agent run with ``messages`` or ``spans``, or the content of an OTLP file
        (``resourceSpans``).

    Yields
    ------
    position : int
        Position of the message in the run. If a message consists of several items, the position
        of its first item is yielded.
    message : Message
        The converted message.

    Raises
    ------
    ValueError
        If the format of a message is not supported, or if a message cannot be read completely.
    """
    # The calls and the text of a response are consecutive items.
    response: list[tuple[int, _Found]] = []
    for position, item in enumerate(_items_of(run)):
        with naming(position):
            message = _unwrapped(item)
            kind = "" if "role" in message else snake(message.get("type") or "")
            if _THOUGHT.search(kind):
                refuse_unread(message, "a thought", {*_OF_THOUGHTS, *_TYPES})
                continue
            if _CALL.search(kind):
                if not response:
                    response = [(position, _Found())]
                response[0][1].add_part(message, "assistant")
                continue
            yield from _finished(response)
            response = []

            collected = _Found()
            if _ANSWER.search(kind):
                collected.add_part(message, "tool")
                yield from collected.messages(position, "tool")
                continue
            role = _role_of(position, message)
            collected.add_message(message, role)
            if role == "assistant" and message.get("type") == "message":
                response = [(position, collected)]
            else:
                yield from collected.messages(position, role)
    yield from _finished(response)


@contextmanager
def naming(position: int) -> Iterator[None]:
    """Add the position of a message to errors about its format.

    Parameters
    ----------
    position : int
        Position of the message in the run.
    """
    try:
        yield
    except UnreadError as error:
        raise ValueError(
            f"message {position} has an unsupported form: {error}"
        ) from error
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"message {position} has an unsupported form. A message must be an object "
            "with a role and content. The content must be a string or a list of parts. "
            "Each call must have an id, a name and arguments"
        ) from error


def _items_of(run):
    """Return the original list of messages or items of a run."""
    if "spans" in run and "messages" in run:
        raise ValueError(
            'a run must have either "messages" or "spans", but this run has both'
        )
    if "spans" in run:
        return messages_of_spans(run["spans"])
    if "messages" not in run and is_otlp(run):
        return messages_of_spans([run])
    if "messages" not in run:
        raise ValueError(
            'a run must have "messages" or "spans", got the keys '
            f"{sorted(map(str, run))}. Store all messages, from the question to the last "
            'answer, in one list under "messages". If the list has a different key, pass '
            "--map KEY=messages on the command line"
        )
    messages = run["messages"]
    if not isinstance(messages, list | tuple):
        raise ValueError(
            f"messages must be a list of messages, got {type(messages).__name__}. Convert "
            "a string with json.loads"
        )
    return messages


def _unwrapped(item):
    """Return a message without the wrapper of LangChain, the OpenAI Agents SDK or another tool."""
    if not isinstance(item, Mapping):
        raise UnreadError(
            "each message must be an object with a role and content, got a "
            f"{type(item).__name__}"
        )
    if item.get("type") == "constructor" and isinstance(item.get("kwargs"), Mapping):
        outside = {key: item[key] for key in item.keys() - {"kwargs", "graph", "id"}}
        return outside | {"type": item["id"][-1], **item["kwargs"]}
    if "role" not in item and (inner := _answered_in(item)) is not None:
        return _unwrapped(inner)
    content = item.get("content")
    if isinstance(content, Mapping) and content.keys() & _OF_WRAPPED:
        outside = {key: item[key] for key in item.keys() - {"content"}}
        return _unwrapped(outside | {**content})
    for wrapping in _WRAPPINGS:
        if "role" not in item and isinstance(item.get(wrapping), Mapping):
            outside = {key: value for key, value in item.items() if key != wrapping}
            return _unwrapped(outside | {**item[wrapping]})
    for name in _SAME_AS_CONTENT:
        if isinstance(item.get(name), list) and "content" not in item:
            item = {"content" if key == name else key: item[key] for key in item}
    names = {key: snake(key) for key in item if snake(key) in (*CALLS, *_IDS)}
    return {
        key if names.get(key, key) in item else names[key]: value
        for key, value in item.items()
    }


def _answered_in(response):
    """Return the message in an API response, or None if the object is not an API response."""
    for key in _LISTED:
        listed = response.get(key)
        if isinstance(listed, list) and all(isinstance(x, Mapping) for x in listed):
            if len(listed) != 1:
                raise UnreadError(
                    f'"{key}" must contain a single message, got {len(listed)} messages. Keep the '
                    "message that the agent used"
                )
            copies = (key, "sdkHttpResponse", "sdk_http_response")
            outside = {name: response[name] for name in response if name not in copies}
            role = {"role": "model"} if key == "candidates" else {}
            return role | outside | {**listed[0]}
    output = response.get("output")
    if response.get("object") == "response" and isinstance(output, list):
        outside = {key: response[key] for key in response.keys() - _SETTINGS}
        # An object under the key "text" describes the output format.
        if isinstance(outside.get("text"), Mapping):
            del outside["text"]
        return outside | {"role": "assistant", "type": "message", "content": output}
    if "type" not in response and isinstance(output, Mapping) and "message" in output:
        outside = {name: response[name] for name in response if name != "output"}
        return outside | {**output}
    return None


def _role_of(position, message):
    """Return the role of a message, which some tools store under the key "type" or "kind"."""
    given = message.get("role") or message.get("type") or message.get("kind")
    role = re.sub(r"^role_|message(chunk)?$", "", str(given).lower())
    role = _ROLES.get(role, role)
    if role not in _KNOWN_ROLES:
        raise ValueError(
            f"the role of message {position} must be one of 'system', 'developer', 'user', "
            f"'assistant' and 'tool', got {given!r}. Remove the message if it is not part of "
            f"the run. {keys_of(message)}"
        )
    return role


@dataclass
class _Found:
    """The texts, tool calls and tool results found in one message."""

    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answers: list[tuple[Any, str]] = field(default_factory=list)
    thinks: bool = False

    def messages(self, position, role):
        """Yield the message, followed by each of its tool results as a separate message."""
        text = "\n".join(filter(None, self.texts))
        if role == "assistant":
            is_there = bool(text.strip() or self.calls)
        else:
            is_there = role != "tool" and bool(self.texts or not self.answers)
        if is_there:
            yield position, Message(role, text, self.calls)
        for id, answer in self.answers:
            yield position, Message("tool", answer, [], id)

    def add_message(self, message, role):
        """Read a whole message, or raise UnreadError if a part of it is not recognised."""
        held = [key for key in CALLS if message.get(key)]
        if role != "assistant" and held:
            raise UnreadError(f'only agent messages may contain "{held[0]}"')
        if role == "tool" and not _holds_answers(message):
            framework = message.get(_LANGCHAIN) or {}
            self.answers.append(_answered({**framework, **message}))
            return
        if role == "user" and not any(key in message for key in _CONTENTS):
            raise UnreadError(f"each message must have content. {keys_of(message)}")
        framework = message.get(_LANGCHAIN) or {}
        for source in (message, framework):
            for key in _CONTENTS:
                if source.get(key) is not None:
                    self._add_content(source[key], role)
            for key in CALLS:
                self._add_calls(_calls_under(key, source))
        if role == "assistant":
            self._refuse_empty(message)
            refuse_unread(message, "the agent's message", _OF_MESSAGES)
            refuse_unread(
                framework, f'"{_LANGCHAIN}" of the agent\'s message', _OF_MESSAGES
            )
        elif self.calls:
            raise UnreadError(
                f"only agent messages may contain calls, got a call of {self.calls[0].name!r}"
            )

    def add_part(self, part, role):
        """Read a part of a message, or raise UnreadError if its type is unknown."""
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, Mapping):
            raise UnreadError(
                f"each part of a message must be an object, got {part!r:.40}"
            )
        part = _call_of_page(part)
        kind = _kind_of(part)
        body = _body_of(part, kind)
        if _CALL.search(kind) and not _APPROVAL.search(kind):
            call = _call_of(body, kind)
            # Some logs contain a call twice. Calls without an id are always treated as distinct.
            if call.id == call.name or call not in self.calls:
                self.calls.append(call)
            if kind != "image_generation_call":
                results = [body[key] for key in _RESULTS if body.get(key) is not None]
                self.answers += [(call.id, _observed(result)) for result in results]
        elif _APPROVAL.search(kind):
            read = _OF_APPROVALS - {"reason"} if role == "assistant" else _OF_APPROVALS
            refuse_unread(part, "an approval", {*read, *_TYPES})
        elif _ANSWER.search(kind) or (kind == "retry_prompt" and body.get("tool_name")):
            self.answers.append(_answered(body, kind))
        elif _THOUGHT.search(kind) or part.get("thought") is True:
            refuse_unread(part, "a thought", {*_OF_THOUGHTS, *_TYPES})
            self.thinks = True
        elif kind not in _INSTRUCTION or role == "assistant":
            data = _data_of(part, body, kind)
            self.texts.append(data or _text_of(part, body, kind, role))

    def _add_content(self, content, role):
        """Read the value of a content key, such as "content" or "parts"."""
        if not isinstance(content, str | Mapping | list | tuple):
            raise UnreadError(
                "the content of a message must be a string or a list of parts, got "
                f"{content!r:.40}"
            )
        collected = _Found()
        for part in [content] if isinstance(content, str | Mapping) else content:
            collected.add_part(part, role)
        # Some tools write the same text twice, as a string and as a part.
        self.texts += [text for text in collected.texts if text not in self.texts]
        self._add_calls(collected.calls)
        self.answers += collected.answers
        self.thinks |= collected.thinks

    def _add_calls(self, calls):
        """Add the calls that were not found under another key of the message."""
        before = [(call.id, call.name, _parsed(call.arguments)) for call in self.calls]
        self.calls += [
            call
            for call in calls
            if (call.id, call.name, _parsed(call.arguments)) not in before
        ]

    def _refuse_empty(self, message):
        """Raise UnreadError if no text, tool call or tool result was found in the message."""
        said = "".join(self.texts).strip() or self.calls
        if not (said or self.answers or self.thinks):
            raise UnreadError(
                f"each agent message must contain readable text or a call. {keys_of(message)}"
            )


def _calls_under(key, message):
    """Return the tool calls that are stored under a given key of a message."""
    calls = message.get(key) or ()
    if isinstance(calls, str):
        raise UnreadError(f'"{key}" must be a list of calls, got a string')
    return [
        _call_of(call) for call in ([calls] if isinstance(calls, Mapping) else calls)
    ]


def _holds_answers(message):
    """Return whether a tool message contains parts that are tool results."""
    parts = message.get("parts") or message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, Mapping) and _ANSWER.search(_kind_of(part)) for part in parts
    )


def _finished(response):
    """Yield the message that consists of the collected items, if there are any."""
    for position, collected in response:
        yield from collected.messages(position, "assistant")


# --- parts --------------------------------------------------------------------


def _kind_of(part):
    """Return the type of a message part, which may be stored as the only key of the part."""
    for name in _TYPES:
        if part.get(name) and isinstance(part[name], str):
            return snake(part[name])
    keys = {snake(key) for key, value in part.items() if value is not None}
    keys -= {"thought_signature", "thought"}
    return keys.pop() if len(keys) == 1 else ""


def _body_of(part, kind):
    """Return a message part with keys in snake case, merged with the nested object of its type."""
    body = {snake(key): value for key, value in part.items()}
    inner = body.get(kind)
    return _merged(body, inner) if isinstance(inner, Mapping) else body


def _merged(body, inner):
    """Merge a nested object into a part, or raise UnreadError if two arguments differ."""
    inner = {snake(key): value for key, value in inner.items() if value is not None}
    for key in body.keys() & inner.keys() & {*_ARGUMENTS}:
        if body[key] is not None and _parsed(body[key]) != _parsed(inner[key]):
            raise UnreadError(
                f'"{key}" must not be repeated in a call. {keys_of(body)}'
            )
    return body | inner


def _call_of_page(part):
    """Convert a UI part whose type contains the tool name, as in the Vercel AI SDK."""
    kind = str(part.get("type"))
    if (
        "toolCallId" in part
        and "state" in part
        and kind.startswith(("tool-", "dynamic-"))
    ):
        part = {"toolName": kind.removeprefix("tool-")} | part | {"type": "tool-call"}
        if isinstance(approval := part.pop("approval", None), Mapping):
            refuse_unread(approval, "an approval", _OF_APPROVALS)
    return part


def _data_of(part, body, kind):
    """Return the data of a data part or of a failed validation as text, or None for other parts."""
    if kind == "retry_prompt" and isinstance(body.get("content"), list):
        return _written(body["content"])
    if re.match("data(_|$)", kind) and not is_blank(body.get("data")):
        refuse_unread(part, "one of its parts", {"data", *_TYPES})
        return _written(body["data"])
    return None


def _text_of(part, body, kind, role):
    """Return the text of a part, or the type of an image or file that the agent received."""
    keys = (
        "text",
        "refusal",
        "transcript",
        *(["content"] if kind != "content" else []),
    )
    for key in keys:
        value = body.get(key)
        if isinstance(value, Mapping):
            value = value.get("value", value.get("text"))
        if isinstance(value, list) and value:
            collected = _Found()
            for item in value:
                collected.add_part(item, role)
            is_text = not (collected.calls or collected.answers)
            value = "\n".join(collected.texts) if is_text else None
        if isinstance(value, str):
            if role == "assistant":
                holder = part if key in part else body
                read = {key, kind, "role", *_TYPES}
                read |= {"data", "format"} if key == "transcript" else set()
                refuse_unread(holder, "one of its parts", read)
            return value
    if role == "tool" and kind == "document":
        return _written(part)
    if role == "assistant" or not _MEDIUM.search(kind):
        raise UnreadError(
            "each part of a message must have text, but one part has none. "
            f"{keys_of(part)}"
        )
    return f"[{kind}]"


def _call_of(call, kind=""):
    """Convert a tool call in any supported format to a `Call`."""
    if not isinstance(call, Mapping):
        raise UnreadError(f"each call in a message must be an object, got {call!r:.40}")
    wrapping = snake(call.get("type"))
    body = _body_of(call, wrapping)
    if isinstance(body.get("function"), Mapping):
        body = _merged(body, body.pop("function"))
    names = [
        body[key] for key in _NAMES if body.get(key) and isinstance(body[key], str)
    ]
    hosted = kind if kind == _CODE else _CALL.sub("", kind)
    if not names and hosted in ("", "function", "tool", "custom_tool"):
        raise UnreadError(
            f"each call must have a name, but one call has none. {keys_of(call)}"
        )
    id = _id_of(body)
    if id in (None, body.get("name")) and call.get("type") == "function_call":
        raise UnreadError(
            f"each call must have a call_id, but one call has none. {keys_of(call)}"
        )
    given = {key: body[key] for key in _ARGUMENTS if body.get(key) is not None}
    known = {*_NOT_ARGUMENTS, *_ARGUMENTS, kind, wrapping}
    others = {key: value for key, value in body.items() if key not in known and value}
    name = ".".join(dict.fromkeys(names)) or hosted
    if given:
        refuse_unread(body, "one of its calls", known)
    arguments = _joined(given) if given else others or ""
    return Call((names or [hosted])[-1] if id is None else id, name, arguments)


def _joined(given):
    """Return the nonempty arguments as a dict, or the only argument without its key."""
    full = {
        key: value for key, value in given.items() if value not in ("", "{}", {}, [])
    }
    return full if len(full) > 1 else next(iter((full or given).values()))


def _id_of(body):
    """Return the id of a tool call or result, or the tool name if there is no id."""
    for key in (*_IDS, "name", "tool_name"):
        if (id := body.get(key)) is not None:
            if not isinstance(id, str | int):
                raise UnreadError(f"{key} must be a string or a number, got {id!r:.40}")
            return id
    return None


def _answered(body, kind=""):
    """Return the id of a tool call, together with the result of the call."""
    id = _CODE if kind == "code_execution_result" else _id_of(body)
    if id is None:
        raise UnreadError(
            f"each answer to a call must contain the id of the call. {keys_of(body)}"
        )
    return id, _answer_of(body)


def _answer_of(body):
    """Return a tool result as text."""
    present = [key for key in _ANSWERS if key in body]
    contents = [body[key] for key in present if body[key] not in (None, "")]
    errors = [body[key] for key in _ERRORS if not is_blank(body.get(key))]
    if contents or errors or present:
        return _observed([*contents, *errors, ""][0])
    rest = {key: value for key, value in body.items() if key not in _NOT_ARGUMENTS}
    if not rest:
        raise UnreadError(f"each answer to a call must have content. {keys_of(body)}")
    return _observed(rest)


def _observed(answer):
    """Return a tool result as text, with objects as JSON and media replaced by their types."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list | tuple) and any(isinstance(x, Mapping) for x in answer):
        texts = []
        for part in answer:
            collected = _Found()
            try:
                collected.add_part(part, "tool")
            except UnreadError:
                collected.texts = []
            texts.append("\n".join(collected.texts) or _written(part))
        return "\n".join(texts)
    return _written(answer)


def _written(value):
    return json.dumps(value, ensure_ascii=False, default=str)


def _parsed(arguments):
    """Parse arguments in JSON, and return all other arguments unchanged."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
