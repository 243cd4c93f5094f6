"""Other answers to the same question."""

import asyncio
from numbers import Integral, Real
from pathlib import Path
from typing import ClassVar

from .._parameters import Number, positive
from ._chat import Chat
from ._step import Expense, Size, Step, count_tokens


class SampleAnswers(Step):
    """Ask the model for more answers to a question: the ``alternatives`` of a problem.

    `apply` takes problems, and returns a list of texts for each. Calibration and use
    must draw as many, in the same way.

    Parameters
    ----------
    n : int, default=5
        Number of answers.
    prompt : str or Path, optional
        What the model is told before the question: a text, or the path of a file. None
        is the package's prompt "answer". Use the one that your answers are made with.
    model : str, optional
        Another model than that of the other steps.
    temperature : float, default=1.0
    max_tokens : int, default=4096
        Of one answer; a longer one is cut off there.

    Raises
    ------
    ValueError
        If a parameter has a wrong value, or a problem has no question.

    Notes
    -----
    Answer number i has the seed i, so that a run gives the same answers again where the
    endpoint honours seeds, and asks for none that is in the cache.

    Examples
    --------
    >>> from skdcf.llm import SampleAnswers
    >>> def complete(messages, *, seed, **options):
    ...     return f"{messages[1]['content']} {3 + seed}"
    >>> SampleAnswers(2).apply(["2 + 2 ="], model="any", client=complete)
    [['2 + 2 = 4', '2 + 2 = 5']]
    """

    _prompt_name = "answer"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "n": [positive(Integral)],
        "temperature": [Number(Real, 0, 2, closed="both")],
        "max_tokens": [positive(Integral)],
    }

    def __init__(
        self,
        n: int = 5,
        *,
        prompt: str | Path | None = None,
        model: str | None = None,
        temperature: float = 1.0,
        max_tokens: int = 4096,
    ):
        self.n = n
        self.prompt = prompt
        self.model = model
        self.temperature = temperature
        self.max_tokens = max_tokens

    async def _run(self, chat: Chat, problem: str) -> list[str]:
        seeds = range(1, self.n + 1)
        return list(await asyncio.gather(*(self._one(chat, problem, i) for i in seeds)))

    async def _one(self, chat: Chat, problem: str, seed: int) -> str:
        """A single answer."""
        if not isinstance(problem, str) or not problem.strip():
            raise ValueError("a problem without a question has no other answers")
        reply = await chat.ask(
            self.told(),
            problem,
            temperature=float(self.temperature),
            seed=seed,
            max_tokens=self.max_tokens,
        )
        return reply.text

    def _expect(self, size: Size) -> Expense:
        tokens = count_tokens(self.told().text) + size.problem
        return Expense(self.n, self.n * tokens, self.n * size.answer)
