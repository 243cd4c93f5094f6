"""Choose one of several answers, and show only the answers of a batch in which few are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import guards
from ._checks import check_alpha, warn
from ._docs import documented
from .exceptions import CalibrationWarning, ParameterWarning
from .filters import choose_one_each
from .graphs import GraphBatch, Problems
from .graphs.ragged import segment_ids
from .guarantees import NoFalseClaim, problems_needed
from .identity import (
    Groups,
    content_hashes,
    hash_numbers,
    hashes_of,
    mix,
    question_groups,
)
from .ops.conformal import shown_rank
from .ops.hard import segment_min
from .training.splitting import number_groups
from .uses import filter_in

__all__ = ["choose", "chosen_answers", "passing_answers", "release"]

SAFEST_CLAIM = "safest-claim"
#: Maximum difference between two tied risks, relative to 1 + abs(risk). The last bits of a risk
#: can depend on the batch and must not affect the choice.
_TIED = 1e-6


def choose(filter: Any, X: Problems, groups: Groups = None) -> NDArray[np.int64]:
    """For each question, return the index of the answer with the lowest minimum path risk.

    First fit a filter, then use this function to choose answers. Next, label the chosen answers
    and calibrate the filter on them. The guarantee then holds for answers that are chosen in the
    same way from the same number of answers per question. `chosen_answers` returns the chosen
    answers themselves, with metadata that record the choice.

    Parameters
    ----------
    filter : fitted filter
        The filter whose scorer computes the path risks. The threshold of the filter is not used.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_answers, d)
        All sampled answers to each question.
    groups : array-like of shape (n_answers,), optional
        Question that each answer belongs to, as in the filter's ``calibrate``.

    Returns
    -------
    rows : ndarray of int of shape (n_questions,)
        Indices of the chosen answers in X. The questions are in the order in which they first
        appear in X. Ties between answers are broken by a hash of the answer content. An answer
        without claims is chosen only if none of the answers to its question has claims.

    Raises
    ------
    ValueError
        If X contains an answer that was already chosen, or an answer whose provenance differs
        from that of the calibration answers.

    Warns
    -----
    ParameterWarning
        If there are several questions but each has only one answer.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.choosing import choose, chosen_answers
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:100], y[:100])
    >>> answers, question = graphs[100:], [i // 3 for i in range(300)]
    >>> rows = choose(cf, answers, question)
    >>> chosen = chosen_answers(cf, answers, question)
    >>> cf = cf.calibrate(chosen, [y[100 + i] for i in rows])
    >>> chosen[0].provenance["chosen_from"]
    3
    """
    _, rows, _ = _chosen(filter, X, groups)
    return rows


def chosen_answers(filter: Any, X: Problems, groups: Groups = None) -> GraphBatch:
    """Return the answers selected by `choose`, and record the choice in their provenance.

    Parameters
    ----------
    filter : fitted filter
        As in `choose`.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_answers, d)
        As in `choose`.
    groups : array-like of shape (n_answers,), optional
        As in `choose`.

    Returns
    -------
    answers : GraphBatch
        The chosen answers, with one answer per question. The provenance contains
        the rule (``chosen_by``), the number of answers to the question (``chosen_from``), and a
        hash of the scorer and its columns (``chosen_scorer``).

    Raises
    ------
    ValueError
        As in `choose`.
    """
    batch, rows, n_answers = _chosen(filter, X, groups)
    return _marked(filter, batch[rows], n_answers)


def _marked(filter, chosen, n_answers):
    """Return the chosen answers, whose provenance records how they were chosen."""
    scorer = filter_in(filter)._record.scorer
    rows = chosen.provenance_rows or [{}] * len(chosen)
    made = {"chosen_by": SAFEST_CLAIM, "chosen_scorer": scorer}
    return chosen.replace(
        provenance=[
            row | made | {"chosen_from": k}
            for row, k in zip(rows, n_answers.tolist(), strict=True)
        ]
    )


def _chosen(filter, X, groups):
    """Return all answers, the indices of the chosen answers, and the answer count per question."""
    cf = filter_in(filter)
    problems = cf._look(X, skipped=("label_", "chosen_"))
    batch = problems.batch
    guards.refuse_chosen(batch)
    # The smallest path risk of an answer is +inf if it has no claims.
    risks = cf._path_risks(problems)
    risk_of_answer = segment_min(risks.path_risk, batch.offsets)
    question = number_groups(question_groups(batch, groups))
    n_answers = np.bincount(question)
    if len(n_answers) > 1 and (n_answers == 1).all():
        warn(
            f"each of the {len(n_answers)} questions has only one answer, so no answer "
            "can be chosen. Pass all answers to each question, with the same question "
            "text or the same value in groups",
            ParameterWarning,
        )
    best = np.full(len(n_answers), np.inf)
    np.minimum.at(best, question, risk_of_answer)
    with np.errstate(invalid="ignore"):
        tied = risk_of_answer <= (best + _TIED * (1 + np.abs(best)))[question]
    candidates = np.flatnonzero(tied)
    by_hash = np.lexsort((_tie_hashes(batch[candidates]), question[candidates]))
    _, first = np.unique(question[candidates][by_hash], return_index=True)
    return batch, candidates[by_hash][first], n_answers


def _tie_hashes(batch):
    """Return content hashes of answers, which are equal only for copies."""
    with np.errstate(over="ignore"):
        return mix(content_hashes(batch) + hash_numbers(batch))


@documented
def passing_answers(fitted: Any, X: Problems) -> NDArray[np.bool_]:
    """Return which answers pass. In answers that do not pass, no claims are kept.

    Parameters
    ----------
    fitted : fitted filter
        A filter whose guarantee sets ``show``.
    X : {problems}
        The answers.

    Returns
    -------
    passes : ndarray of bool of shape (n_problems,)
        Whether each answer passes.
    """
    risks, _ = fitted._risks_of(X)
    return fitted.calibration_.passes(risks)


@documented
def release(
    filter: Any,
    X: Problems,
    alpha: float,
    *,
    groups: Groups = None,
    one_per_question: bool = False,
) -> NDArray[Any]:
    """Select claims in a batch, with a bound on the error rate among the shown texts.

    An answer is shown to readers if at least one of its claims is kept. Within a batch, the
    expected proportion of shown answers that contain a false claim is at most ``alpha``. For a
    batch without shown answers, this proportion is defined as 0. Over many batches, the
    proportion of shown answers that contain a false claim is about ``alpha`` divided by the
    proportion of batches in which an answer is shown. If the batches are small, the proportion
    over many batches can therefore be far above ``alpha``. A filter whose guarantee has ``show=``
    bounds the error rate among passing answers for batches of any size. For `predict` with
    ``show=1``, an answer without kept claims counts as a success.

    Parameters
    ----------
    filter : fitted filter
        A filter with the guarantee `~skdcf.guarantees.NoFalseClaim` without ``delta``. The filter's
        alpha only determines the required number of calibration answers.
        `release` requires more calibration answers than `predict`. Calibrate the filter at
        the level ``alpha`` times the expected proportion of shown answers.
    X : {problems}
        The new answers in the batch, one per question. If the guarantee has groups (``by=``), each
        group is a separate batch.
    alpha : float in (0, 1)
        Upper bound on the expected proportion of shown answers that contain a false claim.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in the filter's ``calibrate``.
    one_per_question : bool
        Whether to filter only one answer per question, which is selected by a hash. In the other
        answers to the same question, no claim is kept.

    Returns
    -------
    masks : ndarray of shape (n_problems,)
        An object array with one boolean mask per problem, as returned by `predict`.

    Raises
    ------
    ValueError
        If a question was used for training or calibration, if two answers belong to the same
        question, or if the guarantee of the filter is not supported.

    Warns
    -----
    CalibrationWarning
        If no answer is shown.

    Notes
    -----
    The proof requires that the calibration answers and any single new answer are
    exchangeable, given the other new answers. Whether an answer is shown depends on its batch. For
    a batch of one answer, the result is the same as that of `predict`.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.choosing import release
    >>> graphs, y = make_reasoning_graphs(
    ...     1000, kind="felm", random_state=0, return_X_y=True
    ... )
    >>> cf = HardCF(alpha=0.02, random_state=0).fit(graphs[:600], y[:600])
    >>> masks = release(cf, graphs[600:], alpha=0.1)
    >>> shown = [bool(mask.any()) for mask in masks]
    >>> wrong = [bool((row[mask] == 0).any()) for row, mask in zip(y[600:], masks)]
    >>> sum(shown), sum(wrong)
    (254, 8)
    """
    alpha = check_alpha(alpha)
    filter.check_calibrated()
    _refuse_unproven(filter)
    risks, problems = filter._risks_of(X)
    batch = problems.batch
    hashes = hashes_of(batch, groups)
    guards.refuse_trained(filter._record, batch, hashes)
    _refuse_calibrated(batch, hashes, filter._record.calibrated)

    passes = filter.calibration_.passes(risks)
    calibrations = filter.calibration_.by_group()
    number_of = {name: number for number, name in enumerate(calibrations)}
    groups_of = risks.groups or [None] * len(batch)
    group_of = np.array([number_of.get(group, -1) for group in groups_of], int)
    rows = _one_answer_each(batch, hashes, group_of, one_per_question)

    lowest = segment_min(risks.path_risk, batch.offsets)
    rows = rows[passes[rows]]
    thresholds = np.full(len(batch), -np.inf)
    for number, steps in enumerate(calibrations.values()):
        # If only some answers may pass, the batch contains only the passing answers.
        members = rows[group_of[rows] == number]
        rank = shown_rank(steps.position, lowest[members], alpha)
        if rank:
            thresholds[members] = steps.position[rank - 1]
        elif len(members):
            _warn_of_few(steps.n, len(members), alpha)

    kept = risks.path_risk < thresholds[segment_ids(batch.offsets)]
    # A claim with infinite path risk is never kept.
    kept &= ~np.isposinf(risks.path_risk)
    return problems.shaped(kept)


def _refuse_unproven(fitted):
    """Raise ValueError if no guarantee about shown texts has been proven for the filter."""
    guarantee = fitted.calibration_.guarantee
    if fitted.ties == "include":
        raise ValueError(
            'the filter must not have ties="include", because this setting keeps claims '
            "whose path risk equals the threshold and invalidates the guarantee. "
            'Calibrate a filter with ties="exclude"'
        )
    if type(guarantee) is not NoFalseClaim:
        raise ValueError(
            "the filter must be calibrated with guarantee=NoFalseClaim(), got "
            f"{guarantee!r}. The guarantee for shown texts has only been proven for this "
            "type of guarantee"
        )
    if guarantee.delta is not None:
        raise ValueError(
            f"delta must be None, got {guarantee!r}. The guarantee for shown texts has not been "
            "proven for other values. Set delta=None, and calibrate the filter again"
        )


def _refuse_calibrated(batch, hashes, calibrated):
    same_question, _ = hashes.among(calibrated)
    same_question |= (hashes.text >= 0) & np.isin(hashes.content, calibrated["content"])
    if same_question.any():
        raise ValueError(
            "the guarantee only covers new questions, but "
            f"{batch.name_of(int(np.argmax(same_question)))} and "
            f"{int(same_question.sum()) - 1} other problems contain questions that were "
            "used for calibration. Leave these problems out"
        )


def _one_answer_each(batch, hashes, group_of, one_per_question):
    """Return the row indices of one answer per question in each group."""
    order, _ = hashes.orders()
    rows = choose_one_each(hashes.question, order, group_of)
    if len(rows) == len(batch) or one_per_question:
        return rows
    second = np.setdiff1d(np.arange(len(batch)), rows)[0]
    question = hashes.question[second]
    n_answers = int((hashes.question == question).sum())
    raise ValueError(
        f"{batch.name_of(int(second))} is one of {n_answers} answers to the same question, and "
        "the errors of such answers are not independent. Pass one answer to each question, or "
        "one_per_question=True (--one-per-question) to show one answer per question, chosen "
        "without labels"
    )


def _warn_of_few(n, m, alpha):
    """Warn if no answers are shown because the calibration set is too small."""
    needed = problems_needed(alpha / 5)
    if n >= needed:
        return
    warn(
        f"none of the {m} answers are shown at alpha = {alpha:g}. The filter was "
        f"calibrated on {n} answers, but at least {needed} are needed to show a fifth "
        f"of a batch. Fit or calibrate the filter with alpha = {alpha / 5:g}, and "
        f"pass alpha = {alpha:g} here",
        CalibrationWarning,
    )
