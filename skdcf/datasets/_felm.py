"""FELM: answers to questions of five domains, judged segment by segment."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from ..graphs import ReasoningGraph
from ._common import chosen, edge_rule, json_lines, load
from ._files import local_file

_DOMAINS = ("math", "reasoning", "science", "wk", "writing_rec")

_DESCR = """FELM: factuality evaluation of language models (Chen et al., NeurIPS 2023)

Answers of ChatGPT, cut into segments that people judged one by one. Domains read:
{domains}.

graphs   prompt as `problem`, segments as `claims`, word for word: some hold line breaks
         as a backslash and an n. No scores are published: `features` is None. No
         dependency graphs are published either; edges here: {rule}. Studies that use
         FELM with graphs had a language model draw them; a chain is an assumption.
labels   1 where the segment is factual.
groups   same prompt, same number: three prompts occur twice.
metadata "domain"; wk is world knowledge, writing_rec writing and
         recommendation (left out by studies of reasoning).

Comments, error types and references reveal the labels and are not read.

Source: https://github.com/hkust-nlp/felm (data: CC BY-NC-SA 4.0), arXiv:2310.00741.
"""


def fetch_felm(
    domains: str | Sequence[str] = ("math", "reasoning", "science", "wk"),
    *,
    graph: str | Callable = "chain",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load FELM: answers to questions of five domains, with labelled segments.

    Parameters
    ----------
    domains : {"math", "reasoning", "science", "wk", "writing_rec", "all"} or list
        Without "writing_rec", as in studies of reasoning, unless asked for.
    graph : {"chain", "none"} or callable
        No graph is published. "chain" assumes that each segment builds on the one
        before it; "none" that they stand alone; ``graph(claims, problem)`` gives pairs
        (parent, child), as the functions of `skdcf.edges` do.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a problem whose labels and segments differ in number.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts and without features), ``labels`` (list of
        0/1 int arrays), ``groups`` (a number per prompt), ``metadata`` (list of
        dict), ``feature_names`` (None), ``dropped`` (list of (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken problem with ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Chen et al., *FELM: Benchmarking Factuality Evaluation of Large Language Models*,
    NeurIPS 2023 Datasets and Benchmarks, arXiv:2310.00741.
    """
    domains = chosen("domains", domains, _DOMAINS)
    edges, rule = edge_rule(graph)
    path = local_file("felm/all.jsonl", data_home, download_if_missing)
    records = [r for r in json_lines(path) if r["domain"] in domains]
    return load(
        {f"felm/{r['domain']}/{r['index']}": r for r in records},
        lambda record, name: _parse(record, name, edges),
        lambda record: {"domain": record["domain"]},
        _DESCR.format(domains=", ".join(domains), rule=rule),
        on_invalid,
        return_X_y,
        question=lambda record: record["prompt"],
    )


def _parse(record, name, edges):
    claims, labels = record["segmented_response"], record["labels"]
    if len(claims) != len(labels):
        raise ValueError(f"{len(claims)} segments but {len(labels)} labels")
    if not all(isinstance(label, bool) for label in labels):
        raise ValueError(f"labels are {labels}, expected true or false")
    pairs = edges(claims, record["prompt"])
    graph = ReasoningGraph(
        None, pairs, claims=claims, problem=record["prompt"], id=name
    )
    return graph, np.array(labels, dtype=np.int64)
