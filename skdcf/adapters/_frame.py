"""Convert problems to data frames with one row per claim, and vice versa."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import (
    check_choice,
    check_number,
    import_extra,
    is_missing,
    is_real,
    warn,
)
from ..datasets.records import build_dataset, plain, spread
from ..edges import no_edges
from ..exceptions import ParameterWarning
from ..graphs import GraphBatch, ReasoningGraph, as_batch, pack_labels
from ..graphs.labels import LABEL_WORDS, word_key
from ._argilla import is_argilla, read_argilla

#: Type annotations for edge rules, labels, and values that replace missing scores.
EdgeRule = Callable[[Sequence[str], str | None], Iterable[tuple[int, int]]]
Labels = Sequence[ArrayLike]
Missing = str | float

# Columns of labels, positions and identifiers, and columns computed from labels or by a filter.
_TAKEN = """
label labels gold gold_label annotation manual_annotation correct is_correct truth
ground_truth verdict verdicts is_true optimal-score removed original_response
id problem problem_id claim claim_id claim_idx parents deps index level_0 group
"""
_NOT_FEATURES = {"unnamed: 0", *_TAKEN.split()}


# Columns that describe human judgements do not exist for new problems.
_OF_PEOPLE = re.compile(
    r"(^|[^a-z])(humans?|annotators?|annotations?|gold|reviewers?|reviewed|raters?|experts?|"
    r"suggestions?|feedback|labels?|verdicts?|ground.?truth|hallucinat\w*|crowd|thumbs?|"
    r"manual|adjudicat\w*|y.true|truth|user.ratings?)([^a-z]|$)|"
    r"^(is_)?(wrong|incorrect|supported|unsupported|refuted|target|y)$"
)
# Columns that labelling tools add, such as Prodigy's _timestamp and _input_hash.
_OF_TOOLS = re.compile(r"_.*|.*_(id|hash|timestamp)|lead_time|claim_number")
# Columns that contain labels under a name other than "label".
_OF_LABELS = re.compile(
    r"labels?|verdicts?|gold(_label)?|annotation|(is_)?(correct|true)|(ground_)?truth"
)
_PRODIGY = {"accept", "reject", "ignore"}  # values in Prodigy's column "answer"
_NUMBER = re.compile(
    r"[-+\u2212]?[\d.,' \u00a0]*\d(e[-+]?\d+)?|[-+]?inf|nan", re.IGNORECASE
)
# If a larger proportion of the values in a text column are numbers, the column was probably meant
# to be numeric.
_MOST = 0.5


def may_be_feature(name):
    """Return whether a numeric column with this name is used as a feature by default."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name).strip()).lower()
    of_others = _OF_PEOPLE.search(words) or _OF_TOOLS.fullmatch(words)
    return not (is_taken(name) or of_others)


def is_taken(name):
    """Return whether a name is reserved for columns that are not features."""
    return str(name).strip().lower() in _NOT_FEATURES


# In a table, the text "-1" is the number -1, which means unknown.
_LABELS = LABEL_WORDS | {"-1": -1, "-1.0": -1}

# Default names of the columns to read.
_NAMES = "text question alternatives context group metadata parents label"
_RESERVED = ["problem", "claim", *_NAMES.split()]
_OF_PROBLEMS = ["question", "alternatives", "context", "group", "metadata"]
#: Value of the parents column if the parents are unknown.
_UNKNOWN = "?"


def to_frame(
    graphs: GraphBatch | Sequence[ReasoningGraph],
    labels: Labels | None = None,
    *,
    backend: str = "pandas",
) -> Any:
    """Convert problems to a table with one row per claim.

    Parameters
    ----------
    graphs : GraphBatch or sequence of ReasoningGraph
        The problems. Problems without claims have no rows in the table.
    labels : sequence of arrays, one per problem, optional
        Claim labels: 1 true, 0 false, -1 unknown. If ``graphs`` is a GraphBatch, ``labels`` may
        also be a flat array.
    backend : str
        Data frame library, such as "pandas", "polars" or any other library that narwhals
        supports.

    Returns
    -------
    table : data frame
        The table has one column per feature. The column ``problem`` contains the id or the index
        of the problem, and ``claim`` contains the position of the claim.
        The column ``label`` exists if labels are passed. The columns ``text``, ``question``,
        ``group``, ``alternatives``, ``context`` and ``metadata`` exist if their values are known.
        Alternatives, contexts and metadata are stored as JSON. The column ``parents`` contains
        positions such as "0 2", or "?" if the parents are unknown. The table can be stored as
        CSV.

    Raises
    ------
    ValueError
        If two problems have the same id, for example in a bootstrap sample, or if the name of a
        feature is reserved for another column.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.adapters import to_frame
    >>> graph = ReasoningGraph([[5.0], [1.0]], [(0, 1)], feature_names=["frequency"])
    >>> print(to_frame([graph], [[1, 0]]))
       problem  claim parents  label  frequency
    0        0      0              1        5.0
    1        0      1       0      0        1.0
    """
    nw = _narwhals()
    if backend == "pandas":
        import_extra("pandas", "frame")

    batch = as_batch(graphs)
    rows = batch.problem_of
    columns: dict[str, Any] = {
        name: np.fromiter(values, object, len(batch))[rows]
        for name, values in _of_problems(batch).items()
        if any(value is not None for value in values)
    }
    columns["claim"] = np.arange(batch.n_claims) - batch.offsets[rows]
    columns["text"] = batch.claims
    if batch.edges_known.any():
        columns["parents"] = _parents_as_text(batch)
    if labels is not None:
        columns["label"] = pack_labels(labels, batch).astype(np.int64)
    columns = {name: columns.get(name) for name in _RESERVED} | _feature_columns(batch)
    columns = {name: plain(v) for name, v in columns.items() if v is not None}
    return nw.from_dict(columns, backend=backend).to_native()


@spread(dict.fromkeys(_RESERVED, str | None), **{name: name for name in _RESERVED})
def from_frame(
    frame: Any,
    *,
    features: Sequence[str] | None = None,
    edges: EdgeRule | None = None,
    missing: Missing = "raise",
    **columns: str | None,
) -> Bunch:
    """Convert a table with one row per claim to problems.

    If a feature is used directly as the confidence, **higher values must mean more confidence**.

    Parameters
    ----------
    frame : pandas or polars DataFrame, or another one that narwhals reads
        The table, with one row per claim.
    features : list of str, optional
        Columns to use as features. By default, all numeric and boolean columns are used, except
        columns with a reserved name and columns that are selected by the parameters below. The
        reserved names, which are not case-sensitive, are annotation, claim, claim_id, claim_idx,
        correct, deps, gold, gold_label, ground_truth, group, id, index, is_correct, is_true,
        label, labels, level_0, manual_annotation, optimal-score, original_response, parents,
        problem, problem_id, removed, truth, "unnamed: 0", verdict and verdicts. A warning is
        issued for an ignored column whose name suggests a human judgement (for example, it
        contains human, annotator, gold, reviewer, rater or suggestion). A warning is also issued
        if the name looks like an ID or timestamp added by a labelling tool (for example, it
        starts with an underscore or ends in _id). Text columns that mostly contain numbers also
        cause a warning.
    edges : callable, optional
        Function ``edges(claims, question)`` that returns the edges of an answer, such as a
        function of `skdcf.edges`. If a function is passed, the column ``parents`` is ignored.
    missing : {"raise", "mean", "median"} or float
        Replacement for features that are missing or infinite. "mean" and "median" are computed
        from the finite values of the feature.
    problem : str
        Column that identifies the problem of each row. Problems are returned in the order of
        their first rows. The rows of a problem need not be adjacent. Each answer is a separate
        problem, so the column must distinguish between several answers to the same question.
    claim : str or None
        Column with the position of each claim in its problem, starting at 0. If the table has no
        such column, the claims of a problem are in row order.
    text, question, alternatives, context, group, metadata, parents, label : str or None
        Names of optional columns, which are used if they exist. Values that apply to a whole
        problem are read from its first row. ``alternatives`` contains the texts of alternative
        answers, as a list or in JSON. ``context`` contains the passages that must support the
        answer, as a list, in JSON, or as a single text. ``group`` must have the same value for
        all answers to the same question. ``metadata`` is a dict or a JSON object. ``parents``
        contains the positions of the parent claims, such as "0 2" or [0, 2]. In ``parents``, an
        empty cell means that the claim has no parents, and "?" means that its parents are
        unknown. ``label`` is 1 (true), 0 (false), -1 or empty (not judged), or a word such as
        "true" or "refuted" that has one of these meanings. In columns other than ``parents`` and
        ``label``, an empty cell (None, NaN, NA, null) means that the value is unknown.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch, whose ids are the values of
        ``problem``), ``labels`` (list of int arrays or None), ``groups`` (array or None),
        ``metadata`` (list of dict, or None), and ``dropped`` (an empty list).

    Raises
    ------
    ValueError
        If a column is missing, if a row does not name its problem, if only some claims of a
        problem have a text, or if positions, parents or labels are invalid. The error message
        contains the position of the row in the table, or the problem and the position of the
        claim. All positions start at 0.

    Notes
    -----
    Columns with the default names are optional, but a column that you name must exist. Pass
    None to ignore a column. If the table has no column "parents" and ``edges`` is not passed,
    the edges are unknown, and ``graphs`` is shown with ``n_edges=unknown``. If the claims are
    independent, pass ``edges=no_edges`` (from `skdcf.edges`).

    A table exported from Argilla (``dataset.records.to_list(flatten=True)``) is recognised by
    its columns ``<question>.responses`` and ``<question>.responses.status``. If all submitted
    responses to a claim agree, they determine its label. The label of a claim is 0 if the
    responses disagree, and -1 if no response was submitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdcf.adapters import from_frame
    >>> frame = pd.DataFrame({"problem": ["p", "p", "q"], "parents": ["", "0", ""],
    ...                       "score": [0.9, 0.2, 0.5], "label": [1, 0, 1]})
    >>> data = from_frame(frame)
    >>> data.graphs, [y.tolist() for y in data.labels]
    (GraphBatch(n_graphs=2, n_claims=3, n_edges=1, n_features=1), [[1, 0], [1]])
    """
    if not (edges is None or callable(edges)):
        raise ValueError(f"edges must be a function of skdcf.edges, got {edges!r}")
    frame = _eager(frame)
    verdicts = None
    if is_argilla(frame):
        columns, verdicts = read_argilla(frame, columns)
    _check_named(frame, columns)
    features = _feature_names(frame, features, columns)
    rows_of = _rows_of_problems(frame, columns["problem"], columns["claim"])
    cells = {
        key: _values(frame[name])
        for key, name in columns.items()
        if name in frame.columns and key not in ("problem", "claim")
    }
    if verdicts is not None:
        cells["label"] = verdicts
    elif "label" in cells:
        cells["label"] = _labels_in_words(cells["label"])
    elif columns["label"] is not None:
        _warn_of_labels(frame, columns)
    table = np.array([_floats(frame, name) for name in features], dtype=float)
    table = table.reshape(len(features), len(frame)).T
    table = fill_missing(table, features, missing, "row {}".format)
    records = {}
    for id, rows in rows_of.items():
        cells_of_problem = {key: values[rows] for key, values in cells.items()}
        records[id] = _record(cells_of_problem, rows)
        if features:
            records[id] |= {"features": table[rows], "feature_names": list(features)}
    return build_dataset(records, partial(add_edges, edges))


def _labels_in_words(cells):
    """Convert known words such as "true" to numeric labels, and keep all other values."""
    labels = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        is_word = isinstance(cell, str) and cell != "unsure"
        labels[row] = _LABELS.get(word_key(cell), cell) if is_word else cell
    return labels


def _record(cells, rows):
    """Convert the cells of one problem to a record in the JSON Lines format."""
    record = {key: cells[key][0] for key in _OF_PROBLEMS if key in cells}
    record["problem"] = record.pop("question", None)
    for key in ("alternatives", "context", "metadata"):
        record[key] = _read_json(record.get(key))
    if "group" in record and any(group != record["group"] for group in cells["group"]):
        raise ValueError(
            f"row {rows[0]}: all rows of a problem must have the same group, but the "
            f"group {record['group']!r} of this row differs from the group of another row"
        )
    if isinstance(record.get("group"), float):
        record["group"] = _whole(record["group"], "the group", rows[0])
    if any(text is not None for text in cells.get("text", ())):
        record["claims"] = list(cells["text"])
    if "label" in cells:
        record["labels"] = cells["label"]
    parents = cells.get("parents", [_UNKNOWN])
    if not any(isinstance(entry, str) and entry == _UNKNOWN for entry in parents):
        record["parents"] = [
            [_whole(value, "a parent", row) for value in _listed(entry)]
            for row, entry in zip(rows, parents, strict=True)
        ]
    return record


def add_edges(edges, record):
    """Return a record, with the edges that an edge rule computes from its claims."""
    if not callable(edges):
        return record
    claims = record.get("claims")
    if edges is not no_edges and (claims is None or None in claims):
        raise ValueError(
            "all claims must have a text, because the edges are computed from the texts. "
            "If the claims are independent, pass edges=no_edges"
        )
    edges_found = [] if claims is None else edges(claims, record.get("problem"))
    return record | {"edges": edges_found, "parents": None}


def _narwhals():
    """Import and return narwhals, which supports the data frames of many libraries."""
    return import_extra("narwhals", "frame")


def _eager(frame):
    """Convert a data frame to a narwhals data frame, or raise ValueError if it is empty."""
    nw = _narwhals()
    try:
        frame = nw.from_native(frame, eager_only=True)
    except TypeError:
        of_others = "For a dict, use pandas.DataFrame. For a file, use pandas.read_csv"
        advice = "Pass frame.collect()" if hasattr(frame, "collect") else of_others
        raise ValueError(
            f"frame must be a data frame, got {type(frame).__name__}. " + advice
        ) from None
    if not len(frame):
        raise ValueError("the table must have at least one row, but it is empty")
    return frame


def _check_named(frame, named):
    """Raise ValueError if a column that the caller named does not exist."""
    for key, name in named.items():
        needed = key == "problem" or name not in (None, key)
        if needed and name not in frame.columns:
            raise ValueError(
                f"the column {name!r} for {key!r} does not exist. The table has the columns "
                f"{frame.columns}"
            )


def _floats(frame, name):
    """Return a column as an array of floats."""
    try:
        return frame[name].cast(_narwhals().Float64).to_numpy()
    except Exception as error:  # Each data frame library raises different errors.
        raise ValueError(f"the column {name!r} must be numeric: {error}") from error


def _feature_names(frame, features, named):
    """Return the names of the feature columns."""
    nw = _narwhals()
    if features is None:
        numeric = frame.select(nw.selectors.numeric() | nw.selectors.boolean()).columns
        free = [name for name in frame.columns if name not in named.values()]
        numeric = [name for name in numeric if name in free]
        of_people = [
            name for name in numeric if not (is_taken(name) or may_be_feature(name))
        ]
        if of_people:
            warn(
                f"the columns {of_people} are not used as features, because they seem to "
                "contain human judgements, or IDs or timestamps added by a labelling tool. "
                "List these columns in features= if their values are also known for new "
                "problems",
                ParameterWarning,
            )
        for name in free:
            if name not in numeric and may_be_feature(name):
                _warn_of_numbers(name, _values(frame[name]))
        return [name for name in numeric if may_be_feature(name)]
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names, got {features!r}")
    if absent := [name for name in features if name not in frame.columns]:
        raise ValueError(
            f"the columns {absent} do not exist. The table has the columns {frame.columns}"
        )
    if (label := named["label"]) in features:
        raise ValueError(
            f"the column {label!r} contains the labels and cannot be used as a feature"
        )
    return features


def _warn_of_labels(frame, named):
    """Warn if the table has no label column, but another column seems to contain labels."""
    free = [name for name in frame.columns if name not in named.values()]
    label_columns = [
        name
        for name in free
        if _OF_LABELS.fullmatch(str(name).strip().lower())
        or (name == "answer" and {*_values(frame[name])} <= _PRODIGY)
    ]
    if label_columns:
        warn(
            f"the labels are unknown, because the table has no column {named['label']!r}. "
            f"The columns {label_columns} may contain labels. Pass "
            f"label={label_columns[0]!r} if the values of this column mean true and "
            "false, or label=None if there are no labels",
            ParameterWarning,
        )


def _warn_of_numbers(name, values):
    """Warn if a text column, which is not used as a feature, mostly contains numbers."""
    cells = [(row, value) for row, value in enumerate(values) if value is not None]
    texts = [(row, value) for row, value in cells if not _is_written_number(value)]
    n_numbers = len(cells) - len(texts)
    if n_numbers > _MOST * len(cells):
        which = f"; row {texts[0][0]} contains {texts[0][1]!r:.40}" if texts else ""
        warn(
            f"the column {name!r} contains strings and is not used as a feature, although "
            f"{n_numbers} of its {len(cells)} cells are numbers{which}. Convert the "
            "column to numbers to use it",
            ParameterWarning,
        )


def _is_written_number(cell):
    """Return whether a cell is a number, or a string that represents a number."""
    if not isinstance(cell, str):
        return isinstance(cell, Real)
    return bool(_NUMBER.fullmatch(cell.strip().strip("%$\u20ac\u00a3\u00a0 ")))


def _of_problems(batch):
    """Return the columns whose values apply to a whole problem, such as the question."""
    metadata = [plain(row) for row in batch.metadata_rows]
    groups = [row.pop("group", None) for row in metadata]
    # All values of a column have the same type.
    if len(set(map(type, groups)) - {type(None)}) > 1:
        groups = [group if group is None else str(group) for group in groups]
    texts = {"alternatives": batch.alternatives, "context": batch.context}
    texts["metadata"] = metadata if any(metadata) else None
    columns: dict[str, Any] = {
        name: [None if value is None else json.dumps(value) for value in values]
        for name, values in texts.items()
        if values is not None
    }
    columns["question"] = () if batch.problems is None else batch.problems
    return columns | {"problem": _problem_names(batch), "group": groups}


def _parents_as_text(batch):
    parents = batch.edges[:, 0] - batch.offsets[batch.problem_of[batch.edges[:, 1]]]
    bounds = np.searchsorted(batch.edges[:, 1], np.arange(batch.n_claims + 1))
    words = parents.astype(str)
    edges_known = batch.edges_known[batch.problem_of]
    ranges = zip(pairwise(bounds), edges_known, strict=True)
    return [
        " ".join(words[a:b]) if edges_known else _UNKNOWN
        for (a, b), edges_known in ranges
    ]


def _feature_columns(batch):
    if batch.features is None:
        return {}
    names = batch.feature_names or [f"x{j}" for j in range(batch.n_features)]
    if taken := sorted(n for n in names if n in _RESERVED or not may_be_feature(n)):
        raise ValueError(
            f"the features {taken} must not have the same names as other columns or "
            "labels. Rename these features"
        )
    return dict(zip(names, batch.features.T, strict=True))


def _problem_names(batch):
    if batch.ids is None or any(name is None for name in batch.ids):
        return np.arange(len(batch))
    number = {}
    for i, name in enumerate(batch.ids):
        if number.setdefault(name, i) != i:
            raise ValueError(
                f"ids must be unique, but problems {number[name]} and {i} have the same id "
                f"{name!r}. Change the ids, or remove them with [g.replace(id=None) for g in "
                "graphs]"
            )
    return batch.ids


def _values(series):
    """Return a column as an object array of Python values, with None for missing values."""
    values = (None if is_missing(value) else value for value in series.to_list())
    return np.fromiter(values, dtype=object, count=len(series))


def _rows_of_problems(frame, problem, claim):
    """Return the row numbers of each problem, sorted by claim."""
    names = _values(frame[problem])
    rows_of = defaultdict(list)
    if nameless := [row for row, name in enumerate(names) if name is None]:
        shown = f"{nameless[:10]}" + (" and more" if len(nameless) > 10 else "")
        raise ValueError(
            f"the rows {shown} must have a value in the column {problem!r}, because this "
            "column assigns each row to a problem. Fill in this column, or drop the rows"
        )
    try:
        for row, name in enumerate(names):
            rows_of[name].append(row)
    except TypeError as error:
        raise ValueError(
            f"the column {problem!r} contains an invalid problem name: {error}"
        ) from error
    if claim in frame.columns:
        position = _positions(frame, claim)
        for name, rows in rows_of.items():
            rows.sort(key=position.__getitem__)
            for due, row in enumerate(rows):
                if position[row] != due:
                    raise ValueError(
                        f"problem {name!r}: the values of {claim!r} must be 0, 1, ..., got "
                        f"{position[row]} instead of {due}"
                    )
    return rows_of


def _positions(frame, name):
    """Return the integers in a column, or raise ValueError if a value is not an integer."""
    cells = enumerate(_values(frame[name]))
    return [_whole(value, name, row) for row, value in cells]


def _read_json(entry):
    """Parse strings that contain a JSON list or object, and return other values unchanged."""
    if isinstance(entry, str) and entry.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return json.loads(entry)
    return entry


def _listed(entry):
    if entry is None:
        return []
    if isinstance(entry, str):
        return entry.strip(" []()").replace(",", " ").split()
    return [entry] if np.ndim(entry) == 0 else entry


def _whole(value, what, row):
    """Convert a position, which may be a float or a string, to int, or raise ValueError."""
    number = 0.5
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
    if not number.is_integer():
        raise ValueError(
            f"row {row}: {what} must be a nonnegative integer, got {value!r}"
        )
    return int(number)


def fill_missing(table, names, missing, place):
    """Replace the missing and infinite values of a feature table, or raise ValueError.

    Parameters
    ----------
    table : ndarray of shape (n_claims, n_features)
        The features.
    names : sequence of str
        Feature names.
    missing : "raise", "mean", "median" or number
        The replacement. "mean" and "median" are computed from the finite values of the column.
    place : callable
        Function ``place(row)`` that returns the name of the claim in a row, for error messages.

    Returns
    -------
    filled_table : ndarray of shape (n_claims, n_features)
        The table, with missing and infinite values replaced.
    """
    if is_real(missing):
        check_number("missing", missing, -np.inf)
    else:
        check_choice("missing", missing, ("raise", "mean", "median"))
    absent = ~np.isfinite(table)
    if not absent.any():
        return table
    counts = zip(names, absent.sum(axis=0), strict=True)
    n_missing = ", ".join(f"{n} of {name!r}" for name, n in counts if n)
    if missing == "raise":
        row = int(absent.any(axis=1).argmax())
        raise ValueError(
            f"all values must be finite, but {n_missing} values are missing or infinite, "
            f"starting with the value at {place(row)}. Correct these values, or replace "
            'them with missing="median", missing="mean" or missing=NUMBER'
        )
    if is_real(missing):
        return np.where(absent, missing, table)
    if absent.all(axis=0).any():
        name = names[int(absent.all(axis=0).argmax())]
        raise ValueError(
            f"the {missing} of {name!r} is undefined, because the column contains no "
            "finite values"
        )
    average = np.nanmean if missing == "mean" else np.nanmedian
    return np.where(absent, average(np.where(absent, np.nan, table), axis=0), table)
