"""What all data sets share: question groups, lists of names, the Bunch."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._checks import check_choice
from ..adapters.collect import build_all, pack
from ..edges import chain_edges, no_edges


def question_groups(questions: Iterable[str]) -> NDArray[np.int64]:
    """A number per question, the same in every data set and every session.

    Problems with the same question must not be on both sides of a split. White space
    and case are ignored.

    Parameters
    ----------
    questions : iterable of str

    Returns
    -------
    ndarray of int64, shape (n_problems,)
        The first 63 bits of the SHA-256 of the cleaned question.

    Raises
    ------
    ValueError
        If a question is missing: whether it is one of the others is not known.

    Examples
    --------
    >>> from skdcf.datasets import question_groups
    >>> a, b, c = question_groups(["What is 2 + 2?", "what  is 2 + 2? ", "Why?"])
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    codes = [_code(i, question) for i, question in enumerate(questions)]
    return np.array(codes, dtype=np.int64)


def _code(i, question):
    if not isinstance(question, str):
        raise ValueError(f"question {i} is {question!r}: a str expected")
    text = " ".join(question.split()).casefold().encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def chosen(name, value, choices):
    """A name, "all", or a list of names as a list of distinct names."""
    if isinstance(value, str):
        value = list(choices) if value == "all" else [value]
    value = list(dict.fromkeys(value))
    if not value:
        raise ValueError(f"{name} is empty: some of {sorted(choices)} expected")
    for item in value:
        check_choice(name, item, choices)
    return value


def edge_rule(graph):
    """The function behind "none", "chain" or a callable, and its name."""
    if callable(graph):
        return graph, getattr(graph, "__name__", type(graph).__name__)
    check_choice("graph", graph, ("none", "chain"))
    return {"none": no_edges, "chain": chain_edges}[graph], graph


def json_lines(path):
    """The records of a file with one JSON object per line."""
    # Not by splitlines, which also splits at characters that JSON leaves unescaped.
    lines = path.read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def other_answers(
    groups: Iterable[Hashable], texts: Iterable[str], keys: Iterable[str]
) -> list[tuple[str, ...]]:
    """The other answers to each problem's question.

    Parameters
    ----------
    groups : iterable of hashable
        The question of each problem.
    texts : iterable of str
        The answer of each problem, as one text.
    keys : iterable of str
        Who gave the answer. Others come in the order of their keys, and in that of the
        problems where keys are equal.

    Returns
    -------
    list of tuple of str
        Per problem the texts of the other problems of its group.
    """
    rows = list(zip(groups, keys, texts, strict=True))
    members = defaultdict(list)
    for i in sorted(range(len(rows)), key=lambda i: rows[i][1]):
        members[rows[i][0]].append(i)
    return [
        tuple(rows[j][2] for j in members[group] if j != i)
        for i, (group, _, _) in enumerate(rows)
    ]


def load(
    records, build, describe, descr, on_invalid, return_X_y, *, question, answer=None
):
    """What a ``fetch_*`` function returns, from the records of its files.

    Parameters
    ----------
    records : dict from id to record
    build : callable
        ``build(record, id)`` gives (ReasoningGraph, labels), see `build_all`.
    describe : callable
        ``describe(record)`` gives the metadata of a problem.
    descr : str
    on_invalid, return_X_y
        As the functions have them.
    question : callable
        ``question(record)`` is the text by which problems are grouped.
    answer : callable, optional
        ``answer(record)`` gives (question, model, text) where questions have several
        answers. Broken records are no problems, but answers they are.
    """
    if answer is not None and records:
        asked, models, texts = zip(*map(answer, records.values()), strict=True)
        others = other_answers(asked, texts, models)
        build = _with_alternatives(build, dict(zip(records, others, strict=True)))
    data = pack(*build_all(records.items(), build, on_invalid))
    kept = [records[name] for name in data.graphs.ids]
    return make_bunch(
        data,
        descr,
        return_X_y,
        groups=question_groups(map(question, kept)),
        metadata=list(map(describe, kept)),
    )


def _with_alternatives(build, others):
    """A ``build`` whose graphs know the other answers to their question."""

    def build_with(record, name):
        graph, labels = build(record, name)
        return graph.replace(alternatives=others[name]), labels

    return build_with


def make_bunch(data, descr, return_X_y, *, groups=None, **more):
    """What a ``fetch_*`` function returns, from what an adapter returned."""
    if more.get("metadata") is not None:
        data.graphs = data.graphs.replace_metadata(more["metadata"])
    if return_X_y:
        return data.graphs, data.labels
    names = data.graphs.feature_names
    return Bunch(
        graphs=data.graphs,
        labels=data.labels,
        groups=question_groups(data.graphs.problems) if groups is None else groups,
        feature_names=None if names is None else list(names),
        dropped=data.dropped,
        DESCR=descr,
        **more,
    )
