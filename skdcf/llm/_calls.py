"""What is asked of a model, what comes back, and what can go wrong."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

#: Version of each prompt that is used by default.
VERSIONS = {
    "answer": 1,
    "decompose": 2,
    "domain_flags": 1,
    "entailment": 2,
    "frequency": 2,
    "graph": 1,
    "labels": 2,
    "merge": 2,
    "semantic": 1,
    "verdict": 2,
    "verify": 2,
    "verify_all": 1,
}


class CallError(RuntimeError):
    """A call of a model that brought no usable reply, however often it was tried."""


class EndpointError(CallError):
    """No call can succeed: a wrong key, an unknown model, an endpoint that is down."""


class UnreadableError(CallError):
    """The endpoint answers, but not with what was asked for.

    ``data`` is the last object that was found in a reply, None where there was none.
    """

    def __init__(self, message: str, data: Any = None):
        super().__init__(message)
        self.data = data


class PassingError(Exception):
    """A fault that may be gone next time; ``wait`` are the seconds a server asks for."""

    def __init__(self, message, wait=None):
        super().__init__(message)
        self.wait = wait


class NotCachedError(CallError):
    """A reply is not in the cache, and no call is to be made."""


class Prompt(NamedTuple):
    """What a model is told.

    Parameters
    ----------
    name : str
        Name and version, or a digest where the caller wrote it.
    text : str
    """

    name: str
    text: str


@cache
def load_prompt(name: str, version: int | None = None) -> Prompt:
    """Read a prompt of the package.

    A prompt is part of the call, and so of the name under which a reply is kept: another
    prompt, another reply. What is asked about (questions, answers, claims) is never
    written into a prompt. It follows as one JSON object.

    Parameters
    ----------
    name : str
        "answer", "decompose", "domain_flags", "entailment", "frequency", "graph",
        "labels", "merge", "semantic", "verdict", "verify" or "verify_all".
    version : int, optional
        None is the newest.

    Returns
    -------
    Prompt

    Raises
    ------
    ValueError
        If there is none of that name and version.

    Examples
    --------
    >>> from skdcf.llm import load_prompt
    >>> load_prompt("merge").name
    'merge-2'
    """
    full = f"{name}-{VERSIONS.get(name) if version is None else version}"
    path = files("skdcf.llm").joinpath(f"prompts/{full}.txt")
    if name not in VERSIONS or not path.is_file():
        raise ValueError(f"there is no prompt {full!r}; names are {sorted(VERSIONS)}")
    return Prompt(full, path.read_text("utf-8").strip())


def resolve_prompt(name: str, own: str | Path | None) -> Prompt:
    """The prompt of the package, or the caller's own: its text, or a Path to it."""
    if own is None:
        return load_prompt(name)
    text = own.read_text("utf-8") if isinstance(own, Path) else own
    if not text.strip():
        raise ValueError(f"the prompt for {name!r} is empty")
    digest = hashlib.sha256(text.strip().encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text.strip())


@dataclass(frozen=True)
class Call:
    """One request to a model.

    Attributes
    ----------
    model : str
    messages : tuple of (role, text)
    schema : str or None
        JSON schema that the reply is to have, as JSON.
    temperature : float
    seed : int or None
        Passed on to the model.
    max_tokens : int or None
        Of the reply; None leaves it to the endpoint.
    logprobs : bool
        Whether the reply has to say how probable its words are.
    prompt : str
        Name and version of the prompt.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    schema: str | None = None
    temperature: float = 0.0
    seed: int | None = 0
    max_tokens: int | None = None
    logprobs: bool = False
    prompt: str = ""

    def key(self, endpoint: Any) -> str:
        """Name of the reply in a cache: a digest of all that the reply depends on.

        Parameters
        ----------
        endpoint : JSON value
            Address of the model, and what is sent there beside the call.

        Returns
        -------
        str
        """
        content = json.dumps([endpoint, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """What a model said.

    Parameters
    ----------
    text : str
    finish_reason : str
        "stop" where the model ended by itself, "length" where it was cut off,
        "content_filter" where somebody held it back.
    top_logprobs : list of dict
        For each word of the reply the log-probabilities of the likeliest words in its
        place; empty where they were not asked for, or cannot be read.
    prompt_tokens, completion_tokens : int
        As the endpoint counts them; 0 where it does not.
    tokens : list of str
        The words of the reply to which ``top_logprobs`` belong; where it is empty, each
        is taken to be the likeliest one in its place.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The reply as JSON text, for a cache.

        Returns
        -------
        str
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Reply:
        """Inverse of `to_json`.

        Parameters
        ----------
        text : str

        Returns
        -------
        Reply
        """
        return cls(**json.loads(text))


@dataclass
class Usage:
    """What was spent.

    Parameters
    ----------
    calls : int
        Replies that a model gave.
    cached : int
        Replies that came from the cache.
    retries : int
        Requests that had to be made again.
    prompt_tokens, completion_tokens : int
        Of the calls, as the endpoint counts them.
    cached_prompt_tokens, cached_completion_tokens : int
        Of the replies from the cache, when they were paid for.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0

    def add(self, reply: Reply, *, cached: bool = False) -> None:
        """Count a reply.

        Parameters
        ----------
        reply : Reply
        cached : bool, default=False
            Whether it came from the cache.
        """
        before = "cached_" if cached else ""
        self._increase("cached" if cached else "calls", 1)
        self._increase(f"{before}prompt_tokens", reply.prompt_tokens)
        self._increase(f"{before}completion_tokens", reply.completion_tokens)

    def _increase(self, name, by):
        setattr(self, name, getattr(self, name) + by)

    def __iadd__(self, other):
        for part in fields(self):
            self._increase(part.name, getattr(other, part.name))
        return self

    def cost(self, prices: tuple[float, float] | None) -> float | None:
        """What the calls cost.

        Parameters
        ----------
        prices : (float, float) or None
            Of a million tokens of prompts and of replies.

        Returns
        -------
        float or None
        """
        return price_of(self.prompt_tokens, self.completion_tokens, prices)


def price_of(prompt_tokens: float, completion_tokens: float, prices: Any) -> Any:
    """Price of so many tokens, None where prices are not known."""
    if prices is None:
        return None
    return (prompt_tokens * prices[0] + completion_tokens * prices[1]) / 1e6
