"""Answer questions with filtered text, within limits on calls, cost and time."""

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

_MOST_ANSWERS = 100  # maximum number of answers in progress
_LOG = logging.getLogger("skdcf.apps.service")


class Answers:
    """Answer questions with the models that were used for calibration.

    Parameters
    ----------
    client : ChatClient
        Client of the endpoint. The limits of the client apply to each answer. ``max_calls``
        bounds the number of calls, and no model is called if the estimated cost exceeds
        ``confirm_above``.
    model : str or None
        Name of the model to use instead of the model used for calibration.
    seconds : float
        Maximum time in seconds for an answer.
    budget : float or None
        Maximum cost per day (UTC), or maximum number of tokens per day if the client has no
        prices. Once the budget is spent, new requests are refused.
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
                raise ValueError(f"{name} must be a positive number, got {bound!r}")
        self.client = client
        self.model = model
        self.seconds = seconds
        self.budget = budget
        self.n_made = 0
        self._day = datetime.now(UTC).date()
        self._spent_before = 0.0  # total cost on all previous days

    def pipeline(self, name: str, filter: Any) -> ConformalFactualityPipeline:
        """Return a pipeline that answers questions with the given filter.

        Parameters
        ----------
        name : str
            Name of the filter, which is used in error messages.
        filter : fitted filter
            The filter that selects the claims.

        Returns
        -------
        pipeline : ConformalFactualityPipeline
            A pipeline with the given filter.

        Raises
        ------
        ValueError
            If the filter does not store the description of its extractor.
        """
        try:
            return ConformalFactualityPipeline.from_filter(
                filter, self.client, model=self.model, confirm=_refuse
            )
        except ValueError as error:
            raise ValueError(f"the filter {name!r} cannot be used: {error}") from error

    async def make(
        self,
        pipeline: ConformalFactualityPipeline,
        asked: AnswerRequest,
        request: Any,
    ) -> tuple[FilteredAnswer, list[str]]:
        """Answer a question, or filter a given answer to the question.

        Parameters
        ----------
        pipeline : ConformalFactualityPipeline
            The pipeline, as returned by the method `pipeline`.
        asked : AnswerRequest
            The question, with an answer if the client sent one.
        request : starlette.requests.Request
            The request. The work is cancelled if its client disconnects.

        Returns
        -------
        answer : FilteredAnswer
            The filtered answer.
        doubts : list of str
            Descriptions of the problems found during extraction and filtering.

        Raises
        ------
        ValueError
            If the request is invalid. In this case, no model was called.
        RefusedError
            If the question cannot be answered.
        """
        if asked.answer is not None and asked.answers is not None:
            raise ValueError(
                '"answer" and "answers" cannot both be sent. Send only one of these keys'
            )
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
            doubts.append(
                "answers with a different provenance are accepted. The stated reason is: "
                f"{reason}"
            )
        return answer, list(filter(None, doubts))

    def _refuse_above_bounds(self) -> None:
        """Raise RefusedError if too many answers are in progress or the budget is spent."""
        if self.n_made >= _MOST_ANSWERS:
            raise RefusedError(503, "too many answers are in progress. Try again later")
        if self.budget is not None and self.spent_today() >= self.budget:
            raise RefusedError(
                429, "the budget for this day (UTC) is used up. Try again tomorrow"
            )

    def spent(self) -> Usage:
        """Return the numbers of calls and tokens since the service was started.

        Returns
        -------
        usage : Usage
            Numbers of calls and tokens.
        """
        return self.client.spent()

    def spent_today(self) -> float:
        """Return the cost of the current day, or the number of tokens if the client has no prices.

        Returns
        -------
        spending : float
            The cost, or the number of tokens.
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
        """Await one answer, and convert timeouts and errors of the model to RefusedError."""
        try:
            async with asyncio.timeout(self.seconds):
                [answer] = await work
        except TimeoutError as error:
            raise RefusedError(
                504, f"the model did not answer within {self.seconds:g} seconds"
            ) from error
        except EndpointError as error:
            _LOG.error("the model cannot be called: %s", error)
            raise RefusedError(
                502,
                "the model cannot be called. The log of the service contains the "
                "reason",
            ) from error
        except CallError as error:
            reason = reworded(error, "client")
            raise RefusedError(502, f"the model did not answer: {reason}") from error
        for flag in answer.flags:
            if flag.startswith("extraction failed"):
                reason = reworded(flag, "client")
                raise RefusedError(502, f"the answer was not filtered: {reason}")
        return answer


def _refuse(estimate: Any) -> bool:
    """Refuse a request that costs more than ``confirm_above``, because nobody can confirm it."""
    raise RefusedError(
        413,
        f"this answer needs about {estimate.calls:,} calls and {estimate.tokens:,} "
        "tokens, which exceeds the limit of the service for one answer. Send a "
        "shorter answer",
    )


async def _while_there(request: Any, work: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine, and cancel it if the requesting client disconnects."""
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
    """Wait until the client disconnects, then raise ClientDisconnect."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    raise ClientDisconnect
