"""ProcessBench: answers of many models, with the first wrong step."""

import json
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

from ..graphs import ReasoningGraph, labels_from_first_error
from ._common import chosen, edge_rule, load
from ._files import local_file

_SUBSETS = ("gsm8k", "math")

_DESCR = """ProcessBench (Zheng et al., 2024)

Answers of twelve models to math problems, in which people marked the first wrong step.
Subsets read: {subsets}.

graphs   question as `problem`, steps as `claims`, word for word. No scores are
         published: `features` is None. No dependency graphs either; edges: {rule}.
labels   1 before the first error, 0 there, -1 (unknown) after it: with a chain this is
         all that calibration needs.
groups   same question, same number, here and in the other data sets: some questions also
         occur in PERL and in the GSM8K solutions.
metadata "model", "subset".
alternatives  other models' answers to the question, in the order of their names. Few
         questions have more than one answer, so most problems have none.

Source: https://github.com/SagnikMukherjee/PARC (MIT), a copy of
https://huggingface.co/datasets/Qwen/ProcessBench (Apache-2.0), arXiv:2412.06559.
"""


def fetch_process_bench(
    subset: str | Sequence[str] = "all",
    *,
    graph: str | Callable = "chain",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load ProcessBench: answers to math problems, with the first wrong step marked.

    Parameters
    ----------
    subset : {"gsm8k", "math", "all"} or list of them
        Where the questions come from.
    graph : {"chain", "none"} or callable
        No graph is published; as for `fetch_mr_ben`.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to an answer whose first error is no step.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As from `fetch_mr_ben`.

    Raises
    ------
    ValueError
        On an unknown name, or a broken answer with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zheng et al., *ProcessBench: Identifying Process Errors in Mathematical Reasoning*,
    2024, arXiv:2412.06559.
    """
    subsets = chosen("subset", subset, _SUBSETS)
    edges, rule = edge_rule(graph)
    records = {}
    for name in subsets:
        path = local_file(f"process_bench/{name}.json", data_home, download_if_missing)
        for i, record in enumerate(json.loads(path.read_text("utf-8"))):
            records[f"process_bench/{name}/{i}"] = record | {"subset": name}
    return load(
        records,
        lambda record, name: _parse(record, name, edges),
        lambda record: {"model": record["generator"], "subset": record["subset"]},
        _DESCR.format(subsets=", ".join(subsets), rule=rule),
        on_invalid,
        return_X_y,
        question=lambda record: record["problem"],
        answer=lambda r: (r["problem"], r["generator"], "\n".join(r["steps"])),
    )


def _parse(record, name, edges):
    steps, question = record["steps"], record["problem"]
    pairs = edges(steps, question)
    graph = ReasoningGraph(None, pairs, claims=steps, problem=question, id=name)
    return graph, labels_from_first_error(len(steps), record["label"])
