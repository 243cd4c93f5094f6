"""Convert records, such as the objects in a JSON Lines file, to problems, and vice versa.

`KEYS` describes the form of a record. Only this module validates records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, check_value, printable
from ..graphs import GraphBatch, ReasoningGraph
from ..labels import LabelList
from .lines import refuse_surrogates
from .paths import MISSING, decoded, paths_of, value_at

#: Nesting depth of the lists under each key, and the types of the values in these lists.
KEYS = {
    "version": (0, int),
    "id": (0, str, int),
    "problem": (0, str),
    "claims": (1, str),
    "alternatives": (1, str),
    "context": (1, str),
    "features": (2, float, int),
    "n_features": (0, int),
    "feature_names": (1, str),
    "edges": (2, int),
    "parents": (2, int),
    "labels": (1, int, float, bool, str, type(None)),
    "mask": (1, bool),
    "group": (0, str, int),
    "provenance": (0, dict),
    "metadata": (0, dict),
}
#: Meanings of the values that a label may have in a file. The values true and false equal 1 and 0.
_LABELS = {1: 1, 0: 0, -1: -1, None: -1, "": -1, "unsure": 0, "no claim": 1}
#: Metadata key that lists the unknown keys of a line.
OWN = "own_keys"
#: Metadata key that stores the names that the file uses for our keys.
NAMES = "names_in_log"
#: Errors that an invalid record may cause.
BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
)


# --- reading ------------------------------------------------------------------------------


def read_graph(record, rename=None):
    """Convert a record to a problem, or raise ValueError if the record is invalid."""
    return read_row(record, rename)["graph"]


def read_row(record, rename=None, graph=None):
    """Return the checked values of a record.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : dict, optional
        Mapping from other keys and paths to keys in `KEYS`.
    graph : ReasoningGraph, optional
        The problem that the record describes, if it exists already.

    Returns
    -------
    row : dict
        The problem under the key ``graph``, and the labels, the mask, the group and the metadata
        if they are known. The metadata contain the group and the values of unknown keys.

    Raises
    ------
    ValueError
        If a value is invalid, or if an unknown key resembles a known one.
    """
    record = rename_keys(record, rename or {})
    own = {key: record[key] for key in record if key not in KEYS}
    for key in own:
        _refuse_near(key)
    row = {k: v for k, v in record.items() if k in KEYS and v is not None}
    if "context" in row:
        context = decoded(row["context"])
        row["context"] = [context] if isinstance(context, str) else context
    for key, value in row.items():
        _check_type(value, *KEYS[key], place=key)
    _check_values(row)
    _read_metadata(row, own)
    if "claims" not in row and "features" not in row:
        raise ValueError(
            f"the problem must have claims or features, got only the keys {sorted(record)}. If "
            "the claims have another key, rename it to claims. To split texts into claims, use "
            "skdcf split"
        )
    _read_columns(row)
    keys = "features edges claims problem alternatives context feature_names id provenance metadata"
    row["graph"] = graph or ReasoningGraph(**{k: row.get(k) for k in keys.split()})
    return row


def rename_keys(record, rename):
    """Return the record with its keys renamed to keys in `KEYS`.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : mapping of str to str
        Mapping from keys or paths in the record to keys in `KEYS`.

    Returns
    -------
    renamed : dict
        The record with the new keys. Objects and lists that contain a path are kept.

    Raises
    ------
    ValueError
        If a line has no value at a path, or if different values have the same new key.
    """
    renamed = dict(record)
    names = {"question": "problem", **rename} if "question" in record else rename
    for theirs, ours in names.items():
        value = value_at(record, theirs, ours)
        present = renamed.get(ours)
        if value is MISSING:
            if present is None:
                raise ValueError(describe_missing(record, theirs, ours))
            continue
        renamed.pop(theirs, None)
        is_inside = theirs.startswith((f"{ours}.", f"{ours}["))
        if not (present is None or is_inside or present == value):
            raise ValueError(
                f"{ours!r} must not be set twice, but {theirs!r} sets it to another value. Remove "
                "one of the two keys"
            )
        renamed[ours] = value
    return renamed


def describe_missing(record, theirs, ours):
    """Return the message for a record without a value at the path ``theirs``, read as ``ours``."""
    message = (
        f"each line must have a value at {theirs!r}, which is read as {ours}, but this line has "
        f"only the keys {', '.join(map(printable, paths_of(record)))}. Write null if the value "
        "is unknown"
    )
    if "." in theirs or "[" in theirs:
        message += (
            '. If each line is a span or a run, join the lines of each trace first (see "From a '
            'tracing tool" in the guide)'
        )
    return message


@lru_cache(1000)
def _refuse_near(key):
    names = [name for name in KEYS if len(name) > 3]
    close = get_close_matches(key.lower(), names, 1, 0.8)
    if close and abs(len(close[0]) - len(key)) < 2:
        raise ValueError(
            f'unknown key "{printable(key)}": did you mean "{close[0]}"? Rename it, or move your '
            'own data into an object called "metadata"'
        )


def _check_type(value, depth, *types, place):
    """Raise ValueError unless a value has the type that `KEYS` states."""
    if depth and type(value) is list:
        if depth > 1 or not {*types}.issuperset(map(type, value)):
            for k, entry in enumerate(value):
                _check_type(entry, depth - 1, *types, place=f"{place}[{k}]")
    elif depth or type(value) not in types:
        names = " or ".join(kind.__name__ for kind in ([list] if depth else types))
        raise ValueError(
            f"{place} must be of type {names}, got {printable(repr(value)):.60}"
        )


def _check_values(row):
    """Raise ValueError for an invalid value of the right type."""
    for k, text in enumerate(row.get("context", ())):
        if not text.strip() or text.lstrip().startswith(("['", '["')):
            raise ValueError(
                f"context[{k}] must be one passage, got {text!r:.40}. Write a list of passages as "
                "JSON, and an empty list if there are no passages"
            )
    for v, label in enumerate(row.get("labels", ())):
        if label not in _LABELS:
            raise ValueError(
                f"labels[{v}] must be 1 (true), 0 (false), -1 (not judged), 'unsure' or "
                f"'no claim', got {label!r:.40}"
            )
    if row.pop("version", 1) != 1:
        raise ValueError("version must be 1. Update the package to read later versions")


def _read_columns(row):
    """Check the values with one entry per claim, and convert parents to edges."""
    n_claims = len(row.get("claims", row.get("features")))
    for key in ("features", "labels", "mask", "parents"):
        if len(row.get(key, range(n_claims))) != n_claims:
            raise ValueError(
                f"{key} must have one entry for each of the {n_claims} claims, got {len(row[key])}"
            )
    if "parents" in row:
        if "edges" in row:
            raise ValueError(
                "edges and parents must not both be given. Remove one of them"
            )
        row["edges"] = [(u, v) for v, above in enumerate(row["parents"]) for u in above]
    if row.get("features") == []:
        row["features"] = np.empty(
            (0, row.get("n_features", len(row.get("feature_names", ()))))
        )
    if "labels" in row:
        row["labels"] = np.array([_LABELS[label] for label in row["labels"]], np.int64)
    if "mask" in row:
        row["mask"] = np.array(row["mask"], bool)


def _read_metadata(row, own):
    """Add the group and the values of unknown keys to the metadata."""
    more = own | {"group": row["group"]} if "group" in row else own
    metadata = {**more, **row.get("metadata", {})}
    for key, value in more.items():
        if metadata[key] != value:
            raise ValueError(
                f"{key!r} must have a single value, got {value!r} in the line and "
                f"{metadata[key]!r} in its metadata"
            )
    if own:
        metadata[OWN] = [*metadata.get(OWN, ()), *own]
    if metadata.get("group") is not None:
        _check_type(metadata["group"], *KEYS["group"], place="group")
        row["group"] = metadata["group"]
    if metadata:
        row["metadata"] = metadata


# --- writing ------------------------------------------------------------------------------


def format_problem(graph, labels=None, mask=None, group=None, metadata=None):
    """Convert a problem and its values to one line of JSON in ASCII."""
    fields = {"version": 1, **graph.to_dict()}
    free = {**(fields.pop("metadata", None) or {}), **(metadata or {})}
    group_in_metadata = free.pop("group", None)
    own = {key: free.pop(key) for key in free.pop(OWN, ()) if key in free}
    fields |= {
        "labels": labels,
        "mask": mask,
        "metadata": free or None,
        "group": group_in_metadata if group is None else group,
    }
    record = plain({k: v for k, v in fields.items() if v is not None} | own)
    # The caller may have changed the dict after the graph was created.
    check_value("provenance", record.get("provenance", {}))
    row = read_row(record, graph=None if own else graph)
    if "labels" in row:
        record["labels"] = row["labels"].tolist()
    line = json.dumps(record, allow_nan=False)
    if "\\ud" in line:
        refuse_surrogates(record)
    # The types of all other values have been checked.
    values = [*map(record.get, ["metadata", "provenance", *own])]
    if json.loads(json.dumps(values)) != values:
        raise ValueError(
            "metadata must contain only JSON types, because other values would change when they "
            "are written. Use strings as keys"
        )
    return line


def plain(value):
    """Convert numpy arrays, scalars and tuples to plain values and lists, also in containers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Most lists contain only texts or only numbers.
        if {str, int, float}.issuperset(map(type, value)):
            return [*value]
        return [*map(plain, value)]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


# --- data sets ----------------------------------------------------------------------------


def build_dataset(
    records: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    parse: Callable[[Any], dict[str, Any]],
    *,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Bunch:
    """Create a data set from records in any format.

    Parameters
    ----------
    records : dict from id to record, or iterable of (id, record)
        The records. A record's id is used as the problem id and appears in messages.
    parse : callable
        A function ``parse(record)`` that returns a dictionary with the keys of a problem line,
        which include ``claims``, ``problem``, ``edges`` or ``parents``, ``features``, ``labels``,
        ``group`` and ``metadata``. If the record is invalid, the function raises ValueError,
        LookupError, TypeError, AttributeError or OverflowError.
    on_invalid : {"raise", "drop"}
        Whether to raise an error at the first invalid record, or to drop invalid records.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1
        true, 0 false, -1 unknown), ``groups`` (array with each problem's group), ``masks`` and
        ``metadata`` (lists), ``feature_names``, and ``dropped`` (list of (id, reason)). An
        attribute is None if no record has a value for it.

    Raises
    ------
    ValueError
        If a record is invalid and ``on_invalid="raise"``, or if no record is left.

    Examples
    --------
    >>> from skdcf.datasets import build_dataset
    >>> records = [{"steps": ["2 + 2 = 4", "so 5"], "right": [True, False], "of": "q"}]
    >>> def parse(record):
    ...     return {"claims": record["steps"], "parents": [[], [0]],
    ...             "labels": record["right"], "group": record["of"]}
    >>> data = build_dataset(enumerate(records), parse)
    >>> data.graphs, data.labels
    (GraphBatch(n_graphs=1, n_claims=2, n_edges=1), [array([1, 0])])
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    rows = []
    dropped = []
    items = records.items() if isinstance(records, Mapping) else records
    for name, record in items:
        try:
            id = name if isinstance(name, str | int) else str(name)
            rows.append(read_row(plain(parse(record)) | {"id": id}))
        except BROKEN as error:
            reason = str(error)
            if isinstance(error, KeyError):
                reason = f"the field {error} is missing"
            if on_invalid == "raise":
                name = f'problem "{printable(name)}": '
                raise ValueError(name + reason.removeprefix(name)) from error
            dropped.append((name, reason))
    return as_bunch(rows, dropped)


def as_bunch(rows, dropped=()):
    """Return a Bunch of the problems that were not dropped."""
    if not rows:
        raise ValueError(
            f"the data must contain at least one problem, got none (dropped: {dropped[:1]})"
        )
    graphs = GraphBatch.from_graphs([row["graph"] for row in rows])

    def column(key):
        return (
            [row.get(key) for row in rows] if any(key in row for row in rows) else None
        )

    labels = column("labels") and LabelList(
        row["labels"] if "labels" in row else np.full(row["graph"].n_claims, -1)
        for row in rows
    )
    groups = column("group")
    if groups:
        is_small = all(type(group) is int and abs(group) < 2**63 for group in groups)
        groups = np.fromiter(groups, np.int64 if is_small else object)
    return Bunch(
        graphs=graphs,
        labels=labels,
        masks=column("mask"),
        groups=groups,
        metadata=column("metadata"),
        feature_names=graphs.feature_names and list(graphs.feature_names),
        dropped=list(dropped),
    )
