"""What is asked of a model, what comes back, and what can go wrong."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


class CallError(RuntimeError):
    """A call of a model that brought no usable reply, however often it was tried."""


class EndpointError(CallError):
    """No call can succeed: a wrong key, an unknown model, an endpoint that is down."""


class NotCachedError(CallError):
    """A reply is not in the cache, and no call is to be made."""


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
    max_tokens : int
        Of the reply.
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
    max_tokens: int = 4096
    logprobs: bool = False
    prompt: str = ""

    def key(self, endpoint: str) -> str:
        """Name of the reply in a cache: a digest of all that the reply depends on.

        Parameters
        ----------
        endpoint : str
            Address of the model.

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
        "stop" where the model ended by itself, "length" where it was cut off.
    top_logprobs : list of dict
        For each word of the reply the log-probabilities of the likeliest words in its
        place; empty where they were not asked for.
    prompt_tokens, completion_tokens : int
        As the endpoint counts them; 0 where it does not.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def to_json(self) -> str:
        """The reply as JSON text, for a cache.

        Returns
        -------
        str
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Reply":
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
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, reply: Reply) -> None:
        """Count a reply that a model gave.

        Parameters
        ----------
        reply : Reply
        """
        self.calls += 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

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
