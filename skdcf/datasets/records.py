"""Convert records, such as the objects in a JSON Lines file, to problems, and vice versa.

`KEYS` describes the form of a record. Only this module validates records.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, wraps
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, printable
from .._docs import documented
from .._messages import Message, message_of
from ..graphs import GraphBatch, ReasoningGraph
from ..graphs.ragged import offsets_of
from ..identity import question_groups
from ..labels import LabelList
from .lines import refuse_surrogates
from .paths import MISSING, decoded, paths_of, value_at

#: Nesting depth of the lists under each key, and the types of the values in these lists.
KEYS: dict[str, tuple[int, frozenset[type]]] = {
    "version": (0, frozenset([int])),
    "id": (0, frozenset([str, int])),
    "problem": (0, frozenset([str])),
    "claims": (1, frozenset([str])),
    "alternatives": (1, frozenset([str])),
    "context": (1, frozenset([str])),
    "features": (2, frozenset([float, int])),
    "n_features": (0, frozenset([int])),
    "feature_names": (1, frozenset([str])),
    "edges": (2, frozenset([int])),
    "parents": (2, frozenset([int])),
    "labels": (1, frozenset([int, float, bool, str, type(None)])),
    "mask": (1, frozenset([bool])),
    "group": (0, frozenset([str, int])),
    "provenance": (0, frozenset([dict])),
    "metadata": (0, frozenset([dict])),
}
_NOUNS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}
#: Meanings of the values that a label may have in a file. The values true and false equal 1 and 0.
_LABELS = {1: 1, 0: 0, -1: -1, None: -1, "": -1, "unsure": 0, "no claim": 1}
_F = TypeVar("_F", bound=Callable)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_PLAIN = {str, int, float, bool, type(None)}
#: Metadata key that lists the unknown keys of a line.
OWN = "own_keys"
#: Errors that an invalid record may cause.
BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
)


def spread(options: Any, **defaults: Any) -> Callable[[_F], _F]:
    """Return a decorator that adds options to the signature of a function with ``**options``.

    Parameters
    ----------
    options : TypedDict class, or dict of str to type
        The options.
    **defaults
        Default option values. All other options default to None.
    """

    fields = options if isinstance(options, dict) else options.__annotations__
    # Show type aliases such as Labels by name instead of their definitions.
    hints = {name: getattr(h, "__forward_arg__", h) for name, h in fields.items()}

    def decorate(function):
        signature = inspect.signature(function)
        *own_options, _ = signature.parameters.values()
        shown = [
            inspect.Parameter(k, _KEYWORD, default=defaults.get(k), annotation=hint)
            for k, hint in hints.items()
        ]
        signature = signature.replace(parameters=[*own_options, *shown])

        @wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return documented(call)

    return decorate


class Problem(NamedTuple):
    """A problem and the other values in its JSON line. Missing values are None."""

    graph: ReasoningGraph
    labels: np.ndarray | None = None
    mask: np.ndarray | None = None
    group: str | int | None = None
    metadata: dict[str, Any] | None = None


class Columns(NamedTuple):
    """The contents of several lines, with one entry per line in each field of `Problem`."""

    graphs: GraphBatch
    labels: Sequence[np.ndarray | None]
    masks: Sequence[np.ndarray | None]
    groups: Sequence[str | int | None]
    metadata: Sequence[dict[str, Any] | None]

    @classmethod
    def from_problems(cls, problems: Iterable[Problem]) -> Columns:
        """Collect problems, or raise ValueError if their features differ."""
        graphs, *columns = zip(*problems, strict=True)
        return cls(GraphBatch.from_graphs(graphs), *columns)

    def take(self, rows: Sequence[int]) -> Columns:
        """Return the problems at the given positions."""
        columns: Any = ([column[i] for i in rows] for column in self[1:])
        return Columns(self.graphs[rows], *columns)

    def problems(self) -> Iterator[Problem]:
        """Yield the problem of each line."""
        return map(Problem._make, zip(*self, strict=True))


# --- reading ------------------------------------------------------------------------------


def read_problem(record: Any, rename: Mapping[str, str] | None = None) -> Problem:
    """Convert a record to a `Problem`, or raise ValueError if the record is invalid."""
    [problem] = pack([read_row(record, rename)]).problems()
    return problem


def read_row(record: Any, rename: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the checked values of a record.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : dict, optional
        Mapping from other keys and paths to keys of `KEYS`.

    Returns
    -------
    row : dict
        The values that are known, as plain lists and numbers. Keys with alternative spellings are
        unified. The metadata contain the group and the values of unknown keys.

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
        row["context"] = _passages(row["context"])
    for key, value in row.items():
        _check_types(value, *KEYS[key], key)
    _check_values(row)
    if "claims" not in row and "features" not in row:
        raise ValueError(
            f"the problem must have claims or features, got only the keys {sorted(record)}. If "
            "the claims have another key, rename it to claims"
        )
    _check_sizes(row)
    _read_edges(row)
    _convert(row)
    _merge_metadata(row, own)
    return row


def rename_keys(record: dict[str, Any], rename: Mapping[str, str]) -> dict[str, Any]:
    """Return the record with its keys renamed to keys of `KEYS`.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : mapping of str to str
        Mapping from keys or paths in the record to keys of `KEYS`.

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
        if value is MISSING and present is not None:
            continue
        if value is MISSING:
            raise ValueError(describe_missing(record, theirs, ours))
        renamed.pop(theirs, None)
        is_inside = re.match(rf"{re.escape(ours)}[.\[]", theirs)
        if not (present is None or is_inside or _are_equal(ours, present, value)):
            raise ValueError(
                f"{ours!r} must not be set twice, but {theirs!r} sets it to another value. Remove "
                "one of the two keys"
            )
        renamed[ours] = value
    return renamed


def describe_missing(record: dict[str, Any], theirs: str, ours: str) -> str:
    """Return the message of the error for a record without a value at a path.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    theirs, ours : str
        The path, and the key as which its value is read.

    Returns
    -------
    message : str
        The message, which lists the paths that exist.
    """
    keys = ", ".join(printable(path) for path in paths_of(record))
    advice = ""
    if "." in theirs or "[" in theirs:
        advice = (
            '. If each line is a span or a run, join the lines of each trace first (see "From a '
            'tracing tool" in the guide)'
        )
    return (
        f"each line must have a value at {theirs!r}, which is read as {ours}, but this line has "
        f"only the keys {keys}. Write null if the value is unknown{advice}"
    )


def _are_equal(key, value, other):
    if key == "context":
        return _passages(value) == _passages(other)
    return value == other


def _passages(value):
    """Return the context as a list, given a list, a JSON string of a list, or one passage."""
    value = decoded(value)
    return [value] if isinstance(value, str) else value


@lru_cache(1000)
def _refuse_near(key):
    names = [name for name in KEYS if len(name) > 3]
    close = get_close_matches(key.lower(), names, 1, 0.8)
    if close and abs(len(close[0]) - len(key)) < 2:
        raise ValueError(
            f'unknown key "{printable(key)}": did you mean "{close[0]}"? Rename it, or move your '
            'own data into an object called "metadata"'
        )


def _check_types(value, depth, types, place):
    """Raise ValueError unless a value has the type that `KEYS` states."""
    values = [value]
    for _ in range(depth):
        if not {*map(type, values)} <= {list}:
            break
        values = [*chain.from_iterable(values)]
    else:
        if types.issuperset(map(type, values)):
            return
    if depth and type(value) is list:
        for k, entry in enumerate(value):
            _check_types(entry, depth - 1, types, f"{place}[{k}]")
    nouns = sorted(_NOUNS[each] for each in ([list] if depth else types))
    shown = printable(repr(value))
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise ValueError(f"{place} must be {' or '.join(nouns)}, got {shown}")


def _check_values(row):
    """Raise ValueError for a value of the right type that is invalid. Labels become numbers."""
    if row.pop("version", 1) != 1:
        raise ValueError("version must be 1. Update the package to read later versions")
    if row.get("n_features", 0) < 0:
        raise ValueError(f"n_features must be at least 0, got {row['n_features']}")
    for k, text in enumerate(row.get("context", ())):
        _check_passage(text, f"context[{k}]")
    labels = row.get("labels", ())
    if wrong := set(labels) - _LABELS.keys():
        label = wrong.pop()
        raise ValueError(
            f"labels[{labels.index(label)}] must be 1 (true), 0 (false), -1 (not judged), "
            f"'unsure' or 'no claim', got {label!r:.40}"
        )
    features = row.get("features", ())
    if len({*map(len, features)}) > 1:
        raise ValueError("features must have rows of the same length, one per claim")
    if not _are_finite(features):
        raise ValueError("features must be finite, but a number is too large")


def _are_finite(features):
    try:
        return all(map(math.isfinite, chain.from_iterable(features)))
    except OverflowError:
        return False


def _check_passage(text, place):
    if not text.strip():
        raise ValueError(
            f"{place} must not be empty. An empty list means that there are no passages"
        )
    if text.lstrip().startswith(("['", '["')):
        raise ValueError(
            f"{place} must be one passage, but it is the text of a list, {text!r:.40}. "
            "Write the list as JSON"
        )


def _check_sizes(row):
    n_claims = len(row.get("claims", row.get("features")))
    for key in ("features", "labels", "mask", "parents"):
        if key in row and len(row[key]) != n_claims:
            raise ValueError(
                f"{key} must have one entry for each of the {n_claims} claims, got {len(row[key])}"
            )


def _read_edges(row):
    """Convert parents to edges, and raise ValueError if they are not those of a DAG."""
    if "parents" in row:
        if "edges" in row:
            raise ValueError(
                "edges and parents must not both be given. Remove one of them"
            )
        parents = enumerate(row.pop("parents"))
        row["edges"] = [[u, v] for v, above in parents for u in above]
    n_claims = len(row.get("claims", row.get("features")))
    pairs = row.get("edges", ())
    if not {*map(len, pairs)} <= {2}:
        pair = next(pair for pair in pairs if len(pair) != 2)
        raise ValueError(
            f"edges[{pairs.index(pair)}] must be a pair [parent, child], got {pair!r:.40}"
        )
    if not all(0 <= u < v < n_claims for u, v in pairs):
        ReasoningGraph(np.empty((n_claims, 0)), pairs)  # Raises an error.


def _convert(row):
    """Convert the numbers of a row to arrays."""
    if "features" in row:
        n_claims = len(row["features"])
        width = len(row["features"][0]) if n_claims else row.get("n_features", 0)
        row["features"] = np.array(row["features"], float).reshape(n_claims, width)
    row.pop("n_features", None)
    if "edges" in row:
        row["edges"] = np.array(row["edges"], np.int64).reshape(-1, 2)
    if "labels" in row:
        row["labels"] = np.array([_LABELS[label] for label in row["labels"]], np.int64)
    if "mask" in row:
        row["mask"] = np.array(row["mask"], bool)


def _merge_metadata(row, own):
    """Add the group and the values of unknown keys to the metadata."""
    given = row.get("metadata")
    metadata = dict(given or {})
    more = own | {"group": row["group"]} if "group" in row else own
    for key, value in more.items():
        if metadata.setdefault(key, value) != value:
            raise ValueError(
                f"{key!r} must have a single value, got {value!r} in the line and "
                f"{metadata[key]!r} in its metadata"
            )
    if own:
        metadata[OWN] = [*metadata.get(OWN, ()), *own]
    if metadata.get("group") is not None:
        _check_types(metadata["group"], *KEYS["group"], "group")
        row["group"] = metadata["group"]
    if metadata or given is not None:
        row["metadata"] = metadata


def pack(rows: Sequence[dict[str, Any]]) -> Columns:
    """Return the problems of several rows, or raise ValueError if their features differ."""
    has_features = {"features" in row for row in rows}
    names = {tuple(row.get("feature_names", ())) for row in rows}
    widths = {row["features"].shape[1] for row in rows if "features" in row}
    if max(len(has_features), len(names), len(widths)) > 1:
        # The container names two problems that differ.
        graphs = GraphBatch.from_graphs(map(_graph, rows))
    else:
        graphs = _pack_graphs(rows)
    return Columns(
        graphs=graphs,
        labels=_column(rows, "labels"),
        masks=_column(rows, "mask"),
        groups=_column(rows, "group"),
        metadata=_column(rows, "metadata"),
    )


def _graph(row):
    fields = {key: row[key] for key in row if key not in ("labels", "mask", "group")}
    return ReasoningGraph(**fields)


def _pack_graphs(rows):
    """Return the graphs of rows that have the same features."""
    sizes = [len(row.get("claims", row.get("features"))) for row in rows]
    offsets = offsets_of(sizes)
    features = None
    if "features" in rows[0]:
        features = np.concatenate(_column(rows, "features"))
    unknown = np.empty((0, 2), dtype=np.int64)
    pairs = [row.get("edges", unknown) for row in rows]
    first_claims = np.repeat(offsets[:-1], [*map(len, pairs)])
    edges = np.concatenate(pairs) + first_claims[:, None]
    claims = (
        row.get("claims", [None] * size) for row, size in zip(rows, sizes, strict=True)
    )
    return GraphBatch.from_arrays(
        features,
        offsets,
        edges,
        edges_known=["edges" in row for row in rows],
        claims=chain.from_iterable(claims),
        problems=_column(rows, "problem"),
        alternatives=_column(rows, "alternatives"),
        context=_column(rows, "context"),
        feature_names=rows[0].get("feature_names"),
        ids=_column(rows, "id"),
        provenance=_column(rows, "provenance"),
        metadata=_column(rows, "metadata"),
    )


def _column(rows, key):
    return [row.get(key) for row in rows]


# --- writing ------------------------------------------------------------------------------


def format_problem(problem: Any) -> str:
    """Convert a `Problem` to one line of JSON in ASCII."""
    graph, labels, mask, group, metadata = problem
    if not isinstance(graph, ReasoningGraph):
        raise ValueError(
            f"graphs must contain ReasoningGraph objects, got {type(graph).__name__}"
        )
    if not isinstance(metadata, Mapping | None):
        raise ValueError(f"metadata must be a dict, got {type(metadata).__name__}")
    fields = graph.to_dict()
    known = fields.pop("metadata", None)
    free = plain({**(known or {}), **(metadata or {})})
    given_group = free.pop("group", None)
    own = {key: free.pop(key) for key in free.pop(OWN, ()) if key in free}
    if free or (known, metadata) in (({}, None), (None, {}), ({}, {})):
        fields["metadata"] = free
    fields["group"] = given_group if group is None else group
    fields |= {"labels": plain(labels, list), "mask": plain(mask, list)}
    record = {"version": 1} | plain(fields)
    record = {key: value for key, value in record.items() if value is not None} | own
    row = read_row(record)
    if "labels" in row:
        record["labels"] = row["labels"].tolist()
    line = json.dumps(record, allow_nan=False)
    if "\\ud" in line:
        refuse_surrogates(record)
    free_fields = {"metadata": free, **own}
    back = json.loads(json.dumps(free_fields))
    if wrong := [key for key, value in free_fields.items() if back.get(key) != value]:
        raise ValueError(
            f"{wrong[0]} must contain only JSON types, because values of other types "
            "would change when they are written. Use lists instead of tuples, and "
            "strings as keys"
        )
    return line


def plain(value: Any, tuples: Any = tuple) -> Any:
    """Convert numpy arrays and scalars to plain values, including those in lists and dictionaries.

    Tuples are converted by calling ``tuples``, for example ``list``.
    """
    if isinstance(value, dict):
        return {key: plain(item, tuples) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuples
        if set(map(type, value)) <= _PLAIN:
            return kind(value)
        return kind(plain(item, tuples) for item in value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


# --- data sets ----------------------------------------------------------------------------


@documented
def build_dataset(
    records: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    parse: Callable[[Any], dict[str, Any]],
    *,
    descr: str = "",
    on_invalid: Literal["raise", "drop"] = "raise",
    return_X_y: bool = False,
    return_groups: bool = False,
) -> Any:
    """Create a data set from records in any format.

    All ``fetch_*`` functions call `build_dataset`.

    Parameters
    ----------
    records : dict from id to record, or iterable of (id, record)
        The records. A record's id is used as the problem id and appears in messages.
    parse : callable
        A function ``parse(record)`` that returns a dictionary with the keys of a problem line,
        which include ``claims``, ``problem``, ``edges`` or ``parents``, ``features``, ``labels``,
        ``group`` and ``metadata``. If the record is invalid, the function raises ValueError,
        LookupError, TypeError, AttributeError or OverflowError.
    descr : str
        User-facing description of the data.
    on_invalid : {"raise", "drop"}
        Whether to raise an error at the first invalid record, or to drop invalid records.
    {return_X_y}
    return_groups : bool
        Whether to return ``(graphs, labels, groups)``, with the groups that
        `skdcf.identity.question_groups` returns. This option requires ``return_X_y=True``.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays: 1
        true, 0 false, -1 unknown), ``groups`` (array with each problem's group), ``masks`` and
        ``metadata`` (lists), ``feature_names``, ``dropped`` (list of (id, reason)), and ``DESCR``.
        An attribute is None if no record has a value for it.

    Raises
    ------
    ValueError
        If a record is invalid and ``on_invalid="raise"``, if no record is left, or if groups are
        requested but the question of an answer is unknown.

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
    if return_groups and not return_X_y:
        raise ValueError(
            "return_groups=True requires return_X_y=True, got return_X_y=False"
        )
    problems = []
    dropped = []
    items = records.items() if isinstance(records, Mapping) else records
    for name, record in items:
        try:
            id = name if isinstance(name, str | int) else str(name)
            problems.append(read_row(plain(parse(record), list) | {"id": id}))
        except BROKEN as error:
            reason = message_of(error)
            if isinstance(error, KeyError):
                reason = f"the field {error.args[0]!r} is missing"
            if on_invalid == "raise":
                raise ValueError(
                    Message(f'problem "{printable(name)}": ', reason)
                ) from error
            dropped.append((name, reason))
    dataset = as_bunch(problems, dropped)
    if return_X_y:
        groups = [question_groups(dataset.graphs)] if return_groups else []
        return (dataset.graphs, dataset.labels, *groups)
    return Bunch(**dataset, DESCR=descr)


def as_bunch(rows: Sequence[dict[str, Any]], dropped: Sequence[Any] = ()) -> Bunch:
    """Return a Bunch of the problems that were not dropped."""
    if not rows and not dropped:
        raise ValueError("the data must contain at least one problem, but it is empty")
    if not rows:
        _, reason = dropped[0]
        raise ValueError(
            Message(
                f"all {len(dropped)} problems were dropped. The first reason is: ",
                reason,
            )
        )
    graphs, labels, masks, groups, metadata = pack(rows)
    if any(row is not None for row in labels):
        labels = [
            np.full(size, -1) if y is None else y
            for y, size in zip(labels, graphs.sizes, strict=True)
        ]
    known_labels = _known(labels) and LabelList(labels)
    is_small = all(type(group) is int and abs(group) < 2**63 for group in groups)
    dtype = np.int64 if is_small else object
    return Bunch(
        graphs=graphs,
        labels=known_labels,
        data=graphs,
        target=known_labels,
        groups=_known(groups) and np.fromiter(groups, dtype, len(groups)),
        masks=_known(masks),
        metadata=_known(metadata),
        feature_names=graphs.feature_names and list(graphs.feature_names),
        dropped=list(dropped),
    )


def _known(values):
    """Return the values, or None if all of them are None."""
    return None if all(value is None for value in values) else values
