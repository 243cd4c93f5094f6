"""Guard against problems whose provenance differs from that of the calibration problems.

When only the edges of the calibration problems were corrected, the coverage was 0.78 instead of
0.90. When a different judge labelled the new problems, the coverage was 0.80. The guard compares
metadata that are not part of the features. The metadata describe how the claims were extracted,
who wrote the answers, whether people corrected edges, which rule chose the answer, and what the
labels mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._checks import warn
from .._messages import Message
from ..exceptions import GuaranteeWarning
from .choices import (
    ACCEPT,
    CHOSEN_BY,
    compare_numbers,
    count_answers,
    join_counts,
    mark_of,
    rule_of,
)
from .presence import (
    PRESENT,
    compare_presence,
    needs_edges,
    warn_of_counts,
    warn_of_edges,
)

#: Metadata values that must be the same as in calibration if both values are known.
MADE = {
    "extraction": "the method that extracted the claims",
    "written_by": "the author of the answers",
    "edges_corrected": "whether a person corrected the edges",
    "chosen_by": "the rule that chose one of several answers",
    "label_meaning": "the meaning of the labels",
}
_AS_SAMPLED = "none, as sampled"  # value for an answer that was not chosen by a rule

_accepted: ContextVar[str | None] = ContextVar("accepted", default=None)


@contextmanager
def accept_provenance(reason: str | None) -> Iterator[None]:
    """Accept problems whose provenance differs from that of the calibration problems.

    The context manager affects every fit, calibration and prediction inside the block, including
    those in processes started by filters. Inside the block, the presence of edges, alternatives
    and contexts is still compared. Accepted differences are stored in ``provenance_`` together
    with the reason, and are printed with the guarantee.

    Parameters
    ----------
    reason : str
        Reason why the problems can be used together. If None, all differences are rejected.

    Raises
    ------
    ValueError
        If the reason is empty or not a string.

    Examples
    --------
    >>> import skdcf
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> made = [g.replace(metadata={"extraction": "a" if i < 100 else "b"})
    ...         for i, g in enumerate(graphs)]
    >>> with skdcf.accept_provenance("b is a new name of a"):
    ...     cf = skdcf.HardCF(0, alpha=0.2).fit(made, y)
    >>> cf.provenance_["accepted"]
    ['extraction: "b" in addition to "a" (b is a new name of a)']
    """
    if reason is not None and not (isinstance(reason, str) and reason.strip()):
        raise ValueError(
            "the reason passed to accept_provenance must be a string that states why "
            f"differently generated problems are acceptable, got {reason!r}"
        )
    token = _accepted.set(reason)
    try:
        yield
    finally:
        _accepted.reset(token)


@contextmanager
def reason_sent_with(search) -> Iterator[None]:
    """Store the accepted reason on a search's filter, so clones of the filter inherit it.

    The clones may be fitted in other processes, in which the context variable is not set.
    """
    search.estimator._accepted = _accepted.get()
    try:
        yield
    finally:
        vars(search.estimator).pop("_accepted")
        if hasattr(search, "best_estimator_"):
            vars(search.best_estimator_).pop("_accepted", None)


def reason_in_force(estimator: Any = None) -> str | None:
    """Return the reason of the enclosing block, or the reason stored on the filter by a search."""
    return _accepted.get() or getattr(estimator, "_accepted", None)


def provenance_of(estimator, batch, labelled):
    """Return a dict that describes the provenance of the problems."""
    reads = needs_edges(estimator)
    # An answer with a single claim does not need edges.
    has_several = batch.sizes > 1
    # With edges="none", unknown edges mean that there are none, but columns may read known edges.
    only_columns_read = reads and estimator.edges == "none"
    origin: dict[str, list[Any]] = {
        "edges": _distinct(batch.edges_known[has_several]) if only_columns_read else []
    }
    if reads and has_several.any():
        children = batch.edges[:, 1]
        has_edges = np.bincount(batch.problem_of[children], minlength=len(batch)) > 0
        origin["share_with_edges"] = [float(has_edges[has_several].mean())]
        origin["n_that_need_edges"] = [int(has_several.sum())]
    for name in ("alternatives", "context"):
        column = getattr(batch, name)
        present = [False] if column is None else [value is not None for value in column]
        origin[name] = _distinct(present)
    if batch.alternatives is not None:
        # An answer without claims is not compared with its alternatives.
        pairs = zip(batch.alternatives, batch.sizes.tolist(), strict=True)
        origin["n_alternatives"] = [
            sum(not text.isspace() for text in texts if text)
            for texts, n_claims in pairs
            if texts is not None and n_claims
        ]
    # The inner dicts serve as ordered sets.
    values: dict[str, dict[Any, Any]] = {name: {} for name in MADE}
    # The problems in a file often share a single metadata dict.
    text_of: dict[int, str | None] = {}
    for row in batch.metadata_rows or [{}]:
        for name in ("extraction", "written_by"):
            value = row.get(name)
            if id(value) not in text_of:
                text = json.dumps(value, sort_keys=True, default=str)
                text_of[id(value)] = value and text
            values[name][text_of[id(value)]] = True
        if reads:
            values["edges_corrected"][bool(row.get("edges_corrected"))] = True
        values["chosen_by"][rule_of(mark_of(row)) or _AS_SAMPLED] = True
    if labelled:
        for row in batch.provenance_rows or [{}]:
            values["label_meaning"][row.get("label_meaning")] = True
    origin["chosen_from"] = count_answers(map(mark_of, batch.metadata_rows))
    return origin | {name: list(distinct) for name, distinct in values.items()}


def _distinct(flags):
    return np.unique(np.asarray(flags, dtype=bool))[::-1].tolist()


def join_origins(origins):
    """Join the provenance of several parts, or return None if no provenance is known."""
    joined: dict[str, dict[Any, Any]] = {}
    counts = [(origin or {}).get("chosen_from", []) for origin in origins]
    for origin in origins:
        for name, values in (origin or {}).items():
            if name != "chosen_from":
                joined.setdefault(name, {}).update(dict.fromkeys(values))
    together: dict[str, Any] = {name: list(values) for name, values in joined.items()}
    if any(counts):
        together["chosen_from"] = join_counts(counts)
    return together or None


def compare_provenance(estimator, origin, *, new=False):
    """Raise ValueError or warn if the provenance of problems differs from that of a filter.

    Parameters
    ----------
    estimator : filter
        The filter. The filter's attribute ``provenance_`` is compared if it exists.
    origin : dict
        Provenance returned by `provenance_of`, or the ``provenance_`` of a part.
    new : bool
        Whether the problems are new calibration problems. If True, the provenance of the problems
        replaces ``provenance_``.
    """
    calibrated = getattr(estimator, "provenance_", None) or {}
    reason = reason_in_force(estimator)
    for name, text in PRESENT.items():
        compare_presence(text, origin.get(name, []), calibrated.get(name))
    warn_of_edges(origin, calibrated)
    if not new:
        warn_of_counts(origin, calibrated)
        compare_numbers(origin, calibrated)
    accepted = []
    for name, text in MADE.items():
        values = origin.get(name, [])
        calibrated_values = list(calibrated.get(name) or ())
        if new and name == CHOSEN_BY:
            # When a filter is fitted, the calibration answers have not been selected yet.
            calibrated_values = []
        accepted += _compare_values(
            name, text, values, before=calibrated_values, reason=reason
        )
    if new:
        of_edges_and_marks = ("share_with_edges", "chosen_from")
        of_judges = ("judged", "judges")
        names = (*PRESENT, *MADE, *of_edges_and_marks, *of_judges)
        kept = {name: origin.get(name, []) for name in names}
        kept["accepted"] = [*calibrated.get("accepted", ()), *dict.fromkeys(accepted)]
        kept["n_alternatives"] = sorted(set(origin.get("n_alternatives", [])))
        estimator.provenance_ = kept


def _compare_values(name, text, values, *, before, reason):
    """Return the accepted differences, and raise ValueError or warn about all other differences."""
    known_now = [value for value in values if value is not None]
    allowed = [value for value in before if value is not None] or known_now[:1]
    if not allowed:
        return []
    first = allowed[0]
    differing = [value for value in known_now if value not in allowed]
    if differing and reason is None:
        value_now, then = _differing_values(differing[0], first)
        raise ValueError(
            Message(
                f"{name} ({text}) must be the same as in calibration, got {value_now} "
                f"instead of {then}. The guarantee holds only for problems that were "
                "made in the same way. Fit or calibrate again, or ",
                ACCEPT,
            )
        )
    unknown_now = None in values
    unknown_before = None in before
    if not differing and unknown_now != unknown_before and (unknown_now or values):
        now, then = ("unknown", "known") if unknown_now else ("known", "unknown")
        warn(
            f"{name} ({text}) is {now} for some of these problems, but {then} for the "
            "calibration problems, so these problems may have been generated "
            f"differently. The known value is {_shown(first)}",
            GuaranteeWarning,
        )
    return [
        f"{name}: {_shown(v)} in addition to {_shown(first)} ({reason})"
        for v in differing
    ]


def _shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def _differing_values(now, then):
    """Return two values as strings, or the first values that differ between two JSON objects."""
    try:
        now_in = json.loads(now)
        then_in = json.loads(then)
    except (TypeError, ValueError):
        return _shown(now), _shown(then)
    place = ""
    while isinstance(now_in, dict) and isinstance(then_in, dict):
        keys = [*then_in, *(key for key in now_in if key not in then_in)]
        differing = (k for k in keys if now_in.get(k) != then_in.get(k))
        key = next(differing, None)
        if key is None:
            break
        place = f"{place}.{key}".strip(".")
        now_in = now_in.get(key)
        then_in = then_in.get(key)
    named = f"{place} " if place else ""
    return f"{named}{json.dumps(now_in)}", f"{named}{json.dumps(then_in)}"
