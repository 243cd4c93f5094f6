"""Tables with one row per claim, of any data-frame library that narwhals knows."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..edges import no_edges
from ..graphs import GraphBatch, ReasoningGraph, as_batch
from ._cells import known_texts, parent_edges, read_texts, row_order, values_of
from .collect import (
    EdgeRule,
    Labels,
    Missing,
    fill_missing,
    label_array,
    label_arrays,
    may_be_feature,
    narwhals,
    per_problem,
)

# Names of the columns that are looked for unless the caller names others.
_RESERVED = ("problem", "claim", "text", "question", "alternatives", "parents", "label")


def to_frame(
    graphs: GraphBatch | Sequence[ReasoningGraph],
    labels: Labels | None = None,
    *,
    backend: str = "pandas",
) -> Any:
    """Problems as a table with one row per claim.

    Parameters
    ----------
    graphs : GraphBatch or sequence of ReasoningGraph
        A problem without claims leaves no row.
    labels : sequence of arrays, one per problem, optional
        1 true, 0 false, -1 unknown; for a GraphBatch also one flat array.
    backend : str
        "pandas", "polars", or another one that narwhals can build.

    Returns
    -------
    data frame
        Columns ``problem`` (its id, or its number), ``claim`` (position), ``text`` and
        ``question`` where known, ``alternatives`` where known (a list in JSON) and
        ``parents`` where the edges are known (positions as in "0 2"), both so that the
        table survives a CSV file, ``label`` where given, and one column per feature.

    Raises
    ------
    ValueError
        If two problems have the same id (as after a bootstrap), or a feature is named
        like another column or like a label.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.adapters import to_frame
    >>> graph = ReasoningGraph([[5.0], [1.0]], [(0, 1)], feature_names=["frequency"])
    >>> print(to_frame([graph], [[1, 0]]))
       problem  claim parents  label  frequency
    0        0      0              1        5.0
    1        0      1       0      0        1.0
    """
    nw = narwhals()

    batch = as_batch(graphs)
    columns = {"problem": _problem_names(batch)[batch.problem_of]}
    columns["claim"] = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
    if batch.claims is not None:
        columns["text"] = batch.claims
    if batch.problems is not None:
        columns["question"] = batch.problems[batch.problem_of]
    if batch.alternatives is not None:
        known = [
            texts if texts is None else json.dumps(texts)
            for texts in batch.alternatives
        ]
        columns["alternatives"] = np.array(known, dtype=object)[batch.problem_of]
    if batch.edges_known.any():
        columns["parents"] = _parents_as_text(batch)
    if labels is not None:
        rows = label_arrays(per_problem(labels, batch), batch.sizes)
        columns["label"] = np.concatenate(rows)
    columns |= _feature_columns(batch)
    columns = {name: _plain(values) for name, values in columns.items()}
    return nw.from_dict(columns, backend=backend).to_native()


def from_frame(
    frame: Any,
    *,
    features: Sequence[str] | None = None,
    problem: str = "problem",
    claim: str | None = "claim",
    text: str | None = "text",
    question: str | None = "question",
    alternatives: str | None = "alternatives",
    parents: str | None = "parents",
    label: str | None = "label",
    edges: EdgeRule | None = None,
    missing: Missing = "raise",
) -> Bunch:
    """Problems from a table with one row per claim.

    Where one feature is used alone, **higher should mean more confident**.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or another one that narwhals reads
    features : list of str, optional
        Columns to use as features. None takes all numeric and boolean columns but
        those named below and those with the name of a label or a position, in letters
        of any case: label, labels, gold, gold_label, annotation, manual_annotation,
        correct, is_correct, truth, ground_truth, verdict, optimal-score, removed,
        original_response, id, problem, problem_id, claim, claim_id, claim_idx, parents, deps,
        verdicts, is_true, index, level_0, unnamed: 0.
    problem : str
        Column that says which problem a claim belongs to, for every row. Problems come
        in order of their first row; their rows need not be together. Each answer is a
        problem: where a question was answered twice, give a column that tells them apart.
    claim : str or None
        Column with the position of the claim in its problem, 0 to n - 1; without such
        a column the order of the rows counts.
    text, question, alternatives, parents, label : str or None
        Columns that are used where they are there. ``alternatives`` holds the texts of
        other answers, as a list or as JSON, in the first row of the problem;
        ``parents`` holds positions, as in "0 2" or [0, 2], or nothing; ``label`` is 1
        (true), 0 (false) or -1 (nobody judged the claim). Nothing in ``question`` or
        ``alternatives`` (None, NaN, NA, null) means that they are not known, and
        nothing in ``text`` that no text of that problem is.
    edges : callable, optional
        ``edges(claims, question)``, as in `skdcf.edges`, instead of ``parents``.
    missing : {"raise", "mean", "median"} or float
        What to put for features that are missing or infinite; mean and median are
        those of the finite values.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch; ids are the values of ``problem``), ``labels`` (list of
        int arrays or None), ``dropped`` (empty).

    Raises
    ------
    ValueError
        If a column is missing, a row has no problem, some claims of a problem have a
        text and some have none, or positions, parents or labels make no sense. Rows
        are named by their place in the table, counted from 0.

    Notes
    -----
    A column with one of the default names may be absent, but one that you name must be
    there; None reads none. Without a column "parents" and without ``edges`` the edges
    are not known: ``graphs`` shows ``n_edges=unknown``. Where claims stand alone, say so by
    ``edges=no_edges`` (of `skdcf.edges`).

    Examples
    --------
    >>> import pandas as pd
    >>> from skdcf.adapters import from_frame
    >>> frame = pd.DataFrame({"problem": ["p", "p", "q"], "parents": ["", "0", ""],
    ...                       "score": [0.9, 0.2, 0.5], "label": [1, 0, 1]})
    >>> data = from_frame(frame)
    >>> data.graphs, [y.tolist() for y in data.labels]
    (GraphBatch(n_graphs=2, n_claims=3, n_edges=1, n_features=1), [[1, 0], [1]])
    """
    if not (edges is None or callable(edges)):
        raise ValueError(f"edges is {edges!r}, but must be a function of skdcf.edges")
    frame = _eager(frame)
    special = (problem, claim, text, question, alternatives, parents, label)
    _check_named(frame, special)
    features = _feature_names(frame, features, special)
    order, offsets, ids = row_order(frame, problem, claim)
    column = {
        name: values_of(frame[name])[order] for name in special if name in frame.columns
    }
    table = [_floats(frame, name)[order] for name in features]
    table = np.array(table, dtype=float).reshape(len(features), len(order)).T.copy()
    place = [f"row {row}" for row in order].__getitem__
    guess = edges not in (None, no_edges)
    texts, questions = column.get(text), column.get(question)
    if texts is not None:
        texts = known_texts(texts, offsets, order, required=guess or not features)
    if questions is not None:
        questions = questions[offsets[:-1]]
    others = column.get(alternatives)
    if others is not None:
        others = map(read_texts, others[offsets[:-1]], order[offsets[:-1]])
    pairs = () if edges is no_edges else None
    if guess:
        pairs = _guessed(edges, texts, questions, offsets)
    elif edges is None and parents in column:
        pairs = parent_edges(column[parents], offsets, order)
    batch = GraphBatch.from_arrays(
        fill_missing(table, features, missing, place) if features else None,
        offsets,
        pairs,
        claims=texts,
        problems=questions,
        alternatives=others,
        feature_names=features or None,
        ids=ids,
    )
    labels = None
    if label in column:
        labels = list(batch.split(label_array(column[label], place)))
    return Bunch(graphs=batch, labels=labels, dropped=[])


def _eager(frame):
    """A data frame with rows, of whatever library."""
    nw = narwhals()

    try:
        frame = nw.from_native(frame, eager_only=True)
    except TypeError:
        of_others = "pandas.DataFrame makes one of a dict, pandas.read_csv of a file"
        advice = "pass frame.collect()" if hasattr(frame, "collect") else of_others
        raise ValueError(
            f"frame is a {type(frame).__name__}, but a data frame with rows is needed: "
            + advice
        ) from None
    if not len(frame):
        raise ValueError("the table has no rows, so there is no problem in it")
    return frame


def _check_named(frame, special):
    """The columns that the caller names are there."""
    for name, default in zip(special, _RESERVED, strict=True):
        needed = default == "problem" or name not in (None, default)
        if needed and name not in frame.columns:
            raise ValueError(
                f"no column {name!r}, to be used as {default!r}, only {frame.columns}"
            )


def _floats(frame, name):
    """A column as an array of floats."""
    try:
        return frame[name].cast(narwhals().Float64).to_numpy()
    except Exception as error:  # every library has its own
        raise ValueError(f"column {name!r} holds no numbers: {error}") from error


def _feature_names(frame, features, special):
    """Names of the columns to use as features."""
    nw = narwhals()
    if features is None:
        numeric = frame.select(nw.selectors.numeric() | nw.selectors.boolean()).columns
        numeric = filter(may_be_feature, numeric)
        return [name for name in numeric if name not in special]
    if isinstance(features, str):
        raise ValueError(f"features is {features!r}: pass a list of names")
    absent = [name for name in features if name not in frame.columns]
    if absent:
        raise ValueError(f"no columns {absent}, only {frame.columns}")
    *_, label = special
    if label in features:
        raise ValueError(f"{label!r} holds the labels and cannot be a feature as well")
    return features


def _guessed(edges, texts, questions, offsets):
    if texts is None:
        raise ValueError(
            "edges are to be made from the texts of claims, but there are none: pass "
            "edges=no_edges where no claim builds on another"
        )
    pairs = []
    for i, start in enumerate(offsets[:-1]):
        claims = list(texts[start : offsets[i + 1]])
        found = edges(claims, None if questions is None else questions[i])
        pairs += [(start + parent, start + child) for parent, child in found]
    return pairs


def _parents_as_text(batch):
    parents = batch.edges[:, 0] - batch.offsets[batch.problem_of[batch.edges[:, 1]]]
    bounds = np.searchsorted(batch.edges[:, 1], np.arange(batch.n_claims + 1))
    words = parents.astype(str)
    return [" ".join(words[a:b]) for a, b in pairwise(bounds)]


def _feature_columns(batch):
    if batch.features is None:
        return {}
    names = batch.feature_names or [f"x{j}" for j in range(batch.n_features)]
    taken = sorted(n for n in names if n in _RESERVED or not may_be_feature(n))
    if taken:
        raise ValueError(
            f"features called {taken} clash with columns of the table, or would be "
            "taken for labels: rename them"
        )
    return dict(zip(names, batch.features.T, strict=True))


def _problem_names(batch):
    if batch.ids is None or any(name is None for name in batch.ids):
        return np.arange(len(batch))
    number = {}
    for i, name in enumerate(batch.ids):
        if number.setdefault(name, i) != i:
            raise ValueError(
                f"problems {number[name]} and {i} are both called {name!r}, but a "
                "table tells problems apart by their ids; [g.replace(id=None) for g in "
                "graphs] has them numbered"
            )
    return batch.ids


def _plain(values):
    return values.tolist() if isinstance(values, np.ndarray) else values
