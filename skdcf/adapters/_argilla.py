"""Tables of Argilla: submitted responses are labels, drafts and suggestions are not."""

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
_NESTED = {"fields", "responses", "suggestions"}  # columns of records that are not flat


_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None"""
_PYTHON_LIST = re.compile(rf"\s*\[\s*(?:{_ITEM})(?:\s*,\s*(?:{_ITEM}))*\s*\]\s*")


def is_argilla(frame: Any) -> bool:
    """Whether a table is an export of Argilla.

    Parameters
    ----------
    frame : narwhals.DataFrame

    Returns
    -------
    bool
    """
    names = set(frame.columns)
    return names >= _NESTED or any(str(name).endswith(_STATUS) for name in names)


def read_argilla(frame: Any, columns: dict[str, str | None]) -> Any:
    """The columns to read, and the labels that people submitted.

    Parameters
    ----------
    frame : narwhals.DataFrame
    columns : dict of str to (str or None)
        As `skdcf.adapters.from_frame` was given them. ``label`` is the name of the question
        if there are several.

    Returns
    -------
    columns : dict of str to (str or None)
        Without the column of the labels. A column "claim" that holds texts is the text.
    labels : ndarray of object, shape (n_claims,)
        1 or 0 where all submitted responses agree, 0 where they do not, None where there
        are none.

    Raises
    ------
    ValueError
        If responses have no status, if it is not clear which question the labels are of, or
        if the meaning of a response is not known.
    """
    names = [str(name) for name in frame.columns]
    if names and set(names) >= _NESTED:
        raise ValueError(
            "the records of Argilla are nested, so their responses have no status, and drafts "
            "cannot be told from what was submitted: export them by "
            "dataset.records.to_list(flatten=True)"
        )
    questions = [name.removesuffix(_STATUS) for name in names if name.endswith(_STATUS)]
    chosen = str(columns.get("label")).removesuffix(_RESPONSES)
    if chosen not in questions:
        if len(questions) > 1 or columns.get("label") != "label":
            raise ValueError(
                f"label is {columns.get('label')!r}, but must be one of the questions "
                f"{questions} of Argilla"
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
    """What the submitted responses to one record say."""
    responses, states = _as_list(responses), _as_list(states)
    if len(responses) != len(states):
        raise ValueError(
            f"row {row}: {len(responses)} responses but {len(states)} states"
        )
    states = [word_key(state).rpartition(".")[2] for state in states]  # of an enum
    if others := sorted({*states} - _STATES):
        raise ValueError(
            f"row {row}: the status of a response is {others[0]!r}, but must be one of "
            f"{sorted(_STATES)}"
        )
    words = [
        response
        for response, state in zip(responses, states, strict=True)
        if state == "submitted" and not (is_missing(response) or response == "")
    ]
    if unknown := [word for word in words if word_key(word) not in LABEL_WORDS]:
        raise ValueError(
            f"row {row}: the response is {unknown[0]!r}, and whether that means true or false "
            "is not known: rename the labels of the question"
        )
    labels = {LABEL_WORDS[word_key(word)] for word in words}
    return labels.pop() if len(labels) == 1 else 0 if labels else None


def _as_list(cell):
    """Return a list, which may have become a text in a file."""
    if isinstance(cell, str):
        try:
            cell = _read_list(cell)
        except ValueError as error:
            raise ValueError(
                f"a cell with responses or their states is {cell!r:.60}, but must be a list: "
                "read the records themselves, or write the table as Parquet"
            ) from error
    if cell is None or (np.ndim(cell) == 0 and is_missing(cell)):
        return []
    return list(cell)


def _read_list(text):
    """Read a list in JSON, or one of strings as Python writes it into CSV."""
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
