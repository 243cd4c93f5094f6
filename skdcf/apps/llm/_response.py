"""Responses of chat-completions endpoints: a reply, or the fault that they stand for."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ._errors import EndpointError, PassingError, RefusedError, UnreadableError
from ._reply import Reply

SHORT = 300  # characters of a server's message that are shown
#: What a value of an unexpected kind raises, wherever it is looked into.
ODD = ValueError, LookupError, TypeError, AttributeError, RecursionError
_REFUSED = (
    429,
    529,
)  # statuses of a limit or of too much load, which hold for all calls
_PASSING = (408, 409, 425)  # statuses of faults that may pass; so may all from 500 on
_HOPELESS = (401, 402, 403, 404)
#: What servers say of one input that they do not take, with status 403.
_MODERATED = re.compile(
    r"moderat|flagged|polic(?:y|ies)|safety|guardrail|content.filter"
)
_FINISHED = ("stop", "length", "content_filter")
#: What begins the answer of a model that writes in channels, as gpt-oss does.
_FINAL_CHANNEL = re.compile(r"(?s)\A.*<\|channel\|>\s*final\b.*?<\|message\|>")
_CHANNEL_END = re.compile(r"(?:<\|(?:return|end|call)\|>\s*)+$")
_LEAST = -9999.0  # what stands for a log-probability that is not known
#: Keys of a reply in the protocol of another API.
_PROTOCOLS = {
    "Anthropic's": {"type", "content"},
    "Gemini's": {"candidates"},
    "Ollama's": {"message", "done"},
}
# The longest wait in seconds if a server only says when all is free.
_LONGEST_GUESS = 60.0
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TIME = re.compile(r"([\d.]+)\s*(ms|h|m|s)")
#: "Try again in 1m2.5s", "Please retry after 9 seconds", "retryDelay": "39s".
_IN_WORDS = re.compile(
    r"""(?ix) (?: (?:try\ again|retry|reset) \ (?:in|after) | retryDelay\W+ )
    \s* ( (?: [\d.]+ \s* (?:ms|h|m|s) \w* \s* )+ )"""
)


def read_reply(body: bytes, *, wants_json: bool = False) -> Reply:
    """The reply in the body of a response; a fault that may pass if it has none.

    Its text is all that it needs: what is odd about the rest of a reply that was paid for
    is no reason to ask again. If JSON is wanted, it is also looked for where some servers
    put it: in the arguments of a tool call, or in the reasoning.
    """
    try:
        is_stream = body.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
        reply = _join_stream(body) if is_stream else json.loads(body)
        _check_protocol(reply)
        choice = reply["choices"][0]
        text = _text_of(choice["message"], wants_json)
    except ODD as error:
        problem = f"{type(error).__name__}: {error}"[:SHORT]
        raise PassingError(f"the response is no chat completion ({problem})") from None
    reason = choice.get("finish_reason")
    tokens, tops = _logprobs(choice.get("logprobs"))
    usage = reply.get("usage")
    return Reply(
        text,
        finish_reason=reason if reason in _FINISHED else "stop",
        top_logprobs=tops,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        tokens=tokens,
    )


def _check_protocol(reply):
    """Raise for a body that holds an error, or speaks another protocol."""
    if not isinstance(reply, dict) or reply.get("choices"):
        return
    if error := reply.get("error"):
        code: Any = error.get("code") if isinstance(error, dict) else None
        status = code if code in (*_HOPELESS, *_REFUSED) else 500
        raise fault_of(status, f"an error in a reply: {error}")
    for name, keys in _PROTOCOLS.items():
        if keys <= reply.keys():
            raise EndpointError(
                f"the reply is in {name} own protocol, not a chat completion: base_url "
                "must be the address of the OpenAI-compatible endpoint, often .../v1"
            )


def _text_of(message, wants_json):
    """The text of a message."""
    text = _joined(message.get("content"))
    text = _CHANNEL_END.sub("", _FINAL_CHANNEL.sub("", text))
    if text.strip() or not wants_json:
        return text
    called = [call["function"] for call in message.get("tool_calls") or ()]
    called += [message["function_call"]] if message.get("function_call") else []
    if len(called) == 1:
        arguments = called[0]["arguments"]
        return arguments if isinstance(arguments, str) else json.dumps(arguments)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return reasoning if isinstance(reasoning, str) and "{" in reasoning else text


def _joined(content):
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        content = "".join(p["text"] for p in content if p.get("type", "text") == "text")
    if not isinstance(content, str | None):
        raise TypeError("content is no text")
    return content or ""


def _join_stream(body: bytes) -> dict[str, Any]:
    """The chat completion of a body of server-sent events; ValueError for half of one."""
    text = ""
    logprobs = []
    joined: dict[str, Any] = {}
    for line in re.split(r"[\r\n]+", body.decode("utf-8", "replace")):
        name, _, content = line.partition(":")
        if name != "data" or content.strip() in ("", "[DONE]"):
            continue
        chunk = json.loads(content)
        if chunk.get("error"):
            return chunk
        joined["usage"] = chunk.get("usage") or joined.get("usage")
        for choice in (chunk.get("choices") or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            text += delta.get("content") or ""
            logprobs += (choice.get("logprobs") or {}).get("content") or []
            reason = choice.get("finish_reason") or joined.get("finish_reason")
            joined["finish_reason"] = reason
    if joined.get("finish_reason") is None:
        raise ValueError("the stream of the reply has no end")
    choice = {"message": {"content": text}, "logprobs": {"content": logprobs}}
    choice["finish_reason"] = joined["finish_reason"]
    return {"choices": [choice], "usage": joined["usage"]}


def _count(usage, name):
    value = usage.get(name) if isinstance(usage, dict) else 0
    return value if isinstance(value, int) and value >= 0 else 0


def _logprobs(logprobs):
    """Words and likeliest words of a reply; none if they cannot be read."""
    try:
        rows = logprobs["content"]
        tops = [_likeliest(row["top_logprobs"]) for row in rows]
        tokens = [str(row["token"]) for row in rows if "token" in row]
    except ODD:
        return [], []
    if not any(tops):
        return [], []
    return (tokens if len(tokens) == len(tops) else []), tops


def _likeliest(top):
    """Log-probabilities of the words of one place, as far as they are known."""
    pairs = ((str(t["token"]), float(t["logprob"])) for t in top)
    return {
        token: logprob
        for token, logprob in pairs
        if logprob > _LEAST and not token.startswith("token_id:")
    }


def fault_of(
    status: int, message: str, wait: float | None = None, has_succeeded: bool = False
) -> Exception:
    """The error that a response stands for.

    Parameters
    ----------
    status : int
    message : str
        What the server says.
    wait : float, optional
        Seconds that it asks for.
    has_succeeded : bool, default=False
        Whether the endpoint has replied to another call.

    Returns
    -------
    Exception
    """
    fault = f"status {status}: {message[:SHORT]}"
    lowered = message.lower()
    if 300 <= status < 400 and not has_succeeded:
        why = "redirects are not followed, since texts and keys would go elsewhere"
        return EndpointError(f"status {status}: {why}. Change base_url instead")
    if status == 403 and (has_succeeded or _MODERATED.search(lowered)):
        return UnreadableError(fault)
    empty = "quota" in lowered and wait is None and "per minute" not in lowered
    spent = status == 429 and (empty or "insufficient_quota" in lowered)
    if status in _HOPELESS or spent:
        return EndpointError(fault)
    if status in _REFUSED:
        return RefusedError(fault, wait)
    # A gateway may redirect on its way to another server.
    if 300 <= status < 400 or status in _PASSING or status >= 500:
        return PassingError(fault, wait)
    return UnreadableError(fault)


def read_wait(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds that a server asks to wait for, None if it does not say.

    Parameters
    ----------
    headers : dict
        With names in lower case.
    message : str
        What the server says of the error.

    Returns
    -------
    float or None
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if 0 <= (wait := float(headers.get(name, "")) / per_second) < math.inf:
                return wait
    with suppress(ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    if match := _IN_WORDS.search(message):
        return _duration(match[1])

    resets = {
        name: wait
        for name, value in headers.items()
        if "ratelimit" in name
        and "reset" in name
        and (wait := _until(value)) is not None
    }
    spent = [
        wait
        for name, wait in resets.items()
        if headers.get(name.replace("reset", "remaining"), "").strip() == "0"
    ]
    waits = spent or list(resets.values())
    return min(max(waits), _LONGEST_GUESS) if waits else None


def _until(value):
    """Seconds until a limit is reset: a duration, seconds, a date, or a time since 1970."""
    with suppress(ValueError):
        number = float(value)
        if number > 1e9:
            number /= 1000 if number > 1e12 else 1
            number -= time.time()
        return max(number, 0.0) if math.isfinite(number) else None
    with suppress(ValueError):
        return max(datetime.fromisoformat(value).timestamp() - time.time(), 0.0)
    return _duration(value)


def _duration(text):
    """Seconds in a duration such as "1m2.5s" or "20 seconds"; None if it is none."""
    with suppress(ValueError):
        seconds = [float(n) * _SECONDS[unit] for n, unit in _TIME.findall(text)]
        return sum(seconds) if seconds else None
    return None
