"""Claim-level estimates of LM-Polygraph, taken as they come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from sklearn.utils import Bunch

from .._checks import check_choice, check_list
from ..datasets.records import Problem, as_bunch, spread
from ._shared import (
    EdgeRule,
    Given,
    Missing,
    check_parallel,
    claim_places,
    make_problems,
    read_score,
)

_CLAIMS = 'manager.stats["claims"], which UEManager(..., save_stats=["claims"]) keeps'


@spread(Given)
def from_lm_polygraph(
    claims: Sequence[Sequence[Any]],
    estimates: Mapping[Any, Sequence],
    *,
    labels: Mapping[Any, Sequence] | Sequence | None = None,
    edges: EdgeRule | Sequence | None = None,
    missing: Missing = "raise",
    undecided: str = "unknown",
    name: str = "lm_polygraph",
    **given: Unpack[Given],
) -> Bunch:
    """Take over the claim-level estimates of LM-Polygraph.

    There **higher means more uncertain**, and label **1 means false**. Both are turned
    round: features are minus the estimates, named ``neg_<estimator>``, and label 1 of
    what is returned means true, as everywhere in this package.

    Parameters
    ----------
    claims : list of lists
        ``manager.stats["claims"]``: per generation its Claim objects, of which the
        attribute ``claim_text`` is read. The manager keeps them only when asked to, by
        ``UEManager(..., save_stats=["claims"])``.
    estimates : dict
        ``manager.estimations``: name of the estimator, or pair (level, name), to its
        values, flat over all claims or one list per generation. Entries of another
        level than "claim" are ignored.
    labels : dict or list, optional
        ``manager.gen_metrics``, if there is one fact check of claims in it, or the
        values of that one, flat or one list per generation: 1 false, 0 true, NaN not
        decided.
    edges : callable or list, optional
        ``edges(claims, problem)`` as in `skdcf.edges`, or one list of pairs per
        generation. None: they are not known. `skdcf.edges.no_edges` says that there are
        none.
    missing : {"raise", "mean", "median"} or float
        What to put for features that are NaN or infinite; mean and median are those of
        the finite values. A number is used as it is, so it is minus the estimate.
    undecided : {"unknown", "false", "drop", "raise"}
        Claims without a verdict get the label -1 or 0, are removed, or are an error.
        Calibration counts -1 as false, so that "unknown" and "false" promise the same;
        "drop" makes the guarantee one about the other claims only.
    name : str
        Problems are called ``name/0``, ``name/1``, ...
    problems : list of str, optional
        The prompts, ``manager.stats["input_texts"]``.
    alternatives : list of lists of str, optional
        Texts of other answers to each question.
    context : list of str or list of str, optional
        Per generation the passages that it has to be supported by; None where they are
        not known.
    groups : list of str or int, optional
        Per generation its question, where a question was answered more than once.
    metadata : list of dict, optional
        Per generation what else belongs to it.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch), ``labels`` (list of int arrays or None: 1 true, 0
        false, -1 unknown), ``groups`` (array or None), ``metadata`` (list of dict, or
        None), ``dropped`` (empty).

    Raises
    ------
    ValueError
        If numbers do not fit, two estimates have one name, there are several fact
        checks, or something is missing and may not be.

    Examples
    --------
    >>> from types import SimpleNamespace as Claim
    >>> from skdcf.adapters import from_lm_polygraph
    >>> claims = [[Claim(claim_text="He was born."), Claim(claim_text="He flew.")]]
    >>> estimates = {("claim", "MaximumClaimProbability"): [0.1, 7.5]}
    >>> labels = {("claim", "OpenAIFactCheck"): [0, 1]}
    >>> data = from_lm_polygraph(claims, estimates, labels=labels)
    >>> data.graphs.feature_names, data.graphs.features.ravel().tolist()
    (('neg_MaximumClaimProbability',), [-0.1, -7.5])
    >>> data.labels[0].tolist()
    [1, 0]
    """
    check_choice("undecided", undecided, ("unknown", "false", "drop", "raise"))
    texts = _texts(claims)
    columns = {
        f"neg_{key}": -np.array(_scores(values, texts, key))
        for key, values in _claim_level(estimates, "estimates").items()
    }
    known = None
    if labels is not None:
        labels, known = _labels(labels, texts, undecided)
    more = {**given, "labels": labels}
    data = make_problems(texts, columns, more, edges=edges, missing=missing, name=name)
    if known is None or known.all() or undecided != "drop":
        return data
    masks = data.graphs.split(known)
    rows = zip(data.graphs, data.labels, masks, strict=True)
    return as_bunch([Problem.of(graph.subgraph(m), y[m]) for graph, y, m in rows])


def _texts(claims):
    """Texts of the claims, one list per generation."""
    right = isinstance(claims, (list, tuple))
    if not right or not claims:
        found = "empty" if right else f"a {type(claims).__name__}"
        raise ValueError(f"claims is {found}, but must be {_CLAIMS}")
    for i, row in enumerate(claims):
        right = isinstance(row, (list, tuple))
        if not right or not all(hasattr(claim, "claim_text") for claim in row):
            raise ValueError(
                f"problem {i}: a list of objects with claim_text is due, as in {_CLAIMS}"
            )
    return [[claim.claim_text for claim in row] for row in claims]


def _claim_level(values, name):
    """What concerns single claims in a dict of LM-Polygraph, by the name it has there."""
    if not isinstance(values, Mapping):
        kind = type(values).__name__
        raise ValueError(f"{name} is a {kind}, but must be manager.estimations, a dict")
    columns = {}
    for key, column in values.items():
        level, method = ("claim", key) if isinstance(key, str) else key[:2]
        if level != "claim":
            continue
        if method in columns:
            raise ValueError(
                f'"{method}" and ("claim", "{method}") are both among the {name}: '
                "keep one, or rename it"
            )
        columns[method] = column
    if not columns:
        raise ValueError(f"nothing of level 'claim' among the {name}: {list(values)}")
    return columns


def _labels(labels, texts, undecided):
    """Labels per problem with 1 for true, and which claims have a verdict."""
    if isinstance(labels, Mapping):
        checks = _claim_level(labels, "labels")
        if len(checks) > 1:
            raise ValueError(
                f"labels holds several fact checks of claims, {list(checks)}: pass one, "
                'such as labels=manager.gen_metrics["claim", name]'
            )
        ((_, labels),) = checks.items()
    verdict = np.array(_scores(labels, texts, "labels"), dtype=float)
    known, place = ~np.isnan(verdict), claim_places(texts)
    wrong = np.flatnonzero(known & ~np.isin(verdict, (0, 1)))
    if wrong.size:
        raise ValueError(
            f"{place(wrong[0])}: the verdict is {verdict[wrong[0]]}, but LM-Polygraph "
            "has 1 (false), 0 (true) and NaN (not decided)"
        )
    if undecided == "raise" and not known.all():
        raise ValueError(
            f"claims without a verdict: {(~known).sum()}, the first is "
            f'{place(known.argmin())}: decide them, or say undecided="unknown"'
        )
    flat = np.where(known, 1 - verdict, 0 if undecided == "false" else -1)
    bounds = np.cumsum([len(row) for row in texts])[:-1]
    return np.split(flat.astype(np.int64), bounds), known


def _scores(values, texts, name):
    """Floats over all claims, of values that are flat or one list per problem."""
    values, place = list(check_list(name, values)), claim_places(texts)
    if values and all(np.ndim(row) == 1 for row in values):
        check_parallel(f"lists of {name}", values, len(texts))
        for i, (row, claims) in enumerate(zip(values, texts, strict=True)):
            if len(row) != len(claims):
                raise ValueError(
                    f"problem {i}: {len(row)} values of {name} but {len(claims)} claims"
                )
        values = [value for row in values for value in row]
    n_claims = sum(map(len, texts))
    if len(values) != n_claims:
        raise ValueError(f"{len(values)} values of {name} but {n_claims} claims")
    return [read_score(value, name, place(v)) for v, value in enumerate(values)]
