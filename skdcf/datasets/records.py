"""Convert records, such as the objects in a JSON Lines file, to problems.

A record is a dictionary in the format of the JSON schema ``schema/problem-1.json``. Only this
module validates records against the schema.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from difflib import get_close_matches
from functools import cache, lru_cache, partial, wraps
from importlib.resources import files
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, printable, warn
from .._docs import documented
from .._messages import Advice, Message, message_of
from ..exceptions import UnknownKeyWarning
from ..graphs import GraphBatch, ReasoningGraph
from ..graphs.ragged import offsets_of, slices
from ..identity import question_groups
from ..labels import LabelList, read_labels
from .paths import MISSING, value_at

VERSION = 1
# maximum total number of characters in all passages of a context
_LONGEST = 10_000_000
_TYPES: dict[str, set[type]] = {
    "array": {list},
    "object": {dict},
    "string": {str},
    "null": {type(None)},
    "boolean": {bool},
    "integer": {int},
    "number": {int, float},
}
_F = TypeVar("_F", bound=Callable)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
#: Metadata key that lists the unknown keys of a line.
OWN = "own_keys"
#: Metadata key under which passages given as objects are stored without their texts.
PASSAGES = "passages_in_log"
BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
)
_to_json = json.JSONEncoder(allow_nan=False).encode
_PLAIN = {str, int, float, bool, type(None)}
#: Names that other tools (RAGAS, LangChain, LlamaIndex, TruLens) use for the format keys.
USUAL = {
    "contexts": "context",
    "passages": "context",
    "documents": "context",
    "retrieved_contexts": "context",
    "user_input": "problem",
}
_CONTEXT_KEYS = ("context", *(k for k, ours in USUAL.items() if ours == "context"))
_LINKS = {"links", "link", "dependencies", "depends_on", "deps", "relations", "arcs"}
_LINKS |= {"adjacency", "edge_list", "edges_list", "edgelist", "dag", "premises"}
#: Keys for the text of a passage given as an object (LangChain, LlamaIndex, Haystack).
_TEXTS = ("text", "page_content", "content")
#: Keys for the text and for the other fields of a passage, used to recognise passages under an
#: unknown key.
_LIKE_TEXTS = (*_TEXTS, "snippet")
_BESIDE = {"title", "source", "score", "url", "metadata"}
# Texts with fewer words on average are considered claims or keywords, not passages.
_WORDS_OF_PASSAGE = 8
#: Pairs of keys that have the same meaning. A line may have at most one key of each pair.
_SAME = {"question": "problem", "parents": "edges"}


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
    def join(cls, blocks: Iterable[Columns | list[Problem]]) -> Columns:
        """Join blocks of problems, or raise ValueError if their features differ."""
        blocks = list(blocks)
        if blocks and all(isinstance(block, Columns) for block in blocks):
            batches, *columns = zip(*blocks, strict=True)
            joined = map(list, map(chain.from_iterable, columns))
            graphs = GraphBatch.from_graphs(chain.from_iterable(batches))
            return cls(graphs, *joined)
        problems = list(chain.from_iterable(map(problems_of, blocks)))
        graphs = GraphBatch.from_graphs([problem.graph for problem in problems])
        _, *columns = zip(*problems, strict=True)
        return cls(graphs, *columns)

    def take(self, rows: Sequence[int]) -> Columns:
        """Return the problems at the given positions."""
        columns: Any = ([column[i] for i in rows] for column in self[1:])
        return Columns(self.graphs[rows], *columns)

    def problems(self) -> Iterator[Problem]:
        """Yield the problem of each line."""
        return map(Problem._make, zip(*self, strict=True))


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
        A function ``parse(record)`` that returns a dictionary with the keys of
        ``schema/problem-1.json``, which include ``claims``, ``problem``, ``edges`` or
        ``parents``, ``features``, ``labels``, ``group`` and ``metadata``. If the record is
        invalid, the function raises ValueError, LookupError, TypeError, AttributeError or
        OverflowError.
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
    rows = []
    dropped = []
    items = records.items() if isinstance(records, Mapping) else records
    for name, record in items:
        try:
            id = name if isinstance(name, str | int) else str(name)
            rows.append(read_problem(plain(parse(record), list) | {"id": id}))
        except BROKEN as error:
            reason = _reason(error, name)
            if on_invalid == "raise":
                raise ValueError(
                    Message(f'problem "{printable(name)}": ', reason)
                ) from error
            dropped.append((name, reason))
    problems = as_bunch([rows], dropped)
    if return_X_y:
        groups = [question_groups(problems.graphs)] if return_groups else []
        return (problems.graphs, problems.labels, *groups)
    return Bunch(**problems, DESCR=descr)


def _reason(error, name):
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    reason = message_of(error)
    named = f'problem "{printable(name)}": '
    return (
        reason if reason.removeprefix(named) == reason else reason.removeprefix(named)
    )


def as_bunch(
    blocks: Iterable[Columns | list[Problem]], dropped: Sequence[Any] = ()
) -> Bunch:
    """Return a Bunch of the problems that were not dropped."""
    blocks = [block for block in blocks if block]
    if not blocks:
        if not dropped:
            raise ValueError(
                "the data must contain at least one problem, but it is empty"
            )
        raise ValueError(
            Message(
                f"all {len(dropped)} problems were dropped. The first reason is: ",
                dropped[0][1],
            )
        )
    batch, labels, masks, groups, metadata = Columns.join(blocks)
    if any(row is not None for row in labels):
        labels = [
            np.full(size, -1) if y is None else y
            for y, size in zip(labels, batch.sizes, strict=True)
        ]
    small = all(type(group) is int and abs(group) < 2**63 for group in groups)
    of = np.int64 if small else object
    listed = _column(labels, LabelList)
    return Bunch(
        graphs=batch,
        labels=listed,
        data=batch,
        target=listed,
        groups=_column(groups) and np.fromiter(groups, of, len(groups)),
        masks=_column(masks),
        metadata=_column(metadata),
        feature_names=batch.feature_names and list(batch.feature_names),
        dropped=list(dropped),
    )


def problems_of(block: Columns | list[Problem]) -> Iterable[Problem]:
    """Return the problems of a block, one by one."""
    return block.problems() if isinstance(block, Columns) else block


def _column(values, kind=list):
    """Return a list of the values, or None if all of them are None."""
    return None if all(value is None for value in values) else kind(values)


class LineReader:
    """Callable that converts the object of a line to a `Problem`.

    Several lines can also be converted at once, which is faster. Each unknown key causes at most
    one warning.

    Parameters
    ----------
    rename : dict, optional
        Mapping from other keys to keys of the format.
    own : collection of str
        Keys of user data, which may resemble keys of the format.
    finish : callable, optional
        Function ``finish(problem)`` without side effects. The result of the function is returned
        instead of the problem.
    """

    def __init__(
        self,
        rename: Mapping[str, str] | None = None,
        own: Collection[str] = (),
        finish: Callable[[Problem], Any] | None = None,
    ) -> None:
        self._options: dict[str, Any] = {"rename": rename, "own": own, "warned": set()}
        self._finish = finish

    def __call__(self, record: Any) -> Any:
        """Convert the object of a line to a problem, or raise ValueError."""
        problem = read_problem(record, **self._options)
        return problem if self._finish is None else self._finish(problem)

    def read_block(self, records: Sequence[Any]) -> Columns | list[Any] | None:
        """Convert the objects of several lines to problems, checking all values together.

        Parameters
        ----------
        records : list of dict
            The parsed objects of the lines.

        Returns
        -------
        problems : Columns, list or None
            The converted problems, or the results of ``finish``. None if the lines must be
            converted one at a time, for example because one of them is invalid.
        """
        try:
            columns = _read_packed(records, self._options)
            if columns is None or self._finish is None:
                return columns
            return list(map(self._finish, columns.problems()))
        except BROKEN:
            return None


def read_problem(
    record: Any, rename: Any = None, warned: Any = None, own: Collection[str] = ()
) -> Any:
    """Convert an object in the format of the schema to a `Problem`.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : dict, optional
        Mapping from other keys to keys of the format.
    warned : set of str, optional
        Keys that already caused a warning.
    own : collection of str
        Keys of user data, which may resemble keys of the format.

    Raises
    ------
    ValueError
        If the object does not match the schema.
    """
    fields, own_values = _split_keys(record, rename=rename, warned=warned, own=own)
    check_values(fields)
    labels = fields.pop("labels", None)
    mask = fields.pop("mask", None)
    metadata = _merge(
        fields.pop("metadata", None), fields.pop("group", None), own_values
    )
    labels = _without_words(labels)
    graph = _graph(fields, metadata)
    _check_lengths(graph, labels=labels, mask=mask)
    if labels is not None:
        labels = read_labels(labels, "claim {}".format).astype(np.int64)
    mask = None if mask is None else np.array(mask, dtype=bool)
    return Problem(graph, labels, mask, group=_group_of(metadata), metadata=metadata)


def _split_keys(record, *, rename, warned, own):
    """Return the values of a line under keys of the format, and the values under other keys."""
    record = rename_keys(record, rename or {})
    _read_texts_of_passages(record, own)
    _read_usual_names(record, own)
    own_keys = [key for key in record if key not in schemas_of_keys()]
    record = {k: v for k, v in record.items() if v is not None or k in own_keys}
    _check_keys(record, own_keys, own, set() if warned is None else warned)
    if isinstance(record.get("labels"), list):
        record["labels"] = [-1 if _is_blank(y) else y for y in record["labels"]]
    own_values = {key: record.pop(key) for key in own_keys}
    return record, own_values


#: Words that may stand for a label in a file.
_WORDS = {"unsure": 0, "no claim": 1}


def _without_words(labels):
    """Return labels in which the words that a file may contain are replaced by 0 or 1."""
    return labels and [_WORDS.get(y, y) if isinstance(y, str) else y for y in labels]


def _group_of(metadata):
    """Return the group of a problem, or None."""
    return (metadata or {}).get("group")


#: Format keys whose values packed problems can store.
_PACKED = {"version", "id", "problem", "claims", "alternatives", "context", "features"}
_PACKED |= {"feature_names", "edges", "labels", "mask", "group"}
_PACKED |= {"provenance", "metadata"}
_NUMBERS = {int, bool, float}


def _read_packed(records, options):
    """Return the problems of several lines, or None if they cannot be packed or are invalid.

    The error messages do not name the line, so invalid lines are read again one at a time.
    """
    columns = _read_columns(records, options)
    if columns is None:
        return None
    texts = columns["claims"]
    rows = columns["features"]
    sizes = [len(a if b is None else b) for a, b in zip(rows, texts, strict=True)]
    if not _are_regular(columns, sizes):
        return None
    bounds = offsets_of(sizes)
    edges = _join_edges([pairs or () for pairs in columns["edges"]], bounds)
    if edges is None:
        return None
    features = None
    if rows[0] is not None:
        features = np.array([*chain.from_iterable(rows)], dtype=float)
    claims = (c or (None,) * size for c, size in zip(texts, sizes, strict=True))
    context = [[c] if type(c) is str else c for c in columns["context"]]
    check_context(chain.from_iterable(filter(None, context)))
    batch = GraphBatch.from_arrays(
        features,
        bounds,
        edges,
        edges_known=[pairs is not None for pairs in columns["edges"]],
        claims=chain.from_iterable(claims),
        problems=columns["problem"],
        alternatives=columns["alternatives"],
        context=context,
        feature_names=columns["feature_names"][0],
        ids=columns["id"],
        provenance=columns["provenance"],
        metadata=columns["metadata"],
    )
    return Columns(
        graphs=batch,
        labels=_split_joined(columns["labels"], np.int64),
        masks=_split_joined(columns["mask"], bool),
        groups=list(map(_group_of, columns["metadata"])),
        metadata=columns["metadata"],
    )


def _read_columns(records, options):
    """Return the values of several lines by key, or None if they do not match the schema."""
    lines = records
    own_values: Any = [{}] * len(records)
    if not _are_usual(records, options["rename"]):
        pairs = [_split_keys(record, **options) for record in records]
        lines, own_values = zip(*pairs, strict=True)
    keys = set().union(*lines)
    if not keys <= _PACKED:
        return None
    columns: dict[str, Any] = dict.fromkeys(_PACKED, [None] * len(lines))
    for key in keys:
        columns[key] = [line.get(key) for line in lines]
        values = [value for value in columns[key] if value is not None]
        if not _all_fit(values, schemas_of_keys()[key]):
            return None
    metadata = columns["metadata"]
    if any(own_values) or not keys.isdisjoint(("group", "metadata")):
        metadata = list(map(_merge, metadata, columns["group"], own_values))
    labels = columns["labels"]
    if str in _types_within(labels):
        labels = [_without_words(row) for row in labels]
    return columns | {"labels": labels, "metadata": metadata}


def _are_usual(records, rename):
    """Return whether no key and no value of the lines has to be replaced before it is checked."""
    if rename or not set().union(*records) <= _PACKED:
        return False
    passages = [record.get("context") for record in records]
    labels = [record.get("labels") for record in records]
    return dict not in _types_within(passages) and _types_within(labels) <= _NUMBERS


def _types_within(values):
    """Return the types of the entries of all values that are lists."""
    lists = (value for value in values if type(value) is list)
    return set(map(type, chain.from_iterable(lists)))


def _are_regular(columns, sizes):
    """Return whether all columns have one value per claim, and all lines have the same features."""
    per_claim = ("claims", "features", "labels", "mask")
    if not all(_have_sizes(columns[key], sizes) for key in per_claim):
        return False
    names = columns["feature_names"]
    has_features = {features is not None for features in columns["features"]}
    # A table without rows does not show the number of its columns.
    is_complete = all(sizes) or has_features == {False}
    return all(n == names[0] for n in names) and len(has_features) == 1 and is_complete


def _have_sizes(column, sizes):
    """Return whether all lists in a column have the given sizes. An entry may also be None."""
    pairs = zip(column, sizes, strict=True)
    return [size if row is None else len(row) for row, size in pairs] == sizes


def _join_edges(edges, bounds):
    """Return the edges of several lines as row indices, or None if a claim position is invalid."""
    n_edges = list(map(len, edges))
    pairs = np.array(list(chain.from_iterable(edges)), dtype=np.int64).reshape(-1, 2)
    if (pairs >= np.repeat(np.diff(bounds), n_edges)[:, None]).any():
        return None
    return pairs + np.repeat(bounds[:-1], n_edges)[:, None]


def _split_joined(lists, dtype):
    """Convert each list to an array, and leave None unchanged."""
    joined = np.array([*chain.from_iterable(filter(None, lists))], dtype=dtype)
    stops = np.cumsum([len(values or ()) for values in lists]).tolist()
    return [
        None if values is None else joined[stop - len(values) : stop]
        for values, stop in zip(lists, stops, strict=True)
    ]


def format_problem(problem: Any) -> str:
    """Convert a `Problem` to one line of JSON in ASCII."""
    graph, labels, mask, group, metadata = problem
    if not isinstance(graph, ReasoningGraph):
        raise ValueError(
            f"graphs must contain ReasoningGraph objects, got {type(graph).__name__}"
        )
    if not isinstance(metadata, Mapping | None):
        raise ValueError(f"metadata must be a dict, got {type(metadata).__name__}")
    if metadata is not None or graph.metadata is not None:
        metadata = {**(graph.metadata or {}), **(metadata or {})}
    per_claim = {"labels": _per_claim(labels), "mask": _per_claim(mask)}
    _check_lengths(graph, **per_claim)
    fields = graph.to_dict()
    fields.pop("metadata", None)
    per_claim |= {"features": fields.pop("features"), "edges": fields.pop("edges")}
    fields |= {"group": group, "metadata": metadata}
    record, free = _record_of(plain(fields), per_claim)
    check_values(record)
    check_context(record.get("context"))
    text = _to_json(record)
    back = json.loads(json.dumps(free))
    if wrong := [key for key, value in free.items() if back.get(key) != value]:
        raise ValueError(
            f"{wrong[0]} must contain only JSON types, because values of other types "
            "would change when they are written. Use lists instead of tuples, and "
            "strings as keys"
        )
    return text


def _record_of(fields, per_claim):
    """Return the object of a line, and the part of it that the schema does not describe."""
    metadata = fields["metadata"]
    group = fields["group"]
    own_values = {}
    if metadata is not None:
        metadata = dict(metadata)
        group_key = metadata.pop("group", None)
        group = group_key if group is None else group
        own_values = {
            key: metadata.pop(key) for key in metadata.pop(OWN, ()) if key in metadata
        }
    fields = fields | {"group": group, "metadata": metadata} | own_values
    record = {"version": VERSION} | fields | per_claim
    record = {k: v for k, v in record.items() if v is not None or k in own_values}
    free = {k: v for k, v in record.items() if k == "metadata" or k in own_values}
    return record, free


def format_problems(columns: Columns) -> Iterator[str]:
    """Yield the line of each problem as `format_problem` does, but check all lines together.

    Parameters
    ----------
    columns : Columns
        The problems. Their metadata replace the metadata of the graphs.

    Yields
    ------
    line : str
        One line of JSON in ASCII.
    """
    try:
        lines: Any = _format_packed(columns)
    except BROKEN:
        lines = None
    if lines is None:
        graphs = columns.graphs.replace(metadata=columns.metadata)
        lines = map(format_problem, columns._replace(graphs=graphs).problems())
    yield from lines


def _format_packed(columns):
    """Return the lines of several problems, or None if they must be formatted one at a time.

    The error messages do not name the problem, so invalid problems are formatted again.
    """
    batch = columns.graphs
    sizes = batch.sizes.tolist()
    # Features of a problem without claims require an additional key.
    if not (batch.features is None or all(sizes)):
        return None
    fields = {
        "claims": _split_to_lists(batch.claims, batch.offsets),
        "alternatives": batch.alternatives,
        "context": batch.context,
        "feature_names": batch.feature_names and [batch.feature_names] * len(batch),
    }
    fields = {name: _as_lists(column) for name, column in fields.items()}
    fields |= {"problem": batch.problems, "id": batch.ids}
    fields |= {"provenance": batch.provenance}
    fields |= {"group": columns.groups, "metadata": columns.metadata}
    first_claims = np.repeat(batch.offsets[:-1], np.diff(batch.edge_offsets))
    pairs = batch.edges - first_claims[:, None]
    edges = zip(
        _split_to_lists(pairs, batch.edge_offsets), batch.edges_known, strict=True
    )
    per_claim = {
        "labels": list(map(_per_claim, columns.labels)),
        "mask": list(map(_per_claim, columns.masks)),
        "features": _split_to_lists(batch.features, batch.offsets),
        "edges": [pairs if is_known else None for pairs, is_known in edges],
    }
    if not all(_have_sizes(per_claim[name], sizes) for name in ("labels", "mask")):
        return None
    records, free = zip(
        *map(_record_of, _rows_of(fields), _rows_of(per_claim)), strict=True
    )
    for key in set().union(*records) & schemas_of_keys().keys():
        values = [record[key] for record in records if key in record]
        if not _all_fit(values, schemas_of_keys()[key]):
            return None
    check_context(chain.from_iterable(record.get("context", ()) for record in records))
    if json.loads(json.dumps(free)) != [*free]:
        return None
    return list(map(_to_json, records))


def _split_to_lists(values, offsets):
    """Return the values of each segment as a list, or None if there are no values."""
    if values is None:
        return None
    values = values.tolist()
    return [values[rows] for rows in slices(offsets)]


def _as_lists(texts):
    """Return the texts of each problem as a list, or as None if they are unknown."""
    if texts is None:
        return None
    return [None if row is None or None in row else list(row) for row in texts]


def _rows_of(columns):
    """Yield the values of each problem by key. A column that is None has no key."""
    columns = {key: column for key, column in columns.items() if column is not None}
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


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


def _is_blank(label):
    """Return whether a label is empty, which means that the claim was not judged."""
    return label is None or (isinstance(label, str) and not label.strip())


def rename_keys(record: dict[str, Any], rename: Mapping[str, str]) -> dict[str, Any]:
    """Return the record with its keys renamed to keys of the format.

    Several keys that are renamed to "context" are joined to one list of passages. Otherwise, a
    key may be set twice only if both values are equal, as in the output of ``skdcf split``.

    Parameters
    ----------
    record : dict
        The parsed object of a line.
    rename : mapping of str to str
        Mapping from keys or paths in the record to keys of the format.

    Returns
    -------
    renamed : dict
        The record with the new keys. Objects and lists that contain a path are kept.

    Raises
    ------
    ValueError
        If different values have the same new key.
    """
    if not rename and "question" not in record:
        return dict(record)
    names: dict[str, str] = {"question": "problem", **rename}
    out = {key: value for key, value in record.items() if key not in names}
    contexts = [key for key, ours in names.items() if ours == "context"]
    values = {key: value_at(record, key) for key in names}
    if len(contexts) > 1:
        last = contexts[-1]
        values[last] = _join_passages(values.pop(key) for key in contexts)
    for key, value in values.items():
        ours = "problem" if names[key] == "question" else names[key]
        if value is MISSING:
            continue
        if out.get(ours) is None:
            out[ours] = value
        elif value is not None and not _are_equal(ours, out[ours], value):
            raise ValueError(
                f"{ours!r} must not be set twice, but {key!r} sets it to another value. Remove "
                "one of the two keys"
            )
    return out


def _join_passages(values):
    """Return the passages under several keys as a list, or MISSING if no key exists."""
    found = [value for value in values if value is not MISSING]
    passages = [passage for value in found for passage in _list_passages(value)]
    return passages if found else MISSING


def _list_passages(value):
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _are_equal(key, value, other):
    """Return whether two values of a key are equal. Passages of a context are compared as texts."""
    if key != "context":
        return value == other
    return _list_texts(value) == _list_texts(other)


def _list_texts(passages):
    return [
        _text_of_passage(passage) if isinstance(passage, dict) else passage
        for passage in _list_passages(passages)
    ]


def _read_texts_of_passages(record, own):
    """Replace the passage objects under any context key with the texts of the passages."""
    for key in _CONTEXT_KEYS:
        passages = record.get(key)
        if not isinstance(passages, list) or not passages or key in own:
            continue
        if set(map(type, passages)) == {dict}:
            texts = list(map(_text_of_passage, passages))
            if all(isinstance(text, str) for text in texts):
                record[key] = texts
                if isinstance(metadata := record.get("metadata") or {}, dict):
                    record["metadata"] = {
                        **metadata,
                        PASSAGES: _without_texts(passages),
                    }


def _without_texts(passages):
    """Return the passage objects without their texts, which are stored in the context."""
    return [
        passage | {next(key for key in _TEXTS if key in passage): None}
        for passage in passages
    ]


def passages_with_texts(passages: Any, texts: Any) -> Any:
    """Return the original passage objects with their texts, titles and other data.

    Parameters
    ----------
    passages : list of dict
        The value of the metadata key `PASSAGES`.
    texts : list of str
        The context.

    Returns
    -------
    original_passages : list
        The passages, or the texts if the passages do not match the texts.
    """
    if not isinstance(passages, list) or len(passages) != len(texts):
        return texts
    return [
        passage | {next(key for key in _TEXTS if key in passage): text}
        for passage, text in zip(passages, texts, strict=True)
    ]


def _text_of_passage(passage):
    return next((passage[key] for key in _TEXTS if key in passage), None)


def _read_usual_names(record, own):
    """Rename keys of other tools to keys of the format, unless those keys already exist."""
    for theirs, ours in USUAL.items():
        if theirs in own or record.get(theirs) is None or record.get(ours) is not None:
            continue
        if _all_fit([record[theirs]], schemas_of_keys()[ours]):
            record[ours] = record.pop(theirs)


def _check_keys(record, own_keys, own, warned):
    """Raise ValueError with a description of all invalid keys, if the line has any."""
    checks = [partial(_check_near, key, record, warned) for key in own_keys]
    checks += [
        partial(refuse, key, record)
        for key in own_keys
        if key not in own
        for refuse in (_refuse_passages, _refuse_links)
    ]
    checks.append(partial(_check_content, record, own_keys))
    faults = []
    for check in checks:
        try:
            check()
        except ValueError as error:
            faults += [". And ", message_of(error)]
    if faults:
        raise ValueError(Message(*faults[1:]))


def _check_content(record, own_keys):
    """Raise ValueError if a line has neither claims nor features, even under similar keys."""
    if not ({"claims", "features"} & {*record, *map(_near, own_keys)}):
        advice = Advice(
            "name_claims",
            "add at least one of these keys. Keys with other names can be renamed, "
            'for example with rename={"steps": "claims"}',
        )
        raise ValueError(
            Message(
                "the problem must have claims or features, got only the keys "
                f"{sorted(record)}: ",
                advice,
            )
        )


def _refuse_passages(key, record):
    """Raise ValueError if texts under an unknown key may be the missing context.

    If the context were ignored, a filter would silently use only the claims.
    """
    if record.get("context") is not None:
        return
    for path, texts in _lists_of_texts(key, record[key]):
        n_words = sum(len(text.split()) for text in texts)
        is_read = any(texts == record.get(ours) for ours in schemas_of_keys())
        if is_read or n_words < _WORDS_OF_PASSAGE * len(texts):
            continue
        path_shown = printable(path)
        raise ValueError(
            Message(
                f'the key "{path_shown}" contains {len(texts)} texts of '
                f"{n_words / len(texts):.0f} words on average, and the problem has no "
                "context. If the answer must be supported by these texts, ",
                _read_as(path_shown, "context"),
                ". Otherwise, ",
                _say_own(printable(key)),
            )
        )


def _lists_of_texts(path, value):
    """Yield the path and the texts of each list that contains texts or passage-like objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lists_of_texts(f"{path}.{key}", inner)
    elif isinstance(value, list) and value:
        if all(isinstance(entry, str) for entry in value):
            yield path, value
        elif all(isinstance(entry, dict) for entry in value):
            for key in _LIKE_TEXTS:
                texts = [
                    entry[key] for entry in value if isinstance(entry.get(key), str)
                ]
                if texts and _BESIDE.intersection(*value):
                    yield f"{path}[].{key}", texts


def _read_as(theirs, ours):
    text = f'read them as "{ours}" (rename={{"{theirs}": "{ours}"}})'
    return Advice("read_as", text, theirs=theirs, ours=ours)


def _say_own(key):
    return Advice("say_own", f'declare the key as your own (own=["{key}"])', key=key)


def _refuse_links(key, record):
    """Raise ValueError if another key may contain the missing edges."""
    if record.get("edges") is not None or record.get("parents") is not None:
        return
    links = record[key]
    if key.lower() not in _LINKS or not isinstance(links, list) or not links:
        return
    n_claims = len(record.get("claims") or record.get("features") or ())
    if all(isinstance(x, dict) or (isinstance(x, list) and len(x) == 2) for x in links):
        form, ours = "pairs [parent, child]", "edges"
    elif len(links) == n_claims and all(isinstance(x, list) for x in links):
        form, ours = "the parents of each claim", "parents"
    else:
        return
    raise ValueError(
        Message(
            f'the key "{key}" is unknown, and the line has no edges. If this key '
            f"contains {form}, ",
            _read_as(key, ours),
            ". Otherwise, ",
            _say_own(key),
        )
    )


def _check_near(key, record, warned):
    """Warn or raise ValueError if a key may be a misspelled key of the format."""
    if (near := _near(key)) is None:
        return
    key_shown = printable(key)
    if _SAME.get(near, near) not in {_SAME.get(k, k) for k in record}:
        raise ValueError(
            Message(
                f'unknown key "{key_shown}": did you mean "{near}"? ',
                Advice(
                    "rename",
                    f'Rename it (rename={{"{key_shown}": "{near}"}})',
                    theirs=key_shown,
                    ours=near,
                ),
                ', or move your own data into an object called "metadata"',
            )
        )
    if key not in warned:
        warned.add(key)
        warn(
            f'the unknown key "{key_shown}" is kept in the metadata. Did you mean '
            f'"{near}"?',
            UnknownKeyWarning,
        )


@lru_cache(1000)
def _near(key):
    """Return the format key that closely resembles a key, or None if there is none."""
    names = [name for name in schemas_of_keys() if len(name) > 3]
    close = get_close_matches(key.lower(), names, 1, 0.8)
    return close[0] if close and abs(len(close[0]) - len(key)) < 2 else None


def _merge(given, group, own):
    """Return the metadata of a line, including the group and user-defined keys."""
    metadata = dict(given or {})
    extra = own if group is None else own | {"group": group}
    for k, value in extra.items():
        if metadata.setdefault(k, value) != value:
            raise ValueError(
                f"{k!r} must have a single value, got {value!r} in the line and "
                f"{metadata[k]!r} in its metadata"
            )
    if own:
        metadata[OWN] = [*metadata.get(OWN, ()), *own]
    group = metadata.get("group")
    if type(group) not in (str, int, type(None)):
        title = schemas_of_keys()["group"]["title"]
        raise ValueError(f"group must be {title}, got {group!r}")
    return metadata if metadata or given is not None else None


def _graph(record, metadata):
    record.pop("version", None)
    if "context" in record:
        record["context"] = check_context(record["context"])
    parents = record.pop("parents", None)
    if parents is None:
        return ReasoningGraph.from_dict(record | {"metadata": metadata})
    if "edges" in record:
        raise ValueError(
            "edges and parents cannot both be passed. Pass only one of them"
        )
    features = record.pop("features", None)
    record.pop("n_features", None)
    return ReasoningGraph.from_parents(parents, features, metadata=metadata, **record)


def _per_claim(values):
    """Return labels or a mask as a list of plain values, converted to integers if possible."""
    if values is None:
        return None
    if isinstance(values, np.ndarray) and values.dtype.kind in "bi":
        return values.tolist()
    values = plain(np.asarray(values, dtype=object).tolist())
    return [int(x) if type(x) is float and x in (0, 1, -1) else x for x in values]


def _check_lengths(graph, **columns):
    for name, values in columns.items():
        if values is not None and len(values) != graph.n_claims:
            raise ValueError(
                f"{name} must have one value for each of the {graph.n_claims} claims, got "
                f"{len(values)}"
            )


# --- the published schema of a line, and the validation against it ----------------------


def jsonl_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of one line in a JSON Lines file.

    Returns
    -------
    schema : dict
        JSON schema of a line.

    Examples
    --------
    >>> from skdcf.datasets.records import jsonl_schema
    >>> jsonl_schema()["properties"]["mask"]["description"]
    'Whether a filter kept each claim.'
    """
    path = files("skdcf.datasets").joinpath(f"schema/problem-{VERSION}.json")
    return json.loads(path.read_text("utf-8"))


def check_values(record: Any) -> None:
    """Raise ValueError for the first value of a record that does not match the schema."""
    for key in filter(schemas_of_keys().__contains__, record):
        schema = schemas_of_keys()[key]
        if not _all_fit([record[key]], schema):
            place, value = _find_fault(record[key], schema, key)
            shown = repr(value)
            shown = printable(shown if len(shown) <= 60 else f"{shown[:57]}...")
            advice = ""
            if key == "context" and isinstance(value, dict):
                advice = f". The text of a passage is read from {', '.join(_TEXTS)}"
            raise ValueError(
                f"{key} must be {schema['title']}, but {place} is {shown}{advice}"
            )


@cache
def schemas_of_keys():
    """Return the schema of each key, with the allowed Python types."""
    return {
        k: _with_types(schema) for k, schema in jsonl_schema()["properties"].items()
    }


def _with_types(schema):
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    values = [float, *map(type, schema["enum"])] if "enum" in schema else []
    types_of_kinds = [_TYPES[kind] for kind in kinds]
    allowed = {*values, *chain.from_iterable(types_of_kinds)}  # In JSON, 1.0 equals 1.
    out = schema | {"kinds": allowed}
    return out | ({"items": _with_types(schema["items"])} if "items" in schema else {})


def _all_fit(values, schema):
    """Return whether all values match a schema."""
    if not set(map(type, values)) <= schema["kinds"]:
        return False
    if "enum" in schema:
        return set(values) <= set(schema["enum"])
    if "items" not in schema:
        low = schema.get("minimum")
        return low is None or min(values, default=low) >= low
    lists = [value for value in values if type(value) is list]
    least = schema.get("minItems", 0)
    most = schema.get("maxItems", math.inf)
    fit = all(least <= length <= most for length in set(map(len, lists)))
    return fit and _all_fit(list(chain.from_iterable(lists)), schema["items"])


def _find_fault(value, schema, place):
    """Return the position and the value of the innermost invalid entry."""
    if list in schema["kinds"] and type(value) is list:
        for k, item in enumerate(value):
            if not _all_fit([item], schema["items"]):
                return _find_fault(item, schema["items"], f"{place}[{k}]")
    return place, value


def check_context(passages: Any) -> Any:
    """Return the passages of a context as a list, or raise ValueError if one is invalid."""
    passages = [passages] if isinstance(passages, str) else list(passages or ())
    for k, text in enumerate(passages):
        if fault := _context_fault(text):
            raise ValueError(f"passage {k} of the context {fault}")
    if (length := sum(map(len, passages))) > _LONGEST:
        raise ValueError(
            f"the context must have at most {_LONGEST:,} characters, got {length:,}. Pass "
            "only the passages that support the answer instead of the whole collection"
        )
    return passages


def _context_fault(text):
    if not text.strip():
        return "is empty. Leave it out. An empty list means that there are no passages"
    if "\0" in text:
        return (
            f"contains a NUL at character {text.index(chr(0))}. Check that it is text"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"contains an unpaired surrogate ({text[error.start]!r} at "
            f"{error.start}), probably because the text was cut off. Remove or "
            "replace this character"
        )
    return None
