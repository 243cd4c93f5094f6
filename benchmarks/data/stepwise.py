"""Data sets of stepwise solutions with labelled steps."""

import re
from itertools import pairwise

import numpy as np

from skdcf.datasets.fetch import add_alternatives, chosen

from .reading import load, read

_PRM_SOURCES = {
    "train": ["prm800k_train_p1_first400_4o"],
    "test": ["prm800k_test_p1_4o", "prm800k_test_p2_4o"],
}
_SEVERAL = "multi_solutions"
_LOGIC = (
    *("circular", "step_contradiction", "counterfactual", "domain_inconsistency"),
    *("missing_condition", "deception", _SEVERAL),
)
_PRM_KINDS = (*_LOGIC, "redundency", "confidence")
_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
# Pattern for a calculation and its result, such as <<16-3=13>>.
_CALCULATION = re.compile(r"<<([^<>=]+)=\s*(-?[\d.,]+)\s*>>")
_ANNOTATION = re.compile(r"<<[^<>]*>>")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def fetch_prmbench(split="all", kinds=_LOGIC, *, data_home=None):
    """Load PRMBench, a data set of stepwise solutions to math problems with inserted errors.

    Parameters
    ----------
    split : {"train", "test", "all"} or list of them
        Part of PRM800K that contains the original solutions.
    kinds : "all", str or list of str
        Kinds of solutions. The error kinds are "circular", "step_contradiction", "counterfactual",
        "domain_inconsistency", "missing_condition" and "deception". "multi_solutions" contains no
        errors. The default excludes "redundency" and "confidence", which concern the style of a
        solution.
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and without features),
        ``labels`` (list of int arrays: 1 true, 0 false, -1 unknown), ``groups`` (question index of
        each problem), ``metadata`` (list of dict), ``feature_names`` (None), ``dropped`` (list of
        (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Song et al., *PRMBench: A Fine-grained and Challenging Benchmark for Process-Level
    Reward Models*, ACL 2025, arXiv:2501.03124.
    """
    splits = chosen("split", split, list(_PRM_SOURCES))
    kinds = chosen("kinds", kinds, _PRM_KINDS)
    sources = [source for name in splits for source in _PRM_SOURCES[name]]
    stems = [f"{source}_{k}" for source in sources for k in kinds if k != _SEVERAL]
    if "test" in splits and _SEVERAL in kinds:
        stems.append("prm_test_p12_multi_solutions")
    records = {
        f"prmbench/{stem}/{i}": record | {"stem": stem}
        for stem in stems
        for i, record in enumerate(read(f"prmbench/{stem}.jsonl", data_home))
    }
    return load("prmbench", records | _originals(records), _parse_prm)


def _originals(records):
    """Return one record for each distinct original solution."""
    first = {}
    for name, record in records.items():
        question = record["original_question"]
        steps = record["original_process"]
        original = record | {"classification": "original", "error_steps": []}
        original |= {"modified_question": question, "modified_process": steps}
        first.setdefault((question, *steps), (f"{name}/original", original))
    return dict(first.values())


def _parse_prm(record):
    steps = record["modified_process"]
    original_steps = set(record["original_process"])
    changed = [v for v, step in enumerate(steps) if step not in original_steps]
    false = [k - 1 for k in record["error_steps"] if 1 <= k <= len(steps)]
    labels = np.full(len(steps), -1 if record["error_steps"] and not false else 1)
    labels[false] = 0
    return {
        "problem": record["modified_question"],
        "claims": steps,
        "labels": labels,
        "group": record.get("question", record["original_question"]),
        "metadata": {
            "split": "train" if "train" in record["stem"] else "test",
            "idx": record["idx"],
            "kind": record["classification"],
            "changed": changed,
        },
    }


def fetch_gsm8k_solutions(*, data_home=None):
    """Load four models' solutions to grade-school math problems, with exact graphs.

    **The labels are derived** from final answers and reference solutions. The steps were not
    judged by people. ``DESCR`` describes the derivation.

    Parameters
    ----------
    data_home : path-like, optional
        Folder for downloaded files, as in `skdcf.datasets.fetch_felm`.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and the other models'
        solutions as alternatives, without features), ``labels`` (list of 0/1 int arrays),
        ``groups`` (question index of each problem), ``metadata`` (list of dict), ``feature_names``
        (None), ``dropped`` (list of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Cobbe et al., *Training Verifiers to Solve Math Word Problems*, 2021,
    arXiv:2110.14168.
    """
    records = {}
    lines = read("gsm8k_solutions/example_model_solutions.jsonl", data_home)
    for i, line in enumerate(lines):
        for model in _MODELS:
            text = _ANNOTATION.sub("", line[model]["solution"])
            record = line | line[model] | {"model": model, "text": text}
            records[f"gsm8k_solutions/{model}/{i}"] = record
    add_alternatives(records, "question", "model", "text")
    return load("gsm8k_solutions", records, _parse_gsm8k)


def _parse_gsm8k(record):
    marks = list(_CALCULATION.finditer(record["solution"]))
    if not marks:
        raise ValueError("the solution must contain at least one calculation")
    results = [_value(mark[2]) for mark in marks]
    return {
        "problem": record["question"],
        "claims": _cut(record["solution"], marks),
        "alternatives": record["alternatives"],
        "edges": _operand_edges([mark[1] for mark in marks], results),
        "labels": _derived_labels(results, record),
        "metadata": {"model": record["model"]},
    }


def _value(numeral):
    """Convert a numeral to a float, rounded so that 0.1 + 0.2 equals 0.3."""
    return round(float(numeral.replace(",", "")), 6)


def _operand_edges(terms, results):
    edges = set()
    latest = {}
    for v, (term, value) in enumerate(zip(terms, results, strict=True)):
        operands = map(_value, _NUMBER.findall(term.replace(",", "")))
        edges |= {(latest[x], v) for x in operands if x in latest}
        latest[value] = v
    return sorted(edges)


def _cut(solution, marks):
    """Split a solution into consecutive texts, one per calculation."""
    ends = []
    for mark, following in pairwise(marks):
        line_end = solution.find("\n", mark.end())
        # Both calculations must be on the same line.
        if not mark.end() <= line_end < following.start():
            word = re.compile(r"\S+").match(solution, mark.end())
            word_end = word.end() if word else mark.end()
            line_end = min(word_end, following.start())
        ends.append(line_end)
    pairs = zip([0, *ends], [*ends, len(solution)], strict=True)
    return [_ANNOTATION.sub("", solution[a:b]).strip() for a, b in pairs]


def _derived_labels(results, record):
    if record["is_correct"]:
        return [1] * len(results)
    reference = {_value(m[2]) for m in _CALCULATION.finditer(record["ground_truth"])}
    labels = [int(value in reference) for value in results]
    return [*labels[:-1], 0] if all(labels) else labels
