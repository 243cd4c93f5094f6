"""Convert the claims and scores of LM-Polygraph and UQLM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._checks import check_choice, check_list, check_number, is_missing, is_real
from ..datasets.records import build_dataset, spread
from ..edges import no_edges

#: Type annotations for edge rules, labels, and values that replace missing scores.
EdgeRule = Callable[[Sequence[str], str | None], Iterable[tuple[int, int]]]
Labels = Sequence[ArrayLike]
Missing = str | float

# Keys of labels, positions and identifiers, and keys computed from labels or by a filter.
_NOT_SCORES = set(
    [
        "label",
        "labels",
        "gold",
        "gold_label",
        "annotation",
        "manual_annotation",
        "correct",
        "is_correct",
        "truth",
        "ground_truth",
        "verdict",
        "verdicts",
        "is_true",
        "optimal-score",
        "removed",
        "original_response",
        "id",
        "problem",
        "problem_id",
        "claim",
        "claim_id",
        "claim_idx",
        "parents",
        "deps",
        "index",
        "group",
    ]
)


def _check_parallel(name, values, n_problems):
    """Raise ValueError if a list is not None and does not have one entry per problem."""
    if values is None or callable(values):
        return
    if isinstance(values, (str, dict)) or not hasattr(values, "__len__"):
        raise ValueError(
            f"{name} must be a list with one entry per problem, got {values!r}"
        )
    if len(values) != n_problems:
        raise ValueError(
            f"{name} must have one entry for each of the {n_problems} problems, got "
            f"{len(values)}"
        )


def _check_given(given, n_problems):
    """Raise ValueError if one of the lists does not have one entry per problem."""
    for key, values in given.items():
        noun = "problems" if key == "problems" else f"lists of {key}"
        _check_parallel(noun, values, n_problems)


class Given(TypedDict, total=False):
    """Optional arguments of every adapter, most of which are lists with one entry per problem."""

    edges: EdgeRule | Sequence[Any] | None
    problems: Sequence[str | None] | None
    alternatives: Sequence[Sequence[str] | None] | None
    context: Sequence[str | Sequence[str] | None] | None
    groups: Sequence[str | int | None] | None
    metadata: Sequence[Mapping[str, Any] | None] | None


def _make_problems(texts, columns, given, name, missing) -> Bunch:
    """Return the data set of an adapter, given the claim texts and one flat list per score.

    ``given`` is a dict that contains ``labels`` and the arguments listed in `Given`. Each problem
    id consists of ``name`` and the index of the problem.
    """
    names = list(columns)
    places = _places(texts)
    table = np.array([columns[name] for name in names], dtype=float)
    table = table.reshape(len(names), len(places)).T
    table = _fill_missing(table, names, missing, places.__getitem__)
    records: dict[str, dict[Any, Any]] = {f"{name}/{i}": {} for i in range(len(texts))}
    _check_given(given, len(texts))
    for key, values in given.items():
        key = {"problems": "problem", "groups": "group"}.get(key, key)
        if values is not None and not callable(values):
            for record, value in zip(records.values(), values, strict=True):
                record[key] = value
    bounds = np.cumsum([len(claims) for claims in texts])
    for record, claims, b in zip(records.values(), texts, bounds, strict=True):
        record["claims"] = claims
        record["features"] = table[b - len(claims) : b]
        record |= {"feature_names": names, "n_features": len(names)}
    return build_dataset(records, partial(_add_edges, given.get("edges")))


def _add_edges(edges, record):
    """Return a record, with the edges that an edge rule computes from its claims."""
    if not callable(edges):
        return record
    claims = record.get("claims")
    if edges is not no_edges and (claims is None or None in claims):
        raise ValueError(
            "all claims must have a text, because the edges are computed from the texts. "
            "If the claims are independent, pass edges=no_edges"
        )
    edges_found = [] if claims is None else edges(claims, record.get("problem"))
    return record | {"edges": edges_found, "parents": None}


def _fill_missing(table, names, missing, place):
    """Replace the missing and infinite values of a feature table, or raise ValueError."""
    if is_real(missing):
        check_number("missing", missing, -np.inf)
    else:
        check_choice("missing", missing, ("raise", "mean", "median"))
    absent = ~np.isfinite(table)
    if not absent.any():
        return table
    counts = zip(names, absent.sum(axis=0), strict=True)
    n_missing = ", ".join(f"{n} of {name!r}" for name, n in counts if n)
    if missing == "raise":
        row = int(absent.any(axis=1).argmax())
        raise ValueError(
            f"all values must be finite, but {n_missing} values are missing or infinite, "
            f"starting with the value at {place(row)}. Correct these values, or replace "
            'them with missing="median", missing="mean" or missing=NUMBER'
        )
    if is_real(missing):
        return np.where(absent, missing, table)
    if absent.all(axis=0).any():
        name = names[int(absent.all(axis=0).argmax())]
        raise ValueError(
            f"the {missing} of {name!r} is undefined, because the column contains no "
            "finite values"
        )
    average = np.nanmean if missing == "mean" else np.nanmedian
    return np.where(absent, average(np.where(absent, np.nan, table), axis=0), table)


def _places(texts):
    """Return a description of each claim, such as "problem 0, claim 2", for error messages."""
    rows = enumerate(map(len, texts))
    return [f"problem {i}, claim {v}" for i, n in rows for v in range(n)]


def _read_score(value, name, place):
    """Convert a score to a float, or to NaN if the score is missing.

    ``place`` describes the claim in error messages.
    """
    if is_missing(value):
        return math.nan
    if np.ndim(value) == 0 and hasattr(value, "item"):
        value = value.item()  # Tensors have an `item` method.
    if not is_real(value):
        raise ValueError(f"{place}: {name!r} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{place}: {name!r} is too large to be converted to a float"
        ) from None


_CLAIMS = (
    'manager.stats["claims"], which is kept by UEManager(..., save_stats=["claims"])'
)


@spread(Given)
def from_lm_polygraph(
    claims: Sequence[Sequence[Any]],
    estimates: Mapping[Any, Sequence[Any]],
    *,
    labels: Mapping[Any, Sequence[Any]] | Sequence[Any] | None = None,
    missing: Missing = "raise",
    **given: Unpack[Given],
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
        The estimates, ``manager.estimations``. The keys are estimator names or pairs (level,
        name). Each value is either a flat list with one entry per claim, or a list that contains
        one list per generation. Entries whose level is not "claim" are ignored.
    labels : dict or list, optional
        The results of a fact check, as a flat list or as one list per generation. The dict
        ``manager.gen_metrics`` is also accepted if it contains exactly one claim-level fact
        check. Each result is 1 (false), 0 (true) or NaN (undecided). NaN is replaced with the
        label -1 (unknown), which calibration treats as false.
    missing : {"raise", "mean", "median"} or float
        Replacement for features that are NaN or infinite. "mean" and "median" are computed from
        the finite values of the feature. Unlike the estimates, a number passed as ``missing`` is
        not negated.
    edges : callable or list, optional
        Edge rule ``edges(claims, problem)``, such as a function of `skdcf.edges`, or one list of
        pairs (parent, child) per generation. If None, the edges are unknown. Use
        `skdcf.edges.no_edges` for independent claims.
    problems : list of str, optional
        The prompts, which LM-Polygraph stores in ``manager.stats["input_texts"]``.
    alternatives : list of lists of str, optional
        Texts of alternative answers to each question.
    context : list of str or list of str, optional
        The passages that must support each generation, or None if the passages are unknown.
    groups : list of str or int, optional
        Identifier of the question that each generation answers. Pass ``groups`` if a question was
        answered repeatedly.
    metadata : list of dict, optional
        Additional information about each generation.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays or
        None: 1 true, 0 false, -1 unknown), ``groups`` (array or None), ``metadata`` (list of
        dict, or None), and ``dropped`` (an empty list).

    Raises
    ------
    ValueError
        If the lengths of the arguments do not match, if two estimates have the same name, if
        there are several fact checks, or if a required value is missing.

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
    texts = _texts(claims)
    columns = {
        f"neg_{key}": -np.array(_scores(values, texts, key))
        for key, values in _claim_level(estimates, "estimates").items()
    }
    columns_given: dict[str, Any] = dict(given)
    if labels is not None:
        columns_given["labels"] = _labels(labels, texts)
    return _make_problems(
        texts, columns, columns_given, name="lm_polygraph", missing=missing
    )


def _texts(claims):
    """Return the claim texts, one list per generation."""
    if not isinstance(claims, (list, tuple)) or not claims:
        raise ValueError(f"claims must be {_CLAIMS}, got {claims!r}")
    for i, row in enumerate(claims):
        right = isinstance(row, (list, tuple))
        if not right or not all(hasattr(claim, "claim_text") for claim in row):
            raise ValueError(
                f"the entry for problem {i} must be a list of claims, as in {_CLAIMS}"
            )
    return [[claim.claim_text for claim in row] for row in claims]


def _claim_level(values, name):
    """Return the claim-level entries of an LM-Polygraph dict, keyed by name."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be the dict manager.estimations, got {values!r}")
    columns = {}
    for key, column in values.items():
        level, method = ("claim", key) if isinstance(key, str) else key[:2]
        if level != "claim":
            continue
        if method in columns:
            raise ValueError(
                f'{name} must not contain both "{method}" and ("claim", "{method}"), because '
                "both keys have the same meaning. Rename one of them"
            )
        columns[method] = column
    if not columns:
        raise ValueError(f"{name} must contain a claim-level key, got {list(values)}")
    return columns


def _labels(labels, texts):
    """Return the labels of each problem: 1 for true, 0 for false and -1 for undecided claims."""
    if isinstance(labels, Mapping):
        checks = _claim_level(labels, "labels")
        if len(checks) > 1:
            raise ValueError(
                f"labels must contain a single claim-level fact check, got {list(checks)}. "
                'Select one of them, for example labels=manager.gen_metrics["claim", name]'
            )
        ((_, labels),) = checks.items()
    verdicts = np.array(_scores(labels, texts, "labels"), dtype=float)
    judged = ~np.isnan(verdicts)
    for place, verdict in zip(_places(texts), verdicts, strict=True):
        if verdict not in (0, 1) and not np.isnan(verdict):
            raise ValueError(
                f"{place}: a verdict of LM-Polygraph must be 0 (true), 1 (false) or NaN "
                f"(undecided), got {verdict}"
            )
    flat = np.where(judged, 1 - verdicts, -1).astype(np.int64)
    return np.split(flat, np.cumsum([len(row) for row in texts])[:-1])


def _scores(values, texts, name):
    """Return one float per claim, given the values as a flat list or as one list per problem."""
    values = list(check_list(name, values))
    places = _places(texts)
    if values and all(np.ndim(row) == 1 for row in values):
        _check_parallel(f"lists of {name}", values, len(texts))
        for i, (n, m) in enumerate(zip(map(len, values), map(len, texts), strict=True)):
            if n != m:
                raise ValueError(
                    f"problem {i} must have one {name} value for each of its {m} "
                    f"claims, got {n}"
                )
        values = [value for row in values for value in row]
    if len(values) != len(places):
        raise ValueError(
            f"{name} must have one value for each of the {len(places)} claims, got "
            f"{len(values)}"
        )
    return [
        _read_score(v, name, place) for v, place in zip(values, places, strict=True)
    ]


@spread(Given)
def from_uqlm(
    result: Any,
    *,
    scorers: Sequence[str] | None = None,
    labels: Labels | None = None,
    missing: Missing = "raise",
    **given: Unpack[Given],
) -> Bunch:
    """Convert the claim scores of UQLM's long-text scorers.

    **Higher scores mean more confidence**, as in UQLM. The scores are used as features without
    changes.

    Parameters
    ----------
    result : UQResult, data frame, dict or list of lists of dict
        The result of ``LongTextUQ``, ``LongTextQA`` or ``LongTextGraph``. The result's attribute
        ``data`` and ``data["claims_data"]`` are also accepted. The output of the result's method
        ``to_df()`` is accepted as a data frame, as a dict or as records. Each claim must have
        scores, and a text under the key ``claim`` or ``sentence``. Graph scorers also return
        claims of the resampled responses, for which ``original_response`` is False. Claims of
        resampled responses are ignored, because they are not part of the answer. If
        ``original_response`` is None, NaN or absent, the claim is considered part of the answer.
    scorers : list of str, optional
        Keys of the scores to use. By default, all keys with a numeric value in at least one claim
        are used, except names of labels and positions, such as ``label``, ``annotation``,
        ``gold`` or ``claim_idx``.
    labels : list of arrays, optional
        Labels of the claims *that are part of the answer*, with one array per response: 1 true, 0
        false, -1 unknown.
    missing : {"raise", "mean", "median"} or float
        Replacement for scores that are NaN, None, absent or infinite. "mean" and
        "median" are computed from the finite values of the score.
    edges : callable or list, optional
        Edge rule ``edges(claims, problem)``, such as a function of `skdcf.edges`, or one list of
        pairs (parent, child) per response. Each pair contains positions among the claims of the
        answer. If None, the edges are unknown. Use `skdcf.edges.no_edges` for independent claims.
    problems : list of str, optional
        The questions. By default, the prompts in the result are used, if there are any.
    alternatives : list of lists of str, optional
        Texts of alternative answers to each question. By default, the sampled responses in the
        result are used, if there are any.
    context : list of str or list of str, optional
        The passages that must support each response, or None if the passages are unknown.
    groups : list of str or int, optional
        Identifier of the question that each response answers. Pass ``groups`` if a question was
        answered repeatedly.
    metadata : list of dict, optional
        Additional information about each response.

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch), ``labels`` (list of int arrays or
        None), ``groups`` (array or None), ``metadata`` (list of dict, or None), and ``dropped``
        (an empty list).

    Raises
    ------
    ValueError
        If a score is missing and ``missing="raise"``, or if the lengths of the arguments do not
        match.

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
    claims_data, prompts, sampled = _lists(result)
    rows = [_check_dicts(c, f"problem {i}") for i, c in enumerate(claims_data)]
    answers = [list(filter(_in_answer, claims)) for claims in rows]
    every = [claim for claims in answers for claim in claims]
    names = _number_keys(every) if scorers is None else list(scorers)
    if not names:
        raise ValueError(
            "at least one claim must have a score, but no claim has one. Check that "
            "result is the output of a UQLM scorer for long texts"
        )
    if unknown := [key for key in names if not any(key in claim for claim in every)]:
        raise ValueError(
            f"the scores {unknown} do not exist. The claims have the scores "
            f"{_number_keys(every)}"
        )
    texts = [list(map(_text_of, claims)) for claims in answers]
    columns = {}
    for key in names:
        scores = [[claim.get(key) for claim in claims] for claims in answers]
        columns[key] = _scores(scores, texts, key)
    columns_given = {"problems": prompts, "alternatives": sampled, "labels": labels}
    columns_given |= {key: value for key, value in given.items() if value is not None}
    return _make_problems(texts, columns, columns_given, name="uqlm", missing=missing)


def _lists(result):
    """Return the claims, the prompts and the sampled responses in the output of UQLM."""
    table = getattr(result, "data", result)
    if hasattr(table, "columns"):  # `UQResult.to_df()` returned a data frame.
        table = {name: table[name].to_list() for name in table.columns}
    if _is_rows(table):  # The data frame may also be given as a list of records.
        table = {name: [row.get(name) for row in table] for name in table[0]}
    if isinstance(table, Mapping):
        table = table.get("data", table)  # `UQResult.to_dict()` returns a dict.
        if "claims_data" not in table:
            raise ValueError(
                f"result must contain the key 'claims_data', got {list(table)}. Use a UQLM "
                "class that scores claims, such as LongTextUQ, LongTextQA or LongTextGraph"
            )
        prompts = table.get("prompts", table.get("prompt"))
        lists = table["claims_data"], prompts, table.get("sampled_responses")
        # In the JSON form of a data frame, each column is a dict keyed by row number.
        return tuple(list(x.values()) if isinstance(x, Mapping) else x for x in lists)
    if hasattr(result, "__len__") and not isinstance(result, str):
        return list(result), None, None
    raise ValueError(
        "result must be a UQLM UQResult or its claims_data, got a "
        f"{type(result).__name__}"
    )


def _is_rows(table):
    """Return whether a list consists of dicts that each contain the claims of one response."""
    is_list = isinstance(table, list | tuple) and len(table) > 0
    return is_list and all(isinstance(x, Mapping) and "claims_data" in x for x in table)


def _check_dicts(claims, where):
    """Return the claims of one problem, or raise ValueError if a claim is not a dictionary."""
    if isinstance(claims, np.ndarray) and claims.ndim == 1:
        claims = claims.tolist()  # as read from Parquet
    if not isinstance(claims, (list, tuple)):
        kind = type(claims).__name__
        advice = ". Save the results as JSON, not as CSV" if kind == "str" else ""
        raise ValueError(f"{where} must be a list of claims, got a {kind}{advice}")
    for v, claim in enumerate(claims):
        if not isinstance(claim, dict):
            raise ValueError(f"{where}, claim {v} must be a dict, got {claim!r}")
    return claims


def _in_answer(claim):
    origin = claim.get("original_response")
    return is_missing(origin) or bool(origin)


def _number_keys(claims):
    """Return the keys with a numeric value in at least one claim, in order of appearance."""
    keys = dict.fromkeys(k for c in claims for k, v in c.items() if is_real(v))
    return [key for key in keys if str(key).strip().lower() not in _NOT_SCORES]


def _text_of(claim):
    for key in ("claim", "sentence"):
        if key in claim:
            return claim[key]
    raise ValueError(
        f"a claim must contain one of the keys ['claim', 'sentence'], got {list(claim)}"
    )
