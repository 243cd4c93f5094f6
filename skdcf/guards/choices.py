"""Guard against choosing answers with a different rule from the one used in calibration.

Questions are exchangeable together with their k answers, so the rule that chooses one of these
answers is part of the filter. After calibration at alpha = 0.1 on answers that no rule had
selected, a false claim was kept in up to 15 % of the selected answers. The number k of answers must
also have occurred in calibration (``tests/estimators/test_choose.py``).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import joblib

from .._checks import without_places
from .._messages import Advice, Message
from ..graphs import GraphBatch
from ..graphs.hashes import hash_text

#: Metadata key for the rule by which an answer was chosen. The value is the name of a user-defined
#: rule, or a dict with the keys ``rule``, ``k`` (the number of answers to the question) and
#: ``scorer`` (the scorer of the filter, if a filter chose the answer).
CHOSEN_BY = "chosen_by"
ACCEPT = Advice(
    "accept_provenance",
    "state why this difference is acceptable, with "
    'skdcf.accept_provenance("reason"): ...',
)


def mark_of(metadata: Any) -> Any:
    """Return a dict or string that describes how an answer was chosen, or None."""
    return metadata.get(CHOSEN_BY) or None


def rule_of(mark: Any) -> Any:
    """Return a string that identifies the rule and the scorer by which an answer was chosen."""
    if not isinstance(mark, dict):
        return mark
    compared = {key: value for key, value in mark.items() if key != "k"}
    return json.dumps(compared, sort_keys=True, default=str)


def count_answers(marks: Any) -> list[list[int]]:
    """Return each k together with the number of answers that were chosen from k answers."""
    ks = (mark.get("k") for mark in marks if isinstance(mark, dict))
    counts = Counter(k for k in ks if isinstance(k, int))
    return [list(pair) for pair in sorted(counts.items())]


def join_counts(parts: Any) -> list[list[int]]:
    """Sum the results of `count_answers` over several parts of the data."""
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(dict(part))
    return [list(pair) for pair in sorted(counts.items())]


def compare_numbers(origin: dict[str, Any], calibrated: dict[str, Any]) -> None:
    """Compare the number of answers per question in new problems and in calibration problems.

    Parameters
    ----------
    origin, calibrated : dict
        Provenance of the new problems and of the calibration problems.

    Raises
    ------
    ValueError
        If the number of answers to a new question does not occur in the calibration problems.
    """
    counts_before = dict(calibrated.get("chosen_from") or ())
    counts_now = dict(origin.get("chosen_from") or ())
    if not counts_before or not counts_now:
        return
    new_ks = [k for k in counts_now if k not in counts_before]
    if new_ks:
        ks_before = ", ".join(map(str, sorted(counts_before)))
        raise ValueError(
            "the number of answers per question, k, must be one of the calibration "
            f"values [{ks_before}], got k = {new_ks[0]} for {counts_now[new_ks[0]]} "
            "questions. The error rate depends on k. Sample as many answers as for "
            "calibration, or calibrate with this k"
        )


def refuse_other_scorer(estimator: Any, batch: GraphBatch, reason: str | None) -> None:
    """Raise ValueError if another filter's scorer chose the calibration answers.

    New answers are always chosen by the filter's own scorer.

    Parameters
    ----------
    estimator : fitted filter
        The filter.
    batch : GraphBatch
        The calibration problems.
    reason : str or None
        Reason why a different scorer is acceptable.
    """
    if reason is not None:
        return
    own = estimator._choice_fingerprint
    for i, mark in enumerate(map(mark_of, batch.metadata_rows)):
        scorer = mark.get("scorer") if isinstance(mark, dict) else None
        if scorer is not None and scorer != own:
            raise ValueError(
                Message(
                    f"{batch.name_of(i)}: chosen_by must contain the scorer of this "
                    f"filter, {own!r}, got {scorer!r}. A refitted filter chooses "
                    "different answers. Choose again with this filter and judge "
                    "these answers, or ",
                    ACCEPT,
                )
            )


def refuse_chosen(batch: GraphBatch) -> None:
    """Raise ValueError if any answer has already been chosen from several answers."""
    for i, mark in enumerate(map(mark_of, batch.metadata_rows)):
        if mark is not None:
            raise ValueError(
                f"{batch.name_of(i)} must not be chosen in advance, got "
                f"chosen_by={rule_of(mark)!r}. Pass all sampled answers to each question "
                "instead"
            )


def fingerprint(estimator: Any) -> str:
    """Compute a hash of the fitted scorer, the columns and all settings that affect path risks.

    Parameters
    ----------
    estimator : filter
        A filter whose scorer and columns are already fitted.

    Returns
    -------
    fingerprint : str
        The hash. The hash is stored on the filter, because hashes may depend on library versions.
    """
    parts = [
        _state(estimator.scorer_),
        _state(estimator.features_),
        estimator.edges if isinstance(estimator.edges, str) else repr(estimator.edges),
        estimator.online,
        estimator._seed if estimator.ties == "jitter" else None,
        [estimator._trained["content"].tobytes().hex()],
    ]
    return f"{hash_text(without_places(repr(parts))):016x}"


def _state(value):
    """Return a hash of a value, or its string representation if the value cannot be pickled."""
    try:
        return joblib.hash(value)
    except Exception:  # Functions that were defined interactively cannot be pickled.
        return without_places(repr(value))
