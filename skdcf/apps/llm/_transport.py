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
from ._errors import CallError, EndpointError, PassingError, RefusedError
from ._reply import Reply
from ._response import ODD, SHORT, fault_of, read_reply, read_wait

#: Messages of servers whose model did not generate the requested format.
_MALFORMED = re.compile(
    "produced output that does not match|json_validate_failed|tool_use_failed"
)
_MOST_BYTES = 32 * 2**20  # maximum size of a reply in bytes
_MOST_OF_ERROR = 64 * 2**10  # maximum number of bytes to read from an error response
#: Parameters that some models reject, and words that identify the parameter in the error message.
_OPTIONAL = {
    "system": r"system (?:role|message)|role ['\"]system['\"]",
    "response_format": "schema|response_format|structured|json_object",
    "logprobs": "logprob",
    "max_tokens": "max_tokens|max_completion_tokens|context length",
    "temperature": "temperature",
    "seed": "seed",
}
#: Forms of parameters that are only renamed or sent without bounds.
_EQUIVALENT = {("max_tokens", 1), ("response_format", 1)}
_BOUNDS = re.compile(r"(?i)\b(?:max|min)(?:Items|Length)\b")
_SHORTEST_SECRET = 8  # Shorter values, such as "none", indicate that there is no key.


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
        async with self._pace.slots:
            out = self._function(_messages_of(call), **options)
            out = await out if inspect.isawaitable(out) else out
        if not isinstance(out, str | Reply):
            raise CallError(
                f"the client must return a string, got {type(out).__name__}"
            )
        return Reply(out) if isinstance(out, str) else out

    async def close(self):
        """Do nothing, because there is no connection."""


class Endpoint:
    """Transport that sends calls to an endpoint that uses the chat-completions protocol."""

    def __init__(self, settings, pace):
        self._settings = settings
        self._pace = pace
        self._extra = settings["extra"] or {}
        url = settings["base_url"]
        self._url = urlsplit(url)
        route = self._url.path.rstrip("/") + "/chat/completions"
        self._address = self._url._replace(path=route).geturl()
        self.name = self._url.netloc
        #: Endpoint and extra parameters, which are part of the cache key.
        self.identity = [url, self._extra] if self._extra else url
        # Number of the form in which each parameter was first accepted, keyed by
        # (model, parameter name).
        self._accepted = {}
        self._client: Any = None

    def _connect(self):
        """Read the keys and open the client, which is unnecessary for cached replies."""
        named = self._settings["headers"] or {}
        variable = self._settings["key_variable"]
        headers = {name.lower(): self._read_key(v) for name, v in named.items()}
        secrets = [*headers.values()]
        key = os.environ.get(variable or "", "").strip()
        if variable is not None and (key or not is_loopback(self._url.hostname)):
            secrets.append(self._read_key(variable))
            headers.setdefault("authorization", f"Bearer {secrets[-1]}")
        self._headers = {**headers, "content-type": "application/json"}
        long = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
        patterns = map(_any_escapes, sorted(long, key=len, reverse=True))
        self._secrets = re.compile("|".join(patterns) or "(?!)")
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
        if not re.fullmatch("[!-~]+", value):
            raise EndpointError(
                f"the environment variable {variable} must contain the key for "
                f"{self._url.hostname}, without spaces and in printable ASCII characters. Set "
                "the variable, or pass key_variable=None if no key is required"
            )
        return value

    def _mask_record(self, record):
        """Mask the keys in a log record, even in a record of another package."""
        message = record.getMessage()
        if (masked := self._mask(message)) != message:
            record.msg = masked
            record.args = ()
        return True

    def _mask(self, text):
        return self._secrets.sub("***", text)

    async def complete(self, call, usage):
        """Return the reply to a call, or raise CallError if all attempts fail."""
        self._connect()
        n_failed = 0
        while True:
            try:
                async with self._pace.turn():
                    return self._without_keys(await self._attempt(call))
            except PassingError as error:
                problem = error
            if not isinstance(problem, RefusedError):
                n_failed += 1
                if n_failed > self._settings["max_retries"]:
                    raise CallError(
                        f"the endpoint did not reply after {n_failed} attempts: "
                        f"{self._mask(str(problem))}"
                    )
                if problem.wait is None:
                    await asyncio.sleep(pacing.back_off(n_failed - 1))
            usage.retries += 1

    def _without_keys(self, reply):
        """Mask keys repeated by the server, so they are never stored or shown."""
        whole_reply = reply.text + "".join(reply.tokens)
        if self._mask(whole_reply) == whole_reply:
            return reply
        return replace(reply, text=self._mask(reply.text), top_logprobs=[], tokens=[])

    async def _attempt(self, call):
        """Send a request, and repeat it with weaker forms of the parameters that are refused."""
        model = call.model
        forms = _forms_of(call)
        numbers = {name: self._accepted.get((model, name), 0) for name in forms}
        while True:
            body = {"model": model, "stream": False}
            for name, number in numbers.items():
                body |= forms[name][number]
            status, content, headers = await self._send(body | self._extra)
            if 200 <= status < 300:
                reply = read_reply(content, wants_json=call.schema is not None)
                return replace(reply, left_out=self._learn(model, numbers))
            message = self._message(content)
            if _MALFORMED.search(message):
                return Reply("", finish_reason="malformed")
            left = {n for n, number in numbers.items() if number + 1 < len(forms[n])}
            name = _refused(status, content, message, left)
            if name is None:
                raise self._fault(status, message, headers)
            numbers[name] += 1
            if name == "response_format" and not _BOUNDS.search(message):
                # An endpoint that rejects the schema also rejects it without bounds.
                numbers[name] = max(numbers[name], 2)
            elif name == "max_tokens" and "context" in message.lower():
                del numbers[name]  # Another call may fit into the context.

    def _learn(self, model, numbers):
        """Remember the first form that was accepted, and return the omitted parameters.

        If a parameter was accepted once, it is sent again even after it is refused for another
        call.
        """
        left_out = []
        for name, number in numbers.items():
            is_new = (model, name) not in self._accepted
            accepted = self._accepted.setdefault((model, name), number)
            if not 0 < number <= accepted or (name, number) in _EQUIVALENT:
                continue
            left_out.append(name)
            if is_new:
                warn(
                    f"the endpoint does not accept {name!r} for the model {model!r}. Later calls "
                    "omit this parameter or send a simpler form of it",
                    ParameterWarning,
                )
        return left_out

    def _fault(self, status, message, headers):
        """Return the exception for an error response."""
        if status == 404:
            asked = f"POST {self._address}"
            if not re.search(r"/v\d", self._url.path):
                asked += f", did you mean base_url {self._settings['base_url']}/v1?"
            message = f"{asked} {message}"
        wait = read_wait(headers, message)
        return fault_of(status, message, wait, self._pace.has_succeeded)

    async def _send(self, body):
        """Send one request, and return the status, the body and the headers."""
        self._client.cookies.clear()
        stream = self._client.stream(
            "POST", self._address, content=json.dumps(body), headers=self._headers
        )
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._settings["timeout"]), stream as response:
                return await _read(response)
        except Exception as error:
            # Each HTTP library has its own types of errors.
            problem = f"{type(error).__name__} ({str(error)[:SHORT]})"
            is_slow = isinstance(error, TimeoutError)
        # Raise the error outside the "except" block, because the client's error contains the
        # request with its key.
        if is_slow and self._pace.halve(begun):
            warn(
                f"a call took longer than {self._settings['timeout']:g} s, so the maximum "
                f"number of concurrent calls is reduced from {self._settings['in_flight']} to "
                f"{self._pace.slots.total_tokens}. If the server processes only one call at a "
                "time, increase timeout or decrease in_flight",
                ParameterWarning,
            )
        raise PassingError(self._mask(problem))

    def _message(self, body):
        """Return the error message of a server, on one line and without keys."""
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        return " ".join(self._mask(text).split())


async def _read(response):
    """Read a response up to the maximum size. The beginning of an error is sufficient."""
    body = b""
    most = _MOST_BYTES if response.is_success else _MOST_OF_ERROR
    with suppress(*() if response.is_success else (Exception,)):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > most:
                break
    return response.status_code, body[:most], dict(response.headers)


def _their_loggers():
    """Return the loggers of the openai client and the HTTP library, which may log headers."""
    names = [*logging.root.manager.loggerDict]
    return [logging.getLogger(n) for n in names if n.startswith(("openai", "http"))]


def _any_escapes(secret):
    """Return a pattern that matches a secret, even if JSON escapes its characters."""
    return "".join(
        rf"(?:\\{{0,3}}{re.escape(c)}|\\{{1,3}}(?i:u{ord(c):04x}))" for c in secret
    )


def _refused(status, body, message, left):
    """Return the name of a parameter that the endpoint does not accept, or None."""
    if status not in (400, 403, 422, 500, 501):
        return None
    message = message.lower()
    with suppress(*ODD):
        message = (json.loads(body)["error"]["param"] or message).lower()
    # The error is temporary, unless it comes from the chat template of the server.
    if status >= 500:
        left = left & {"system"}
    named = (n for n, words in _OPTIONAL.items() if re.search(words, message))
    return next((name for name in named if name in left), None)


def _messages_of(call):
    return [{"role": role, "content": text} for role, text in call.messages]


def _without_bounds(schema):
    """Remove length bounds from a part of a schema, because some endpoints do not accept them."""
    return {k: v for k, v in schema.items() if not _BOUNDS.search(k)}


def _forms_of(call):
    """Return the alternative forms of each parameter of a call, with the most informative first."""
    messages = _messages_of(call)
    joined_text = "\n\n".join(text for _, text in call.messages[:2])
    merged = [{"role": "user", "content": joined_text}, *messages[2:]]
    formats = []
    if call.schema and call.structured:
        for hook in (None, _without_bounds):
            schema = json.loads(call.schema, object_hook=hook)
            reply = {"name": "reply", "strict": True, "schema": schema}
            formats.append({"type": "json_schema", "json_schema": reply})
        formats.append({"type": "json_object"})
    limits = "max_tokens", "max_completion_tokens"
    optional: dict[str, list] = {
        "response_format": [{"response_format": f} for f in formats],
        "logprobs": [{"logprobs": True, "top_logprobs": 5}] * call.logprobs,
        "max_tokens": [{n: call.max_tokens} for n in limits if call.max_tokens],
        "temperature": [{"temperature": call.temperature}],
        "seed": [{"seed": call.seed}] * (call.seed is not None),
    }
    forms = {name: [*settings, {}] for name, settings in optional.items() if settings}
    return {"system": [{"messages": messages}, {"messages": merged}], **forms}
