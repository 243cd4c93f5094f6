"""What calibration needs to know of some problems, so that they may come in parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import FunctionType
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .._checks import without_places
from ..guarantees import PathRisks
from ..ops.holdout import choose_fewest, choose_one_each
from ..ops.risk_control import Steps
from ._origin import Seen
from ._rounding import TOLERATED
from ._ties import TIES

LEVELS = ("delta", "bound", "unseen")  # settings that scores do not depend on
N_PROBES = 8  # problems of a part, by whose path risks scorers are compared

#: What is compared, in the order of ``made_as``.
MADE_AS = (
    "edges",
    "online",
    "ties",
    "guarantee",
    "scorer",
    "functions (by what they do)",
    "random_state",
)


@dataclass(frozen=True)
class CalibrationPart:
    """What is left of problems once they have been scored for calibration.

    Made by ``calibration_part`` of a filter, for ``calibrate_parts`` of the same one.

    Parameters
    ----------
    steps : Steps
        Where what the guarantee counts grows with the threshold; one step at the
        nonconformity score of each problem if that is all there is to it.
    answers : ndarray of shape (n_problems,)
        Largest path risk of the problem, lowered likewise, +inf where all claims are true.
    weights : ndarray of shape (n_problems,), optional
        Where the guarantee has weights.
    groups : list of length n_problems, optional
        Where it is made for groups.
    seen : Seen, optional
        Hashes of the questions and of the content of the problems.
    made_as : tuple, optional
        Settings of the filter that scored them; None where nobody knows.
    origin : dict, optional
        How the problems were made.
    probes : tuple, optional
        Some of the problems with their path risks, by which scorers, edges and groups are
        compared.
    largest : ndarray of shape (n_problems,), optional
        Largest path risk of each problem, whatever its labels.

    Attributes
    ----------
    scores : ndarray of shape (n_problems,)
        Nonconformity scores, +inf where every threshold is safe.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(199, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs, y)
    >>> parts = [cf.calibration_part(graphs[i : i + 50], y[i : i + 50])
    ...          for i in range(0, 199, 50)]
    >>> cf.calibrate_parts(parts).n_calibration_
    199
    """

    steps: Steps
    answers: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    groups: list | None = None
    seen: Seen = field(default_factory=Seen.none)
    made_as: tuple | None = None
    origin: dict | None = None
    probes: tuple = ()
    largest: NDArray[np.float64] | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """Nonconformity score of each problem."""
        return self.steps.first()

    def __len__(self) -> int:
        """Number of problems."""
        return self.steps.n

    def __getitem__(self, rows: slice | NDArray) -> CalibrationPart:
        """The same of some of the problems."""
        rows = np.arange(len(self))[rows]
        return replace(
            self,
            steps=self.steps[rows],
            answers=self.answers[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else [self.groups[i] for i in rows],
            seen=self.seen[rows],
            largest=None if self.largest is None else self.largest[rows],
        )

    def path_risks(self) -> PathRisks:
        """Weights and groups, as a guarantee takes them.

        Returns
        -------
        PathRisks
        """
        none, bounds = np.empty(0), np.zeros(len(self) + 1, dtype=np.int64)
        return PathRisks(none, bounds, self.weights, self.groups)

    def choose(self, guarantee, level, fewest):
        """Which problems calibrate, and which are left over.

        Of each question one answer calibrates, in each group that the guarantee is made
        for. With ``fewest``, no more questions calibrate than it takes for the rank of
        all of them.

        Parameters
        ----------
        guarantee : Guarantee
            What is promised.
        level : float
            The level that is asked for.
        fewest : bool
            Whether to leave over the questions that do not raise the rank.

        Returns
        -------
        chosen, left_over : ndarray of int
            Numbers of problems, sorted.
        """
        groups, number = self.groups or (), {}
        overlap = any(isinstance(group, frozenset) for group in groups)
        part_of = np.zeros(len(self), dtype=np.int64)
        if groups and not overlap:
            part_of[:] = [number.setdefault(group, len(number)) for group in groups]
        rows = choose_one_each(self.seen.question, self.seen.order(), part_of)
        if overlap or not fewest:
            return rows, rows[:0]
        order = self.seen.question_order()
        return choose_fewest(rows, order, part_of, lambda n: guarantee.fewest(n, level))

    @classmethod
    def join(cls, parts: Iterable[CalibrationPart]) -> CalibrationPart:
        """Several parts as one, in their order.

        Parameters
        ----------
        parts : iterable of CalibrationPart
            At least one.

        Returns
        -------
        CalibrationPart

        Raises
        ------
        ValueError
            If there is none, or they were made with different settings.
        """
        parts = list(parts)
        if not parts:
            raise ValueError("there are no calibration problems: no part was given")
        first, weights, groups, largest = parts[0], None, None, None
        for part in parts:
            _refuse_other_settings(part.made_as, first.made_as)
        if first.weights is not None:
            weights = np.concatenate([part.weights for part in parts])
        if first.groups is not None:
            groups = [group for part in parts for group in part.groups]
        if all(part.largest is not None for part in parts):
            largest = np.concatenate([part.largest for part in parts])
        return cls(
            Steps.join([part.steps for part in parts]),
            np.concatenate([part.answers for part in parts]),
            weights,
            groups,
            Seen.join([part.seen for part in parts]),
            first.made_as,
            _joined_origin(parts),
            tuple(probe for part in parts for probe in part.probes),
            largest,
        )


def _joined_origin(parts):
    known = [part.origin for part in parts if part.origin is not None]
    if not known:
        return None
    names = dict.fromkeys(name for origin in known for name in origin)
    return {
        name: list(dict.fromkeys(v for origin in known for v in origin.get(name, ())))
        for name in names
    }


def probes_of(batch, path_risks_alone):
    """Some problems of a part with their path risks, weights and groups."""
    rows = np.unique(
        np.linspace(0, len(batch) - 1, min(len(batch), N_PROBES)).astype(int)
    )
    return ((batch[rows], path_risks_alone(batch[rows])),)


def refuse_part(part, filter, path_risks_alone):
    """ValueError where a part was scored otherwise than a filter does now."""
    if part.made_as is None:
        return
    _refuse_other_settings(part.made_as, part_settings(filter))
    for batch, before in part.probes:
        now = path_risks_alone(batch)
        if not _alike(now.path_risk, before.path_risk):
            raise ValueError(
                "a part was scored with another scorer, whose confidences differ from "
                "those of this filter, or with other edges: score it again, by "
                "calibration_part"
            )
        if now.groups != before.groups or not _alike(now.weights, before.weights):
            raise ValueError(
                "a part was made with functions for by or weight that give other groups "
                "or weights than those of this filter: score it again, by calibration_part"
            )


def _alike(now, before):
    """Whether numbers are the same but for rounding."""
    if now is None or before is None:
        return now is before
    finite = np.abs(before[np.isfinite(before)])
    bound = TOLERATED * max(finite.max(initial=0.0), 1.0)
    return np.allclose(now, before, rtol=0, atol=bound)


def part_settings(filter):
    """What has to be as it was when a part was scored."""
    guarantee = filter._resolved()
    functions = tuple(map(code_of, guarantee.functions))
    text = described(guarantee, LEVELS), described_scorer(filter.scorer_)
    drawn = filter._seed if TIES[filter.ties].jitter else None
    edges = getattr(filter.edges, "__qualname__", filter.edges)
    return edges, filter.online, filter.ties, *text, functions, drawn


def _refuse_other_settings(found, wanted):
    if found != wanted:
        both = zip(MADE_AS, found or (), wanted or (), strict=False)
        differ = [
            f"{name} = {a}, and is to calibrate with {b}"
            for name, a, b in both
            if a != b
        ]
        raise ValueError(
            f"a part was scored with {[*differ, 'settings that are not known'][0]}: score "
            "it again, by calibration_part"
        )


def described(guarantee, without=()):
    """The settings of a guarantee as text, which is the same in another session."""
    if guarantee is None:
        return None
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
    """As ``repr``, but the same in every session: without places, lines and hashes."""
    if hasattr(value, "co_code"):
        return _text((value.co_code, value.co_names, value.co_consts))
    if isinstance(value, (set, frozenset)):
        return f"{{{sorted(map(_text, value))}}}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_text, value))})"
    return without_places(repr(value))
