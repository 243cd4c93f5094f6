"""Convert claims and the verdicts of a fact checker or a person to problems with labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from sklearn.utils import Bunch

from .._checks import check_choice, check_list, is_missing, is_real, printable, warn
from ..datasets.records import spread
from ..exceptions import LabelWarning
from ..graphs.labels import LABEL_WORDS, word_key
from ._tools import Given, check_dicts, check_given, make_problems, value_of

#: Keys for the answers in a result, the claims in an answer, and the parts of a claim. The first
#: matching key of a record is used.
_ANSWERS = ("detailed_information", "decisions")
_LISTS = ("statements", "claim_level_factuality", "detail", "decisions", "claims")
# Keys of verdict lists that are parallel to the list of claims.
_PARALLEL = ("ys", "verdicts", "labels")
_TEXTS = ("claim", "statement", "atom", "text", "content", "triplet")
_VERDICTS: tuple[str, ...] = (
    *("verdict", "factuality", "is_supported", "label", "human_label", "annotation"),
    *("gold", "gold_label", "ground_truth", "is_true", "is_correct"),
)
#: Patterns for other keys. If a key matches a pattern and its value is a known word or number,
#: the value is a verdict or the opposite of one.
_OF_PEOPLE = re.compile(
    r"(^|_)(humans?|gold|manual|experts?|annotations?|annotated|annotators?|reviews?|reviewed|"
    r"reviewers?|raters?|votes?|feedback)(_|$)"
)
_SAYS = re.compile(
    r"(^|_)(verdicts?|labels?|corrected|correct|true|truth|supported|grounded|entailed|factual|"
    r"judge?ments?|decision|accurate|consensus|adjudicated|adjudication|overrid\w*|final|"
    r"ratings?|outcome|stance)(_|$)"
)
_OPPOSITE = re.compile(
    r"(^|_)(hallucinat\w*|unsupported|refuted|contradicted|incorrect|inaccurate|wrong|false|"
    r"is_error)(_|$)"
)
#: Pattern for evidence keys. Verdicts under these keys refer to passages, not to claims.
_OF_EVIDENCE = re.compile(r"evidence|source|passage|context|reference|reason")
_YES_OR_NO = {"1", "0", "true", "false", "yes", "no", "1.0", "0.0"}
_NAMES_WHO = re.compile(
    r"(^|_)(annotators?|reviewers?|raters?|experts?)$|_(ids?|idx|index)$"
)
_REASONS = ("reason", "reasoning")
_QUESTIONS = ("prompt", "question", "user_input")
_CONTEXTS = ("retrieved_contexts", "contexts", "context")


@spread(Given)
def from_verdicts(
    results: Any,
    *,
    values: Mapping[Any, int] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
    **given: Unpack[Given],
) -> Bunch:
    """Convert the claims and verdicts of a fact checker to problems with labels.

    Each **verdict becomes a label**, so the labels are only as reliable as the fact checker.
    Verdicts cannot be used as features, because they are unknown for new answers. The reasons
    given for the verdicts are stored in ``metadata``.

    Parameters
    ----------
    results : list, dict or object
        A list with one entry per answer. Each entry is the list of judged claims, or an object
        that contains this list. The supported formats are the outputs of RAGAS, FacTool,
        OpenFactCheck, Factcheck-GPT (its log as a data frame), FActScore, RefChecker and
        DeepEval, and lists of dicts with ``claim`` and ``verdict`` from any source.
        The judged claims are read from ``statements`` (the faithfulness metric of RAGAS),
        ``detailed_information`` or its entries (FacTool), ``detail`` (OpenFactCheck),
        ``decisions`` or its entries (FActScore), ``claims`` with ``ys`` (RefChecker), or
        ``claims`` with ``verdicts`` (DeepEval). If a claim has several verdicts, for example by a
        model and by a person, these verdicts must agree. A claim that is listed twice with
        different verdicts is labelled 0.
    values : dict, optional
        Mapping from additional verdicts to labels: 1 true, 0 false, -1 unknown. The default
        mapping covers true and 1, false and 0, missing values, and words such as "supported",
        "refuted" and "not enough evidence". **The default does not cover the number -1**, because
        OpenFactCheck uses -1 for "refuted" and 0 for "irrelevant" if claims are judged by stance.
        For OpenFactCheck verdicts by stance, pass ``{-1: 0, 0: -1}``. Claims that were examined
        but could not be confirmed, for example with DeepEval's verdicts "borderline" and "idk",
        are labelled 0.
    on_invalid : {"raise", "drop"}
        Whether to raise an error if an answer cannot be read, or to drop the answer and list it
        in ``dropped``. If the checker failed, the entry of the answer is None, and the answer is
        treated as invalid.
    edges : callable or list, optional
        Edge rule ``edges(claims, problem)``, such as a function of `skdcf.edges`, or one list of
        pairs (parent, child) per answer. If None, the edges are unknown.
    problems : list of str, optional
        The questions. By default, the questions in the results are used.
    alternatives : list of lists of str, optional
        Texts of alternative answers to each question.
    context : list of str or list of str, optional
        The passages that must support each answer. By default, the passages in the results
        (``retrieved_contexts``, ``contexts``) are used.
    groups : list of str or int, optional
        Identifier of the question that each answer belongs to. Pass ``groups`` if a question was
        answered repeatedly.
    metadata : list of dict, optional
        Additional information about each answer. If the verdicts state whether passages support
        a claim, set the key ``label_meaning`` to "supported".

    Returns
    -------
    dataset : Bunch
        Data set with the attributes ``graphs`` (GraphBatch with texts and without features),
        ``labels`` (list of int arrays: 1 true, 0 false, -1 unknown), ``groups`` (array or None),
        ``metadata`` (list of dict whose key ``reasons`` contains one reason or None per claim),
        and ``dropped`` (list of (position, reason)).

    Raises
    ------
    ValueError
        If the meaning of a verdict is unknown, if two verdicts on one claim differ, or if there
        are no claims.

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
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    results = _plain(results)
    if isinstance(results, dict):
        results = next((results[key] for key in _ANSWERS if key in results), [results])
    results = [_plain(verdicts) for verdicts in check_list("results", results)]
    check_given(given, len(results))
    meaning = LABEL_WORDS | {_key(verdict): k for verdict, k in (values or {}).items()}

    read: list[tuple[list[str], list[Any], list[Any]]] = []
    names: list[int] = []
    dropped: list[tuple[int, str]] = []
    for i, answer in enumerate(results):
        try:
            read.append(_judged(answer, i, meaning))
            names.append(i)
        except ValueError as error:
            if on_invalid == "raise":
                raise
            dropped.append((i, str(error)))
    if dropped and not read:
        raise ValueError(
            f'all {len(dropped)} answers were dropped because of on_invalid="drop". The '
            f"first answer is invalid: {dropped[0][1]}"
        )

    results_read = [results[i] for i in names]
    columns: dict[str, Any] = {
        key: [value_of(r, keys) if isinstance(r, dict) else None for r in results_read]
        for key, keys in (("problems", _QUESTIONS), ("context", _CONTEXTS))
    }
    # RefChecker calls the passages references.
    for i, answer in enumerate(results_read):
        if (
            isinstance(answer, dict)
            and "ys" in answer
            and columns["context"][i] is None
        ):
            columns["context"][i] = answer.get("reference")
    lists: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    columns |= {
        key: values if callable(values) else [values[i] for i in names]
        for key, values in lists.items()
    }
    texts = [claims for claims, _, _ in read]
    columns["labels"] = [labels for _, labels, _ in read]
    metadata = columns.get("metadata") or [None] * len(read)
    columns["metadata"] = [
        {"reasons": reasons} | dict(own or {})
        for (_, _, reasons), own in zip(read, metadata, strict=True)
    ]
    dataset = make_problems(texts, None, columns, "verdicts", numbers=names)
    dataset.dropped = dropped
    return dataset


def _judged(result, i, meaning):
    """Return the claim texts, labels and reasons of one answer."""
    if is_missing(result):
        raise ValueError(
            f"the result for problem {i} is {result}, because the checker failed. Run the "
            'checker again, or drop such problems with on_invalid="drop"'
        )
    rows = _rows(result, i)
    where = f"problem {i}, claim {{}}".format
    texts = [_text(row, where(v)) for v, row in enumerate(rows)]
    labels = [_label(row, meaning, where(v)) for v, row in enumerate(rows)]
    labels_of_text: dict[str, set[int]] = {}
    for text, label in zip(texts, labels, strict=True):
        labels_of_text.setdefault(_same(text), set()).add(label)
    contradicted = [text for text in texts if labels_of_text[_same(text)] >= {0, 1}]
    if contradicted:
        warn(
            f"problem {i} contains the claim {printable(contradicted[0])!r} twice with "
            "different verdicts. The label of this claim is set to 0 (unsure)",
            LabelWarning,
        )
    labels = [
        "unsure" if text in contradicted else label
        for text, label in zip(texts, labels, strict=True)
    ]
    return texts, labels, [value_of(row, _REASONS) for row in rows]


def _plain(result):
    """Convert pydantic models to dictionaries, and data frames to lists of dictionaries."""
    if hasattr(result, "model_dump"):
        return result.model_dump()
    if hasattr(result, "columns"):
        return result.to_dict("records")
    if hasattr(result, "claims") and hasattr(
        result, "verdicts"
    ):  # a metric of DeepEval
        return {"claims": result.claims, "verdicts": result.verdicts}
    return result


def _rows(result, i):
    """Return the judged claims of one answer."""
    if isinstance(result, dict):
        rows = check_list(f"problem {i}", value_of(result, _LISTS, f"problem {i}"))
        if any(key in result for key in _PARALLEL):
            rows = _joined(rows, result, i)
        # If FacTool could not judge a claim, the entry is None and the text of the claim is
        # stored elsewhere.
        texts = check_list(f"problem {i}, claims", result.get("claims") or rows)
        result = [_unjudged(texts, v) if r is None else r for v, r in enumerate(rows)]
    rows = [_plain(row) for row in check_list(f"problem {i}", result)]
    return check_dicts(rows, f"problem {i}")


def _joined(claims, result, i):
    """Add the verdicts, which are stored in a separate list, to the claims."""
    key = next(key for key in _PARALLEL if key in result)
    verdicts = check_list(f"problem {i}, {key}", result[key])
    if len(verdicts) != len(claims):
        raise ValueError(
            f"problem {i} must have one entry in {key} for each of its {len(claims)} "
            f"claims, got {len(verdicts)}"
        )
    rows = []
    for claim, verdict in zip(claims, map(_plain, verdicts), strict=True):
        row = claim if isinstance(claim, Mapping) else {"claim": claim}
        fields = (
            verdict if isinstance(verdict, Mapping) else {"verdict": _agreed(verdict)}
        )
        rows.append({**row, **fields})
    return rows


def _agreed(verdict):
    """Combine RefChecker's verdicts on a claim, one per passage, into a single verdict."""
    if not isinstance(verdict, list | tuple):
        return verdict
    words = {str(word) for word in verdict}
    # A neutral passage is ignored if another passage supports or contradicts the claim.
    decided = words - {"Neutral"}
    return decided.pop() if len(decided) == 1 else "unsure" if decided else "Neutral"


def _unjudged(texts, v):
    """Return the entry of a claim that FacTool did not judge, with None as the verdict."""
    has_verdict = v < len(texts) and isinstance(texts[v], dict)
    return texts[v] | {"verdict": None} if has_verdict else None


def _text(row, where):
    """Return the text of a claim, which may be stored as a triplet of texts."""
    text = value_of(row, _TEXTS, where)
    return " ".join(map(str, text)) if isinstance(text, list | tuple) else text


def _label(row, meaning, where):
    """Return the label of a claim, or raise ValueError if its verdicts differ or are unknown."""
    verdicts = {key: row[key] for key in _VERDICTS if key in row}
    if not verdicts:
        value_of(row, _VERDICTS, where)
    given = []
    for key, verdict in verdicts.items():
        if _key(verdict) not in meaning:
            raise ValueError(
                f"{where} has the unknown verdict {verdict!r}. Define the meaning of this "
                f"verdict, for example values={{{verdict!r}: 0}}. Use 1 for true, 0 for false "
                "and -1 for unknown"
            )
        given.append((key, verdict, meaning[_key(verdict)]))
    for key, verdict in row.items():
        if key not in verdicts:
            given += _beside(key, verdict, meaning)
    given = [entry for entry in given if _key(entry[1]) != ""]
    labels = {label for _, _, label in given}
    if len(labels) > 1:
        shown = ", ".join(f"{key}={verdict!r}" for key, verdict, _ in given)
        raise ValueError(
            f"{where} must have a single verdict, got the different verdicts {shown}. "
            "Keep only one of these keys in each claim"
        )
    return labels.pop() if labels else meaning[""]


def _beside(key, value, meaning):
    """Yield the key, the value and the label of each additional verdict on a claim."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key)).lower()
    name = re.sub(r"[^a-z0-9]", "_", name)
    opposite = _OPPOSITE.search(name)
    is_verdict = opposite or _OF_PEOPLE.search(name) or _SAYS.search(name)
    if _OF_EVIDENCE.search(name):
        return
    # Verdicts can be nested, as in {"annotations": [{"label": 0}]}.
    if isinstance(value, Mapping):
        for inner, held in value.items():
            yield from _beside(f"{key}.{inner}", held, meaning)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _beside(key, held, meaning)
    elif is_verdict and _key(value) in meaning:
        if is_real(value) and _NAMES_WHO.search(name):
            # The number identifies a person or a position, so it is not a verdict.
            return
        label = meaning[_key(value)]
        inverted = opposite and label in (0, 1) and _key(value) in _YES_OR_NO
        yield key, value, 1 - label if inverted else label


def _same(text):
    """Return a claim with normalised case and whitespace, for comparisons with other claims."""
    normal = unicodedata.normalize("NFKC", str(text))
    return " ".join(normal.split()).casefold().rstrip(".")


def _key(verdict):
    """Return a string that represents a verdict and is the same for 1, 1.0 and "1"."""
    if is_missing(verdict):
        return ""
    return f"{verdict:g}" if is_real(verdict) else word_key(verdict)
