"""What all steps share: settings, their prompt, what they will cost, how to run alone."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .._parameters import Settings
from ._calls import CallError
from ._chat import Chat
from ._client import as_client
from ._prompts import Prompt, load_prompt, resolve_prompt
from ._session import gather_all

_LETTERS_PER_TOKEN = 4
_TOKENS_PER_ROW = 30  # of JSON that a model writes about one claim


class Size(NamedTuple):
    """How large a problem is, in tokens and numbers, known or guessed."""

    problem: int
    answer: int
    n_claims: int
    n_alternatives: int


class Expense(NamedTuple):
    """Calls and tokens of a step on one problem."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other):
        return Expense(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, n):
        return Expense(*(n * a for a in self))


class Step(Settings):
    """One step between a model's answer and what a filter takes.

    Subclasses name their prompt and define ``_run``.
    """

    prompt: str | Path | None
    model: str | None
    _prompt_name: ClassVar[str] = ""
    _parameter_constraints: ClassVar[dict[str, list]] = {
        "prompt": [str, Path, None],
        "model": [str, None],
    }

    async def _run(self, chat: Chat, *item: Any) -> Any:
        """Do the step for one problem, in a session that is open."""
        raise NotImplementedError

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

        async def work(session):
            chat = Chat(session, model)
            return await gather_all(session, items, lambda item: self._run(chat, *item))

        results = as_client(client).run(work)
        raise_first(results)
        return results

    def _expense(self, n_calls, tokens, written):
        told = count_tokens(self.told().text)
        return Expense(n_calls, n_calls * (told + tokens), n_calls * written)


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


def table_tokens(size: Size) -> tuple[int, int]:
    """Tokens of a question with its claims as JSON, and of a reply with a row each."""
    claims = size.answer + 12 * size.n_claims
    return size.problem + claims, _TOKENS_PER_ROW * size.n_claims


async def call_step(step: Any, chat: Chat, *item: Any) -> Any:
    """The result of a step, or of the callable that replaces it."""
    if isinstance(step, Step):
        return await step._run(chat.of(step.model), *item)
    out = step(*item)
    return await out if inspect.isawaitable(out) else out


def is_step(value: Any) -> bool:
    """Whether a value can be used for a step: one of ours, or a callable."""
    return isinstance(value, Step) or (
        callable(value) and not isinstance(value, type) and value is not load_prompt
    )
