"""Choose one of several answers to a question before filtering.

Choosing answers with these functions preserves the finite-sample guarantee. Consider a policy that
returns a text for each threshold t. The policy may depend on t only through the sets {R < t}, where
R denotes the path risks. The policy must not use labels, and any randomness must be a function of
the question. The nonconformity score of the policy is s = inf {t: the text at t contains a false
claim}. The usual rank among the calibration scores then bounds the error rate of the policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import guards
from .._checks import warn
from ..exceptions import ParameterWarning
from ..graphs import GraphBatch, question_groups
from ..graphs.hashes import content_hashes, hash_numbers, mix
from ..graphs.problems import Groups, Problems
from ..ops.hard import path_risk, segment_min
from ..training.splitting import number_groups
from ._validation import View, admit, filter_in

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
    >>> from skdcf.estimators import choose, chosen_answers
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
    scorer = filter_in(filter)._choice_fingerprint
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
    batch, _ = admit(cf, X, reset=False)
    guards.at_choice(cf, batch)
    risk_of_answer = _risks(cf, batch)
    question, n_answers = _questions(batch, groups)
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


def _risks(cf, batch):
    """Return the smallest path risk of each answer, which is +inf for answers without claims."""
    view = View(batch, cf._with_columns(batch))
    view.confidence = cf._confidence(view)
    risk = path_risk(cf._risk(view.confidence, batch), view.with_columns)
    return segment_min(risk, batch.offsets)


def _questions(batch, groups):
    """Return the question index of each answer, and the number of answers per question.

    Questions are numbered in order of first appearance.
    """
    question = number_groups(question_groups(batch, groups))
    return question, np.bincount(question)


def _tie_hashes(batch):
    """Return content hashes of answers, which are equal only for copies."""
    with np.errstate(over="ignore"):
        return mix(content_hashes(batch) + hash_numbers(batch))
