"""Several answers to one question: choose one and filter it, or filter all of them as one.

Both are exact in finite samples. A policy shows something at each threshold t. Let its output
depend on t only through the sets {R < t}, let it look at no label, and let its randomness be part
of the question. Then its nonconformity score is s = inf {t : what it shows at t contains a false
claim}, and the usual rank of the calibration scores bounds how often it is wrong.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import guards
from .._checks import check_choice, warn
from ..exceptions import ParameterWarning
from ..graphs import GraphBatch, as_batch, pack_labels, question_groups
from ..graphs.hashes import content_hashes, hash_numbers, mix
from ..graphs.per_problem import LabelList
from ..graphs.problems import Groups, Problems
from ..graphs.ragged import offsets_of
from ..graphs.sources import NEVER_KEPT, SOURCES, UNSURE, read_sources
from ..guards.choices import ANY, CHOSEN_BY, WHOLE, refuse_chosen
from ..guards.provenance import MADE
from ..ops.hard import path_risk, segment_max, segment_min
from ._validation import View, admit, filter_in

SAFEST_CLAIM = "safest-claim"
Rule = Literal["safest-claim", "whole"]
#: Risks that differ by less, relative to 1 + abs(risk), are tied: in another batch the last bits
#: of the same risk may be others, and then the row would decide.
_TIED = 1e-6


def choose(
    filter: Any, X: Problems, groups: Groups = None, rule: Rule = "safest-claim"
) -> NDArray[np.int64]:
    """Return the position of one answer per question, the one whose safest claim is safest.

    Fit a filter, let it choose, judge the chosen answers, and calibrate it with them. Then the
    guarantee holds for answers that the filter chooses in the same way, among as many answers
    to each question. `chosen_answers` returns the answers with the mark that is compared.

    Parameters
    ----------
    filter : fitted filter
        Its scorer gives the path risks. Its threshold plays no part.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_answers, d)
        All answers to each question, as they were sampled.
    groups : array-like of shape (n_answers,), optional
        The question that each answer belongs to, as in ``calibrate`` of the filter.
    rule : {"safest-claim", "whole"}, default="safest-claim"
        "safest-claim" takes the answer whose smallest path risk is smallest. "whole" takes the
        one whose largest path risk is smallest, and serves `skdcf.monitoring.release` only.

    Returns
    -------
    ndarray of int, shape (n_questions,)
        Questions are in the order of their first answers. Ties are decided by a hash of the
        content. An answer without claims is chosen only if no other answer has claims.

    Raises
    ------
    ValueError
        If an answer was chosen before, or was not made like the calibration answers.

    Warns
    -----
    ParameterWarning
        If there is only one answer to each of several questions.

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
    >>> chosen[0].metadata["chosen_by"]["k"]
    3
    """
    _, rows, _ = _chosen(filter, X, groups, rule)
    return rows


def chosen_answers(
    filter: Any, X: Problems, groups: Groups = None, rule: Rule = "safest-claim"
) -> GraphBatch:
    """Return the answers that `choose` chooses, each with the mark that filters compare.

    Parameters
    ----------
    filter : fitted filter
        As in `choose`.
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_answers, d)
        As in `choose`.
    groups : array-like of shape (n_answers,), optional
        As in `choose`.
    rule : {"safest-claim", "whole"}, default="safest-claim"
        As in `choose`.

    Returns
    -------
    GraphBatch
        One answer per question. The metadata key ``chosen_by`` holds the rule, the number k
        of answers to the question, and a hash of the scorer and the columns.

    Raises
    ------
    ValueError
        As in `choose`.
    """
    batch, rows, ks = _chosen(filter, X, groups, rule)
    scorer = filter_in(filter)._chooses_as
    marks = [{"rule": rule, "k": k, "scorer": scorer} for k in ks]
    return _marked(batch[rows], marks)


def as_chosen(filter: Any, X: Problems, groups: Groups = None) -> GraphBatch:
    """Return one answer per question with the mark of `chosen_answers`; nothing is scored.

    Parameters
    ----------
    filter : fitted filter
        As in `choose`.
    X : sequence of ReasoningGraph or GraphBatch
        As in `choose`; the claims may not be known yet.
    groups : array-like of shape (n_answers,), optional
        As in `choose`.

    Returns
    -------
    GraphBatch
        With it provenance is compared before anything is paid for.
    """
    batch = as_batch(X)
    question, n_answers = _questions(batch, groups)
    _, first = np.unique(question, return_index=True)
    scorer = filter_in(filter)._chooses_as
    marks = [
        {"rule": SAFEST_CLAIM, "k": k, "scorer": scorer} for k in n_answers.tolist()
    ]
    return _marked(batch[first], marks)


def _marked(batch, marks):
    """The problems with a mark in the metadata of each."""
    before = [None] * len(batch) if batch.metadata is None else batch.metadata
    return batch.replace_metadata(
        [
            {**(row or {}), CHOSEN_BY: mark}
            for row, mark in zip(before, marks, strict=True)
        ]
    )


def _chosen(filter, X, groups, rule):
    """All answers, the rows of the chosen ones, and the number of answers to each question."""
    check_choice("rule", rule, (SAFEST_CLAIM, WHOLE))
    cf = filter_in(filter)
    batch, _ = admit(cf, X, reset=False)
    guards.at_choice(cf, batch)
    risk_of_answer = _risks(cf, batch, rule)
    question, n_answers = _questions(batch, groups)
    if len(n_answers) > 1 and (n_answers == 1).all():
        warn(
            f"there is one answer to each of the {len(n_answers)} questions, so nothing is "
            "chosen. Pass all answers to a question, with groups= or the same question text",
            ParameterWarning,
        )
    best = np.full(len(n_answers), np.inf)
    np.minimum.at(best, question, risk_of_answer)
    with np.errstate(invalid="ignore"):
        tied = risk_of_answer <= (best + _TIED * (1 + np.abs(best)))[question]
    candidates = np.flatnonzero(tied)
    by_hash = np.lexsort((_tie_hashes(batch[candidates]), question[candidates]))
    _, first = np.unique(question[candidates][by_hash], return_index=True)
    return batch, candidates[by_hash][first], n_answers.tolist()


def _risks(cf, batch, rule):
    """What the rule minimises, for each answer; +inf for an answer without claims."""
    view = View(batch, cf._scored(batch))
    view.confidence = cf._confidence(view)
    risk = path_risk(cf._risk(view.confidence, batch), view.scored)
    if rule == SAFEST_CLAIM:
        return segment_min(risk, batch.offsets)
    return np.where(batch.sizes > 0, segment_max(risk, batch.offsets), np.inf)


def _questions(batch, groups):
    """The number of the question of each answer, by first answers, and how many it has."""
    names = question_groups(batch, groups)
    _, first, question, counts = np.unique(
        names, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.argsort(order)
    return place[question], counts[order]


def _tie_hashes(batch):
    """Hashes of texts, columns and edges: what tells two tied answers apart but their rows."""
    with np.errstate(over="ignore"):
        return mix(content_hashes(batch) + hash_numbers(batch))


def join_answers(X: Problems, groups: Groups = None, y: Any = None) -> Any:
    """Return one problem per question, which holds the claims of all answers to it.

    A filter that is calibrated on joined answers keeps nothing false in any of the k answers,
    with probability at least 1 - alpha. So the guarantee holds for whichever of the k answers
    is taken, however it is picked, also by a person who has read all of them. Another number
    of answers than in calibration is refused, since columns may depend on all of them.

    Parameters
    ----------
    X : sequence of ReasoningGraph, GraphBatch, or array of shape (n_answers, d)
        All answers to each question, as they were sampled.
    groups : array-like of shape (n_answers,), optional
        The question that each answer belongs to, as in ``calibrate`` of a filter.
    y : sequence of 1-D arrays, one per answer, optional
        Labels, to be joined likewise.

    Returns
    -------
    GraphBatch, or (GraphBatch, list of ndarray) if there are labels
        Questions are in the order of their first answers, and answers in the order of X. The
        metadata key ``chosen_by`` holds the number k of answers.

    Raises
    ------
    ValueError
        If answers to one question have different contexts or were made in different ways, or
        if only some have edges or alternatives. Texts that are alternatives of all the
        answers are the alternatives of the joined problem.

    Examples
    --------
    >>> from skdcf import ReasoningGraph
    >>> from skdcf.estimators import join_answers
    >>> answers = [ReasoningGraph(None, (), claims=claims, problem="Why?")
    ...            for claims in (["a", "b"], ["c"])]
    >>> joined, labels = join_answers(answers, y=[[1, 0], [1]])
    >>> joined[0].claims, labels[0].tolist()
    (('a', 'b', 'c'), [1, 0, 1])
    """
    batch = as_batch(X)
    refuse_chosen(batch)
    if batch.wordings is not None:
        raise ValueError(
            "answers with wordings cannot be joined: pass them without wordings, or choose one "
            "answer with chosen_answers"
        )
    question, n_answers = _questions(batch, groups)
    order = np.argsort(question, kind="stable")
    rows_of = np.split(order, np.cumsum(n_answers)[:-1])
    answers = batch[order]
    parts = [batch[rows] for rows in rows_of]
    for part in parts:
        _refuse_unlike(part)
    firsts = [int(rows[0]) for rows in rows_of]
    alternatives = None
    if batch.alternatives is not None:
        alternatives = [
            _shared_alternatives(batch.alternatives[rows]) for rows in rows_of
        ]
    joined = GraphBatch.from_arrays(
        answers.features,
        offsets_of([part.n_claims for part in parts]),
        answers.edges,
        edges_known=[part.edges_known[part.sizes > 1].all() for part in parts],
        claims=answers.claims,
        problems=None if batch.problems is None else batch.problems[firsts],
        alternatives=alternatives,
        context=None if batch.context is None else batch.context[firsts],
        feature_names=batch.feature_names,
        metadata=[_joined_metadata(part) for part in parts],
    )
    if y is None:
        return joined
    labels = pack_labels(y, batch)
    of_answer = batch.split(labels)
    together = [np.concatenate([of_answer[i] for i in rows]) for rows in rows_of]
    return joined, LabelList(together)


def _refuse_unlike(answers):
    """ValueError if answers to one question differ in what has to be the same for all."""
    name = answers.name_of(0)
    for field in ("context", "alternatives"):
        column = getattr(answers, field)
        if column is not None and len({value is None for value in column}) == 2:
            raise ValueError(
                f"{name}: some answers to its question have {field} and others have none"
            )
    if answers.context is not None and len(set(answers.context)) > 1:
        raise ValueError(
            f"{name}: the answers to its question have different contexts, so they cannot be "
            "judged as one problem"
        )
    several = answers.sizes > 1
    if len(set(answers.edges_known[several].tolist())) == 2:
        raise ValueError(
            f"{name}: the edges of some answers to its question are unknown"
        )
    metadata = [None] * len(answers) if answers.metadata is None else answers.metadata
    for key in (*MADE, "sampling"):
        values = [(row or {}).get(key) for row in metadata]
        if any(value != values[0] for value in values):
            raise ValueError(
                f"{name}: {key} differs between answers to its question: {values[0]!r} and "
                f"{next(v for v in values if v != values[0])!r}. Join answers that were made "
                "in the same way"
            )


def _shared_alternatives(alternatives):
    if alternatives[0] is None:
        return None
    others = [set(texts) for texts in alternatives[1:]]
    return [t for t in alternatives[0] if all(t in texts for texts in others)]


def _joined_metadata(answers):
    """The metadata of the first answer, in which lists of claims are those of all answers."""
    rows = [None] * len(answers) if answers.metadata is None else answers.metadata
    joined = dict(rows[0] or {})
    for key in (*NEVER_KEPT, UNSURE):
        if any((row or {}).get(key) for row in rows):
            joined[key] = [
                int(start) + v
                for start, row in zip(answers.offsets, rows, strict=False)
                for v in (row or {}).get(key) or ()
            ]
    if any((row or {}).get(SOURCES) for row in rows):
        joined[SOURCES] = [
            source
            for row, size in zip(rows, answers.sizes.tolist(), strict=True)
            for source in read_sources(row, size)
        ]
    return joined | {CHOSEN_BY: {"rule": ANY, "k": len(answers)}}
