"""Guard against filtering several answers to the same question.

The guarantee applies to a single answer to a new question. With seven answers per question and
alpha = 0.1, a filter kept a false claim in at least one of the answers for 50 % of the questions
(``tests/attacks/several_answers.py``).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .._checks import warn
from ..exceptions import GuaranteeWarning
from ..graphs import GraphBatch
from ..graphs.problems import GROUP


def warn_of_several_answers(fitted: Any, batch: GraphBatch) -> None:
    """Warn if a batch contains several answers to the same question.

    Question texts are compared only if they identified the questions in calibration.

    Parameters
    ----------
    fitted : fitted filter
        The filter.
    batch : GraphBatch
        The problems to filter.
    """
    names = (row.get(GROUP) for row in batch.metadata_rows)
    counts = Counter(str(name) for name in names if isinstance(name, (str, int)))
    kept = fitted._calibrated
    by_text = not (counts or kept["named"].any() or kept["alone"].any())
    if by_text and batch.problems is not None:
        texts = (" ".join((text or "").casefold().split()) for text in batch.problems)
        counts = Counter(text for text in texts if text)
    repeated = [n for n in counts.values() if n > 1]
    if repeated:
        questions = "question" if len(repeated) == 1 else "questions"
        warn(
            f"got {sum(repeated)} answers to {len(repeated)} {questions}, but the "
            "guarantee covers neither all answers together nor an answer that is "
            "selected because of its kept claims. Select one answer to each question "
            "before filtering",
            GuaranteeWarning,
        )
