"""Features that a model judges: the frequency score and the semantic ones."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from ..graphs import ReasoningGraph
from ._chat import Chat
from ._reading import (
    read_choice,
    read_number,
    read_rows,
    rows_schema,
)
from ._step import Expense, Size, Step, table_tokens

_WORDS = {"supports": 1.0, "contradicts": -1.0, "silent": 0.0}
_FREQUENCY = rows_schema("verdicts", verdict={"enum": list(_WORDS)})
#: What is rated, from the smallest to the largest value.
_RATINGS = {
    "coherent_to_ancestors": (0, 1),
    "inference_gap_size": (0, 5),
    "has_missing_dependencies": (0, 1),
    "has_unnecessary_dependencies": (0, 1),
    "problem_relevance": (0, 1),
    "uses_problem_data": (0, 1),
    "is_well_formed": (0, 1),
}
_FLAGS = {name for name in _RATINGS if name.startswith(("has_", "uses_", "is_"))}
_SEMANTIC = rows_schema(
    "ratings",
    **{k: {"type": "boolean" if k in _FLAGS else "number"} for k in _RATINGS},
)


class JudgeStep(Step):
    """A step that gives feature columns to the claims of a graph."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        raise NotImplementedError

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        raise NotImplementedError


class Frequency(JudgeStep):
    """The frequency score: in how many other answers a claim comes back.

    For each of the problem's ``alternatives`` a model says of each claim whether that
    answer supports it (+1), contradicts it (-1) or is silent (0); the score is the sum.
    One call per alternative. `apply` takes graphs, and returns an array of shape
    (n_claims, 1) for each; the column is called ``frequency-score``.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "frequency".
    model : str, optional
        Another model than that of the other steps.

    Raises
    ------
    ValueError
        If a parameter has a wrong value, or the alternatives of a problem are not known.

    Notes
    -----
    Base scoring of Hittesdorf, Salzetta, Cheng (arXiv:2604.20098), appendix "Feature
    Descriptions", summed as in the data of Rubin-Toles et al. (ICLR 2025).

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.llm import Frequency
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "supports"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["x = 2"], alternatives=["x is 2", "2"])
    >>> Frequency().apply([graph], model="any", client=complete)
    [array([[2.]])]
    """

    _prompt_name = "frequency"

    def __init__(self, prompt: str | Path | None = None, *, model: str | None = None):
        self.prompt = prompt
        self.model = model

    @property
    def names(self) -> tuple[str, ...]:
        return ("frequency-score",)

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        if graph.alternatives is None:
            raise ValueError(
                f"{name_of(graph)} has no alternatives: the frequency score needs other "
                "answers, sample=SampleAnswers() draws them"
            )
        others = graph.alternatives if graph.n_claims else ()
        votes = await asyncio.gather(*(self._vote(chat, graph, o) for o in others))
        total = np.zeros(graph.n_claims)
        return (total + np.sum(votes, axis=0) if votes else total)[:, None]

    async def _vote(self, chat, graph, other):
        rows = [{"claim": v + 1, "text": t} for v, t in enumerate(graph.claims)]
        payload = {"question": graph.problem, "claims": rows, "other": other}

        def read(data: dict[str, Any]) -> list[float]:
            rows = data["verdicts"]
            return read_rows(
                rows,
                "verdicts",
                graph.n_claims,
                lambda r: read_choice(r, "verdict", _WORDS),
            )

        return await chat.ask_object(self.told(), payload, _FREQUENCY, read)

    def _expect(self, size: Size) -> Expense:
        tokens, written = table_tokens(size)
        return self._expense(size.n_alternatives, tokens + size.answer, written)


class SemanticJudge(JudgeStep):
    """The eight semantic features, seven rated by a model and one counted.

    ``claim_index``, ``coherent_to_ancestors`` (0 to 1), ``inference_gap_size`` (0 to 5
    missing steps), ``has_missing_dependencies``, ``has_unnecessary_dependencies``,
    ``problem_relevance`` (0 to 1), ``uses_problem_data`` and ``is_well_formed``. One call
    per problem. `apply` takes graphs, and returns an array of shape (n_claims, 8) for
    each. `skdcf.features.SemanticFeatures` takes the columns from there.

    Parameters
    ----------
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "semantic".
    model : str, optional
        Another model than that of the other steps.

    Raises
    ------
    ValueError
        If a parameter has a wrong value.

    Notes
    -----
    The features are those of arXiv:2604.20098, appendix "Feature Descriptions"; their
    scales and the prompt are ours.
    """

    _prompt_name = "semantic"

    def __init__(self, prompt: str | Path | None = None, *, model: str | None = None):
        self.prompt = prompt
        self.model = model

    @property
    def names(self) -> tuple[str, ...]:
        return ("claim_index", *_RATINGS)

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        n = graph.n_claims
        if not n:
            return np.zeros((0, len(self.names)))

        def rate(row: dict[str, Any]) -> list[float]:
            return [read_number(row, name, *_RATINGS[name]) for name in _RATINGS]

        def read(data: dict[str, Any]) -> list[list[float]]:
            return read_rows(data["ratings"], "ratings", n, rate)

        table = await chat.ask_object(self.told(), tabled(graph), _SEMANTIC, read)
        return np.column_stack([np.arange(n), np.array(table)])

    def _expect(self, size: Size) -> Expense:
        tokens, written = table_tokens(size)
        return self._expense(1, tokens, 3 * written)


def tabled(graph: ReasoningGraph) -> dict[str, Any]:
    """Question, claims and what they build on, as a model is shown them."""
    rows = []
    for v, text in enumerate(graph.claims):
        parents = graph.edges[graph.edges[:, 1] == v, 0] + 1
        rows.append({"claim": v + 1, "text": text, "builds_on": parents.tolist()})
    return {"question": graph.problem, "claims": rows}


def name_of(graph):
    return "a problem" if graph.id is None else f'problem "{graph.id}"'
