"""Read tables exported from Argilla, using submitted responses as labels and ignoring drafts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from .._checks import is_missing
from ..graphs.labels import LABEL_WORDS, word_key

_RESPONSES = ".responses"
_STATUS = ".responses.status"
_STATES = {"submitted", "draft", "discarded"}
_NESTED = {"fields", "responses", "suggestions"}  # columns of nested records


_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None"""
_PYTHON_LIST = re.compile(rf"\s*\[\s*(?:{_ITEM})(?:\s*,\s*(?:{_ITEM}))*\s*\]\s*")


def is_argilla(frame: Any) -> bool:
    """Return whether a table was exported from Argilla.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The table.

    Returns
    -------
    is_argilla : bool
        True if the table has the columns of an Argilla export.
    """
    names = set(frame.columns)
    return names >= _NESTED or any(str(name).endswith(_STATUS) for name in names)


def read_argilla(frame: Any, columns: dict[str, str | None]) -> Any:
    """Return the names of the columns to read, and the labels from submitted responses.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The table.
    columns : dict of str to (str or None)
        Column names passed to `skdcf.adapters.from_frame`. If the table contains several
        questions, ``label`` must be the name of one of these questions.

    Returns
    -------
    columns : dict of str to (str or None)
        The column names, with None for ``label``. If the column "claim" contains texts instead of
        positions, ``text`` is set to "claim".
    labels : ndarray of object of shape (n_claims,)
        The label of each claim, which is 1 or 0 if all submitted responses agree, 0 if they
        disagree, and None if no response was submitted.

    Raises
    ------
    ValueError
        If the records are nested, if ``label`` is not one of the questions, or if a response has
        an unknown meaning.
    """
    names = [str(name) for name in frame.columns]
    if names and set(names) >= _NESTED:
        raise ValueError(
            "the Argilla records must be flat, because nested records do not distinguish "
            "drafts from submitted responses. Export the records with "
            "dataset.records.to_list(flatten=True)"
        )
    questions = [name.removesuffix(_STATUS) for name in names if name.endswith(_STATUS)]
    chosen = str(columns.get("label")).removesuffix(_RESPONSES)
    if chosen not in questions:
        if len(questions) > 1 or columns.get("label") != "label":
            raise ValueError(
                f"label must be one of the Argilla questions {questions}, got "
                f"{columns.get('label')!r}"
            )
        chosen = questions[0]

    columns = columns | {"label": None}
    if columns.get("claim") == "claim" and "claim" in names:
        texts = frame["claim"].to_list()
        if all(isinstance(text, str) for text in texts):
            columns["claim"] = None
            if "text" not in names and columns.get("text") == "text":
                columns["text"] = "claim"
    responses = frame[f"{chosen}{_RESPONSES}"].to_list()
    states = frame[f"{chosen}{_STATUS}"].to_list()
    labels = [
        _label(row, *pair)
        for row, pair in enumerate(zip(responses, states, strict=True))
    ]
    return columns, np.array(labels, dtype=object)


def _label(row, responses, states):
    """Return the label of one record, derived from its submitted responses."""
    responses = _as_list(responses)
    states = _as_list(states)
    if len(responses) != len(states):
        raise ValueError(
            f"row {row} must have one state for each of its {len(responses)} responses, "
            f"got {len(states)}"
        )
    # Argilla may return the status of a response as an enum.
    states = [word_key(state).rpartition(".")[2] for state in states]
    if others := sorted({*states} - _STATES):
        raise ValueError(
            f"row {row}: the response status must be one of {sorted(_STATES)}, got "
            f"{others[0]!r}"
        )
    words = [
        response
        for response, state in zip(responses, states, strict=True)
        if state == "submitted" and not (is_missing(response) or response == "")
    ]
    if unknown := [word for word in words if word_key(word) not in LABEL_WORDS]:
        raise ValueError(
            f"row {row}: the response {unknown[0]!r} has no known meaning. Rename the "
            'labels of the question, for example to "true" and "false"'
        )
    labels = {LABEL_WORDS[word_key(word)] for word in words}
    return labels.pop() if len(labels) == 1 else 0 if labels else None


def _as_list(cell):
    """Convert a cell to a list, including a cell that contains a list as a string."""
    if isinstance(cell, str):
        try:
            cell = _read_list(cell)
        except ValueError as error:
            raise ValueError(
                f"responses and their states must be lists, got {cell!r:.60}. Pass the "
                "original records, or save the table as Parquet"
            ) from error
    if cell is None or (np.ndim(cell) == 0 and is_missing(cell)):
        return []
    return list(cell)


def _read_list(text):
    """Parse a JSON list, or the string representation of a Python list of strings."""
    try:
        return json.loads(text)
    except ValueError:
        if not _PYTHON_LIST.fullmatch(text):
            raise
    words = re.findall(_ITEM, text)
    return [
        None if word == "None" else re.sub(r"\\(.)", r"\1", word[1:-1])
        for word in words
    ]
