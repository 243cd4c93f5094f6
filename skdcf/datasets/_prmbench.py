"""PRMBench: solutions into which a language model planted errors."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from ..graphs import ReasoningGraph
from ._common import chosen, edge_rule, json_lines, load
from ._files import local_file

_PARTS = {
    "train": ["prm800k_train_p1_first400_4o"],
    "test": ["prm800k_test_p1_4o", "prm800k_test_p2_4o"],
}
_SEVERAL = "multi_solutions"
_LOGIC = (
    "circular",
    "step_contradiction",
    "counterfactual",
    "domain_inconsistency",
    "missing_condition",
    "deception",
    _SEVERAL,
)
_TEXTS = ("question", "process")  # each original and modified
_KINDS = (*_LOGIC, "redundency", "confidence")

_DESCR = """PRMBench (Song et al., ACL 2025)

Solutions of PRM800K into which GPT-4o planted errors of a kind. Files read: {files}.

graphs   question as `problem`, steps as `claims`, word for word. No scores are
         published: `features` is None. No dependency graphs either; edges: {rule}.
labels   native: a true step may follow a false one. Of `error_steps` (counted from 1)
         those beyond the last step are left out; where none is left, all labels are -1
         (unknown). A changed step (`modified_steps`) may be true.
groups   same question of PRM800K, same number. GPT-4o wrote most questions down in
         several ways, so `original_question` tells more questions apart than there are
         (961 in the training files, of 401). A modified question counts as its original.
metadata "kind"; "split"; "idx" of the solution in the source; "changed": positions,
         counted from 0, of the steps that the original solution does not contain. Kind
         and changed reveal labels: they are no inputs.

Kinds: "redundency" (as the files spell it) and "confidence" are matters of style rather
than of logic and are left out unless asked for. "multi_solutions" (test files only) has
other right solutions. "original": the solutions before the change, each wording once,
with labels of 1; without them nearly every problem has an error.

The errors are a model's, so a feature that sees who wrote a step sees more than it would
elsewhere: compare changed true steps with unchanged ones.

Source: https://github.com/ssmisya/PRMBench (a badge says Apache-2.0, there is no licence
file), arXiv:2501.03124; solutions of PRM800K (MIT); questions from MATH.
"""


def fetch_prmbench(
    split: str | Sequence[str] = "all",
    kinds: str | Sequence[str] = _LOGIC,
    *,
    originals: bool = True,
    graph: str | Callable = "chain",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load PRMBench: solutions of math problems with planted errors, step by step.

    Parameters
    ----------
    split : {"train", "test", "all"} or list of them
        Which part of PRM800K the solutions come from.
    kinds : "all", str or list of str
        Of errors: "circular", "step_contradiction", "counterfactual",
        "domain_inconsistency", "missing_condition", "deception"; "multi_solutions",
        which has none; and "redundency" and "confidence", which are matters of style
        and left out by default.
    originals : bool
        Whether the solutions before the change are problems, too, each wording once.
    graph : {"chain", "none"} or callable
        No graph is published; as for `fetch_felm`.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a broken problem. Published ones are not.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts and without features), ``labels`` (list of int
        arrays: 1 true, 0 false, -1 unknown), ``groups`` (a number per question),
        ``metadata`` (list of dict), ``feature_names`` (None), ``dropped`` (list of
        (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken problem with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Song et al., *PRMBench: A Fine-grained and Challenging Benchmark for Process-Level
    Reward Models*, ACL 2025, arXiv:2501.03124.
    """
    kinds = chosen("kinds", kinds, _KINDS)
    edges, rule = edge_rule(graph)
    records, names = {}, []
    for part in chosen("split", split, _PARTS):
        for file in _files(part, kinds):
            path = local_file(f"prmbench/{file}", data_home, download_if_missing)
            names.append(file)
            for i, record in enumerate(json_lines(path)):
                records[f"prmbench/{path.stem}/{i}"] = record | {"split": part}
    if originals:
        records |= _originals(records)
    descr = _DESCR.format(files=", ".join(names), rule=rule)
    return load(
        records,
        lambda record, name: _parse(record, name, edges),
        _describe,
        descr,
        on_invalid,
        return_X_y,
        question=lambda r: r.get("question", r["original_question"]),
    )


def _files(part, kinds):
    files = [f"{p}_{k}.jsonl" for p in _PARTS[part] for k in kinds if k != _SEVERAL]
    several = part == "test" and _SEVERAL in kinds
    return files + ["prm_test_p12_multi_solutions.jsonl"] * several


def _originals(records):
    """The solutions before the change as records of their own, each wording once."""
    first = {}
    for name, record in records.items():
        wording = (record["original_question"], *record["original_process"])
        first.setdefault(wording, name)
    return {
        f"{name}/original": records[name]
        | {"classification": "original", "error_steps": []}
        | {f"modified_{k}": records[name][f"original_{k}"] for k in _TEXTS}
        for name in first.values()
    }


def _parse(record, name, edges):
    steps, question = record["modified_process"], record["modified_question"]
    pairs = edges(steps, question)
    graph = ReasoningGraph(None, pairs, claims=steps, problem=question, id=name)
    return graph, _labels(record["error_steps"], len(steps))


def _labels(error_steps, n_steps):
    false = [k - 1 for k in error_steps if 1 <= k <= n_steps]
    if error_steps and not false:
        return np.full(n_steps, -1)
    labels = np.ones(n_steps, dtype=np.int64)
    labels[false] = 0
    return labels


def _describe(record):
    before = set(record["original_process"])
    steps = enumerate(record["modified_process"])
    return {
        "kind": record["classification"],
        "split": record["split"],
        "idx": record["idx"],
        "changed": [v for v, step in steps if step not in before],
    }
