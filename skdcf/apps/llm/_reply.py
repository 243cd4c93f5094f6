"""Replies of models, and counts of calls and tokens."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

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
        else:
            self.calls += 1
            self.prompt_tokens += reply.prompt_tokens
            self.completion_tokens += reply.completion_tokens

    def __iadd__(self, other):
        vars(self).update({n: v + getattr(self, n) for n, v in vars(other).items()})
        return self
