"""Labels for other programs, and back: Label Studio, and tables as CSV."""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..._checks import warn
from ..._files import replaced
from ...exceptions import LabelWarning
from ...graphs import as_batch
from .sources import WORDS, get_label_sources

Words = list[list[str | None]]

#: The interface of Label Studio that the tasks belong to, for "Labeling interface".
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

#: What spreadsheets take for the beginning of a formula.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # of any width
_VERDICT = {"from_name": "verdict", "to_name": "claim", "type": "choices"}


def to_label_studio(
    graphs: Any, words: Sequence[Sequence[str | None]] | None = None
) -> list[dict[str, Any]]:
    """Tasks for Label Studio, one per claim, with the judgements so far.

    Who judged stands in the data of the task: the import of Label Studio refuses
    annotators that it does not know, and gives annotations to whoever imports them.

    Parameters
    ----------
    graphs : sequence of ReasoningGraph, or GraphBatch
        With claims.
    words : sequence of sequences, one per problem, optional
        Per claim "true", "false", "unsure", "unknown" or None, as `LabelStore.export`
        gives them.

    Returns
    -------
    list of dict
        To be written as JSON and imported. Their labelling interface is
        ``skdcf.apps.labelling.exchange.LABEL_STUDIO_CONFIG``.

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
    for graph, row in _rows(graphs, words):
        word = row.pop("label")
        row["context"] = "\n\n".join(graph.context or ())
        task: dict[str, Any] = {"data": row}
        if word is not None:
            choice = _VERDICT | {"value": {"choices": [word]}}
            task["annotations"] = [{"result": [choice]}]
        tasks.append(task)
    return tasks


def from_label_studio(tasks: Iterable[Mapping[str, Any]], graphs: Any) -> dict:
    """Read what was judged in Label Studio, from its export as JSON.

    Parameters
    ----------
    tasks : list of dict
        The export called "JSON", read with `json.load`.
    graphs : sequence of ReasoningGraph, or GraphBatch
        The problems that `to_label_studio` made the tasks of.

    Returns
    -------
    dict of str to list of lists
        For each annotator, per problem and claim "true", "false", "unsure", "unknown" or
        None.
        Annotators have the address or the number that Label Studio gives them. Of two
        annotations of one claim by one annotator the later counts.

    Raises
    ------
    ValueError
        If a task belongs to no claim of these problems, if no task holds a verdict, if one
        annotator judged a claim twice differently and no date tells which is later, or if two
        problems have one id.

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
    for task in tasks:
        if not isinstance(task, Mapping) or not isinstance(task.get("data"), Mapping):
            raise ValueError('a task has no "data": export as "JSON", not "JSON-MIN"')
        counts["drafts"] += len(task.get("drafts") or ())
        for annotation in task.get("annotations") or ():
            if not isinstance(annotation, Mapping):
                raise ValueError(
                    f"an annotation is {annotation!r:.40}, but must be an object: export as "
                    '"JSON", which holds the annotations and not only their numbers'
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
                rows.append({**task["data"], **judgement})
    n_silent = counts["annotations"] - len(rows)
    if rows and n_silent:
        warn(
            f'{n_silent} of {counts["annotations"]} annotations hold no choice of "verdict" and '
            f"are left out; found: {_counted(counts)}",
            LabelWarning,
        )
    matched = _matched(rows, graphs)
    if not rows:
        raise ValueError(
            f'no task holds a choice of the control "verdict"; found: {_counted(counts)}. '
            "Submit drafts, and name the control as in LABEL_STUDIO_CONFIG"
        )
    return matched


def _chosen(annotation, found):
    """The verdict in an annotation of Label Studio; of two different ones "unsure"."""
    words = set()
    for choice in annotation.get("result") or ():
        name = choice.get("from_name")
        value = choice.get("value") or {}
        if name == "verdict" and value.get("choices"):
            words |= {*value["choices"]}
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
            f"an annotation chose {sorted(map(str, words))} for one claim, which is read as "
            "unsure",
            LabelWarning,
        )
        return "unsure"
    return words.pop() if words else None


def _counted(found):
    """What an export holds, in words."""
    return ", ".join(f"{n} {what}" for what, n in found.items() if n)


def write_csv(
    path: str | os.PathLike[str],
    graphs: Any,
    words: Sequence[Sequence[str | None]] | None = None,
) -> None:
    """Write a table with one row per claim, for a spreadsheet.

    Parameters
    ----------
    path : path-like
    graphs : sequence of ReasoningGraph, or GraphBatch
        With claims.
    words : sequence of sequences, one per problem, optional
        Per claim "true", "false", "unsure", "unknown" or None.
    """
    rows = [
        {
            key: _as_cell(cell) if isinstance(cell, str) else cell
            for key, cell in row.items()
        }
        for _, row in _rows(graphs, words)
    ]
    with replaced(path, encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]) if rows else ["problem_id"])
        table.writeheader()
        table.writerows(rows)


def read_csv(path: str | os.PathLike[str], graphs: Any) -> dict[str, Words]:
    """Read labels from a table that `write_csv` wrote and somebody filled in.

    Parameters
    ----------
    path : path-like
        In UTF-8 or UTF-16, with commas, tabs or semicolons. Needed are the columns problem_id,
        claim_number and label; an empty label says nothing. Labels are true, false, unsure
        (looked at, and not called true), no claim (a sentence that claims nothing) or unknown (not
        looked at).
    graphs : sequence of ReasoningGraph, or GraphBatch

    Returns
    -------
    dict of str to list of lists
        As `from_label_studio`; "imported" where the column annotator says nothing.

    Raises
    ------
    ValueError
        If the file is in another encoding, if a column is missing, if no row has a label, if
        a row belongs to no claim of these problems or holds no such label, if one annotator
        gave a claim two labels and no date tells which is later, or if two problems have one
        id.
    """
    text = _decoded(path)
    head = text.partition("\n")[0]
    delimiter = max(",\t;", key=head.count)
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = Counter(name for name in table.fieldnames or () if name)
    if twice := [name for name, n in columns.items() if n > 1]:
        raise ValueError(f"{path} has several columns {twice[0]!r}: leave one of them")
    if missing := {"problem_id", "claim_number", "label"} - {*(table.fieldnames or ())}:
        raise ValueError(
            f"{path} has the columns {table.fieldnames or []}, without {sorted(missing)}: "
            "separate columns by commas, tabs or semicolons, and keep their names"
        )
    every = [{key: _as_text(cell) for key, cell in row.items()} for row in table]
    rows = [row for row in every if (row["label"] or "").strip()]
    matched = _matched(rows, graphs)
    if not rows:
        raise ValueError(f'{path}: none of its {len(every)} rows has a "label"')
    return matched


def _decoded(path):
    """The text of a table in the encoding that its first bytes tell, else in UTF-8."""
    content = Path(path).read_bytes()
    is_utf32 = content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if is_utf32 or (b"\0" in content and not is_utf16):
        raise ValueError(
            f"{path} is no table in UTF-8, but in UTF-32, in UTF-16 without its mark, or a "
            'workbook. Save it as "CSV UTF-8"'
        )
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: the byte {content[error.start]:#x} is not "
            f"{'UTF-16' if is_utf16 else 'UTF-8'}; the table may be in Windows-1252 (cp1252). "
            'Save it as "CSV UTF-8"'
        ) from None


def _as_cell(text):
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip("'")[:1] in _FORMULA else text


def _as_text(cell):
    """A text as it was before `_as_cell`."""
    is_text = isinstance(cell, str) and cell.startswith("'")
    return cell[1:] if is_text and cell.lstrip("'")[:1] in _FORMULA else cell


def _rows(graphs, words):
    """Yield each claim with its graph and what the tables say of it."""
    batch = as_batch(graphs)
    for i, (name, graph) in enumerate(zip(_names(batch), batch, strict=True)):
        problem_columns = {"problem_id": name, "problem": graph.problem or ""}
        claims = graph.claims or ()
        sources = get_label_sources(graph) if claims else ()
        for v, (claim, source) in enumerate(zip(claims, sources, strict=True)):
            parents = graph.edges[graph.edges[:, 1] == v, 0].tolist()
            row = problem_columns | {"claim_number": v + 1, "claim": claim}
            row["premises"] = "\n".join(f"{u + 1}. {claims[u]}" for u in parents)
            row["label"] = None if words is None else words[i][v]
            row["annotator"] = source and source.by
            for key in ("when", "seconds", "note"):
                row[key] = source and getattr(source, key)
            yield graph, row


def _names(batch):
    """The id of each problem, or its number; ValueError where two have the same."""
    numbered = enumerate(batch, start=1)
    names = [number if graph.id is None else graph.id for number, graph in numbered]
    twice = [name for name, n in Counter(map(str, names)).items() if n > 1]
    if twice:
        raise ValueError(
            f"several problems have the id {twice[0]!r}: whose label is it?"
        )
    return names


def _matched(rows, graphs):
    """Words by annotator, of rows that name a problem, a claim and a label."""
    batch = as_batch(graphs)
    matched: dict[str, Words] = {}
    words_of_claim: dict[tuple[str, int, int], list[tuple[datetime | None, str]]] = {}
    places = {}
    for i, (name, graph) in enumerate(zip(_names(batch), batch, strict=True)):
        for v, text in enumerate(graph.claims or ()):
            places[str(name), str(v + 1)] = i, v, text.split()
    for number, row in enumerate(rows, start=1):
        key = str(row.get("problem_id")), str(row.get("claim_number")).strip()
        i, v, expected_words = places.get(key, (0, 0, None))
        claim_words = (
            expected_words if row.get("claim") is None else str(row["claim"]).split()
        )
        word = str(row["label"]).strip().lower()
        if expected_words is None or claim_words != expected_words or word not in WORDS:
            raise ValueError(
                f"judgement {number}, {row['label']!r} of claim "
                f"{row.get('claim_number')!r} of problem {row.get('problem_id')!r}: it has "
                "to belong to a claim of the file, with its text, and be one of "
                f"{[w for w in WORDS if w]}"
            )
        by = str(row.get("annotator") or "imported")
        words_of_claim.setdefault((by, i, v), []).append(
            (_time_of(row.get("when")), word)
        )
    for (by, i, v), words_said in words_of_claim.items():
        words = matched.setdefault(by, [[None] * n for n in batch.sizes.tolist()])
        words[i][v] = _latest(words_said, f"claim {v + 1} of {batch.name_of(i)}", by)
    return matched


def _latest(said, claim, by):
    """The last word of what one person said about a claim."""
    if len({word for _, word in said}) == 1:
        return said[0][1]
    times = [time for time, _ in said]
    latest = None if None in times else max(times)
    last = {word for time, word in said if time == latest}
    words = [word for _, word in said]
    if latest is None or len(last) > 1:
        raise ValueError(
            f"{by} judged {claim} several times, {words}, and no dates tell which is the "
            "last: leave one of them"
        )
    warn(f"{by} judged {claim} several times, {words}: the latest counts", LabelWarning)
    return last.pop()


def _time_of(when):
    """A time in ISO 8601, in UTC unless it says otherwise; None if there is none."""
    try:
        time = datetime.fromisoformat(str(when or ""))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
