"""Guard against choosing answers with a different rule from the one used in calibration.

Questions are exchangeable together with their k answers, so the rule that chooses one of these
answers is part of the filter. After calibration at alpha = 0.1 on answers that no rule had
selected, a false claim was kept in up to 15 % of the selected answers. The number k of answers must
also have occurred in calibration (``tests/estimators/test_choose.py``).
"""

from __future__ import annotations

from typing import Any

import joblib

from .._checks import without_places
from ..graphs import GraphBatch
from ..graphs.hashes import hash_text


def refuse_other_scorer(estimator: Any, batch: GraphBatch) -> None:
    """Raise ValueError if another filter's scorer chose the calibration answers.

    New answers are always chosen by the filter's own scorer.
    """
    own = estimator._choice_fingerprint
    for i, row in enumerate(batch.provenance_rows):
        scorer = row.get("chosen_scorer", own)
        if scorer != own:
            raise ValueError(
                f'{batch.name_of(i)}: provenance["chosen_scorer"] must be the scorer of this '
                f"filter, {own!r}, got {scorer!r}. A refitted filter chooses different "
                "answers. Choose again with this filter, and judge these answers"
            )


def refuse_chosen(batch: GraphBatch) -> None:
    """Raise ValueError if any answer has already been chosen from several answers."""
    for i, row in enumerate(batch.provenance_rows):
        if "chosen_by" in row:
            raise ValueError(
                f"{batch.name_of(i)} must not be chosen in advance, got "
                f'provenance["chosen_by"]={row["chosen_by"]!r}. Pass all sampled answers to '
                "each question instead"
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
