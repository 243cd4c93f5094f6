"""Compare the verdicts of judges with the labels of people."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .._checks import check_groups, counted
from .._html import Table
from ..identity import Groups
from ..ops.conformal import conformal_rank
from ._intervals import coverage_interval, rate_interval, ratio_variance


def judge_report(
    judged: Mapping[str, ArrayLike],
    labels: ArrayLike,
    groups: Groups = None,
    *,
    path_risk: ArrayLike | None = None,
    cut: float = 0.5,
) -> Table:
    """Report how well judges agree with people, and what follows for a filter.

    The unit is the question. The questions with labels must be a random sample of all questions.

    Parameters
    ----------
    judged : dict of str to array-like of shape (n_claims,)
        One number for each claim, keyed by the name of the judge. The claim is true in the view
        of the judge if the number is larger than ``cut``.
    labels : array-like of shape (n_claims,)
        Labels by people: 1 for true, 0 for false, and -1 for claims that only the judge has seen.
        All claims of a question are labelled, or none.
    groups : array-like of shape (n_claims,), optional
        The question that each claim belongs to. If None, each claim is a question.
    path_risk : array-like of shape (n_claims,), optional
        Path risks of the filter (`skdcf.HardCF.path_risk`). The scorer must not have
        seen these labels. If None, the table does not say what the filter would miss.
    cut : float, default=0.5
        Largest number that means "false".

    Returns
    -------
    report : Table
        One row for each ``judge`` and ``measure``, with ``estimate``, the 95 % limits ``low`` and
        ``high``, and a ``note``. ``report.n_labelled`` and ``report.n_judged`` are numbers of
        questions. The measures are

        * ``false claims found`` (sensitivity) and ``true claims accepted`` (specificity);
        * ``kappa``, which is Cohen's;
        * ``false claims, judge`` and ``false claims, corrected``: the share of false claims in
          the view of the judge, and corrected by the labels;
        * ``labels to halve the interval``, the number of labelled questions at which the interval
          of the corrected rate would be half as wide, or NaN if more labels cannot achieve this;
        * ``missed at 0.1`` (and 0.05, 0.2): the share of answers in which a filter with this
          alpha would keep a false claim if the judge's verdicts were its labels.

    Raises
    ------
    ValueError
        If an argument is invalid, or if no claim is labelled.

    Notes
    -----
    The corrected rate (prediction-powered inference, arXiv:2301.09633) is the judge's rate on all
    N questions, plus the mean difference between people and judge on the n labelled questions. Its
    variance is the sum of both variances, and its interval uses Student's t with n - 1 degrees of
    freedom. If people and judge disagree on fewer than ten questions, or the judge missed
    something in fewer than five, the interval is that of the labels alone, because the plain
    interval would be too short.

    If a rate has at most one claim for each question, its interval is that of Clopper and Pearson.
    Otherwise, it is the interval of a linearised ratio, after one question without and one with
    only such claims were added.

    The threshold for question i is the k-th smallest score that the judge's verdicts give
    to the other n - 1 questions, with ``k = floor(alpha (n + 1))``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdcf.evaluation import judge_report
    >>> rng = np.random.default_rng(0)
    >>> true = rng.random(2000) < 0.8
    >>> lenient = true | (rng.random(2000) < 0.4)  # misses 40 % of the false claims
    >>> labels = np.where(np.arange(2000) < 200, true, -1)
    >>> report = judge_report({"lenient": lenient}, labels)
    >>> frame = report.to_frame().set_index("measure")
    >>> frame.estimate.round(2)[["false claims, judge", "false claims, corrected"]].tolist()
    [0.12, 0.24]
    """
    verdicts = _claims("labels", labels, None)
    if not np.isin(verdicts, (-1, 0, 1)).all():
        raise ValueError("labels must be 1 (true), 0 (false) or -1 (not judged)")
    if not isinstance(judged, Mapping) or not judged:
        raise ValueError(
            f"judged must map at least one name to verdicts, got {judged!r}"
        )
    accepted = {
        name: _claims(f"judged[{name!r}]", values, verdicts.shape) > cut
        for name, values in judged.items()
    }
    if path_risk is not None:
        path_risk = _claims("path_risk", path_risk, verdicts.shape)
    n_claims = len(verdicts)
    question = check_groups(np.arange(n_claims) if groups is None else groups, n_claims)
    is_known = np.bincount(question, verdicts >= 0) > 0
    if not is_known.any():
        raise ValueError("labels must be 0 or 1 for at least one question, got only -1")
    partly = np.flatnonzero((verdicts < 0) & is_known[question])
    if len(partly):
        raise ValueError(
            "labels must not be -1 in a question that has other labels, got -1 for claim "
            f"{partly[0]}. Label this claim, or set all labels of the question to -1"
        )
    columns = {
        "judge": "{judge}",
        "measure": "{measure}",
        "estimate": "{estimate:.3f}",
        "low": "{low:.3f}",
        "high": "{high:.3f}",
        "note": "{note}",
    }
    rows = [
        dict(zip(columns, (name, *row), strict=True))
        for name, of_judge in accepted.items()
        for row in _rows(of_judge, verdicts, question, path_risk)
    ]
    n_labelled = int(is_known.sum())
    heading = f"{n_labelled} of {counted(len(is_known), 'question')} have labels"
    if n_labelled < 10:
        heading += "; fewer than 10 labelled questions show only gross faults"
    if len(judged) > 1:
        heading += "; the best judge looks too good, because it was selected"
    return Table(rows, columns, heading, n_labelled=n_labelled, n_judged=len(is_known))


def _claims(name, values, shape):
    """Return an array with one number for each claim, or raise ValueError."""
    values = np.asarray(values, float)
    if values.ndim != 1 or shape not in (None, values.shape) or not len(values):
        raise ValueError(
            f"{name} must have one number for each claim, got shape {values.shape} for labels of "
            f"shape {shape}. If several people judged a claim, pass the verdict of one of them, "
            "and the others as judges"
        )
    if np.isnan(values).any():
        raise ValueError(
            f"{name} must not be NaN, got NaN for claim {np.isnan(values).argmax()}"
        )
    return values


def _rows(accepted, labels, question, risk):
    """Yield the rows of one judge, given the claims that it takes for true."""
    from sklearn.metrics import cohen_kappa_score

    known = labels >= 0
    is_false = labels == 0
    is_true = labels == 1

    def count(claims):
        return np.bincount(question, claims)

    sizes = np.bincount(question)
    labelled = count(known) > 0
    n = labelled.sum()
    of_judge = count(~accepted)
    of_people = count(is_false)
    missed = count(is_false & accepted)
    silent = "the judge never says false" if accepted.all() else ""
    note = silent if is_false.any() else "people found no false claim"
    yield "false claims found", *rate_interval(of_people - missed, of_people), note
    note = "" if is_true.any() else "people found no true claim"
    yield (
        "true claims accepted",
        *rate_interval(count(is_true & accepted), count(is_true)),
        note,
    )
    kappa = np.nan
    note = "people gave only one label"
    if is_false.any() and is_true.any():
        kappa = cohen_kappa_score(is_true[known], accepted[known])
        note = silent
    yield "kappa", kappa, np.nan, np.nan, note
    yield "false claims, judge", *rate_interval(of_judge, sizes), silent
    differs = (count(known & (is_true != accepted)) > 0).sum()
    if n == len(sizes) or differs < 10 or (missed > 0).sum() < 5:
        rate = rate_interval(of_people, count(known))
        n_needed = 4 * n
        note = "from the labels alone: people and judge disagree too rarely"
        if n == len(sizes):
            note = "from the labels alone: no question is without labels"
    else:
        note = ""
        error = (of_people - of_judge)[labelled]
        mean = of_judge.sum() / sizes.sum() + error.sum() / sizes[labelled].sum()
        of_all = ratio_variance(of_judge, sizes) / len(sizes)
        of_one = ratio_variance(error, sizes[labelled])
        squared = of_all + of_one / n
        reach = stdtrit(n - 1, 0.975) * np.sqrt(squared)
        rate = np.clip([mean, mean - reach, mean + reach], 0, 1).tolist()
        # The interval is half as wide if its squared standard error is a quarter.
        room = squared / 4 - of_all
        n_needed = np.ceil(of_one / room) if room > 0 else np.nan
    yield "false claims, corrected", *rate, note
    note = "" if np.isfinite(n_needed) else "cannot be reached by labels alone"
    yield "labels to halve the interval", float(n_needed), np.nan, np.nan, note
    if risk is None:
        return
    by_judge = _scores(risk, question, ~accepted)[labelled]
    by_people = _scores(risk, question, is_false)[labelled]
    ordered = np.sort(by_judge)
    for alpha in (0.05, 0.1, 0.2):
        k = conformal_rank(n, alpha)
        n_missed = 0
        note = "nothing is kept, because there are too few labels"
        if k:
            # Without the question itself, the ranks from its own on move up by one.
            moves = by_judge <= ordered[k - 1]
            n_missed = (by_people < ordered[k - 1 + moves]).sum()
            note = ""
        limits = coverage_interval(n_missed, n)
        yield f"missed at {alpha:g}", n_missed / n, *limits, note


def _scores(risk, question, is_false):
    """Return the smallest risk of a false claim in each question, and infinity without one."""
    scores = np.full(question.max() + 1, np.inf)
    np.minimum.at(scores, question[is_false], risk[is_false])
    return scores
