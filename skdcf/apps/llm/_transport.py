"""Requests over HTTP with the openai client's own, tried again where that may help.

Connections and encodings are the client's. What calls it has retries of its own, since a
pause that a server asks for has to hold for all calls in flight, and each attempt needs
one deadline that includes its body. Of the environment nothing is sent but what the
caller names, and no redirect is followed: texts and keys stay with the host they are for.
"""

import asyncio
import inspect
import json
import logging
import os
import random
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..._checks import import_extra, is_loopback, warn
from ...exceptions import ParameterWarning
from . import _calls as calls
from ._calls import CallError, EndpointError, PassingError
from ._patience import LONGEST_WAIT, RateLimit, read_wait
from ._reply import Reply

#: What llama.cpp says of a reply that its own parser cannot read.
_MALFORMED = "produced output that does not match the expected"
_MOST_BYTES = 32 * 2**20  # bytes of one reply
_MOST_OF_ERROR = 64 * 2**10  # bytes of an error that are read
#: What not every model takes, and words by which a refusal speaks of it.
_OPTIONAL = {
    "system": ("system role", "system message", "role 'system'", 'role "system"'),
    "response_format": ("schema", "response_format", "structured", "json_object"),
    "logprobs": ("logprob",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "context length"),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
_SHORTEST_SECRET = 8  # letters of a key; shorter ones, such as "none", stand for no key


class FunctionTransport:
    """A function of the caller's in the place of an endpoint."""

    warned_of = frozenset()

    def __init__(self, settings):
        self._function = function = settings["complete"]
        module = getattr(function, "__module__", "")
        named: Mapping[str, inspect.Parameter] = {}
        self.identity = f"{module}.{getattr(function, '__qualname__', '')}"
        # A function that is not written in Python may raise this.
        with suppress(ValueError):
            named = inspect.signature(function).parameters
        self._takes_options = any(p.kind is p.VAR_KEYWORD for p in named.values())

    async def complete(self, call, usage):
        """Call the function, which returns a text or a Reply, at once or to be awaited."""
        names = "model", "schema", "temperature", "seed", "max_tokens", "logprobs"
        options = {n: getattr(call, n) for n in names} if self._takes_options else {}
        out = self._function(_messages_of(call), **options)
        out = await out if inspect.isawaitable(out) else out
        if not isinstance(out, str | Reply):
            raise CallError(
                f"the client returned a {type(out).__name__}, but must return a text"
            )
        return Reply(out) if isinstance(out, str) else out

    async def close(self):
        """Do nothing, as there is nothing to close."""


class Endpoint:
    """Calls to an endpoint that speaks the chat-completions protocol."""

    def __init__(self, settings):
        url = settings["base_url"]
        self._extra = settings["extra"] or {}
        self._settings = settings
        self._url = urlsplit(url)
        #: Endpoint and extras as they stand in the names of replies.
        self.identity = [url, self._extra] if self._extra else url
        #: For each model the first way in which each of its parameters is sent.
        self._ways = {}
        #: What was left out with a warning, since the endpoint refuses it.
        self.warned_of = set()
        self._limit = RateLimit(lambda n: _back_off(n))
        self.slots: Any = None  # slots of the engine, which bounds all calls
        self._client: Any = None

    def _connect(self):
        """Read keys; what is in the cache needs neither a key nor the client."""
        named = self._settings["headers"] or {}
        variable = self._settings["key_variable"]
        headers = {name.lower(): self._read_key(v) for name, v in named.items()}
        key = os.environ.get(variable or "", "").strip()
        if variable is not None and (key or not is_loopback(self._url.hostname)):
            headers = {"authorization": f"Bearer {self._read_key(variable)}", **headers}
        self._headers = {**headers, "content-type": "application/json"}
        sent = [value.removeprefix("Bearer ") for value in headers.values()]
        long = [re.escape(secret) for secret in sent if len(secret) >= _SHORTEST_SECRET]
        self._secrets = re.compile("|".join(sorted(long, key=len)[::-1]) or "(?!)")
        if self._client is not None:
            return
        openai = import_extra("openai", "apps")
        self._client = openai.DefaultAsyncHttpxClient(
            follow_redirects=False, timeout=None
        )
        for logger in _their_loggers():
            logger.addFilter(self._mask_record)

    async def close(self):
        """Close connections."""
        if self._client is not None:
            await self._client.aclose()
            for logger in _their_loggers():
                logger.removeFilter(self._mask_record)

    def _mask_record(self, record):
        """A filter of log records, also of other packages: they hold no key."""
        message = record.getMessage()
        if (masked := self.mask(message)) != message:
            record.msg = masked
            record.args = ()
        return True

    def mask(self, text):
        """Mask the keys in a text, also where JSON escapes letters of them."""
        plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
        plain = re.sub(r'\\(["\\/])', r"\1", plain)
        masked = self._secrets.sub("***", plain)
        return self._secrets.sub("***", text) if masked == plain else masked

    async def complete(self, call, usage):
        """The reply to a call; CallError where there is none after all attempts."""
        self._connect()
        n_sent = 0

        async def request():
            nonlocal n_sent
            usage.retries += n_sent > 0
            n_sent += 1
            return await self._attempt(call)

        most = self._settings["max_retries"]
        for attempt in range(most + 1):
            try:
                return self._without_keys(await self._limit.attempt(request))
            except PassingError as error:
                problem, wait = (*error.args, None)[:2]
            if wait is not None and wait > LONGEST_WAIT:
                break
            if wait is not None:
                self._limit.pause(wait)
            elif attempt < most:
                await asyncio.sleep(_back_off(attempt))
        raise CallError(f"no reply after {attempt + 1} attempts: {self.mask(problem)}")

    def _without_keys(self, reply):
        """A server may say a key back; it is neither stored nor shown."""
        if self.mask(whole_reply := reply.text + "".join(reply.tokens)) == whole_reply:
            return reply
        return replace(reply, text=self.mask(reply.text), top_logprobs=[], tokens=[])

    async def _attempt(self, call):
        """One request; without what the model refuses, which is finite, another one."""
        while True:
            ways = _ways_of(call)
            begin = self._ways.setdefault(call.model, dict.fromkeys(ways, 0))
            left = {name: w[begin[name] :] or w[-1:] for name, w in ways.items()}
            sent = {k: v for way, *_ in left.values() for k, v in way.items()}
            status, body, headers = await self._send(sent | self._extra)
            if 200 <= status < 300:
                return calls.read_reply(body)
            message = self._message(body)
            several_ways = {name for name, w in left.items() if len(w) > 1}
            if status >= 500 and _MALFORMED in message:
                return Reply("", finish_reason="malformed")
            if (name := _refused(status, body, message.lower(), several_ways)) is None:
                fault = calls.fault_of(status, message, read_wait(headers, message))
                if 300 <= status < 400 and self._limit.has_succeeded:
                    # A gateway answers so on its way to another server.
                    raise PassingError(*fault.args)
                raise fault
            if begin[name] == 0 and name in ("temperature", "seed", "logprobs"):
                self.warned_of.add(name)
                warn(
                    f"the endpoint does not accept {name!r}; later calls leave it out",
                    ParameterWarning,
                )
            _fall_back(begin, name, len(ways[name]) - len(left[name]), message.lower())

    async def _send(self, body):
        """Send one request, and return status, body and headers."""
        self._client.cookies.clear()
        route = self._url.path.rstrip("/") + "/chat/completions"
        url = self._url._replace(path=route).geturl()
        sent = json.dumps(body)
        stream = self._client.stream("POST", url, content=sent, headers=self._headers)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._settings["timeout"]), stream as response:
                return await _read(response)
        except Exception as error:  # from whichever HTTP library the client uses
            problem = f"{type(error).__name__} ({str(error)[: calls.SHORT]})"
            is_slow = isinstance(error, TimeoutError)
        # Outside of "except": the client's errors hold the request with its key.
        if is_slow:
            await self._slow_down(begun)
        raise PassingError(self.mask(problem))

    async def _slow_down(self, begun):
        """Have fewer calls in flight after one that began at a time and took too long."""
        most = self.slots.most
        if self.slots.halve(begun) and most == self._settings["in_flight"]:
            warn(
                f"a call took longer than {self._settings['timeout']:g} s: {self.slots.most} "
                f"calls are in flight at once from now on, and no longer {most}. A server "
                "that works on one call at a time needs a longer timeout, or a smaller "
                "in_flight",
                ParameterWarning,
            )
        await self.slots.give_way()

    def _message(self, body):
        """What a server says of an error, in one line and without keys."""
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        return " ".join(self.mask(text).split())

    def _read_key(self, variable):
        value = os.environ.get(variable, "").strip()
        if not value:
            raise EndpointError(
                f"the environment variable {variable} is not set, and "
                f"{self._url.hostname} may ask for a key: set it, or pass "
                "key_variable=None for none"
            )
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise EndpointError(
                f"the environment variable {variable} holds letters that no header can hold"
            )
        return value


async def _read(response):
    """A response as far as it is of use."""
    body = b""
    most = _MOST_BYTES if response.is_success else _MOST_OF_ERROR
    # Of an error the beginning will do.
    with suppress(*() if response.is_success else (Exception,)):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                break
    if response.is_success and len(body) > most:
        raise PassingError(f"the response is longer than {most} bytes")
    return response.status_code, body[:most], dict(response.headers)


def _their_loggers():
    """Loggers of the openai client and of what it sends with, which may log headers."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0].rstrip("2") in ("openai", "httpx", "httpcore"):
            yield logging.getLogger(name)


def _refused(status, body, message, left):
    """Name of a parameter that the endpoint does not take, or None."""
    if status not in (400, 422, 500, 501):
        return None
    with suppress(*calls.ODD):
        named = json.loads(body)["error"]["param"]
        message = named.lower() if isinstance(named, str) and named else message
    if status >= 500:  # which may pass, unless a template of the server says it
        left &= {"system"}
    for name, words in _OPTIONAL.items():
        if name in left and any(word in message for word in words):
            return name
    return None


def _fall_back(begin, name, way, message):
    """Send a parameter in its next way from now on, calls in flight or not."""
    following = 2 if name == "max_tokens" and "context" in message else way + 1
    begin[name] = max(begin[name], following)


def _back_off(attempt):
    return min(0.5 * 2**attempt, 60) * (1 - 0.25 * random.random())


def _messages_of(call):
    return [{"role": role, "content": text} for role, text in call.messages]


def _ways_of(call):
    """In which ways each part of a call can be sent, the one that says most first."""
    messages = _messages_of(call)
    joined_text = "\n\n".join(message["content"] for message in messages[:2])
    merged = [{"role": "user", "content": joined_text}, *messages[2:]]
    form = {"name": "reply", "strict": True, "schema": json.loads(call.schema or "{}")}
    forms = {"type": "json_schema", "json_schema": form}, {"type": "json_object"}
    limits = "max_tokens", "max_completion_tokens"
    return {
        "model": [{"model": call.model, "stream": False}],
        "system": [{"messages": messages}, {"messages": merged}],
        "response_format": [
            *({"response_format": f} for f in forms if call.schema),
            {},
        ],
        "logprobs": [{"logprobs": True, "top_logprobs": 5}] * call.logprobs + [{}],
        "max_tokens": [{n: call.max_tokens} for n in limits if call.max_tokens] + [{}],
        "temperature": [{"temperature": call.temperature}, {}],
        "seed": [{"seed": call.seed}] * (call.seed is not None) + [{}],
    }
