"""RefChecker: answers of seven models, judged triplet by triplet."""

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from .._checks import check_choice
from ..graphs import ReasoningGraph
from ._common import chosen, load
from ._files import local_file

#: What files of a context begin with: where its questions come from.
_CONTEXTS = {
    "accurate_context": "dolly",
    "noisy_context": "msmarco",
    "zero_context": "nq",
}
_MODELS = (
    "alpaca_7B",
    "chatgpt",
    "claude2",
    "davinci001",
    "falcon_40B_instruct",
    "gpt4",
    "llama2_70b_chat",
)
_LABELS = {"Entailment": 1, "Neutral": -1, "Contradiction": 0}

_DESCR = """RefChecker (Hu et al., 2024), human annotations

Answers of seven models, cut by Claude 2 into triplets (subject, relation, object) that
people compared with a reference. Contexts read: {contexts}.

graphs   the words of a triplet as one claim. The files do not hold the questions:
         `problem` is None. No scores are published: `features` is None. No dependency
         graphs either: claims stand alone. Answers without a triplet have no claims.
labels   1 entailed by the reference, 0 contradicted, -1 where the reference is neutral,
         which says nothing about the claim: unknown, not false.
groups   same context and id, same number: seven models answered each question.
metadata "model", "context", "question" (the id of the file).
alternatives  answers of the other models to the question, in the order of their names.

Source: https://github.com/amazon-science/RefChecker (data: CC-BY-4.0), arXiv:2405.14486.
"""


def fetch_refchecker(
    context: str | Sequence[str] = "all",
    *,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
) -> Any:
    """Load RefChecker: answers of seven models, with triplets judged by people.

    Parameters
    ----------
    context : {"accurate_context", "noisy_context", "zero_context", "all"} or list
        What the models were given beside the question.
    data_home : path-like, optional
        See `get_data_home`.
    download_if_missing : bool
        Otherwise a missing file is an OSError.
    on_invalid : {"raise", "drop"}
        What happens to an answer with an unknown label.
    return_X_y : bool
        Return ``(graphs, labels)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As from `fetch_mr_ben`; graphs have neither problems nor edges.

    Raises
    ------
    ValueError
        On an unknown name, or a broken answer with ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Hu et al., *RefChecker: Reference-based Fine-grained Hallucination Checker and
    Benchmark for Large Language Models*, 2024, arXiv:2405.14486.
    """
    contexts = chosen("context", context, _CONTEXTS)
    records = {}
    for place in contexts:
        for model in _MODELS:
            name = f"refchecker/{place}/{_CONTEXTS[place]}_{model}_answers.json"
            path = local_file(name, data_home, download_if_missing)
            for i, record in enumerate(json.loads(path.read_text("utf-8"))):
                more = {"model": model, "context": place}
                records[f"refchecker/{place}/{model}/{i}"] = record | more
    return load(
        records,
        _parse,
        lambda r: {
            "model": r["model"],
            "context": r["context"],
            "question": r["id"],
        },
        _DESCR.format(contexts=", ".join(contexts)),
        on_invalid,
        return_X_y,
        question=lambda record: f"{record['context']}/{record['id']}",
        answer=lambda r: ((r["context"], r["id"]), r["model"], r["response"]),
    )


def _parse(record, name):
    triplets = record["claude2_response_kg"]
    claims = [" ".join(entry["triplet"]) for entry in triplets]
    for v, entry in enumerate(triplets):
        check_choice(f"claim {v}: human_label", entry["human_label"], _LABELS)
    labels = [_LABELS[entry["human_label"]] for entry in triplets]
    graph = ReasoningGraph(None, (), claims=claims, id=name)
    return graph, np.array(labels, dtype=np.int64)
