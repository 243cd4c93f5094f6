"""Full conformal filters, in which every label is used for training and for calibration.

The labels of a new answer are unknown, but its first false claim is one of its claims. For each
claim j, the scorer is fitted to the labelled answers and to the new answer, as if j were its first
false claim. If j is, the fit is the same function of all n + 1 answers, whichever of them is new,
so their scores are exchangeable.

=======  =======================================================================
w_j      the fit if claim j is the first false claim of the new answer
R_v      path risk of claim v of the new answer under a fit
s_i      nonconformity score of calibration answer i under a fit
a[j,v]   (1 + #{i: s_i(w_j) <= R_v(w_j)}) / (n + 1)
=======  =======================================================================

The level of claim v is the maximum over j <= v of min(a[j, j], a[j, v]), and then the maximum over
the ancestors of v. A claim is kept at alpha if its level is at most alpha. The level takes the
place of the path risk, so a filter decides as usual. To the fit, an answer adds its claims in the
order in which they are stored, up to and including the first claim that is not true.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import guards
from ._arrays import offsets_of, ranges
from .features.columns import columns_require_fit
from .graphs import GraphBatch
from .guarantees import Calibration, Jumps, NoFalseClaim
from .online import on_prefixes, refuse_late_parents
from .ops.ancestors import sum_ancestors
from .ops.hard import Array, nonconformity_scores, path_risk, segment_sum
from .ops.price import exact_log_price, log_added_worth
from .scorers import ClassifierScorer
from .training.splitting import NOISE, STRENGTH, smoothed_log_odds

SETTLED = 1e-10  # Newton decrement of the last step of a fit
ROUNDS = 30  # number of chord steps after which exact Newton steps are taken


def _chance(log_odds):
    # numpy's tanh takes a fourth of the time of scipy's expit.
    return 0.5 + 0.5 * np.tanh(0.5 * log_odds)


def newton(rows, is_false, weights):
    """Fit a ridge logistic regression by exact Newton steps.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns + 1)
        Standardised columns, and a column of ones, which is not penalised.
    is_false : ndarray of shape (n_rows,)
        Targets between 0 and 1, which must not all be 0 or all be 1.
    weights : ndarray of shape (n_columns + 1,)
        Where to start.

    Returns
    -------
    weights : ndarray of shape (n_columns + 1,)
        The optimum.

    Raises
    ------
    RuntimeError
        If the steps do not settle.
    """
    penalty = _penalty(rows)

    def objective(w):
        z = rows @ w
        return np.logaddexp(0, z).sum() - is_false @ z + w @ (penalty * w) / 2

    for _ in range(100):
        chance = _chance(rows @ weights)
        gradient = rows.T @ (chance - is_false) + penalty * weights
        step = np.linalg.solve(_hessian(rows, chance), gradient)
        decrement = np.sqrt(gradient @ step)
        # Close to the optimum, a whole step is best, and rounding hides the objective.
        while decrement > 1e-3 and objective(weights - step) > objective(weights):
            step = step / 2
        weights = weights - step
        if decrement <= SETTLED:
            return weights
    raise RuntimeError(
        f"the fit to {len(rows)} claims did not settle: its last step was {decrement:g}, but must "
        f"be at most {SETTLED:g}. Remove columns with extreme values"
    )


def _penalty(rows):
    penalty = np.full(rows.shape[1], 1 / STRENGTH)
    penalty[-1] = 0
    return penalty


def _hessian(rows, chance):
    return (rows.T * (chance * (1 - chance))) @ rows + np.diag(_penalty(rows))


def fit_each(rows, is_false, new, start):
    """Fit the regression once for each claim of a new answer, as its first false claim.

    All fits take the same number of chord steps. The Hessian at the start grows by one row from
    hypothesis to hypothesis. A fit that does not settle takes exact Newton steps instead.

    Parameters
    ----------
    rows, is_false : ndarray
        The labelled claims, as in `newton`.
    new : ndarray of shape (n_claims, n_columns + 1)
        The claims of the new answer.
    start : ndarray of shape (n_columns + 1,)
        Weights close to all optima.

    Returns
    -------
    weights : ndarray of shape (n_claims, n_columns + 1)
        The optimum for each hypothesis.
    """
    n = len(new)
    is_used = np.tri(n)
    target = np.identity(n)
    penalty = _penalty(rows)
    inverse = np.empty((n, new.shape[1], new.shape[1]))
    chance = _chance(new @ start)
    current = np.linalg.inv(_hessian(rows, _chance(rows @ start)))
    for j, (row, weight) in enumerate(zip(new, chance * (1 - chance), strict=True)):
        turned = current @ row
        share = weight / (1 + weight * (row @ turned))
        inverse[j] = current = current - share * np.multiply.outer(turned, turned)
    weights = np.tile(start, (n, 1))
    fixed = rows.T @ is_false
    for _ in range(ROUNDS):
        gradient = _chance(weights @ rows.T) @ rows - fixed + penalty * weights
        gradient += (is_used * (_chance(weights @ new.T) - target)) @ new
        step = np.matmul(inverse, gradient[:, :, None])[:, :, 0]
        decrement = np.sqrt(np.abs(np.einsum("ij,ij->i", gradient, step)))
        weights = weights - step
        if decrement.max() <= SETTLED:
            return weights
    # A fit that diverged has no decrement.
    for j in np.flatnonzero(~(decrement <= SETTLED)).tolist():
        used = np.vstack([rows, new[: j + 1]])
        targets = np.append(is_false, target[j, : j + 1])
        weights[j] = newton(used, targets, start)
    return weights


def online_price(hazard, batch, gain):
    """Compute the log price of each claim from the claims up to this claim.

    Claims are kept in the order in which they are stored. The price is the risk that a claim
    adds, relative to the worth that it adds.

    Parameters
    ----------
    hazard : ndarray of shape (n_claims, n_fits)
        Log odds of the hazard.
    batch, gain : object
        As in `skdcf.ops.price.exact_log_price`.

    Returns
    -------
    path_risk : ndarray of shape (n_claims, n_fits)
        The maximum of the log price over each claim and its ancestors.
    """
    lone = np.logaddexp(0, np.clip(hazard, -30, 30))
    total = np.cumsum(lone, axis=0) - lone
    log_risk = np.log(-np.expm1(-lone)) + total[batch.offsets[batch.problem_of]] - total
    units = np.rint(lone * 1e9).astype(np.int64)
    log_worth = log_added_worth(batch.position[:, None], 1, gain)
    return path_risk(log_risk - log_worth + 1e-9 * sum_ancestors(units, batch), batch)


@dataclass(frozen=True)
class LabelledAnswers:
    """Labelled answers, from which levels of new answers are computed.

    Attributes
    ----------
    batch : GraphBatch
        The answers with their columns and edges, but without texts. The calibration answers come
        first, and the others only train.
    labels : ndarray of int of shape (n_claims,)
    groups : list of length n_calibration
        Group of each calibration answer, which is None if the guarantee has no groups.
    answer : ndarray of uint64 of shape (n_answers,)
        Hashes that equal answers share, or 0.
    gain : float
        Exponent of the value of keeping claims.
    max_false : int
        Number of false claims that may be kept.
    online : bool
        Whether the level of a claim must not depend on later claims.
    resolution : float
        Scores that exceed a path risk by less count as equal, relative to 1 + abs(path risk).
    """

    batch: Any
    labels: Array
    groups: list[Any]
    answer: Array
    gain: float
    max_false: int
    online: bool
    resolution: float

    @cached_property
    def _is_added(self):
        """Whether each claim is used in the fit: all earlier claims of its answer must be true."""
        n_false = offsets_of(self.labels != 1)
        return n_false[:-1] == n_false[self.batch.offsets[self.batch.problem_of]]

    @cached_property
    def _is_false(self):
        return self.labels[self._is_added] != 1

    @cached_property
    def _scored(self):
        """Indices, batch and claim rows of the calibration answers that have a score."""
        offsets = self.batch.offsets
        n_false = segment_sum(self.labels != 1, offsets)[: len(self.groups)]
        answers = np.flatnonzero(n_false > self.max_false)
        claims = ranges(offsets[answers], self.batch.sizes[answers])
        return answers, self.batch[answers], claims

    @cached_property
    def _start(self):
        """Weights of the fit to the labelled answers alone, or without slopes if it has none."""
        rows = self._standardised(self.batch.features)[self._is_added]
        start = np.zeros(rows.shape[1])
        start[-1] = smoothed_log_odds(self._is_false)
        if len({*self._is_false}) < 2:
            return start
        return newton(rows, self._is_false, start)

    def _standardised(self, features):
        """Return standardised columns, of which constant ones are 0, and a column of ones."""
        table = features
        if self.online:
            # New answers do not affect the scale of claims that are only used for training.
            table = features[self.batch.offsets[len(self.groups)] : len(self.labels)]
        mean, scale = table.mean(axis=0), table.std(axis=0)
        rounding = NOISE * np.maximum(np.abs(mean), scale.max(initial=0))
        scale[scale <= rounding] = np.inf
        return np.column_stack([(features - mean) / scale, np.ones(len(features))])

    def levels(self, batch, groups=None):
        """Compute the smallest alpha at which each claim of new answers is kept.

        Parameters
        ----------
        batch : GraphBatch
            The new answers, each of which is compared with the labelled answers alone.
        groups : list of length n_problems, optional
            Group of each new answer.

        Returns
        -------
        levels : ndarray of shape (n_claims,)
            The levels, which never decrease along the edges.
        """
        groups = groups or [None] * len(batch)
        levels = [np.ones(0)]
        for i in np.flatnonzero(batch.sizes):
            a = self._compare(batch[[i]], groups[i])
            if not self.max_false:
                a = np.minimum(a, np.diag(a)[:, None])
            levels.append(np.triu(a).max(axis=0))
        return path_risk(np.concatenate(levels), batch)

    def _compare(self, answer, group):
        """Return a[j, v] for all claims j and v of one answer."""
        rows = self._standardised(np.vstack([self.batch.features, answer.features]))
        known, new = np.split(rows, [len(self.labels)])
        used = known[self._is_added]
        is_false = self._is_false
        answers, scored, claims = self._scored
        members = [self.groups[i] == group for i in answers]
        n = self.groups.count(group)
        fits = self._start[None]
        a = []
        # Prices are computed for about 100,000 claims at a time. Without a true claim, no slope
        # can be fitted, so the first claim is a block of its own.
        most = max(1, 2**17 // (len(claims) + len(new)))
        first = 1 if is_false.all() else most
        for block in np.split(new, range(first, len(new), most)):
            if is_false.all():
                # The log odds are those of the counts.
                fits = np.zeros_like(fits[:1])
                fits[0, -1] = np.log(2 * len(used) + 3)
            else:
                fits = fit_each(used, is_false, block, fits[-1])
            risk = self._path_risks(fits, new, answer)
            bounds = risk + self.resolution * (1 + np.abs(risk))
            bounds = guards.raised(bounds, answer)
            settings = self.labels[claims], scored.offsets, self.max_false
            path = self._path_risks(fits, known[claims], scored)
            scores = np.array([nonconformity_scores(row, *settings) for row in path])
            # A risk that is not a number counts all scores, so the claim is dropped.
            is_above = scores[:, None, members] > bounds[:, :, None]
            a.append((1 + (~is_above).sum(axis=2)) / (n + 1))
            used = np.vstack([used, block])
            is_false = np.append(is_false, np.zeros(len(block)))
        return np.concatenate(a)

    def _path_risks(self, fits, rows, batch):
        """Return path risks of shape (n_fits, n_claims) of claims with the given columns."""
        price = online_price if self.online else exact_log_price
        return price(rows @ fits.T, batch, gain=self.gain).T


# ------------------------------------------------------------------------- the filter


class FullCalibration(Calibration):
    """Calibration in which the path risk of a claim is its level.

    The scores of the n answers of a group are the next floats after 1 / (n + 1), ..., n / (n + 1),
    so a claim is kept if and only if its level is at most alpha.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee.
    part : CalibrationPart
        The calibration answers.
    n_labelled : int
        Number of labelled answers in each fit.
    """

    def __init__(self, guarantee, part, n_labelled):
        groups = part.group_of.tolist()
        levels = [
            groups[: i + 1].count(g) / (groups.count(g) + 1)
            for i, g in enumerate(groups)
        ]
        scores = np.nextafter(levels, 2)
        # The calibration answers cannot be filtered, so none of them counts as shown.
        hidden = np.full(len(part), np.inf)
        jumps = Jumps.of_scores(scores)
        super().__init__(guarantee, replace(part, jumps=jumps, lowest=hidden))
        self.scores = np.sort(scores)
        self.n_labelled = n_labelled

    def coverage_law(self, level):
        """Return None, because the coverage for a set of labels has no known distribution."""

    def threshold(self, level):
        """Return NaN, because each answer has its own fit."""
        return np.nan

    def describe_shown(self, level):
        """Return a sentence that states which labels and which scorer are used.

        Parameters
        ----------
        level : float
            The requested level.

        Returns
        -------
        sentence : str
            The sentence.
        """
        return (
            f"All {self.n_labelled} labelled answers train the scorer, and {self.n} of them also "
            "calibrate it. The scorer is the priced logistic regression at which "
            'scorer="linear" starts, fitted again for each answer'
        )


def refuse(filter, what):
    """Raise ValueError if a filter uses all labels for training and for calibration."""
    is_fitted = hasattr(filter, "scorer_")
    if filter._labelled or (filter.calibration_size == "all" and not is_fitted):
        raise ValueError(
            f"{what} requires a scorer that is the same for all answers, but with "
            'calibration_size="all" it is fitted again for each answer. Fit the filter with '
            "calibration_size=None"
        )


def _check_answers(batch, labels=None):
    """Raise ValueError if the theorem does not apply, or if too few claims would be kept."""
    refuse_late_parents(batch, 'calibration_size="all"')
    orphans = np.setdiff1d(np.flatnonzero(batch.position), batch.edges[:, 1])
    if len(orphans):
        raise ValueError(
            f'with calibration_size="all", {batch.locate(orphans[0])} has no parent, although '
            "it is not the first claim. Set edges to a rule such as skdcf.edges.chain_edges (with "
            "the commands, split --edges chain), or use calibration_size=None (fit without "
            "--all-labels), which keeps more claims"
        )
    if labels is None:
        return
    unjudged = np.setdiff1d(batch.problem_of, batch.problem_of[labels >= 0])
    if len(unjudged):
        raise ValueError(
            'with calibration_size="all", at least one claim of each answer must be judged, but '
            f"no claim of {batch.name_of(unjudged[0])} is. Judge one of them"
        )


def fit(cf, problems, scorer):
    """Fit a filter on labelled problems, all of which train and as many as useful calibrate.

    Parameters
    ----------
    cf : ConformalFilter
        The filter, which has read the problems.
    problems : ReadProblems
        The labelled problems, with their columns.
    scorer : Scorer or None
        The unfitted scorer, or None if the columns must be fitted first.

    Raises
    ------
    ValueError
        If no guarantee is known for the scorer, the settings or the problems.
    """
    guarantee = cf._resolved_guarantee
    is_proven = type(guarantee) is NoFalseClaim and guarantee.delta is None
    if not is_proven or guarantee.show != 1 or cf.ties != "exclude":
        raise ValueError(
            'the guarantee with calibration_size="all" is only proven for NoFalseClaim without '
            f'delta, with show=1 and ties="exclude", got {guarantee!r} and ties={cf.ties!r}. Use '
            "calibration_size=None"
        )
    if columns_require_fit(cf.features_):
        raise ValueError(
            'with calibration_size="all", features must not learn from labelled answers, got '
            f"{cf.features!r}"
        )
    if cf._wanted_scorer(problems.columns) == "linear":
        scorer = ClassifierScorer()  # from which the training of "linear" starts
    is_linear = type(scorer) is ClassifierScorer and scorer.estimator is None
    if not is_linear or scorer.target != "hazard" or scorer.gain is None:
        raise ValueError(
            'calibration_size="all" needs a scorer that is refitted for each answer: use '
            'scorer="linear"'
        )
    _check_answers(problems.columns, problems.labels)
    origin = cf._guard_split(problems, problems)
    cf.scorer_ = scorer.fit(problems.columns, problems.labels)
    cf._record = cf._remember(problems, [], origin)
    _calibrate(cf, problems)


def calibrate(cf, X, y, groups):
    """Calibrate a filter on other answers. The labels that it already has only train.

    Parameters
    ----------
    cf : ConformalFilter
        The filter.
    X, y, groups : object
        The answers and their labels, as in the filter's ``calibrate`` method.

    Raises
    ------
    ValueError
        If a question was already used.
    """
    _remember_training(cf, cf._record.calibrated)
    problems, origin = cf._read_calibration(X, y, groups)
    cf._record = replace(cf._record, origin=origin, settings=cf._settings)
    _check_answers(problems.columns, problems.labels)
    _calibrate(cf, problems)


def _calibrate(cf, problems):
    """Choose the calibration answers, and keep all labelled answers for the fits.

    One answer to each question is used for calibration, and no more answers than the rank at
    the level of the filter needs. Other answers to their questions, and copies of them, are in
    no fit.
    """
    part = cf._part(problems)
    hashes = part.hashes
    if hashes.named_by == "answer":
        guards.not_trained(cf._record, part)
    guarantee = cf._resolved_guarantee
    one, _ = part.choose(guarantee, cf._level(), False, in_groups=False)
    chosen, _ = part[one].choose(guarantee, cf._level(), True)
    rows = one[chosen]
    is_answered = np.isin(hashes.question, hashes.question[rows])
    copied = hashes.answer[rows] if hashes.named_by == "text" else ()
    columns = problems.columns
    batch = GraphBatch.from_arrays(
        _columns(cf, problems), columns.offsets, columns.edges
    )
    labels = problems.labels
    answer = hashes.answer
    older = cf._labelled
    if older is not None:
        batch = GraphBatch.from_graphs([*batch, *older.batch])
        labels = np.append(labels, older.labels)
        answer = np.append(answer, older.answer)
    others = np.setdiff1d(np.arange(len(batch)), np.flatnonzero(is_answered))
    candidates = answer[others]
    is_copy = np.isin(candidates, copied) & (candidates != 0)
    order = np.append(rows, others[~is_copy])
    labelled = batch[order]
    if cf.online and labelled.offsets[len(rows)] == labelled.n_claims:
        raise ValueError(
            'with calibration_size="all" and online=True, the scale of the columns comes from '
            f"answers that only train, but all {len(rows)} answers are needed for calibration. "
            "Label another one, or use a larger alpha"
        )
    single = guards.raised(np.zeros(labelled.n_claims), labelled)
    cf.unused_indices_ = np.setdiff1d(np.arange(len(part)), rows)
    _remember_training(cf, hashes[cf.unused_indices_].to_store())
    part = part[rows]
    cf._calibrate_on(part, False, candidates)
    cf._labelled = LabelledAnswers(
        batch=labelled,
        labels=labels[ranges(batch.offsets[order], labelled.sizes)],
        groups=part.groups or [None] * len(rows),
        answer=answer[order],
        gain=cf.scorer_.gain,
        max_false=guarantee.max_false,
        online=cf.online,
        resolution=single.max(initial=cf.scorer_.resolution),
    )
    cf.calibration_ = FullCalibration(cf.calibration_.guarantee, part, len(labelled))
    cf.nonconformity_scores_ = cf.calibration_.scores
    del cf.max_path_risks_


def _remember_training(cf, stored):
    """Add hashes of answers, which can never calibrate again, to those of training answers."""
    trained = cf._record.trained
    joined = {name: np.union1d(trained[name], stored[name]) for name in trained}
    cf._record = replace(cf._record, trained=joined)


def path_risks(cf, problems):
    """Return the levels of all claims as path risks, with the groups of the problems.

    Parameters
    ----------
    cf : ConformalFilter
        The filter.
    problems : ReadProblems
        The new answers.

    Returns
    -------
    risks : PathRisks
        The levels and groups.

    Raises
    ------
    ValueError
        If the theorem does not apply to an answer.
    """
    batch = problems.columns
    _check_answers(batch)
    risks = cf._resolved_guarantee.path_risks(np.ones(batch.n_claims), problems.batch)
    batch = batch.replace_features(_columns(cf, problems))
    return replace(risks, path_risk=cf._labelled.levels(batch, risks.groups))


def _columns(cf, problems):
    """Return the columns of all claims, computed without later claims if online=True."""
    if not cf.online or not problems.batch.n_claims:
        return problems.columns.features
    return on_prefixes(lambda batch: cf._with_columns(batch).features, problems.batch)
