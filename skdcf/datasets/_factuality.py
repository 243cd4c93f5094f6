"""Answers without graphs: biographies, Natural Questions, MATH."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from .._checks import check_choice
from ..adapters import from_conformal_factuality_json
from ._common import edge_rule, make_bunch
from ._files import local_file

_SUBSETS = {"factscore": "factscore", "nq": "nq", "math": "MATH"}

_DESCR = """Conformal factuality: {subset} (Mohri & Hashimoto, 2024)

Fifty answers of a language model, cut into claims that people judged one by one:
biographies (factscore), Natural Questions (nq) or MATH problems (math). Read: {file}.

graphs   prompt as `problem`, claims word for word; features frequency-score (-5 to 5,
         many ties) and gpt-score, both confidences: higher is better. No dependency
         graphs were published; edges here: {rule}.
labels   yes and subjective count as true, no and unknown as false, as the authors do.
groups   same question, same number, here and in the other data sets.

math holds the prompts, claims and scores of coherent_math; two labels differ. Do not
pool them.

Source: https://github.com/tatsu-lab/conformal-factual-lm (no licence stated),
arXiv:2402.10978; questions from FActScore, Natural Questions and MATH.
"""


def fetch_conformal_factuality(
    subset: str = "factscore",
    *,
    graph: str | Callable = "none",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load 50 answers with scored and labelled claims, without graphs.

    Parameters
    ----------
    subset : {"factscore", "nq", "math"}
        Biographies, Natural Questions or MATH problems.
    graph : {"none", "chain"} or callable
        The claims stand alone, each builds on the one before it, or
        ``graph(claims, problem)`` gives pairs (parent, child), as in `skdcf.edges`.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to a problem with an unknown label.
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
    Mohri, Hashimoto, *Language Models with Conformal Factuality Guarantees*, 2024,
    arXiv:2402.10978.
    """
    check_choice("subset", subset, _SUBSETS)
    edges, rule = edge_rule(graph)
    name = f"conformal_factuality/{_SUBSETS[subset]}_subclaims_with_scores.jsonl"
    path = local_file(name, data_home, download_if_missing)
    data = from_conformal_factuality_json(
        path,
        edges=edges,
        on_invalid=on_invalid,
        name=f"conformal_factuality/{subset}",
    )
    descr = _DESCR.format(subset=subset, file=path.name, rule=rule)
    return make_bunch(data, descr, return_X_y)
