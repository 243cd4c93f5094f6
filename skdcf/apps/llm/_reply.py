"""Replies of a model, and counts of calls and tokens."""

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
        Text of the reply.
    finish_reason : str
        "stop" if the model finished by itself, "length" if the reply was cut off,
        "content_filter" if the reply was blocked.
    top_logprobs : list of dict
        For each token of the reply, the log-probabilities of the most likely tokens at that
        position. Empty if they were not requested or cannot be read.
    prompt_tokens, completion_tokens : int
        Numbers of tokens as counted by the endpoint, 0 if it does not count them.
    tokens : list of str
        The tokens of the reply to which ``top_logprobs`` refer. If empty, the most likely token
        at each position is assumed.
    left_out : list of str
        Parameters that the endpoint does not accept for this model, or accepts only in a weaker
        form.
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
    """Counts of calls and tokens.

    Parameters
    ----------
    calls : int
        Number of replies from a model.
    cached : int
        Number of replies from the cache.
    retries : int
        Number of repeated requests.
    prompt_tokens, completion_tokens : int
        Tokens of the calls, as counted by the endpoint.
    cached_prompt_tokens, cached_completion_tokens : int
        Tokens of the cached replies, as counted when the calls were made.
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
            Whether the reply comes from the cache.
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
        """Compute the cost of the calls, without the cached replies.

        Parameters
        ----------
        prices : (float, float)
            Prices of a million prompt tokens and of a million completion tokens.

        Returns
        -------
        float
            The cost, in the currency of the prices.
        """
        price_in, price_out = prices
        return (
            self.prompt_tokens * price_in + self.completion_tokens * price_out
        ) / 1e6

    def needed(self) -> np.ndarray:
        """Count calls, prompt tokens and completion tokens, including the cached replies.

        Returns
        -------
        ndarray of int, shape (3,)
            The three numbers, in this order.
        """
        calls, cached, _, sent, n_received, *kept = vars(self).values()
        return np.add((calls, sent, n_received), (cached, *kept))

    def __iadd__(self, other):
        vars(self).update({n: v + getattr(self, n) for n, v in vars(other).items()})
        return self
