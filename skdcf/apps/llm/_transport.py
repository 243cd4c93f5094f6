"""Send requests over HTTP with the openai client, and retry after temporary failures.

The openai client handles connections and encodings. The retries of the openai client are not
used, because a pause requested by the server must apply to all concurrent calls, and each
attempt requires a single deadline that includes the body. Only environment variables named by
the caller are sent. Redirects are not followed, so texts and keys are only sent to the
configured host.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..._checks import import_extra, is_loopback, warn
from ...exceptions import ParameterWarning
from . import _pace as pacing
from ._errors import CallError, EndpointError, PassingError
from ._reply import Reply
from ._response import ODD, SHORT, fault_of, read_reply, read_wait

#: Messages of servers whose model did not produce the requested format.
_MALFORMED = (
    "produced output that does not match",
    "json_validate_failed",
    "tool_use_failed",
)
_MOST_BYTES = 32 * 2**20  # maximum size of a reply in bytes
_MOST_OF_ERROR = 64 * 2**10  # maximum number of bytes read from an error response
#: Parameters that some models reject, and words that identify the parameter in the error message.
_OPTIONAL = {
    "system": ("system role", "system message", "role 'system'", 'role "system"'),
    "response_format": ("schema", "response_format", "structured", "json_object"),
    "logprobs": ("logprob",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "context length"),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
_BOUNDS = re.compile(r"(?i)\b(?:max|min)(?:Items|Length)\b")
_SHORTEST_SECRET = 8  # Shorter values, such as "none", mean that there is no key.


class FunctionTransport:
    """Transport that calls a Python function instead of an endpoint."""

    name = "the function"

    def __init__(self, settings, pace):
        self._function = function = settings["complete"]
        self._pace = pace
        module = getattr(function, "__module__", "")
        named: Mapping[str, inspect.Parameter] = {}
        self.identity = f"{module}.{getattr(function, '__qualname__', '')}"
        # Functions that are not written in Python may raise ValueError here.
        with suppress(ValueError):
            named = inspect.signature(function).parameters
        self._takes_options = any(p.kind is p.VAR_KEYWORD for p in named.values())

    async def complete(self, call, usage):
        """Call the function, which returns a string, a Reply, or an awaitable of either."""
        names = "model", "schema", "temperature", "seed", "max_tokens", "logprobs"
        options = {n: getattr(call, n) for n in names} if self._takes_options else {}
        async with self._pace.slot():
            out = self._function(_messages_of(call), **options)
            out = await out if inspect.isawaitable(out) else out
        if not isinstance(out, str | Reply):
            raise CallError(f"the client must return a text, got {type(out).__name__}")
        return Reply(out) if isinstance(out, str) else out

    async def close(self):
        """Do nothing, because there is no connection."""


class Endpoint:
    """Transport that sends calls to an endpoint with the chat-completions protocol."""

    def __init__(self, settings, pace):
        self._settings = settings
        self._pace = pace
        self._extra = settings["extra"] or {}
        url = settings["base_url"]
        self._url = urlsplit(url)
        self.name = self._url.netloc
        #: Endpoint and extra parameters, which are part of the cache key.
        self.identity = [url, self._extra] if self._extra else url
        # The form in which each parameter is sent, keyed by (model, parameter name).
        self._learnt = {}
        # pairs (model, parameter name) whose first form was accepted
        self._accepted = set()
        self._client: Any = None

    def _connect(self):
        """Read the keys and open the client, which cached replies do not require."""
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
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            for logger in _their_loggers():
                logger.removeFilter(self._mask_record)

    def _read_key(self, variable):
        value = os.environ.get(variable, "").strip()
        if not value:
            raise EndpointError(
                f"the environment variable {variable} is not set, and "
                f"{self._url.hostname} may require a key. Set the variable, or pass "
                "key_variable=None if no key is needed"
            )
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise EndpointError(
                f"the environment variable {variable} must contain only characters "
                "that are allowed in a header"
            )
        return value

    def _mask_record(self, record):
        """Mask the keys in a log record, including records of other packages."""
        message = record.getMessage()
        if (masked := self._mask(message)) != message:
            record.msg = masked
            record.args = ()
        return True

    def _mask(self, text):
        """Mask the keys in a text, including keys with characters escaped by JSON."""
        plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
        plain = re.sub(r'\\(["\\/])', r"\1", plain)
        masked = self._secrets.sub("***", plain)
        return self._secrets.sub("***", text) if masked == plain else masked

    async def complete(self, call, usage):
        """Return the reply to a call, or raise CallError if all attempts fail."""
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
                return self._without_keys(await self._pace.attempt(request))
            except PassingError as error:
                problem = self._mask(str(error))
                wait = error.wait
            if wait is not None and wait > pacing.LONGEST_WAIT:
                break
            if wait is not None:
                self._pace.pause(wait)
            elif attempt < most:
                await asyncio.sleep(pacing.back_off(attempt))
        raise CallError(
            f"the endpoint did not reply in {attempt + 1} attempts: {problem}"
        )

    def _without_keys(self, reply):
        """Mask keys repeated by the server, so they are never stored or shown."""
        whole_reply = reply.text + "".join(reply.tokens)
        if self._mask(whole_reply) == whole_reply:
            return reply
        return replace(reply, text=self._mask(reply.text), top_logprobs=[], tokens=[])

    async def _attempt(self, call):
        """Send a request, and retry without the parameters that the server refuses.

        The number of repetitions is bounded. A parameter is only omitted from later calls if a
        request without it succeeds and no request with it has succeeded.
        """
        ways = _ways_of(call)
        sent_as = {
            name: min(self._learnt.get((call.model, name), 0), len(ways[name]) - 1)
            for name in ways
        }
        for_this_call = set()
        while True:
            body: dict = {}
            for name, way in sent_as.items():
                body |= ways[name][way]
            status, content, headers = await self._send(body | self._extra)
            message = self._message(content)
            if 200 <= status < 300:
                reply = read_reply(content, wants_json=call.schema is not None)
                left_out = self._learn(call.model, ways, sent_as, for_this_call)
                return replace(reply, left_out=left_out)
            if any(words in message for words in _MALFORMED):
                return Reply("", finish_reason="malformed")
            left = {name for name, way in sent_as.items() if way + 1 < len(ways[name])}
            name = _refused(status, content, message.lower(), left)
            if name is None:
                raise self._fault(status, message, headers)
            if name == "max_tokens" and "context" in message.lower():
                for_this_call.add(name)
                sent_as[name] = len(ways[name]) - 1
            elif name == "response_format" and not _BOUNDS.search(message):
                # An endpoint that rejects the schema also rejects it without bounds.
                sent_as[name] = min(max(sent_as[name] + 1, 2), len(ways[name]) - 1)
            else:
                sent_as[name] += 1

    def _learn(self, model, ways, sent_as, for_this_call):
        """Remember the accepted forms after a success, and return the omitted parameters."""
        left_out = []
        for name, way in sent_as.items():
            if len(ways[name]) == 1:
                continue
            known = self._learnt.get((model, name), 0)
            if way == 0:
                self._accepted.add((model, name))
            elif way > known and name not in for_this_call:
                if (model, name) in self._accepted:
                    continue
                self._learnt[model, name] = known = way
                if not _says_as_much(name, way):
                    _say_what_was_learnt(model, name, ways[name][way])
            if 0 < way <= known and not _says_as_much(name, way):
                left_out.append(name)
        return left_out

    def _fault(self, status, message, headers):
        """Return the exception for an error response."""
        if status == 404:
            url = self._url._replace(query="").geturl()
            message += f" (asked: POST {url}/chat/completions"
            versioned = re.search(r"/v\d", self._url.path)
            message += ")" if versioned else f"; did you mean base_url {url}/v1?)"
            return EndpointError(f"status 404: {message}")
        wait = read_wait(headers, message)
        return fault_of(status, message, wait, self._pace.has_succeeded)

    async def _send(self, body):
        """Send one request, and return the status, the body and the headers."""
        self._client.cookies.clear()
        route = self._url.path.rstrip("/") + "/chat/completions"
        url = self._url._replace(path=route).geturl()
        sent = json.dumps(body)
        stream = self._client.stream("POST", url, content=sent, headers=self._headers)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._settings["timeout"]), stream as response:
                return await _read(response)
        except Exception as error:
            # Each HTTP library has its own types of errors.
            problem = f"{type(error).__name__} ({str(error)[:SHORT]})"
            is_slow = isinstance(error, TimeoutError)
        # Raise the error outside of "except", because the client's error contains the
        # request with its key.
        if is_slow:
            self._slow_down(begun)
        raise PassingError(self._mask(problem))

    def _slow_down(self, begun):
        """Reduce the number of concurrent calls after a call timed out."""
        most = self._pace.in_flight
        if self._pace.halve(begun) and most == self._settings["in_flight"]:
            warn(
                f"a call took longer than {self._settings['timeout']:g} s, so the "
                f"number of concurrent calls is reduced from {most} to "
                f"{self._pace.in_flight}. If the server processes one call at a time, "
                "use a longer timeout or a smaller in_flight",
                ParameterWarning,
            )

    def _message(self, body):
        """Return a server's error message, on one line and without keys."""
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        return " ".join(self._mask(text).split())


async def _read(response):
    """Read a response up to the maximum size."""
    body = b""
    most = _MOST_BYTES if response.is_success else _MOST_OF_ERROR
    # The beginning of an error response is sufficient.
    with suppress(*() if response.is_success else (Exception,)):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                break
    if response.is_success and len(body) > most:
        raise PassingError(
            f"the response must have at most {most} bytes, but is longer"
        )
    return response.status_code, body[:most], dict(response.headers)


def _their_loggers():
    """Return the loggers of the openai client and its HTTP library, which may log headers."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0].rstrip("2") in ("openai", "httpx", "httpcore"):
            yield logging.getLogger(name)


def _refused(status, body, message, left):
    """Return the name of a parameter that the endpoint does not accept, or None."""
    if status not in (400, 403, 422, 500, 501):
        return None
    with suppress(*ODD):
        named = json.loads(body)["error"]["param"]
        message = named.lower() if isinstance(named, str) and named else message
    # The error is temporary, unless it comes from the chat template of the server.
    if status >= 500:
        left = left & {"system"}
    for name, words in _OPTIONAL.items():
        if name in left and any(word in message for word in words):
            return name
    return None


def _says_as_much(name, way):
    """Return whether a parameter is only renamed or sent without bounds."""
    return way == 1 and name in ("max_tokens", "response_format")


def _say_what_was_learnt(model, name, way):
    """Warn that later calls omit a parameter or send it in a weaker form."""
    instead = {
        "system": "begin the user's message with it",
        "response_format": "ask for any JSON object" if way else "leave it out",
    }
    warn(
        f"the endpoint does not accept {name!r} for the model {model!r}. Later calls "
        f"{instead.get(name, 'leave it out')}",
        ParameterWarning,
    )


def _messages_of(call):
    return [{"role": role, "content": text} for role, text in call.messages]


def _unbounded(schema):
    """Remove bounds on lengths from a JSON schema, because some endpoints do not accept them."""
    if isinstance(schema, list):
        return [_unbounded(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: _unbounded(v) for k, v in schema.items() if not _BOUNDS.search(k)}


def _ways_of(call):
    """Return the alternative forms of each part of a call, most informative form first."""
    messages = _messages_of(call)
    joined_text = "\n\n".join(message["content"] for message in messages[:2])
    merged = [{"role": "user", "content": joined_text}, *messages[2:]]
    schema = json.loads(call.schema or "{}")
    forms = [
        {"type": "json_schema", "json_schema": {"name": "reply", "strict": True} | s}
        for s in ({"schema": schema}, {"schema": _unbounded(schema)})
    ] + [{"type": "json_object"}]
    limits = "max_tokens", "max_completion_tokens"
    return {
        "model": [{"model": call.model, "stream": False}],
        "system": [{"messages": messages}, {"messages": merged}],
        "response_format": [
            *({"response_format": f} for f in forms if call.schema and call.structured),
            {},
        ],
        "logprobs": [{"logprobs": True, "top_logprobs": 5}] * call.logprobs + [{}],
        "max_tokens": [{n: call.max_tokens} for n in limits if call.max_tokens] + [{}],
        "temperature": [{"temperature": call.temperature}, {}],
        "seed": [{"seed": call.seed}] * (call.seed is not None) + [{}],
    }
