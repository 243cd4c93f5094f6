"""What all data sets share: question groups, lists of names, the Bunch."""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._checks import check_choice
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


def make_bunch(data, descr, return_X_y, **more):
    """What a ``fetch_*`` function returns, from what an adapter returned."""
    if return_X_y:
        return data.graphs, data.labels
    names = data.graphs.feature_names
    return Bunch(
        graphs=data.graphs,
        labels=data.labels,
        groups=question_groups(data.graphs.problems),
        feature_names=None if names is None else list(names),
        dropped=data.dropped,
        DESCR=descr,
        **more,
    )
