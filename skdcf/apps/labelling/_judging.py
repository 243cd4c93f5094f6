"""Measure agreement between annotators or with a model, and select the claims to label next."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ...evaluation import coverage_interval
from ...graphs import GraphBatch
from ...guarantees import NoFalseClaim
from ...labels import Labels, pack_labels
from ...ops.conformal import conformal_threshold
from ...uses import calibration_scores, check
from .sources import LabelStore

_CONFIDENCE = 0.95
Asked = list[tuple[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa with a confidence interval.

    Parameters
    ----------
    kappa : float
        Cohen's kappa, which is 1 for perfect agreement and 0 for agreement at chance level. Kappa
        is NaN if both annotators assigned the same label to all claims.
    low, high : float
        Bounds of the 95 % confidence interval, which accounts for dependence between claims in
        the same problem. Both bounds are NaN if there are fewer than two problems.
    agreement : float
        Proportion of claims to which both annotators assigned the same label.
    n_claims, n_problems : int
        Number of claims that both annotators judged, and number of problems with such claims.
    n_unknown : int
        Number of claims that were excluded because at least one annotator did not judge them.
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
            f"kappa {self.kappa:.2f} (95 % interval: {self.low:.2f} to "
            f"{self.high:.2f}). The annotators agree on {self.agreement:.0%} of "
            f"{self.n_claims} claims in {self.n_problems} problems. Claims "
            f"that were not judged by both: {self.n_unknown}"
        )


def _cohen_kappa(a, b, problem):
    """Return Cohen's kappa with a jackknife interval over problems (see `agreement`)."""
    judged_by_both = (a >= 0) & (b >= 0)
    if not judged_by_both.any():
        raise ValueError(
            "the agreement is undefined, because no claim was judged by both annotators"
        )
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
    """Return kappa for one or more 2 x 2 tables, or NaN if the chance agreement is 1."""
    tables = tables / np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1)
    observed = np.trace(tables, axis1=-2, axis2=-1)
    chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.round((observed - chance) / (1 - chance), 12)


def _jackknife(kappa, without):
    """Return the 95 % jackknife interval, given the leave-one-problem-out values of kappa."""
    n = len(without)
    if n < 2 or not np.isfinite(without).all():
        return np.nan, np.nan
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    half = student.ppf((1 + _CONFIDENCE) / 2, n - 1) * error
    return float(max(kappa - half, -1.0)), float(min(kappa + half, 1.0))


@dataclass(frozen=True)
class ModelAgreement:
    """Quality of a model's labels, measured on claims that people also judged.

    Parameters
    ----------
    kappa : Kappa
        Agreement corrected for chance.
    found : float
        Proportion of false claims that the model labels as false or unknown.
    found_interval : (float, float)
        Clopper-Pearson interval of ``found`` at a confidence level of 95 %.
    alarms : float
        Proportion of true claims that the model labels as false.
    alarms_interval : (float, float)
        Clopper-Pearson interval of ``alarms`` at a confidence level of 95 %.
    n_false, n_true : int
        Numbers of claims that people labelled as false and as true, respectively.
    overlooked : float
        Proportion of problems in which the model labels at least one false claim as true.
    overlooked_interval : (float, float)
        Clopper-Pearson interval of ``overlooked`` at a confidence level of 95 %. If a filter is
        calibrated on the labels of the model, the proportion of problems in which the filter
        keeps a false claim is at most alpha + ``overlooked``.
    n_problems : int
        Number of problems in which people judged at least one claim.
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
            f"false claims detected by the model: {self.found:.0%} of {self.n_false} "
            f"({a:.0%} to {b:.0%})\n"
            f"true claims labelled as false:      {self.alarms:.0%} of {self.n_true} "
            f"({c:.0%} to {d:.0%})\n"
            f"problems with an undetected false claim: {self.overlooked:.1%} of "
            f"{self.n_problems} ({e:.1%} to {f:.1%}). A filter calibrated on these labels may "
            f"keep a false claim in up to {f:.1%} more of the problems than alpha allows"
        )


def agreement(model: Labels, human: Labels) -> ModelAgreement:
    """Compare the labels of a model with human labels, or compare the labels of two people.

    Parameters
    ----------
    model : sequence of arrays, one per problem
        Labels assigned by the model: 1 true, 0 false, -1 unknown. Unknown labels are treated as
        not true, as in calibration.
    human : sequence of arrays, one per problem
        Human labels of the same claims. Claims that were not judged by a person are excluded.

    Returns
    -------
    agreement : ModelAgreement
        The agreement. Exchanging the two sets of labels does not change ``kappa``, but changes
        the other values.

    Raises
    ------
    ValueError
        If the two sets of labels differ in size, or if no claim was judged by both annotators.

    Notes
    -----
    Kappa is defined as in Cohen (1960). The interval is computed by the jackknife over problems
    with quantiles of Student's t distribution. The claims of an answer are judged together, so
    their errors are dependent. An interval for independent claims would be too narrow.

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
    """Return a proportion and its 95 % Clopper-Pearson interval."""
    if not n:
        return float("nan"), (0.0, 1.0)
    return k / n, tuple(map(float, coverage_interval(k, n)))


def _side_by_side(first, second):
    """Return both sets of labels as flat arrays, together with the problem index of each claim."""
    first = list(first)
    second = list(second)
    sizes = list(map(len, first))
    sizes_of_second = list(map(len, second))
    if sizes != sizes_of_second:
        raise ValueError(
            "both sets of labels must belong to the same claims, but the first set has "
            f"{len(sizes)} problems with {sum(sizes)} claims, and the second set has "
            f"{len(sizes_of_second)} problems with {sum(sizes_of_second)} claims"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    batch = GraphBatch.from_arrays(np.zeros((offsets[-1], 1)), offsets, ())
    return pack_labels(first, batch), pack_labels(second, batch), batch.problem_of


# --- selection and order of the claims to label -------------------------------------------


class NextProblem(NamedTuple):
    """A calibration problem whose labels can raise the threshold.

    Parameters
    ----------
    problem : int
        Problem index.
    claims : tuple of int
        Positions of the claims to judge, in order of decreasing path risk. If all claims
        to judge are true, the threshold rises. If one of these claims is false, the remaining
        claims need not be judged.
    gain : float
        Increase in the threshold if all claims to judge are true and no other label changes.
    """

    problem: int
    claims: tuple[int, ...]
    gain: float


def next_to_label(
    filter: Any, X: Any, y: Labels, alpha: float | None = None
) -> list[NextProblem]:
    """Return the calibration problems whose labels could raise the threshold.

    Calibration treats unknown labels as false, which is safe but can reduce retention
    considerably. If the score of a problem is above the threshold, its labels cannot raise the
    threshold. If the score is at or below the threshold because of unjudged claims, judging
    these claims may raise the threshold. With a higher threshold, the filter keeps more claims in
    new answers.

    Parameters
    ----------
    filter : fitted filter
        A filter, or a fitted pipeline that ends in a filter. The function uses the scorer of the
        filter, and ignores the calibration of the filter.
    X : sequence of ReasoningGraph, or GraphBatch
        Calibration problems.
    y : sequence of arrays, one per problem
        Claim labels: 1 true, 0 false, -1 unknown.
    alpha : float in (0, 1), optional
        The level. If None, the filter's level is used.

    Returns
    -------
    problems : list of NextProblem
        The problems, sorted by increasing number of claims to judge, then by decreasing
        gain.

    Raises
    ------
    ValueError
        If the problems, the labels or alpha are invalid, or if the filter has a ``guarantee``
        other than None.

    Notes
    -----
    The threshold is the k-th smallest score. If one of the k smallest scores rises above the
    threshold, the threshold rises to the next larger score or to the new score. Problems whose
    score is low because of known false claims are excluded, even if they have unknown labels.
    Problems that are not used for calibration, because another answer to the same question is
    used, are also excluded.

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
            f"filter must have guarantee=None, got guarantee={filter.guarantee!r}. Fit "
            "the filter without this guarantee (skdcf fit --show 1)"
        )
    batch, labels = check(filter, X, y)
    alpha = filter.alpha if alpha is None else alpha
    # Calibration uses one answer per question, and only as many questions as required.
    part = filter.calibration_part(batch, np.zeros(batch.n_claims, dtype=int))
    chosen, _ = part.choose(NoFalseClaim(), alpha, fewest=True)
    rows = chosen
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
    """Return the unjudged claims whose path risk keeps the score at or below the threshold."""
    # The score was lowered to allow for rounding errors, so the risks are lowered by the same
    # amount.
    lowered = risk - (risk[labels != 1].min() - score)
    rows = np.flatnonzero((labels == -1) & (lowered <= threshold))
    return tuple(rows[np.argsort(-risk[rows], kind="stable")].tolist())


class Order(Protocol):
    """Protocol for classes that select and sort the claims to label."""

    #: Text that the page shows when all claims are labelled.
    done: str
    #: If True, a problem is finished as soon as one of its claims is judged false.
    one_false_ends: bool

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return the problems to show next, each with the claims to label."""

    def masks(self) -> NDArray[Any] | None:
        """Return the masks of the kept claims, or None if the page should show all claims."""
        return None

    def progress(self) -> str | None:
        """Return a description of the progress, or None to let the page count the judged claims."""
        return None


@dataclass(frozen=True)
class RandomOrder(Order):
    """Order the problems at random.

    Parameters
    ----------
    seed : int or str, default=0
        Seed of the order.
    """

    seed: int | str = 0
    done = "Every claim is judged."
    one_false_ends = False

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return all problems with at least one claim that the annotator has not judged.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            Positions of the problems, each paired with the positions of its claims to label.
        """
        rows = ((i, store.said(i, by)) for i in self.order(store))
        open_claims = (
            (i, tuple(v for v, w in enumerate(r) if w is None)) for i, r in rows
        )
        return [(i, claims) for i, claims in open_claims if claims]

    def order(self, store: LabelStore) -> list[int]:
        """Return the reproducible random order of all problems.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.

        Returns
        -------
        order : list of int
            Positions of the problems, in random order.
        """

        def key(i):
            return hashlib.sha256(f"{self.seed} {store.digest(i)}".encode()).digest()

        return sorted(range(len(store.graphs)), key=key)

    def up_to_last_judged(self, store: LabelStore, by: str) -> list[int]:
        """Return the problems up to the last judged problem, in random order.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        problems : list of int
            Positions of the problems. Some of them may not be judged, because they were skipped
            or because they have no claims. The problems are a random sample only if these are
            included.
        """
        order = self.order(store)
        judged = [any(word is not None for word in store.said(i, by)) for i in order]
        last = max(np.flatnonzero(judged), default=-1)
        return order[: last + 1]


class FilterOrder(Order):
    """Select the claims whose labels can raise a filter's threshold.

    Parameters
    ----------
    filter : fitted filter
        Filter whose scorer determines the order of the claims. The calibration of this filter is
        ignored.
    graphs : sequence of ReasoningGraph
        The problems to label, which will be used for calibration.
    alpha : float, optional
        The level. If None, the filter's level is used.
    """

    done = "No further label can change the threshold."
    one_false_ends = True

    def __init__(self, filter: Any, graphs: Any, alpha: float | None = None):
        self.alpha = alpha
        self.filter = filter
        self.batch = graphs

    def __call__(self, store: LabelStore, by: str) -> Asked:
        """Return the result of `next_to_label`, treating "unknown" verdicts as false.

        Parameters
        ----------
        store : LabelStore
            Store that contains the problems and the verdicts on their claims.
        by : str
            Annotator name.

        Returns
        -------
        open_claims : list of (problem, claims)
            Positions of the problems, each paired with the positions of its claims to label.
        """
        labels = [
            np.where([word == "unknown" for word in store.said(i, by)], 0, row)
            for i, row in enumerate(store.labels(by))
        ]
        open_claims = next_to_label(self.filter, self.batch, labels, self.alpha)
        return [(n.problem, n.claims) for n in open_claims]
