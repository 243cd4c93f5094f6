"""Convert data frames with one row per claim to problems."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from sklearn.utils import Bunch

from .._checks import check_list, import_extra, is_missing, is_number
from ..datasets.records import build_dataset


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
        Columns with finite numbers that are used as features.

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
        named twice, if a cell is invalid, or if a claim of an answer has two labels.
        The message contains the column, the position of the row (starting at 0) and the value.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdcf.adapters import from_frame
    >>> frame = pd.DataFrame({"id": ["p", "p", "q"], "text": ["One.", "Two.", "Three."],
    ...                       "score": [0.9, 0.2, 0.5], "right": [1, 0, None]})
    >>> data = from_frame(frame, claim="text", label="right", answer="id", features=["score"])
    >>> data.graphs, [y.tolist() for y in data.labels]
    (GraphBatch(n_graphs=2, n_claims=3, n_edges=unknown, n_features=1), [[1, 0], [-1]])
    """
    columns = [claim, answer, *check_list("features", features)]
    columns += [name for name in (label, question) if name is not None]
    _check_columns(frame, columns)
    texts = _cells(frame, claim, _is_string, "a string")
    names = _cells(frame, answer, _is_name, "a string or an integer")
    questions = [None] * len(frame)
    if question is not None:
        questions = _cells(frame, question, _is_string, "a string")
    table = [
        _cells(frame, name, _is_finite, "a finite number used as a feature")
        for name in features
    ]
    labels = None
    if label is not None:
        verdicts = "a label: 1 (true), 0 (false), -1 or empty"
        cells = _cells(frame, label, _is_label, verdicts)
        labels = [-1 if _is_blank(cell) else int(cell) for cell in cells]
        _check_contradictions(frame, answer, claim, label, labels)

    rows_of: dict[str | int, list[int]] = {}
    for row, name in enumerate(names):
        rows = rows_of.setdefault(name, [])
        rows.append(row)
        first = questions[rows[0]]
        if questions[row] != first:
            raise ValueError(
                f"column {question!r}, row {row}: the rows of the answer {name!r} must have the "
                f"same question, got {questions[row]!r} and {first!r}"
            )

    def record(rows):
        line = {"claims": [texts[row] for row in rows], "problem": questions[rows[0]]}
        if features:
            line["features"] = [[column[row] for column in table] for row in rows]
            line["feature_names"] = list(features)
        if labels is not None:
            line["labels"] = [labels[row] for row in rows]
        return line

    return build_dataset(rows_of, record)


def _check_columns(frame, columns):
    """Raise ValueError if the table is invalid or a named column does not exist exactly once."""
    pd = import_extra("pandas", "frame")
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"frame must be a pandas DataFrame, got a {type(frame).__name__}. Convert it, for "
            "example with frame.to_pandas() or pandas.DataFrame(frame)"
        )
    there = frame.columns.tolist()
    for name in columns:
        if there.count(name) != 1 or columns.count(name) != 1:
            raise ValueError(
                f"the table must have one column {name!r}, which is named once, but the columns "
                f"{columns} are named, and the table has the columns {there}"
            )


def _cells(frame, name, is_valid, meaning):
    """Return the cells of a column, or raise ValueError for the first cell that is invalid."""
    cells = frame[name].tolist()
    for row, cell in enumerate(cells):
        if not is_valid(cell):
            raise ValueError(
                f"column {name!r}, row {row}: the value must be {meaning}, got {cell!r}"
            )
    return cells


def _is_string(cell):
    return isinstance(cell, str)


def _is_name(cell):
    return isinstance(cell, str | int) and not isinstance(cell, bool)


def _is_finite(cell):
    return is_number(cell) and abs(cell) <= sys.float_info.max


def _is_blank(cell):
    return not cell.strip() if isinstance(cell, str) else is_missing(cell)


def _is_label(cell):
    return _is_blank(cell) or (is_number(cell) and cell in (0, 1, -1))


def _check_contradictions(frame, answer, claim, label, labels):
    """Raise ValueError if claims have two labels, or if all are repeated, as by two annotators."""
    columns = [answer, claim]
    all_repeated = frame.duplicated(columns, keep=False).all()
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(zip(frame[answer], frame[claim], strict=True)):
        other = first.setdefault(key, row)
        if labels[row] != labels[other] or (all_repeated and row != other):
            cells = frame.iloc[[other, row]].astype(str)
            differing = cells.columns[cells.nunique() > 1].tolist()
            raise ValueError(
                f"column {label!r}, row {row}: the claim {key[1]!r:.60} of the answer {key[0]!r} "
                f"has the label {labels[row]}, but also the label {labels[other]} in row {other}. "
                f"The rows differ in the columns {differing}. Keep one verdict for each claim, "
                f"for example with frame.drop_duplicates({columns})"
            )
