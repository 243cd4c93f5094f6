"""Convert the claims and scores of LM-Polygraph and UQLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_list
from .records import build_dataset
from .thoughts import clean_texts

#: Scores of claims in UQLM.
_UQLM_SCORES = (
    "entailment noncontradiction contrasted_entailment bert_score cosine_sim exact_match "
    "semantic_negentropy semantic_sets_confidence degree_centrality betweenness_centrality "
    "closeness_centrality page_rank laplacian_centrality harmonic_centrality"
)


@contextmanager
def _reading(form):
    """Raise ValueError if arguments do not have the documented form."""
    try:
        yield
    except (TypeError, AttributeError, LookupError, OverflowError) as error:
        raise ValueError(f"the arguments must be {form}, but {error}") from error


@_reading('manager.stats["claims"] and the dict manager.estimations of LM-Polygraph')
def from_lm_polygraph(
    claims: Sequence[Sequence[Any]],
    estimates: Mapping[tuple[str, str], Sequence[float]],
    *,
    labels: Sequence[float] | None = None,
    problems: Sequence[str] | None = None,
) -> Bunch:
    """Convert the claim-level estimates of LM-Polygraph.

    In LM-Polygraph, **higher estimates mean more uncertainty**, and label **1 means false**.
    The adapter negates the estimates and inverts the labels. The features are the negated
    estimates and are named ``neg_<estimator>``. In the result, label 1 means true, as everywhere
    in this package.

    Parameters
    ----------
    claims : list of lists
        The list ``manager.stats["claims"]``, which contains the Claim objects of each generation.
        Only the attribute ``claim_text`` of each claim is used. The manager stores the claims
        only if it was created with ``save_stats=["claims"]``.
    estimates : dict
        The estimates, ``manager.estimations``. The keys are pairs (level, name). Each value is a
        flat list with one finite number per claim. Estimates of the levels "sequence" and "token"
        are ignored. Replace NaN yourself, for example with `numpy.nan_to_num`.
    labels : list, optional
        The results of a fact check, ``manager.gen_metrics["claim", name]``, as a flat list. Each
        result is 1 (false), 0 (true) or NaN (undecided). NaN is replaced with the label -1
        (unknown), which calibration treats as false.
    problems : list of str, optional
        The prompts, which LM-Polygraph stores in ``manager.stats["input_texts"]``. Answers to the
        same prompt are kept together in every split.

    Returns
    -------
    dataset : Bunch
        The data set, as returned by `skdcf.datasets.build_dataset`. The edges are unknown, so pass
        ``edges="none"`` or a rule of `skdcf.edges` to the filter.

    Raises
    ------
    ValueError
        If the lengths of the arguments do not match, if a level is unknown, if there is no
        claim-level estimate, or if a value is invalid.

    Examples
    --------
    >>> from types import SimpleNamespace as Claim
    >>> from skdcf.datasets import from_lm_polygraph
    >>> claims = [[Claim(claim_text="He was born."), Claim(claim_text="He flew.")]]
    >>> estimates = {("claim", "MaximumClaimProbability"): [0.1, 7.5]}
    >>> data = from_lm_polygraph(claims, estimates, labels=[0, 1])
    >>> data.graphs.feature_names, data.graphs.features.ravel().tolist()
    (('neg_MaximumClaimProbability',), [-0.1, -7.5])
    >>> data.labels[0].tolist()
    [1, 0]
    """
    if not len(check_list("claims", claims)):
        raise ValueError(
            'claims must be manager.stats["claims"], which is kept by '
            'UEManager(..., save_stats=["claims"]), but the list is empty'
        )
    texts = [[claim.claim_text for claim in row] for row in claims]
    ends = np.cumsum([len(row) for row in texts])

    def split(name, values):
        flat = np.asarray(values, float)
        if flat.shape != (ends[-1],):
            raise ValueError(
                f"{name} must be a flat list with one value for each of the {ends[-1]} claims, got "
                f"the shape {flat.shape}"
            )
        return np.split(flat, ends[:-1])

    columns = {}
    for (level, name), values in estimates.items():
        check_choice("the level of an estimate", level, ("claim", "sequence", "token"))
        if level == "claim":
            columns[f"neg_{name}"] = split(name, values)
    if not columns:
        raise ValueError(
            f"estimates must contain a claim-level key, got {list(estimates)}"
        )
    rows: dict[str, Any] = {
        "claims": texts,
        "problem": problems,
        "features": [
            -np.transpose(scores) for scores in zip(*columns.values(), strict=True)
        ],
    }
    if labels is not None:
        meanings = {0: 1, 1: 0}
        rows["labels"] = [
            [meanings.get(v, -1 if np.isnan(v) else v) for v in answer.tolist()]
            for answer in split("labels", labels)
        ]
    return _dataset("lm_polygraph", rows, list(columns))


def _dataset(name, columns, feature_names):
    """Return a data set, given one list per key of a problem line."""
    columns = {key: values for key, values in columns.items() if values is not None}
    n = len(columns["claims"])
    for key, values in columns.items():
        if len(check_list(key, values)) != n:
            raise ValueError(
                f"{key} must have one entry for each of the {n} answers, got {len(values)}"
            )
    if "alternatives" in columns:
        columns["alternatives"] = [*map(clean_texts, columns["alternatives"])]
    records = {
        f"{name}/{i}": {
            "feature_names": feature_names,
            **dict(zip(columns, row, strict=True)),
        }
        for i, row in enumerate(zip(*columns.values(), strict=True))
    }
    return build_dataset(records, dict)


@_reading(
    "the UQResult of a long-text scorer of UQLM, and one list of labels per answer"
)
def from_uqlm(result: Any, *, labels: Sequence[ArrayLike] | None = None) -> Bunch:
    """Convert the claim scores of UQLM's long-text scorers.

    **Higher scores mean more confidence**, as in UQLM. The scores are used as features without
    changes.

    Parameters
    ----------
    result : UQResult, data frame or dict
        The result of ``LongTextUQ``, ``LongTextQA`` or ``LongTextGraph``, or the output of its
        methods ``to_dict()`` and ``to_df()``. Graph scorers also return claims of the resampled
        responses, for which ``original_response`` is False. These claims are ignored, because
        they are not part of the answer. The prompts become the questions, and the sampled
        responses become the alternatives.
    labels : list of arrays, optional
        Labels of the claims *that are part of the answer*, with one array per response: 1 true, 0
        false, -1 unknown.

    Returns
    -------
    dataset : Bunch
        The data set, as returned by `skdcf.datasets.build_dataset`. The edges are unknown, so pass
        ``edges="none"`` or a rule of `skdcf.edges` to the filter.

    Raises
    ------
    ValueError
        If a claim has an unknown key, if a score is missing or not finite, or if the lengths of
        the arguments do not match.

    Examples
    --------
    >>> from skdcf.datasets import from_uqlm
    >>> claims_data = [[
    ...     {"claim": "Paris is in France.", "removed": False, "entailment": 0.98},
    ...     {"claim": "Paris has 50 bridges.", "removed": True, "entailment": 0.21}]]
    >>> result = {"prompts": ["Tell me about Paris."], "claims_data": claims_data}
    >>> data = from_uqlm(result)
    >>> data.graphs.feature_names, data.graphs.features.tolist()
    (('entailment',), [[0.98], [0.21]])
    >>> data.graphs[0].problem
    'Tell me about Paris.'
    """
    table = getattr(result, "data", result)
    if hasattr(table, "to_dict"):
        table = table.to_dict("list")
    table = table.get("data", table)
    answers = [
        [claim for claim in claims if _is_in_answer(claim, i)]
        for i, claims in enumerate(table["claims_data"])
    ]
    there = {key for claims in answers for claim in claims for key in claim}
    scores = [key for key in _UQLM_SCORES.split() if key in there]
    if not scores:
        raise ValueError(f"a claim must have a score, one of {_UQLM_SCORES.split()}")
    columns = {
        "claims": [
            [c.get("claim", c.get("sentence")) for c in claims] for claims in answers
        ],
        "features": [[[*map(c.get, scores)] for c in claims] for claims in answers],
        "labels": labels,
        "problem": table.get("prompts", table.get("prompt")),
        "alternatives": table.get("sampled_responses"),
    }
    return _dataset("uqlm", columns, scores)


def _is_in_answer(claim, i):
    """Return whether a claim is part of the answer, or raise ValueError if a key is unknown."""
    others = (
        "claim sentence removed original_response scorer_type claim_questions "
        "claim_qa_responses claim_qa_sampled_responses"
    )
    known = f"{others} {_UQLM_SCORES}".split()
    if unknown := claim.keys() - known:
        raise ValueError(
            f"problem {i}: a claim has the unknown key {min(unknown)!r}. Known keys are "
            f"{known}. Remove the key"
        )
    return claim.get("original_response") is not False
