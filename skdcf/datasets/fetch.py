"""Load published data sets from files in the data directory, or download the files.

The package does not contain the files, because most sources do not state a licence. The files are
downloaded on request from the authors' repositories. ``sources.json`` lists the sources. Each
folder of the data directory mirrors an address that is pinned to a commit. A checksum is the
SHA-256 of the file, or the SHA-1 of the git blob (40 digits) if the SHA-256 is unknown. The folder
``descr`` contains the user-facing descriptions of the data sets.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from .._checks import check_choice, is_integer
from ..edges import chain_edges, no_edges
from ..graphs import ReasoningGraph
from ..identity import text_code
from .records import build_dataset, spread


class Source(NamedTuple):
    """The address and the checksum of a published file."""

    url: str
    checksum: str


def read_sources(table: Any) -> dict[str, Source]:
    """Return the source of each file in a JSON table, keyed by its path in the data directory."""
    return {
        f"{folder}/{Path(name).name}": Source(f"{place['url']}/{name}", checksum)
        for folder, place in json.loads(table.read_text("utf-8")).items()
        for name, checksum in place["files"].items()
    }


SOURCES = read_sources(files(__package__).joinpath("sources.json"))


class Options(TypedDict, total=False):
    """Options that every ``fetch_*`` function accepts in addition to its own parameters."""

    data_home: str | PathLike[str] | None
    download_if_missing: bool
    n_retries: int
    delay: float
    on_invalid: Literal["raise", "drop"]
    return_X_y: bool
    return_groups: bool


_DEFAULTS: dict[Any, Any] = {"download_if_missing": True, "n_retries": 3, "delay": 1.0}
_DEFAULTS |= {"on_invalid": "raise", "return_X_y": False, "return_groups": False}

#: Decorator that adds the fields of `Options` to the parameters of a function.
fetcher = partial(spread, Options, **_DEFAULTS)
#: Type annotations for one or more names, and for an edge rule.
Names = str | Sequence[str]
Rule = str | Callable

_VERSIONS = {
    "gpt": "MATH_annotations.json",
    "llama": "MATH_open_subclaims_with_scores.json",
    "llama-uncorrected": "misc/MATH_open_subclaims_with_scores.json",
    "llama-unscored": "MATH_open_annotations.json",
}
#: Scores of claims, with higher values for more confidence.
SCORES = ("frequency-score", "gpt-score")
#: Values that the authors interpret as true and false. All other values are typing errors by
#: annotators.
_VERDICTS = {
    "annotation": {"Y": 1, "S": 1, "N": 0, "U": 0},
    "manual_annotation": {"1.0": 1, "1": 1, "0.0": 0, "0": 0},
}
_DOMAINS = ("math", "reasoning", "science", "wk")
_SUBJECTS = ("math", "biology", "chemistry", "medicine", "physics")
_STEP = re.compile(r"\s*(?:Step\s+(\d+)|Solution\s*:)")


def get_data_home(data_home: str | PathLike[str] | None = None) -> Path:
    """Return the directory for downloaded data sets.

    Parameters
    ----------
    data_home : str or path-like, optional
        Data directory. The default is the environment variable ``SKDCF_DATA``, or
        ``~/.cache/skdcf`` if the variable is not set.

    Returns
    -------
    data_home : pathlib.Path
        The directory, which may not exist yet.

    Examples
    --------
    >>> from skdcf.datasets.fetch import get_data_home
    >>> get_data_home("some/where").name
    'where'
    """
    if data_home is None:
        data_home = os.environ.get("SKDCF_DATA") or Path.home() / ".cache" / "skdcf"
    return Path(data_home).expanduser()


def local_file(
    name: str,
    data_home: Any = None,
    download_if_missing: Any = True,
    n_retries: Any = 3,
    delay: Any = 1.0,
    sources: Any = None,
    **_: Any,
) -> Any:
    """Return the path of a file in ``sources``, after verifying or downloading the file.

    By default, ``sources`` is `SOURCES`.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or if downloads are disabled.
    """
    source = (sources or SOURCES)[name]
    path = get_data_home(data_home) / name
    checksum = checksum_of(path, source) if path.is_file() else "missing"
    if checksum == source.checksum:
        return path
    if not download_if_missing:
        state = (
            "is missing" if checksum == "missing" else f"has the checksum {checksum}"
        )
        raise FileNotFoundError(
            f"{path} must have the checksum {source.checksum}, but it {state}. Set "
            f"download_if_missing=True to download the file, or save {source.url} at this "
            "path"
        )
    _download(source, path, n_retries, delay)
    return path


def checksum_of(path: Any, source: Any) -> str:
    """Return the checksum of a file, with the hash function of the published checksum."""
    content = Path(path).read_bytes()
    if len(source.checksum) == 64:
        return hashlib.sha256(content).hexdigest()
    # The published checksum is a git blob hash, which also covers a header.
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _download(source, path, n_retries, delay):
    """Download a file, verify its checksum, and move it to its final path."""
    from sklearn.datasets import fetch_file

    sha256 = source.checksum if len(source.checksum) == 64 else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a checksum, `fetch_file` would keep an existing file.
        if sha256 is None:
            path.unlink(missing_ok=True)
        fetch_file(
            source.url,
            folder=path.parent,
            local_filename=path.name,
            sha256=sha256,
            n_retries=n_retries,
            delay=delay,
        )
        if checksum_of(path, source) != source.checksum:
            path.unlink()
            raise OSError(
                f"the checksum of the downloaded file must be {source.checksum}, but it is "
                "different"
            )
    except PermissionError as error:
        raise PermissionError(
            f"{path} is missing, and its directory is not writable. Set data_home or "
            "SKDCF_DATA to another directory, or ask an administrator to save the file "
            "there"
        ) from error
    except OSError as error:
        raise OSError(
            f"{source.url} could not be downloaded ({error}). Check the connection, or save the "
            f"file as {path}"
        ) from error


def read(name: str, options: Any) -> Any:
    """Return the content of a published JSON file, or the list of objects in a JSON Lines file."""
    path = local_file(name, **options)
    if path.suffix != ".jsonl":
        return json.loads(path.read_text("utf-8"))
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


def rows(pattern: Any, id: Any, options: Any, **choices: Any) -> Any:
    """Yield the id and the content of each record in several files.

    The strings ``pattern`` and ``id`` are formatted with every combination of the ``choices``,
    and the chosen values are also added to the records. The string ``id`` may also refer to the
    number of the record, ``i``, and to the fields of the record. ``pattern`` may also be a
    function that returns the file name for a combination of the choices. A file contains a list
    of records, a list under the key ``data``, or several named lists. If a file contains several
    named lists, the name of the list is added to each record as ``key``.
    """
    for values in product(*choices.values()):
        of = dict(zip(choices, values, strict=True))
        name = pattern(**of) if callable(pattern) else pattern.format(**of)
        content = read(name, options)
        if isinstance(content, dict):
            content = content.get("data") or [
                record | {"key": key, "k": k}
                for key, records in content.items()
                for k, record in enumerate(records)
            ]
        for i, record in enumerate(content):
            record = record | of
            yield id.format(**record | {"i": i}), record


def chosen(**asked: Any) -> Any:
    """Return the distinct names that the caller selected.

    Each keyword argument is a pair of a value (a name, "all", or a list of names) and the valid
    names.
    """
    out = {}
    for name, (value, choices) in asked.items():
        if isinstance(value, str):
            value = list(choices) if value == "all" else [value]
        out[name] = list(dict.fromkeys(value))
        if not out[name]:
            raise ValueError(
                f"{name} must not be empty. Choose at least one of {sorted(choices)}"
            )
        for item in out[name]:
            check_choice(name, item, choices)
    return out


def edge_rule(graph: str | Callable[..., Any]) -> Any:
    """Return the edge rule and its name, given "none", "chain" or a callable."""
    if callable(graph):
        return graph, getattr(graph, "__name__", type(graph).__name__)
    check_choice("graph", graph, ("none", "chain"))
    return {"none": no_edges, "chain": chain_edges}[graph], graph


def load(
    name: str,
    records: Any,
    parse: Any,
    options: Any,
    *,
    graph: Any = "none",
    answer: Any = None,
    folder: Any = None,
    **words: Any,
) -> Any:
    """Return the result of a ``fetch_*`` function, given the records of its files.

    Parameters
    ----------
    name : str
        Name of the data set and of its description file. The description is formatted with
        ``words``. Lists in ``words`` are joined by commas.
    records : dict from id to record, or pairs of them
        The records of the files, keyed by id.
    parse : callable
        A function ``parse(record)`` as in `build_dataset`. The value of the key ``group`` may be
        any string. By default, the group of a problem is its question.
    options : dict
        Values of `Options`.
    graph : str or callable
        Rule that creates the edges, as in the ``fetch_*`` functions. The edge rule is used if
        ``parse`` returns no edges.
    answer : sequence of str, optional
        For data sets with several answers per question, the names of the fields that contain the
        question, the model and the answer (a string or a list of steps). The answers in invalid
        records are still used as alternatives.
    folder : path, optional
        Folder of the description files. The default is the folder ``descr`` of this package.
    """
    check_choice("on_invalid", options["on_invalid"], ("raise", "drop"))
    rule, words["rule"] = edge_rule(graph)
    words = {k: ", ".join(w) if isinstance(w, list) else w for k, w in words.items()}
    records = dict(records)
    other_texts = [None] * len(records)
    if answer is not None and records:
        picked = (_pick(record, answer) for record in records.values())
        other_texts = other_answers(*zip(*picked, strict=True))

    def line(pair):
        record, alternatives = pair
        out = {"alternatives": alternatives} | parse(record)
        out["group"] = text_code(out.get("group", out.get("problem")))
        if "edges" not in out:
            out["edges"] = list(map(list, rule(out["claims"], out.get("problem"))))
        return out

    return build_dataset(
        zip(records, zip(records.values(), other_texts, strict=True), strict=True),
        line,
        descr=describe(name, folder).format(**words),
        **{key: options[key] for key in ("on_invalid", "return_X_y", "return_groups")},
    )


def _pick(record, fields):
    *question, key, text = (record[field] for field in fields)
    return tuple(question), key, "\n".join(text) if isinstance(text, list) else text


def read_words(name: str, said: Any, words: Any, place: Any = "claim {}") -> Any:
    """Convert the words in a file to labels, or raise ValueError if a word is unknown."""
    for v, word in enumerate(said):
        check_choice(f"{place.format(v)}: {name}", word, words)
    return [words[word] for word in said]


def describe(name: str, folder: Any = None) -> str:
    """Return the user-facing description of a data set."""
    folder = folder or files(__package__).joinpath("descr")
    return folder.joinpath(f"{name}.txt").read_text("utf-8")


def other_answers(groups: Any, keys: Any, texts: Any) -> Any:
    """Return the alternative answers for each problem.

    Parameters
    ----------
    groups : iterable of hashable
        The question of each problem.
    keys : iterable of str
        The model that wrote each answer. The alternative answers are sorted by model. Answers by
        the same model are in the order of the problems.
    texts : iterable of str
        The answer to each problem, as one string.

    Returns
    -------
    answers : list of list of str
        For each problem, the answers of the other problems in the same group.
    """
    rows = list(zip(groups, keys, texts, strict=True))
    members = defaultdict(dict)
    for i in sorted(range(len(rows)), key=lambda i: rows[i][1]):
        members[rows[i][0]][i] = rows[i][2]
    each = enumerate(groups)
    return [[t for j, t in members[g].items() if j != i] for i, g in each]


def labels_from_first_error(n_claims: int, first_error: int | None) -> NDArray[Any]:
    """Return the labels of an answer in which only the position of the first error is known.

    If the claims form a chain, the labels up to the first error are sufficient for calibration.
    In a chain, every later claim is a descendant of the first error, so the nonconformity score
    does not depend on later labels.

    Parameters
    ----------
    n_claims : int
        Number of claims in the answer.
    first_error : int or None
        Index of the first false claim, starting at 0. Use -1 or None for an answer without a
        false claim.

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
    >>> labels_from_first_error(4, 1), labels_from_first_error(2, None)
    (array([ 1,  0, -1, -1]), array([1, 1]))
    """
    if first_error is None:
        return np.ones(n_claims, dtype=np.int64)
    if not (is_integer(first_error) and -1 <= first_error < n_claims):
        raise ValueError(
            f"first_error must be the position of one of the {n_claims} claims, "
            f"starting at 0, or -1 if there is no error, got {first_error!r}"
        )
    first = n_claims if first_error == -1 else int(first_error)
    return np.sign(first - np.arange(n_claims, dtype=np.int64))


@fetcher()
def fetch_coherent_math(
    version: str = "gpt",
    *,
    graph: str = "dep_graph",
    label: str = "manual_annotation",
    **options: Unpack[Options],
) -> Any:
    """Load 50 answers to MATH problems, with claims, graphs, scores and labels.

    Parameters
    ----------
    version : {"gpt", "llama", "llama-uncorrected", "llama-unscored"}
        Version of the data file, named after the language model that wrote the answers. ``DESCR``
        describes the versions.
    graph : {"dep_graph", "gold_graph"}
        Graph source. With "dep_graph", the graphs were created by a language model. With
        "gold_graph", the graphs were created by hand. Manual graphs exist only for the first ten
        problems, so use ``on_invalid="drop"``.
    label : {"manual_annotation", "annotation"}
        Label meaning. "manual_annotation" states whether a claim is correct as a step in the
        answer. "annotation" states whether a claim is true on its own (version "gpt" only).
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error for a problem with a cyclic graph or an unknown label, or to
        drop the problem.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts), ``labels`` (list of 0/1 int
        arrays), ``groups`` (question index of each problem), ``feature_names``, ``dropped`` (list
        of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, or if a problem is invalid and ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Rubin-Toles, Gambhir, Ramji, Roth, Goel, *Conformal Language Model Reasoning with
    Coherent Factuality*, ICLR 2025.
    """
    check_choice("version", version, _VERSIONS)
    check_choice("graph", graph, ("dep_graph", "gold_graph"))
    check_choice("label", label, _VERDICTS)
    scores = () if version == "llama-unscored" else SCORES
    file = f"coherent_factuality/{_VERSIONS[version]}"
    records = rows(file, f"coherent_math/{version}/{{i}}", options)
    parse = partial(parse_scored, scores=scores, label=label, graph=graph)
    words = {"matrix": graph, "version": version, "label": label}
    return load("coherent_math", records, parse, options, file=Path(file).name, **words)


def parse_scored(record, scores, label, graph=None):
    """Convert a record with scored claims to the format of `build_dataset`."""
    claims = record["claims"]
    texts = [claim["subclaim"] for claim in claims]
    # In one of the files, a "Y" is followed by hundreds of spaces.
    words = [str(claim[label]).strip() for claim in claims]
    labels = read_words(label, words, _VERDICTS[label])
    out = {"problem": record["prompt"], "claims": texts, "labels": labels}
    if (
        graph is not None
    ):  # Each row represents a child, and each column represents a parent.
        graph_of_claims = ReasoningGraph.from_adjacency(record[graph], claims=texts)
        out["edges"] = graph_of_claims.edges
    if scores:
        out["features"] = [[float(claim[name]) for name in scores] for claim in claims]
        out["feature_names"] = list(scores)
    return out


@fetcher()
def fetch_felm(
    domains: Names = _DOMAINS, *, graph: Rule = "chain", **options: Unpack[Options]
) -> Any:
    """Load FELM, a data set of answers from five domains, divided into labelled segments.

    Parameters
    ----------
    domains : {"math", "reasoning", "science", "wk", "writing_rec", "all"} or list
        Question domains. The default excludes "writing_rec", which is not used in studies of
        reasoning.
    graph : {"chain", "none"} or callable
        Rule that creates the edges. The published data do not contain graphs. With "chain", each
        segment is assumed to depend on the previous segment. With "none", the segments are
        assumed to be independent. A callable ``graph(claims, problem)`` must return pairs
        (parent, child), like the functions of `skdcf.edges`.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error if the numbers of labels and segments of a problem differ, or to
        drop the problem.
    {return_options}

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and without features),
        ``labels`` (list of 0/1 int arrays), ``groups`` (prompt index of each problem), ``metadata``
        (list of dict), ``feature_names`` (None), ``dropped`` (list of (id, reason)), and ``DESCR``.

    Raises
    ------
    ValueError
        If a name is unknown, or if a problem is invalid and ``on_invalid="raise"``.
    OSError
        If the file is missing and cannot be downloaded.

    References
    ----------
    Chen et al., *FELM: Benchmarking Factuality Evaluation of Large Language Models*,
    NeurIPS 2023 Datasets and Benchmarks, arXiv:2310.00741.
    """
    of = chosen(domains=(domains, (*_DOMAINS, "writing_rec")))
    records = rows("felm/all.jsonl", "felm/{domain}/{index}", options)
    records = (row for row in records if row[1]["domain"] in of["domains"])
    return load("felm", records, _parse_felm, options, graph=graph, **of)


def _parse_felm(record):
    return {
        "problem": record["prompt"],
        "claims": record["segmented_response"],
        "labels": record["labels"],
        "metadata": {"domain": record["domain"]},
    }


@fetcher()
def fetch_process_bench(
    subset: Names = "all", *, graph: Rule = "chain", **options: Unpack[Options]
) -> Any:
    """Load ProcessBench, a data set of solutions to math problems with labelled first errors.

    Parameters
    ----------
    subset : {"gsm8k", "math", "all"} or list of them
        Question sources.
    graph : {"chain", "none"} or callable
        Rule that creates the edges, with the same options as in `fetch_felm`. The published data
        do not contain graphs.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error if the position of the first error is not that of a step, or to
        drop the answer.
    {return_options}

    Returns
    -------
    dataset : Bunch
        The data set, with the same attributes as in `fetch_mr_ben`.

    Raises
    ------
    ValueError
        If a name is unknown, or if an answer is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zheng et al., *ProcessBench: Identifying Process Errors in Mathematical Reasoning*,
    2024, arXiv:2412.06559.
    """
    of = chosen(subset=(subset, ("gsm8k", "math")))
    file = "process_bench/{subset}.json"
    records = rows(file, "process_bench/{subset}/{i}", options, **of)
    words = {"graph": graph, "answer": ("problem", "generator", "steps")}
    return load("process_bench", records, _parse_process, options, **words, **of)


def _parse_process(record):
    return {
        "problem": record["problem"],
        "claims": record["steps"],
        "labels": labels_from_first_error(len(record["steps"]), record["label"]),
        "metadata": {"model": record["generator"], "subset": record["subset"]},
    }


@fetcher(on_invalid="drop")
def fetch_mr_ben(
    subjects: Names = _SUBJECTS, *, graph: Rule = "chain", **options: Unpack[Options]
) -> Any:
    """Load Mr-Ben, a data set of answers to exam questions with labelled first errors.

    Parameters
    ----------
    subjects : "all", str or list of str
        Question subjects, selected from "math", "biology", "chemistry", "medicine", "physics" and
        "logic".
    graph : {"chain", "none"} or callable
        Rule that creates the edges, with the same options as in `fetch_felm`. The published data
        do not contain graphs. If the steps are not a chain, the unknown labels after the first
        error are treated as false.
    {download_options}
    on_invalid : {"raise", "drop"}
        Whether to raise an error if the position of the first error is not that of a step, or to
        drop the answer.
    {return_options}

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
        If a name is unknown, or if an answer is invalid and ``on_invalid="raise"``.
    OSError
        If a file is missing and cannot be downloaded.

    References
    ----------
    Zeng et al., *MR-Ben: A Meta-Reasoning Benchmark for Evaluating System-2 Thinking in
    LLMs*, NeurIPS 2024, arXiv:2406.13975.
    """
    of = chosen(subjects=(subjects, (*_SUBJECTS, "logic")))
    records = rows(
        "mr_ben/{subjects}.json", "mr_ben/{subjects}/{key}/{k}", options, **of
    )
    answer = ("Question_UUID", "Sampled_Model", "Model_Solution_Steps")
    words = {"graph": graph, "answer": answer}
    return load("mr_ben", records, _parse_mr_ben, options, **words, **of)


def _parse_mr_ben(record):
    numbers = []
    claims = []
    for line in filter(str.strip, record["Model_Solution_Steps"]):
        begins = _STEP.match(line)
        if begins or not claims:
            numbers.append(begins and begins[1])
            claims.append(line)
        else:
            claims[-1] += "\n" + line
    first = record["Model_Solution_First_Error_Step"]
    if first != "N/A" and first not in numbers:
        raise ValueError(
            f"the first error must be one of the steps {numbers}, got {first}"
        )
    error = None if first == "N/A" else numbers.index(first)
    return {
        "problem": f"{record['Question']}\n{record['Options']}",
        "claims": claims,
        "labels": labels_from_first_error(len(claims), error),
        "group": record["Question"],
        "metadata": {
            "model": record["Sampled_Model"],
            "subject": record["subjects"],
            "topic": record["Subject"],
        },
    }
