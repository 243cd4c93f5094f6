"""How closely a filter repeats itself: rounding, ties, and parts that others scored.

The guarantee needs a score that is a function of the problem. In another batch, in
float32, or behind a product whose sums are grouped by the size of the batch, the same
problem may get a score that differs in its last bits: an exact copy of a false claim
then slips below its own score. How far the scores differ, with the columns that the filter
computes, is measured here. Filters lower their threshold by more than that, and what
differs by more than rounding is refused.

Noise drawn afresh would give the same answer another result in another batch. Jitter is a
hash of the problem instead, so risks stay a fixed function of it: exchangeability, and
with it the guarantee, is untouched. Exact copies of a problem still tie.
"""

from __future__ import annotations

from types import FunctionType
from zlib import crc32

import numpy as np

from .._checks import warn, without_places
from ..exceptions import GuaranteeWarning
from ..graphs.ragged import ranges
from ..ops.hard import segment_sum
from ._parts import Seen, hash_text, mix, refuse_other_settings, single_columns

LARGEST = 512  # problems that are looked at
SIZES = (*8 * (1,), 7, 60)  # then a third of the problems, and the rest
TOLERATED = 1e-5  # beside the largest confidence, or 1: float32 comes out near 1e-6
MARGIN = 10.0  # by which the measured difference may be exceeded elsewhere
_ODD = np.uint64(0x9E3779B97F4A7C15)
SCALE = 1e-8  # the noise's: far above what thresholds are lowered by for rounding
BITS = 10  # bits of a feature in the hash, counted from the problem's largest
LEVELS = ("delta", "bound", "unseen")  # settings that scores do not depend on
N_PROBES = 8  # problems of a part, by whose path risks scorers are compared


def measured_rounding(confidence_alone, batch, confidence):
    """How far confidences of the same claim may differ: the largest seen, ten times.

    Parameters
    ----------
    confidence_alone : callable
        From a batch to its confidences, columns computed anew.
    batch : GraphBatch
        Problems as they were passed.
    confidence : ndarray of shape (n_claims,)
        What the scorer says about all of ``batch`` at once.

    Returns
    -------
    float
        In units of the confidence.

    Raises
    ------
    ValueError
        If columns or scorer look at other problems of the batch too.
    """
    bound = TOLERATED * max(np.abs(confidence).max(initial=0.0), 1.0)
    worst = 0.0
    for rows in _list_batches(len(batch)):
        part = batch[rows]
        before = confidence[ranges(batch.offsets[rows], batch.sizes[rows])]
        difference = np.abs(confidence_alone(part) - before)
        if difference.max(initial=0.0) > bound:
            claim = int(np.argmax(difference))
            raise ValueError(
                f"{batch.name_of(rows[part.problem_of[claim]])}: the scorer, or the columns "
                "that it sees, give other confidences alone than among other problems. They "
                f"differ by {difference[claim]:.3g}, and rounding explains {bound:.3g}. The "
                "guarantee needs a score that looks at one problem at a time: do not "
                "rank, scale or clip over the batch, and compute in float32 or float64"
            )
        worst = max(worst, difference.max(initial=0.0))
    return MARGIN * worst


def _list_batches(n):
    """Problems in batches of several sizes: a network may group its sums by the size."""
    rows = np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))
    bounds = np.cumsum([0, *SIZES, len(rows) // 3])
    parts = np.split(rows, bounds[1:])
    return [part for part in parts if 0 < len(part) < n]


def jittered(risk, batch, seed, steady=False):
    """Risk plus noise in [0, 1e-8 (1 + abs(risk))), shape (n_claims,).

    The noise is a hash of the claim's features and text, its position, and all of its
    problem. Risks are taken to be of order one: noise may reorder those that are less
    than some 1e-8 apart.

    With ``steady``, as for problems that calibrate, there is no noise in a problem of which
    a copy might get another hash, since a feature lies where rounding would decide.
    """
    with np.errstate(over="ignore"):
        own = _hash_rows(batch, np.uint64(seed))
        whole = segment_sum(own, batch.offsets)[batch.problem_of]
        position = np.arange(batch.n_claims) - batch.offsets[batch.problem_of]
        mixed = mix(own + _ODD * position.astype(np.uint64))
        mixed = mix(mixed + mix(whole + _ODD))
    uniform = (mixed >> np.uint64(11)) * 2.0**-53
    if steady and batch.features is not None:
        uniform[_on_border(batch)[batch.problem_of]] = 0.0
    return risk + SCALE * (1 + np.abs(risk)) * uniform


def _hash_rows(batch, seed):
    out = np.full(batch.n_claims, mix(seed + _ODD), dtype=np.uint64)
    if batch.features is not None:
        for column in _leading_bits(batch)[0].T:
            out = mix(out + np.ascontiguousarray(column).view(np.uint64))
    if batch.claims is not None:
        # A problem without texts must get the same hash beside problems that have some.
        known = np.flatnonzero([text is not None for text in batch.claims])
        texts = map(hash_text, batch.claims[known])
        codes = np.fromiter(texts, dtype=np.uint64, count=len(known))
        out[known] = mix(out[known] + codes)
    return out


def _leading_bits(batch):
    """Features in whole steps, such that errors of rounding do not reach the hash.

    A step is 2**-BITS of the power of two that is nearest to the largest feature of the
    problem. Round values, such as 1 or 0.5, thus lie far from where rounding goes the
    other way, and so does the step itself. Returns the steps, and the numbers that were
    rounded: of the features, and of the power of each problem.
    """
    largest = np.abs(batch.features).max(axis=1, initial=0.0)
    top = np.zeros(len(batch))
    np.maximum.at(top, batch.problem_of, largest)
    with np.errstate(divide="ignore"):
        power = np.log2(top)
    power = np.where(np.isfinite(power), power, 0.0)
    scale = BITS - np.rint(power)[batch.problem_of].astype(int)
    exact = np.ldexp(batch.features, scale[:, None])
    return np.rint(exact) + 0.0, exact, power


def _on_border(batch):
    """Problems of which a feature lies where rounding would decide about the hash."""
    _, exact, power = _leading_bits(batch)
    width = 2.0**BITS * np.where(single_columns(batch.features), 1e-5, 1e-9)
    near = np.abs(exact - np.floor(exact) - 0.5) < width
    out = np.abs(power - np.floor(power) - 0.5) < width.max(initial=0.0) / 2.0**BITS
    out[batch.problem_of[near.any(axis=1)]] = True
    return out


def probes_of(batch, path_risks_alone):
    """Some problems of a part with their path risks, weights and groups."""
    n = len(batch)
    rows = np.unique(np.linspace(0, n - 1, min(n, N_PROBES)).astype(int))
    return ((batch[rows], path_risks_alone(batch[rows])),)


def refuse_part(part, filter):
    """ValueError where a part was scored otherwise than a filter does now."""
    if part.made_as is None:
        return
    refuse_other_settings(part.made_as, part_settings(filter))
    for batch, before in part.probes:
        again = filter.check(batch)  # where a rule gives it edges anew
        now = filter._path_risks_alone(again)
        same = np.array_equal(again.edges, batch.edges)
        why = None
        if not same or not _alike(now.path_risk, before.path_risk):
            why = "another scorer, whose confidences differ, or other edges"
        elif now.groups != before.groups or not _alike(now.weights, before.weights):
            why = "functions for by or weight that give other groups or weights"
        if why:
            raise ValueError(f"a part had {why}: score it again, by calibration_part")


def _alike(now, before):
    """Whether numbers are the same but for rounding."""
    if now is None or before is None:
        return now is before
    finite = np.abs(before[np.isfinite(before)])
    bound = TOLERATED * max(finite.max(initial=0.0), 1.0)
    return np.allclose(now, before, rtol=0, atol=bound)


def part_settings(filter):
    """The settings that have to be as they were when a part was scored."""
    guarantee = filter._resolved()
    functions = tuple(map(code_of, guarantee.functions))
    text = described(guarantee, LEVELS), described_scorer(filter.scorer_)
    drawn = filter._seed if filter.ties == "jitter" else None
    edges = filter.edges
    if callable(edges):
        code = code_of(edges) if isinstance(edges, FunctionType) else ""
        edges = f"{_named(edges)} {code}".strip()
    return edges, filter.online, filter.ties, *text, functions, drawn


def described(guarantee, without=()):
    """The settings of a guarantee as text, which is the same in another session."""
    settings = guarantee.get_params(deep=False).items()
    named = {k: _named(v) for k, v in settings if k not in without}
    return f"{type(guarantee).__name__}({named})"


def _named(value):
    return getattr(value, "__qualname__", None) or without_places(repr(value))


def described_scorer(scorer):
    """The settings of a scorer as text, and what its functions do."""
    values = scorer.get_params(deep=False).values()
    functions = [code_of(v) for v in values if isinstance(v, FunctionType)]
    return " ".join([without_places(repr(scorer)), *functions])


def code_of(function):
    """A short text for what a function does: others of its name may do something else."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    more = function.__defaults__, function.__kwdefaults__, cells
    text = f"{_text(function.__code__)} {_text(more)}"
    return f"{crc32(text.encode(errors='replace')):08x}"


def _text(value):
    """``repr`` without places, lines and hashes: the same in every session."""
    if hasattr(value, "co_code"):
        return _text((value.co_code, value.co_names, value.co_consts))
    if isinstance(value, np.ndarray) and value.dtype != object:  # prints show the ends
        return f"{value.dtype} {value.shape} {crc32(value.tobytes())}"
    if isinstance(value, (set, frozenset)):
        return f"{{{sorted(map(_text, value))}}}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_text, value))})"
    return without_places(repr(value))


def refuse_trained(batch, seen, trained, scorer):
    """ValueError where a question trained the filter; a warning where content is the same."""
    known = scorer.saw(batch)
    if known.any():
        raise ValueError(
            f"{batch.name_of(int(np.argmax(known)))} and {int(known.sum()) - 1} other "
            "problems have questions that the public prior in the scorer was learnt from. "
            "The promise needs new problems: calibrate on others, or use another prior"
        )
    group = (seen.question >= 0) & np.isin(seen.question, trained["question"])
    same = np.isin(seen.content, trained["content"])
    proven = group | (same & seen.asked)
    if proven.any():
        raise ValueError(
            f"{batch.name_of(int(np.argmax(proven)))} and {int(proven.sum()) - 1} other "
            "problems trained the filter, or are answers to a question that did. The "
            "promise needs problems that are new to it: calibrate on others, or fit again"
        )
    if same.any():
        warn(
            f"{int(same.sum())} of {len(batch)} problems are exact copies of problems that "
            "trained the filter. They have no question by which to tell whether they are "
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
    batch = filter.check(X)
    seen = Seen.of(batch, groups).sorted()
    before = filter._trained
    filter._trained = {k: np.union1d(before[k], found) for k, found in seen.items()}
