"""How far people, or a model and people, agree, and which claims to judge next."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ...estimators import calibration_scores, check
from ...graphs import GraphBatch, Labels, pack_labels
from ...guarantees import NoFalseClaim
from ...metrics import coverage_interval
from ...ops.conformal import conformal_threshold
from .sources import LabelStore

_CONFIDENCE = 0.95
# Since the last judgement of somebody who still works.
_AT_WORK = timedelta(minutes=10)
Asked = list[tuple[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa with its interval.

    Parameters
    ----------
    kappa : float
        1 where all labels agree, 0 where they agree as often as by chance. NaN where
        that is not defined, as all claims have the same label for both.
    low, high : float
        95 % interval, which takes claims of one problem for dependent. NaN where there
        are fewer than two problems.
    agreement : float
        Share of the claims with the same label.
    n_claims, n_problems : int
        Claims that both have judged, and the problems that they belong to.
    n_unknown : int
        Claims that at least one of them has not judged; they are left out.
    """

    kappa: float
    low: float
    high: float
    agreement: float
    n_claims: int
    n_problems: int
    n_unknown: int

    def __str__(self):
        return (
            f"kappa {self.kappa:.2f} (95 %: {self.low:.2f} to {self.high:.2f}), "
            f"{self.agreement:.0%} of {self.n_claims} claims in {self.n_problems} problems "
            f"agree, {self.n_unknown} not judged by both"
        )


def _cohen_kappa(a, b, problem):
    """Cohen's kappa with the jackknife over problems, as `agreement` describes it."""
    judged_by_both = (a >= 0) & (b >= 0)
    if not judged_by_both.any():
        raise ValueError("no claim was judged by both")
    codes, problem = np.unique(problem[judged_by_both], return_inverse=True)
    tables = np.zeros((len(codes), 2, 2))
    np.add.at(tables, (problem, a[judged_by_both], b[judged_by_both]), 1)
    total = tables.sum(axis=0)
    kappa = float(_kappa(total))
    low, high = _jackknife(kappa, _kappa(total - tables))
    agree = float(np.trace(total) / total.sum())
    return Kappa(
        kappa,
        low=low,
        high=high,
        agreement=agree,
        n_claims=int(total.sum()),
        n_problems=len(codes),
        n_unknown=int((~judged_by_both).sum()),
    )


def _kappa(tables):
    """Kappa of one or several 2 x 2 tables; NaN where chance explains everything."""
    tables = tables / np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1)
    observed = np.trace(tables, axis1=-2, axis2=-1)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.round((observed - chance) / (1 - chance), 12)


def _jackknife(kappa, without):
    """95 % interval from the values without each of the problems."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return np.nan, np.nan
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    half = student.ppf((1 + _CONFIDENCE) / 2, n - 1) * error
    return float(max(kappa - half, -1.0)), float(min(kappa + half, 1.0))


@dataclass(frozen=True)
class ModelAgreement:
    """How far a model's labels can be trusted, measured on claims that people judged.

    Parameters
    ----------
    kappa : Kappa
        Agreement beyond chance.
    found : float
        Share of the false claims that the model calls false.
    found_interval : (float, float)
        Clopper-Pearson, 95 %.
    alarms : float
        Share of the true claims that the model calls false.
    alarms_interval : (float, float)
    n_false, n_true : int
        Claims that people call false, and true.
    overlooked : float
        Share of the problems in which the model calls a claim true that is false.
    overlooked_interval : (float, float)
        A filter that calibrates on the model's labels keeps a false claim in at most
        alpha plus this share of problems.
    n_problems : int
    """

    kappa: Kappa
    found: float
    found_interval: tuple[float, float]
    alarms: float
    alarms_interval: tuple[float, float]
    n_false: int
    n_true: int
    overlooked: float
    overlooked_interval: tuple[float, float]
    n_problems: int

    def __str__(self):
        (a, b), (c, d) = self.found_interval, self.alarms_interval
        e, f = self.overlooked_interval
        return (
            f"{self.kappa}\n"
            f"false claims that the model finds: {self.found:.0%} of {self.n_false} "
            f"({a:.0%} to {b:.0%})\n"
            f"true claims that it calls false:   {self.alarms:.0%} of {self.n_true} "
            f"({c:.0%} to {d:.0%})\n"
            f"problems with an error that it overlooks: {self.overlooked:.1%} of "
            f"{self.n_problems} ({e:.1%} to {f:.1%}); calibrated on its labels, a filter "
            f"may keep a false claim in up to {f:.1%} more of the problems than alpha says"
        )


def agreement(model: Labels, human: Labels) -> ModelAgreement:
    """Compare labels of a model with those of people, or those of two people.

    Parameters
    ----------
    model : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown. A claim of which the model is unsure counts as not
        called true, as in calibration.
    human : sequence of arrays, one per problem
        Labels of the same claims. Claims that no person judged are left out.

    Returns
    -------
    ModelAgreement
        With ``kappa``, Cohen's kappa and its interval, in which the two are alike.

    Raises
    ------
    ValueError
        If the labels do not belong to the same claims, or none is judged by both.

    Notes
    -----
    Kappa is that of Cohen (1960). Its interval is that of the jackknife over problems, with
    the quantile of Student's t: claims of one answer are judged together and err together,
    so that a formula for independent claims would be too narrow.

    Examples
    --------
    >>> from skdcf.apps.labelling import agreement
    >>> human = [[1, 1, 0], [1, 0], [1, 1], [0]]
    >>> model = [[1, 1, 0], [1, 1], [1, -1], [0]]
    >>> result = agreement(model, human)
    >>> result.overlooked, result.n_problems
    (0.25, 4)
    >>> round(result.kappa.kappa, 2)
    0.7
    """
    m, h, problem = _side_by_side(model, human)
    false = int((h == 0).sum())
    true = int((h == 1).sum())
    n = len({*problem[h >= 0]})
    of_false = _share(int(((h == 0) & (m != 1)).sum()), false)
    alarms = _share(int(((h == 1) & (m == 0)).sum()), true)
    missed = _share(len(np.unique(problem[(h == 0) & (m == 1)])), n)
    kappa = _cohen_kappa(m, h, problem)
    return ModelAgreement(
        kappa,
        found=of_false[0],
        found_interval=of_false[1],
        alarms=alarms[0],
        alarms_interval=alarms[1],
        n_false=false,
        n_true=true,
        overlooked=missed[0],
        overlooked_interval=missed[1],
        n_problems=n,
    )


def _share(k, n):
    """A share with its interval."""
    if not n:
        return float("nan"), (0.0, 1.0)
    return k / n, tuple(map(float, coverage_interval(k, n)))


def _side_by_side(first, second):
    """Two sets of labels as flat arrays, and the problem of each claim."""
    first = list(first)
    second = list(second)
    sizes = list(map(len, first))
    sizes_of_second = list(map(len, second))
    if sizes != sizes_of_second:
        raise ValueError(
            f"labels of {len(sizes)} problems with {sum(sizes)} claims, but of "
            f"{len(sizes_of_second)} with {sum(sizes_of_second)}: they must belong to the "
            "same claims"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    return pack_labels(first, batch), pack_labels(second, batch), batch.problem_of


# --- which claims are worth the next hour of labelling, and in what order ----------------


class NextProblem(NamedTuple):
    """A problem that labels can move the threshold with.

    Parameters
    ----------
    problem : int
        Its position.
    claims : tuple of int
        Positions of the claims to judge, the riskiest of the kept ones first. If all of
        them are true, the threshold moves; where one is false, the others need not be
        judged.
    gain : float
        How far the threshold rises if they are true and nothing else changes.
    """

    problem: int
    claims: tuple[int, ...]
    gain: float


def next_to_label(
    filter: Any, X: Any, y: Labels, alpha: float | None = None
) -> list[NextProblem]:
    """The calibration problems whose labels would move the threshold.

    An unknown label counts as false in calibration, which is safe and may cost a great
    deal. It costs nothing in a problem whose score lies above the threshold: no label
    there can move it. Where the score lies at or below the threshold because of claims
    that nobody judged, judging these may raise it, and more is kept of every new answer.

    Parameters
    ----------
    filter : fitted filter
        Or a fitted pipeline that ends in one. Its scorer is used, not its calibration.
    X : sequence of ReasoningGraph, or GraphBatch
        Calibration problems.
    y : sequence of arrays, one per problem
        1 true, 0 false, -1 unknown.
    alpha : float in (0, 1), optional
        None is the filter's own.

    Returns
    -------
    list of NextProblem
        First those that need the fewest judgements, then those with the larger gain.

    Raises
    ------
    ValueError
        On bad problems, labels or alpha, or if the filter has a guarantee of its own.

    Notes
    -----
    The threshold is the k-th smallest score. It rises if one of the k smallest scores
    rises above it, to the next larger score or to the new one. A problem whose known
    false claims hold its score down is left out, whatever else is unknown in it, and so is
    one that would not calibrate, as another answer to its question does.

    Examples
    --------
    >>> from skdcf import HardCF, ReasoningGraph
    >>> from skdcf.apps.labelling import next_to_label
    >>> graphs = [ReasoningGraph([[0.9], [0.1 * i]], []) for i in range(9)]
    >>> y = [[1, 0] if i < 6 else [-1, 0] for i in range(9)]
    >>> cf = HardCF(0, alpha=0.2).fit(graphs, y)
    >>> [(n.problem, n.claims) for n in next_to_label(cf, graphs, y)]
    [(6, (0,)), (7, (0,)), (8, (0,))]
    """
    if filter.guarantee is not None:
        raise ValueError(
            f"the guarantee of this filter is {filter.guarantee!r}, but next_to_label is "
            "made for guarantee=None: fit such a filter (skdcf fit --show 1)"
        )
    batch, labels = check(filter, X, y)
    alpha = filter.alpha if alpha is None else alpha
    # One answer per question calibrates, and of the questions no more than are needed.
    part = filter.calibration_part(batch, np.zeros(batch.n_claims, dtype=int))
    chosen, _ = part.choose(NoFalseClaim(), alpha, fewest=True)
    rows = part.rows[chosen]
    scores_now = calibration_scores(filter, batch, labels)[rows]
    hoped = calibration_scores(filter, batch, np.where(labels == -1, 1, labels))[rows]
    risk = np.concatenate(list(filter.path_risk(batch)), axis=None)
    threshold = conformal_threshold(np.sort(scores_now), alpha)
    asked = []
    for at in np.flatnonzero((scores_now <= threshold) & (hoped > threshold)).tolist():
        i = int(rows[at])
        claims = slice(batch.offsets[i], batch.offsets[i + 1])
        to_judge = _to_judge(labels[claims], risk[claims], scores_now[at], threshold)
        scores = np.where(np.arange(len(scores_now)) == at, hoped, scores_now)
        moved = conformal_threshold(np.sort(scores), alpha)
        gain = 0.0 if moved == threshold else float(moved - threshold)
        asked.append(NextProblem(i, to_judge, gain))
    return sorted(asked, key=lambda n: (len(n.claims), -n.gain, n.problem))


def _to_judge(labels, risk, score, threshold):
    """Unknown claims whose path risk holds the score at or below the threshold."""
    lowered = risk - (risk[labels != 1].min() - score)  # as rounding lowered the score
    rows = np.flatnonzero((labels == -1) & (lowered <= threshold))
    return tuple(rows[np.argsort(-risk[rows], kind="stable")].tolist())


class Order(Protocol):
    """The claims that a labelling page asks for, and their order."""

    #: Text of the page when nothing is left to ask for.
    done: str
    #: Whether nothing else is asked of a problem once one of its claims is false.
    one_false_ends: bool

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """The problems to show next, each with the claims that are asked for."""

    def masks(self, store: LabelStore) -> list[list[bool]] | None:
        """What is kept of each problem, where the page shows nothing else of it."""
        return None

    def progress(self, store: LabelStore) -> str | None:
        """How far the work has come, where that is no count of claims."""
        return None


def share_of_work(store: LabelStore, by: str) -> NDArray[np.bool_] | None:
    """The problems that somebody begins with while others judge at the same time.

    Parameters
    ----------
    store : LabelStore
        What was said so far.
    by : str
        Who judges.

    Returns
    -------
    ndarray of bool, shape (n_problems,), or None
        None where nobody else has judged in the last ten minutes.
    """
    since = (datetime.now(UTC) - _AT_WORK).isoformat(timespec="seconds")
    names = {by}
    for event in reversed(store.events):
        if event["when"] < since:
            break
        names.add(event["by"])
    if len(names) == 1:
        return None
    digests = [int(store.digest(i)[:8], 16) for i in range(len(store.graphs))]
    return np.array(digests) % len(names) == sorted(names).index(by)


@dataclass(frozen=True)
class RandomOrder(Order):
    """Problems in an order that nothing about them decides.

    Parameters
    ----------
    seed : int or str, default=0
        Another seed, another order.
    """

    seed: int | str = 0
    done = "Every claim is judged."
    one_false_ends = False

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give all problems that hold a claim without a label.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        rows = ((i, store.said(i, by)) for i in self.order(store))
        open_claims = (
            (i, tuple(v for v, w in enumerate(r) if w is None)) for i, r in rows
        )
        return [(i, claims) for i, claims in open_claims if claims]

    def order(self, store: LabelStore) -> list[int]:
        """Give the order of all problems, which is the same at the next start.

        Parameters
        ----------
        store : LabelStore
            What was said so far.

        Returns
        -------
        list of int
            Positions of the problems.
        """

        def key(i):
            return hashlib.sha256(f"{self.seed} {store.digest(i)}".encode()).digest()

        return sorted(range(len(store.graphs)), key=key)

    def passed_over(self, store: LabelStore, by: str) -> list[int]:
        """Give the problems that nobody judged although a later one was judged.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of int
            Where there are any, those that were judged are not a random draw.
        """
        order, judged = self._judged(store, by)
        last = max(np.flatnonzero(judged), default=0)
        answers_before = zip(order[:last], judged[:last], strict=True)
        return [i for i, was in answers_before if not was and store.graphs[i].n_claims]

    def reached(self, store: LabelStore, by: str) -> list[int]:
        """Give the problems without claims that the order had come to.

        Nothing can be said of them, and they belong to the draw as those that were judged.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of int
            Positions of the problems that stand before the last one that was judged.
        """
        order, judged = self._judged(store, by)
        last = max(np.flatnonzero(judged), default=0)
        return [i for i in order[:last] if not store.graphs[i].n_claims]

    def _judged(self, store, by):
        """The order, and whether each problem in it was judged."""
        order = self.order(store)
        return order, [
            any(word is not None for word in store.said(i, by)) for i in order
        ]


class FilterOrder(Order):
    """First the claims whose labels can move the threshold of a filter.

    Parameters
    ----------
    filter : fitted filter
        Its scorer orders the claims; its calibration is not used.
    graphs : sequence of ReasoningGraph
        The problems that are judged, which will calibrate.
    alpha : float, optional
        None is the filter's own.
    """

    done = "No label can move the threshold any more."
    one_false_ends = True

    def __init__(self, filter: Any, graphs: Any, alpha: float | None = None):
        self.alpha = alpha
        self.filter = filter
        self.batch = graphs

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the problems of `next_to_label`; what was left open counts as false.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who judges.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        labels = [
            np.where([word == "unknown" for word in store.said(i, by)], 0, row)
            for i, row in enumerate(store.labels(by))
        ]
        open_claims = next_to_label(self.filter, self.batch, labels, self.alpha)
        return [(n.problem, n.claims) for n in open_claims]


@dataclass(frozen=True)
class Disagreements(Order):
    """The claims that two people judged differently.

    Parameters
    ----------
    first, second : str
        Their names, as in the journal.
    """

    first: str
    second: str
    done = "Nothing is left on which the two disagree."
    one_false_ends = False

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Give the problems with claims that are not settled yet.

        Parameters
        ----------
        store : LabelStore
            What was said so far.
        by : str
            Who settles.

        Returns
        -------
        list of (problem, claims)
            Positions of problems, each with those of its claims that are asked for.
        """
        open_claims = defaultdict(tuple)
        for i, v, a, b in store.compare(self.first, self.second, by):
            open_claims[i] += (v,) * (a != b)
        return [(i, claims) for i, claims in open_claims.items() if claims]
