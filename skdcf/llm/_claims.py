"""From a question to other answers, from an answer to its claims, from claims to a graph."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from graphlib import CycleError, TopologicalSorter
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

from .._parameters import Number, positive
from ..edges import chain_edges, cited_edges
from ._calls import UnreadableError
from ._client import COMMON, Step, number_texts
from ._reading import Claims, Premises, number_rows, read_texts
from ._session import gather_steps

_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])(?:\s+|(?<=[\u3002\uff01\uff1f]))")
_BULLET = re.compile(r"^\s*(?:[-*\u2022]\s+|\d+[.)]\s+)")
_REFUSAL = re.compile(
    r"(?i)\W*((i'?m|i am|we are) )?(very )?(sorry|unable|afraid)\b|\W*(i|we) "
    r"(can(no|')t|can not|won't|will not) (help|assist|answer|provide|comply|do|fulfill)|"
    r"\W*as an ai\b"
)
_LONGEST_REFUSAL = 400  # characters; what goes on for longer says something
REPAIRED = "graph repaired: edges to later claims, unknown ones and loops left out"
CHAINED = "graph unreadable: every claim builds on the one before it"
CUT_OFF = "the answer was cut off at the greatest length of a reply"


class Claim(str):
    """The text of a claim, with the words of the answer that state it as ``span``."""

    span = ""


@dataclass(eq=False, repr=False, kw_only=True)
class Decompose(Step):
    """Cut an answer into claims, in their order, by a model.

    `apply` takes answers and problems, and returns a list of texts for each. An answer of
    more than ``max_claims`` claims is cut at its middle and decomposed in parts.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "decompose".
    model : str, optional
        Another model than that of the other steps.
    max_claims : int, default=100
        Most claims that one reply may have.

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

    _prompt_name, _written, _reply = "decompose", 38, Claims
    _parameter_constraints = COMMON | {"max_claims": [positive(Integral)]}

    max_claims: int = 100

    def _question(self, answer, problem):
        return {"question": problem, "answer": answer}

    def _read(self, reply, answer, problem):
        texts = read_texts([row.text for row in reply.claims])
        if len(texts) > self.max_claims and not _halves(answer):
            raise ValueError(f"it has {len(texts)} claims, more than {self.max_claims}")
        claims = list(map(Claim, texts))
        for claim, row in zip(claims, reply.claims, strict=True):
            claim.span = row.span or row.text
        return claims

    async def _run(self, chat, answer, problem):
        claims = await super()._run(chat, answer, problem)
        if len(claims) <= self.max_claims:
            return claims
        parts = [await self._run(chat, half, problem) for half in _halves(answer)]
        return [claim for part in parts for claim in part]


def _halves(answer):
    """An answer in two, at the end of the line or sentence that is nearest its middle."""
    text = answer.strip()
    ends = [m.end() for m in re.finditer(r"\n+|(?<=[.!?])\s+", text)]
    ends = [end for end in ends if text[end:].strip()]
    middle = min(ends, key=lambda end: abs(2 * end - len(answer)), default=None)
    return () if middle is None else (text[:middle], text[middle:])


def split_sentences(answer: str, problem: str | None = None) -> list[str]:
    """Cut an answer at its line ends and sentences, without a model.

    In the place of `Decompose`, for answers that state one thing per line or sentence.

    Parameters
    ----------
    answer : str
        The text to be cut.
    problem : str, optional
        Not looked at.

    Returns
    -------
    list of str
        The claims, in their order.

    Examples
    --------
    >>> from skdcf.llm import split_sentences
    >>> split_sentences("Half of 7 is 3.5. Twice that is 7.\\n- So the answer is 7")
    ['Half of 7 is 3.5.', 'Twice that is 7.', 'So the answer is 7']
    """
    lines = (_BULLET.sub("", line).strip() for line in answer.splitlines())
    return [part for line in lines for part in _END.split(line) if part]


class DeducedGraph(NamedTuple):
    """The edges between claims, and whether they had to be repaired.

    Parameters
    ----------
    edges : list of (parent, child)
        Positions of claims, counted from 0.
    flag : str or None
        What was done to a graph that was malformed after the last asking.
    """

    edges: list[tuple[int, int]]
    flag: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class DeduceGraph(Step):
    """Say which claims build on which, by a model.

    `apply` takes lists of claims and problems, and returns a ``DeducedGraph`` for each.

    Claims that name their premises themselves, as in "#5. (by #2 #4)", are read without
    a call. A graph that is cyclic or malformed is asked for again, with what is wrong
    with it. After the third time it is repaired: edges from later claims, from a claim to
    itself and to unknown claims are left out, and a claim that is not spoken of builds on
    the one before it. A reply in which no graph can be read makes every claim build on
    the one before it, the cautious choice. Both are flagged. Rows that count claims from
    0 are recognised.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "graph".
    model : str, optional
        Another model than that of the other steps.
    read_cited : bool, default=True
        Whether premises that the claims name are taken instead of asking.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Examples
    --------
    >>> from skdcf.llm import DeduceGraph
    >>> def complete(messages):
    ...     return '{"premises": [{"claim": 1, "builds_on": []}, {"claim": 2, "builds_on": [1]}]}'
    >>> claims = ["2 + 2 = 4", "4 is even"]
    >>> DeduceGraph().apply([claims], [None], model="any", client=complete)
    [DeducedGraph(edges=[(0, 1)], flag=None)]
    """

    _prompt_name, _written, _reply = "graph", 12, Premises
    _parameter_constraints = COMMON | {"read_cited": ["boolean"]}

    read_cited: bool = True

    def _question(self, claims, problem):
        return {"question": problem, "claims": number_texts(claims)}

    def _read(self, reply, claims, problem):
        return DeducedGraph(_edges(number_rows(reply.premises, len(claims))))

    async def _run(self, chat, claims, problem):
        cited = cited_edges(claims, problem) if self.read_cited else []
        if cited or len(claims) < 2:
            return DeducedGraph(cited)
        try:
            return await super()._run(chat, claims, problem)
        except UnreadableError as error:
            return _repaired(error.data, claims)


def _edges(rows):
    """Edges of a reply; ValueError says what is wrong with it, for the next asking."""
    n = len(rows)
    for row in rows:
        if wrong := [u for u in row.builds_on if not 1 <= u <= n or u == row.claim]:
            raise ValueError(f"claim {row.claim} builds on {wrong[0]}")
    try:
        TopologicalSorter({row.claim: row.builds_on for row in rows}).prepare()
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"these claims build on each other: {circle}") from error
    return [(u - 1, row.claim - 1) for row in rows for u in sorted(set(row.builds_on))]


def _repaired(data, claims):
    rows = data.get("premises") if isinstance(data, dict) else None
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("builds_on"), list):
            found.setdefault(_whole(row.get("claim")), row["builds_on"])
    everyone = range(1, len(claims) + 1)
    if not found.keys() & set(everyone):
        return DeducedGraph(chain_edges(claims), CHAINED)
    given = {v: sorted({_whole(u) for u in found.get(v, [v - 1])}) for v in everyone}
    edges = [(u - 1, v - 1) for v in everyone for u in given[v] if 0 < u < v]
    return DeducedGraph(edges, REPAIRED)


def _whole(value):
    return value if type(value) is int else 0


@dataclass(eq=False, repr=False)
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
        How much the answers may differ, from 0 to 2.
    max_tokens : int, optional
        Of one answer. None is the client's.

    Raises
    ------
    ValueError
        If a parameter has a wrong value, or a problem has no question.

    Notes
    -----
    Answer number i has the seed i, so that a run gives the same answers again where the
    endpoint honours seeds, and asks for none that is in the cache. An answer that is
    empty, refused or cut off says nothing about a claim: it is drawn again with the seeds
    i + n and i + 2n, and left out with a flag where these are of no use either.

    Examples
    --------
    >>> from skdcf.llm import SampleAnswers
    >>> def complete(messages, *, seed, **options):
    ...     return f"{messages[1]['content']} {3 + seed}"
    >>> SampleAnswers(2).apply(["2 + 2 ="], model="any", client=complete)
    [['2 + 2 = 4', '2 + 2 = 5']]
    """

    _prompt_name, _written = "answer", 15
    _parameter_constraints = COMMON | {
        "n": [positive(Integral)],
        "temperature": [Number(Real, 0, 2, closed="both")],
        "max_tokens": [positive(Integral), None],
    }

    n: int = 5
    _: KW_ONLY
    prompt: str | Path | None = None
    model: str | None = None
    temperature: float = 1.0
    max_tokens: int | None = None

    async def _run(self, chat, problem):
        drawn = [self._one(chat, problem, i, _useful) for i in range(1, self.n + 1)]
        texts = [text for text in await gather_steps(*drawn) if text is not None]
        if len(texts) < self.n:
            chat.flag(f"only {len(texts)} of {self.n} other answers are of use")
        return texts

    async def _answer(self, chat, problem):
        """Ask for the answer that is shown; it may be cut off, but not empty."""

        def read(reply):
            chat.flag(CUT_OFF if reply.finish_reason == "length" else None)
            return _said(reply)

        text = await self._one(chat.of(self.model), problem, 0, read)
        if text is None:
            raise UnreadableError(f"{chat.model!r} gives no answer, or refuses to")
        return text

    async def _one(self, chat, problem, seed, read):
        if not isinstance(problem, str) or not problem.strip():
            raise ValueError("a problem without a question has no other answers")
        options = {"temperature": float(self.temperature), "seed": seed}
        options |= {"max_tokens": self.max_tokens}
        seeds = iter((seed + self.n, seed + 2 * self.n, seed))

        def again(call, reply, problem):
            return replace(call, seed=next(seeds))

        with suppress(UnreadableError):
            return await chat.ask(self.wording(), problem, read, again, **options)


def _useful(reply):
    """The text of an answer that can be compared with others."""
    if reply.finish_reason == "length":
        raise ValueError("it was cut off")
    return _said(reply)


def _said(reply):
    text = reply.text.rpartition("</think>")[2].strip()
    refused = len(text) < _LONGEST_REFUSAL and _REFUSAL.match(text)
    if not text or refused or reply.finish_reason == "content_filter":
        raise ValueError("it is empty, or refused")
    return text
