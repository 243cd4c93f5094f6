"""Answers before extraction, what becomes of them, and which of their words are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..graphs import ReasoningGraph
from ._calls import CallError, Usage

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
    return ReasoningGraph(
        None,
        edges,
        claims=[str(claim) for claim in claims],
        problem=answer.problem,
        alternatives=answer.alternatives,
        context=answer.context,
        id=answer.id,
        metadata=metadata | ({SPANS: spans} if spans else {}),
    )


def failed_extraction(
    answer: Answer, error: CallError, names: Sequence[str], samples: bool
) -> ReasoningGraph:
    """A graph without claims, of which nothing can be kept, and why there are none."""
    others = () if samples and not answer.alternatives else answer.alternatives
    graph = make_graph(answer._replace(alternatives=others), [], ())
    if not names:
        return graph
    return graph.replace(features=np.zeros((0, len(names))), feature_names=names)


def share_outside(graph: ReasoningGraph) -> float:
    """Share of the letters and digits of an answer that no claim's words hold."""
    answer = (graph.metadata or {}).get("answer") or ""
    inside = np.zeros(len(answer), dtype=bool)
    for places in _places(graph, answer):
        _mark(inside, places)
    letters = np.array([c.isalnum() for c in answer], dtype=bool)
    return float((letters & ~inside).sum() / letters.sum()) if letters.any() else 0.0


def flags_of_text(graph: ReasoningGraph) -> list[str]:
    """A flag where much of an answer is in no claim: it was neither kept nor dropped."""
    share = share_outside(graph)
    if share <= _MOST_OUTSIDE:
        return []
    return [f"{share:.0%} of the answer's text is in no claim"]


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


def _mark(line, places):
    for start, end in places:
        line[start:end] = True
