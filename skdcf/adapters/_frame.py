"""Tables with one row per claim, of any data-frame library that narwhals knows."""

from itertools import pairwise

import numpy as np
from sklearn.utils import Bunch

from ..graphs import GraphBatch, as_batch, pack_labels
from ._cells import known_texts, labels_of, parent_edges, row_order, values_of
from ._collect import fill_missing, may_be_feature, narwhals

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
        Columns to use as features. None takes all numeric and boolean columns but
        those named below and those with the name of a label or a position, in letters
        of any case: label, labels, gold, gold_label, annotation, manual_annotation,
        correct, is_correct, truth, ground_truth, verdict, optimal-score, removed,
        original_response, problem, problem_id, claim, claim_id, claim_idx, parents, deps, verdicts,
        is_true, index, level_0, unnamed: 0.
    problem : str
        Column that says which problem a claim belongs to, for every row. Problems come
        in order of their first row; their rows need not be together.
    claim : str
        Column with the position of the claim in its problem, 0 to n - 1; without such
        a column the order of the rows counts.
    text, question, parents, label : str
        Columns that are used where they are there. ``parents`` holds positions, as in
        "0 2" or [0, 2], or nothing; ``label`` is 1 (true) or 0 (false). Nothing in
        ``question`` (None, NaN, NA, null) means that the question is not known, and
        nothing in ``text`` that no text of that problem is.
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
        If a column is missing, a row has no problem, some claims of a problem have a
        text and some have none, or positions, parents or labels make no sense. Rows
        are named by their place in the table, counted from 0.

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
    features = _feature_names(frame, features, special)
    order, offsets, ids = row_order(frame, problem, claim)
    column = {
        name: values_of(frame[name])[order] for name in special if name in frame.columns
    }
    table = [frame[name].cast(nw.Float64).to_numpy()[order] for name in features]
    table = np.array(table, dtype=float).reshape(len(features), len(order)).T.copy()
    texts, questions = column.get(text), column.get(question)
    if texts is not None:
        required = edges is not None or not features
        texts = known_texts(texts, offsets, order, required)
    if questions is not None:
        questions = questions[offsets[:-1]]
    pairs = ()
    if edges is not None:
        pairs = _guessed(edges, texts, questions, offsets)
    elif parents in column:
        pairs = parent_edges(column[parents], offsets, order)
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
        labels = list(batch.split(labels_of(column[label], order)))
    return Bunch(graphs=batch, labels=labels, dropped=[])


def _feature_names(frame, features, special):
    """Names of the columns to use as features."""
    import narwhals as nw

    if features is None:
        numeric = frame.select(nw.selectors.numeric() | nw.selectors.boolean()).columns
        numeric = filter(may_be_feature, numeric)
        return [name for name in numeric if name not in special]
    absent = [name for name in features if name not in frame.columns]
    if absent:
        raise ValueError(f"no columns {absent}, only {frame.columns}")
    *_, label = special
    if label in features:
        raise ValueError(f"{label!r} holds the labels and cannot be a feature as well")
    return features


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
