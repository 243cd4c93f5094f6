"""Choose one of several answers, and show only the answers of a batch in which few are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from . import full, guards
from ._arrays import number_groups, starts_run
from ._checks import check_alpha, warn
from .exceptions import CalibrationWarning, ParameterWarning
from .graphs import GraphBatch, Problems
from .guarantees import NoFalseClaim
from .identity import (
    Groups,
    hash_numbers,
    hashes_of,
    mix,
    question_groups,
)
from .ops.conformal import shown_rank
from .parts import choose_one_each

__all__ = ["choose", "passing_answers", "release"]


def choose(
    filter: Any, X: Problems, groups: Groups = None
) -> tuple[GraphBatch, NDArray[np.int64]]:
    """For each question, choose the answer with the lowest minimum path risk.

    First fit a filter, then use this function to choose answers. Next, label the chosen answers
    and calibrate the filter on them. The guarantee then holds for answers that are chosen in the
    same way from the same number of answers per question.

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
    answers : GraphBatch
        The chosen answers, with one answer per question. Their provenance contains the rule
        (``chosen_by``), the number of answers to the question (``chosen_from``), and a hash of
        the scorer and its columns (``chosen_scorer``).
    rows : ndarray of int of shape (n_questions,)
        Indices of the chosen answers in X. The questions are in the order in which they first
        appear in X. Ties between answers are broken by a hash of the answer content. An answer
        without claims is chosen only if none of the answers to its question has claims.

    Raises
    ------
    ValueError
        If X contains an answer whose provenance differs from that of the calibration answers, or
        that has already been chosen.

    Warns
    -----
    ParameterWarning
        If there are several questions but each has only one answer.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> from skdcf.choosing import choose
    >>> graphs, y = make_reasoning_graphs(400, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score").fit(graphs[:100], y[:100])
    >>> answers, question = graphs[100:], [i // 3 for i in range(300)]
    >>> chosen, rows = choose(cf, answers, question)
    >>> cf = cf.calibrate(chosen, [y[100 + i] for i in rows])
    >>> chosen[0].provenance["chosen_from"]
    3
    """
    full.refuse(filter, "choose")
    check_is_fitted(filter, "scorer_")
    problems = filter._look(X, skipped=("label_", "chosen_"))
    batch = problems.batch
    # The best of several chosen answers was chosen from more answers than in calibration.
    if any("chosen_by" in row for row in batch.provenance_rows):
        raise ValueError(
            "answers must not be chosen in advance, but the provenance of at least one has the "
            "key 'chosen_by'. Pass all sampled answers to each question instead"
        )
    # The smallest path risk of an answer is +inf if it has no claims.
    risk = filter._path_risks(problems).lowest
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
    np.minimum.at(best, question, risk)
    # The last bits of a risk can depend on the batch and must not affect the choice.
    is_worse = risk > (best + 1e-6 * (1 + np.abs(best)))[question]
    # Hashes of the contents are equal only for copies.
    order = mix(hashes_of(batch, False).content + hash_numbers(batch))
    rows = np.lexsort((order, is_worse, question))
    rows = rows[starts_run(question[rows])]
    chosen = batch[rows]
    before = chosen.provenance_rows or [{}] * len(rows)
    provenance = [
        row
        | {
            "chosen_by": "safest-claim",
            "chosen_scorer": filter._record.scorer,
            "chosen_from": count,
        }
        for row, count in zip(before, n_answers.tolist(), strict=True)
    ]
    return chosen.replace(provenance=provenance), rows


def passing_answers(fitted: Any, X: Problems) -> NDArray[np.bool_]:
    """Return which answers pass. In answers that do not pass, no claims are kept.

    Parameters
    ----------
    fitted : fitted filter
        A filter whose guarantee sets ``show``.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The answers.

    Returns
    -------
    passes : ndarray of bool of shape (n_problems,)
        Whether each answer passes.
    """
    risks, _ = fitted._risks_of(X)
    return fitted.calibration_.passes(risks)


def release(
    filter: Any, X: Problems, alpha: float, *, groups: Groups = None
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
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_problems, d)
        The new answers in the batch, one per question. If the guarantee has groups (``by=``), each
        group is a separate batch, with its own number of calibration answers. The bound then
        holds within each group, and the proportion for all groups together is not bounded.
    alpha : float in (0, 1)
        Upper bound on the expected proportion of shown answers that contain a false claim.
    groups : array-like of shape (n_problems,), or False, optional
        The question that each answer belongs to, as in the filter's ``calibrate``.

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
    full.refuse(filter, "release")
    calibration = filter.calibration_
    guarantee = calibration.guarantee
    is_proven = type(guarantee) is NoFalseClaim and guarantee.delta is None
    if not is_proven or filter.ties == "include":
        raise ValueError(
            "the guarantee for shown texts has only been proven for NoFalseClaim without delta, "
            f'and without ties="include", got {guarantee!r} and ties={filter.ties!r}. Calibrate '
            "another filter"
        )
    risks, problems = filter._risks_of(X)
    batch = problems.batch
    hashes = hashes_of(batch, groups)
    guards.refuse_seen("training", filter._record.trained, batch, hashes)
    guards.refuse_seen("calibration", filter._record.calibrated, batch, hashes)
    rows = np.arange(len(batch))
    first = choose_one_each(hashes.question, rows, risks.group_of)
    for second in np.setdiff1d(rows, first):
        raise ValueError(
            f"{batch.name_of(second)} is one of several answers to the same question, and "
            "the errors of such answers are not independent. Pass one answer to each question"
        )
    # If only some answers may pass, the batch contains only the passing answers.
    group_of = calibration.passing_group(risks)
    thresholds = np.full(len(batch), -np.inf)
    for i, steps in enumerate(calibration.steps):
        of_group = "" if steps.name is None else f" of the group {steps.name!r}"
        members = np.flatnonzero(group_of == i)
        rank = shown_rank(steps.position, risks.lowest[members], alpha)
        needed = guarantee.problems_needed(alpha / 5)
        if rank:
            thresholds[members] = steps.position[rank - 1]
        elif len(members) and steps.n < needed:
            warn(
                f"none of the {len(members)} answers{of_group} are shown at alpha = {alpha:g}. "
                f"The filter was calibrated on {steps.n} answers, but at least {needed} are "
                f"needed to show a fifth of a batch. Fit or calibrate the filter with alpha = "
                f"{alpha / 5:g}, and pass alpha = {alpha:g} here",
                CalibrationWarning,
            )
    return problems.shaped(risks.path_risk < thresholds[batch.problem_of])
