"""Guard against equal calibration answers that may be copies of one answer judged twice.

When five calibration answers were each counted twice, the miscoverage was 0.17 at alpha = 0.1.
Counting each distinct text only once would also invalidate the guarantee, for example if many
answers consist of the same false text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graphs import GraphBatch
from ..graphs.hashes import Hashes


def with_texts(batch: GraphBatch) -> NDArray[np.bool_]:
    """Return whether each answer has claim texts.

    Parameters
    ----------
    batch : GraphBatch
        The answers.

    Returns
    -------
    has_texts : ndarray of bool of shape (n_problems,)
        Whether the claims of each answer have texts.
    """
    has_claims = batch.sizes > 0
    if batch.claims is None:
        return np.zeros(len(batch), dtype=bool)
    starts = batch.offsets[:-1][has_claims].tolist()
    has_claims[has_claims] = [batch.claims[row] is not None for row in starts]
    return has_claims


def refuse_copies(hashes: Hashes, has_texts: NDArray[Any]) -> None:
    """Raise ValueError if several calibration answers have equal texts and no question.

    Parameters
    ----------
    hashes : Hashes
        Hashes of all calibration answers.
    has_texts : ndarray of bool of shape (n_problems,)
        Whether each answer has claim texts. Table rows have no texts and never count as copies.
    """
    if hashes.named_by == "answer":
        return
    content = hashes.content[(hashes.question < 0) & has_texts]
    n_copies = len(content) - len(np.unique(content))
    if n_copies:
        raise ValueError(
            f"{n_copies} of {len(has_texts)} calibration answers have the same texts as "
            "other answers and no question, so the same answer may have been judged "
            "twice. Pass groups with equal values for copies of the same answer, or "
            "groups=False if all answers are different"
        )
