"""Answers, what is asked of a model about them, what comes back, what can go wrong."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from ..graphs import ReasoningGraph

_PROMPTS = files("skdcf.llm").joinpath("prompts")
_FOUND = (path.name.removesuffix(".txt").rpartition("-") for path in _PROMPTS.iterdir())
#: Version of each prompt that is used by default: the newest.
VERSIONS = {name: n for n, name in sorted((int(v), name) for name, _, v in _FOUND)}


class CallError(RuntimeError):
    """A call of a model that brought no usable reply, however often it was tried."""


class EndpointError(CallError):
    """No call can succeed: a wrong key, an unknown model, an endpoint that is down."""


class UnreadableError(CallError):
    """The endpoint answers, but not with what was asked for.

    ``data`` is the last object that was found in a reply, None where there was none.
    """

    def __init__(self, message: str, data: Any = None):
        super().__init__(message)
        self.data = data


class PassingError(Exception):
    """A fault that may be gone next time: what it is, and seconds a server asks for."""


class Prompt(NamedTuple):
    """A prompt: the text that a model is told.

    Parameters
    ----------
    name : str
        Name and version, or a digest where the caller wrote it.
    text : str
    """

    name: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """Read a prompt of the package, in its newest version.

    A prompt is part of the call, and so of the name under which a reply is kept: another
    prompt, another reply. What is asked about (questions, answers, claims) is never
    written into a prompt. It follows as one JSON object.

    Parameters
    ----------
    name : str
        "answer", "decompose", "entailment", "frequency", "graph",
        "labels", "merge", "semantic", "verdict", "verify" or "verify_all".

    Returns
    -------
    Prompt

    Examples
    --------
    >>> from skdcf.llm._calls import load_prompt
    >>> load_prompt("merge").name
    'merge-2'
    """
    full = f"{name}-{VERSIONS[name]}"
    return Prompt(full, _PROMPTS.joinpath(f"{full}.txt").read_text("utf-8").strip())


@dataclass(frozen=True)
class Call:
    """One request to a model.

    Attributes
    ----------
    model : str
    messages : tuple of (role, text)
    schema : str or None
        JSON schema that the reply is to have, as JSON.
    temperature : float
    seed : int or None
        Passed on to the model.
    max_tokens : int or None
        Of the reply; None leaves it to the endpoint.
    logprobs : bool
        Whether the reply has to say how probable its words are.
    prompt : str
        Name and version of the prompt.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    schema: str | None = None
    temperature: float = 0.0
    seed: int | None = 0
    max_tokens: int | None = None
    logprobs: bool = False
    prompt: str = ""

    def key(self, endpoint: Any) -> str:
        """Name of the reply in a cache: a digest of all that the reply depends on.

        Parameters
        ----------
        endpoint : JSON value
            Address of the model, and what is sent there beside the call.

        Returns
        -------
        str
        """
        content = json.dumps([endpoint, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """The reply of a model.

    Parameters
    ----------
    text : str
        What the model wrote.
    finish_reason : str
        "stop" where the model ended by itself, "length" where it was cut off,
        "content_filter" where somebody held it back.
    top_logprobs : list of dict
        For each word of the reply the log-probabilities of the likeliest words in its
        place; empty where they were not asked for, or cannot be read.
    prompt_tokens, completion_tokens : int
        As the endpoint counts them; 0 where it does not.
    tokens : list of str
        The words of the reply to which ``top_logprobs`` belong; where it is empty, each
        is taken to be the likeliest one in its place.
    """

    text: str
    finish_reason: str = "stop"
    top_logprobs: list[dict[str, float]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: list[str] = field(default_factory=list)


@dataclass
class Usage:
    """The calls and tokens that were spent.

    Parameters
    ----------
    calls : int
        Replies that a model gave.
    cached : int
        Replies that came from the cache.
    retries : int
        Requests that had to be made again.
    prompt_tokens, completion_tokens : int
        Of the calls, as the endpoint counts them.
    cached_prompt_tokens, cached_completion_tokens : int
        Of the replies from the cache, when they were paid for.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0

    def add(self, reply: Reply, *, cached: bool = False) -> None:
        """Count a reply.

        Parameters
        ----------
        reply : Reply
            What a model said.
        cached : bool, default=False
            Whether it came from the cache.
        """
        tokens = reply.prompt_tokens, reply.completion_tokens
        self += Usage(0, 1, 0, 0, 0, *tokens) if cached else Usage(1, 0, 0, *tokens)

    def needed(self) -> np.ndarray:
        """Calls, tokens of prompts and of replies, from the cache or not.

        Returns
        -------
        ndarray of int, shape (3,)
            Their numbers, in this order.
        """
        paid = self.calls, self.prompt_tokens, self.completion_tokens
        kept = self.cached, self.cached_prompt_tokens, self.cached_completion_tokens
        return np.add(paid, kept)

    def __iadd__(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


_SENTENCE_END = re.compile(r"\n\s*|(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
_MARKS = re.compile(r"^\s*(?:[-*\u2022#>]+\s+|\d+[.)]\s+)|[.!?\u3002\s]+$")
_MOST_OUTSIDE = 0.2  # share of an answer that may be in no claim without a flag
#: Types of the keys of a dictionary that stands for an answer.
_KINDS: dict[str, Any] = {
    "problem": (str | None, "a text"),
    "answer": (str | None, "a text"),
    "id": (str | int | None, "a text or whole number"),
    "metadata": (Mapping | None, "a dictionary"),
}


class Answer(NamedTuple):
    """An answer to a problem, before anything is known about it.

    Parameters
    ----------
    problem : str or None
        The question.
    answer : str or None
        None where the model is to be asked, which `ConformalFactualityPipeline` does.
    id : str or int or None
        A name for messages and files.
    alternatives : sequence of str or None
        Other answers, where there are some already.
    metadata : dict or None
        Whatever else belongs to the problem, such as what a guarantee groups by, and
        ``group``, which names the question.
    context : str, sequence of str or None
        Passages that the answer has to be supported by; None where they are not known.
    """

    problem: str | None
    answer: str | None
    id: Any = None
    alternatives: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    context: str | Sequence[str] | None = None


@dataclass(frozen=True)
class Extraction:
    """The graph that became of one answer.

    Parameters
    ----------
    graph : ReasoningGraph
    answer : Answer
    flags : tuple of str
        What was not as it should be, such as a graph that had to be repaired.
    usage : Usage
        What it cost.
    """

    graph: ReasoningGraph
    answer: Answer
    flags: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


def read_answers(X: Iterable[Any], *, ask: bool = False) -> list[Answer]:
    """Read answers from what the caller gave; ValueError names what is none.

    With ``ask``, an answer may be missing, and an item may be a question alone.
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(f"a {type(X).__name__} is no list of problems and answers")
    return [_read_answer(i, item, ask) for i, item in enumerate(X)]


def _read_answer(i, item, ask):
    """All that could be wrong is found before the first call."""
    names = Answer._fields
    if isinstance(item, str) and ask:
        item = {"problem": item}
    elif isinstance(item, tuple) and 2 <= len(item) <= len(names):
        item = dict(zip(names, item, strict=False))
    if not isinstance(item, Mapping):
        said = 'must be (problem, answer), or a dictionary with "problem" and "answer"'
        raise ValueError(f"problem {i} is a {type(item).__name__}, but {said}")
    if unknown := sorted(map(str, item.keys() - {*names, "group"})):
        said = 'The question is the "problem", and all others go into "metadata"'
        raise ValueError(f"problem {i}: unknown keys {unknown}, not {names}. {said}")
    kinds = _KINDS if ask else _KINDS | {"answer": (str, "a text")}
    for name, (kind, said) in kinds.items():
        value = item.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            its = f"problem {i}: its {name} is {value!r}"
            raise ValueError(f"{its}, but must be {said}")
    return _made(f"problem {i}: its", item)


def _made(its, item):
    """The answer in a dictionary, without half characters."""
    answer = Answer(**{name: item.get(name) for name in Answer._fields})
    if answer.answer is None and not (answer.problem or "").strip():
        raise ValueError(f"{its} answer is None, and there is no question to ask")
    passages, metadata = answer.context, answer.metadata
    passages = (passages,) if isinstance(passages, str) else passages
    if item.get("group") is not None:
        metadata = {**(metadata or {}), "group": item["group"]}
    return answer._replace(
        problem=whole(answer.problem),
        answer=whole(answer.answer),
        alternatives=_texts(f"{its} alternatives", answer.alternatives),
        metadata=metadata,
        context=_texts(f"{its} context", passages),
    )


def _texts(name, values):
    good = values is None or isinstance(values, (list, tuple))
    if not good or not all(isinstance(text, str) for text in values or ()):
        raise ValueError(f"{name} must be a list of texts")
    return None if values is None else tuple(map(whole, values))


def whole(text: str | None) -> str | None:
    """A text whose half characters are joined, or replaced where the other half is lost."""
    raw = (text or "").encode("utf-16-le", "surrogatepass")
    return None if text is None else raw.decode("utf-16-le", "replace")


def make_graph(answer: Answer, claims: Sequence[str], edges: Any) -> ReasoningGraph:
    """The graph of an answer, and in its metadata the words that state each claim.

    Words that are the claim's own are left out.
    """
    spans = {str(c): getattr(c, "span", c) for c in claims}
    spans = {claim: span for claim, span in spans.items() if span != claim}
    metadata = {**(answer.metadata or {}), "answer": answer.answer}
    metadata |= {"spans": spans} if spans else {}
    shared = answer._asdict() | {"metadata": metadata}
    del shared["answer"]
    return ReasoningGraph(None, edges, claims=[str(c) for c in claims], **shared)


def flag_of_text(graph: ReasoningGraph) -> str | None:
    """A flag where much of an answer is in no claim: it was neither kept nor dropped."""
    answer, stated = _stated(graph)
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    share = (letters & ~stated.any(axis=0)).sum() / max(letters.sum(), 1)
    few = share <= _MOST_OUTSIDE
    return None if few else f"{share:.0%} of the answer's text is in no claim"


def cut_answer(graph: ReasoningGraph, kept: Sequence[bool]) -> str:
    """The answer itself, without the sentences that are not all in words of kept claims.

    Words of a claim that are not found word for word in the answer keep nothing; and
    where those of a dropped claim are not found, nothing is kept, since it may be stated
    anywhere.
    """
    answer, stated = _stated(graph)
    mask = np.asarray(kept, dtype=bool)
    if not stated[~mask].any(axis=1).all():
        return ""
    good = stated[mask].any(axis=0) & ~stated[~mask].any(axis=0)
    text, start = "", 0
    for end in [*(m.end() for m in _SENTENCE_END.finditer(answer)), len(answer)]:
        sentence = answer[start:end]
        said = np.array([not c.isspace() for c in sentence], dtype=bool)
        for match in _MARKS.finditer(sentence):  # bullets and what ends a sentence
            said[slice(*match.span())] = False
        if said.any() and good[start:end][said].all():
            text += sentence
        start = end
    return text.strip()


def _stated(graph):
    """An answer, and for each claim which characters of it are its words."""
    metadata = graph.metadata or {}
    answer, spans = metadata.get("answer") or "", metadata.get("spans") or {}
    stated = np.zeros((graph.n_claims, len(answer)), dtype=bool)
    for row, claim in zip(stated, graph.claims or (), strict=False):
        words = map(re.escape, str(spans.get(claim, claim)).split())
        for match in re.finditer(r"\s+".join(words), answer):
            row[slice(*match.span())] = True
    return answer, stated
