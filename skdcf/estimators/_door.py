"""The checks and changes of problems at every door of a filter.

A promise is about problems like those that calibrated. What cannot be told from numbers is
compared here: whether edges, alternatives and contexts are there, what extracted the claims,
whether people changed edges, and what a label means.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from .._checks import warn
from ..exceptions import GuaranteeWarning
from ..features.columns import carry_columns, reads_edges
from ..graphs import GraphBatch, pack_labels
from ..graphs.labels import LABELS, read_column
from ..graphs.problems import pack_graphs
from ..graphs.ragged import ranges

#: Ways to treat a claim whose path risk equals the threshold: drop it, keep it as
#: published code does, which loses the guarantee where scores are tied, or break ties by
#: a seeded hash of the problem.
TIES = ("exclude", "include", "jitter")
#: Whether these are there has to be as it was at calibration, problem by problem.
PARTS = {
    "edges": "edges (None is unknown, and () is known to be none)",
    "alternatives": "alternatives",
    "context": "contexts",
}
#: Values of the metadata that have to be as they were, where both are known.
MADE = {
    "extraction": "what extracted the claims",
    "edges_corrected": "whether a person changed edges",
    "label_meaning": "what a label means",
}


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
        passed = self.passed[rows]
        labels = self.labels
        seen = passed if self.seen is self.passed else self.seen[rows]
        if labels is not None:
            offsets = self.passed.offsets
            labels = labels[ranges(offsets[:-1][rows], self.passed.sizes[rows])]
        return replace(self, passed=passed, seen=seen, labels=labels)


def admit(estimator, X, *, reset, carry=True):
    """X as a GraphBatch with the edges of a rule, and whether it was a table.

    Sets (``reset``) or compares the number and the names of the features. What is looked at
    several times carries its columns, which costs a tenth of a prediction or more.
    """
    batch = pack_graphs(X)
    if is_table := batch is None:
        batch = _pack_table(estimator, X, reset)
    elif not len(batch):
        raise ValueError("no problems: X is empty, at least one is needed")
    else:
        if reset:
            _remember_features(estimator, batch)
            _doubt_direction(batch)
        else:
            _compare_features(estimator, batch)
        batch = _ruled(batch, estimator.edges) if callable(estimator.edges) else batch
    if carry and estimator.features is not None:
        batch = carry_columns(estimator.features, batch)
    return batch, is_table


def _pack_table(estimator, X, reset):
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if type(first) in (str, dict):
        raise ValueError(
            f"X holds a {type(first).__name__} where a problem is expected: "
            "ReasoningGraph.from_dict makes a graph of a dict, and ReasoningGraph(None, "
            "claims=[...]) one of texts"
        )
    try:
        table = validate_data(estimator, X, reset=reset, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"X holds a number that is too large: {error}") from error
    names = getattr(estimator, "feature_names_in_", None)
    offsets = np.arange(len(table) + 1)
    return GraphBatch.from_arrays(table, offsets, (), feature_names=names)


def _ruled(batch, edges):
    """The problems with the edges that a rule gives them."""
    found = []
    several = np.flatnonzero(batch.sizes > 1)
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


def _remember_features(estimator, batch):
    estimator.n_features_in_ = batch.n_features or 0
    vars(estimator).pop("feature_names_in_", None)
    if batch.feature_names is not None:
        estimator.feature_names_in_ = np.array(batch.feature_names, dtype=object)


def _doubt_direction(batch):
    if len(batch.edges) >= 10 and (np.diff(batch.edges) < 0).all():
        warn(
            "every edge leads from a later claim to an earlier one; in an edge (parent, "
            "child) the child builds on the parent. Are these reversed?",
            GuaranteeWarning,
        )


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
    fitted = getattr(estimator, "feature_names_in_", None)
    wanted = estimator.scorer_.columns_read()
    if wanted is not None and names is not None and not _reads_all(estimator):
        missing = [name for name in wanted if name not in names]
        if missing:
            raise ValueError(f"X has no feature {missing[0]!r}; it has {list(names)}")
        return
    found = batch.n_features or 0
    expected = estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input"
        )
    if (names is None) != (fitted is None):
        where = "X but not in fit" if fitted is None else "fit but not in X"
        said = f"the features are named in {where}: their order cannot be checked"
        warn(said, GuaranteeWarning)
    elif names is not None and tuple(fitted) != names:
        new = set(names) - set(fitted)
        gone = set(fitted) - set(names)
        detail = f"unknown {sorted(new)}, missing {sorted(gone)}" if new else "order"
        said = f"the feature names differ from those seen in fit ({detail})"
        raise ValueError(f"{said}: expected {list(fitted)}")


def flat_labels(y, batch, is_table, values=None):
    """Labels as a flat array, and the pair (false, true) of values that they had.

    ``values`` are those of fit, where there was a fit.
    """
    if y is None:
        raise ValueError(
            "this filter requires y to be passed, but the target y is None: "
            "it is calibrated on problems whose claims are labelled"
        )
    if not is_table or _is_per_problem(y):
        return pack_labels(y, batch), LABELS
    if np.ma.is_masked(y):
        row = int(np.argmax(np.ma.getmaskarray(y)))
        raise ValueError(f"label {row} is masked: -1 stands for what nobody judged")
    y = column_or_1d(y, warn=True)
    if len(y) != len(batch):
        raise ValueError(f"{len(y)} labels but {len(batch)} problems")
    return read_column(y, values)


def _is_per_problem(y):
    """Whether y holds one array per problem instead of one value."""
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else None
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and len(y):
        first = y[0]
    return isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1


def enter(filter, X, accept_origin, y, new):
    """The problems at a door of a fitted filter, compared with those that calibrated."""
    batch, is_table = admit(filter, X, reset=False, carry=y is not None)
    values = filter._label_values
    labels = None if y is None else flat_labels(y, batch, is_table, values)[0]
    found = origin_of(filter, batch, y is not None)
    compare_origin(filter, found, accept_origin, new=new)
    return View(batch, batch, is_table, labels)


def needs_edges(filter):
    """Whether a filter reads the edges that come with the problems."""
    if callable(filter.edges):
        return False
    return filter.edges == "given" or reads_edges(filter.features)


def origin_of(filter, batch, labelled):
    """List what is known of how problems were made, by name."""
    reads = needs_edges(filter)
    several = batch.sizes > 1  # one claim needs no edges
    found = {"edges": _present(batch.edges_known[several]) if reads else []}
    for name in ("alternatives", "context"):
        column = getattr(batch, name)
        given = [False] if column is None else [value is not None for value in column]
        found[name] = _present(given)
    made = {name: {} for name in MADE}
    text_of = {}
    for row in [None] if batch.metadata is None else batch.metadata:
        row = row or {}
        extraction = row.get("extraction")  # one dict often stands for a whole file
        if id(extraction) not in text_of:
            text = json.dumps(extraction, sort_keys=True, default=str)
            text_of[id(extraction)] = extraction and text
        made["extraction"][text_of[id(extraction)]] = True
        if reads:
            made["edges_corrected"][bool(row.get("edges_corrected"))] = True
        meaning = row.get("label_meaning")
        if labelled or meaning is not None:
            made["label_meaning"][meaning] = True
    return found | {name: list(values) for name, values in made.items()}


def _present(flags):
    return np.unique(np.asarray(flags, dtype=bool))[::-1].tolist()


#: Reasons of `accepting_origin` that are in force.
_ACCEPTED: list[str | None] = []


@contextmanager
def accepting_origin(reason):
    """Accept problems that were made otherwise, at every door of this process.

    Parameters
    ----------
    reason : str or None
        As for ``accept_origin``, where a call says none; None accepts nothing.
    """
    _ACCEPTED.append(reason)
    try:
        yield
    finally:
        _ACCEPTED.pop()


def compare_origin(filter, found, accept, *, new=False):
    """ValueError or a warning where problems were made otherwise than those that calibrated.

    Parameters
    ----------
    filter : filter
        Its ``origin_``, where it has one, is what is compared with.
    found : dict
        From `origin_of`, or the ``origin_`` of a part.
    accept : str or None
        The reason why other values are to be accepted.
    new : bool
        Whether these problems are to calibrate, so that ``origin_`` becomes theirs.
    """
    if accept is None and _ACCEPTED:
        accept = _ACCEPTED[-1]
    if accept is not None and not (isinstance(accept, str) and accept.strip()):
        raise ValueError(
            f"accept_origin is {accept!r}, but must be a text: the reason why problems "
            "that were made in another way may be used"
        )
    known = getattr(filter, "origin_", None) or {}
    reasons = []
    for name, text in PARTS.items():
        _compare_parts(name, text, found.get(name, []), known.get(name))
    for name, text in MADE.items():
        values = found.get(name, [])
        reasons += _compare_made(name, text, values, known.get(name), accept)
    if new:
        kept = {name: found.get(name, []) for name in (*PARTS, *MADE)}
        kept["accepted"] = [*known.get("accepted", ()), *dict.fromkeys(reasons)]
        judged = {name: found.get(name, []) for name in ("judged", "judges")}
        filter.origin_ = kept | judged


def _compare_parts(name, text, values, known):
    if name == "edges" and len(values) == 2 and not known:
        raise ValueError(
            f"some problems of several claims have {text}, and some have none: give all "
            "of them edges, () where no claim builds on another, or choose "
            'edges="none" or a rule of skdcf.edges for the filter'
        )
    for value in values:
        if known and value not in known:
            here, there = ("have", "had none") if value else ("have no", "had them")
            raise ValueError(
                f"problems {here} {text}, and those that calibrated {there}. The promise "
                "does not hold for what was made otherwise: make them alike, or fit again"
                + (', or choose edges="none" or a rule' if name == "edges" else "")
            )


def _compare_made(name, text, values, known, accept):
    """ValueError, a warning, or the differences that were accepted."""
    before = list(known or ())
    first = [v for v in [*before, *values] if v is not None][:1]
    allowed = {v for v in before if v is not None} or set(first)
    other = [v for v in values if v is not None and v not in allowed]
    if other and accept is None:
        raise ValueError(
            f"{name} ({text}) is {_shown(other[0])}, and was {_shown(first[0])} for those "
            "that came before. The promise is about problems that are made alike: fit or "
            'calibrate again, or say why it may be overlooked, accept_origin="reason"'
        )
    here = None in values
    there = None in before if before else False
    if first and not other and here != there and (here or values):
        warn(
            f"{name} ({text}) is {'un' * here}known for some of these problems, and "
            f"{'un' * there}known for those that calibrate: it is {_shown(first[0])} where "
            "it is known, and whether all were made alike cannot be checked",
            GuaranteeWarning,
        )
    return [f"{name}: {_shown(v)} beside {_shown(first[0])} ({accept})" for v in other]


def _shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def with_names(view, guarantee):
    """The problems as passed, with those columns of the scorer's that a guarantee names."""
    passed = view.passed
    seen = view.seen
    rows = () if passed.metadata is None else passed.metadata
    there = {*(passed.feature_names or ()), *(key for row in rows for key in row or ())}
    made = seen.feature_names or ()
    by = guarantee.entries
    names = [n for n in by if isinstance(n, str) and n in made and n not in there]
    if seen is passed or not names:
        return passed
    columns = seen.features[:, [made.index(name) for name in names]]
    if not passed.feature_names:
        return passed.replace_features(columns, names)
    both = np.hstack([passed.features, columns])
    return passed.replace_features(both, [*passed.feature_names, *names])


def with_missing_verdicts(risk, batch):
    """Risks, with +inf for claims whose verdict is missing, so that none is kept."""
    for i, row in enumerate(batch.metadata):
        missing = list((row or {}).get("no_verdict") or ())
        risk[batch.offsets[i] + np.array(missing, dtype=int)] = np.inf
    return risk


def confidence_of(scorer, batch):
    """Confidences as a float array of shape (n_claims,), or ValueError."""
    confidence = np.asarray(scorer.confidence(batch), dtype=np.float64)
    if confidence.shape != (batch.n_claims,):
        told = f"shape {confidence.shape} for {batch.n_claims} claims"
        raise ValueError(f"the scorer returned {told}")
    if not np.isfinite(confidence).all():
        row = int(np.argmin(np.isfinite(confidence)))
        said = f"the scorer's confidence of {batch.locate(row)} is {confidence[row]}"
        raise ValueError(f"{said}: confidences must be finite")
    return confidence
