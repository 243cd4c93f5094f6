"""A judge's verdict on each claim, and how sure the judge is."""

import asyncio
import json
import math
import re
from numbers import Integral
from pathlib import Path
from typing import ClassVar

import numpy as np

from .._parameters import positive
from ..graphs import ReasoningGraph
from ._calls import CallError
from ._chat import Chat
from ._judge import JudgeStep, name_of
from ._step import Expense, Size, Step

_WORD = re.compile(r"[a-z]+")
_CERTAIN = 14.0  # log odds beyond which probabilities are rounding


class Verify(JudgeStep):
    """A judge's verdict on each claim, with the log odds that the judge gives it.

    Other answers say which claims are doubtful; strict levels need a signal that tells
    the last doubtful ones apart, and this is one. One call per claim: question, premises
    and claim. Columns ``judge_verdict`` (1 true, 0 false) and ``judge_log_odds``, the log
    of the probability of "true" over that of "false" as the first word of the reply,
    between -14 and 14. `apply` takes graphs, and returns an array of shape (n_claims, 2)
    for each, or (n_claims, 1) without log odds.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "verify".
    model : str, optional
        Another model than that of the other steps; a judge had best be another one.
    log_odds : bool, default=True
        Whether log-probabilities are asked for. Not every endpoint has them.
    max_tokens : int, default=1024
        Of a reply. One word is wanted; models that think before need room for that.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.
    CallError
        If the endpoint gives no log-probabilities.
    """

    _prompt_name = "verify"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "log_odds": ["boolean"],
        "max_tokens": [positive(Integral)],
    }

    def __init__(
        self,
        prompt: str | Path | None = None,
        *,
        model: str | None = None,
        log_odds: bool = True,
        max_tokens: int = 1024,
    ):
        self.prompt = prompt
        self.model = model
        self.log_odds = log_odds
        self.max_tokens = max_tokens

    @property
    def names(self) -> tuple[str, ...]:
        return ("judge_verdict", "judge_log_odds")[: 1 + self.log_odds]

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        claims = range(graph.n_claims)
        rows = await asyncio.gather(*(self._judge(chat, graph, v) for v in claims))
        return np.array(rows).reshape(graph.n_claims, len(self.names))

    async def _judge(self, chat, graph, v):
        premises = [graph.claims[u] for u in graph.edges[graph.edges[:, 1] == v, 0]]
        payload = {
            "question": graph.problem,
            "premises": premises,
            "claim": graph.claims[v],
        }
        content = json.dumps(payload, ensure_ascii=False)
        reply = await chat.ask(
            self.told(),
            content,
            max_tokens=self.max_tokens,
            logprobs=bool(self.log_odds),
        )
        verdict = _verdict(reply.text)
        if verdict is None:
            raise CallError(
                f"{name_of(graph)}, claim {v}: the verdict of {chat.model!r} is "
                f"{reply.text[:50]!r}, neither true nor false"
            )
        if not self.log_odds:
            return [verdict]
        return [verdict, _log_odds(reply.top_logprobs)]

    def _expect(self, size: Size) -> Expense:
        tokens = size.problem + 3 * size.answer // max(size.n_claims, 1) + 20
        return self._expense(size.n_claims, tokens, 2)


def _verdict(text):
    first = _WORD.search(text.rpartition("</think>")[2].lower())
    return {"true": 1.0, "false": 0.0}.get(first and first[0])


def _log_odds(top_logprobs):
    """From the first word of the reply that may be "true" or "false"."""
    for row in top_logprobs:
        sides = {"true": 0.0, "false": 0.0}
        for token, logprob in row.items():
            word = token.strip(" \n\t\"'*.`").lower()
            if word in sides:
                sides[word] += math.exp(min(logprob, 0.0))
        if any(sides.values()):
            true, false = (math.log(max(p, 1e-300)) for p in sides.values())
            return min(max(true - false, -_CERTAIN), _CERTAIN)
    raise CallError(
        "the endpoint gives no log-probabilities of true and false: set "
        "Verify(log_odds=False), in calibration and in use"
    )
