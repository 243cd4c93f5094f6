"""From claims to the graph of what builds on what."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ..edges import chain_edges, cited_edges
from ._chat import Chat, UnreadableError
from ._reading import read_rows, rows_schema
from ._step import Expense, Size, Step, table_tokens

_SCHEMA = rows_schema(
    "premises", builds_on={"type": "array", "items": {"type": "integer"}}
)
REPAIRED = "graph repaired: edges to later claims, unknown ones and loops left out"
CHAINED = "graph unreadable: every claim builds on the one before it"


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


class DeduceGraph(Step):
    """Say which claims build on which, by a model.

    `apply` takes lists of claims and problems, and returns a `DeducedGraph` for each.

    Claims that name their premises themselves, as in "#5. (by #2 #4)", are read without
    a call. A graph that is cyclic or malformed is asked for again, with what is wrong
    with it. After the third time it is repaired: edges from later claims, from a claim to
    itself and to unknown claims are left out, and a claim that is not spoken of builds on
    the one before it. A reply in which no graph can be read makes every claim build on
    the one before it, the cautious choice. Both are flagged.

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

    _prompt_name = "graph"
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **Step._parameter_constraints,
        "read_cited": ["boolean"],
    }

    def __init__(
        self,
        prompt: str | Path | None = None,
        *,
        model: str | None = None,
        read_cited: bool = True,
    ):
        self.prompt = prompt
        self.model = model
        self.read_cited = read_cited

    async def _run(
        self, chat: Chat, claims: Sequence[str], problem: str | None
    ) -> DeducedGraph:
        if self.read_cited and (cited := cited_edges(claims, problem)):
            return DeducedGraph(cited)
        if len(claims) < 2:
            return DeducedGraph([])
        rows = [{"claim": v + 1, "text": text} for v, text in enumerate(claims)]
        payload = {"question": problem, "claims": rows}

        def read(data: dict[str, Any]) -> list[tuple[int, int]]:
            return _read(data["premises"], len(claims))

        try:
            edges = await chat.ask_object(self.told(), payload, _SCHEMA, read)
            return DeducedGraph(edges)
        except UnreadableError as error:
            return _repaired(error.data, claims)

    def _expect(self, size: Size) -> Expense:
        return self._expense(1, *table_tokens(size))


def _read(rows, n):
    """Edges of a reply; ValueError says what is wrong with it, for the next asking."""

    def premises(row):
        values = row.get("builds_on")
        if not isinstance(values, list) or not all(type(u) is int for u in values):
            raise ValueError('"builds_on" is no list of whole numbers')
        return values

    parents = read_rows(rows, "premises", n, premises)
    for v, values in enumerate(parents, start=1):
        if wrong := [u for u in values if not 1 <= u <= n or u == v]:
            raise ValueError(f"claim {v} builds on {wrong[0]}")
    try:
        TopologicalSorter(dict(enumerate(parents, start=1))).prepare()
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"these claims build on each other: {circle}") from error
    return [(u - 1, v) for v, row in enumerate(parents) for u in sorted(set(row))]


def _repaired(data, claims):
    rows = data.get("premises") if isinstance(data, dict) else None
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("builds_on"), list):
            found.setdefault(_whole(row.get("claim")), row["builds_on"])
    n = len(claims)
    if not any(v in found for v in range(1, n + 1)):
        return DeducedGraph(chain_edges(claims), CHAINED)
    edges = []
    for v in range(1, n + 1):
        given = found.get(v, [v - 1])
        edges += [
            (u - 1, v - 1) for u in sorted({_whole(u) for u in given}) if 0 < u < v
        ]
    return DeducedGraph(edges, REPAIRED)


def _whole(value):
    return value if type(value) is int else 0
