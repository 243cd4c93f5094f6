"""Convert responses of chat-completions endpoints to replies or errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ._errors import EndpointError, PassingError, RefusedError, UnreadableError
from ._reply import Reply

SHORT = 300  # maximum number of characters to show from a server message
#: Exceptions raised when a value has an unexpected type.
ODD = ValueError, LookupError, TypeError, AttributeError, RecursionError
# HTTP statuses for rate limits and overload, which apply to all calls.
_REFUSED = (429, 529)
# HTTP statuses of temporary errors, in addition to all statuses of 500 or above.
_PASSING = (408, 409, 425)
_HOPELESS = (401, 402, 403, 404)
#: Words in the error messages of servers that use status 403 to reject a single input.
_MODERATED = re.compile(
    r"moderat|flagged|polic(?:y|ies)|safety|guardrail|content.filter"
)
_FINISHED = ("stop", "length", "content_filter")
#: Marker that starts the final answer of models with output channels, such as gpt-oss.
_FINAL_CHANNEL = re.compile(r"(?s)\A.*<\|channel\|>\s*final\b.*?<\|message\|>")
_CHANNEL_END = re.compile(r"(?:<\|(?:return|end|call)\|>\s*)+$")
_LEAST = -9999.0  # Servers use -9999 for an unknown log-probability.
# Maximum wait in seconds if the server reports only when the whole rate limit is reset.
_LONGEST_GUESS = 60.0
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TIME = re.compile(r"([\d.]+)\s*(ms|h|m|s)")
#: Pattern for waiting times in messages, such as "Try again in 1m2.5s" and "retryDelay: 39s".
_IN_WORDS = re.compile(
    r"""(?ix) (?: (?:try\ again|retry|reset) \ (?:in|after) | retryDelay\W+ )
    \s* ( (?: [\d.]+ \s* (?:ms|h|m|s) \w* \s* )+ )"""
)


def read_reply(body: bytes) -> Reply:
    """Return the reply in a response body, or raise PassingError if there is none.

    The text is the only required field of the reply. Other fields are ignored if they are
    malformed, because the reply has been paid for and should not be requested again.
    """
    try:
        is_stream = body.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
        reply = _join_stream(body) if is_stream else json.loads(body)
        _check_protocol(reply)
        choice = reply["choices"][0]
        text = _text_of(choice["message"])
    except ODD as error:
        problem = f"{type(error).__name__}: {error}"[:SHORT]
        raise PassingError(
            f"the response is not a valid chat completion ({problem})"
        ) from None
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
    """Raise an error if the response body contains an error."""
    if not isinstance(reply, dict) or reply.get("choices"):
        return
    if error := reply.get("error"):
        code: Any = error.get("code") if isinstance(error, dict) else None
        status = code if code in (*_HOPELESS, *_REFUSED) else 500
        raise fault_of(status, f"an error in a reply: {error}")


def _text_of(message):
    """Return a message's text, without reasoning in other channels."""
    text = _joined(message.get("content"))
    return _CHANNEL_END.sub("", _FINAL_CHANNEL.sub("", text))


def _joined(content):
    """Return the content of a message as one string, joining its parts if necessary."""
    if isinstance(content, list):
        content = "".join(p["text"] for p in content if p.get("type") == "text")
    if not isinstance(content, str | None):
        raise TypeError("the content of the message must be a string")
    return content or ""


def _join_stream(body: bytes) -> dict[str, Any]:
    """Join server-sent events into a chat completion, or raise ValueError if some are missing."""
    text = ""
    logprobs = []
    usage = reason = None
    for line in re.split(r"[\r\n]+", body.decode("utf-8", "replace")):
        name, _, content = line.partition(":")
        if name != "data" or content.strip() in ("", "[DONE]"):
            continue
        chunk = json.loads(content)
        if chunk.get("error"):
            return chunk
        usage = chunk.get("usage") or usage
        for choice in (chunk.get("choices") or ())[:1]:
            text += (choice.get("delta") or {}).get("content") or ""
            logprobs += (choice.get("logprobs") or {}).get("content") or []
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise ValueError("the response stream ended before the reply was complete")
    choice = {
        "message": {"content": text},
        "logprobs": {"content": logprobs},
        "finish_reason": reason,
    }
    return {"choices": [choice], "usage": usage}


def _count(usage, name):
    value = usage.get(name) if isinstance(usage, dict) else 0
    return value if isinstance(value, int) and value >= 0 else 0


def _logprobs(logprobs):
    """Return the tokens of a reply and their most likely alternatives, or empty lists."""
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
    """Return the known log-probabilities of the tokens at one position."""
    pairs = ((str(t["token"]), float(t["logprob"])) for t in top)
    return {
        token: logprob
        for token, logprob in pairs
        if logprob > _LEAST and not token.startswith("token_id:")
    }


def fault_of(
    status: int, message: str, wait: float | None = None, has_succeeded: bool = False
) -> Exception:
    """Return the exception for an error response.

    Parameters
    ----------
    status : int
        HTTP status code.
    message : str
        Error message of the server.
    wait : float, optional
        Seconds to wait, as requested by the server.
    has_succeeded : bool, default=False
        Whether the endpoint has successfully replied to another call.

    Returns
    -------
    exception : Exception
        The exception to raise.
    """
    fault = f"status {status}: {message[:SHORT]}"
    lowered = message.lower()
    if 300 <= status < 400 and not has_succeeded:
        why = (
            "redirects are not followed, because texts and keys would be sent to another "
            "host"
        )
        return EndpointError(
            f"the endpoint returned status {status}: {why}. Set base_url to the address "
            "to which the endpoint redirects"
        )
    if status == 403 and (has_succeeded or _MODERATED.search(lowered)):
        return UnreadableError(fault)
    empty = "quota" in lowered and wait is None and "per minute" not in lowered
    spent = status == 429 and (empty or "insufficient_quota" in lowered)
    if status in _HOPELESS or spent:
        return EndpointError(fault)
    if status in _REFUSED:
        return RefusedError(fault, wait)
    # A redirect is treated as a temporary error, because gateways may redirect requests while
    # they switch to another server.
    if 300 <= status < 400 or status in _PASSING or status >= 500:
        return PassingError(fault, wait)
    return UnreadableError(fault)


def read_wait(headers: Mapping[str, str], message: str) -> float | None:
    """Return the wait in seconds requested by a server, or None if there is no such request.

    Parameters
    ----------
    headers : dict
        Headers of the response, with names in lower case.
    message : str
        Error message of the server.

    Returns
    -------
    wait : float or None
        Number of seconds to wait.
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if 0 <= (wait := float(headers.get(name, "")) / per_second) < math.inf:
                return wait
    if match := _IN_WORDS.search(message):
        return _duration(match[1])

    resets = {
        name: wait
        for name, value in headers.items()
        if "ratelimit" in name
        and "reset" in name
        and (wait := _duration(f"{value}s")) is not None
    }
    spent = [
        wait
        for name, wait in resets.items()
        if headers.get(name.replace("reset", "remaining"), "").strip() == "0"
    ]
    waits = spent or list(resets.values())
    return min(max(waits), _LONGEST_GUESS) if waits else None


def _duration(text):
    """Return the seconds in a duration such as "1m2.5s", or None if it cannot be parsed."""
    with suppress(ValueError):
        seconds = [float(n) * _SECONDS[unit] for n, unit in _TIME.findall(text)]
        return sum(seconds) if seconds else None
    return None
