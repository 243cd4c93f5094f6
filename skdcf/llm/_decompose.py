"""From the text of an answer to its claims."""

import json
import re
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

from .._parameters import positive
from ._chat import Chat
from ._reading import object_schema, read_texts
from ._step import Expense, Size, Step

_SCHEMA = json.dumps(
    object_schema(claims={"type": "array", "items": {"type": "string"}})
)
_END = re.compile(r"(?<=[.!?])\s+")
_BULLET = re.compile(r"^\s*(?:[-*\u2022]\s+|\d+[.)]\s+)")


class Decompose(Step):
    """Cut an answer into claims, in their order, by a model.

    `apply` takes answers and problems, and returns a list of texts for each.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "decompose".
    model : str, optional
        Another model than that of the other steps.
    max_claims : int, default=100
        A reply with more of them is refused.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Examples
    --------
    >>> from skdcf.llm import Decompose
    >>> def complete(messages):
    ...     return 'Sure! {"claims": ["2 + 2 = 4", "4 is even"]}'
    >>> Decompose().apply(["4, even"], ["2 + 2?"], model="any", client=complete)
    [['2 + 2 = 4', '4 is even']]
    """

    _prompt_name = "decompose"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "max_claims": [positive(Integral)],
    }

    def __init__(
        self,
        prompt: str | Path | None = None,
        *,
        model: str | None = None,
        max_claims: int = 100,
    ):
        self.prompt = prompt
        self.model = model
        self.max_claims = max_claims

    async def _run(self, chat: Chat, answer: str, problem: str | None) -> list[str]:
        if not answer.strip():
            return []

        def read(data: dict[str, Any]) -> list[str]:
            return read_texts(data["claims"], "claims", self.max_claims)

        payload = {"question": problem, "answer": answer}
        return await chat.ask_object(self.told(), payload, _SCHEMA, read)

    def _expect(self, size: Size) -> Expense:
        written = size.answer + 4 * size.n_claims
        return self._expense(1, size.problem + size.answer, written)


def split_sentences(answer: str, problem: str | None = None) -> list[str]:
    """Cut an answer at its line ends and sentences, without a model.

    In the place of `Decompose`, for answers that state one thing per line or sentence.

    Parameters
    ----------
    answer : str
    problem : str, optional
        Not looked at.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from skdcf.llm import split_sentences
    >>> split_sentences("Half of 7 is 3.5. Twice that is 7.\\n- So the answer is 7")
    ['Half of 7 is 3.5.', 'Twice that is 7.', 'So the answer is 7']
    """
    lines = (_BULLET.sub("", line).strip() for line in answer.splitlines())
    return [part for line in lines for part in _END.split(line) if part]
