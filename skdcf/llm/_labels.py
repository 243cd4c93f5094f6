"""Labels that a model proposes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..graphs import GraphBatch, ReasoningGraph
from ..labelling import LabelSource, set_label_sources
from ._chat import Chat
from ._client import as_client
from ._judge import tabled
from ._reading import read_choice, read_rows, rows_schema
from ._session import gather_all
from ._step import Step, raise_first, table_tokens

_WORDS = {"true": 1, "false": 0, "unsure": -1}
_SCHEMA = rows_schema("verdicts", verdict={"enum": list(_WORDS)})


class _Judge(Step):
    """One call per problem: a verdict on each claim."""

    _prompt_name = "labels"

    def __init__(self, prompt=None, *, model=None):
        self.prompt = prompt
        self.model = model

    async def _run(self, chat: Chat, graph: ReasoningGraph) -> np.ndarray:
        if not graph.n_claims:
            return np.zeros(0, dtype=np.int64)

        def read(data: dict[str, Any]) -> list[int]:
            return read_rows(
                data["verdicts"],
                "verdicts",
                graph.n_claims,
                lambda row: read_choice(row, "verdict", _WORDS),
            )

        return np.array(
            await chat.ask_object(self.told(), tabled(graph), _SCHEMA, read)
        )

    def _expect(self, size):
        return self._expense(1, *table_tokens(size))


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | Path | None = None,
) -> Bunch:
    """Let a model propose labels, marked as a model's.

    A help for people who label, and a stopgap. Filters that calibrate on such labels
    alone warn: what they promise then is about the model's verdicts.
    `skdcf.labelling.agreement` compares them with people's.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        With claims.
    model : str
        Name of the judge; had best be another model than the one that answered.
    client : ChatClient or callable, optional
        None is ``ChatClient()``.
    prompt : str or Path, optional
        What the model is told: a text, or the path of a file. None is the package's
        prompt "labels".

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch, with the source of each label in its metadata) and
        ``labels`` (list of int arrays: 1 true, 0 false, -1 where the model is unsure).

    Raises
    ------
    CallError
        If calls failed; replies to the others are in the client's cache.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.llm import judge_labels
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 5"])
    >>> judge_labels([graph], "any", complete).labels
    [array([0])]
    """
    step, graphs = _Judge(prompt), list(graphs)
    step.validate()

    async def work(session):
        chat = Chat(session, model)
        return await gather_all(session, graphs, lambda graph: step._run(chat, graph))

    labels = as_client(client).run(work)
    raise_first(labels)
    source = LabelSource.now("model", model, step.told().name)
    marked = [
        set_label_sources(graph, [source if label >= 0 else None for label in row])
        for graph, row in zip(graphs, labels, strict=True)
    ]
    return Bunch(graphs=GraphBatch.pack(marked), labels=labels)
