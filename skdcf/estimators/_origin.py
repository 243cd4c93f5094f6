"""What made the problems, compared at every door.

A promise is about problems like those that calibrated. What cannot be told from numbers is
compared here: whether edges, alternatives and contexts are there, what extracted the claims,
whether people changed edges, what a label means, who judged, and which problems trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import compress
from typing import Any

import numpy as np

from .._checks import warn
from ..exceptions import GuaranteeWarning, LabelWarning
from ..features.columns import reads_edges
from ..graphs.problems import hashes_of
from ..graphs.sources import iterate_sources

#: Whether these are there has to be as it was at calibration, problem by problem.
PRESENT = {
    "edges": "edges (None is unknown, and () is known to be none)",
    "alternatives": "alternatives",
    "context": "contexts",
}
#: Values of the metadata that have to be as they were, where both are known.
MADE = {
    "extraction": "what extracted the claims",
    "written_by": "who wrote the answers",
    "edges_corrected": "whether a person changed edges",
    "chosen_by": "the rule that chose the answer among several",
    "label_meaning": "what a label means",
}
_AS_SAMPLED = "none, as sampled"  # the value where no rule chose
_MOST = 0.9  # share of problems with edges that counts as nearly all
_FEW = 0.05  # share of what is not as it should be above which there is a warning
_NOTHING = "nothing false"

_accepted: ContextVar[str | None] = ContextVar("accepted", default=None)


@contextmanager
def accept_provenance(reason: str | None) -> Iterator[None]:
    """Accept problems that were made otherwise than those that calibrated.

    Every fit, calibration and decision inside the block takes them, and so do the processes
    that are started there for filters. Whether edges, alternatives and contexts are there is
    still compared. What was accepted to calibrate is kept in ``provenance_``, with the reason,
    and printed with the promise.

    Parameters
    ----------
    reason : str
        Why the problems may be used together; None accepts nothing.

    Raises
    ------
    ValueError
        If the reason is no text, or empty.

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
    ['extraction: "b" beside "a" (b is a new name of a)']
    """
    if reason is not None and not (isinstance(reason, str) and reason.strip()):
        raise ValueError(
            f"accept_provenance is {reason!r}, but must be a text: the reason why problems "
            "that were made in another way may be used"
        )
    token = _accepted.set(reason)
    try:
        yield
    finally:
        _accepted.reset(token)


@contextmanager
def reason_sent_with(search) -> Iterator[None]:
    """Give the reason of the block to the filter of a search, whose clones take it along.

    The clones may be fitted in other processes, which a context variable does not reach.
    """
    search.estimator._accepted = _accepted.get()
    try:
        yield
    finally:
        vars(search.estimator).pop("_accepted")
        if hasattr(search, "best_estimator_"):
            vars(search.best_estimator_).pop("_accepted", None)


def reason_in_force(filter: Any = None) -> str | None:
    """The reason of the block, or the one that the search gave to the filter."""
    return _accepted.get() or getattr(filter, "_accepted", None)


def needs_edges(filter):
    """Whether a filter reads the edges that come with the problems."""
    if callable(filter.edges):
        return False
    return filter.edges == "given" or reads_edges(filter.features)


def provenance_of(filter, batch, labelled):
    """List what is known of how problems were made, by name."""
    reads = needs_edges(filter)
    has_several = batch.sizes > 1  # since one claim needs no edges
    origin: dict[str, list[Any]] = {
        "edges": _distinct(batch.edges_known[has_several]) if reads else []
    }
    if reads and has_several.any():
        has_edges = np.diff(batch.edge_offsets) > 0
        origin["share_with_edges"] = [float(has_edges[has_several].mean())]
        origin["n_that_need_edges"] = [int(has_several.sum())]
    for name in ("alternatives", "context"):
        column = getattr(batch, name)
        present = [False] if column is None else [value is not None for value in column]
        origin[name] = _distinct(present)
    if batch.alternatives is not None:
        # An answer without claims compares nothing with the others.
        pairs = zip(batch.alternatives, batch.sizes.tolist(), strict=True)
        origin["n_alternatives"] = [
            sum(not text.isspace() for text in texts if text)
            for texts, n_claims in pairs
            if texts is not None and n_claims
        ]

    # The inner dictionaries serve as ordered sets.
    values: dict[str, dict[Any, Any]] = {name: {} for name in MADE}
    text_of: dict[int, str | None] = {}  # as one dict often stands for a whole file
    for row in [None] if batch.metadata is None else batch.metadata:
        row = row or {}
        for name in ("extraction", "written_by"):
            value = row.get(name)
            if id(value) not in text_of:
                text = json.dumps(value, sort_keys=True, default=str)
                text_of[id(value)] = value and text
            values[name][text_of[id(value)]] = True
        if reads:
            values["edges_corrected"][bool(row.get("edges_corrected"))] = True
        values["chosen_by"][row.get("chosen_by") or _AS_SAMPLED] = True
        meaning = row.get("label_meaning")
        if labelled or meaning is not None:
            values["label_meaning"][meaning] = True
    return origin | {name: list(distinct) for name, distinct in values.items()}


def _distinct(flags):
    return np.unique(np.asarray(flags, dtype=bool))[::-1].tolist()


def join_origins(origins):
    """Join the origins of several parts; None where nothing is known of any."""
    joined: dict[str, dict[Any, Any]] = {}
    for origin in origins:
        for name, values in (origin or {}).items():
            joined.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: list(values) for name, values in joined.items()} or None


def compare_provenance(filter, origin, *, new=False):
    """ValueError or a warning where problems were made otherwise than those that calibrated.

    Parameters
    ----------
    filter : filter
        Its ``provenance_``, where it has one, is what is compared with.
    origin : dict
        From `provenance_of`, or the ``provenance_`` of a part.
    new : bool
        Whether these problems are to calibrate, so that ``provenance_`` becomes theirs.
    """
    calibrated = getattr(filter, "provenance_", None) or {}
    reason = reason_in_force(filter)
    for name, text in PRESENT.items():
        _compare_presence(name, text, origin.get(name, []), calibrated.get(name))
    _warn_of_edges(origin, calibrated)
    if not new:
        _warn_of_alternatives(origin, calibrated)
    accepted = []
    for name, text in MADE.items():
        values = origin.get(name, [])
        calibrated_values = list(calibrated.get(name) or ())
        accepted += _compare_values(
            name, text, values, before=calibrated_values, reason=reason
        )
    if new:
        kept = {name: origin.get(name, []) for name in (*PRESENT, *MADE)}
        kept["accepted"] = [*calibrated.get("accepted", ()), *dict.fromkeys(accepted)]
        for name in ("share_with_edges", "judged", "judges"):
            kept[name] = origin.get(name, [])
        kept["n_alternatives"] = sorted(set(origin.get("n_alternatives", [])))
        filter.provenance_ = kept


def _compare_presence(name, text, values, before):
    if name == "edges" and len(values) == 2 and not before:
        raise ValueError(
            f"some problems of several claims have {text}, and some have none: give all "
            "of them edges, () where no claim builds on another, or choose "
            'edges="none" or a rule of skdcf.edges for the filter'
        )
    for value in values:
        if before and value not in before:
            have = "have" if value else "have no"
            had = "had none" if value else "had them"
            raise ValueError(
                f"problems {have} {text}, and those that calibrated {had}. The promise "
                "does not hold for what was made otherwise: make them alike, or fit again"
                + (', or choose edges="none" or a rule' if name == "edges" else "")
            )


def _warn_of_edges(origin, calibrated):
    """Warn where the edges are probably not what they are said to be."""
    if not calibrated:
        return
    shares = calibrated.get("share_with_edges") or [0.0]
    [n_problems] = origin.get("n_that_need_edges", [0])
    if (
        min(shares) >= _MOST
        and n_problems >= 20
        and origin["share_with_edges"] == [0.0]
    ):
        warn(
            f"none of {n_problems} problems of several claims has an edge, and {min(shares):.0%} "
            "of those that calibrated have some. If these have none because nobody looked for "
            "them, pass edges=None: () says that no claim builds on another, and the promise "
            "does not hold where that is not so",
            GuaranteeWarning,
        )
    if calibrated["edges"] == [] and False in origin["edges"]:
        warn(
            "all problems that calibrated have one claim, and some of these have several, of "
            "which it is not known what builds on what. Nothing told how errors come together "
            "in an answer: calibrate on answers of several claims",
            GuaranteeWarning,
        )


def _warn_of_alternatives(origin, calibrated):
    """Warn where answers are compared with more or fewer others than at calibration."""
    before = calibrated.get("n_alternatives")
    now = np.array(origin.get("n_alternatives", []))
    if not before or not len(now):
        return
    outside = (now < min(before)) | (now > max(before))
    if outside.mean() > _FEW:
        warn(
            f"{int(outside.sum())} of {len(now)} problems have more or fewer alternatives than "
            f"those that calibrated, such as {now[outside][0]} where these have {min(before)} to "
            f"{max(before)}. How far answers agree depends on the number of the others, so that "
            "the promise does not hold: sample as many as for calibration",
            GuaranteeWarning,
        )


def _compare_values(name, text, values, *, before, reason):
    """ValueError, a warning, or the differences that were accepted."""
    values_known = [value for value in [*before, *values] if value is not None]
    if not values_known:
        return []
    first = values_known[0]
    allowed = {value for value in before if value is not None} or {first}
    differing = [
        value for value in values if value is not None and value not in allowed
    ]
    if differing and reason is None:
        now, then = _differing_values(differing[0], first)
        raise ValueError(
            f"{name} ({text}) is {now}, and was {then} for those that "
            "came before. The promise is about problems that are made alike: fit or "
            "calibrate again, or say why it may be overlooked, "
            'with skdcf.accept_provenance("reason"): ...'
        )
    unknown_now = None in values
    unknown_before = None in before
    if not differing and unknown_now != unknown_before and (unknown_now or values):
        warn(
            f"{name} ({text}) is {'un' * unknown_now}known for some of these problems, and "
            f"{'un' * unknown_before}known for those that calibrate: it is {_shown(first)} "
            "where it is known, and whether all were made alike cannot be checked",
            GuaranteeWarning,
        )
    return [f"{name}: {_shown(v)} beside {_shown(first)} ({reason})" for v in differing]


def _shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def _differing_values(now, then):
    """Two values as texts; of JSON objects only the first value in which they differ."""
    try:
        now_in, then_in = json.loads(now), json.loads(then)
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
        now_in, then_in = now_in.get(key), then_in.get(key)
    named = f"{place} " if place else ""
    return f"{named}{json.dumps(now_in)}", f"{named}{json.dumps(then_in)}"


def note_judges(filters, batch, labels):
    """Note which share of the labels models gave; warn where it is more than a few."""
    judged = labels >= 0
    sources = () if batch.metadata is None else compress(iterate_sources(batch), judged)
    models = [row["by"] for row in sources if row and row["kind"] == "model"]
    share = len(models) / max(int(judged.sum()), 1)
    names = sorted(set(map(str, models)))
    for filter in filters:
        filter.provenance_ |= {"judged": [share], "judges": names}
    if share > _FEW:
        warn(
            f"{share:.0%} of the labels that calibrate were given by a language model "
            f"({', '.join(names)}), so that the promise is about its verdicts: of errors "
            "that it overlooks, any number may be kept. Draw some answers blindly and let a "
            "person judge them (skdcf label): fit lets these calibrate and the model's train, "
            "and on the command line --people FILE does. skdcf.apps.labelling.agreement says how "
            "far the model's labels can be trusted",
            LabelWarning,
        )


def name_errors(sentence, origin):
    """The sentence of a guarantee, which says what its labels call false, and who does."""
    shares = origin.get("judged") or [0.0]
    judges = ", ".join(origin.get("judges", ()))
    meanings = {meaning for meaning in origin.get("label_meaning", ()) if meaning}
    supported = meanings == {"supported"}
    error = "its context does not support" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        sentence += f" (judge {judges} gave {most}{max(shares):.0%} of the labels)"
    if error and _NOTHING in sentence:
        return sentence.replace(_NOTHING, f"nothing that {error}")
    return f"{sentence}, where false is what {error}" if error else sentence


def refuse_trained(batch, hashes, trained):
    """ValueError where a question trained the filter; a warning where that is doubtful."""
    same_question, doubtful = hashes.among(trained)
    same_content = np.isin(hashes.content, trained["content"])
    proven = same_question | (same_content & hashes.asked)
    if proven.any():
        raise ValueError(
            f"{int(proven.sum())} problems, {batch.name_of(int(np.argmax(proven)))} "
            "first, trained the filter, or are answers to a question that did. The "
            "promise needs problems that are new to it: calibrate on others, or fit again"
        )
    if doubtful.any():
        warn(
            f"{int(doubtful.sum())} of {len(batch)} problems have the text of a question that "
            "trained the filter under another name, or as a question of its own. If it is the "
            "same question, the promise does not hold",
            GuaranteeWarning,
        )
    if same_content.any():
        warn(
            f"{int(same_content.sum())} of {len(batch)} problems are exact copies of problems "
            "that trained the filter. They have no question by which to tell whether they are "
            "the same ones: if they are, the promise does not hold",
            GuaranteeWarning,
        )


def count_as_trained(filter, X, groups=None):
    """Remember problems that chose the settings of a filter as if they had trained it.

    Parameters
    ----------
    filter : fitted filter
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
    groups : array-like of shape (n_problems,), or False, optional
        The question that each problem answers.
    """
    trained = filter._trained
    kept = hashes_of(filter.check(X), groups).kept()
    merged = {
        kind: np.union1d(trained[kind], kept[kind])
        for kind in ("question", "content", "name", "passage")
    }

    # A text names one question where it does so both times.
    text = np.union1d(trained["text"], kept["text"])
    names_one = np.ones(len(text), dtype=bool)
    is_named = np.zeros(len(text), dtype=bool)
    for hashes in (trained, kept):
        at = np.searchsorted(text, hashes["text"])
        names_one[at] &= hashes["text_names_one"]
        is_named[at] |= hashes["text_is_named"]
    merged |= {"text": text, "text_names_one": names_one, "text_is_named": is_named}
    merged["alone"] = np.array([trained["alone"].any() and kept["alone"].any()])
    filter._trained = merged
