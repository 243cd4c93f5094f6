"""Tables with one row per claim, of any data-frame library that narwhals knows."""

from itertools import pairwise

import numpy as np
from sklearn.utils import Bunch

from ..graphs import GraphBatch, as_batch, pack_labels
from ..graphs._ragged import offsets_of
from ._collect import fill_missing, narwhals

_RESERVED = ("problem", "claim", "text", "question", "parents", "label")


def to_frame(graphs, labels=None, *, backend="pandas"):
    """Problems as a table with one row per claim.

    Parameters
    ----------
    graphs : GraphBatch or sequence of ReasoningGraph
        A problem without claims leaves no row.
    labels : sequence of 0/1 arrays, one per problem, optional
    backend : str
        "pandas", "polars", or another one that narwhals can build.

    Returns
    -------
    data frame
        Columns ``problem`` (its id, or its number), ``claim`` (position), ``text`` and
        ``question`` where known, ``parents`` (positions as in "0 2", so that the table
        survives a CSV file), ``label`` where given, and one column per feature.

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
    columns["parents"] = _parents_as_text(batch)
    if labels is not None:
        columns["label"] = pack_labels(labels, batch).astype(np.int64)
    columns |= _feature_columns(batch)
    columns = {name: _plain(values) for name, values in columns.items()}
    return nw.from_dict(columns, backend=backend).to_native()


def from_frame(
    frame,
    *,
    features=None,
    problem="problem",
    claim="claim",
    text="text",
    question="question",
    parents="parents",
    label="label",
    edges=None,
    missing="raise",
):
    """Problems from a table with one row per claim.

    Where one feature is used alone, **higher should mean more confident**.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or another one that narwhals reads
    features : list of str, optional
        Columns to use as features. None takes all numeric columns not named below.
    problem : str
        Column that says which problem a claim belongs to. Problems come in order of
        their first row; their rows need not be together.
    claim : str
        Column with the position of the claim in its problem, 0 to n - 1; without such
        a column the order of the rows counts.
    text, question, parents, label : str
        Columns that are used where they are there. ``parents`` holds positions, as in
        "0 2" or [0, 2]; ``label`` is 1 (true) or 0 (false).
    edges : callable, optional
        ``edges(claims, question)``, as in `skdcf.edges`, instead of ``parents``.
    missing : {"raise", "mean", "median"} or float
        What to put for missing features.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch; ids are the values of ``problem``), ``labels`` (list of
        0/1 int arrays or None), ``dropped`` (empty).

    Raises
    ------
    ValueError
        If a column is missing, or positions, parents or labels make no sense.

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
    nw = narwhals()

    frame = nw.from_native(frame, eager_only=True)
    if problem not in frame.columns:
        raise ValueError(f"no column {problem!r}, only {frame.columns}")
    special = (problem, claim, text, question, parents, label)
    if features is None:
        numeric = frame.select(nw.selectors.numeric() | nw.selectors.boolean()).columns
        features = [name for name in numeric if name not in special]
    absent = [name for name in features if name not in frame.columns]
    if absent:
        raise ValueError(f"no columns {absent}, only {frame.columns}")
    order, offsets, ids = _row_order(frame, problem, claim)
    column = {
        name: _values(frame[name])[order] for name in special if name in frame.columns
    }
    table = [frame[name].cast(nw.Float64).to_numpy()[order] for name in features]
    table = np.array(table, dtype=float).reshape(len(features), len(order)).T.copy()
    texts, questions = column.get(text), column.get(question)
    if questions is not None:
        questions = questions[offsets[:-1]]
    pairs = ()
    if edges is not None:
        pairs = _guessed(edges, texts, questions, offsets)
    elif parents in column:
        pairs = _written(column[parents], offsets)
    batch = GraphBatch.from_arrays(
        fill_missing(table, features, missing) if features else None,
        offsets,
        pairs,
        claims=texts,
        problems=questions,
        feature_names=features or None,
        ids=ids,
    )
    labels = None
    if label in column:
        labels = pack_labels(np.array(list(column[label])), batch).astype(np.int64)
        labels = list(batch.split(labels))
    return Bunch(graphs=batch, labels=labels, dropped=[])


def _row_order(frame, problem, claim):
    """Order of the rows by problem and position, offsets, and names of the problems."""
    names = _values(frame[problem])
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    of_row = np.array([number[name] for name in names], dtype=np.int64)
    offsets = offsets_of(np.bincount(of_row, minlength=len(number)))
    if claim not in frame.columns:
        return np.argsort(of_row, kind="stable"), offsets, list(number)
    position = np.array(list(_values(frame[claim])))
    order = np.lexsort((position, of_row))
    expected = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    wrong = np.flatnonzero(position[order] != expected)
    if wrong.size:
        row = order[wrong[0]]
        raise ValueError(
            f"problem {names[row]!r}: positions in {claim!r} must be 0, 1, ..., but "
            f"{position[row]} stands where {expected[wrong[0]]} should"
        )
    return order, offsets, list(number)


def _written(parents, offsets):
    """Edges from a column of parents."""
    first = np.repeat(offsets[:-1], np.diff(offsets))
    sizes = np.repeat(np.diff(offsets), np.diff(offsets))
    edges = []
    for row, entry in enumerate(parents):
        for parent in _positions(entry):
            if not 0 <= parent < sizes[row]:
                raise ValueError(
                    f"row {row}: parent {parent}, but the problem has {sizes[row]} "
                    "claims"
                )
            edges.append((first[row] + parent, row))
    return edges


def _positions(entry):
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return []
    if isinstance(entry, str):
        entry = entry.replace(",", " ").split()
    elif np.ndim(entry) == 0:
        entry = [entry]
    return [int(value) for value in entry]


def _guessed(edges, texts, questions, offsets):
    if texts is None:
        raise ValueError("edges are to be guessed from texts, but there are none")
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
    taken = sorted(set(names) & set(_RESERVED))
    if taken:
        raise ValueError(f"features called {taken} clash with columns of the table")
    return dict(zip(names, batch.features.T, strict=True))


def _problem_names(batch):
    if batch.ids is None or any(name is None for name in batch.ids):
        return np.arange(len(batch))
    return batch.ids


def _values(series):
    """A column as an object array of plain Python values."""
    values = series.to_list()
    return np.fromiter(values, dtype=object, count=len(values))


def _plain(values):
    return values.tolist() if isinstance(values, np.ndarray) else values
