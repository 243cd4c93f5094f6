"""Answers, what is asked of a model about them, what comes back, what can go wrong."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
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
    """A fault that may be gone next time; ``wait`` are the seconds a server asks for."""

    def __init__(self, message, wait=None):
        super().__init__(message)
        self.wait = wait


class NotCachedError(CallError):
    """A reply is not in the cache, and no call is to be made."""


class Prompt(NamedTuple):
    """What a model is told.

    Parameters
    ----------
    name : str
        Name and version, or a digest where the caller wrote it.
    text : str
    """

    name: str
    text: str


@cache
def load_prompt(name: str, version: int | None = None) -> Prompt:
    """Read a prompt of the package.

    A prompt is part of the call, and so of the name under which a reply is kept: another
    prompt, another reply. What is asked about (questions, answers, claims) is never
    written into a prompt. It follows as one JSON object.

    Parameters
    ----------
    name : str
        "answer", "decompose", "entailment", "frequency", "graph",
        "labels", "merge", "semantic", "verdict", "verify" or "verify_all".
    version : int, optional
        None is the newest.

    Returns
    -------
    Prompt

    Raises
    ------
    ValueError
        If there is none of that name and version.

    Examples
    --------
    >>> from skdcf.llm._calls import load_prompt
    >>> load_prompt("merge").name
    'merge-2'
    """
    full = f"{name}-{VERSIONS.get(name) if version is None else version}"
    path = _PROMPTS.joinpath(f"{full}.txt")
    if name not in VERSIONS or not path.is_file():
        raise ValueError(f"there is no prompt {full!r}; names are {sorted(VERSIONS)}")
    return Prompt(full, path.read_text("utf-8").strip())


def resolve_prompt(name: str, own: str | Path | None) -> Prompt:
    """The prompt of the package, or the caller's own: its text, or a Path to it."""
    if own is None:
        return load_prompt(name)
    text = own.read_text("utf-8") if isinstance(own, Path) else own
    if not text.strip():
        raise ValueError(f"the prompt for {name!r} is empty")
    digest = hashlib.sha256(text.strip().encode()).hexdigest()[:8]
    return Prompt(f"{name}-own-{digest}", text.strip())


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
    """What a model said.

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
    """What was spent.

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
        for part in fields(self):
            total = getattr(self, part.name) + getattr(other, part.name)
            setattr(self, part.name, total)
        return self


#: Keys of a graph's metadata: how it was extracted, what was odd, and, where they differ
#: from the claim's own, the words of the answer that state a claim.
EXTRACTION, FLAGS, SPANS = "extraction", "flags", "spans"
_SENTENCE_END = re.compile(r"\n\s*|(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
_MARKS = re.compile(r"^\s*(?:[-*\u2022#>]+\s+|\d+[.)]\s+)|[.!?\u3002\s]+$")
_MOST_OUTSIDE = 0.2  # share of an answer that may be in no claim without a flag


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
    """What became of one answer.

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
    """What the caller gave, as answers; ValueError names what is none.

    With ``ask``, an answer may be missing, and an item may be a question alone.
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(f"a {type(X).__name__} is no list of problems and answers")
    return [_read_answer(i, item, ask) for i, item in enumerate(X)]


def _read_answer(i, item, ask):
    if isinstance(item, str) and ask:
        answer = Answer(item, None)
    elif isinstance(item, Mapping):
        if unknown := sorted(map(str, item.keys() - {*Answer._fields, "group"})):
            raise ValueError(
                f"problem {i}: unknown keys {unknown}; there are {list(Answer._fields)}. The "
                'question is the "problem", and whatever else belongs to it goes into '
                '"metadata"'
            )
        answer = Answer(**{name: item.get(name) for name in Answer._fields})
        if item.get("group") is not None and isinstance(
            answer.metadata, Mapping | None
        ):
            metadata = {**(answer.metadata or {}), "group": item["group"]}
            answer = answer._replace(metadata=metadata)
    elif isinstance(item, tuple) and 2 <= len(item) <= len(Answer._fields):
        answer = Answer(*item)
    else:
        raise ValueError(
            f"problem {i} is a {type(item).__name__}, but must be (problem, answer), or a "
            'dictionary with "problem" and "answer"'
        )
    return _checked(f"problem {i}: its", answer, ask)


def _checked(its, answer, ask):
    """All that could be wrong is found before the first call, half characters replaced."""
    if not isinstance(answer.answer, str) and not (ask and answer.answer is None):
        raise ValueError(f"{its} answer is {answer.answer!r}, no text")
    if not isinstance(answer.problem, str | None):
        raise ValueError(f"{its} question is {answer.problem!r}, no text")
    if answer.answer is None and not (answer.problem or "").strip():
        raise ValueError(f"{its} answer is None, and there is no question to ask")
    if not isinstance(answer.metadata, Mapping | None):
        raise ValueError(f"{its} metadata must be a dictionary")
    if not isinstance(answer.id, str | int | None) or isinstance(answer.id, bool):
        raise ValueError(f"{its} id is {answer.id!r}, no text or whole number")
    passages = answer.context
    passages = (passages,) if isinstance(passages, str) else passages
    return answer._replace(
        problem=whole(answer.problem),
        answer=whole(answer.answer),
        alternatives=_texts(f"{its} alternatives", answer.alternatives),
        context=_texts(f"{its} context", passages),
    )


def _texts(name, values):
    good = values is None or isinstance(values, (list, tuple))
    if not good or not all(isinstance(text, str) for text in values or ()):
        raise ValueError(f"{name} must be a list of texts")
    return None if values is None else tuple(map(whole, values))


def whole(text: str | None) -> str | None:
    """A text whose half characters are joined, or replaced where the other half is lost."""
    if text is None:
        return None
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def make_graph(answer: Answer, claims: Sequence[str], edges: Any) -> ReasoningGraph:
    """The graph of an answer, and in its metadata the words that state each claim."""
    spans = {str(c): getattr(c, "span", c) for c in claims}
    spans = {claim: span for claim, span in spans.items() if span != claim}
    metadata = {**(answer.metadata or {}), "answer": answer.answer}
    shared = answer._asdict() | {
        "metadata": metadata | ({SPANS: spans} if spans else {})
    }
    del shared["answer"]
    return ReasoningGraph(None, edges, claims=[str(c) for c in claims], **shared)


def flag_of_text(graph: ReasoningGraph) -> str | None:
    """A flag where much of an answer is in no claim: it was neither kept nor dropped."""
    answer = (graph.metadata or {}).get("answer") or ""
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    outside = letters.copy()
    for places in _places(graph, answer):
        _mark(outside, places, False)
    share = outside.sum() / max(letters.sum(), 1)
    if share <= _MOST_OUTSIDE:
        return None
    return f"{share:.0%} of the answer's text is in no claim"


def cut_answer(graph: ReasoningGraph, kept: Sequence[bool]) -> str:
    """The answer itself, without the sentences that are not all in words of kept claims.

    Words of a claim that are not found word for word in the answer keep nothing; and
    where those of a dropped claim are not found, nothing is kept, since it may be stated
    anywhere.
    """
    answer = (graph.metadata or {}).get("answer") or ""
    good, bad = np.zeros((2, len(answer)), dtype=bool)
    for places, keep in zip(_places(graph, answer), kept, strict=True):
        if not keep and not places:
            return ""
        _mark(good if keep else bad, places)
    ends = [match.end() for match in _SENTENCE_END.finditer(answer)]
    bounds = zip([0, *ends], [*ends, len(answer)], strict=True)
    return "".join(_kept_sentences(answer, bounds, good & ~bad)).strip()


def _kept_sentences(answer, bounds, good) -> Iterator[str]:
    for start, end in bounds:
        sentence = answer[start:end]
        stated = np.ones(len(sentence), dtype=bool)
        for match in _MARKS.finditer(sentence):  # bullets and what ends a sentence
            stated[match.start() : match.end()] = False
        stated &= np.array([not c.isspace() for c in sentence], dtype=bool)
        if stated.any() and good[start:end][stated].all():
            yield sentence


def _places(graph, answer):
    """Where the words of each claim stand in its answer: all places, often one or none."""
    spans = (graph.metadata or {}).get(SPANS) or {}
    for claim in graph.claims or ():
        words = str(spans.get(claim, claim)).split()
        pattern = r"\s+".join(map(re.escape, words))
        yield [m.span() for m in re.finditer(pattern, answer)] if words else []


def _mark(line, places, value=True):
    for start, end in places:
        line[start:end] = value
