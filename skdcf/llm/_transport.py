"""Requests over HTTP with the openai client, tried again where that may help.

The client's own retries are switched off: a pause that a server asks for has to hold
for all calls in flight, and each attempt needs one deadline that includes its body.
"""

import asyncio
import json
import os
import random
import time
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from .._checks import warn
from ._calls import Call, CallError, EndpointError, Reply

_OPENAI = "https://api.openai.com/v1"
_LONGEST_WAIT = 120.0  # seconds that a server may ask for before a call is given up
_MOST_BYTES = 32 * 2**20  # of one reply
_SHORT = 300  # characters of a server's message that are shown
_PASSING = (408, 409, 425, 429)  # and all from 500 on
_HOPELESS = (401, 403, 404)
#: Parameters that not every model takes, and what is sent in their place.
_OPTIONAL = {
    "response_format": {"response_format": {"type": "json_object"}},
    "max_tokens": {"max_completion_tokens": "max_tokens"},
    "temperature": {},
    "seed": {},
}


class _PassingError(Exception):
    """A fault that may be gone next time; ``wait`` are the seconds a server asks for."""

    def __init__(self, message, wait=None):
        super().__init__(message)
        self.wait = wait


class OpenAITransport:
    """Calls to an endpoint that speaks the chat-completions protocol."""

    def __init__(self, base_url, key_variable, timeout, max_retries, usage):
        url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        self.endpoint, self.key = url.rstrip("/"), ""
        self._key_variable = key_variable
        self._max_retries, self._timeout, self._usage = max_retries, timeout, usage
        self._dropped: dict[str, dict] = {}
        self._resume = 0.0
        self._client = None

    def _connect(self):
        """What is in the cache needs neither a key nor the client."""
        self.key = _find_key(self._key_variable, self.endpoint)
        self._client = _openai().AsyncOpenAI(
            api_key=self.key,
            base_url=self.endpoint,
            timeout=self._timeout,
            max_retries=0,
        )

    async def close(self):
        if self._client is not None:
            await self._client.close()

    async def complete(self, call: Call) -> Reply:
        """The reply to a call; CallError where there is none after all attempts."""
        if self._client is None:
            self._connect()
        problem = "no attempt was made"
        for attempt in range(self._max_retries + 1):
            await self._pause()
            self._usage.retries += attempt > 0
            try:
                return await self._attempt(call)
            except _PassingError as error:
                problem = str(error)
                if error.wait is not None and error.wait > _LONGEST_WAIT:
                    break
                if error.wait is not None:  # holds for all calls
                    self._resume = max(self._resume, time.monotonic() + error.wait)
                elif attempt < self._max_retries:
                    await asyncio.sleep(_back_off(attempt))
        raise CallError(f"no reply after {attempt + 1} attempts: {problem}")

    async def _pause(self):
        while (wait := self._resume - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    async def _attempt(self, call):
        """One request; without a parameter that the model refuses, another one."""
        for _ in range(len(_OPTIONAL) + 2):
            sent = self._parameters(call)
            status, body, headers = await self._send(sent)
            if status == 200:
                return read_reply(body)
            refused = self._refused(status, body, sent)
            if refused is None:
                raise _fault(status, body, headers, self.key)
            self._drop(refused)
        raise CallError("the endpoint refuses one parameter after the other")

    async def _send(self, parameters):
        """Status, body and headers of one request."""
        openai, outcome = _openai(), None
        create = self._client.chat.completions.with_streaming_response.create
        try:
            async with (
                asyncio.timeout(self._timeout),
                create(**parameters) as response,
            ):
                return response.status_code, await _read_body(response), {}
        except openai.APIStatusError as error:
            headers = dict(error.response.headers)
            outcome = error.status_code, error.response.content, headers
        except (CallError, _PassingError):
            raise
        except Exception as error:  # of whichever HTTP library the client uses
            outcome = f"{type(error).__name__} ({str(error)[:_SHORT]})"
        if isinstance(outcome, str):
            # Outside of "except": the client's errors hold the request with its key.
            raise _PassingError(outcome.replace(self.key, "***"))
        return outcome

    def _parameters(self, call):
        messages = [{"role": role, "content": text} for role, text in call.messages]
        out = {"model": call.model, "messages": messages}
        out |= {"temperature": call.temperature, "max_tokens": call.max_tokens}
        if call.seed is not None:
            out["seed"] = call.seed
        if call.schema is not None:
            out["response_format"] = _structured(call.schema)
        if call.logprobs:
            out |= {"logprobs": True, "top_logprobs": 5}
        for name, instead in self._dropped.items():
            if (value := out.pop(name, None)) is not None:
                put = {k: value if v == name else v for k, v in instead.items()}
                out |= put
        return out

    def _refused(self, status, body, sent):
        """Name of a parameter that the endpoint does not take, or None."""
        if status not in (400, 422, 501):
            return None
        text = body.decode("utf-8", "replace").lower()
        spoken_of = ("json_schema", "response_format", "structured output")
        for name in _OPTIONAL:
            words = spoken_of if name == "response_format" else (name,)
            if name in sent and any(word in text for word in words):
                return name
        return None

    def _drop(self, name):
        """Leave a parameter out from now on."""
        again = name == "response_format" and name in self._dropped
        self._dropped[name] = {} if again else _OPTIONAL[name]
        if name in ("temperature", "seed"):
            warn(f"the endpoint refuses {name!r}: replies are asked for without it")


def read_reply(body: bytes) -> Reply:
    """The reply in the body of a response; a fault that may pass where it has none."""
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        text = choice["message"]["content"] or ""
        usage = data.get("usage") or {}
        tokens = [
            int(usage.get(k) or 0) for k in ("prompt_tokens", "completion_tokens")
        ]
        tops = _top_logprobs(choice.get("logprobs"))
        if not isinstance(text, str):
            raise TypeError("content is no text")
        reason = str(choice.get("finish_reason") or "stop")
        return Reply(text, reason, tops, *tokens)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        problem = f"{type(e).__name__}: {str(e)[:_SHORT]}"
    raise _PassingError(f"the response is no chat completion ({problem})")


def _top_logprobs(logprobs):
    rows = (logprobs or {}).get("content") or []
    return [
        {str(top["token"]): float(top["logprob"]) for top in row["top_logprobs"]}
        for row in rows
    ]


async def _read_body(response):
    """The body, as long as it is of a sensible length."""
    parts, size = [], 0
    async for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise _PassingError(f"the response is longer than {_MOST_BYTES} bytes")
    return b"".join(parts)


def _fault(status, body, headers, key):
    text = " ".join(body.decode("utf-8", "replace").replace(key, "***").split())
    message = f"status {status}: {text[:_SHORT]}"
    if status in _HOPELESS:
        return EndpointError(message)
    if status in _PASSING or status >= 500:
        return _PassingError(message, read_retry_after(headers))
    return CallError(message)


def read_retry_after(headers: dict) -> float | None:
    """Seconds that a server asks to wait for, None where it does not say."""
    headers = {name.lower(): value for name, value in headers.items()}
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            wait = float(headers.get(name, ""))
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait / per_second
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _back_off(attempt):
    return min(0.5 * 2**attempt, 8) * (1 - 0.25 * random.random())


def _structured(schema):
    form = {"name": "reply", "strict": True, "schema": json.loads(schema)}
    return {"type": "json_schema", "json_schema": form}


def _find_key(variable, url):
    """The key, which is nowhere but in the environment."""
    key = os.environ.get(variable, "")
    if key:
        return key
    if _is_local(urlsplit(url).hostname):
        return "no-key-needed"
    raise EndpointError(
        f"the environment variable {variable} is not set: it has to hold the key for "
        f"{url}. A model on this machine needs none: name its "
        "address, base_url='http://127.0.0.1:8000/v1'"
    )


def _is_local(host):
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _openai():
    try:
        import openai
    except ImportError as error:
        raise ImportError(
            "models are called with the openai client: pip install skdcf[llm]"
        ) from error
    return openai
