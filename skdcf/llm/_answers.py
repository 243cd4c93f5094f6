"""Answers before extraction, and what becomes of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..graphs import ReasoningGraph
from ._calls import CallError


class Answer(NamedTuple):
    """An answer to a problem, before anything is known about it.

    Parameters
    ----------
    problem : str or None
        The question.
    answer : str
    id : str or int or None
        A name for messages and files.
    alternatives : sequence of str or None
        Other answers, where there are some already.
    metadata : dict or None
        Whatever else belongs to the problem, such as what a guarantee groups by.
    """

    problem: str | None
    answer: str
    id: Any = None
    alternatives: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Extraction:
    """What became of one answer.

    Parameters
    ----------
    graph : ReasoningGraph
    answer : Answer
    flags : tuple of str
        What was not as it should be, such as a graph that had to be repaired.
    """

    graph: ReasoningGraph
    answer: Answer
    flags: tuple[str, ...] = ()


def read_answers(X: Iterable[Any]) -> list[Answer]:
    """What the caller gave, as answers; ValueError names what is none."""
    if isinstance(X, (str, bytes, Mapping)):
        raise ValueError(f"a {type(X).__name__} is no list of problems and answers")
    return [_read_answer(i, item) for i, item in enumerate(X)]


def _read_answer(i, item):
    if isinstance(item, Mapping):
        if unknown := sorted(map(str, item.keys() - set(Answer._fields))):
            raise ValueError(
                f"problem {i}: unknown keys {unknown}; there are {list(Answer._fields)}. The "
                'question is the "problem", and whatever else belongs to it goes into '
                '"metadata"'
            )
        known = {name: item.get(name) for name in Answer._fields}
        answer = Answer(**known)
    elif isinstance(item, tuple) and 2 <= len(item) <= len(Answer._fields):
        answer = Answer(*item)
    else:
        raise ValueError(
            f"problem {i} is a {type(item).__name__}, but must be (problem, answer), or a "
            'dictionary with "problem" and "answer"'
        )
    _check_fields(f"problem {i}: its", answer)
    return answer


def _check_fields(its, answer):
    """All that could be wrong is found before the first call."""
    if not isinstance(answer.answer, str):
        raise ValueError(f"{its} answer is {answer.answer!r}, no text")
    if not isinstance(answer.problem, str | None):
        raise ValueError(f"{its} question is {answer.problem!r}, no text")
    if not isinstance(answer.metadata, Mapping | None):
        raise ValueError(f"{its} metadata must be a dictionary")
    others = answer.alternatives
    good = others is None or isinstance(others, (list, tuple))
    if not good or not all(isinstance(text, str) for text in others or ()):
        raise ValueError(f"{its} alternatives must be a list of texts")
    if not isinstance(answer.id, str | int | None) or isinstance(answer.id, bool):
        raise ValueError(f"{its} id is {answer.id!r}, no text or whole number")


def failed_extraction(
    answer: Answer, error: CallError, names: Sequence[str], samples: bool
) -> Extraction:
    """A graph without claims, of which nothing can be kept, and why there are none."""
    graph = ReasoningGraph(
        np.zeros((0, len(names))) if names else None,
        [],
        claims=[],
        problem=answer.problem,
        alternatives=() if samples and not answer.alternatives else answer.alternatives,
        feature_names=names or None,
        id=answer.id,
        metadata=answer.metadata,
    )
    return Extraction(graph, answer, (f"extraction failed: {error}",))
