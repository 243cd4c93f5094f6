"""Convert data frames with one row per claim to problems, and vice versa."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils import Bunch

from .._checks import check_list, import_extra, is_missing
from ..graphs import GraphBatch, ReasoningGraph
from ..labels import Labels, pack_labels
from .records import build_dataset


def from_frame(
    frame: Any,
    *,
    claim: str,
    label: str | None = None,
    answer: str,
    question: str | None = None,
    features: Sequence[str] = (),
) -> Bunch:
    """Convert a pandas data frame with one row per claim to problems.

    Only the named columns are read. If a feature is used directly as the confidence, **higher
    values must mean more confidence**.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table, with one row per claim.
    claim : str
        Column with the text of the claim.
    label : str, optional
        Column with the label of the claim: 1 or True (true), 0 or False (false), -1 or empty (not
        judged). Empty cells are None, NaN, NA and blank strings.
    answer : str
        Column with a string or integer that identifies the answer to which the claim belongs. The
        rows of an answer need not be adjacent. Claims are in row order.
    question : str, optional
        Column with the text of the question. All rows of an answer must have the same question.
    features : sequence of str
        Columns with finite numbers that are used as features. Convert yes/no columns to
        numbers first, for example with ``(frame[name] == "yes").astype(int)``.

    Returns
    -------
    dataset : Bunch
        The data set, as returned by `skdcf.datasets.build_dataset`. ``graphs`` is a GraphBatch
        with one problem per answer, in the order of the first rows. The ids of the problems are
        the values of ``answer``. ``labels`` is a list of int arrays, or None without ``label``.
        The edges are unknown, so pass ``edges="none"`` or a rule of `skdcf.edges` to the filter.

    Raises
    ------
    ValueError
        If ``frame`` is not a pandas data frame or is empty, if a column does not exist or is
        named twice, if a cell is invalid, or if a claim of an answer has two labels. For an
        invalid cell, the message contains the answer, the position of the claim in the answer
        (starting at 0) and the value.

    See Also
    --------
    to_frame : Convert problems to a data frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdcf.datasets import from_frame
    >>> frame = pd.DataFrame({"id": ["p", "p", "q"], "text": ["One.", "Two.", "Three."],
    ...                       "score": [0.9, 0.2, 0.5], "right": [1, 0, None]})
    >>> data = from_frame(frame, claim="text", label="right", answer="id", features=["score"])
    >>> data.graphs, [y.tolist() for y in data.labels]
    (GraphBatch(n_graphs=2, n_claims=3, n_edges=unknown, n_features=1), [[1, 0], [-1]])
    """
    names = [claim, answer, *check_list("features", features)]
    names += [name for name in (label, question) if name is not None]
    _check_columns(frame, names, features)
    cells = {name: frame[name].tolist() for name in names}
    if label is not None:
        cells[label] = [-1 if _is_blank(cell) else cell for cell in cells[label]]
        _check_verdicts(frame.assign(**{label: cells[label]}), [answer, claim], label)
    rows_of: dict[Any, list[int]] = {}
    for row, name in enumerate(cells[answer]):
        if not isinstance(name, str | int):
            raise ValueError(
                f"column {answer!r}, row {row}: the answer must be a string or an integer, got "
                f"{name!r}"
            )
        rows_of.setdefault(name, []).append(row)

    def record(rows):
        part = {name: [values[row] for row in rows] for name, values in cells.items()}
        line = {"claims": part[claim]}
        if question is not None:
            line["problem"] = part[question][0]
            if others := {*part[question]} - {line["problem"]}:
                raise ValueError(
                    f"all rows must have the same {question!r}, got {line['problem']!r} and "
                    f"{others.pop()!r}"
                )
        if features:
            line["features"] = [*zip(*map(part.__getitem__, features), strict=True)]
            line["feature_names"] = list(features)
        if label is not None:
            line["labels"] = part[label]
        return line

    return build_dataset(rows_of, record)


def _is_blank(cell):
    return is_missing(cell) or not str(cell).strip()


def _check_columns(frame, names, features):
    """Raise ValueError unless each named column exists exactly once and no feature is text."""
    pd = import_extra("pandas", "frame")
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"frame must be a pandas DataFrame, got a {type(frame).__name__}. Convert it, for "
            "example with frame.to_pandas() or pandas.DataFrame(frame)"
        )
    there = frame.columns.tolist()
    for name in names:
        if there.count(name) != 1 or names.count(name) != 1:
            raise ValueError(
                f"the table must have one column {name!r}, which is named once, but the columns "
                f"{names} are named, and the table has the columns {there}"
            )
    for name in features:
        cells = [cell for cell in frame[name].tolist() if not _is_blank(cell)]
        if cells and all(isinstance(cell, str | bool) for cell in cells):
            raise ValueError(
                f"the feature {name!r} must contain numbers, got {cells[0]!r}. Convert numbers "
                "that are stored as texts with astype(float). In yes/no columns, replace yes by 1 "
                "and no by 0"
            )


def _check_verdicts(frame, keys, label):
    """Raise ValueError if claims have two labels, or if all are repeated, as by two annotators."""
    texts = frame.astype(str)
    copies = texts[texts.duplicated(keys, keep=False)]
    n_claims = len(copies.drop_duplicates(keys))
    n_verdicts = len(copies.drop_duplicates([*keys, label]))
    if n_claims < n_verdicts or 0 < len(copies) == len(frame):
        differs = (copies.groupby(keys).nunique() > 1).any()
        raise ValueError(
            f"each claim of an answer must have a single {label!r}, but {n_claims} claims have "
            f"several rows, such as {copies[keys].iloc[0].tolist()}. These rows differ in the "
            f"columns {[*differs[differs].index]}. Keep one verdict for each claim, for example "
            f"with frame.drop_duplicates({keys})"
        )


def to_frame(
    graphs: GraphBatch | Sequence[ReasoningGraph], labels: Labels | None = None
) -> Any:
    """Convert problems to a pandas data frame with one row per claim.

    `from_frame` reads the table back. The table does not contain edges, alternatives, passages,
    metadata or problems without claims, which `skdcf.datasets.write_jsonl` keeps.

    Parameters
    ----------
    graphs : GraphBatch or sequence of ReasoningGraph
        The problems.
    labels : sequence of arrays, one per problem, optional
        Claim labels: 1 true, 0 false, -1 unknown. If ``graphs`` is a GraphBatch, ``labels`` may
        also be a flat array.

    Returns
    -------
    frame : pandas.DataFrame
        The table with the columns ``answer`` (id or index of the problem), ``question``,
        ``claim``, ``label`` and one column per feature. Columns of unknown values are left out.

    Raises
    ------
    ValueError
        If problems have the same id, or if a feature has the name of another column.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.datasets import to_frame
    >>> graph = ReasoningGraph([[5.0], [1.0]], claims=["One.", "Two."], feature_names=["score"])
    >>> print(to_frame([graph], [[1, 0]]))
       answer claim  label  score
    0       0  One.      1    5.0
    1       0  Two.      0    1.0
    """
    pd = import_extra("pandas", "frame")
    batch = GraphBatch.from_graphs(graphs)
    given = [None] * len(batch) if batch.ids is None else batch.ids
    ids = [i if name is None else name for i, name in enumerate(given)]
    columns: dict[str, Any] = {"answer": [ids[i] for i in batch.problem_of]}
    if batch.problems is not None:
        columns["question"] = batch.problems[batch.problem_of]
    columns["claim"] = batch.claims
    if labels is not None:
        columns["label"] = pack_labels(labels, batch)
    names = batch.column_names
    if len({*ids}) < len(ids) or not columns.keys().isdisjoint(names):
        raise ValueError(
            f"problems must have different ids, and features other names than {[*columns]}, got "
            f"the features {names}"
        )
    if batch.features is not None:
        columns |= zip(names, batch.features.T, strict=True)
    return pd.DataFrame({k: v for k, v in columns.items() if v is not None})
