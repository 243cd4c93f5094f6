"""Verdicts of fact checkers, with their reasons, as labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from sklearn.utils import Bunch

from .._checks import check_list, is_missing
from ..datasets.records import spread
from ..graphs import LABEL_WORDS
from ._shared import EdgeRule, Given, check_parallel, is_number, make_problems

#: Where results hold their claims, and claims their parts; the first one found is read.
_LISTS = ("statements", "claim_level_factuality", "detail", "claims")
_TEXTS = ("claim", "statement")
_VERDICTS = ("verdict", "factuality", "label")
_REASONS = ("reason", "reasoning")
_QUESTIONS = ("prompt", "question", "user_input")
_CONTEXTS = ("retrieved_contexts", "contexts", "context")


@spread(Given)
def from_verdicts(
    results: Any,
    *,
    edges: EdgeRule | Sequence | None = None,
    values: Mapping[Any, int] | None = None,
    name: str = "verdicts",
    **given: Unpack[Given],
) -> Bunch:
    """Take over claims that a fact checker judged, with its reasons.

    A **verdict becomes a label**, as good as the checker, and no feature: what is to be
    filtered by must be known without it. Reasons go into ``metadata``.

    Parameters
    ----------
    results : list, dict or object
        One entry per answer: the list of its judged claims, or what holds that list.
        Read are the outputs of RAGAS (faithfulness: ``statements`` with ``statement``,
        ``reason``, ``verdict``), FacTool (``detailed_information``, or its entries, with
        ``claim_level_factuality``), OpenFactCheck (``detail``), Factcheck-GPT (its log,
        a data frame), and lists of dicts with ``claim`` and ``verdict`` of any origin.
    edges : callable or list, optional
        ``edges(claims, problem)`` as in `skdcf.edges`, or one list of pairs per answer.
        None: they are not known.
    values : dict, optional
        What further verdicts mean: 1 true, 0 false, -1 unknown. Known are true and 1,
        false and 0, what is missing, and words such as "supported", "refuted" and "not
        enough evidence". **The number -1 is not**: it says "refuted" where OpenFactCheck
        decides by stance, with 0 for "irrelevant", so there pass ``{-1: 0, 0: -1}``.
    name : str
        Problems are called ``name/0``, ``name/1``, ...
    problems : list of str, optional
        The questions. None takes those that the results hold.
    alternatives : list of lists of str, optional
        Texts of other answers to each question.
    context : list of str or list of str, optional
        The passages that each answer has to be supported by. None takes those that the
        results hold (``retrieved_contexts``, ``contexts``).
    groups : list of str or int, optional
        The question of each answer, where one was answered more than once.
    metadata : list of dict, optional
        What else belongs to each answer, such as ``{"label_meaning": "supported"}`` where
        verdicts say whether passages support a claim.

    Returns
    -------
    Bunch
        ``graphs`` (GraphBatch with texts and without features), ``labels`` (list of int
        arrays: 1 true, 0 false, -1 unknown), ``groups`` (array or None), ``metadata``
        (list of dict with ``reasons``, one or None per claim), ``dropped`` (empty).

    Raises
    ------
    ValueError
        On a verdict of unknown meaning, or where no claims are found.

    Examples
    --------
    >>> from skdcf.adapters import from_verdicts
    >>> ragas = {"statements": [
    ...     {"statement": "Ada was born in 1815.", "reason": "as stated", "verdict": 1},
    ...     {"statement": "She flew to Mars.", "reason": "not stated", "verdict": 0}]}
    >>> data = from_verdicts([ragas], problems=["Who was Ada?"])
    >>> data.labels[0].tolist(), data.metadata
    ([1, 0], [{'reasons': ['as stated', 'not stated']}])
    """
    results = _plain(results)
    if isinstance(results, dict):
        results = results.get("detailed_information", [results])
    results = [_plain(result) for result in check_list("results", results)]
    check_parallel("lists of metadata", given.get("metadata"), len(results))
    meaning = LABEL_WORDS | {_key(verdict): k for verdict, k in (values or {}).items()}
    found = {"problems": _QUESTIONS, "context": _CONTEXTS}
    columns: dict[str, Any] = {
        key: [_beside(r, keys) for r in results] for key, keys in found.items()
    }
    columns |= {key: value for key, value in given.items() if value is not None}
    texts, labels, metadata = [], [], []
    own = columns.get("metadata") or [None] * len(results)
    for i, (result, more) in enumerate(zip(results, own, strict=True)):
        rows, where = _rows(result, i), f"problem {i}, claim {{}}".format
        texts.append([_part(row, _TEXTS, where(v)) for v, row in enumerate(rows)])
        labels.append([_label(row, meaning, where(v)) for v, row in enumerate(rows)])
        reasons = [_part(row, _REASONS) for row in rows]
        metadata.append({"reasons": reasons} | dict(more or {}))
    columns |= {"labels": labels, "metadata": metadata}
    return make_problems(texts, None, columns, edges=edges, name=name)


def _plain(result):
    """Models of pydantic as dictionaries, data frames as lists of them."""
    if hasattr(result, "model_dump"):
        return result.model_dump()
    return result.to_dict("records") if hasattr(result, "columns") else result


def _beside(result, keys):
    """What a result holds beside its claims, such as the question."""
    return _part(result, keys) if isinstance(result, dict) else None


def _rows(result, i):
    """The judged claims of one answer."""
    if isinstance(result, dict):
        rows = check_list(f"problem {i}", _part(result, _LISTS, f"problem {i}"))
        # FacTool has None for a claim that it failed to judge, and its text elsewhere.
        texts = check_list(f"problem {i}, claims", result.get("claims") or rows)
        result = [_unjudged(texts, v) if r is None else r for v, r in enumerate(rows)]
    rows = [_plain(row) for row in check_list(f"problem {i}", result)]
    for v, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"problem {i}, claim {v} is {row!r}, but must be a dict")
    return rows


def _unjudged(texts, v):
    """The claim that FacTool has no verdict for."""
    known = v < len(texts) and isinstance(texts[v], dict)
    return texts[v] | {"verdict": None} if known else None


def _part(row, keys, where=None):
    """The first of several parts that is there; without ``where`` there may be none."""
    for key in keys:
        if key in row:
            return row[key]
    if where is not None:
        raise ValueError(f"{where} has none of {list(keys)}, only {list(row)}")
    return None


def _label(row, meaning, where):
    verdict = _part(row, _VERDICTS, where)
    if _key(verdict) not in meaning:
        raise ValueError(
            f"{where}: the verdict is {verdict!r}; say what it means, as in "
            f"values={{{verdict!r}: 0}}: 1 is true, 0 false, -1 unknown"
        )
    return meaning[_key(verdict)]


def _key(verdict):
    """One way to write each verdict: 1, 1.0 and "1" are the same."""
    if is_missing(verdict):
        return ""
    return f"{verdict:g}" if is_number(verdict) else str(verdict).strip().lower()
