"""Replies of models, and counts of calls and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Parameters
    ----------
    text : str
        Reply text.
    finish_reason : str
        Reason why the reply ended. The value is "stop" for a complete reply, "length" for a
        truncated reply, and "content_filter" for a blocked reply.
    top_logprobs : list of dict
        Log-probabilities of the most likely tokens at each position. The list is empty if
        log-probabilities were not requested or cannot be read.
    prompt_tokens, completion_tokens : int
        Token counts reported by the endpoint, or 0 if the endpoint does not count tokens.
    tokens : list of str
        Tokens of the reply, one per entry of ``top_logprobs``. If the list is empty, the most
        likely token at each position is assumed to be the token of the reply.
    left_out : list of str
        Options that the endpoint does not accept for this model, or accepts only in another
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
    """Call and token counts of a run.

    Parameters
    ----------
    calls : int
        Number of replies from a model.
    cached : int
        Number of replies from the cache.
    retries : int
        Number of retries.
    prompt_tokens, completion_tokens : int
        Token counts of the calls, as reported by the endpoint.
    cached_prompt_tokens, cached_completion_tokens : int
        Token counts of the cached replies, as reported when the calls were made.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0

    def add(self, reply: Reply, *, cached: bool = False) -> None:
        """Add the tokens of a reply to the counts.

        Parameters
        ----------
        reply : Reply
            A model's reply.
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
        """Return the cost of the calls, excluding cached replies.

        Parameters
        ----------
        prices : (float, float)
            Prices per million prompt tokens and per million completion tokens.

        Returns
        -------
        cost : float
            The cost, in the currency of the prices.
        """
        price_in, price_out = prices
        return (
            self.prompt_tokens * price_in + self.completion_tokens * price_out
        ) / 1e6

    def needed(self) -> np.ndarray:
        """Return the numbers of calls and tokens, including cached replies.

        Returns
        -------
        counts : ndarray of int of shape (3,)
            Numbers of calls, prompt tokens and completion tokens.
        """
        calls, cached, _, sent, n_received, *kept = vars(self).values()
        return np.add((calls, sent, n_received), (cached, *kept))

    def __iadd__(self, other):
        vars(self).update({n: v + getattr(self, n) for n, v in vars(other).items()})
        return self
