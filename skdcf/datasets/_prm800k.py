"""PRM800K: solutions of MATH problems, judged step by step up to the first error."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

import numpy as np

from .._checks import check_choice
from ..graphs import ReasoningGraph
from ._common import edge_rule, json_lines, load
from ._files import local_file

_LABELS = {1: 1, 0: 1, -1: 0, None: -1}

_DESCR = """PRM800K (Lightman et al., 2023), second phase, test part

Solutions of MATH problems by a language model, judged by people up to the first error.

graphs   question as `problem`, steps of the model's own solution as `claims`. No scores
         are read: `features` is None. No dependency graphs are published; edges: {rule}.
labels   1 where the rating is 1 (right) or 0 ("it isn't incorrect, but it does not make
         any progress"), 0 where it is -1, and -1 (unknown) where there is no rating:
         from the first error on, or where the judge gave up. With a chain this is all
         that calibration needs.
groups   same question, same number.
metadata "generation", "is_quality_control_question", "is_initial_screening_question":
         solutions of the last two kinds were judged by several people and occur
         several times, always in one group.

Steps that people or the model wrote in the place of a wrong one are not read, nor are
reference solutions and scores of the authors' own verifier.

Source: https://github.com/openai/prm800k (MIT; a Git LFS file), arXiv:2305.20050.
"""


def fetch_prm800k(
    *,
    graph: str | Callable = "chain",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load PRM800K (second phase, test part): solutions judged up to the first error.

    Parameters
    ----------
    graph : {"chain", "none"} or callable
        No graph is published; as for `fetch_mr_ben`.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a solution that was not judged as it stands.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As from `fetch_prmbench`.

    Raises
    ------
    ValueError
        On a broken solution with ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Lightman et al., *Let's Verify Step by Step*, 2023, arXiv:2305.20050.
    """
    edges, rule = edge_rule(graph)
    path = local_file("prm800k/phase2_test.jsonl", data_home, download_if_missing)
    records = {f"prm800k/{i}": r for i, r in enumerate(json_lines(path))}
    keys = (
        "generation",
        "is_quality_control_question",
        "is_initial_screening_question",
    )
    return load(
        records,
        lambda record, name: _parse(record, name, edges),
        lambda record: {key: record[key] for key in keys},
        _DESCR.format(rule=rule),
        on_invalid,
        return_X_y,
        question=lambda record: record["question"]["problem"],
    )


def _parse(record, name, edges):
    question = record["question"]["problem"]
    steps = record["question"]["pre_generated_steps"]
    labels = np.full(len(steps), -1)
    for v, judged in enumerate(record["label"]["steps"]):
        # The first one is the model's own step, others were sampled in its place.
        own = judged["completions"][0]
        if v >= len(steps) or own["text"] != steps[v]:
            raise ValueError(f"the judged step {v} is not the one of the solution")
        check_choice(f"step {v}: rating", own["rating"], list(_LABELS))
        labels[v] = _LABELS[own["rating"]]
    pairs = edges(steps, question)
    return ReasoningGraph(None, pairs, claims=steps, problem=question, id=name), labels
