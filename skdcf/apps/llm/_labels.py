"""Label claims with a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ...graphs import GraphBatch, ReasoningGraph
from ...graphs.per_problem import LabelList
from . import _calls as calls
from ._client import Step


class _Label(Step):
    """Step that labels all claims of a problem as "true", "false" or "unsure" in one call."""

    _prompt_name = "labels"
    _reply = calls.verdicts_of("true", "false", "unsure")


def judge_labels(
    graphs: Sequence[ReasoningGraph],
    model: str,
    client: Any = None,
    *,
    prompt: str | Path | None = None,
) -> Bunch:
    """Label claims with a model, and record the source of the labels.

    Use these labels to assist human annotators, or as a temporary substitute for human labels. A
    filter calibrated only on such labels issues a warning, because the guarantee then refers to
    the verdicts of the model. `skdcf.apps.labelling.agreement` compares these labels with human
    labels.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph
        Graphs with claims. For a graph with a context, label 1 means that the context supports
        the claim, and the provenance records this meaning (``label_meaning``).
    model : str
        Name of the judge model, which should differ from the model that wrote the answers.
    client : ChatClient or callable, optional
        Client for the model. The default is ``ChatClient()``.
    prompt : str or Path, optional
        Instructions for the model, as a string or a file path. The default is the built-in prompt
        "labels".

    Returns
    -------
    dataset : Bunch
        ``graphs`` is a GraphBatch with the judge and the prompt in the provenance
        (``label_source``, ``label_prompt``). ``labels`` is a list of int arrays, in which 1 means
        true and 0 means false or unsure.

    Raises
    ------
    CallError
        If calls failed. The replies to the other calls are in the cache of the client.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.llm import judge_labels
    >>> def complete(messages):
    ...     return '{"verdicts": [{"claim": 1, "verdict": "false"}]}'
    >>> graph = ReasoningGraph(None, [], claims=["2 + 2 = 5"])
    >>> judge_labels([graph], "any", complete).labels
    [array([0])]
    """
    step = _Label(prompt)
    graphs = list(graphs)
    verdicts = step.apply(graphs, model=model, client=client)
    marked = []
    labels = LabelList()
    for graph, row in zip(graphs, verdicts, strict=True):
        meant = {"label_meaning": "supported"} if graph.context else {}
        source = {"label_source": f"model {model}", "label_prompt": step.wording().name}
        provenance = meant | (graph.provenance or {}) | source
        marked.append(graph.replace(provenance=provenance))
        labels.append(np.maximum(row, 0))
    return Bunch(graphs=GraphBatch.from_graphs(marked), labels=labels)
