"""Export labels to Label Studio or CSV files, and import labels from these formats."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..._checks import counted, warn
from ..._files import replaced
from ...datasets.tables import explain_rows, open_table
from ...exceptions import LabelWarning
from ...graphs import as_batch
from ...labels import LABEL_WORDS, UNSURE_WORDS, word_key
from .sources import WORDS

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

#: Characters that spreadsheets interpret as the start of a formula, including their full-width
#: forms.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_SHOWN = 20  # maximum number of invalid rows in a message
_MEANINGS = {1: "true", 0: "false", -1: "unknown"}
_VERDICT = {"from_name": "verdict", "to_name": "claim", "type": "choices"}


def to_label_studio(
    graphs: Any,
    words: Sequence[Sequence[str | None]] | None = None,
    order: Sequence[int] | None = None,
    sources: Sequence[Sequence[Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return tasks for Label Studio, one per claim, including existing verdicts.

    The data of each task contain the name of the annotator. On import, Label Studio rejects
    unknown annotators and attributes annotations to the user who imports the file.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph, or GraphBatch
        Problems with claim texts.
    words : sequence of sequences, one per problem, optional
        Verdicts on the claims, as returned by `LabelStore.export`. A verdict is "true", "false",
        "unsure", "no claim", "unknown" or None.
    order : sequence of int, optional
        Positions of the problems, in the order in which the tasks are returned.
    sources : sequence of sequences of (LabelSource or None), one per problem, optional
        Who judged each claim, and when, as returned by `LabelStore.export`.

    Returns
    -------
    tasks : list of dict
        The tasks. Save the tasks as JSON, and import the file into a project that uses the
        labelling interface ``skdcf.apps.labelling.exchange.LABEL_STUDIO_CONFIG``.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import to_label_studio
    >>> graph = ReasoningGraph(None, [(0, 1)], claims=["2 + 2 = 4", "so it is even"])
    >>> tasks = to_label_studio([graph], [["true", None]])
    >>> tasks[0]["annotations"][0]["result"][0]["value"]
    {'choices': ['true']}
    >>> tasks[1]["data"]["premises"]
    '1. 2 + 2 = 4'
    """
    tasks = []
    for row in _rows(graphs, words, order, sources):
        word = row.pop("label")
        task: dict[str, Any] = {"data": row}
        if word is not None:
            choice = _VERDICT | {"value": {"choices": [word]}}
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
        or by their user ID in Label Studio. If an annotator annotated a claim more than once, the
        latest annotation is used.

    Raises
    ------
    ValueError
        If no task contains a verdict, if a task does not match a claim of these problems, or if
        two problems have the same id. ValueError is also raised if an annotator assigned
        different verdicts to a claim and the verdicts have no dates.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.apps.labelling import from_label_studio, to_label_studio
    >>> graph = ReasoningGraph(None, [(0, 1)], claims=["2 + 2 = 4", "so it is even"])
    >>> tasks = to_label_studio([graph], [["true", None]])
    >>> from_label_studio(tasks, [graph])
    {'imported': [['true', None]]}
    """
    tasks = list(tasks)
    rows = []
    counts: Counter[str] = Counter(tasks=len(tasks))
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, Mapping) or not isinstance(task.get("data"), Mapping):
            raise ValueError(
                'each task must have a "data" object. Export the tasks as "JSON" instead of '
                '"JSON-MIN"'
            )
        counts["drafts"] += len(task.get("drafts") or ())
        for annotation in task.get("annotations") or ():
            if not isinstance(annotation, Mapping):
                raise ValueError(
                    f"each annotation must be an object, got {annotation!r:.40}. Export the tasks "
                    'as "JSON", which contains complete annotations'
                )
            if annotation.get("was_cancelled"):
                counts["skipped annotations"] += 1
                continue
            counts["annotations"] += 1
            who = annotation.get("completed_by")
            if isinstance(who, Mapping):
                who = who.get("email") or who.get("id")
            when = annotation.get("updated_at") or annotation.get("created_at")
            if word := _chosen(annotation, counts):
                judgement = {"label": word, "annotator": who, "when": when}
                rows.append((f"task {number}, key", {**task["data"], **judgement}))
    n_silent = counts["annotations"] - len(rows)
    if rows and n_silent:
        warn(
            f"{n_silent} of {counts['annotations']} annotations are skipped, because they "
            'contain no choice for the control "verdict". The annotations contain '
            f"{_counted(counts)}",
            LabelWarning,
        )
    matched = _matched(rows, graphs)
    if not rows:
        raise ValueError(
            'at least one task must contain a choice for the control "verdict", but the '
            f"export contains only {_counted(counts) or '0 tasks'}. Submit the drafts, and "
            "name the control as in LABEL_STUDIO_CONFIG"
        )
    return matched


def _chosen(annotation, found):
    """Return the verdict of a Label Studio annotation, or "unsure" if the choices differ."""
    words = set()
    results = annotation.get("result") or ()
    for choice in results if isinstance(results, list | tuple) else [results]:
        if not isinstance(choice, Mapping):
            raise ValueError(
                f"each result of an annotation must be an object, got {choice!r:.40}. Export "
                'the tasks as "JSON", which contains complete annotations'
            )
        name = choice.get("from_name")
        value = choice.get("value")
        value = value if isinstance(value, Mapping) else {}
        if name == "verdict" and value.get("choices"):
            words |= _words(value["choices"])
        elif name == "verdict":
            found[
                f'results of "verdict" without choices, but with {sorted(value)}'
            ] += 1
        else:
            found[f'results of the control "{name}"'] += 1
    if not annotation.get("result"):
        found["empty results"] += 1
    if len(words) > 1:
        warn(
            f"an annotation contains different choices {sorted(map(str, words))} for the "
            'same claim, so the verdict is set to "unsure"',
            LabelWarning,
        )
        return "unsure"
    return words.pop() if words else None


def _words(choices):
    """Return the choices as a set, or raise ValueError if a choice is not a string."""
    choices = [choices] if isinstance(choices, str) else choices
    if not all(isinstance(word, str) for word in choices):
        raise ValueError(
            f'the choices of the control "verdict" must be strings, got {choices!r:.60}'
        )
    return {*choices}


def _counted(found):
    """Return a text that lists the numbers of tasks and annotations in an export."""
    return ", ".join(f"{n} {what}" for what, n in found.items() if n)


def write_csv(
    path: str | os.PathLike[str],
    graphs: Any,
    words: Sequence[Sequence[str | None]] | None = None,
    order: Sequence[int] | None = None,
    sources: Sequence[Sequence[Any]] | None = None,
) -> None:
    """Write a CSV table with one row per claim, for labelling in a spreadsheet.

    The column ``problem`` is omitted if there are no questions, and the column ``context`` is
    omitted if there are no passages.

    A text that a spreadsheet would interpret as a formula is preceded by an apostrophe, which
    `read_csv` removes. Such a text starts with "=", "+", "-" or "@", for example.

    Parameters
    ----------
    path : path-like
        The file to write.
    graphs : sequence of ReasoningGraph, or GraphBatch
        Problems with claim texts.
    words : sequence of sequences, one per problem, optional
        Verdicts on the claims. A verdict is "true", "false", "unsure", "no claim", "unknown" or
        None.
    order : sequence of int, optional
        Positions of the problems, in the order of the table rows. If the order is random, the
        problems that are labelled first are a random sample.
    sources : sequence of sequences of (LabelSource or None), one per problem, optional
        Who judged each claim, and when, as returned by `LabelStore.export`.
    """
    rows = [
        {
            key: _as_cell(cell) if isinstance(cell, str) else cell
            for key, cell in row.items()
        }
        for row in _rows(graphs, words, order, sources)
    ]
    for key in ("problem", "context"):
        if not any(row[key] for row in rows):
            rows = [{k: cell for k, cell in row.items() if k != key} for row in rows]
    with replaced(path, encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]) if rows else ["problem_id"])
        table.writeheader()
        table.writerows(rows)


def read_csv(path: str | os.PathLike[str], graphs: Any) -> dict[str, Words]:
    """Read the labels from a table that was written by `write_csv` and completed by annotators.

    Parameters
    ----------
    path : path-like
        UTF-8 or UTF-16 file whose columns are separated by commas, tabs or semicolons. The
        columns ``problem_id``, ``claim_number`` and ``label`` are required. Rows with an empty
        label are ignored. A label is one of the words "true", "false", "unsure" (examined but not
        confirmed), "no claim" (for a sentence that makes no claim) and "unknown" (not examined).
        Other words accepted by `skdcf.labels.read_words`, such as "yes" and "unsupported",
        are also valid.
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
        If the file has another encoding, if a column is missing or occurs twice, or if two
        problems have the same id. ValueError is also raised if no row has a label, if a row
        does not match a claim of these problems, or if a label is invalid. If an annotator
        assigned different labels to a claim, the labels must have dates.
    """
    with explain_rows(path):
        lines, form = open_table(path)
        table = csv.DictReader(lines, **form)
        read = list(table)
    columns = Counter(name for name in table.fieldnames or () if name)
    if twice := [name for name, n in columns.items() if n > 1]:
        raise ValueError(
            f"{path} must have unique column names, but {twice[0]!r} is repeated. Keep "
            "only one of these columns"
        )
    if missing := {"problem_id", "claim_number", "label"} - {*(table.fieldnames or ())}:
        raise ValueError(
            f"{path} must have the columns {sorted(missing)}, got "
            f"{table.fieldnames or []}. Keep the original column names, and separate the "
            "columns with commas, tabs or semicolons"
        )
    # As in a spreadsheet, the header is row 1.
    longer_rows = [n for n, row in enumerate(read, 2) if any(row.pop(None, ()))]
    if longer_rows:
        raise ValueError(
            f"{path}: no row may have more cells than the header, because its label may be in "
            f"the wrong column, got the rows {longer_rows[:_SHOWN]}. Quote every cell that "
            "contains the separator"
        )
    every = [{key: _as_text(cell) for key, cell in row.items()} for row in read]
    rows = [
        (f"{path}, row {n}, column", row)
        for n, row in enumerate(every, 2)
        if (row["label"] or "").strip()
    ]
    matched = _matched(rows, graphs)
    if not rows:
        raise ValueError(
            f"{path}: at least one of the {len(every)} rows must have a value in the "
            'column "label", but the column is empty. Fill in the column'
        )
    return matched


def _as_cell(text):
    """Escape a text that a spreadsheet would interpret as a formula."""
    return f"'{text}" if text.lstrip("'")[:1] in _FORMULA else text


def _as_text(cell):
    """Undo `_as_cell`."""
    is_text = isinstance(cell, str) and cell.startswith("'")
    return cell[1:] if is_text and cell.lstrip("'")[:1] in _FORMULA else cell


def _rows(graphs, words, order, sources):
    """Yield one table row per claim, with the problems in the given order."""
    batch = as_batch(graphs)
    names = _names(batch)
    for i in range(len(batch)) if order is None else order:
        graph = batch[i]
        problem_columns = {
            "problem_id": names[i],
            "problem": graph.problem or "",
            "context": "\n\n".join(graph.context or ()),
        }
        claims = graph.claims or ()
        for v, claim in enumerate(claims):
            source = sources and sources[i][v]
            parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
            row = problem_columns | {"claim_number": v + 1, "claim": claim}
            row["premises"] = "\n".join(f"{u + 1}. {claims[u]}" for u in parents)
            row["label"] = None if words is None else words[i][v]
            row["annotator"] = source and source.by
            for key in ("when", "seconds", "note"):
                row[key] = source and getattr(source, key)
            yield row


def _names(batch):
    """Return the id or the number of each problem, or raise ValueError if ids are repeated."""
    numbered = enumerate(batch, start=1)
    names = [number if graph.id is None else graph.id for number, graph in numbered]
    twice = [name for name, n in Counter(map(str, names)).items() if n > 1]
    if twice:
        raise ValueError(
            "problem ids must be unique, because they assign labels to problems, but "
            f"{twice[0]!r} is repeated. Change one of these ids"
        )
    return names


def _matched(rows, graphs):
    """Return the verdicts of each annotator, given table rows and their locations in the file."""
    batch = as_batch(graphs)
    matched: dict[str, Words] = {}
    words_of_claim: dict[tuple[str, int, int], list[tuple[datetime | None, str]]] = {}
    positions = {str(name): i for i, name in enumerate(_names(batch))}
    claims = [graph.claims or () for graph in batch]
    faults = []
    for place, row in rows:
        try:
            i, v = _claim_of(row, place, positions, claims)
            verdict = _verdict(row["label"], place)
        except ValueError as error:
            faults.append(str(error))
            continue
        by = str(row.get("annotator") or "imported")
        words_of_claim.setdefault((by, i, v), []).append(
            (_time_of(row.get("when")), verdict)
        )
    if faults:
        if n_more := len(faults[_SHOWN:]):
            faults[_SHOWN:] = [f"{counted(n_more, 'other row')} cannot be read either"]
        raise ValueError(". ".join(faults))
    for (by, i, v), words_said in words_of_claim.items():
        words = matched.setdefault(by, [[None] * n for n in batch.sizes.tolist()])
        words[i][v] = _latest(words_said, f"claim {v + 1} of {batch.name_of(i)}", by)
    return matched


def _claim_of(row, place, positions, claims):
    """Return the positions of the problem and claim of a row, or raise ValueError."""
    name = str(row.get("problem_id"))
    if name not in positions:
        raise ValueError(
            f'{place} "problem_id": no problem in the file has the id {name!r}. Restore '
            "the exported id"
        )
    i = positions[name]
    number = str(row.get("claim_number")).strip()
    numbers = [str(v + 1) for v in range(len(claims[i]))]
    if number not in numbers:
        raise ValueError(
            f'{place} "claim_number": the number must be from 1 to {len(numbers)} for '
            f"problem {name!r}, got {number!r}. Restore the exported number"
        )
    v = numbers.index(number)
    text = row.get("claim")
    if text is not None and str(text).split() != claims[i][v].split():
        raise ValueError(
            f'{place} "claim": the text of claim {number} of problem {name!r} was changed '
            f"to {str(text)!r:.80}, so the label may belong to another claim. Restore the "
            "exported text"
        )
    return i, v


def _verdict(label, place):
    """Return the verdict that a word represents, or raise ValueError if the word is unknown."""
    word = word_key(label)
    if word in WORDS:
        return word
    if word in UNSURE_WORDS:
        return "unsure"
    if word not in LABEL_WORDS:
        raise ValueError(
            f'{place} "label": the label must be one of {[w for w in WORDS if w]}, or '
            'another word with a known meaning, such as "yes" or "unsupported", got '
            f"{label!r}"
        )
    return _MEANINGS[LABEL_WORDS[word]]


def _latest(said, claim, by):
    """Return the latest verdict of an annotator on a claim."""
    if len({word for _, word in said}) == 1:
        return said[0][1]
    times = [time for time, _ in said]
    latest = None if None in times else max(times)
    last = {word for time, word in said if time == latest}
    words = [word for _, word in said]
    if latest is None or len(last) > 1:
        raise ValueError(
            f"{by} judged {claim} several times with the verdicts {words}, but the latest "
            "verdict is unknown, because the verdicts do not have different ISO 8601 "
            "dates. Keep only one of these verdicts"
        )
    warn(
        f"{by} judged {claim} several times with the verdicts {words}. The latest "
        "verdict is used",
        LabelWarning,
    )
    return last.pop()


def _time_of(when):
    """Parse an ISO 8601 time (UTC by default), or return None if the time is invalid."""
    try:
        time = datetime.fromisoformat(str(when or ""))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
