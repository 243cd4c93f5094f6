"""Requests over HTTP with the openai client's own, tried again where that may help.

Connections and encodings are the client's. What calls it has retries of its own, since a
pause that a server asks for has to hold for all calls in flight, and each attempt needs
one deadline that includes its body. Of the environment nothing is sent but what the
caller names, and no redirect is followed: texts and keys stay with the host they are for.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import random
import re
import time
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from .._checks import is_loopback, warn
from ..exceptions import SettingWarning
from ._calls import CallError, EndpointError, PassingError, Reply
from ._reading import ODD, fault_of, read_reply

_OPENAI = "https://api.openai.com/v1"
_LONGEST_WAIT = 120.0  # seconds that a server may ask for before a call is given up
_MOST_BYTES = 32 * 2**20  # a reply may not be longer
_MOST_OF_ERROR = 64 * 2**10  # bytes of an error that are read
_SHORT = 300  # characters of an error that are shown
#: Options that not every model takes, and words by which a refusal speaks of them.
_OPTIONAL = {
    "system": ("system role", "system message", "role 'system'", 'role "system"'),
    "response_format": ("schema", "response_format", "structured", "json_object"),
    "logprobs": ("logprob",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "context length"),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
_NO_KEY = "no-key-needed"
_SHORTEST_SECRET = 8  # letters; "none" and the like, for servers without keys, are none


class FunctionTransport:
    """A function of the caller's in the place of an endpoint."""

    def __init__(self, settings):
        function, kinds = settings["complete"], []
        self._function = function
        module = getattr(function, "__module__", "")
        self.identity = f"{module}.{getattr(function, '__qualname__', '')}"
        with suppress(ValueError):  # a function may not be written in Python
            kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        self._takes_options = inspect.Parameter.VAR_KEYWORD in kinds

    async def complete(self, call, usage):
        """Call the function, which returns a text or a Reply, at once or to be awaited."""
        names = "model", "schema", "temperature", "seed", "max_tokens", "logprobs"
        options = {n: getattr(call, n) for n in names} if self._takes_options else {}
        out = self._function(_messages_of(call), **options)
        out = await out if inspect.isawaitable(out) else out
        if not isinstance(out, str | Reply):
            raise CallError(f"the client returned a {type(out).__name__}, no text")
        return Reply(out) if isinstance(out, str) else out

    async def close(self):
        """Nothing to close."""


class Endpoint:
    """Calls to an endpoint that speaks the chat-completions protocol."""

    def __init__(self, settings):
        url, self._extra = settings["base_url"], settings["extra"] or {}
        self._settings, self._parts = settings, urlsplit(url)
        #: Endpoint and extras as they stand in the names of replies.
        self.identity = [url, self._extra] if self._extra else url
        self._ways, self._resume, self._client = {}, 0.0, None

    def _connect(self):
        """Read keys; what is in the cache needs neither a key nor the client."""
        variables = self._settings["headers"] or {}
        headers = {name.lower(): self._read_key(v) for name, v in variables.items()}
        if (key := self._find_key()) is not None:
            headers = {"authorization": f"Bearer {key}", **headers}
        self._headers = {**headers, "content-type": "application/json"}
        sent = {key or _NO_KEY, *headers.values()} - {_NO_KEY}
        self._secrets = [secret for secret in sent if len(secret) >= _SHORTEST_SECRET]
        if self._client is not None:
            return
        try:
            from openai import DefaultAsyncHttpxClient
        except ImportError as error:
            said = "openai, which calls models, is missing: pip install openai pydantic"
            raise ImportError(said) from error
        self._client = DefaultAsyncHttpxClient(follow_redirects=False, timeout=None)
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
        said = record.getMessage()
        if (masked := self.mask(said)) != said:
            record.msg, record.args = masked, ()
        return True

    def mask(self, text):
        """A text without keys, also where JSON escapes letters of them."""
        plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
        plain = re.sub(r'\\(["\\/])', r"\1", plain)
        if any(secret in plain for secret in self._secrets):
            text = plain
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    async def complete(self, call, usage):
        """The reply to a call; CallError where there is none after all attempts."""
        self._connect()
        most = self._settings["max_retries"]
        for attempt in range(most + 1):
            while (wait := self._resume - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            usage.retries += attempt > 0
            try:
                return self._without_keys(await self._attempt(call))
            except PassingError as error:
                problem, wait = (*error.args, None)[:2]
            if wait is not None and wait > _LONGEST_WAIT:
                break
            if wait is not None:  # holds for all calls
                self._resume = max(self._resume, time.monotonic() + wait)
            elif attempt < most:
                await asyncio.sleep(_back_off(attempt))
        raise CallError(f"no reply after {attempt + 1} attempts: {self.mask(problem)}")

    def _without_keys(self, reply):
        """A server may say a key back; it is neither stored nor shown."""
        if self.mask(said := reply.text + "".join(reply.tokens)) == said:
            return reply
        return replace(reply, text=self.mask(reply.text), top_logprobs=[], tokens=[])

    async def _attempt(self, call):
        """One request; without what the model refuses, which is finite, another one."""
        while True:
            ways = _ways_of(call)
            steps = {name: self._ways.get((call.model, name), 0) for name in ways}
            used = {name: min(steps[name], len(w) - 1) for name, w in ways.items()}
            sent = {"model": call.model}
            for name, way in used.items():
                sent |= ways[name][way]
            status, body, headers = await self._send(sent | self._extra)
            if 200 <= status < 300:
                return read_reply(body)
            message = self._message(body)
            left = {name for name, w in ways.items() if used[name] < len(w) - 1}
            name = _refused(status, body, message.lower(), left)
            if name is None:
                raise fault_of(status, message, headers)
            self._step_down(call.model, name, used[name], message.lower())

    async def _send(self, body):
        """Status, body and headers of one request."""
        self._client.cookies.clear()
        path = self._parts.path.rstrip("/") + "/chat/completions"
        url, sent = self._parts._replace(path=path).geturl(), json.dumps(body)
        stream = self._client.stream("POST", url, content=sent, headers=self._headers)
        try:
            async with asyncio.timeout(self._settings["timeout"]), stream as response:
                return await _read(response)
        except Exception as error:  # whichever HTTP library the client uses
            problem = f"{type(error).__name__} ({str(error)[:_SHORT]})"
        # Outside of "except": the client's errors hold the request with its key.
        raise PassingError(self.mask(problem))

    def _step_down(self, model, name, way, message):
        """Send a parameter in its next way from now on, calls in flight or not."""
        following = 2 if name == "max_tokens" and "context" in message else way + 1
        before = self._ways.get((model, name), 0)
        self._ways[model, name] = max(before, following)
        if before == 0 and name in ("temperature", "seed", "logprobs"):
            said = f"the endpoint refuses {name!r}: replies are asked for without it"
            warn(said, SettingWarning)

    def _message(self, body):
        """Say in one line, without keys, what a server says of an error."""
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        return " ".join(self.mask(text).split())

    def _find_key(self):
        """The key, which is nowhere but in the environment; None: none is to be sent."""
        variable = self._settings["key_variable"]
        there = variable is None or os.environ.get(variable, "").strip()
        if not there and is_loopback(self._parts.hostname):
            return _NO_KEY
        return None if variable is None else self._read_key(variable)

    def _read_key(self, variable):
        value = os.environ.get(variable, "").strip()
        named = f"the environment variable {variable}"
        if not value:
            key = f"the key for {self._parts.hostname}"
            said = "Where none is needed, pass key_variable=None"
            raise EndpointError(f"{named} is not set: it has to hold {key}. {said}")
        if not (value.isascii() and value.isprintable() and " " not in value):
            said = "line ends, spaces or letters that no header can hold"
            raise EndpointError(f"{named} holds {said}: it is not sent")
        return value


async def _read(response):
    """A response as far as it is of use."""
    body, most = b"", _MOST_BYTES if response.is_success else _MOST_OF_ERROR
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > most:
                break
    except Exception:
        if response.is_success:  # an error may be cut off
            raise
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
    with suppress(*ODD):
        named = json.loads(body)["error"]["param"]
        message = named.lower() if isinstance(named, str) and named else message
    if status >= 500:  # may pass, but for what a template of the server says
        left &= {"system"}
    for name, words in _OPTIONAL.items():
        if name in left and any(word in message for word in words):
            return name
    return None


def _back_off(attempt):
    return min(0.5 * 2**attempt, 8) * (1 - 0.25 * random.random())


def _messages_of(call):
    return [{"role": role, "content": text} for role, text in call.messages]


def _ways_of(call):
    """List the ways to send each part of a call, the one that says most first."""
    messages = _messages_of(call)
    both = "\n\n".join(message["content"] for message in messages[:2])
    merged = [{"role": "user", "content": both}, *messages[2:]]
    form = {"name": "reply", "strict": True, "schema": json.loads(call.schema or "{}")}
    forms = {"type": "json_schema", "json_schema": form}, {"type": "json_object"}
    asked = forms if call.schema else ()
    limits = "max_tokens", "max_completion_tokens"
    seeded, limited = call.seed is not None, call.max_tokens is not None
    return {
        "system": [{"messages": messages}, {"messages": merged}],
        "response_format": [{"response_format": f} for f in asked] + [{}],
        "logprobs": [{"logprobs": True, "top_logprobs": 5}] * call.logprobs + [{}],
        "max_tokens": [{name: call.max_tokens} for name in limits if limited] + [{}],
        "temperature": [{"temperature": call.temperature}, {}],
        "seed": [{"seed": call.seed}] * seeded + [{}],
    }


def find_url(base_url: str | None) -> str:
    """The address that is given, or that of the environment, or OpenAI's."""
    return (base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI).rstrip("/")
