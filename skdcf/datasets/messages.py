"""Convert agent runs, recorded as messages of the Chat Completions API, to problems.

Only this form is read, and an unknown key is an error, because a step must not be judged by only
part of its content.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils import Bunch

from .records import BROKEN, build_dataset
from .thoughts import is_cut_off, without_reasoning, without_thoughts


def from_messages(runs: Sequence[Mapping[str, Any]]) -> Bunch:
    """Convert agent runs, recorded as chat-completions messages, to problems.

    Each message of the assistant is one step, which is one claim. The step consists of the text
    and all tool calls of the message, because the agent decided on them together. A call is
    written as ``name(arguments)``. Each step depends on the previous step, as required to stop an
    agent at its first doubtful step. If the steps are independent, pass ``edges="none"`` to the
    filter.

    Parameters
    ----------
    runs : list of dict
        Each run has the keys ``messages`` and ``task``, and optionally ``labels`` and other keys
        of a problem line, such as ``id`` and ``metadata``. ``messages`` is a list of messages of
        OpenAI's Chat Completions API. ``task`` is a string or an integer. All runs of a task are
        kept together in every split. ``labels`` contains one label for each step: 1 (not wrong),
        0 (wrong) or -1 (unknown).

    Returns
    -------
    dataset : Bunch
        The data set, as returned by `build_dataset`. The question of a problem is the first
        message of the user. The features of a step are ``position``, ``log_length`` (log of 1 +
        number of characters) and ``n_calls``. They depend only on this step and the number of
        steps before it. ``metadata["messages"]`` contains the positions of the steps in
        ``messages``, ``metadata["n_reasoning"]`` the number of messages in which reasoning
        was dropped, and ``metadata["n_cut_off"]`` the number of messages that were cut off.

    Raises
    ------
    ValueError
        If a message, a part of its content or a call has an unknown key, type or role, if a step
        has neither text nor calls, if a tool result precedes its call, if a run has no task or no
        step, or if the numbers of labels and steps differ.

    Notes
    -----
    The known keys of a message are role, content, name, tool_calls, tool_call_id, function_call,
    refusal, audio, annotations, reasoning_content, reasoning, type, id, status, finish_reason and
    stop_reason. The known keys of a part of its content are type, text, refusal, image_url,
    citations, annotations and logprobs. Items of the types "message" and "reasoning" of OpenAI's
    Responses API are read too, but its other items are refused. A key is ignored if its value is
    None, "", [] or {}. The text parts of a message are joined without a separator. Audio is read
    if it has a transcript. An image in a message of the user is replaced by "[image_url]".

    Reasoning is dropped: the keys ``reasoning_content`` and ``reasoning``, items and parts of the
    type "reasoning", parts of the type "thinking", and text between tags such as ``<think>`` and
    ``</think>``. Control tokens, such as ``<|im_end|>``, are dropped too. A message that consists
    of reasoning only is not a step.

    A message that was cut off is not a step either, even if it calls a tool. A message was cut off
    if its ``finish_reason`` or ``stop_reason`` is a maximum length ("length" or "max_tokens"), or
    if it has neither of them and its ``status`` is "incomplete". If a run has these keys, they
    describe its last message, unless this message has a reason. A message that was cut off must
    not have a label.

    For other logs, write the list of steps yourself: ``ReasoningGraph(features, edges,
    claims=steps)``, where the edges are the pairs (v - 1, v).

    Examples
    --------
    >>> from skdcf.datasets import from_messages
    >>> call = {"id": "a", "function": {"name": "search", "arguments": '{"query": "Rome"}'}}
    >>> messages = [
    ...     {"role": "user", "content": "How old is Rome?"},
    ...     {"role": "assistant", "content": None, "tool_calls": [call]},
    ...     {"role": "tool", "tool_call_id": "a", "content": "founded in 753 BC"},
    ...     {"role": "assistant", "content": "It was founded in 753 BC."},
    ... ]
    >>> data = from_messages([{"task": 7, "messages": messages, "labels": [1, 1]}])
    >>> data.graphs[0].claims
    ('search({"query": "Rome"})', 'It was founded in 753 BC.')
    >>> data.graphs[0].edges.tolist(), data.labels[0].tolist()
    ([[0, 1]], [1, 1])
    """
    if isinstance(runs, Mapping) or not all(isinstance(run, Mapping) for run in runs):
        raise ValueError(
            "runs must be a list of dicts with messages and a task. Pass [run] for a single run"
        )
    return build_dataset(
        ((run.get("id") or f"run/{i}", run) for i, run in enumerate(runs)), _read_run
    )


def _read_run(run):
    """Return the problem line of a run."""
    line = dict(run)
    task, messages = line.pop("task", None), line.pop("messages", None)
    if isinstance(task, bool) or not isinstance(task, str | int) or task == "":
        raise ValueError(
            f"task must be a string or an integer that identifies the task, got {task!r}"
        )
    if not isinstance(messages, list | tuple):
        raise ValueError(
            f"messages must be a list of messages, got a {type(messages).__name__}"
        )
    steps, features, positions = [], [], []
    questions = []
    called = set()
    n_reasoning = n_cut_off = 0
    for position, given in enumerate(messages):
        is_last = position == len(messages) - 1
        is_cut = is_cut_off(given, run if is_last else None)
        try:
            role, text, calls, is_thinking = _read_message(given, called, is_cut)
        except BROKEN as error:
            raise ValueError(f"message {position}: {error}") from error
        if role == "user":
            questions.append(text)
        if role == "assistant":
            n_reasoning += is_thinking
            n_cut_off += is_cut
            step = "\n".join(filter(None, [text, *calls]))
            if step and not is_cut:
                features.append([len(steps), math.log1p(len(step)), len(calls)])
                steps.append(step)
                positions.append(position)
    if not (steps or n_cut_off):
        raise ValueError(
            "each run must have at least one step, but no message of the assistant has text "
            "or calls"
        )
    labels = run.get("labels")
    if n_cut_off and hasattr(labels, "__len__") and len(labels) != len(steps):
        raise ValueError(
            f"labels must have one entry per step ({len(steps)} in all), got {len(labels)}. "
            "Messages that were cut off are not steps, so remove their labels"
        )
    return line | {
        "claims": steps,
        "problem": questions[0] if questions else None,
        "features": features,
        "feature_names": ["position", "log_length", "n_calls"],
        "edges": [[v - 1, v] for v in range(1, len(steps))],
        "group": str(task),
        "metadata": {
            **(run.get("metadata") or {}),
            "messages": positions,
            "n_reasoning": n_reasoning,
            "n_cut_off": n_cut_off,
        },
    }


def _read_message(given, called, is_cut):
    """Return role, text, calls and whether there is reasoning, and add to the ids of the calls."""
    if isinstance(given, Mapping) and given.get("type") == "reasoning":
        _known(given, "reasoning")
        return "assistant", "", [], True
    message = _known(given, "message")
    if message.get("type", "message") != "message":
        raise ValueError(f"type must be 'message', got {message['type']!r}")
    role = message.get("role")
    roles = ("system", "developer", "user", "assistant", "tool", "function")
    if role not in roles:
        raise ValueError(f"role must be one of {roles}, got {role!r}")
    text, is_thinking = _text_of(message, role)
    calls = _calls_of(message)
    if role in ("tool", "function"):
        answered = message.get("tool_call_id" if role == "tool" else "name")
        if answered not in called:
            raise ValueError(
                f"the result belongs to the call {answered!r}, but no earlier message "
                "contains this call"
            )
    if role != "assistant" and calls:
        raise ValueError(f"only the assistant can call tools, got the role {role!r}")
    if role == "assistant" and not (text or calls or is_thinking or is_cut):
        raise ValueError(
            "a message of the assistant must have text or calls, but this message has none"
        )
    called.update(id for id, _ in calls)
    return role, text, [call for _, call in calls], is_thinking


def _known(value, what):
    """Return an object without its empty values, or raise ValueError if a key is unknown."""
    if not isinstance(value, Mapping):
        raise ValueError(f"each {what} must be an object, got {value!r:.40}")
    keys = {
        "message": "role content name tool_calls tool_call_id function_call refusal audio "
        "annotations reasoning_content reasoning type id status finish_reason stop_reason",
        "reasoning": "type id summary content encrypted_content status",
        "text": "type text citations annotations logprobs",
        "refusal": "type refusal citations",
        "image_url": "type image_url citations",
        "audio": "id data expires_at transcript",
        "call": "id type function custom",
        "function": "name arguments",
        "custom": "name input",
    }
    known = keys[what].split()
    full = {key: x for key, x in value.items() if x not in (None, "", [], {})}
    if unknown := sorted(full.keys() - known, key=str):
        raise ValueError(
            f"the {what} has the unknown key {unknown[0]!r}. Known keys are {known}. "
            "Remove the key if its value says nothing about what the agent did. Otherwise "
            "write the list of steps yourself"
        )
    return full


def _text_of(message, role):
    """Return the text of a message, and whether reasoning was dropped from it."""
    content = message.get("content", "")
    is_thinking = "reasoning" in message or "reasoning_content" in message
    if isinstance(content, list | tuple):
        parts = without_reasoning(content) if role == "assistant" else content
        is_thinking |= len(parts) < len(content)
        content = "".join(_text_of_part(part, role) for part in parts)
    spoken = _known(message.get("audio", {}), "audio")
    if spoken and "transcript" not in spoken:
        raise ValueError("audio must have a transcript, but it has none")
    texts = content, message.get("refusal"), spoken.get("transcript")
    text = "\n".join(filter(None, texts)).strip()
    said = without_thoughts(text) if role == "assistant" else text
    return said, is_thinking or said != text


def _text_of_part(part, role):
    kind = str(part.get("type")).removeprefix("output_").removeprefix("input_")
    kinds = ("text", "refusal") if role == "assistant" else ("text", "image_url")
    if kind not in kinds:
        raise ValueError(
            f"the type of a part in a message of the {role} must be one of {kinds}, got {kind!r}"
        )
    part = _known(part, kind)
    return "[image_url]" if kind == "image_url" else part.get(kind, "")


def _calls_of(message):
    """Return the id of each call of a message, and the call as the text ``name(arguments)``."""
    given = list(message.get("tool_calls", ()))
    if old := message.get("function_call"):
        given.append({"id": old.get("name"), "function": old})
    calls = []
    for call in given:
        call = _known(call, "call")
        kinds = [kind for kind in ("function", "custom") if kind in call]
        if len(kinds) != 1:
            raise ValueError(
                f'a call must have either "function" or "custom", got the keys {[*call]}'
            )
        tool = _known(call[kinds[0]], kinds[0])
        id, name = call.get("id"), tool.get("name")
        if not (isinstance(id, str) and isinstance(name, str)):
            raise ValueError(
                f"a call must have an id and a name, got {id!r} and {name!r}"
            )
        arguments = tool.get("arguments", tool.get("input", ""))
        if not isinstance(arguments, str):  # Some servers parse the arguments.
            arguments = json.dumps(arguments, ensure_ascii=False)
        calls.append((id, f"{name}({arguments})"))
    return calls
