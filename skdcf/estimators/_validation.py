"""Validation: what callers pass becomes checked, packed problems and flat labels."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from .._checks import (
    is_missing,
    is_number,
    other_row,
    printable,
    refuse_iterator,
    warn,
)
from ..exceptions import GuaranteeWarning
from ..features.columns import carry_columns
from ..graphs import GraphBatch, Problems, pack_labels
from ..graphs.hashes import Hashes
from ..graphs.labels import read_column
from ..graphs.problems import hashes_of, pack_graphs
from ..graphs.ragged import ranges
from ..graphs.wordings import claims_as_worded
from ..guards.judges import judges_of
from ..guards.presence import without_unknown_edges

#: Ways to treat a claim whose path risk equals the threshold: drop it, keep it as
#: published code does, which loses the guarantee where scores are tied, or break ties by
#: a seeded hash of the problem.
TIES = ("exclude", "include", "jitter")


@dataclass
class View:
    """The problems that a method was called with.

    Attributes
    ----------
    passed : GraphBatch
        As the caller passed them, with the edges of a rule.
    scored : GraphBatch
        As the scorer sees them: with the columns of ``features``.
    is_table : bool
        Whether the caller passed a table with one claim per row.
    labels, confidence : ndarray of shape (n_claims,) or None
    hashes : Hashes or None
        They identify the problems and their questions; only of labelled problems.
    judges : ndarray of int8, shape (n_problems,), or None
        Who judged each problem; only of labelled problems.
    rows : ndarray of int, shape (n_problems,), or None
        Positions among the problems that the caller passed.
    """

    passed: GraphBatch
    scored: GraphBatch
    is_table: bool = False
    labels: np.ndarray | None = None
    confidence: np.ndarray | None = None
    hashes: Hashes | None = None
    judges: np.ndarray | None = None
    rows: np.ndarray | None = None

    def shaped(self, values):
        """Values per claim as the caller expects them."""
        return values if self.is_table else self.passed.split(values)

    def take(self, rows):
        """Some of the problems, in their order."""
        if len(rows) == len(self.passed):
            return self
        passed = self.passed[rows]
        scored = passed if self.scored is self.passed else self.scored[rows]
        starts = self.passed.offsets[:-1]
        claims = ranges(starts[rows], self.passed.sizes[rows])
        return replace(
            self,
            passed=passed,
            scored=scored,
            labels=None if self.labels is None else self.labels[claims],
            hashes=None if self.hashes is None else self.hashes[rows],
            judges=None if self.judges is None else self.judges[rows],
            rows=None if self.rows is None else self.rows[rows],
        )

    def unlabelled(self):
        """The problems for what learns nothing: no label is known."""
        return replace(self, labels=np.full_like(self.labels, -1))


def read_labelled(estimator, X, y, groups, *, reset=False):
    """Read labelled problems, with the hashes of their questions; columns are not computed.

    Sets (``reset``) or compares what a filter knows of its input.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "it is calibrated on problems whose claims are labelled"
        )
    batch, is_table = admit(estimator, X, reset=reset)
    batch = carry_columns(estimator.features, batch)
    if reset:
        vars(estimator).pop("classes_", None)
    labels, classes = flat_labels(
        y, batch, is_table, None if reset else estimator._classes()
    )
    if reset and classes is not None:
        estimator.classes_ = classes
    return View(
        passed=batch,
        scored=batch,
        is_table=is_table,
        labels=labels,
        hashes=hashes_of(batch, groups),
        judges=judges_of(batch),
        rows=np.arange(len(batch)),
    )


def admit(estimator, X, *, reset):
    """X as a GraphBatch, with the edges that the filter uses, and whether it was a table.

    Sets (``reset``) or compares the number and the names of the features.
    """
    batch = pack_graphs(X)
    is_table = batch is None
    if is_table:
        batch = _pack_table(estimator, X, reset)
    elif not len(batch):
        raise ValueError("no problems: X is empty, at least one is needed")
    elif reset:
        estimator.n_features_in_ = batch.n_features or 0
        vars(estimator).pop("feature_names_in_", None)
        if batch.feature_names is not None:
            estimator.feature_names_in_ = np.array(batch.feature_names, dtype=object)
    elif estimator.n_features_in_ and not batch.n_claims and batch.features is None:
        # Answers without claims name no columns. A part of a file may hold no others.
        batch = batch.replace_features(
            np.zeros((0, estimator.n_features_in_)),
            getattr(estimator, "feature_names_in_", None),
        )
    else:
        _compare_features(estimator, batch)
    if callable(estimator.edges) and not is_table:
        batch = _ruled(batch, estimator.edges)
    elif not reset:
        batch = without_unknown_edges(estimator, batch)
    return batch, is_table


def _pack_table(estimator, X, reset):
    if (row := other_row(X)) is not None:
        raise ValueError(
            f"X holds a {type(row).__name__} where a problem is expected: "
            "ReasoningGraph.from_dict makes a graph of a dict, and ReasoningGraph(None, "
            "claims=[...]) one of texts"
        )
    try:
        table = validate_data(estimator, X, reset=reset, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"X holds a number that is too large: {error}") from error
    passed = np.asarray(X)
    if passed.dtype.kind in "OSU":
        for value in passed.flat:
            if not (is_number(value) or is_missing(value)):
                shown = printable(repr(value))[:80]
                raise ValueError(f"X holds {shown} where a number is expected")
    names = getattr(estimator, "feature_names_in_", None)
    offsets = np.arange(len(table) + 1)
    return GraphBatch.from_arrays(table, offsets, (), feature_names=names)


def _ruled(batch, rule):
    """The problems with the edges that a rule gives them."""
    edges = []
    # A rule sees each claim in its most specific wording.
    plain = batch if batch.wordings is None else claims_as_worded(batch, 0)[0]
    for i in np.flatnonzero(plain.sizes > 1).tolist():
        start, stop = plain.offsets[i : i + 2].tolist()
        texts = None if plain.claims is None else plain.claims[start:stop].tolist()
        if texts is None or texts[0] is None:
            raise ValueError(
                f"{batch.name_of(i)} has no texts, in which edges={rule!r} could find "
                'its edges: pass claims with their texts, or edges="given"'
            )
        question = None if batch.problems is None else batch.problems[i]
        edges += [
            (start + parent, start + child) for parent, child in rule(texts, question)
        ]
    return batch.replace_edges(edges)


def _reads_all(estimator):
    """Whether something besides the scorer looks at columns by their position.

    Jitter is a hash of all columns: with others, a copy would get other noise. A function
    that says the group or the weight may look at any.
    """
    if estimator.features is not None or estimator.ties == "jitter":
        return True
    guarantee = estimator._resolved()
    return any(map(callable, [*guarantee.entries, guarantee.weight]))


def _compare_features(estimator, batch):
    names = batch.feature_names
    names_in_fit = getattr(estimator, "feature_names_in_", None)

    # Where the scorer reads columns by name and nothing else reads any, names are enough.
    columns_read = estimator.scorer_.columns_read()
    if columns_read is not None and names is not None and not _reads_all(estimator):
        missing = [name for name in columns_read if name not in names]
        if missing:
            raise ValueError(f"X has no feature {missing[0]!r}; it has {list(names)}")
        return

    n_features = batch.n_features or 0
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    if (names is None) != (names_in_fit is None):
        where = "X but not in fit" if names_in_fit is None else "fit but not in X"
        warn(
            f"the features are named in {where}, so that their order cannot be checked",
            GuaranteeWarning,
        )
    elif names and names_in_fit is not None and tuple(names_in_fit) != names:
        new = sorted(set(names) - set(names_in_fit))
        gone = sorted(set(names_in_fit) - set(names))
        if new:
            raise ValueError(
                f"the feature names differ from those seen in fit (unknown {new}, missing "
                f"{gone}): expected {list(names_in_fit)}"
            )
        raise ValueError(
            "the feature names differ from those seen in fit (order): expected "
            f"{list(names_in_fit)}"
        )


def flat_labels(y, batch, is_table, classes=None):
    """Labels as a flat array, and the values of a column for false and true, or None.

    ``classes`` are those of fit, where there was a fit.
    """
    if not is_table or _is_per_problem(y):
        return pack_labels(y, batch), None
    refuse_iterator("y", y)
    if np.ma.is_masked(y):
        row = int(np.argmax(np.ma.getmaskarray(y)))
        raise ValueError(f"label {row} is masked: -1 stands for what nobody judged")
    y = column_or_1d(y, warn=True)
    if len(y) != len(batch):
        raise ValueError(f"{len(y)} labels but {len(batch)} problems")
    return read_column(y, classes)


def _is_per_problem(y):
    """Whether y holds one array per problem instead of one value."""
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and len(y):
        first = y[0]
    return isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1


def with_names(view, guarantee):
    """The problems as passed, with the columns of the scorer that a guarantee names."""
    passed = view.passed
    if view.scored is passed:
        return passed
    columns = view.scored.feature_names or ()
    rows = () if passed.metadata is None else passed.metadata
    keys = {key for row in rows for key in row or ()}
    available = keys.union(passed.feature_names or ())
    names = [
        name
        for name in guarantee.entries
        if isinstance(name, str) and name in columns and name not in available
    ]
    if not names:
        return passed
    table = view.scored.features[:, [columns.index(name) for name in names]]
    if not passed.feature_names:
        return passed.replace_features(table, names)
    table = np.hstack([passed.features, table])
    return passed.replace_features(table, [*passed.feature_names, *names])


def confidence_of(scorer, batch):
    """Confidences as a float array of shape (n_claims,), or ValueError."""
    returned = scorer.confidence(batch)
    try:
        confidence = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the scorer returned a {type(returned).__name__} that is no list of "
            f"{batch.n_claims} numbers: one number per claim is needed, all problems one "
            "after another"
        ) from error
    if confidence.shape != (batch.n_claims,):
        raise ValueError(
            f"the scorer returned shape {confidence.shape} for {batch.n_claims} claims"
        )
    if not np.isfinite(confidence).all():
        row = int(np.argmin(np.isfinite(confidence)))
        raise ValueError(
            f"the scorer's confidence of {batch.locate(row)} is {confidence[row]}: "
            "confidences must be finite"
        )
    return confidence


def filter_in(model: Any) -> Any:
    """The filter that a search has chosen, or searches with; else the model itself."""
    best = getattr(model, "best_estimator_", None)
    if best is not None:
        return best
    search = getattr(model, "search", None)
    return model if search is None else search.estimator


def check(estimator: Any, X: Problems, y: Any = None) -> Any:
    """Check problems and labels, as all methods of a filter do first.

    Parameters
    ----------
    estimator : filter
        If it is fitted, X is compared with the problems of ``fit``.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The problems.
    y : sequence of 1-D arrays, one per problem, optional
        Their labels, as in ``fit``.

    Returns
    -------
    batch : GraphBatch
        The problems, packed; every method takes them in place of X. They and their
        slices carry the columns of ``features``, where nothing in these learns.
    labels : ndarray of int, shape (n_claims,)
        Only if y is given: 1 true, 0 false, -1 unknown, in place of y.

    Raises
    ------
    ValueError
        On bad problems or labels.
    """
    estimator = filter_in(estimator)
    fitted = hasattr(estimator, "scorer_")
    reader = estimator if fitted else copy(estimator)
    batch, is_table = admit(reader, X, reset=not fitted)
    batch = carry_columns(estimator.features, batch)
    if y is None:
        return batch
    classes = estimator._classes() if fitted else None
    return batch, flat_labels(y, batch, is_table, classes)[0]
