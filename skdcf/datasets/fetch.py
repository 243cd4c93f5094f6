"""Load published data sets from files in the data directory, or download the files.

The package does not contain the files, because most sources do not state a licence. The files are
downloaded on request from the authors' repositories. ``sources.json`` lists the sources. Each
folder of the data directory mirrors an address that is pinned to a commit, and the SHA-256 of each
file is verified. The folder ``descr`` contains the user-facing descriptions of the data sets.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._checks import check_choice, is_integer
from ..edges import chain_edges
from ..identity import text_code
from .records import build_dataset

#: Address and SHA-256 of each file, keyed by its path in the data directory.
_HERE = files(__package__)
SOURCES = json.loads(_HERE.joinpath("sources.json").read_text("utf-8"))


def read_published(name, data_home=None, sources=SOURCES):
    """Return the object in a published file, or the list of objects in a JSON Lines file.

    The file is verified, or downloaded if it is missing.

    Raises
    ------
    OSError
        If the file is missing or has another checksum, and cannot be downloaded.
    """
    from sklearn.datasets import fetch_file

    url, sha256 = sources[name]
    home = data_home or os.environ.get("SKDCF_DATA") or Path.home() / ".cache" / "skdcf"
    path = Path(home).expanduser() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fetch_file(url, folder=path.parent, local_filename=path.name, sha256=sha256)
    except OSError as error:
        raise OSError(
            f"{url} could not be downloaded ({error}). Check the connection, or save the file as "
            f"{path}"
        ) from error
    text = path.read_text("utf-8")
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line]


def chosen(name, value, choices):
    """Return the distinct names that the caller selected: a name, "all", or a list of names."""
    if isinstance(value, str):
        value = choices if value == "all" else [value]
    if not len(value):
        raise ValueError(f"{name} must contain at least one of {sorted(choices)}")
    for item in value:
        check_choice(name, item, choices)
    return list(dict.fromkeys(value))


def load(name, records, parse, folder=_HERE / "descr"):
    """Return the data set of a ``fetch_*`` function. Invalid records are listed as dropped.

    By default, the group of a problem is its question, and the edges are a chain.
    """

    def line(record):
        row = parse(record)
        row["group"] = text_code(row["group"] if "group" in row else row["problem"])
        return {"edges": chain_edges(row["claims"])} | row

    data = build_dataset(records, line, on_invalid="drop")
    data.DESCR = folder.joinpath(f"{name}.txt").read_text("utf-8")
    return data


def add_alternatives(records, question, model, answer):
    """Add the other answers to its question to each record, sorted by their models.

    The arguments ``question``, ``model`` and ``answer`` name fields of the records. An answer is a
    string or a list of steps.
    """
    members = defaultdict(list)
    for record in sorted(records.values(), key=lambda record: record[model]):
        members[record[question]].append(record)
    for record in records.values():
        texts = [x[answer] for x in members[record[question]] if x is not record]
        record["alternatives"] = [
            text if isinstance(text, str) else "\n".join(text) for text in texts
        ]


def labels_from_first_error(n_claims: int, first_error: int) -> NDArray[Any]:
    """Return the labels of an answer in which only the position of the first error is known.

    If the claims form a chain, the labels up to the first error are sufficient for calibration.
    In a chain, every later claim is a descendant of the first error, so the nonconformity score
    does not depend on later labels.

    Parameters
    ----------
    n_claims : int
        Number of claims in the answer.
    first_error : int
        Index of the first false claim, starting at 0. Use -1 for an answer without a false claim.

    Returns
    -------
    labels : ndarray of int64 of shape (n_claims,)
        The labels, which are 1 before the first error, 0 at the error, and -1 (unknown) after it.

    Raises
    ------
    ValueError
        If ``first_error`` is not the position of a claim.

    Examples
    --------
    >>> from skdcf.datasets import labels_from_first_error
    >>> labels_from_first_error(4, 1), labels_from_first_error(2, -1)
    (array([ 1,  0, -1, -1]), array([1, 1]))
    """
    if not (is_integer(first_error) and -1 <= first_error < n_claims):
        raise ValueError(
            f"first_error must be the position of one of the {n_claims} claims, "
            f"starting at 0, or -1 if there is no error, got {first_error!r}"
        )
    first = n_claims if first_error == -1 else first_error
    return np.sign(first - np.arange(n_claims))


def fetch_coherent_math(
    version: str = "gpt", *, data_home: str | PathLike[str] | None = None
) -> Bunch:
    """Load 50 answers to MATH problems, with claims, graphs, scores and labels.

    Parameters
    ----------
    version : {"gpt", "llama"}
        The language model that wrote the answers.
    data_home : path-like, optional
        Folder for downloaded files. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts), ``labels`` (list of 0/1 int
        arrays), ``groups`` (question index of each problem), ``feature_names``, ``dropped`` (list
        of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Rubin-Toles, Gambhir, Ramji, Roth, Goel, *Conformal Language Model Reasoning with
    Coherent Factuality*, ICLR 2025.
    """
    check_choice("version", version, ("gpt", "llama"))
    stem = "MATH_annotations" if version == "gpt" else "MATH_open_subclaims_with_scores"
    records = read_published(f"coherent_factuality/{stem}.json", data_home)["data"]
    named = {f"coherent_math/{version}/{i}": record for i, record in enumerate(records)}
    return load("coherent_math", named, _parse_coherent)


def _parse_coherent(record):
    row = parse_scored(
        record, "manual_annotation", {"1.0": 1, "1": 1, "0.0": 0, "0": 0}
    )
    # Each row represents a child, and each column represents a parent.
    return row | {"edges": np.argwhere(record["dep_graph"])[:, ::-1].tolist()}


def parse_scored(record, label, verdicts):
    """Convert a record with scored claims to the format of `build_dataset`."""
    claims = record["claims"]
    scores = ["frequency-score", "gpt-score"]
    return {
        "problem": record["prompt"],
        "claims": [claim["subclaim"] for claim in claims],
        # In one of the files, a "Y" is followed by hundreds of spaces.
        "labels": [verdicts[str(claim[label]).strip()] for claim in claims],
        "features": [[float(claim[name]) for name in scores] for claim in claims],
        "feature_names": scores,
    }


def fetch_felm(
    domains: str | Sequence[str] = ("math", "reasoning", "science", "wk"),
    *,
    data_home: str | PathLike[str] | None = None,
) -> Bunch:
    """Load FELM, a data set of answers from five domains, divided into labelled segments.

    Parameters
    ----------
    domains : {"math", "reasoning", "science", "wk", "writing_rec", "all"} or list
        Question domains. The default excludes "writing_rec", which is not used in studies of
        reasoning.
    data_home : path-like, optional
        Folder for downloaded files. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and without features),
        ``labels`` (list of 0/1 int arrays), ``groups`` (prompt index of each problem), ``metadata``
        (list of dict), ``feature_names`` (None), ``dropped`` (list of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Chen et al., *FELM: Benchmarking Factuality Evaluation of Large Language Models*,
    NeurIPS 2023 Datasets and Benchmarks, arXiv:2310.00741.
    """
    names = chosen(
        "domains", domains, ("math", "reasoning", "science", "wk", "writing_rec")
    )
    records = {
        f"felm/{record['domain']}/{record['index']}": record
        for record in read_published("felm/all.jsonl", data_home)
        if record["domain"] in names
    }
    return load("felm", records, _parse_felm)


def _parse_felm(record):
    return {
        "problem": record["prompt"],
        "claims": record["segmented_response"],
        "labels": record["labels"],
        "metadata": {"domain": record["domain"]},
    }


def fetch_process_bench(
    subset: str | Sequence[str] = "all", *, data_home: str | PathLike[str] | None = None
) -> Bunch:
    """Load ProcessBench, a data set of solutions to math problems with labelled first errors.

    Parameters
    ----------
    subset : {"gsm8k", "math", "all"} or list of them
        Question sources.
    data_home : path-like, optional
        Folder for downloaded files. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``.

    Returns
    -------
    dataset : Bunch
        The data set, with the same attributes as in `fetch_mr_ben`.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zheng et al., *ProcessBench: Identifying Process Errors in Mathematical Reasoning*,
    2024, arXiv:2412.06559.
    """
    records = {
        f"process_bench/{name}/{i}": record | {"subset": name}
        for name in chosen("subset", subset, ("gsm8k", "math"))
        for i, record in enumerate(
            read_published(f"process_bench/{name}.json", data_home)
        )
    }
    add_alternatives(records, "problem", "generator", "steps")
    return load("process_bench", records, _parse_process)


def _parse_process(record):
    return {
        "problem": record["problem"],
        "claims": record["steps"],
        "alternatives": record["alternatives"],
        "labels": labels_from_first_error(len(record["steps"]), record["label"]),
        "metadata": {"model": record["generator"], "subset": record["subset"]},
    }


def fetch_mr_ben(
    subjects: str | Sequence[str] = "all",
    *,
    data_home: str | PathLike[str] | None = None,
) -> Bunch:
    """Load Mr-Ben, a data set of answers to exam questions with labelled first errors.

    Parameters
    ----------
    subjects : "all", str or list of str
        Question subjects, selected from "math", "biology", "chemistry", "medicine" and
        "physics".
    data_home : path-like, optional
        Folder for downloaded files. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf``.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and the other models' answers
        as alternatives, without features), ``labels`` (list of int arrays: 1 true, 0 false, -1
        unknown), ``groups`` (question index of each problem), ``metadata`` (list of dict),
        ``feature_names`` (None), ``dropped`` (list of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zeng et al., *MR-Ben: A Meta-Reasoning Benchmark for Evaluating System-2 Thinking in
    LLMs*, NeurIPS 2024, arXiv:2406.13975.
    """
    known = ("math", "biology", "chemistry", "medicine", "physics")
    records = {
        f"mr_ben/{subject}/{question}/{k}": record | {"subject": subject}
        for subject in chosen("subjects", subjects, known)
        for question, answers in read_published(
            f"mr_ben/{subject}.json", data_home
        ).items()
        for k, record in enumerate(answers)
    }
    add_alternatives(records, "Question_UUID", "Sampled_Model", "Model_Solution_Steps")
    return load("mr_ben", records, _parse_mr_ben)


def _parse_mr_ben(record):
    numbers = []
    claims = []
    for line in filter(str.strip, record["Model_Solution_Steps"]):
        begins = re.match(r"\s*(?:Step\s+(\d+)|Solution\s*:)", line)
        if begins or not claims:
            numbers.append(begins and begins[1])
            claims.append(line)
        else:
            claims[-1] += "\n" + line
    first = record["Model_Solution_First_Error_Step"]
    if first not in ("N/A", *numbers):
        raise ValueError(
            f"the first error must be one of the steps {numbers}, got {first}"
        )
    error = -1 if first == "N/A" else numbers.index(first)
    return {
        "problem": f"{record['Question']}\n{record['Options']}",
        "claims": claims,
        "alternatives": record["alternatives"],
        "labels": labels_from_first_error(len(claims), error),
        "group": record["Question"],
        "metadata": {
            "model": record["Sampled_Model"],
            "subject": record["subject"],
            "topic": record["Subject"],
        },
    }
