"""Export labels to Label Studio or CSV files, and import labels from these formats."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from ..._files import write_bytes
from ...datasets.tables import read_table
from ...graphs import as_batch
from ._store import WORDS, LabelStore

Words = list[list[str | None]]

#: Labelling interface for the exported tasks. Paste the interface into the "Labeling interface"
#: tab in Label Studio.
LABEL_STUDIO_CONFIG = """<View>
  <Header value="$problem"/>
  <Text name="context" value="$context"/>
  <Text name="premises" value="$premises"/>
  <Text name="claim" value="$claim"/>
  <Choices name="verdict" toName="claim" choice="single" showInLine="true">
    <Choice value="true" hotkey="t"/>
    <Choice value="false" hotkey="f"/>
    <Choice value="unsure" hotkey="u"/>
    <Choice value="no claim" hotkey="c"/>
    <Choice value="unknown" hotkey="n"/>
  </Choices>
</View>"""


def to_label_studio(
    store: LabelStore, by: str, order: Sequence[int]
) -> list[dict[str, Any]]:
    """Return tasks for Label Studio, one per claim, including existing verdicts.

    The data of each task contain the name of the annotator. On import, Label Studio rejects
    unknown annotators and attributes annotations to the user who imports the file.

    Parameters
    ----------
    store : LabelStore
        The problems and the verdicts on their claims.
    by : str
        Name of the annotator whose verdicts are exported.
    order : sequence of int
        Positions of the problems, in the order in which the tasks are returned.

    Returns
    -------
    tasks : list of dict
        The tasks. Save the tasks as JSON, and import the file into a project that uses the
        labelling interface `LABEL_STUDIO_CONFIG`.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import LabelStore
    >>> from skdcf.apps.labelling.exchange import to_label_studio
    >>> graph = ReasoningGraph(None, [(0, 1)], claims=["2 + 2 = 4", "so it is even"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LabelStore([graph], f"{folder}/labels.journal")
    ...     store.label(0, 0, "true", by="ann")
    ...     tasks = to_label_studio(store, "ann", [0])
    >>> tasks[0]["annotations"][0]["result"][0]["value"]
    {'choices': ['true']}
    >>> tasks[1]["data"]["premises"]
    '1. 2 + 2 = 4'
    """
    tasks = []
    for row in _rows(store, by, order):
        task: dict[str, Any] = {"data": row}
        if word := row.pop("label"):
            choice = {
                "from_name": "verdict",
                "to_name": "claim",
                "type": "choices",
                "value": {"choices": [word]},
            }
            task["annotations"] = [{"result": [choice]}]
        tasks.append(task)
    return tasks


def from_label_studio(tasks: Iterable[Mapping[str, Any]], graphs: Any) -> dict:
    """Read verdicts from a JSON export of Label Studio.

    Parameters
    ----------
    tasks : list of dict
        Parsed content of a Label Studio export in the format "JSON".
    graphs : sequence of ReasoningGraph, or GraphBatch
        The problems passed to `to_label_studio`.

    Returns
    -------
    verdicts : dict of str to list of lists
        Verdicts of each annotator, per problem and claim. A verdict is "true", "false",
        "unsure", "no claim", "unknown" or None. Annotators are identified by their email address
        or by their user ID in Label Studio.

    Raises
    ------
    ValueError
        If the tasks have another form, if no task contains a verdict, if an annotation contains
        several choices, if a task does not match a claim of these problems, or if an annotator
        assigned different verdicts to a claim.

    Examples
    --------
    >>> import tempfile
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import LabelStore
    >>> from skdcf.apps.labelling.exchange import from_label_studio, to_label_studio
    >>> graph = ReasoningGraph(None, [(0, 1)], claims=["2 + 2 = 4", "so it is even"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LabelStore([graph], f"{folder}/labels.journal")
    ...     store.label(0, 0, "true", by="ann")
    ...     from_label_studio(to_label_studio(store, "ann", [0]), [graph])
    {'imported': [['true', None]]}
    """
    rows = {}
    for number, task in enumerate(tasks, start=1):
        place = f"task {number}"
        try:
            for annotation in task.get("annotations", ()):
                if annotation.get("was_cancelled"):
                    continue
                if choices := _choices(annotation):
                    [label] = choices
                    judged = {"label": label, "annotator": _author(annotation)}
                    rows[place] = {**task["data"], **judged}
                    place += ", annotation"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{place} must be a task of Label Studio's export as JSON, with at most one "
                f"choice for each annotation, but {error!r} was raised. JSON-MIN cannot be read"
            ) from error
    if not rows:
        raise ValueError(
            'at least one task must have a choice for the control "verdict". Submit the drafts, '
            "and use LABEL_STUDIO_CONFIG"
        )
    return _matched(rows, graphs)


def _choices(annotation):
    """Return the set of choices of an annotation."""
    return {
        word
        for result in annotation["result"]
        if result["from_name"] == "verdict"
        for word in result["value"]["choices"]
    }


def _author(annotation):
    by = annotation.get("completed_by")
    if isinstance(by, Mapping):
        by = by.get("email") or by.get("id")
    return by


def write_csv(
    path: str | os.PathLike[str],
    store: LabelStore,
    by: str,
    order: Sequence[int],
) -> None:
    """Write a CSV table with one row per claim, for labelling in a spreadsheet.

    A text that a spreadsheet would interpret as a formula is preceded by an apostrophe, which
    `read_csv` removes. Such a text starts with "=", "+", "-" or "@", for example.

    Parameters
    ----------
    path : path-like
        The file to write.
    store : LabelStore
        The problems and the verdicts on their claims.
    by : str
        Name of the annotator whose verdicts are written.
    order : sequence of int
        Positions of the problems, in the order of the table rows. If the order is random, the
        problems that are labelled first are a random sample.
    """
    rows = [
        {key: _as_cell(cell) for key, cell in row.items()}
        for row in _rows(store, by, order)
    ]
    file = StringIO()
    table = csv.DictWriter(file, list(rows[0]) if rows else ["problem_id"])
    table.writeheader()
    table.writerows(rows)
    write_bytes(path, file.getvalue().encode("utf-8-sig"))


def read_csv(path: str | os.PathLike[str], graphs: Any) -> dict[str, Words]:
    """Read the labels from a table that was written by `write_csv` and completed by annotators.

    Parameters
    ----------
    path : path-like
        UTF-8 or UTF-16 file whose columns are separated by commas, tabs or semicolons. The
        columns ``problem_id``, ``claim_number`` and ``label`` are required. Rows with an empty
        label are ignored. A label is one of the words "true", "false", "unsure" (examined but not
        confirmed), "no claim" (for a sentence that makes no claim) and "unknown" (not examined),
        or one of the numbers 1, 0 and -1.
    graphs : sequence of ReasoningGraph, or GraphBatch
        The problems passed to `write_csv`.

    Returns
    -------
    verdicts : dict of str to list of lists
        Verdicts of each annotator, as returned by `from_label_studio`. The annotator is named
        "imported" if the column ``annotator`` is empty or missing.

    Raises
    ------
    ValueError
        If the file is not a table, if a column is missing, or if two problems have the same id.
        ValueError is also raised if no row has a label, if a row does not match a claim of these
        problems, if a label is invalid, or if an annotator assigned different labels to a claim.
    """
    table = read_table(path)
    rows = {}
    for number, row in table.items():
        if missing := {"problem_id", "claim_number", "label"} - row.keys():
            raise ValueError(
                f"{path} must have the columns {sorted(missing)}, got {list(row)}. Keep the "
                "original column names"
            )
        if row["label"].strip():
            texts = {key: _as_text(cell) for key, cell in row.items()}
            rows[f"{path}, row {number}"] = texts
    if not rows:
        raise ValueError(
            f'{path}: at least one of the {len(table)} rows must have a value in the column "label"'
        )
    return _matched(rows, graphs)


def _as_cell(cell):
    """Escape a text that a spreadsheet would interpret as a formula."""
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _as_text(cell):
    """Undo `_as_cell`."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


#: Whether spreadsheets interpret a cell as a formula, apart from apostrophes. They also accept the
#: full-width forms of the signs.
_is_formula = re.compile("'*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]").match


def _rows(store, by, order):
    """Yield one table row per claim, with the problems in the given order."""
    names = _names(store.graphs)
    for i in order:
        graph = store.graphs[i]
        events = store.events("label", i, by)
        notes = store.said(i, by, "note")
        for v, claim in enumerate(graph.claims):
            event = events[v]
            parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
            yield {
                "problem_id": names[i],
                "problem": graph.problem or "",
                "context": "\n\n".join(graph.context or ()),
                "claim_number": v + 1,
                "claim": claim,
                "premises": "\n".join(f"{u + 1}. {graph.claims[u]}" for u in parents),
                "label": event and event.value,
                "annotator": event and by,
                "when": event and event.when,
                "note": notes[v],
            }


def _names(graphs):
    """Return the id or the number of each problem, or raise ValueError if ids are repeated."""
    names = [
        str(number if graph.id is None else graph.id)
        for number, graph in enumerate(graphs, start=1)
    ]
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ValueError(
                "problem ids must be unique, because they assign labels to problems, got "
                f"{count} problems with the id {name!r}. Change these ids"
            )
    return names


def _matched(rows, graphs):
    """Return the verdicts of each annotator, given table rows and their places in the file."""
    batch = as_batch(graphs)
    positions = {name: i for i, name in enumerate(_names(batch))}
    matched: dict[str, Words] = {}
    faults = []
    for place, row in rows.items():
        try:
            i, v = _claim_of(row, positions, batch)
            verdict = _verdict(row["label"])
            by = str(row.get("annotator") or "imported")
            words = matched.setdefault(by, [[None] * n for n in batch.sizes.tolist()])
            if words[i][v] not in (None, verdict):
                raise ValueError(f'"label": {by} judged this claim twice. Keep one row')
            words[i][v] = verdict
        except ValueError as error:
            faults.append(f"{place}, {error}")
    if faults:
        raise ValueError(". ".join(faults[:20]))
    return matched


def _claim_of(row, positions, batch):
    """Return the positions of the problem and claim of a row, or raise ValueError."""
    name = str(row.get("problem_id"))
    if name not in positions:
        raise ValueError(f'"problem_id": no problem has the id {name!r}')
    i = positions[name]
    claims = {str(v + 1): (v, text) for v, text in enumerate(batch[i].claims or ())}
    number = str(row.get("claim_number")).strip()
    if number not in claims:
        raise ValueError(
            f'"claim_number" must be from 1 to {len(claims)} for problem {name!r}, got {number!r}'
        )
    v, claim = claims[number]
    text = str(row.get("claim", claim))
    if text.split() != claim.split():
        raise ValueError(
            f'"claim": must be the text of claim {number} of problem {name!r}, because the label '
            f"may belong to another claim, got {text!r:.80}"
        )
    return i, v


def _verdict(label):
    """Return a verdict in lower case, or raise ValueError if it is unknown."""
    word = str(label).strip().lower()
    word = {"1": "true", "0": "false", "-1": "unknown"}.get(word, word)
    if word not in WORDS:
        raise ValueError(
            f'"label": must be one of {[w for w in WORDS if w]}, got {label!r}'
        )
    return word
