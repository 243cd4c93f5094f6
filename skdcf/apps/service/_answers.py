"""From a question to filtered text: models are asked, within bounds of calls, cost and time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from starlette.requests import ClientDisconnect

from ...estimators import reason_in_force
from .._messages import reworded
from ..llm import (
    CallError,
    ChatClient,
    ConformalFactualityPipeline,
    EndpointError,
    FilteredAnswer,
    Usage,
    check_writer,
)
from ..web.refusal import RefusedError
from ._models import AnswerRequest

_MOST_ANSWERS = 100  # answers that are made at a time
_LOG = logging.getLogger("skdcf.apps.service")


class Answers:
    """Answers to questions, by the models that the filters know.

    Parameters
    ----------
    client : ChatClient
        Where the models are. What it bounds is bounded for each answer: calls by its
        ``max_calls``, and cost by its ``confirm_above``, above which nothing is called.
    model : str or None
        Name of the model in the place of that of calibration.
    seconds : float
        Longest time for an answer.
    budget : float or None
        Cost of a day (UTC), or tokens where the client knows no prices, after which no
        answer is begun.
    """

    def __init__(
        self,
        client: ChatClient,
        model: str | None,
        seconds: float,
        budget: float | None,
    ) -> None:
        client.validate()
        for name, bound in (("seconds", seconds), ("budget", budget)):
            if bound is not None and not bound > 0:
                raise ValueError(f"{name} is {bound!r}, but must be above 0")
        self.client = client
        self.model = model
        self.seconds = seconds
        self.budget = budget
        self.n_made = 0
        self._day = datetime.now(UTC).date()
        self._spent_before = 0.0  # what this day has cost

    def pipeline(self, name: str, filter: Any) -> ConformalFactualityPipeline:
        """The way from a question to what this filter keeps.

        Parameters
        ----------
        name : str
            Of the filter, for messages.
        filter : fitted filter

        Returns
        -------
        ConformalFactualityPipeline

        Raises
        ------
        ValueError
            If the filter does not know what extracted its claims.
        """
        try:
            return ConformalFactualityPipeline.from_filter(
                filter, self.client, model=self.model, confirm=_refuse
            )
        except ValueError as error:
            raise ValueError(f"filter {name!r}: {error}") from error

    async def make(
        self,
        pipeline: ConformalFactualityPipeline,
        asked: AnswerRequest,
        request: Any,
    ) -> tuple[FilteredAnswer, list[str]]:
        """Answer a question, or filter an answer to it.

        Parameters
        ----------
        pipeline : ConformalFactualityPipeline
            As `pipeline` makes it.
        asked : AnswerRequest
            The question, and what is known of an answer.
        request : starlette.requests.Request
            Whose client may go away, which ends the work.

        Returns
        -------
        answer : FilteredAnswer
        doubts : list of str
            What was not as it should be.

        Raises
        ------
        ValueError
            If something is wrong with the request; nothing was called then.
        RefusedError
            If there is no answer.
        """
        if asked.answer is not None and asked.answers is not None:
            raise ValueError("answer and answers were both sent, but only one is taken")
        choose = asked.answers is not None
        item = asked.given("question", "alpha", "filter", "answers")
        item |= {"problem": asked.question}
        texts: list[str | None] = [asked.answer]
        if asked.answers is not None:
            texts = [*asked.answers]
        items = [item | {"answer": text} for text in texts]
        doubt = check_writer(pipeline, items[0]["answer"])
        self._refuse_above_bounds()
        self.n_made += 1
        try:
            work = self._within_time(
                pipeline.aanswer(items, alpha=asked.alpha, choose=choose)
            )
            answer = await _while_there(request, work)
        finally:
            self.n_made -= 1
        doubts = [doubt, *answer.flags]
        if (reason := reason_in_force()) is not None:
            doubts.append(f"answers that are made otherwise are accepted: {reason}")
        return answer, list(filter(None, doubts))

    def _refuse_above_bounds(self) -> None:
        """RefusedError where too many answers are made, or the budget is spent."""
        if self.n_made >= _MOST_ANSWERS:
            raise RefusedError(503, "too many answers are being made: try again later")
        if self.budget is not None and self.spent_today() >= self.budget:
            raise RefusedError(429, "the budget of this day (UTC) is spent")

    def spent(self) -> Usage:
        """Say what the models were asked since the service began.

        Returns
        -------
        Usage
        """
        return self.client.spent()

    def spent_today(self) -> float:
        """Compute what this day has cost so far, in tokens or by the prices of the client.

        Returns
        -------
        float
        """
        usage = self.spent()
        spent = float(usage.prompt_tokens + usage.completion_tokens)
        if self.client.prices is not None:
            spent = usage.cost(self.client.prices)
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day = today
            self._spent_before = spent
        return spent - self._spent_before

    async def _within_time(
        self, work: Coroutine[Any, Any, list[FilteredAnswer]]
    ) -> FilteredAnswer:
        """The one answer that work gives; RefusedError where there is none in time."""
        try:
            async with asyncio.timeout(self.seconds):
                [answer] = await work
        except TimeoutError as error:
            raise RefusedError(
                504, f"there was no answer within {self.seconds:g} seconds"
            ) from error
        except EndpointError as error:
            _LOG.error("no model can be asked: %s", error)
            raise RefusedError(
                502, "no model can be asked: the log of the service says why"
            ) from error
        except CallError as error:
            reason = reworded(error, "client")
            raise RefusedError(502, f"the model gave no answer: {reason}") from error
        for flag in answer.flags:
            if flag.startswith("extraction failed"):
                reason = reworded(flag, "client")
                raise RefusedError(502, f"the answer was not filtered: {reason}")
        return answer


def _refuse(estimate: Any) -> bool:
    """Nobody is there to agree to what one answer costs above the client's limit."""
    raise RefusedError(
        413,
        f"this takes about {estimate.calls:,} calls and {estimate.tokens:,} tokens, which is "
        "more than the service pays for one answer: send a shorter one",
    )


async def _while_there(request: Any, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of work, which ends when the client of a request goes away."""
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(_leaving(request))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await leaving
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _leaving(request: Any) -> None:
    """Wait until a client goes away, and raise what stands for it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    raise ClientDisconnect
