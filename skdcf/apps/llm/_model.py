"""Call a language model over HTTP or as a function, with retries and a cache.

A `Run` makes the calls for a list of problems. It limits the number of concurrent calls, repeats
failed calls, asks again after a reply that cannot be used, and stores each usable reply, so an
interrupted program does not request the reply again. The openai client sends the requests. Its
own retries are not used, because it does not see errors within successful responses.

API keys are read from the environment and are never stored or shown. Redirects are not followed,
so texts and keys are sent only to the configured host.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import random
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..._checks import import_extra, warn
from ..._parameters import Settings, positive
from ...exceptions import ParameterWarning
from .. import is_loopback
from ._replies import ODD, Reply, read_reply, repair_json


class CallError(RuntimeError):
    """Raised if a model call does not return a usable reply after all attempts."""


class EndpointError(CallError):
    """Raised if no call can succeed, for example if the key is wrong or the server is down."""


class UnreadableError(CallError):
    """Raised if the endpoint refuses a single call, or if its replies cannot be used."""


def back_off(n):
    """Return the seconds to wait after n + 1 failures, if the server requests no time."""
    return min(0.5 * 2**n, 60) * (1 - 0.25 * random.random())


@dataclass(eq=False, repr=False)
class ChatClient(Settings):
    """Client for a function, or for an endpoint that uses the chat-completions protocol.

    Parameters
    ----------
    base_url : str, optional
        URL of the endpoint, such as ``"http://127.0.0.1:8000/v1"``. The default is the value of
        the environment variable ``OPENAI_BASE_URL``, or OpenAI's endpoint.
    complete : callable, optional
        Function ``complete(messages)`` to call instead of an endpoint. ``messages`` is a list of
        dictionaries with the keys ``role`` and ``content``. The function returns a string or a
        `Reply`, and may be asynchronous. If the function accepts ``**options``, it receives
        ``model``, ``schema``, ``temperature``, ``seed``, ``max_tokens`` and ``logprobs``. The
        cache identifies the function by its name, so different functions must have different
        names.
    key_variable : str or None, default="OPENAI_API_KEY"
        Name of the environment variable that contains the API key for the endpoint. The key is
        read when calls are made, and is never stored. If None, no key is sent.
    cache : path-like, optional
        File that stores all usable replies, so no reply is requested twice and an interrupted
        run can be resumed. Other users of the machine cannot read the file. If None, replies are
        kept only for the duration of a run.
    in_flight : int, default=8
        Maximum number of concurrent calls.
    timeout : float, default=600.0
        Time limit in seconds for each attempt, including the time that the server queues the
        request. A call fails at its second timeout.
    max_tokens : int, optional
        Maximum length of a reply in tokens. If None, the limit is 300 plus 150 for each claim, and
        twice as long each time that the model is asked again. Pass a number such as 10,000
        for models that reason before they reply.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if the cache cannot be used.
    EndpointError
        If a call is made to an endpoint on another machine, but the API key is missing.
    ImportError
        If a call is made to an endpoint, but the package ``openai`` is not installed.

    Notes
    -----
    A call is repeated up to eight times after a rate limit, a server error, a lost connection or a
    malformed response, and once after a timeout. The wait before each repetition is twice as long
    as the one before, from half a second to one minute, or longer if the server requests more.

    If an endpoint refuses an option, the call is repeated without it: the bounds in the schema of
    the reply, the schema, log-probabilities, the maximum length, the temperature, the seed, or the
    system message, which is moved to the beginning of the user's message. A warning is issued, and
    later calls omit the option. The same applies to log-probabilities that the endpoint ignores.

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
        "cache": [str, os.PathLike, None],
        "in_flight": [positive(Integral)],
        "timeout": [positive()],
        "max_tokens": [positive(Integral), None],
    }

    base_url: str | None = None
    _: KW_ONLY
    complete: Callable[..., str | Reply | Awaitable[str | Reply]] | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    cache: str | os.PathLike | None = None
    in_flight: int = 8
    timeout: float = 600.0
    max_tokens: int | None = None

    def validate(self) -> None:
        """Raise ValueError if a parameter or a combination of parameters is invalid."""
        super().validate()
        url = self.base_url
        if url is not None and self.complete is not None:
            raise ValueError(
                "base_url and complete cannot both be set. Pass only one of them"
            )
        if url is not None and not re.fullmatch(r"https?://[^\s@?]+", url):
            raise ValueError(
                "base_url must begin with http:// or https://, and must not contain a user "
                f"name, a key or a query, got {url!r}. Keys are read from the environment "
                "variable named by key_variable"
            )


def as_client(client):
    """Return a client for a client, a function or None, which means the default endpoint."""
    if not isinstance(client, ChatClient):
        client = ChatClient(complete=client)
    client.validate()
    return client


class Run:
    """Calls of a client for a list of problems.

    Attributes
    ----------
    model : str or None
        Name of the model for the steps that do not name another model.
    usage : Counter
        Numbers of ``calls``, ``cached`` replies, ``prompt_tokens`` and ``completion_tokens``.
    left_out : set of str
        Options that the endpoint refused or ignored in this run.
    """

    def __init__(self, client, model):
        self.client = client
        self.model = model
        self.usage = Counter()
        self.left_out = set()
        self._slots = asyncio.Semaphore(client.in_flight)
        self._n_failed = 0  # number of calls that failed since the last success
        # Options that each model has accepted or refused.
        self._accepted = defaultdict(set)
        self._refused = defaultdict(set)
        self._key = ""
        self._source = [
            client.base_url or os.environ.get("OPENAI_BASE_URL"),
            getattr(client.complete, "__qualname__", None),
        ]
        path = ":memory:"
        if client.cache is not None:
            path = os.fspath(client.cache)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch(0o600)
        self._replies = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._replies.execute(
            "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)"
        )

    async def gather(self, items, work):
        """Return the result or the CallError of ``work(run, *item)`` for each item.

        An EndpointError, or another exception that is not a CallError, stops all items.
        """

        async def complete(item):
            try:
                return await work(self, *item)
            except EndpointError:
                raise
            except CallError as error:
                return error
            finally:
                bar.update()

        with tqdm(total=len(items), desc="extract", disable=None) as bar:
            try:
                return await asyncio.gather(*map(complete, items))
            finally:
                self._replies.close()
                if "_endpoint" in vars(self):
                    await self._endpoint.close()

    async def ask(
        self,
        prompt,
        content,
        read,
        *,
        model,
        limit,
        **options,
    ):
        """Return the result of ``read`` for a reply of the model.

        ``content`` is the input of the model, given as a string or as an object. The options are
        ``schema``, ``temperature``, ``seed`` and ``logprobs``. If ``read``
        raises ValueError, the model is asked again with another seed. If JSON is expected, the
        backslashes of the reply are repaired.
        """
        if not isinstance(content, str):
            content = json.dumps(content, ensure_ascii=False)
        # The texts in the JSON document, apart from line breaks and other control characters.
        shown = re.sub(r'\\(?:([\\"])|.)', lambda match: match[1] or " ", content)
        content = content.encode("utf-8", "replace").decode()

        def read_repaired(reply):
            if first["schema"] is not None:
                reply = replace(reply, text=repair_json(reply.text, shown))
            self.left_out.update(reply.left_out)
            return read(reply)

        first = {
            "model": model or self.model or "",
            "messages": [
                {"role": "system", "content": prompt.text},
                {"role": "user", "content": content},
            ],
            "schema": None,
            "temperature": 0.0,
            "seed": 0,
            "max_tokens": self.client.max_tokens or limit,
            "logprobs": False,
            **options,
        }
        described = json.dumps([self._source, first], sort_keys=True)
        key = hashlib.sha256(described.encode()).hexdigest()
        found = self._replies.execute("SELECT reply FROM replies WHERE key = ?", (key,))
        for [stored] in found.fetchall():
            # If a stored reply cannot be read, the request is sent again.
            with suppress(ValueError, TypeError):
                value = read_repaired(Reply(**json.loads(stored)))
                self.usage["cached"] += 1
                return value
        call = first
        for number in (1, 2, 3):
            reply = await self._complete(call)
            try:
                value = read_repaired(reply)
            except ValueError as error:
                fault = str(error)
            else:
                row = key, json.dumps(asdict(reply))
                self._replies.execute("REPLACE INTO replies VALUES (?, ?)", row)
                return value
            call = _ask_again(first, reply, fault, number)
            if self.client.max_tokens is None:
                call["max_tokens"] = limit * 2**number
        raise UnreadableError(
            f"{prompt.name}: the reply from {call['model']!r} cannot be used: {fault}"
        )

    async def _complete(self, call):
        """Return the reply to a call, and count it."""
        async with self._slots:
            if self._n_failed >= max(10, 2 * self.client.in_flight):
                raise EndpointError(
                    f"no more calls are made, because the last {self._n_failed} calls have "
                    "failed"
                )
            try:
                if self.client.complete is None:
                    reply = await self._fetch(call)
                else:
                    reply = await _call(self.client.complete, **call)
            except CallError:
                self._n_failed += 1
                raise
        self._n_failed = 0
        self.usage.update(
            calls=1,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
        )
        return reply

    async def _fetch(self, call):
        """Return the reply of the endpoint, and repeat the request after passing errors."""
        refused = set(self._refused[call["model"]])
        n_timeouts = 0
        for attempt in range(9):
            body = _body_of(call, refused)
            # The role of the first message shows whether there is a system message.
            in_use = {*body, body["messages"][0]["role"]}
            if "response_format" in body:
                in_use |= {"bounds"} - refused
            status, text, wait = await self._send(body)
            if status == 200:
                with suppress(*ODD):
                    reply = read_reply(text)
                    if not reply.top_logprobs:
                        refused |= in_use & {"logprobs"}
                    self._learn(call["model"], in_use - refused, refused)
                    left_out = sorted(self._refused[call["model"]] & refused)
                    return replace(reply, left_out=left_out)
            if re.search(
                "produced output that does not match|json_validate_failed|tool_use_failed",
                text,
            ):
                return Reply("", finish_reason="malformed")
            fault = f"status {status}: {' '.join(text.split())[:300]}"
            if name := _refused_option(status, text.lower(), in_use):
                refused.add(name)
                continue
            if status in (401, 402, 404) or (
                300 <= status < 400 and not self._accepted
            ):
                raise EndpointError(
                    f"POST {self._endpoint.base_url}chat/completions: {fault}. Check "
                    "base_url, which often ends in /v1, and the key. Redirects are not followed"
                )
            if 400 <= status < 500 and status not in (408, 409, 425, 429):
                raise UnreadableError(fault)
            n_timeouts += status == 408
            if n_timeouts == 2:
                break
            await asyncio.sleep(max(wait, back_off(attempt)))
        raise CallError(
            f"the endpoint did not reply after {attempt + 1} attempts: {fault}"
        )

    def _learn(self, model, in_use, refused):
        """Remember which options were accepted and which were refused.

        An option that was accepted once is sent again even after it is refused for another call.
        """
        self._accepted[model] |= in_use
        new = refused - self._accepted[model] - self._refused[model]
        self._refused[model] |= new
        if new:
            warn(
                f"the endpoint does not accept {sorted(new)} for the model {model!r}. Later "
                "calls omit these options",
                ParameterWarning,
            )

    async def _send(self, body):
        """Send a request. Return the status, the text without the key, and the time to wait."""
        openai = import_extra("openai", "apps")
        completions = self._endpoint.chat.completions.with_raw_response
        seconds = self.client.timeout
        try:
            async with asyncio.timeout(seconds):
                response = (await completions.create(**body)).http_response
        except TimeoutError:
            return 408, f"no reply within {seconds:g} seconds", 0.0
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            return 0, f"{error} {error.__cause__}", 0.0
        text = response.text
        # Shorter values, such as "none", indicate that there is no key.
        if len(self._key) >= 8:
            text = text.replace(self._key, "***")
        wait = 0.0
        with suppress(ValueError):
            wait = min(float(response.headers.get("retry-after", "")), 120.0)
        return response.status_code, text, wait

    @cached_property
    def _endpoint(self):
        """The openai client, which is not needed for stored replies."""
        openai = import_extra("openai", "apps")
        client = self.client
        endpoint = openai.AsyncOpenAI(
            api_key="none",
            base_url=client.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        if client.key_variable is None:
            return endpoint
        self._key = os.environ.get(client.key_variable, "").strip()
        if not self._key and is_loopback(endpoint.base_url.host):
            return endpoint
        if not re.fullmatch("[!-~]+", self._key):
            raise EndpointError(
                f"the environment variable {client.key_variable} must contain the key for "
                f"{endpoint.base_url.host}, in printable ASCII characters without spaces. Set "
                "the variable, or pass key_variable=None if no key is required"
            )
        endpoint.api_key = self._key
        return endpoint


async def _call(function, messages, **options):
    """Return the reply of a function, which returns a string, a Reply, or an awaitable."""
    parameters = inspect.signature(function).parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        options = {}
    reply = function(messages, **options)
    if inspect.isawaitable(reply):
        reply = await reply
    if not isinstance(reply, str | Reply):
        raise CallError(f"the client must return a string, got {type(reply).__name__}")
    return Reply(reply) if isinstance(reply, str) else reply


def _body_of(call, refused):
    """Return the request body of a call, without the options that are refused."""
    body = {
        name: call[name]
        for name in ("model", "messages", "temperature", "seed", "max_tokens")
        if name not in refused and call[name] is not None
    }
    if "system" in refused:
        system, user, *others = call["messages"]
        text = f"{system['content']}\n\n{user['content']}"
        body["messages"] = [{"role": "user", "content": text}, *others]
    if call["logprobs"] and "logprobs" not in refused:
        body |= {"logprobs": True, "top_logprobs": 5}
    if call["schema"] and "response_format" not in refused:
        schema = call["schema"]
        if "bounds" in refused:
            bound = r', "(?:min|max)(?:Items|Length)": \d+'
            schema = json.loads(re.sub(bound, "", json.dumps(schema)))
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        }
    return body


def _refused_option(status, text, in_use):
    """Return the name of the option that is refused according to an error message, or None."""
    if status >= 500:  # The error may come from the chat template of the server.
        in_use = in_use & {"system"}
    elif status not in (400, 403, 422):
        return None
    options = {
        "system": r"system (?:role|message)|role ['\"]system['\"]",
        "bounds": "(?:min|max)(?:items|length)|grammar",
        "response_format": "schema|response_format|structured|json_object",
        "logprobs": "logprob",
        "max_tokens": "max_(?:completion_)?tokens|context length",
        "temperature": "temperature",
        "seed": "seed",
    }
    for name, words in options.items():
        if name in in_use and re.search(words, text):
            return name
    return None


def _ask_again(first, reply, fault, number):
    """Return the call after an unusable reply, which differs in its seed.

    If JSON is expected, the call also contains a description of the fault, and has a higher
    temperature, so the reply is likely to differ.
    """
    call = first | {"seed": first["seed"] + 1000 * number}
    if first["schema"] is None:
        return call
    is_cut = reply.finish_reason == "length"
    if is_cut:
        fault += "; it was cut off, so be brief"
    complaint = f"This reply cannot be used: {fault}. Reply again, as you were told."
    messages = [*first["messages"]]
    # A model that saw its repetitive reply would return the same reply again.
    if reply.text.strip() and not is_cut:
        messages.append({"role": "assistant", "content": reply.text[:4000]})
        messages.append({"role": "user", "content": complaint})
    else:
        messages[1] = {
            "role": "user",
            "content": f"{messages[1]['content']}\n\n{complaint}",
        }
    call |= {"messages": messages, "temperature": first["temperature"] + 0.3 * number}
    # Some servers write white space until a reply with a schema is cut off.
    is_blank = is_cut and not reply.text[-20:].strip()
    if is_blank or reply.finish_reason == "malformed":
        call["schema"] = None
    return call


def run_all(client, items, work, model):
    """Return the result or the CallError of ``work(run, *item)`` for each item, and the run.

    If an event loop is running, as in a notebook, the work is done in another thread.
    """
    client = as_client(client)

    async def work_on_all():
        run = Run(client, model)
        return await run.gather(items, work), run

    run: Any = asyncio.run
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        run = _run_in_thread
    try:
        return run(work_on_all())
    except sqlite3.Error as error:
        raise ValueError(
            f"the cache {os.fspath(client.cache or '')!r} cannot be used ({error}). Pass "
            "another path, or delete the file if no other program uses it"
        ) from error


def _run_in_thread(coroutine):
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, coroutine).result()
