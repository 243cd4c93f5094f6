"""Scores that other uncertainty tools computed, taken as they come out of them."""

import math
from numbers import Real

import numpy as np

from .._checks import check_choice, is_missing
from ..graphs import ReasoningGraph
from ._collect import (
    check_parallel,
    edges_of,
    fill_missing,
    item_of,
    may_be_feature,
    pack,
)


def from_uqlm(
    claims_data,
    *,
    scorers=None,
    problems=None,
    labels=None,
    edges=None,
    missing="raise",
    name="uqlm",
):
    """Take over the claim scores of UQLM's long-text scorers.

    **Higher means more confident**, as in UQLM: scores become features unchanged.

    Parameters
    ----------
    claims_data : list of lists of dict
        ``result.data["claims_data"]``: per response its claims, each with its text
        under ``claim`` or ``sentence`` and its scores. Graph scorers also list claims
        of the resampled responses, with ``original_response`` false: these are no part
        of the answer and are left out. Where ``original_response`` is None, NaN or
        absent, the claim is part of the answer.
    scorers : list of str, optional
        Scores to use. None takes every key that holds a number in some claim, but for
        the names that `from_frame` does not take for features either, such as
        ``label``, ``annotation``, ``gold`` or ``claim_idx``.
    problems : list of str, optional
        The prompts.
    labels : list of 0/1 arrays, optional
        Per response one label for each claim *that is part of the answer*.
    edges : callable or list, optional
        ``edges(claims, problem)`` as in `skdcf.edges`, or one list of pairs per
        response, numbering the claims of the answer. None: no dependencies.
    missing : {"raise", "mean", "median"} or float
        What to put for scores that are NaN, None or absent.
    name : str
        Problems are called ``name/0``, ``name/1``, ...

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of 0/1 int arrays or None),
        ``dropped`` (empty).

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
    >>> data = from_uqlm(claims_data, problems=["Tell me about Paris."])
    >>> data.graphs.feature_names, data.graphs.features.tolist()
    (('entailment',), [[0.98], [0.21]])
    """
    check_parallel("problems", problems, len(claims_data))
    check_parallel("lists of edges", edges, len(claims_data))
    answers = [
        [claim for claim in claims if _in_answer(claim)] for claims in claims_data
    ]
    every = [claim for claims in answers for claim in claims]
    names = _number_keys(every) if scorers is None else list(scorers)
    if not names:
        raise ValueError("no claim has a score: is this claims_data of UQLM?")
    unknown = [key for key in names if not any(key in claim for claim in every)]
    if unknown:
        raise ValueError(f"no claim has {unknown}; there are {_number_keys(every)}")
    texts = [[_text(claim) for claim in claims] for claims in answers]
    table = np.array([[_number(c.get(k)) for k in names] for c in every], dtype=float)
    table = table.reshape(len(every), len(names))
    if labels is not None:
        labels = _labels_of(labels, texts, lambda value: value)
    return _build(texts, table, names, problems, labels, edges, missing, name)


def from_lm_polygraph(
    claims,
    estimates,
    *,
    labels=None,
    problems=None,
    edges=None,
    missing="raise",
    undecided="false",
    name="lm_polygraph",
):
    """Take over the claim-level estimates of LM-Polygraph.

    There **higher means more uncertain**, and label **1 means false**. Both are turned
    round: features are minus the estimates, named ``neg_<estimator>``, and label 1 of
    what is returned means true, as everywhere in this package.

    Parameters
    ----------
    claims : list of lists
        ``manager.stats["claims"]``: per generation its Claim objects, of which the
        attribute ``claim_text`` is read.
    estimates : dict
        ``manager.estimations``: name of the estimator, or pair (level, name), to its
        values, flat over all claims or one list per generation. Entries of another
        level than "claim" are ignored.
    labels : list, optional
        Of the fact check, flat or one list per generation: 1 false, 0 true, NaN not
        decided.
    problems : list of str, optional
        The prompts.
    edges : callable or list, optional
        ``edges(claims, problem)`` as in `skdcf.edges`, or one list of pairs per
        generation. None: no dependencies.
    missing : {"raise", "mean", "median"} or float
        What to put for features that are NaN; a number is used as it is, so it is
        minus the estimate.
    undecided : {"false", "drop", "raise"}
        Claims without a verdict count as false, which keeps the guarantee, or are
        removed, which makes it a guarantee about the other ones only.
    name : str
        Problems are called ``name/0``, ``name/1``, ...

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of 0/1 int arrays or None),
        ``dropped`` (empty).

    Raises
    ------
    ValueError
        If numbers do not fit, two estimates have one name, or something is missing
        and may not be.

    Examples
    --------
    >>> from types import SimpleNamespace as Claim
    >>> from skdcf.adapters import from_lm_polygraph
    >>> claims = [[Claim(claim_text="He was born."), Claim(claim_text="He flew.")]]
    >>> estimates = {("claim", "MaximumClaimProbability"): [0.1, 7.5]}
    >>> data = from_lm_polygraph(claims, estimates, labels=[0, 1])
    >>> data.graphs.feature_names, data.graphs.features.ravel().tolist()
    (('neg_MaximumClaimProbability',), [-0.1, -7.5])
    >>> data.labels[0].tolist()
    [1, 0]
    """
    check_choice("undecided", undecided, ("false", "drop", "raise"))
    check_parallel("problems", problems, len(claims))
    check_parallel("lists of edges", edges, len(claims))
    texts = [[claim.claim_text for claim in row] for row in claims]
    columns = _claim_level(estimates)
    table = [_flat(values, texts, key) for key, values in columns.items()]
    table = -np.array(table, dtype=float).T
    names = [f"neg_{key}" for key in columns]
    known = None
    if labels is not None:
        verdict = np.array(_flat(labels, texts, "labels"), dtype=float)
        known = ~np.isnan(verdict)
        if undecided == "raise" and not known.all():
            raise ValueError(f"{(~known).sum()} claims have no verdict")
        verdict[~known] = 1
        sizes = np.cumsum([len(row) for row in texts])[:-1]
        labels = _labels_of(np.split(verdict, sizes), texts, lambda value: 1 - value)
    data = _build(texts, table, names, problems, labels, edges, missing, name)
    if known is None or known.all() or undecided != "drop":
        return data
    masks = data.graphs.split(known)
    graphs = [g.subgraph(m) for g, m in zip(data.graphs, masks, strict=True)]
    return pack(graphs, [y[m] for y, m in zip(data.labels, masks, strict=True)])


def _build(texts, table, names, problems, labels, edges, missing, name):
    table = fill_missing(table, names, missing)
    graphs, start = [], 0
    for i, claims in enumerate(texts):
        problem = item_of(problems, i)
        graph = ReasoningGraph(
            table[start : start + len(claims)],
            edges_of(edges, i, claims, problem),
            claims=claims,
            problem=problem,
            feature_names=names,
            id=f"{name}/{i}",
        )
        graphs.append(graph)
        start += len(claims)
    return pack(graphs, labels)


def _claim_level(estimates):
    """Estimates of single claims by name."""
    columns = {}
    for key, values in estimates.items():
        level, method = ("claim", key) if isinstance(key, str) else key[:2]
        if level != "claim":
            continue
        if method in columns:
            raise ValueError(
                f'"{method}" and ("claim", "{method}") are both among the estimates: '
                "keep one, or rename it"
            )
        columns[method] = values
    if not columns:
        raise ValueError(f"no estimate of level 'claim' among {list(estimates)}")
    return columns


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
    keys = {key: None for claim in claims for key, v in claim.items() if _is_number(v)}
    return list(filter(may_be_feature, keys))


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _number(value):
    if is_missing(value):
        return math.nan
    if not _is_number(value):
        raise ValueError(f"a score is {value!r}, a number expected")
    return float(value)


def _flat(values, texts, name):
    """Values over all claims, given flat or one list per problem."""
    n_claims = sum(map(len, texts))
    values = list(values)
    nested = bool(values) and all(np.ndim(row) == 1 for row in values)
    if nested:
        for i, (row, claims) in enumerate(zip(values, texts, strict=False)):
            if len(row) != len(claims):
                raise ValueError(
                    f"problem {i}: {len(row)} values of {name} but {len(claims)} claims"
                )
        values = [value for row in values for value in row]
    if len(values) != n_claims:
        raise ValueError(f"{len(values)} values of {name} but {n_claims} claims")
    return values


def _labels_of(labels, texts, turn):
    check_parallel("lists of labels", labels, len(texts))
    out = []
    for i, (row, claims) in enumerate(zip(labels, texts, strict=True)):
        row = np.asarray(row, dtype=float)
        if row.shape != (len(claims),):
            raise ValueError(
                f"problem {i}: labels of shape {row.shape} but {len(claims)} claims"
            )
        if not np.isin(row, (0, 1)).all():
            raise ValueError(f"problem {i}: labels are {row.tolist()}, expected 0, 1")
        out.append(turn(row).astype(np.int64))
    return out
