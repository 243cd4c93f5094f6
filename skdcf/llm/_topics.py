"""Topics of a question, by a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..features import DomainIndicators
from ..graphs import ReasoningGraph
from ._chat import Chat
from ._judge import JudgeStep
from ._reading import object_schema, read_texts
from ._step import Expense, Size, Step

_TOPICS = json.dumps(
    object_schema(topics={"type": "array", "items": {"type": "string"}})
)


class DomainFlags(JudgeStep):
    """Which topics a question belongs to, by a model; the same for all of its claims.

    One call per problem. `apply` takes graphs, and returns an array of shape (n_claims,
    n_domains) for each. `skdcf.features.DomainIndicators` does it without a model.

    Parameters
    ----------
    domains : sequence of str, optional
        Topics, which name the columns. None: the twelve mathematical ones of the paper.
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "domain_flags".
    model : str, optional
        Another model than that of the other steps.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.
    """

    _prompt_name = "domain_flags"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "domains": ["array-like", None],
    }

    def __init__(
        self,
        domains: Sequence[str] | None = None,
        *,
        prompt: str | Path | None = None,
        model: str | None = None,
    ):
        self.domains = domains
        self.prompt = prompt
        self.model = model

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(DomainIndicators.topics if self.domains is None else self.domains)

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        names = self.names

        def read(data: dict[str, Any]) -> list[str]:
            topics = read_texts(data["topics"], "topics", len(names))
            if unknown := [t for t in topics if t not in names]:
                raise ValueError(f"{unknown[0][:50]!r} is none of the topics")
            return topics

        payload = {"question": graph.problem, "topics": names}
        topics = await chat.ask_object(self.told(), payload, _TOPICS, read)
        return np.tile(np.isin(names, topics).astype(float), (graph.n_claims, 1))

    def _expect(self, size: Size) -> Expense:
        return self._expense(1, size.problem + 4 * len(self.names), 20)
