"""What comes back from a model, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Reply:
    """A reply of a model.

    Parameters
    ----------
    text : str
        What the model wrote.
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
    left_out : list of str
        Parameters that the endpoint does not take for this model, or takes in a form that
        says less.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass
class Usage:
    """Numbers of calls and tokens that were spent.

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
            A reply of a model.
        cached : bool, default=False
            Whether it came from the cache.
        """
        if cached:
            self.cached += 1
            self.cached_prompt_tokens += reply.prompt_tokens
            self.cached_completion_tokens += reply.completion_tokens
        else:
            self.calls += 1
            self.prompt_tokens += reply.prompt_tokens
            self.completion_tokens += reply.completion_tokens

    def cost(self, prices: Sequence[float]) -> float:
        """What the calls cost, without replies from the cache.

        Parameters
        ----------
        prices : (float, float)
            Of a million tokens of prompts and of replies.

        Returns
        -------
        float
            In the currency of the prices.
        """
        price_in, price_out = prices
        return (
            self.prompt_tokens * price_in + self.completion_tokens * price_out
        ) / 1e6

    def needed(self) -> np.ndarray:
        """Count calls, tokens of prompts and tokens of replies, with those from the cache.

        Returns
        -------
        ndarray of int, shape (3,)
            Their numbers, in this order.
        """
        calls, cached, _, sent, n_received, *kept = vars(self).values()
        return np.add((calls, sent, n_received), (cached, *kept))

    def __iadd__(self, other):
        vars(self).update({n: v + getattr(self, n) for n, v in vars(other).items()})
        return self
