"""GSM8K model solutions: exact graphs of calculations, labels derived from answers."""

import re
from itertools import pairwise
from os import PathLike
from typing import Any, Literal

import numpy as np

from ..graphs import ReasoningGraph
from ._common import json_lines, load
from ._files import local_file

_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
# <<16-3=13>>: what is calculated, and the result.
_CALCULATION = re.compile(r"<<([^<>=]+)=\s*(-?[\d.,]+)\s*>>")
_ANNOTATION = re.compile(r"<<[^<>]*>>")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_DESCR = """GSM8K model solutions (Cobbe et al., 2021)

Solutions of the 1,319 test questions of GSM8K by four models, with every calculation
marked by the models themselves, as in <<16-3=13>>.

graphs   question as `problem`. A claim is one calculation with the text before it and the
         rest of its line; the last one ends with the answer. The marks are removed.
         Edges are exact: a calculation builds on the latest earlier one that has an
         operand of its as the result. No scores are published: `features` is None.
labels   DERIVED from answers, judged by nobody. Where the final answer is right, all steps
         are true. Else a step is true if its result occurs among the results of the
         reference solution; where that makes none false, the last one is. On steps
         that people judged as well (PERL) this agrees in 89 % (82 % where the answer is
         wrong).
groups   same question, same number.
metadata "model".
alternatives  solutions of the other models, in the order of their names.

Left out (see `dropped`): 48 solutions without a calculation.

Source: https://github.com/openai/grade-school-math (MIT), arXiv:2110.14168.
"""


def fetch_gsm8k_solutions(
    *,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "drop",
    return_X_y: bool = False,
) -> Any:
    """Load solutions of grade-school problems by four models, with exact graphs.

    **The labels are derived** from final answers and reference solutions: nobody judged
    the steps. ``DESCR`` says how.

    Parameters
    ----------
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a solution without a calculation, of which the file has 48.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts, the other models' solutions as alternatives,
        and without features), ``labels`` (list of 0/1 int arrays), ``groups`` (a number
        per question), ``metadata`` (list of dict), ``feature_names`` (None),
        ``dropped`` (list of (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On a solution without a calculation, with ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Cobbe et al., *Training Verifiers to Solve Math Word Problems*, 2021,
    arXiv:2110.14168.
    """
    name = "gsm8k_solutions/example_model_solutions.jsonl"
    path = local_file(name, data_home, download_if_missing)
    records = {
        f"gsm8k_solutions/{model}/{i}": line | line[model] | {"model": model}
        for i, line in enumerate(json_lines(path))
        for model in _MODELS
    }
    return load(
        records,
        _parse,
        lambda record: {"model": record["model"]},
        _DESCR,
        on_invalid,
        return_X_y,
        question=lambda record: record["question"],
        answer=lambda record: (
            record["question"],
            record["model"],
            _ANNOTATION.sub("", record["solution"]),
        ),
    )


def _parse(record, name):
    marks = list(_CALCULATION.finditer(record["solution"]))
    if not marks:
        raise ValueError("there is no calculation in the solution")
    results = [_value(mark[2]) for mark in marks]
    graph = ReasoningGraph(
        None,
        _operand_edges([mark[1] for mark in marks], results),
        claims=_cut(record["solution"], marks),
        problem=record["question"],
        id=name,
    )
    return graph, _labels(results, record)


def _value(numeral):
    """The number, rounded so that 0.1 + 0.2 is 0.3."""
    return round(float(numeral.replace(",", "")), 6)


def _operand_edges(terms, results):
    edges, latest = set(), {}
    for v, (term, result) in enumerate(zip(terms, results, strict=True)):
        operands = map(_value, _NUMBER.findall(term.replace(",", "")))
        edges |= {(latest[x], v) for x in operands if x in latest}
        latest[result] = v
    return sorted(edges)


def _cut(solution, marks):
    """The text of each calculation, from the end of the one before it."""
    ends = []
    for mark, following in pairwise(marks):
        line_end = solution.find("\n", mark.end())
        if not mark.end() <= line_end < following.start():  # both on one line
            line_end = re.compile(r"\S*").match(solution, mark.end()).end()
            line_end = min(line_end, following.start())
        ends.append(line_end)
    pairs = zip([0, *ends], [*ends, len(solution)], strict=True)
    return [_ANNOTATION.sub("", solution[a:b]).strip() for a, b in pairs]


def _labels(results, record):
    if record["is_correct"]:
        return np.ones(len(results), dtype=np.int64)
    reference = {_value(m[2]) for m in _CALCULATION.finditer(record["ground_truth"])}
    labels = np.array([int(result in reference) for result in results])
    if labels.all():
        labels[-1] = 0
    return labels
