"""PERL: premises and errors in reasoning chains."""

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from .._checks import check_choice
from ..graphs import ReasoningGraph
from ._common import chosen, load
from ._files import local_file

_FOLDERS = {
    "gsm8k": "gsm8k",
    "math": "math",
    "metamathqa": "metamathqa",
    "orcamath": "orca_math",
}
_KINDS = ("negatives", "positives", "positives_perturbed")

_DESCR = """PERL: premises and errors in reasoning chains (Mukherjee et al., 2025)

Solutions of word problems by language models, with premise links and step errors that
were checked by people. Files read: {files}.

graphs   question as `problem`, steps as `claims`, word for word: most begin with
         "Step k: ", and text features must strip that. No scores are published, so
         `features` is None. Premise u of step v is the edge u -> v; citations of the
         question (step 0) are no edges.
labels   "native": a step is false if it is wrong in itself, given its premises, as the
         labels of coherent_math. "any": steps that build on an error are false as well.
         Here: "{label}".
groups   same question, same number. Perturbed solutions are edits of positive ones:
         split by group, or use only one of the two.

metadata "subset" and "kind", which reveals labels: it is no input.

positives: final answer right; negatives: final answer wrong; positives_perturbed: an
error was written into a right solution. The mix is by design, no sample of what a model
writes. The files were not made alike either: newlines were removed from the perturbed
steps, so a feature that sees newlines sees where a problem is from. Ids name the file
and are no input.

Source: https://github.com/SagnikMukherjee/PARC (MIT), arXiv:2502.02362. The questions
come from GSM8K, MATH, MetaMathQA and Orca-Math, which have terms of their own.
"""


def fetch_perl(
    subset: str | Sequence[str] = ("gsm8k", "math"),
    kind: str = "all",
    label: Literal["native", "any"] = "native",
    *,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load PERL: solutions of word problems with premise links and step errors.

    Parameters
    ----------
    subset : {"gsm8k", "math", "metamathqa", "orcamath", "all"} or list of them
        Where the questions come from.
    kind : {"negatives", "positives", "positives_perturbed", "all"} or list of them
        Solutions with a wrong final answer, with a right one, with a planted error.
    label : {"native", "any"}
        Whether a step that is valid but builds on an error counts as true ("native")
        or false ("any"). Together with the graph, "native" is what a filter needs.
    data_home : path-like, optional
        See `get_data_home`; files lie there as ``perl/gsm8k/gsm8k_negatives.json``.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a problem whose links or labels make no sense.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts and without features), ``labels`` (list of
        0/1 int arrays), ``groups`` (a number per question), ``metadata`` (list of
        dict), ``feature_names`` (None), ``dropped`` (list of (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken problem with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Mukherjee et al., *Premise-Augmented Reasoning Chains Improve Error Identification
    in Math Reasoning with LLMs*, 2025, arXiv:2502.02362.
    """
    check_choice("label", label, ("native", "any"))
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    files = [
        f"perl/{_FOLDERS[s]}/{s}_{k}.json"
        for s in chosen("subset", subset, _FOLDERS)
        for k in chosen("kind", kind, _KINDS)
    ]
    paths = [local_file(name, data_home, download_if_missing) for name in files]
    records = {
        f"perl/{path.stem}/{i}": record | {"file": path.stem}
        for path in paths
        for i, record in enumerate(json.loads(path.read_text("utf-8")))
    }
    return load(
        records,
        lambda record, name: _parse(record, name, label),
        lambda record: dict(
            zip(("subset", "kind"), record["file"].split("_", 1), strict=True)
        ),
        _DESCR.format(files=", ".join(p.name for p in paths), label=label),
        on_invalid,
        return_X_y,
        question=lambda record: record["question"],
    )


def _parse(record, name, label):
    """One problem; only question, steps, premise links and step errors are read."""
    steps = record["steps"]
    edges = _premise_edges(record["premise_annotation"]["steps"], len(steps))
    graph = ReasoningGraph(
        None, edges, claims=steps, problem=record["question"], id=name
    )
    return graph, _labels(record["error_annotation"], len(steps), label)


def _premise_edges(entries, n_steps):
    """Links by position: the numbers that a text prints may skip some."""
    entries = [entry for entry in entries if entry["step_number"] != 0]
    position = {entry["step_number"]: v for v, entry in enumerate(entries)}
    if len(position) != n_steps or len(entries) != n_steps:
        raise ValueError(
            f"{n_steps} steps, but premises for the steps {list(position)}"
        )
    edges = set()
    for entry in entries:
        child = entry["step_number"]
        for premise in entry["premises"]:
            if premise[0] == 0:
                continue
            if premise[0] not in position:
                raise ValueError(
                    f"step {child} cites step {premise[0]}, which does not exist"
                )
            edges.add((position[premise[0]], position[child]))
    return sorted(edges)


def _labels(annotation, n_steps, label):
    entries = annotation["error_annotations"]["step_level"]
    entries = sorted(entries, key=lambda entry: entry["step_number"])
    if len({entry["step_number"] for entry in entries}) != n_steps:
        raise ValueError(f"{n_steps} steps, but error entries for {len(entries)}")
    return np.array([int(not _is_false(entry, label)) for entry in entries])


def _is_false(entry, label):
    types = [error["error_type"] for error in entry["errors"]]
    if entry["has_error"] is not bool(types):
        raise ValueError(
            f"step {entry['step_number']} has has_error {entry['has_error']!r} but "
            f"{len(types)} errors"
        )
    if label == "any":
        return bool(types)
    return any(kind != "Accumulation_Error" for kind in types)
