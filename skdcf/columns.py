"""Read the problems and labels that a filter method receives."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from . import guards
from ._arrays import ranges
from ._checks import other_row, warn
from .exceptions import GuaranteeWarning
from .features import reasoning_features
from .graphs import GraphBatch, pack_graphs
from .labels import pack_labels, read_column
from .scorers import Scorer


@dataclass(frozen=True)
class ReadProblems:
    """Problems that a filter method has read.

    Attributes
    ----------
    batch : GraphBatch
        The problems as they were read, with the computed edges if ``edges`` is a function.
    columns : GraphBatch
        The problems with the columns and edges that the scorer uses.
    classes : ndarray of shape (2,) or None
        Values for False and True, if the caller passed a table in which each row is a claim.
    labels : ndarray of shape (n_claims,) or None
    hashes : Hashes or None
        Hashes of the questions and contents of labelled problems.
    """

    batch: GraphBatch
    columns: GraphBatch
    classes: NDArray[Any] | None
    labels: Any
    hashes: Any = None

    def shaped(self, values, as_classes=False):
        """Return the given claim values in the format that the caller expects.

        In a table, ``as_classes`` replaces False and True by the classes.
        """
        if self.classes is None:
            return self.batch.split(values)
        return self.classes[values.astype(int)] if as_classes else values

    def take(self, rows):
        """Return a subset of the problems."""
        batch = self.batch[rows]
        claims = ranges(self.batch.offsets[rows], batch.sizes)
        return replace(
            self,
            batch=batch,
            columns=batch if self.columns is self.batch else self.columns[rows],
            labels=self.labels[claims],
            hashes=self.hashes[rows],
        )

    def unlabelled(self):
        """Return the problems with all labels set to unknown, for steps that do not use labels."""
        return replace(self, labels=np.full(self.batch.n_claims, -1))


def read_problems(estimator, X, y, *, reset):
    """Read problems, with the edges that the filter uses, and their labels.

    If ``reset`` is True, the classes of a table, the number of features and the feature names are
    set. If ``reset`` is False, X and y are compared with those seen during ``fit``.
    """
    if (batch := pack_graphs(X)) is None:
        batch = _pack_table(estimator, X, reset)
        labels = None if y is None else _read_classes(estimator, y, batch, reset)
        return ReadProblems(batch, batch, estimator._classes(), labels)
    if not len(batch):
        raise ValueError("X must contain at least one problem, but it is empty")
    if not reset:
        batch = _compare_features(estimator, batch)
    else:
        estimator.n_features_in_ = batch.n_features or 0
        if batch.feature_names is not None:
            estimator.feature_names_in_ = np.array(batch.feature_names, object)
    if callable(estimator.edges):
        batch = _ruled(batch, estimator.edges)
    if estimator.edges == "given":
        guards.refuse_unknown_edges(batch)
    labels = None if y is None else pack_labels(y, batch)
    return ReadProblems(batch, batch, None, labels)


def _pack_table(estimator, X, reset):
    row = other_row(X)
    if row is not None:
        raise ValueError(
            f"X must contain problems, got {type(row).__name__}. Use "
            "ReasoningGraph.from_dict to convert a dict, or ReasoningGraph(None, "
            "claims=[...]) to convert texts"
        )
    table = validate_data(estimator, X, reset=reset)
    passed = np.asarray(X)
    if passed.dtype == object:  # scikit-learn would convert strings in an object array.
        table = passed
    names = getattr(estimator, "feature_names_in_", None)
    return GraphBatch.from_arrays(
        table, np.arange(len(table) + 1), (), feature_names=names
    )


def _ruled(batch, rule):
    """Return the problems with the edges computed by a function."""
    edges = []
    for i in np.flatnonzero(batch.sizes > 1):
        graph = batch[i]
        if graph.claims is None:
            raise ValueError(
                f"{batch.name_of(i)} must have claim texts, because edges={rule!r} computes "
                'the edges from texts. Pass the claim texts, or use edges="given"'
            )
        start = int(batch.offsets[i])
        found = rule([*graph.claims], graph.problem)
        edges += [(start + parent, start + child) for parent, child in found]
    return batch.replace_edges(edges)


def transformer_for(estimator, batch):
    """Return ``features``, where "auto" is replaced by None or reasoning features."""
    if estimator.features != "auto":
        return estimator.features
    if batch.features is not None or batch.claims is None:
        return None
    # A scorer that reads no columns needs none.
    scorer = estimator.scorer
    if isinstance(scorer, Scorer) and scorer.columns_read() == ():
        return None
    return reasoning_features()


def _compare_features(estimator, batch):
    """Return the problems, or raise ValueError unless they have the features seen in `fit`."""
    names = [*(batch.feature_names or ())]
    names_in_fit: Any = [*getattr(estimator, "feature_names_in_", ())]
    n_features = estimator.n_features_in_
    if batch.n_features == n_features and names == names_in_fit:
        return batch

    # If only the scorer reads columns, and reads them by name, only the names are compared. The
    # noise of ties="jitter" and functions that compute groups may depend on any column.
    columns_read = estimator.scorer_.columns_read()
    by_position = estimator.features_ is not None or estimator.ties == "jitter"
    by_position |= any(map(callable, estimator._resolved_guarantee.entries))
    if columns_read is not None and names and not by_position:
        return batch
    if not batch.n_claims and batch.features is None and n_features:
        # A chunk of a file may contain only answers without claims, which have no features.
        return batch.replace_features(np.zeros((0, n_features)), names_in_fit or None)
    if (batch.n_features or 0) != n_features:
        raise ValueError(
            f"X has {batch.n_features or 0} features, but {type(estimator).__name__} is "
            f"expecting {n_features} features as input"
        )
    if names and names_in_fit:
        raise ValueError(
            "the feature names must be those seen during fit, in the same order, "
            f"{names_in_fit}, got {names}"
        )
    if names or names_in_fit:
        where = "X but not in fit" if names else "fit but not in X"
        warn(
            "the order of the features cannot be checked, because the features have "
            f"names in {where}. Pass feature names both in fit and in X",
            GuaranteeWarning,
        )
    return batch


def _read_classes(estimator, y, batch, reset):
    """Return the labels of a table, whose classes are found during ``fit``."""
    if np.ma.is_masked(y):
        row = np.argmax(np.ma.getmaskarray(y))
        raise ValueError(f"label {row} is masked. Use -1 for unjudged claims")
    y = column_or_1d(y, warn=True)
    check_consistent_length(batch, y)
    if not reset:
        return read_column(y, estimator._classes())[0]
    labels, estimator.classes_ = read_column(y)
    return labels
