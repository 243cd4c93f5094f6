"""Kept claims become text again: as they stand, or written by a model that is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import ClassVar, NamedTuple

from .._parameters import Number
from ._calls import CallError, load_prompt
from ._reading import Text, number_rows, read_texts, verdicts_of
from ._session import Chat
from ._step import Expense, Size, Step, count_tokens

ABSTENTION = "I have no statement on this question that I can stand behind."
_ENTAILED = verdicts_of("entailed", "not entailed")
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(
    r"(?<!^)\b[^\W\d_a-z]\w+"
)  # begins with a capital, within a sentence


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

    The only text for which a filter's promise holds.

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

    Nothing is promised for such a text: a model writes it, and a model checks it. Every
    sentence has to be entailed by the claims, to state none of the dropped ones, and to
    hold no number and no name that the claims or the question do not hold. If one does
    not, the claims are given as they stand, and the sentence is reported. No claims give
    the text for abstention, and a single claim is itself. `apply` takes lists of claims
    and problems, and, if there are some, of dropped claims, and returns a `MergedText` for
    each.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "merge".
    model : str, optional
        Another model than that of the other steps.
    check : callable, optional
        ``check(claims, sentence)`` says how far a text of the claims entails a sentence,
        as models for natural-language inference do. None: the model is asked.
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
    _reply = Text
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
        check: Callable[[str, str], float] | None = None,
        at_least: float = 0.5,
        abstention: str = ABSTENTION,
    ):
        self.prompt = prompt
        self.model = model
        self.check = check
        self.at_least = at_least
        self.abstention = abstention

    def _question(self, claims, problem, dropped=()):
        return {"question": problem, "claims": list(claims)}

    def _read(self, reply, claims, problem, dropped=()):
        return read_texts([reply.text])[0]

    async def _run(
        self,
        chat: Chat,
        claims: Sequence[str],
        problem: str | None,
        dropped: Sequence[str] = (),
    ) -> MergedText:
        if not claims:
            return MergedText(self.abstention)
        if len(claims) == 1:
            return MergedText(join_claims(claims))
        try:
            text = await super()._run(chat, claims, problem, dropped)
            refused = await self._refused(chat, claims, problem, dropped, text)
        except CallError as error:
            return MergedText(join_claims(claims), flag=f"not merged: {error}")
        if refused:
            flag = f"not merged: {len(refused)} sentences added something"
            return MergedText(join_claims(claims), tuple(refused), flag)
        return MergedText(text)

    async def _refused(self, chat, claims, problem, dropped, text):
        sentences = [part for part in _SENTENCE.split(text) if part.strip()]
        known = " ".join([*claims, problem or ""])
        if self.check is not None:
            premise = join_claims(claims)
            good = [self.check(premise, s) >= self.at_least for s in sentences]
        else:
            good = await self._entailed(chat, claims, dropped, sentences)
        pairs = zip(sentences, good, strict=True)
        return [s for s, entailed in pairs if not entailed or _adds(s, known)]

    async def _entailed(self, chat, claims, dropped, sentences):
        numbered = [{"claim": i + 1, "text": s} for i, s in enumerate(sentences)]
        told = {"claims": list(claims), "sentences": numbered, "dropped": list(dropped)}
        n = len(sentences)

        def read(reply):
            return [row.verdict == "entailed" for row in number_rows(reply.verdicts, n)]

        return await chat.ask_object(
            load_prompt("entailment"), told, _ENTAILED, read, n
        )

    def _expect(self, size: Size) -> Expense:
        written = self._expense(1, size.problem + size.answer, size.answer)
        told = count_tokens(load_prompt("entailment").text)
        check = Expense(1, told + 2 * size.answer, 30 * size.n_claims)
        return written if self.check is not None else written + check


def _adds(sentence, known):
    """Whether a sentence holds a number or a name that is not known."""
    numbers = set(_NUMBER.findall(sentence)) - set(_NUMBER.findall(known))
    words = {word.lower() for word in re.findall(r"\w+", known)}
    names = {name.lower() for name in _NAME.findall(sentence)}
    return bool(numbers or names - words)
