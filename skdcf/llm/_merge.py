"""Kept claims become text again, a text that adds nothing to them."""

import json
import re
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .._parameters import Number
from ._calls import CallError
from ._chat import Chat
from ._pair import PairScorer
from ._prompts import load_prompt
from ._reading import object_schema, read_choice, read_rows, read_texts, rows_schema
from ._step import Expense, Size, Step, count_tokens

ABSTENTION = "I have no statement on this question that I can stand behind."
_TEXT = json.dumps(object_schema(text={"type": "string"}))
_ENTAILED = {"entailed": True, "not entailed": False}
_VERDICTS = rows_schema("verdicts", verdict={"enum": list(_ENTAILED)})
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")


class MergedText(NamedTuple):
    """The text of the kept claims.

    Parameters
    ----------
    text : str
    refused : tuple of str
        Sentences of a model's text that the claims do not entail. If there are any, the
        text is not the model's but the claims as they stand.
    flag : str or None
        Why the text is not a model's, where it was to be one.
    """

    text: str
    refused: tuple[str, ...] = ()
    flag: str | None = None


def join_claims(claims: Sequence[str], problem: str | None = None) -> str:
    """The claims as they stand, one after the other: no model, nothing added.

    In the place of `Merge`.

    Parameters
    ----------
    claims : sequence of str
    problem : str, optional
        Not looked at.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdcf.llm import join_claims
    >>> join_claims(["2 + 2 = 4", "So it is even."])
    '2 + 2 = 4. So it is even.'
    """
    texts = (text.strip() for text in claims)
    return " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in texts if t)


class Merge(Step):
    """Write kept claims as fluent text, by a model, and check that nothing was added.

    Every sentence of the model's text has to be entailed by the claims. If one is not,
    the claims are given as they stand, and the sentence is reported. No claims give the
    text for abstention, and a single claim is itself. `apply` takes lists of claims and
    problems, and returns a `MergedText` for each.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "merge".
    model : str, optional
        Another model than that of the other steps.
    check : PairScorer, optional
        Says how far the claims entail a sentence. None: the model is asked.
    at_least : float, default=0.5
        Score of ``check`` from which on a sentence is entailed.
    abstention : str, optional
        The text where no claim is kept.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Examples
    --------
    >>> from skdcf.llm import Merge
    >>> def complete(messages):
    ...     return '{"text": "As 2 + 2 = 4, it is even. It is prime."}'
    >>> def entails(premise, claim):
    ...     return float("prime" not in claim)
    >>> merge = Merge(check=entails)
    >>> claims = ["2 + 2 = 4", "4 is even"]
    >>> merged = merge.apply([claims], [None], model="any", client=complete)[0]
    >>> merged.text, merged.refused
    ('2 + 2 = 4. 4 is even.', ('It is prime.',))
    """

    _prompt_name = "merge"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "check": [callable, None],
        "at_least": [Number(Real, None, None, closed="neither")],
        "abstention": [str],
    }

    def __init__(
        self,
        prompt: str | Path | None = None,
        *,
        model: str | None = None,
        check: PairScorer | None = None,
        at_least: float = 0.5,
        abstention: str = ABSTENTION,
    ):
        self.prompt = prompt
        self.model = model
        self.check = check
        self.at_least = at_least
        self.abstention = abstention

    async def _run(
        self, chat: Chat, claims: Sequence[str], problem: str | None
    ) -> MergedText:
        if not claims:
            return MergedText(self.abstention)
        if len(claims) == 1:
            return MergedText(join_claims(claims))
        try:
            text = await self._write(chat, claims, problem)
            refused = await self._refused(chat, claims, text)
        except CallError as error:
            return MergedText(join_claims(claims), flag=f"not merged: {error}")
        if refused:
            flag = f"not merged: {len(refused)} sentences added something"
            return MergedText(join_claims(claims), tuple(refused), flag)
        return MergedText(text)

    async def _write(self, chat, claims, problem):
        def read(data: dict[str, Any]) -> str:
            return read_texts([data["text"]], "text", 1)[0]

        payload = {"question": problem, "claims": list(claims)}
        return await chat.ask_object(self.told(), payload, _TEXT, read)

    async def _refused(self, chat, claims, text):
        sentences = [part for part in _SENTENCE.split(text) if part.strip()]
        if self.check is not None:
            premise = join_claims(claims)
            return [s for s in sentences if not self.check(premise, s) >= self.at_least]
        entailed = await self._ask_entailed(chat, claims, sentences)
        return [s for s, good in zip(sentences, entailed, strict=True) if not good]

    async def _ask_entailed(self, chat, claims, sentences):
        numbered = [{"claim": i + 1, "text": s} for i, s in enumerate(sentences)]
        payload = {"claims": list(claims), "sentences": numbered}

        def read(data: dict[str, Any]) -> list[bool]:
            return read_rows(
                data["verdicts"],
                "verdicts",
                len(sentences),
                lambda row: read_choice(row, "verdict", _ENTAILED),
            )

        prompt = load_prompt("entailment")
        return await chat.ask_object(prompt, payload, _VERDICTS, read)

    def _expect(self, size: Size) -> Expense:
        written = self._expense(1, size.problem + size.answer, size.answer)
        told = count_tokens(load_prompt("entailment").text)
        check = Expense(1, told + 2 * size.answer, 15 * size.n_claims)
        return written if self.check is not None else written + check
