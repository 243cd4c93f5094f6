"""What all steps share: a question, the type of its reply, a reader, and what it costs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._parameters import Settings
from ..graphs import ReasoningGraph
from ._calls import CallError, Prompt, price_of, resolve_prompt
from ._client import as_client
from ._session import Chat, gather_all

_OF_FUNCTIONS = ("skdcf.edges", "skdcf.llm")  # whose functions a description may name
_LETTERS_PER_TOKEN = 4
_TOKENS_PER_ROW = 12  # of JSON that a model writes about one claim
_TOKENS_PER_REASON = 25


class Size(NamedTuple):
    """How large a problem is, in tokens and numbers, known or guessed."""

    problem: int
    answer: int
    context: int
    n_claims: int
    n_alternatives: int


class Expense(NamedTuple):
    """Calls and tokens of a step on one problem."""

    calls: float = 0
    prompt_tokens: float = 0
    completion_tokens: float = 0

    def __add__(self, other):
        return Expense(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, scale: Sequence[float]) -> Expense:
        """Calls and tokens, each by a factor of its own."""
        return Expense(*(a * b for a, b in zip(self, scale, strict=True)))


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens that a run will need, about.

    Parameters
    ----------
    n_problems : int
        Problems of the run.
    n_done : int
        Those of them whose replies are all in the cache; they cost nothing.
    calls : int
    prompt_tokens, completion_tokens : int
        Guessed from the lengths of the texts, four characters to a token, and corrected
        by what answers in the cache needed. Models that think before they answer write
        several times as much.
    cost : float or None
        By the prices of the client, None where these are not known.
    """

    n_problems: int
    n_done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of(cls, n_problems: int, n_done: int, total: Expense, prices: Any) -> Estimate:
        """From the expenses of what is to be done, in sum.

        Parameters
        ----------
        n_problems, n_done : int
        total : Expense
        prices : (float, float) or None

        Returns
        -------
        Estimate
        """
        calls, prompt, said = (round(value) for value in total)
        cost = price_of(total.prompt_tokens, total.completion_tokens, prices)
        return cls(n_problems, n_done, calls, prompt, said, cost)

    def __str__(self):
        price = "" if self.cost is None else f", costing about {self.cost:.4g}"
        return (
            f"{self.n_problems} problems, of which {self.n_done} are in the cache: about "
            f"{self.calls:,} calls with {self.prompt_tokens:,} tokens of prompts and "
            f"{self.completion_tokens:,} of replies{price}"
        )


class Step(Settings):
    """One step between a model's answer and what a filter takes.

    Subclasses name their prompt and the type of its reply, and define ``_question``, what
    a model is asked about one problem (None: nothing), and ``_read``, what its reply
    means (None: nothing was asked). Those that ask more than once define ``_run``.
    """

    _prompt_name: ClassVar[str] = ""
    _reply: ClassVar[type]
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "prompt": [str, Path, None],
        "model": [str, None],
    }

    def __init__(self, prompt: str | Path | None = None, *, model: str | None = None):
        self.prompt = prompt
        self.model = model

    def _question(self, *item: Any) -> dict[str, Any] | None:
        raise NotImplementedError

    def _read(self, reply: Any, *item: Any) -> Any:
        raise NotImplementedError

    def _rows(self, *item: Any) -> int | None:
        """How many rows a reply has to have, where that is known."""
        return None

    async def _run(self, chat: Chat, *item: Any) -> Any:
        """Do the step for one problem, in a session that is open."""
        question = self._question(*item)
        if question is None:
            return self._read(None, *item)
        return await self._ask(chat, question, *item)

    async def _ask(self, chat: Chat, question: dict[str, Any], *item: Any) -> Any:
        return await chat.ask_object(
            self.told(),
            question,
            self._reply,
            lambda reply: self._read(reply, *item),
            self._rows(*item),
        )

    def _expect(self, size: Size) -> Expense:
        """What the step will cost on a problem of that size."""
        raise NotImplementedError

    def told(self) -> Prompt:
        """The prompt that is used.

        Returns
        -------
        Prompt
        """
        return resolve_prompt(self._prompt_name, self.prompt)

    def apply(
        self, *columns: Sequence[Any], model: str, client: Any = None
    ) -> list[Any]:
        """Do the step alone, for many problems.

        Parameters
        ----------
        *columns : sequences of equal length
            What the step takes of each problem; the class says what.
        model : str
            Name of the model, where the step has none of its own.
        client : ChatClient or callable, optional
            None is ``ChatClient()``.

        Returns
        -------
        list
            A result per problem.

        Raises
        ------
        CallError
            If a call failed; the replies to the others are in the cache.
        """
        self.validate()
        items = list(zip(*columns, strict=True))
        return run_all(
            client, items, model, lambda chat, item: call_step(self, chat, *item)
        )

    def _expense(self, n_calls, tokens, written):
        told = count_tokens(self.told().text)
        return Expense(n_calls, n_calls * (told + tokens), n_calls * written)


def check_model(name: str, step: Step, model: str | None) -> None:
    """ValueError where a step asks a model, but none is named."""
    if model is None and step.model is None:
        raise ValueError(
            f"model is None, but {name} asks one: name it, or put a function in the place "
            "of that step"
        )


def describe_step(step: Any) -> dict[str, Any]:
    """What a step is, for files: its class, prompt and settings, or its function."""
    if not isinstance(step, Step):
        name = getattr(step, "__qualname__", type(step).__name__)
        module = getattr(step, "__module__", None) or ""
        module = "skdcf.llm" if module.startswith("skdcf.llm.") else module
        return {"function": f"{module}.{name}"}
    settings = step.get_params(deep=False) | {"prompt": step.told().name}
    return {"step": type(step).__name__, **_plain(settings)}


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def rebuild_step(described: Mapping[str, Any]) -> Any:
    """Inverse of `describe_step`, for what is in this package; ValueError otherwise."""
    settings = dict(described)
    if "function" in settings:
        module, _, name = settings["function"].rpartition(".")
        known = module in _OF_FUNCTIONS
        function = getattr(import_module(module), name, None) if known else None
        if not callable(function) or isinstance(function, type):
            raise ValueError(
                f"the problems were extracted with the function {settings['function']!r}, "
                "which is not in this package: build the extractor yourself"
            )
        return (settings["column"], function) if "column" in settings else function
    name, prompt = settings.pop("step"), settings.pop("prompt")
    kind = getattr(import_module("skdcf.llm"), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Step)):
        raise ValueError(f"{name!r} is no step of this package")
    step = kind(**settings)
    if step.told().name != prompt:
        raise ValueError(
            f"the problems were extracted with the prompt {prompt!r}, but {name} has "
            f"{step.told().name!r}: build the extractor yourself, with prompt=..."
        )
    return step


def run_all(client: Any, items: Sequence[Any], model: str | None, work: Any) -> list:
    """``work(chat, item)`` for each item; CallError if one of them failed."""

    async def main(session):
        return await gather_all(session, items, work, model)

    results = as_client(client).run(main)
    raise_first(results)
    return results


def raise_first(results: Sequence[Any]) -> None:
    """CallError if there is one among the results."""
    failed = [(i, r) for i, r in enumerate(results) if isinstance(r, CallError)]
    if failed:
        i, error = failed[0]
        raise CallError(
            f"{len(failed)} of {len(results)} problems failed, the first is problem {i}: "
            f"{error}. With a cache nothing else is asked for again"
        ) from error


def count_tokens(text: str | None) -> int:
    """About how many tokens a text has: one in four characters."""
    return len(text or "") // _LETTERS_PER_TOKEN + 1


def table_tokens(size: Size, *, reasons: bool = True) -> tuple[int, int]:
    """Tokens of a question with its claims as JSON, and of a reply with a row each."""
    row = _TOKENS_PER_ROW + reasons * _TOKENS_PER_REASON
    told = size.problem + size.context + size.answer + _TOKENS_PER_ROW * size.n_claims
    return told, row * size.n_claims


async def call_step(step: Any, chat: Chat, *item: Any) -> Any:
    """The result of a step, or of the callable that replaces it."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


async def gather_steps(*work: Any) -> list[Any]:
    """Results of several calls of one problem; the first error ends the others."""
    tasks = [asyncio.ensure_future(w) for w in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tabled(graph: ReasoningGraph) -> dict[str, Any]:
    """Question, claims and what they build on, as a model is shown them."""
    rows = []
    for v, text in enumerate(graph.claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0] + 1
        rows.append({"claim": v + 1, "text": text, "builds_on": parents.tolist()})
    return {"question": graph.problem, "claims": rows, **context_of(graph)}


def context_of(graph: ReasoningGraph) -> dict[str, Any]:
    """The passages that an answer has to be supported by, where there are some."""
    return {"context": list(graph.context)} if graph.context else {}
