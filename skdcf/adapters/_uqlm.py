"""Claim scores of UQLM, taken as they come out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from sklearn.utils import Bunch

from .._checks import is_missing
from ..datasets.records import spread
from ._shared import (
    EdgeRule,
    Given,
    Labels,
    Missing,
    is_number,
    make_problems,
    may_be_feature,
)


@spread(Given)
def from_uqlm(
    result: Any,
    *,
    scorers: Sequence[str] | None = None,
    labels: Labels | None = None,
    edges: EdgeRule | Sequence | None = None,
    missing: Missing = "raise",
    name: str = "uqlm",
    **given: Unpack[Given],
) -> Bunch:
    """Take over the claim scores of UQLM's long-text scorers.

    **Higher means more confident**, as in UQLM: scores become features unchanged.

    Parameters
    ----------
    result : UQResult, dict or list of lists of dict
        What ``LongTextUQ``, ``LongTextQA`` or ``LongTextGraph`` return, its ``data``,
        or ``data["claims_data"]``: per response its claims, each with its text under
        ``claim`` or ``sentence`` and its scores. Graph scorers also list claims of the
        resampled responses, with ``original_response`` false: these are no part of the
        answer and are left out. Where ``original_response`` is None, NaN or absent,
        the claim is part of the answer.
    scorers : list of str, optional
        Scores to use. None takes every key that holds a number in some claim, but for
        the names that `from_frame` does not take for features either, such as
        ``label``, ``annotation``, ``gold`` or ``claim_idx``.
    labels : list of arrays, optional
        Per response one label for each claim *that is part of the answer*: 1 true, 0
        false, -1 unknown.
    edges : callable or list, optional
        ``edges(claims, problem)`` as in `skdcf.edges`, or one list of pairs per
        response, numbering the claims of the answer. None: they are not known.
        `skdcf.edges.no_edges` says that there are none.
    missing : {"raise", "mean", "median"} or float
        What to put for scores that are NaN, None, absent or infinite.
    name : str
        Problems are called ``name/0``, ``name/1``, ...
    problems : list of str, optional
        The questions. None takes the prompts of the result, where it holds them.
    alternatives : list of lists of str, optional
        Texts of other answers to each question. None takes the sampled responses of the
        result, where it holds them.
    context : list of str or list of str, optional
        Per response the passages that it has to be supported by; None where they are not
        known.
    groups : list of str or int, optional
        Per response its question, where a question was answered more than once.
    metadata : list of dict, optional
        Per response what else belongs to it.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of int arrays or None), ``groups`` (array
        or None), ``metadata`` (list of dict, or None), ``dropped`` (empty).

    Raises
    ------
    ValueError
        On a missing score with ``missing="raise"``, or numbers that do not fit.

    Examples
    --------
    >>> from skdcf.adapters import from_uqlm
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
    claims_data, prompts, sampled = _parts(result)
    _check_claims(claims_data)
    answers = [list(filter(_in_answer, claims)) for claims in claims_data]
    every = [claim for claims in answers for claim in claims]
    names = _number_keys(every) if scorers is None else list(scorers)
    if not names:
        raise ValueError("no claim has a score: is this claims_data of UQLM?")
    unknown = [key for key in names if not any(key in claim for claim in every)]
    if unknown:
        raise ValueError(f"no claim has {unknown}; there are {_number_keys(every)}")
    texts = [[_text(claim) for claim in claims] for claims in answers]
    columns = {key: [claim.get(key) for claim in every] for key in names}
    given = {"problems": prompts, "alternatives": sampled, "labels": labels} | {
        key: value for key, value in given.items() if value is not None
    }
    return make_problems(texts, columns, given, edges=edges, missing=missing, name=name)


def _parts(result):
    """Claims, prompts and samples out of what UQLM returns, or out of a part of it."""
    data = getattr(result, "data", result)
    if isinstance(data, dict):
        data = data.get("data", data)  # UQResult.to_dict()
        if "claims_data" not in data:
            raise ValueError(
                f"the result holds no 'claims_data', only {list(data)}: claims are "
                "scored by LongTextUQ, LongTextQA and LongTextGraph of UQLM"
            )
        return tuple(map(data.get, ("claims_data", "prompts", "sampled_responses")))
    if hasattr(result, "__len__") and not isinstance(result, str):
        return list(result), None, None
    kind = type(result).__name__
    raise ValueError(
        f"result is a {kind}, but a UQResult of UQLM is due, or the claims_data in it"
    )


def _check_claims(claims_data):
    for i, claims in enumerate(claims_data):
        if not isinstance(claims, (list, tuple)):
            kind = type(claims).__name__
            raise ValueError(f"problem {i} is a {kind}, but a list of claims is due")
        for v, claim in enumerate(claims):
            if not isinstance(claim, dict):
                kind = type(claim).__name__
                raise ValueError(
                    f"problem {i}, claim {v} is a {kind}, but must be a dict"
                )


def _in_answer(claim):
    origin = claim.get("original_response")
    return is_missing(origin) or bool(origin)


def _text(claim):
    for key in ("claim", "sentence"):
        if key in claim:
            return claim[key]
    raise ValueError(f"a claim has neither 'claim' nor 'sentence', only {list(claim)}")


def _number_keys(claims):
    """Keys that hold a score in some claim, in order of appearance."""
    keys = {key: None for claim in claims for key, v in claim.items() if is_number(v)}
    return list(filter(may_be_feature, keys))
