"""Send each call to a function, or over HTTP with the openai client.

The openai client handles connections and encodings. The retries of the openai client are not
used, because a pause requested by the server must apply to all concurrent calls, and each
attempt requires a single deadline that includes the body. Only environment variables named by
the caller are sent. Redirects are not followed, so texts and keys are sent only to the
configured host.
"""

from __future__ import annotations

import asyncio
import fnmatch
import inspect
import json
import logging
import os
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ..._checks import import_extra, is_loopback, warn
from ...exceptions import ParameterWarning
from ._errors import CallError, EndpointError, PassingError, UnreadableError
from ._reply import Reply
from ._response import ODD, SHORT, fault_of, read_reply, read_wait

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
