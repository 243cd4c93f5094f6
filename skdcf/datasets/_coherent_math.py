"""The 50 MATH problems of coherent factuality, with graphs and labels."""

from os import PathLike
from typing import Any, Literal

from .._checks import check_choice
from ..adapters import from_coherent_factuality_json
from ._common import make_bunch
from ._files import local_file

_FILES = {
    "gpt": "MATH_annotations.json",
    "llama": "MATH_open_subclaims_with_scores.json",
    "llama-uncorrected": "misc/MATH_open_subclaims_with_scores.json",
    "llama-unscored": "MATH_open_annotations.json",
}

_DESCR = """Coherent factuality on MATH (Rubin-Toles et al., ICLR 2025)

Fifty problems of the MATH test set, each with one answer of a language model that was
cut into claims, a dependency graph, and labels by people. Read: {file} (version
"{version}"), graph "{graph}", label "{label}".

graphs   prompt as `problem`, claims word for word. Features: frequency-score (five
         other answers: +1 supports, 0 silent, -1 contradicts; -5 to 5, many ties) and
         gpt-score; both are confidences, higher is better. Files without scores give
         features None.
labels   manual_annotation: the claim is right given what it builds on, to be used with
         the graph. annotation: the claim is true on its own (Y, S true; N, U false).
groups   same question, same number, here and in the other data sets.

Versions: "gpt"; "llama", the same prompts answered by Llama-3.1-70B-Instruct-Turbo,
where some claims come before what they build on; "llama-uncorrected" and
"llama-unscored", earlier states of it with seven cyclic graphs and one label "2"
(on_invalid="drop" leaves those problems out). Not read: scores derived from others or
from the labels, the tie-breaking noise, and the marked subsets.

Source: https://github.com/maxrubintoles/Conformal_LM_Reasoning (no licence stated);
answers and claims of "gpt" by Mohri & Hashimoto (2024); questions from MATH.
"""


def fetch_coherent_math(
    version: str = "gpt",
    *,
    graph: str = "dep_graph",
    label: str = "manual_annotation",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load 50 answers to MATH problems with claims, graphs, scores and labels.

    Parameters
    ----------
    version : {"gpt", "llama", "llama-uncorrected", "llama-unscored"}
        Who answered, and which state of the file; see ``DESCR``.
    graph : {"dep_graph", "gold_graph"}
        Graphs by a language model, or by hand (first ten problems only: use
        ``on_invalid="drop"``).
    label : {"manual_annotation", "annotation"}
        Right as a step, or true on its own (version "gpt" only).
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a problem with a cyclic graph or an unknown label.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts), ``labels`` (list of 0/1 int arrays),
        ``groups`` (a number per question), ``feature_names``, ``dropped`` (list of
        (id, reason)), ``DESCR``.

    Raises
    ------
    ValueError
        On an unknown name, or a broken problem with ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Rubin-Toles, Gambhir, Ramji, Roth, Goel, *Conformal Language Model Reasoning with
    Coherent Factuality*, ICLR 2025.
    """
    check_choice("version", version, _FILES)
    name = f"coherent_factuality/{_FILES[version]}"
    path = local_file(name, data_home, download_if_missing)
    scores = None if version == "llama-unscored" else "default"
    data = from_coherent_factuality_json(
        path,
        graph=graph,
        label=label,
        features=scores,
        on_invalid=on_invalid,
        name=f"coherent_math/{version}",
    )
    descr = _DESCR.format(file=path.name, version=version, graph=graph, label=label)
    return make_bunch(data, descr, return_X_y)
