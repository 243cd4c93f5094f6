"""Call a model over HTTP or as a function, with retries, a common pace and a cache.

Each client has one `Engine`, which runs an event loop in a separate thread. All threads that use
the client share the engine's open connections, its limit on concurrent calls and its cache. A
`Chat` makes the calls of one problem in a run of the engine.

The openai client handles connections and encodings. Its retries are not used, because a rate
limit applies to all calls. After a refusal, no call starts until the time requested by the server
has passed. If the server requests no time, each pause is twice as long as the previous one. After
the pause, calls start at intervals of half the pause, until a call succeeds. Then calls start at
the measured rate of successful calls, and each further success increases this rate.

With a cache, each reply is written to disk immediately, so a restarted program does not request
the reply again. Replies that cannot be parsed are not stored and are therefore requested again.
Only environment variables named by the caller are sent. Redirects are not followed, so texts and
keys are sent only to the configured host.
"""

from __future__ import annotations

import asyncio
import fnmatch
import functools
import hashlib
import inspect
import json
import logging
import math
import os
import random
import re
import sqlite3
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import wait
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import count, islice
from numbers import Integral
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakValueDictionary

from tqdm.auto import tqdm

from ..._checks import import_extra, is_loopback, warn
from ..._parameters import Number, Settings, positive
from ...exceptions import ParameterWarning
from ._replies import Reply, Usage, repair_json, texts_in


class CallError(RuntimeError):
    """Raised if a model call does not return a usable reply after all retries."""


class EndpointError(CallError):
    """Raised if no call can succeed, for example if the key is wrong or the server is down."""


class UnreadableError(CallError):
    """Raised if the endpoint replies, but the reply cannot be used.

    The attribute ``text`` contains the last reply.
    """

    def __init__(self, message: str, text: str = ""):
        super().__init__(message)
        self.text = text


class PassingError(Exception):
    """Raised for a temporary failure, after which a retry may succeed.

    Parameters
    ----------
    problem : str
        Description of the failure.
    wait : float, optional
        Seconds to wait, as requested by the server, or None if the server does not specify a
        time.
    """

    def __init__(self, problem: str, wait: float | None = None):
        super().__init__(problem)
        self.wait = wait


class RefusedError(PassingError):
    """Raised if the server reports a rate limit, which applies to all calls."""


@dataclass(frozen=True)
class Call:
    """One request to a model.

    Attributes
    ----------
    model : str
        Model name.
    messages : tuple of (role, text)
        Messages to the model.
    schema : str or None
        JSON schema of the reply, serialised as JSON.
    temperature : float
        Sampling temperature.
    seed : int
        Seed sent to the endpoint.
    max_tokens : int or None
        Maximum length of the reply in tokens. If None, the endpoint's limit applies.
    structured : bool
        Whether the endpoint is asked to enforce the schema.
    logprobs : bool
        Whether to request log-probabilities of the tokens.
    prompt : str
        Name and version of the prompt.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    schema: str | None = None
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = None
    logprobs: bool = False
    prompt: str = ""
    structured: bool = True

    def key(self, endpoint: Any) -> str:
        """Return the cache key, a digest of everything that affects the reply.

        Parameters
        ----------
        endpoint : JSON value
            Address of the endpoint and the extra parameters that are sent with each call.

        Returns
        -------
        key : str
            The digest as a hexadecimal string.
        """
        content = json.dumps([endpoint, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


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


#: Error messages of servers whose model did not generate the requested format.
_MALFORMED = re.compile(
    "produced output that does not match|json_validate_failed|tool_use_failed"
)
_MOST_BYTES = 32 * 2**20  # maximum size of a reply in bytes
_MOST_OF_ERROR = 64 * 2**10  # maximum number of bytes to read from an error response
_LIMIT = "max_tokens|max_completion_tokens|context length"
_FORMAT = "schema|response_format|structured|json_object"
#: Options that some models reject, and words that identify the option in the error message. If
#: ``json_schema`` is refused, any JSON object is requested. If ``response_format`` is refused, no
#: format is requested. If ``max_tokens`` is refused, the limit is sent as
#: ``max_completion_tokens``.
_OPTIONS = {
    "system": r"system (?:role|message)|role ['\"]system['\"]",
    "json_schema": _FORMAT,
    "response_format": _FORMAT,
    "logprobs": "logprob",
    "max_tokens": _LIMIT,
    "max_completion_tokens": _LIMIT,
    "temperature": "temperature",
    "seed": "seed",
}
_SHORTEST_SECRET = 8  # Shorter values, such as "none", indicate that there is no key.


class FunctionTransport:
    """Transport that calls a Python function instead of an endpoint."""

    name = "the function"

    def __init__(self, engine):
        self._function = function = engine.settings["complete"]
        module = getattr(function, "__module__", "")
        self.identity = f"{module}.{getattr(function, '__qualname__', '')}"
        self._takes_options = False
        # For functions that are not written in Python, the signature may be unavailable.
        with suppress(ValueError):
            parameters = inspect.signature(function).parameters.values()
            self._takes_options = any(p.kind is p.VAR_KEYWORD for p in parameters)

    async def attempt(self, call):
        """Call the function, which returns a string, a Reply, or an awaitable of either."""
        names = "model", "schema", "temperature", "seed", "max_tokens", "logprobs"
        options = {n: getattr(call, n) for n in names} if self._takes_options else {}
        out = self._function(_messages_of(call), **options)
        out = await out if inspect.isawaitable(out) else out
        if not isinstance(out, str | Reply):
            raise CallError(
                f"the client must return a string, got {type(out).__name__}"
            )
        return Reply(out) if isinstance(out, str) else out


class Endpoint:
    """Transport that sends calls to an endpoint that uses the chat-completions protocol."""

    def __init__(self, engine):
        self._settings = settings = engine.settings
        self._opened = engine.opened
        self._extra = settings["extra"] or {}
        url = settings["base_url"]
        self._url = urlsplit(url)
        route = self._url.path.rstrip("/") + "/chat/completions"
        self._address = self._url._replace(path=route).geturl()
        self.name = self._url.netloc
        #: Endpoint and extra parameters, which are part of the cache key.
        self.identity = [url, self._extra] if self._extra else url
        # For each model, whether the endpoint accepts each option
        self._accepts = defaultdict(dict)
        self._client: Any = None

    async def _connect(self):
        """Read the keys and open the client, which is unnecessary for cached replies."""
        named = self._settings["headers"] or {}
        headers = {name.lower(): self._read_key(v) for name, v in named.items()}
        variable = self._settings["key_variable"]
        is_local = is_loopback(self._url.hostname)
        if variable is not None and (os.environ.get(variable) or not is_local):
            headers.setdefault("authorization", f"Bearer {self._read_key(variable)}")
        self._mask = _masker_of(headers)
        self._headers = {**headers, "content-type": "application/json"}
        if self._client is None:
            openai = import_extra("openai", "apps")
            self._client = await self._opened.enter_async_context(
                openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=None)
            )
            # The loggers of the HTTP library may log headers.
            for name in fnmatch.filter([*logging.root.manager.loggerDict], "http*"):
                logger = logging.getLogger(name)
                logger.addFilter(self._mask_record)
                self._opened.callback(logger.removeFilter, self._mask_record)

    def _read_key(self, variable):
        value = os.environ.get(variable, "").strip()
        if not re.fullmatch("[!-~]+", value):
            raise EndpointError(
                f"the environment variable {variable} must contain the key for "
                f"{self._url.hostname}, in printable ASCII characters without spaces. Set the "
                "variable, or pass key_variable=None if no key is required"
            )
        return value

    def _mask_record(self, record):
        """Mask the keys in a log record of the HTTP library, which may contain headers."""
        record.msg = self._mask(record.getMessage())
        record.args = ()
        return True

    async def attempt(self, call):
        """Send a request, and repeat it with weaker forms of the options that are refused."""
        await self._connect()
        accepts = self._accepts[call.model]
        refused = {name for name in accepts if not accepts[name]}
        while True:
            body = _body_of(call, refused)
            in_use = [n for n in _OPTIONS if _body_of(call, refused | {n}) != body]
            status, content, headers = await self._send(body | self._extra)
            if 200 <= status < 300:
                reply = read_reply(content)
                self._learn(call.model, in_use, refused)
                weaker = [n for n in refused if _body_of(call, refused - {n}) != body]
                left_out = [name for name in weaker if not accepts[name]]
                # Keys in one piece have been masked.
                whole_reply = reply.text + "".join(reply.tokens)
                if self._mask(whole_reply) != whole_reply:
                    raise UnreadableError("the reply contains a key in several pieces")
                return replace(reply, left_out=left_out)
            message = " ".join(content.decode("utf-8", "replace").split())
            if _MALFORMED.search(message):
                return Reply("", finish_reason="malformed")
            name = _named(status, message, in_use)
            if name is None:
                raise self._fault(status, message, headers)
            if name.startswith("max_") and "context" in message.lower():
                call = replace(call, max_tokens=None)  # Another call may fit.
            else:
                refused.add(name)

    def _learn(self, model, in_use, refused):
        """Remember which options were accepted and which were refused.

        If an option was accepted once, it is sent again even after it is refused for another
        call.
        """
        accepts = self._accepts[model]
        accepts |= dict.fromkeys(in_use, True)
        if learnt := sorted(refused - accepts.keys()):
            accepts |= dict.fromkeys(learnt, False)
            warn(
                f"the endpoint does not accept {', '.join(map(repr, learnt))} for the model "
                f"{model!r}. Later calls omit these options or send weaker forms of them",
                ParameterWarning,
            )

    def _fault(self, status, message, headers):
        """Return the exception for an error response."""
        if status == 404:
            asked = f"POST {self._address}"
            if not re.search(r"/v\d", self._url.path):
                asked += f", did you mean base_url {self._settings['base_url']}/v1?"
            message = f"{asked} {message}"
        wait = read_wait(headers, message)
        return fault_of(status, message, wait, any(self._accepts.values()))

    async def _send(self, body):
        """Send one request. Return the status, the body without keys, and the headers."""
        self._client.cookies.clear()
        stream = self._client.stream(
            "POST", self._address, content=json.dumps(body), headers=self._headers
        )
        timeout = self._settings["timeout"]
        try:
            async with asyncio.timeout(timeout), stream as response:
                content = await _read(response)
                masked = self._mask(content.decode("latin-1")).encode("latin-1")
                return response.status_code, masked, dict(response.headers)
        except TimeoutError:
            fault = PassingError(
                f"the endpoint did not reply within timeout={timeout:g} s. If the server "
                "processes only one call at a time, increase timeout or decrease in_flight"
            )
        except Exception as error:
            # Each HTTP library has its own types of errors.
            problem = self._mask(f"{type(error).__name__} ({error}")
            fault = PassingError(f"{problem[:SHORT]})")
        # Raise the error outside the "except" block, because the client's error contains the
        # request with its key.
        raise fault


async def _read(response):
    """Read a response up to the maximum size. The beginning of an error is sufficient."""
    body = b""
    most = _MOST_BYTES if response.is_success else _MOST_OF_ERROR
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                break
    except Exception:
        if response.is_success:
            raise
    return body[:most]


def _masker_of(headers):
    """Return a function that masks the keys in headers, even if JSON escapes some characters."""
    secrets = [value.removeprefix("Bearer ") for value in headers.values()]
    secrets = sorted(secrets, key=len, reverse=True)
    patterns = [
        "".join(
            rf"(?:\\{{0,3}}{re.escape(c)}|\\{{1,3}}(?i:u{ord(c):04x}))" for c in secret
        )
        for secret in secrets
        if len(secret) >= _SHORTEST_SECRET
    ]
    return partial(re.compile("|".join(patterns) or "(?!)").sub, "***")


def _named(status, message, in_use):
    """Return the name of the option that is refused according to an error message, or None."""
    if status not in (400, 403, 422, 500, 501):
        return None
    text = message.lower()
    with suppress(*ODD):
        text = json.loads(message)["error"]["param"].lower()
    # An error with status 500 or 501 is temporary, unless it comes from the chat template of
    # the server.
    names = in_use if status < 500 else {"system"} & {*in_use}
    return next((name for name in names if re.search(_OPTIONS[name], text)), None)


def _messages_of(call):
    return [{"role": role, "content": text} for role, text in call.messages]


def _body_of(call, refused):
    """Return the request body of a call, with weaker forms of the options that are refused."""
    messages = _messages_of(call)
    if "system" in refused:
        joined_text = "\n\n".join(text for _, text in call.messages[:2])
        messages[:2] = [{"role": "user", "content": joined_text}]
    limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
    body = {
        "model": call.model,
        "stream": False,
        "messages": messages,
        limit: call.max_tokens,
        "temperature": call.temperature,
        "seed": call.seed,
    }
    if call.logprobs and "logprobs" not in refused:
        body |= {"logprobs": True, "top_logprobs": 5}
    if call.schema and call.structured:
        schema = json.loads(call.schema)
        reply = {"name": "reply", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": reply}
        if "json_schema" in refused:
            body["response_format"] = {"type": "json_object"}
    return {n: v for n, v in body.items() if v is not None and n not in refused}


# maximum total duration in seconds of the pauses without a successful call
_PATIENCE = 600.0
_MANY = 10  # number of consecutive refusals after which the requested pause doubles
_RECOVERY = 20  # number of successful calls after which the rate doubles
_SHORTEST = 0.01  # shortest pause in seconds


def back_off(n: int) -> float:
    """Return the seconds to wait after n consecutive failures, if the server requests no time."""
    return min(0.5 * 2**n, 60) * (1 - 0.25 * random.random())


class Pace:
    """Scheduler that starts calls at the rate that an endpoint accepts.

    Parameters
    ----------
    in_flight : int
        Maximum number of concurrent calls.
    """

    def __init__(self, in_flight: int):
        self.slots = asyncio.Semaphore(in_flight)

        self._n_refused = 0  # number of consecutive refusals
        self._waited = 0.0  # total duration of the pauses after these refusals
        self._pause = 0.0  # duration of the last pause
        self._resume = -math.inf  # end of the last pause
        self._n_taken = 0  # number of successful calls since the last refusals
        self._first = time.monotonic()  # start of the first of these calls
        self._next = -math.inf  # earliest start of the next call
        # seconds between the starts of two calls, unless calls are refused
        self._gap = 0.0
        self._gain = 0.0  # increase in calls per second after each success

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a call may start, and adapt the rate to the result of the call."""
        async with self.slots:
            while (wait := max(self._resume, self._next) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            begun = time.monotonic()
            gap = self._pause / 2 if self._n_refused else self._gap
            # Calls that were delayed by a pause may start together after the pause.
            self._next = max(self._next, begun - self._pause) + gap
            try:
                yield
            except PassingError as error:
                is_limit = isinstance(error, RefusedError) or error.wait is not None
                # Calls that started before the last pause ended do not start another pause.
                if is_limit and begun >= self._resume:
                    self._slow_down(error)
                raise
            self._waited = 0.0
            if begun >= self._resume:
                if self._n_refused:
                    self._n_refused = self._n_taken = 0
                    self._first = begun
                self._n_taken += 1
                self._gap /= 1 + self._gain * self._gap

    def _slow_down(self, error):
        """Pause all calls, and reduce the rate at which they start after the pause."""
        pause = back_off(self._n_refused + 1)
        if error.wait is not None:
            # The server may still refuse calls after the wait that it requests.
            pause = max(error.wait, _SHORTEST) * 2 ** (self._n_refused // _MANY)
        if self._waited + pause > _PATIENCE:
            raise EndpointError(
                f"the endpoint has refused all calls for {self._waited:.0f} s, and the next "
                f"pause would last {pause:.0f} s. The maximum is {_PATIENCE:.0f} s without a "
                f"successful call. Try again later: {error}"
            ) from error
        resume = time.monotonic() + pause
        if self._n_taken:
            # The measured time per success includes the pause.
            measured = (resume - self._first) / self._n_taken
            self._gap = min(measured, 2 * self._gap or measured, pause / 2)
            self._gain = 1 / (_RECOVERY * self._gap)
        self._n_refused += 1
        self._waited += pause
        self._pause, self._resume = pause, resume


# maximum time in seconds to wait for another program that has locked the cache file
_BUSY_SECONDS = 60
_TABLE = """PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL,
prompt TEXT NOT NULL, time REAL NOT NULL)"""


class ReplyCache:
    """File cache of model replies, keyed by a digest of the call.

    Several programs can use the same file at the same time. The file may contain private texts,
    so only its owner has access. The file never contains API keys.
    """

    def __init__(self, path):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite creates its auxiliary files with the same permissions as the database
        # file.
        path.touch(0o600)
        # Opening a folder raises an error, so the permissions of a folder are never changed.
        path.open("ab").close()
        path.chmod(0o600)
        # SQLite does not wait while another program changes the journal mode, so this loop
        # retries until the time limit is reached.
        end = time.monotonic() + _BUSY_SECONDS
        while True:
            self._db = sqlite3.connect(
                path,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
                isolation_level=None,
            )
            self.close = self._db.close
            try:
                self._db.executescript(_TABLE)
                return
            except sqlite3.DatabaseError as error:
                self.close()
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise ValueError(
                        f"the cache {os.fspath(path)!r} cannot be used ({error}). "
                        "Pass another path, or delete the file if no other program "
                        "uses it"
                    ) from error
            time.sleep(0.02)

    def get(self, key: str) -> tuple[str, str] | None:
        """Return the reply (as JSON) and the name of its prompt, or None if it is not cached."""
        query = "SELECT reply, prompt FROM replies WHERE key = ?"
        return self._db.execute(query, (key,)).fetchone()

    def __setitem__(self, key: str, reply: tuple[str, str]):
        row = key, *reply, time.time()
        self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)

    def purge(self, seconds: float) -> int:
        """Delete the replies that are at least ``seconds`` old, and return the number deleted."""
        query = "DELETE FROM replies WHERE time <= ?"
        count = self._db.execute(query, (time.time() - seconds,)).rowcount
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count


#: Maximum number of requests to obtain a usable reply.
MOST_ASKS = 3
_WARMER = 0.3  # temperature increase per retry
_WARMEST = 1.0  # maximum temperature, unless the first call used a higher temperature
_MOST_CHARACTERS = 6  # maximum plausible number of characters per prompt token
# A smaller token count may exclude the tokens that the server had cached.
_FEWEST_TOKENS = 256
CUT_PROMPT = (
    "the endpoint counted far fewer tokens than the prompt has, so the server may "
    "have truncated the prompt. Increase the context length of the server"
)
# number of characters of an unusable reply to send back to the model
_SHOWN_BACK = 4000
_LOG = logging.getLogger("skdcf.apps.llm")


class Engine:
    """State of a client that persists between its runs."""

    def __init__(self, transport, settings, cache):
        self.settings = settings
        self.opened = AsyncExitStack()  # what is closed together with the engine
        self.transport = transport(self)
        self.pace = Pace(settings["in_flight"])
        self.cache = cache
        # Models whose reasoning requires more tokens than the limit of a reply
        self.thinking = set()
        # Locks of the calls in progress, keyed by the digest of the call.
        self.locks = WeakValueDictionary[str, asyncio.Lock]()
        # Issue a warning only once if it applies to all calls.
        self.warn_once = functools.cache(partial(warn, category=ParameterWarning))
        self.process = os.getpid()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with self._runner:
            self._loop.run_forever()
            with suppress(Exception):
                self._runner.run(self.opened.aclose())
        if self.cache is not None:
            self.cache.close()

    def submit(self, work):
        """Start work in the event loop, and return a `concurrent.futures.Future`."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ValueError(
                "a function called by a client must not call the same client, because this "
                "would cause a deadlock"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the event loop and its tasks. In a forked process, the method does nothing."""
        if self.process != os.getpid():
            return
        with suppress(RuntimeError):  # another thread has closed the loop
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)


@dataclass
class Chat:
    """Calls of a model for one problem in a run of the engine.

    The problems of a run share ``known``, which contains the stored replies, ``unreadable``, which
    contains the errors of calls without a usable reply, and ``errors``, which lists the errors
    since the last successful call. ``allowance`` is an iterator with one item per permitted call.
    ``usage`` contains the numbers of calls and tokens for the problem. ``flags`` describes
    anomalies, and ``left_out`` names the options that the endpoint did not accept.
    """

    engine: Engine
    known: Any
    unreadable: dict[str, UnreadableError]
    errors: list[str]
    model: str | None
    allowance: Iterator[int]
    usage: Usage = field(default_factory=Usage)
    flags: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    def of(self, model: str | None) -> Chat:
        """Return a copy of the chat with another model, or the same model if ``model`` is None."""
        return replace(self, model=self.model if model is None else model)

    def flag(self, text: str | None) -> None:
        """Add a flag unless the flag is None or already present."""
        if text is not None and text not in self.flags:
            self.flags.append(text)

    async def ask(
        self, prompt, content, read, *, schema=None, limit=None, stride=1, **options
    ):
        """Return the result of ``read`` for the reply of the model.

        ``content`` is the input of the model, given as a string or as an object. If ``read``
        raises ValueError, the request is repeated with another seed. ``stride`` is the difference
        between the seeds of two requests. ``limit`` is the length limit of the reply in tokens,
        unless the client has its own limit. If JSON is expected, the backslashes of the reply are
        repaired.
        """
        engine = self.engine
        shown = "\n".join(texts_in(content))
        if isinstance(content, dict):
            content = json.dumps(content, ensure_ascii=False)
        n_characters = len(prompt.text) + len(content)

        def read_repaired(reply):
            self.left_out.update(reply.left_out)
            if _FEWEST_TOKENS <= reply.prompt_tokens < n_characters / _MOST_CHARACTERS:
                self.flag(CUT_PROMPT)
                engine.warn_once(CUT_PROMPT)
            if schema is not None:
                reply = replace(reply, text=repair_json(reply.text, shown))
            return read(reply)

        messages = (("system", prompt.text), ("user", content))
        options["schema"] = json.dumps(schema) if schema else None
        options["max_tokens"] = engine.settings["max_tokens"] or limit
        call = Call(self.model or "", messages, prompt=prompt.name, **options)
        return await self._ask_once(call, read_repaired, stride)

    async def _ask_once(self, call, read, stride):
        """Return the result of ``read`` for the reply to a call, which may be stored.

        The first readable reply is stored under the digest of the first call. If an equal call
        is in progress, its end is awaited, and the stored reply is read. A call without a usable
        reply is not repeated in the same run.
        """
        engine = self.engine
        key = call.key(engine.transport.identity)
        async with engine.locks.setdefault(key, asyncio.Lock()):
            stored = self.known.get(key)
            if stored is not None:
                # If a stored reply cannot be parsed, the request is sent again.
                with suppress(ValueError, TypeError):
                    reply = Reply(**json.loads(stored[0]))
                    value = read(reply)
                    self.usage.add(reply, cached=True)
                    return value
            if key in self.unreadable:
                raise self.unreadable[key]
            try:
                reply, value = await self._converse(call, read, stride)
            except UnreadableError as error:
                self.unreadable[key] = error
                raise
            self._store(key, reply, call.prompt)
            return value

    async def _converse(self, first, read, stride):
        """Return the first usable reply and its value, within the maximum number of requests."""
        engine = self.engine
        call = first
        for number in range(MOST_ASKS):
            limit = first.max_tokens
            # A limit set by the user always applies. The default limit does not apply to models
            # that use more tokens for reasoning than for the reply.
            if limit is not None and engine.settings["max_tokens"] is None:
                is_thinking = call.model in engine.thinking
                limit = None if is_thinking else limit * 2**number
            reply = await self._fetch(replace(call, max_tokens=limit))
            try:
                return reply, read(reply)
            except ValueError as error:
                fault = str(error)
            call = _ask_again(first, reply, fault, number + 1, stride)
        raise UnreadableError(
            f"{call.prompt}: the reply from {call.model!r} cannot be used: {fault}",
            reply.text,
        )

    def _store(self, key, reply, prompt):
        """Store a reply. After a disk error, the reply is used without being stored."""
        try:
            self.known[key] = json.dumps(asdict(reply)), prompt
        except sqlite3.OperationalError as error:
            self.engine.warn_once(
                f"a reply cannot be stored in the cache ({error}), so another run "
                "would request it again. Free some disk space"
            )

    async def _fetch(self, call):
        """Send a call, and count and log it."""
        engine = self.engine
        if (n := len(self.errors)) >= max(10, 2 * engine.settings["in_flight"]):
            raise EndpointError(
                f"no more calls are made, because the last {n} calls have failed. The last "
                f"error was: {self.errors[-1]}"
            )
        if next(self.allowance, None) is None:
            raise CallError(
                f"at most max_calls={engine.settings['max_calls']} calls are allowed per "
                "problem, and all of these calls were made. Shorten the answer, or increase "
                "max_calls"
            )
        begin = time.monotonic()
        reply = Reply("", "failed")
        try:
            reply = await self._complete(call)
            self.errors.clear()
        except CallError as error:
            self.errors.append(str(error))
            raise
        finally:
            _LOG.info(
                "call model=%s prompt=%s outcome=%s seconds=%.2f tokens=%d+%d",
                call.model,
                call.prompt,
                reply.finish_reason,
                time.monotonic() - begin,
                reply.prompt_tokens,
                reply.completion_tokens,
            )
        self.usage.add(reply)
        if reply.finish_reason == "length" and _is_thought(reply.text):
            engine.thinking.add(call.model)
        return reply

    async def _complete(self, call):
        """Return the reply to a call, or raise CallError if all attempts fail."""
        engine = self.engine
        n_failed = 0
        while True:
            try:
                async with engine.pace.turn():
                    return await engine.transport.attempt(call)
            except RefusedError:
                pass  # All calls have already been paused.
            except PassingError as error:
                n_failed += 1
                if n_failed > engine.settings["max_retries"]:
                    raise CallError(
                        f"the endpoint did not reply after {n_failed} attempts: {error}"
                    ) from error
                if error.wait is None:
                    await asyncio.sleep(back_off(n_failed - 1))
            self.usage.retries += 1


def _is_thought(text):
    """Return whether a truncated reply contains only reasoning."""
    return not text or ("<think>" in text and "</think>" not in text)


def _ask_again(first, reply, fault, number, stride):
    """Return the next call after an unusable reply, derived from the first call.

    The call has another seed. If JSON is expected, the call also contains a description of the
    fault, and has a higher temperature, so the reply is likely to differ.
    """
    call = replace(first, seed=first.seed + number * stride)
    if first.schema is None:
        return call
    warmest = max(first.temperature, _WARMEST)
    warmer = min(first.temperature + _WARMER * number, warmest)
    if reply.finish_reason == "length":
        fault += "; it was cut off, so be brief"
    complaint = f"This reply cannot be used: {fault}. Reply again, as you were told."
    system, (_, content) = first.messages
    messages = (system, ("user", f"{content}\n\n{complaint}"))
    if reply.text.strip():
        shown = ("assistant", reply.text[:_SHOWN_BACK])
        messages = (*first.messages, shown, ("user", complaint))
    is_whole = reply.finish_reason not in ("length", "malformed")
    return replace(call, messages=messages, temperature=warmer, structured=is_whole)


async def gather_all(engine, items, work, model, *, show=False):
    """Run ``work(chat, item)`` concurrently for all items.

    If ``show`` is True, a progress bar is shown.

    Returns
    -------
    results : list
        The result or the CallError of each item. An EndpointError, or any other exception that
        is not a CallError, stops all items.
    usage : Usage
        The numbers of calls and tokens of the run.
    """
    chat_of = partial(
        Chat, engine=engine, known=engine.cache or {}, unreadable={}, errors=[]
    )
    usage = Usage()
    # The number of items in progress is sufficient to use all slots.
    places = asyncio.Semaphore(2 * engine.settings["in_flight"])

    async def complete(item):
        nonlocal usage
        async with places:
            chat = chat_of(
                model=model, allowance=islice(count(), engine.settings["max_calls"])
            )
            try:
                return await work(chat, item)
            except EndpointError:
                raise
            except CallError as error:
                return error
            finally:
                usage += chat.usage
                bar.update()

    with tqdm(total=len(items), desc="extract", disable=not show) as bar:
        results = await gather_coroutines(*map(complete, items))
    return results, usage


async def gather_coroutines(*work):
    """Run coroutines concurrently. The first error cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


_OPENAI = "https://api.openai.com/v1"
_LOCK = threading.Lock()  # The lock is held while an engine is created.
_SECRET_WORDS = ("key", "token", "secret", "password", "sig", "auth")
_OURS = {"model", "messages", "response_format", "seed", "stream", "n", "logprobs"}


@dataclass(eq=False, repr=False)
class ChatClient(Settings):
    """Client for a function, or for an endpoint that uses the chat-completions protocol.

    Parameters
    ----------
    base_url : str, optional
        URL of the endpoint, such as ``"http://127.0.0.1:8000/v1"``. The URL may contain a query
        string, such as ``?api-version=...``. The default is the value of the environment variable
        ``OPENAI_BASE_URL``, or OpenAI's endpoint if the variable is not set.
    complete : callable, optional
        Function ``complete(messages)`` to call instead of an endpoint. ``messages`` is a list of
        dictionaries with the keys ``role`` and ``content``. The function returns a string or a
        `Reply`, and may be asynchronous. If the function accepts ``**options``, it receives
        ``model``, ``schema``, ``temperature``, ``seed``, ``max_tokens`` and ``logprobs``. The
        cache identifies the function by its module and its name, so different functions must have
        different names.
    key_variable : str or None, default="OPENAI_API_KEY"
        Name of the environment variable that contains the API key for the endpoint. The key is
        read when calls are made, and is never stored. If None, no key is sent.
    headers : dict, optional
        Mapping from the name of each additional header to the environment variable that
        contains its value. For example, ``api-key`` may be mapped to ``AZURE_KEY``. The values of
        other environment variables are not sent. For example, to send an organization, map
        ``OpenAI-Organization`` to ``OPENAI_ORG_ID``.
    extra : dict, optional
        Additional fields for each request body, such as ``{"top_k": 1}``. These fields are part
        of the cache key of a reply.
    cache : path-like, optional
        File that stores all usable replies, so no reply is requested twice and an interrupted
        run can be resumed. Other users of the machine cannot read the file. If None, replies are
        kept only for the duration of a run.
    in_flight : int, default=8
        Maximum number of concurrent calls, across all threads that use this client.
    timeout : float, default=600.0
        Time limit in seconds for each attempt, including the time that the server queues the
        request and the time to receive the whole reply.
    max_retries : int, default=5
        Maximum number of retries of a call after a status code 408, 409, 425 or 5xx, a lost
        connection, a timeout or a malformed response. A response with status code 429 (rate
        limit) is not counted as an attempt. After a rate limit, all calls pause for the time that
        the server requests. If the server does not specify a time, the first pause lasts one
        second, and each further pause is twice as long, up to 60 seconds. The run fails if the
        pauses would last more than ten minutes without a successful call.
    max_tokens : int, optional
        Maximum length of a reply in tokens. If None, the limit is about three times the expected
        length plus 300. A reply that reaches the limit is requested again, without a schema and
        with twice the limit. If the reasoning of a model alone reaches the default limit, the
        limit is removed for this model.
    max_calls : int, optional
        Maximum number of calls for one problem in a run. A problem that requires more calls
        fails. If None, there is no limit.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    EndpointError
        If a call is made to an endpoint on another machine, but the API key is missing.
    ImportError
        If a call is made to an endpoint, but the package ``openai`` is not installed.

    Notes
    -----
    If an endpoint refuses an option, the request is sent in another form. A warning is issued, and
    the accepted form is remembered for each model. If a schema in ``response_format`` is refused,
    the client requests any JSON object, and then plain text, which is parsed leniently.
    ``max_tokens`` is sent as ``max_completion_tokens``. ``temperature``, ``seed`` and
    ``logprobs`` are omitted. A system message is moved to the beginning of the user's message.

    Connections remain open between runs, until `close` is called or the client is deleted. A
    client loaded by `skdcf.load` has no address, key or cache until these are set with
    ``set_params(base_url=..., key_variable=...)``.

    Examples
    --------
    >>> from skdcf.apps.llm import ChatClient, Decompose
    >>> client = ChatClient(complete=lambda messages: '{"claims": ["2 + 2 = 4"]}')
    >>> Decompose().apply(["It is 4."], ["What is 2 + 2?"], model="any", client=client)
    [['2 + 2 = 4']]
    """

    _parameter_constraints = {
        "base_url": [str, None],
        "complete": [callable, None],
        "key_variable": [str, None],
        "headers": [dict, None],
        "extra": [dict, None],
        "cache": [str, os.PathLike, None],
        "in_flight": [positive(Integral)],
        "timeout": [positive()],
        "max_retries": [Number(Integral, 0, None, closed="left")],
        "max_tokens": [positive(Integral), None],
        "max_calls": [positive(Integral), None],
    }
    # The engine is stored together with the settings that created it.
    _engine = cast(Any, None)

    base_url: str | None = None
    _: KW_ONLY
    complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    headers: Mapping[str, str] | None = None
    extra: Mapping[str, Any] | None = None
    cache: str | os.PathLike | None = None
    in_flight: int = 8
    timeout: float = 600.0
    max_retries: int = 5
    max_tokens: int | None = None
    max_calls: int | None = None

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        if self.base_url is self.complete is self.key_variable is None:
            raise ValueError(
                "base_url is missing, because the client was loaded from a file. Set "
                "base_url with set_params(base_url=..., key_variable=...)"
            )
        if self.base_url is not None:
            _check_url(self.base_url)
            if self.complete is not None:
                raise ValueError(
                    "base_url and complete cannot both be set. Pass only one of them"
                )
        if taken := _OURS.intersection(self.extra or ()):
            raise ValueError(
                f"extra must not contain {sorted(taken)}, because skdcf sets these parameters"
            )
        pairs = (self.headers or {}).items()
        if not all(isinstance(name, str) for pair in pairs for name in pair):
            raise ValueError(
                f"headers must map header names to environment variables, got {self.headers!r}"
            )

    def _submit(self, items, work, model, **options):
        """Start ``work(chat, item)`` for each item, and return a future.

        The future returns the results of all items and the usage of the run. ``options`` are
        the options of `gather_all`.
        """
        engine = self._started()
        return engine.submit(gather_all(engine, items, work, model, **options))

    async def _later(self, *work, **options):
        """Run `_submit` without blocking the caller's event loop."""
        return await asyncio.wrap_future(self._submit(*work, **options))

    async def _now(self, *work, **options):
        """Run `_submit`, and block until the work is complete. `finish` returns the result."""
        future = self._submit(*work, **options)
        try:
            # On Windows, Ctrl-C only interrupts the loop between two waits.
            while not wait([future], 0.5).done:
                pass
            return future.result()
        finally:
            # The wait may have been interrupted, for example by Ctrl-C.
            future.cancel()

    def purge(self, older_than: timedelta | float = 0.0) -> int:
        """Delete replies from the cache.

        Parameters
        ----------
        older_than : timedelta or float, default=0.0
            Minimum age of the replies to delete, as a timedelta or in seconds. By default, all
            replies are deleted.

        Returns
        -------
        n_deleted : int
            Number of deleted replies.

        Raises
        ------
        ValueError
            If the client has no cache.
        """
        if self.cache is None:
            raise ValueError(
                "replies are not stored, because the cache of this client is None"
            )
        if isinstance(older_than, timedelta):
            older_than = older_than.total_seconds()
        with closing(ReplyCache(self.cache)) as cache:
            return cache.purge(older_than)

    def close(self) -> None:
        """Close the connections, which are opened again by the next run."""
        with _LOCK:
            opened = self._engine
            self._engine = None
        if opened is not None:
            opened[2]()

    def _started(self):
        """Return the engine for the current settings, and start it if necessary."""
        self.validate()
        url = self.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        settings = self.get_params(deep=False) | {"base_url": url.rstrip("/")}
        with _LOCK:
            if self._engine is not None:
                engine, made_with, end = self._engine
                if made_with == settings and engine.process == os.getpid():
                    return engine
                end()
            cache = None if self.cache is None else ReplyCache(self.cache)
            transport = Endpoint if self.complete is None else FunctionTransport
            engine = Engine(transport, settings, cache)
            self._engine = engine, settings, weakref.finalize(self, engine.close)
            return engine

    def __getstate__(self):
        return super().__getstate__() | {"_engine": None}


def finish(work: Any) -> Any:
    """Return the result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value


def as_client(client: Any) -> ChatClient:
    """Convert a client, a function or None to a `ChatClient`.

    Parameters
    ----------
    client : ChatClient, callable or None
        A client, a function to call instead of an endpoint, or None for the default endpoint.

    Returns
    -------
    client : ChatClient
        The given client, or a new client if a function or None was given.

    Raises
    ------
    ValueError
        If the value is not a client, a function or None. Clients of the package ``openai`` are
        rejected, because they store the API key.
    """
    if client is None or isinstance(client, ChatClient):
        return client or ChatClient()
    if callable(client) and not isinstance(client, type):
        return ChatClient(complete=client)
    raise ValueError(
        f"client must be a ChatClient or a function, got {type(client)}. An openai "
        "client stores its key, so pass ChatClient(..., key_variable=...) instead"
    )


def _check_url(url):
    split_url = urlsplit(url)
    if split_url.scheme not in ("http", "https") or not split_url.hostname:
        raise ValueError(f"base_url must begin with http:// or https://, got {url!r}")
    named = [
        name.lower() for name, _ in parse_qsl(split_url.query, keep_blank_values=True)
    ]
    secret = any(word in name for name in named for word in _SECRET_WORDS)
    if split_url.username or split_url.password or secret:
        raise ValueError(
            "base_url must not contain a user name, a password or a key. Store keys "
            "in environment variables, and pass the names of these variables"
        )


def run_all(client: Any, items: Sequence[Any], *work: Any, **options: Any) -> Any:
    """Return the results and the usage of a run, or raise CallError if a call failed."""
    results, usage = finish(as_client(client)._now(items, *work, **options))
    raise_first(results)
    return results, usage


def raise_first(results: Sequence[Any]) -> None:
    """Raise the first CallError among the results, if any."""
    failed = [(i, r) for i, r in enumerate(results) if isinstance(r, CallError)]
    for i, error in failed[:1]:
        raise CallError(
            f"{len(failed)} of {len(results)} problems failed. The first failed problem "
            f"is problem {i}: {error}. If replies are cached, running the same call again "
            "only repeats the failed problems"
        ) from error
