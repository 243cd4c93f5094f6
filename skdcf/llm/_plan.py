"""The steps of an extractor, spelt out, and how they follow each other."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graphs import ReasoningGraph
from ._answers import Answer, Extraction
from ._chat import Chat
from ._deduce import DeducedGraph
from ._judge import JudgeStep
from ._step import Expense, Size, Step, call_step, count_tokens, is_step

#: The key under which a graph's metadata say how it was extracted.
EXTRACTION = "extraction"


class Plan:
    """What is done to each answer: the steps by their names, those left out are None."""

    def __init__(self, decompose: Any, graph: Any, sample: Any, features: Any):
        self.decompose, self.graph, self.sample = decompose, graph, sample
        self._members = list_features(features)
        self.names = [name for names, _ in self._members for name in names]

    def steps(self) -> dict[str, Any]:
        """All steps by name."""
        named = {
            "decompose": self.decompose,
            "graph": self.graph,
            "sample": self.sample,
        }
        named |= {f"features[{i}]": s for i, (_, s) in enumerate(self._members)}
        return {name: step for name, step in named.items() if step is not None}

    def check(self, model: str | None) -> None:
        """ValueError where a step is none, or asks a model that is not named."""
        for name, step in self.steps().items():
            if not is_step(step):
                raise ValueError(
                    f"{name} is {step!r}, but must be a step or a function"
                )
            if isinstance(step, Step):
                step.validate()
                if model is None and step.model is None and step.told() is not None:
                    raise ValueError(
                        f"model is None, but {name} asks one: name it, or put a function "
                        "in the place of that step"
                    )

    async def extract(self, chat: Chat, answer: Answer) -> Extraction:
        """All steps for one answer."""
        flags = []
        claims = await call_step(self.decompose, chat, answer.answer, answer.problem)
        if not claims and answer.answer.strip():
            flags.append("no claim was found in the answer")
        edges = await call_step(self.graph, chat, claims, answer.problem)
        if isinstance(edges, DeducedGraph):
            flags += [edges.flag] if edges.flag else []
            edges = edges.edges
        graph = ReasoningGraph(
            None,
            edges,
            claims=claims,
            problem=answer.problem,
            alternatives=answer.alternatives,
            id=answer.id,
            metadata={
                **(answer.metadata or {}),
                "answer": answer.answer,
                EXTRACTION: {**self.describe(chat.model), "flags": flags},
            },
        )
        return Extraction(await self.enrich(chat, graph), answer, tuple(flags))

    async def enrich(self, chat: Chat, graph: ReasoningGraph) -> ReasoningGraph:
        """The graph with other answers and feature columns."""
        if graph.alternatives is None and self.sample is not None:
            others = await call_step(self.sample, chat, graph.problem)
            graph = graph.replace(alternatives=others)
        if not self._members:
            return graph
        calls = (call_step(step, chat, graph) for _, step in self._members)
        tables = await asyncio.gather(*calls)
        table = _side_by_side(tables, self._members, graph.n_claims)
        return graph.replace(features=table, feature_names=self.names)

    def expect(self, answer: Answer) -> Expense:
        """About what one answer will cost."""
        size, total = self._guess_size(answer), Expense()
        for name, step in self.steps().items():
            given = name == "sample" and answer.alternatives is not None
            if isinstance(step, Step) and not given:
                total += step._expect(size)
        return total

    def _guess_size(self, answer):
        tokens = count_tokens(answer.answer)
        if answer.alternatives is not None:
            n = len(answer.alternatives)
        else:
            n = getattr(self.sample, "n", 1) if self.sample is not None else 0
        return Size(count_tokens(answer.problem), tokens, tokens // 15 + 1, n)

    def describe(self, model: str | None) -> dict[str, Any]:
        """Models and prompts of the steps, or the names of functions."""
        steps = {name: _name_step(step) for name, step in self.steps().items()}
        return {"model": model, "steps": steps}


def list_features(features: Sequence[Any] | None) -> list[tuple[tuple[str, ...], Any]]:
    """Column names and step of each member of ``features``."""
    out = []
    for i, step in enumerate(() if features is None else features):
        if isinstance(step, JudgeStep):
            out.append((step.names, step))
        elif isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str):
            out.append(((step[0],), step[1]))
        else:
            raise ValueError(
                f"features[{i}] is {step!r}, but must be a step such as Frequency(), or "
                "a pair (name, function of a graph)"
            )
    return out


def _name_step(step):
    if not isinstance(step, Step):
        return getattr(step, "__qualname__", type(step).__name__)
    told, settings = step.told(), step.get_params(deep=False)
    name = type(step).__name__ if told is None else told.name
    set_so = (f"{k}={v!r}" for k, v in settings.items() if k != "prompt")
    if told is None:  # a scorer is named by its own name, which says nothing of memory
        set_so = (f"{k}={getattr(v, '__qualname__', v)}" for k, v in settings.items())
    return f"{name} ({', '.join(set_so)})"


def _side_by_side(tables, members, n_claims):
    columns = []
    for table, (names, _) in zip(tables, members, strict=True):
        table = np.asarray(table, dtype=float)
        if table.shape not in ((n_claims,), (n_claims, len(names))):
            raise ValueError(
                f"the step for {names[0]!r} gives an array of shape {table.shape} for "
                f"{n_claims} claims"
            )
        columns.append(table.reshape(n_claims, len(names)))
    return np.hstack(columns)
