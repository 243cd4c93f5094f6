"""Labels for other programs."""

from collections.abc import Sequence
from typing import Any

from ..graphs import ReasoningGraph, as_batch
from ._sources import get_label_sources

_CONFIG = """<View>
  <Header value="$problem"/>
  <Text name="premises" value="$premises"/>
  <Text name="claim" value="$claim"/>
  <Choices name="verdict" toName="claim" choice="single" showInLine="true">
    <Choice value="true" hotkey="t"/>
    <Choice value="false" hotkey="f"/>
    <Choice value="unsure" hotkey="u"/>
  </Choices>
</View>"""


def label_studio_config() -> str:
    """The labelling interface of Label Studio that the tasks belong to.

    Returns
    -------
    str
        XML, to be pasted under "Labeling interface".

    Examples
    --------
    >>> from skdcf.labelling import label_studio_config
    >>> label_studio_config().splitlines()[0]
    '<View>'
    """
    return _CONFIG


def to_label_studio(
    graphs: Any, words: Sequence[Sequence[str | None]] | None = None
) -> list[dict[str, Any]]:
    """Tasks for Label Studio, one per claim, with the judgements so far.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph, or GraphBatch
        With claims.
    words : sequence of sequences, one per problem, optional
        Per claim "true", "false", "unsure" or None, as `LabelStore.export` gives them.

    Returns
    -------
    list of dict
        To be written as JSON and imported. `label_studio_config` gives the interface.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.labelling import to_label_studio
    >>> graph = ReasoningGraph(None, [(0, 1)], claims=["2 + 2 = 4", "so it is even"])
    >>> tasks = to_label_studio([graph], [["true", None]])
    >>> tasks[0]["annotations"][0]["result"][0]["value"]
    {'choices': ['true']}
    >>> tasks[1]["data"]["premises"]
    '1. 2 + 2 = 4'
    """
    batch = as_batch(graphs)
    tasks = []
    for i in range(len(batch)):
        said = [None] * batch[i].n_claims if words is None else words[i]
        tasks += _tasks(i, batch[i], said)
    return tasks


def _tasks(i, graph: ReasoningGraph, said):
    sources = get_label_sources(graph)
    for v, text in enumerate(graph.claims or ()):
        parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
        data = {
            "problem_id": i if graph.id is None else graph.id,
            "problem": graph.problem or "",
            "claim_number": v + 1,
            "claim": text,
            "premises": "\n".join(f"{u + 1}. {graph.claims[u]}" for u in parents),
        }
        task: dict[str, Any] = {"data": data}
        if said[v] is not None:
            task["annotations"] = [_annotation(said[v], sources[v])]
        yield task


def _annotation(word, source):
    result = {
        "from_name": "verdict",
        "to_name": "claim",
        "type": "choices",
        "value": {"choices": [word]},
    }
    out: dict[str, Any] = {"result": [result]}
    if source is not None:
        out |= {"completed_by": {"email": source.by}, "created_at": source.when}
    return out
