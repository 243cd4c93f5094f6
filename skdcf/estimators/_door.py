"""What is done to problems at every door of a filter."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import validate_data

from .._checks import warn
from ..exceptions import GuaranteeWarning
from ..features.columns import carry_columns, reads_edges
from ..graphs import GraphBatch, as_batch, as_graphs, is_graphs
from ..graphs.ragged import ranges
from ._ties import TIES


@dataclass
class View:
    """Problems that came in by a door.

    Attributes
    ----------
    passed : GraphBatch
        As the caller passed them, with the edges of a rule.
    seen : GraphBatch
        As the scorer sees them: with the columns of ``features``.
    is_table : bool
        Whether the caller passed a table with one claim per row.
    labels, confidence : ndarray of shape (n_claims,) or None
    """

    passed: GraphBatch
    seen: GraphBatch
    is_table: bool = False
    labels: np.ndarray | None = None
    confidence: np.ndarray | None = None

    def shaped(self, values):
        """Values per claim as the caller expects them."""
        return values if self.is_table else self.passed.split(values)

    def take(self, rows):
        """Some of the problems, in their order."""
        if len(rows) == len(self.passed):
            return self
        same = self.seen is self.passed
        passed = self.passed[rows]
        seen = passed if same else self.seen[rows]
        labels = self.labels
        if labels is not None:
            offsets = self.passed.offsets
            labels = labels[ranges(offsets[:-1][rows], self.passed.sizes[rows])]
        return replace(self, passed=passed, seen=seen, labels=labels)


@contextmanager
def unchanged_on_error(estimator):
    """Put everything back as it was if what is inside fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def admit(estimator, X, *, reset):
    """X as a GraphBatch with the edges of a rule, and whether it was a table.

    Sets (``reset``) or compares the number and the names of the features.
    """
    X = as_graphs(X)
    if not is_graphs(X):
        _refuse_records(X)
        try:
            table = validate_data(estimator, X, reset=reset, dtype=np.float64)
        except OverflowError as error:
            raise ValueError(f"X holds a number that is too large: {error}") from error
        names = getattr(estimator, "feature_names_in_", None)
        offsets = np.arange(len(table) + 1)
        batch = GraphBatch.from_arrays(table, offsets, (), feature_names=names)
        return carry_columns(estimator.features, batch), True
    batch = as_batch(X)
    if reset:
        _remember_features(estimator, batch)
        _doubt_direction(batch)
    else:
        _compare_features(estimator, batch)
    batch = ruled(batch, estimator.edges)
    return carry_columns(estimator.features, batch), False


def _refuse_records(X):
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if type(first) in (str, dict):
        raise ValueError(
            f"X holds a {type(first).__name__} where a problem is expected: "
            "ReasoningGraph.from_dict makes a graph of a dict, and ReasoningGraph(None, "
            "claims=[...]) one of texts"
        )


def ruled(batch, edges):
    """The problems with the edges that a rule gives them; as they are without a rule."""
    if not callable(edges):
        return batch
    found, several = [], np.flatnonzero(batch.sizes > 1)
    for i in several.tolist():
        a, b = batch.offsets[i : i + 2].tolist()
        texts = None if batch.claims is None else batch.claims[a:b].tolist()
        if texts is None or texts[0] is None:
            raise ValueError(
                f"{batch.name_of(i)} has no texts, of which edges={edges!r} could tell its "
                'edges: pass claims with their texts, or edges="given"'
            )
        question = None if batch.problems is None else batch.problems[i]
        found += [(a + u, a + v) for u, v in edges(texts, question)]
    return batch.replace_edges(found)


def needs_edges(filter):
    """Whether a filter reads the edges that come with the problems."""
    if callable(filter.edges):
        return False
    return filter.edges == "given" or reads_edges(filter.features)


def with_names(view, guarantee):
    """The problems as passed, with those columns of the scorer's that a guarantee names."""
    by = guarantee.by if isinstance(guarantee.by, (list, tuple)) else [guarantee.by]
    passed, seen = view.passed, view.seen
    there = [*(passed.feature_names or ()), *_metadata_keys(passed)]
    made = seen.feature_names or ()
    names = [n for n in by if isinstance(n, str) and n in made and n not in there]
    if seen is passed or not names:
        return passed
    columns = seen.features[:, [made.index(name) for name in names]]
    if not passed.feature_names:
        return passed.replace_features(columns, names)
    both = np.hstack([passed.features, columns])
    return passed.replace_features(both, [*passed.feature_names, *names])


def _metadata_keys(batch):
    rows = () if batch.metadata is None else batch.metadata
    return {key for row in rows if row for key in row}


def with_missing_verdicts(risk, batch):
    """Risks, with +inf for claims whose verdict is missing, so that none is kept."""
    for i, row in enumerate(() if batch.metadata is None else batch.metadata):
        missing = list((row or {}).get("no_verdict") or ())
        risk[batch.offsets[i] + np.array(missing, dtype=int)] = np.inf
    return risk


def _remember_features(estimator, batch):
    estimator.n_features_in_ = batch.n_features or 0
    vars(estimator).pop("feature_names_in_", None)
    if batch.feature_names is not None:
        estimator.feature_names_in_ = np.array(batch.feature_names, dtype=object)


def _doubt_direction(batch):
    if len(batch.edges) >= 10 and (np.diff(batch.edges) < 0).all():
        warn(
            "every edge leads from a later claim to an earlier one; an edge is (parent, "
            "child), and the child builds on the parent. If these are reversed, claims "
            "are kept or dropped by the wrong ones",
            GuaranteeWarning,
        )


def _reads_all(estimator):
    """Whether something besides the scorer looks at columns by their position.

    Jitter is a hash of all columns: with others, a copy would get other noise. A function
    that says the group or the weight may look at any.
    """
    if estimator.features is not None or TIES[estimator.ties].jitter:
        return True
    guarantee = estimator.guarantee
    if guarantee is None:
        return False
    several = (
        guarantee.by if isinstance(guarantee.by, (list, tuple)) else [guarantee.by]
    )
    return any(map(callable, [*several, guarantee.weight]))


def _compare_features(estimator, batch):
    names, fitted = batch.feature_names, getattr(estimator, "feature_names_in_", None)
    wanted = estimator.scorer_.columns_read()
    if wanted is not None and names is not None and not _reads_all(estimator):
        missing = [name for name in wanted if name not in names]
        if missing:
            raise ValueError(f"X has no feature {missing[0]!r}; it has {list(names)}")
        return
    found, expected = batch.n_features or 0, estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input"
        )
    if (names is None) != (fitted is None):
        with_, without = ("X", "fit") if fitted is None else ("fit", "X")
        warn(
            f"the features are named in {with_} but not in {without}: their order "
            "cannot be checked",
            GuaranteeWarning,
        )
    if names is not None and fitted is not None and tuple(fitted) != names:
        new, gone = set(names) - set(fitted), set(fitted) - set(names)
        detail = f"unknown {sorted(new)}, missing {sorted(gone)}" if new else "order"
        raise ValueError(
            f"the feature names differ from those seen in fit ({detail}): "
            f"expected {list(fitted)}"
        )
