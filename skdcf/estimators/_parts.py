"""Parts of a calibration: what is kept of problems that were scored for it.

Problems are known again by hashes of their question and of their content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from .._checks import warn
from ..exceptions import LabelWarning
from ..graphs import GraphBatch, question_groups
from ..graphs.problems import Groups
from ..graphs.sources import iterate_sources
from ..guarantees import PathRisks
from ..ops.conformal import Steps

#: Names of what is compared, in the order of ``made_as``.
MADE_AS = "edges", "online", "ties", "guarantee", "scorer"
MADE_AS += "functions (by what they do)", "random_state"
# The resolution of scores that were computed in float32, or from such features.
COPIED = 1e-6  # resolution of scores that several problems share
SINGLE = 1e-5
_FEW = 0.05  # share of labels by a model above which there is a warning
_NOTHING = "nothing false"


@dataclass(frozen=True)
class Seen:
    """Hashes by which problems are known again.

    Attributes
    ----------
    question : ndarray of int64, shape (n_problems,)
        From `~skdcf.graphs.question_groups`; negative for answers that stand alone.
    content : ndarray of uint64, shape (n_problems,)
        Of question and claims; of columns and edges where there are no texts.
    asked : ndarray of bool, shape (n_problems,)
        Whether the problem has the text of a question.
    """

    question: NDArray[np.int64]
    content: NDArray[np.uint64]
    asked: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: GraphBatch, groups: Groups = False) -> Seen:
        """The hashes of problems; ``groups`` as in `~skdcf.graphs.question_groups`."""
        question = question_groups(batch, groups)
        asked = np.zeros(len(batch), dtype=bool)
        if batch.problems is not None:
            asked = np.array([bool(text and text.strip()) for text in batch.problems])
        return cls(question, content_hashes(batch), asked)

    @classmethod
    def alone(cls, n: int) -> Seen:
        """The hashes of n problems of which nothing is known."""
        return cls(-1 - np.arange(n), np.zeros(n, np.uint64), np.zeros(n, bool))

    @classmethod
    def join(cls, several: list[Seen]) -> Seen:
        """The hashes of several parts; each answer that stands alone still does."""
        question, content, asked = (
            np.concatenate([getattr(one, name) for one in several])
            for name in ("question", "content", "asked")
        )
        alone = question < 0
        question[alone] = -1 - np.flatnonzero(alone)
        return cls(question, content, asked)

    def __getitem__(self, rows) -> Seen:
        return Seen(self.question[rows], self.content[rows], self.asked[rows])

    def orders(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Fixed hashes by which answers are chosen, and by which questions are.

        Copies get hashes of their own: an answer that a model gives in nine of ten samples
        is chosen for nine of ten questions. The hash of a question does not know its
        answers: of several hashes the smallest is smaller, so that questions with many
        answers would come first.
        """
        with np.errstate(over="ignore"):
            out = mix(mix(np.maximum(self.question, -1).view(np.uint64)) + self.content)
            by = np.lexsort((out, self.question.clip(-1)))
            place = np.arange(len(by))
            new = np.append(True, out[by][1:] != out[by][:-1])[: len(by)]
            copy = place - np.maximum.accumulate(np.where(new, place, 0))
            again = by[copy > 0]
            out[again] = mix(out[again] + copy[copy > 0].astype(np.uint64))
            asked = mix(~self.question.view(np.uint64))
        return out, np.where(self.question >= 0, asked, out)

    def sorted(self) -> dict[str, NDArray]:
        """The hashes as they are kept: sorted, each once."""
        question = _sort_distinct(self.question[self.question >= 0])
        return {"question": question, "content": _sort_distinct(self.content)}

    def among(self, kept: dict[str, NDArray]) -> NDArray[np.bool_]:
        """Tell which of the problems are among those that were kept."""
        known = (self.question >= 0) & np.isin(self.question, kept["question"])
        return known | np.isin(self.content, kept["content"])


def _sort_distinct(values):
    """Values sorted, each once; `numpy.unique` takes several times as long."""
    values = np.sort(values)
    return values[np.append(values[:1] == values[:1], values[1:] != values[:-1])]


def content_hashes(batch: GraphBatch) -> NDArray[np.uint64]:
    """A hash of each problem: of its texts, else of its columns and edges."""
    out = np.zeros(len(batch), dtype=np.uint64)
    told = np.zeros(len(batch), dtype=bool)
    if batch.claims is not None:
        for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
            told[i] = a < b and batch.claims[a] is not None
            if told[i]:
                out[i] = hash_text("\x1f".join(batch.claims[a:b]))
    if not told.all():
        out[~told] = _hash_numbers(batch)[~told]
    if batch.problems is not None:
        texts = (hash_text(text or "") for text in batch.problems)
        with np.errstate(over="ignore"):
            out += mix(np.fromiter(texts, dtype=np.uint64, count=len(batch)))
    return out


def _hash_numbers(batch):
    """A hash of the columns and edges of each problem, to the last bit."""
    out = batch.sizes.astype(np.uint64)
    claim = np.arange(batch.n_claims) - batch.offsets[:-1][batch.problem_of]
    with np.errstate(over="ignore"):
        mixed = mix(np.arange(1 + batch.sizes.max(initial=0), dtype=np.uint64))
        rows = mixed[claim]
        if batch.features is not None:
            number = np.arange(1, 1 + batch.n_features, dtype=np.uint64)
            odd = mix(number) | np.uint64(1)
            for column, factor in zip(batch.features.T, odd, strict=True):
                bits = (column + 0.0).view(np.uint64)
                rows += (bits ^ (bits >> np.uint64(29))) * factor
        np.add.at(out, batch.problem_of, mix(rows))
        if len(batch.edges):
            parent, child = claim[batch.edges].T
            problem = batch.problem_of[batch.edges[:, 1]]
            np.add.at(out, problem, mix(parent.astype(np.uint64) + mixed[child + 1]))
        return mix(out)


def hash_text(text):
    """The first 64 bits of the BLAKE2 hash of a text."""
    content = text.encode(errors="replace")
    return int.from_bytes(blake2b(content, digest_size=8).digest())


def mix(x):
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def single_columns(table):
    """Tell which columns hold float32 numbers that are not all round, as 3 or 0.25."""
    single, broken = _compare_single(table[:100_000])
    return single.all(axis=0) & broken.any(axis=0)


def raised(risk, table):
    """Risks in use, higher where a row holds a float32 number that is not round.

    The same problem may have calibrated in float64: 0.6 is 6e-8 less there, and copies of
    a false claim would slip below their own score.
    """
    broken = _compare_single(table)[1].any(axis=1)
    return risk + SINGLE * (1 + np.abs(risk)) * broken if broken.any() else risk


def _compare_single(table):
    """Which numbers float32 can hold, and which of these are not round."""
    with np.errstate(over="ignore"):
        single = table == table.astype(np.float32)
        scaled = table * 1024
        return single, single & (scaled != np.floor(scaled))


@dataclass(frozen=True)
class CalibrationPart:
    """All that is left of problems once they have been scored for calibration.

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
    seen: Seen = field(default_factory=lambda: Seen.alone(0))
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
        groups = self.groups and [self.groups[i] for i in rows]
        names = ("steps", "answers", "weights", "seen", "largest")
        cut = {n: v if (v := getattr(self, n)) is None else v[rows] for n in names}
        return replace(self, groups=groups, **cut)

    def below_copies(self) -> CalibrationPart:
        """The same, with scores lowered that several problems share.

        Returns
        -------
        CalibrationPart
            The part with lower scores.
        """
        position = _below_copies(self.steps.position)
        return replace(self, steps=replace(self.steps, position=position))

    def path_risks(self) -> PathRisks:
        """Weights and groups, as a guarantee takes them.

        Returns
        -------
        PathRisks
            Their weights and groups, without claims.
        """
        none = np.empty(0)
        bounds = np.zeros(len(self) + 1, dtype=np.int64)
        return PathRisks(none, bounds, self.weights, self.groups)

    def choose(self, guarantee, level, fewest):
        """Choose the problems that calibrate; the others are left over.

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
        groups = self.groups or ()
        number = {}
        overlap = any(isinstance(group, frozenset) for group in groups)
        part_of = np.zeros(len(self), np.int64)
        taken = np.zeros(len(self), bool)
        if groups and not overlap:
            part_of[:] = [number.setdefault(group, len(number)) for group in groups]
        order, by_question = self.seen.orders()
        rows = _choose_one_each(self.seen.question, order, part_of)
        if overlap or not fewest:
            return rows, rows[:0]
        for part in np.unique(part_of):
            own = rows[part_of[rows] == part]
            count = guarantee.fewest(len(own), level)
            taken[own[np.argsort(by_question[own], kind="stable")[:count]]] = True
        return np.flatnonzero(taken), rows[~taken[rows]]

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
        first = parts[0]
        groups = None
        for part in parts:
            refuse_other_settings(part.made_as, first.made_as)
        if first.groups is not None:
            groups = [group for part in parts for group in part.groups]
        return cls(
            Steps.join([part.steps for part in parts]),
            _joined(parts, "answers"),
            _joined(parts, "weights"),
            groups,
            Seen.join([part.seen for part in parts]),
            first.made_as,
            _joined_origin(parts),
            tuple(probe for part in parts for probe in part.probes),
            _joined(parts, "largest"),
        )


def _joined(parts, name):
    """A column of all parts, or None where one has none."""
    columns = [getattr(part, name) for part in parts]
    return None if any(c is None for c in columns) else np.concatenate(columns)


def _joined_origin(parts):
    known = [part.origin for part in parts if part.origin is not None]
    joined: dict[str, dict] = {}
    for name, values in (item for origin in known for item in origin.items()):
        joined.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: list(values) for name, values in joined.items()} or None


def _choose_one_each(groups, order, part_of):
    """One problem of each group in each part: the first in the order of a hash.

    Parameters
    ----------
    groups, order, part_of : ndarray of shape (n,)

    Returns
    -------
    ndarray of int, sorted
    """
    if (np.diff(groups, prepend=0) < 0).all():  # each stands alone
        return np.arange(len(groups))
    by = np.lexsort((order, groups, part_of))
    new = np.append(True, np.diff(groups[by]).astype(bool) | (np.diff(part_of[by]) > 0))
    return np.sort(by[new[: len(by)]])


def lowered(several, scorer, batches, confidence, rounding):
    """Several arrays of scores, each less than it is by what scores may differ.

    Parameters
    ----------
    several : sequence of ndarray
        Scores.
    scorer : Scorer
        Its ``resolution`` says how closely confidences repeat themselves, relative to 1 +
        abs(confidence).
    batches : sequence of GraphBatch
        The problems as passed, and as the scorer sees them. Whatever made their features
        is not seen here. A column of float32 numbers that are not all round ones, such as
        3 or 0.25, was computed in float32 and repeats itself no better than that; so does
        a confidence.
    confidence : ndarray of shape (n_claims,)
    rounding : float
        The difference that was measured between batches.
    """
    tables = {id(b.features): b.features for b in batches if b.features is not None}
    tables = [t for t in (*tables.values(), confidence[:, None]) if t.size]
    single = any(single_columns(table).any() for table in tables)
    least = max(scorer.resolution, SINGLE) if single else scorer.resolution
    out = [scores.copy() for scores in several]
    for scores in out:
        finite = np.isfinite(scores)
        scores[finite] -= np.maximum(least * (1 + np.abs(scores[finite])), rounding)
    return out


def _below_copies(scores):
    """Scores, of which those that several problems share are lowered by a millionth.

    Equal scores that are no round numbers come from copies, of which one may be computed
    elsewhere once more. How closely a column that was made before the filter repeats itself
    is seen nowhere: a product of numbers near 1e7 that cancels is off by 1e-8.
    """
    _, code, count = np.unique(scores, return_inverse=True, return_counts=True)
    size = 1 + np.abs(scores)
    with np.errstate(invalid="ignore"):  # infinite scores
        broken = np.abs(scores - np.round(scores, 3)) > 1e-9 * size
    out = scores.copy()
    copied = broken & (count[code] > 1)
    out[copied] -= COPIED * size[copied]
    return out


def refuse_other_settings(found, wanted):
    if found != wanted:
        both = zip(MADE_AS, found or (), wanted or (), strict=False)
        differ = ((name, *two) for name, *two in both if two[0] != two[1])
        texts = (f"{name} = {a}, and is to calibrate with {b}" for name, a, b in differ)
        how = next(texts, "settings that are not known")
        raise ValueError(f"a part has {how}: score it again, by calibration_part")


def note_judges(filter, batch, labels):
    """Note which share of the labels models gave; warn where it is more than a few."""
    judged = labels >= 0
    rows = () if batch.metadata is None else compress(iterate_sources(batch), judged)
    given = [row for row in rows if row]
    models = [row["by"] for row in given if row["kind"] == "model"]
    share = len(models) / max(int(judged.sum()), 1)
    names = sorted(set(map(str, models)))
    filter.origin_ |= {"judged": [share], "judges": names}
    if share > _FEW:
        warn(
            f"{share:.0%} of the labels that calibrate were given by a language model "
            f"({', '.join(names)}), so that the promise is about its verdicts: of errors "
            "that it overlooks, any number may be kept. Label some problems by hand; "
            "skdcf.labelling.agreement says how far the model's labels can be trusted",
            LabelWarning,
        )


def name_errors(said, origin):
    """The sentence of a guarantee, which says what its labels call false, and who does."""
    shares = origin.get("judged") or [0.0]
    judges = ", ".join(origin.get("judges", ()))
    supported = {m for m in origin.get("label_meaning", ()) if m} == {"supported"}
    error = "its context does not support" if supported else ""
    if min(shares) == 1:
        verdict = "finds unsupported by its context" if supported else "calls false"
        error = f"judge {judges} {verdict}"
    elif max(shares) > 0:
        most = "up to " * (len(shares) > 1)
        said += f" (judge {judges} gave {most}{max(shares):.0%} of the labels)"
    if error and _NOTHING in said:
        return said.replace(_NOTHING, f"nothing that {error}")
    return f"{said}, where false is what {error}" if error else said
