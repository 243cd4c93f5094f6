"""Mr-Ben: answers of three models to exam questions, with the first wrong step."""

import json
import re
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

from ..graphs import ReasoningGraph, labels_from_first_error
from ._common import chosen, edge_rule, load
from ._files import local_file

_SUBJECTS = ("math", "biology", "chemistry", "medicine", "physics", "logic")
_STEP = re.compile(r"\s*Step\s+(\d+)")

_DESCR = """Mr-Ben (Zeng et al., NeurIPS 2024)

Answers of three models to multiple-choice questions, in which people marked the first
wrong step. Subjects read: {subjects}.

graphs   question and options as `problem`. A claim begins with "Step k"; lines without
         that, such as the last "Solution: Choice_B", belong to the claim above them, and
         empty ones to none. No scores are published: `features` is None. No dependency
         graphs either; edges: {rule}.
labels   1 before the first error, 0 there, -1 (unknown) after it: with a chain this is
         all that calibration needs. The number of the error is the k of "Step k", which
         is no position: some answers skip numbers or have a preface.
groups   same question, same number, whatever its options.
metadata "model", "subject" (of the file), "topic" (as the file has it).
alternatives  answers of the other models to the question with the same options, in the
         order of their names.

Left out (see `dropped`): answers whose first error is no step. Subject "coding" has one
text instead of steps and is not read.

Source: https://github.com/dvlab-research/Mr-Ben (MIT), arXiv:2406.13975.
"""


def fetch_mr_ben(
    subjects: str | Sequence[str] = (
        "math",
        "biology",
        "chemistry",
        "medicine",
        "physics",
    ),
    *,
    graph: str | Callable = "chain",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "drop",
    return_X_y: bool = False,
) -> Any:
    """Load Mr-Ben: answers to exam questions, with the first wrong step marked.

    Parameters
    ----------
    subjects : "all", str or list of str
        Of "math", "biology", "chemistry", "medicine", "physics" and "logic".
    graph : {"chain", "none"} or callable
        No graph is published; as for `fetch_felm`. Without a chain the unknown labels
        after the first error count as false.
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
        ``graphs`` (GraphBatch with texts, the other models' answers as alternatives, and
        without features), ``labels`` (list of int arrays: 1 true, 0 false, -1 unknown),
        ``groups`` (a number per question), ``metadata`` (list of dict),
        ``feature_names`` (None), ``dropped`` (list of (id, reason)),
        ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken answer with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zeng et al., *MR-Ben: A Meta-Reasoning Benchmark for Evaluating System-2 Thinking in
    LLMs*, NeurIPS 2024, arXiv:2406.13975.
    """
    subjects = chosen("subjects", subjects, _SUBJECTS)
    edges, rule = edge_rule(graph)
    records = {}
    for subject in subjects:
        path = local_file(f"mr_ben/{subject}.json", data_home, download_if_missing)
        for uuid, answers in json.loads(path.read_text("utf-8")).items():
            for k, answer in enumerate(answers):
                records[f"mr_ben/{subject}/{uuid}/{k}"] = answer | {"file": subject}
    return load(
        records,
        lambda record, name: _parse(record, name, edges),
        lambda r: {
            "model": r["Sampled_Model"],
            "subject": r["file"],
            "topic": r["Subject"],
        },
        _DESCR.format(subjects=", ".join(subjects), rule=rule),
        on_invalid,
        return_X_y,
        question=lambda record: record["Question"],
        answer=lambda record: (
            record["Question_UUID"],
            record["Sampled_Model"],
            "\n".join(record["Model_Solution_Steps"]),
        ),
    )


def _parse(record, name, edges):
    numbers, claims = _steps(record["Model_Solution_Steps"])
    problem = f"{record['Question']}\n{record['Options']}"
    pairs = edges(claims, problem)
    graph = ReasoningGraph(None, pairs, claims=claims, problem=problem, id=name)
    first = record["Model_Solution_First_Error_Step"]
    if first == "N/A":
        return graph, labels_from_first_error(len(claims), None)
    if first not in numbers:
        raise ValueError(f"the first error is step {first}, but steps are {numbers}")
    return graph, labels_from_first_error(len(claims), numbers.index(first))


def _steps(lines):
    """The number that each step bears, and its text with the lines that continue it."""
    numbers, claims = [], []
    for line in filter(str.strip, lines):
        step = _STEP.match(line)
        if step or not claims:
            numbers.append(step and step[1])
            claims.append(line)
        else:
            claims[-1] += "\n" + line
    return numbers, claims
